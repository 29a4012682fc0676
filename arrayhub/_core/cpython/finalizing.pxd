"""Test for interpreter shutdown, when Python code must no longer run and the operating system frees all memory."""

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    #define arrayhub_is_finalizing() Py_IsFinalizing()
    #else
    #define arrayhub_is_finalizing() (!Py_IsInitialized() || _Py_IsFinalizing())
    #endif
    """
    bint is_finalizing "arrayhub_is_finalizing"() noexcept nogil
