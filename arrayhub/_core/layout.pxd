"""Arithmetic of shapes and strides: contiguity, extent, overflow. No Python objects are used.

Strides are in bytes unless stated otherwise.
"""

cdef extern from "platform.h" nogil:
    bint checked_mul(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* out)
    bint checked_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* out)


cdef enum:
    MAX_NDIM = 64  # NumPy's own limit since 2.0


cdef inline Py_ssize_t count(int nd, const Py_ssize_t* shape) noexcept nogil:
    """Return the number of elements, or -1 on overflow. The result is 0 if any length is 0."""
    cdef Py_ssize_t n = 1
    cdef bint overflow = False
    cdef int k
    for k in range(nd):
        if shape[k] == 0:
            return 0
        overflow |= checked_mul(n, shape[k], &n)
    return -1 if overflow else n


cdef inline bint fill_strides(int nd, const Py_ssize_t* shape, Py_ssize_t unit, bint fortran,
                              Py_ssize_t* strides) noexcept nogil:
    """Set compact strides in C or Fortran order. `unit` is the smallest stride. Return True on overflow.

    Lengths of 0 count as 1, as in NumPy, so that the strides of empty arrays are meaningful.
    """
    cdef Py_ssize_t step = unit
    cdef int i, k
    for i in range(nd):
        k = i if fortran else nd - 1 - i
        strides[k] = step
        if shape[k] > 1 and checked_mul(step, shape[k], &step):
            return True
    return False


cdef inline bint reach(int nd, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t itemsize,
                       Py_ssize_t* low, Py_ssize_t* high) noexcept nogil:
    """Compute the byte range [low, high) of the elements, relative to element zero. Return True on overflow.

    An empty array has an empty range: low == high == 0.
    """
    cdef Py_ssize_t span
    cdef int k
    low[0] = 0
    high[0] = itemsize
    for k in range(nd):
        if shape[k] == 0:
            low[0] = high[0] = 0
            return False
    for k in range(nd):
        if checked_mul(strides[k], shape[k] - 1, &span):
            return True
        if checked_add(low[0], span, low) if span < 0 else checked_add(high[0], span, high):
            return True
    return False


cdef inline bint is_contiguous(int nd, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t itemsize,
                               bint fortran) noexcept nogil:
    """Return whether the elements are compact in C (or Fortran) order. The size in bytes must not overflow.

    Strides of dimensions of length 1 are ignored, and an empty array is contiguous.
    """
    cdef Py_ssize_t expected = itemsize
    cdef int i, k
    for k in range(nd):
        if shape[k] == 0:
            return True
    for i in range(nd):
        k = i if fortran else nd - 1 - i
        if shape[k] != 1:
            if strides[k] != expected:
                return False
            expected *= shape[k]
    return True
