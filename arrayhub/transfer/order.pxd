"""The order in which a copy goes through the dimensions of two arrays of the same shape: that of one array's addresses.

Its steps are made positive and sorted, the largest first, so that its memory is gone through once, from the lowest byte to
the highest. The other array is gone through in the same order, wherever that leads.
"""

cdef struct Dimension:
    Py_ssize_t length
    Py_ssize_t step     # bytes, in the array that gives the order
    Py_ssize_t other    # bytes, in the other array


cdef inline void turn(Dimension* d, char** first, char** other) noexcept nogil:
    """Go through a dimension from its other end: there lies the `first` word then, and the `other` array's."""
    first[0] += d.step * (d.length - 1)
    other[0] += d.other * (d.length - 1)
    d.step, d.other = -d.step, -d.other


cdef inline int insert(Dimension* dimensions, int count, Dimension d, char** first, char** other) noexcept nogil:
    """Put one more into its place among `count`, unless it is of length 1. Return how many there are.

    Repetitions, of step 0, go before all others. Those of equal steps stay in the order in which they came.
    """
    cdef int k = count
    if d.length <= 1:
        return count
    if d.step < 0:
        turn(&d, first, other)
    while k > 0 and dimensions[k - 1].step != 0 and (d.step == 0 or d.step > dimensions[k - 1].step):
        dimensions[k] = dimensions[k - 1]
        k -= 1
    dimensions[k] = d
    return count + 1


cdef inline int join(Dimension* dimensions, int count) noexcept nogil:
    """Make one of two where the first continues the next on both sides. Return how many are left."""
    cdef int k, last = 0
    cdef Dimension d
    for k in range(1, count):
        d = dimensions[k]
        if dimensions[last].step == d.length * d.step and dimensions[last].other == d.length * d.other:
            d.length *= dimensions[last].length
        else:
            last += 1
        dimensions[last] = d
    return min(count, last + 1)
