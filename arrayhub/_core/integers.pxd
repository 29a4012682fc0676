"""Python integers: fast access to the value of a small int, and validation of integer arguments."""

cdef extern from *:
    """
    /* The value of an exact int with one digit, which most lengths and strides are. CPython 3.12 changed the layout. */
    #if PY_VERSION_HEX >= 0x030C0000
    #define arrayhub_is_digit(value) (PyLong_CheckExact(value) && PyUnstable_Long_IsCompact((PyLongObject *)(value)))
    #define arrayhub_digit(value) ((Py_ssize_t)PyUnstable_Long_CompactValue((PyLongObject *)(value)))
    #else
    #define arrayhub_is_digit(value) (PyLong_CheckExact(value) && (size_t)(Py_SIZE(value) + 1) <= 2)
    #define arrayhub_digit(value) (Py_SIZE(value) * (Py_ssize_t)((PyLongObject *)(value))->ob_digit[0])
    #endif
    """
    bint is_digit "arrayhub_is_digit"(object value) noexcept
    Py_ssize_t digit "arrayhub_digit"(object value) noexcept

cpdef bint is_bool(object value)
cpdef Py_ssize_t integer(object value, str what) except? -1
