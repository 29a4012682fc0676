"""The order in which a copy iterates over two arrays of the same shape: the order of the addresses in the first array.

The strides of the first array are made positive and sorted in descending order, so that its memory is accessed
sequentially. The other array is accessed in the same index order.
"""

cdef struct Dimension:
    Py_ssize_t length
    Py_ssize_t step     # bytes, in the array that determines the order
    Py_ssize_t other    # bytes, in the other array


cdef inline void turn(Dimension* d, char** first, char** other) noexcept nogil:
    """Reverse a dimension: negate both strides, and move both start addresses to the other end."""
    first[0] += d.step * (d.length - 1)
    other[0] += d.other * (d.length - 1)
    d.step, d.other = -d.step, -d.other


cdef inline int insert(Dimension* dimensions, int count, Dimension d, char** first, char** other) noexcept nogil:
    """Insert a dimension into `count` sorted dimensions, and return the new count. Skip a dimension of length 1.

    Broadcast dimensions (stride 0) come first. Dimensions with equal strides keep the order of their insertion.
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
    """Merge neighboring dimensions that are contiguous in both arrays, and return the new number of dimensions."""
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
