"""Arithmetic of shapes and strides: contiguity, extent, overflow. C only: no Python object is touched here.

All strides in this module are in bytes unless a name says elements.
"""

cdef extern from "checked.h" nogil:
    bint checked_mul(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* out)
    bint checked_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* out)


cdef enum:
    MAX_NDIM = 64  # NumPy's own limit since 2.0


cdef inline Py_ssize_t count(int nd, const Py_ssize_t* shape) noexcept nogil:
    """Number of elements, or -1 where the product overflows (a zero anywhere makes it 0)."""
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
    """Compact strides in C or Fortran order, `unit` being the smallest. True where one overflows.

    Lengths of zero count as one, as in NumPy, so that strides stay meaningful for empty arrays.
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
    """Byte range [low, high) that the elements cover, relative to element zero. True where it overflows.

    An empty array reaches nothing: low == high == 0.
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
    """Whether the elements lie compactly in C (or Fortran) order; the product of all lengths must be known to fit.

    Strides of length-1 dimensions do not count, and an empty array is contiguous.
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
