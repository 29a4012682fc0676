"""Copy loops between two layouts of host memory: words of 1, 2, 4, 8 or 16 bytes, or items of up to 32 bytes.

Addresses may have any alignment. Steps are in bytes.

A copy iterates over both arrays in the order of the addresses in the first one: its strides are made positive and sorted in
descending order, so that its memory is accessed sequentially. The other array is accessed in the same index order.
"""

cdef enum:
    LARGEST_WORD = 16       # bytes of a 128-bit vector register

cdef extern from "../transfer/loops.h" nogil:
    enum:
        CACHE_LINE "ARRAYHUB_LINE"      # bytes

    # Copy `outer` rows of `inner` words.
    ctypedef void (*RowLoop "arrayhub_row_loop")(
        char* target, const char* source, Py_ssize_t outer, Py_ssize_t inner, Py_ssize_t target_outer,
        Py_ssize_t target_inner, Py_ssize_t source_outer, Py_ssize_t source_inner) noexcept nogil
    RowLoop row_loop "arrayhub_row_loop_of"(Py_ssize_t word) noexcept nogil
    # Copy items of two dimensions: the source's cache lines run along `along`, and the target's along `across`.
    ctypedef void (*TileLoop "arrayhub_tile_loop")(
        char* target, const char* source, Py_ssize_t item, Py_ssize_t along, Py_ssize_t across, Py_ssize_t target_along,
        Py_ssize_t target_across, Py_ssize_t source_along, Py_ssize_t source_across) noexcept nogil
    TileLoop tile_loop "arrayhub_tile_loop_of"(Py_ssize_t item) noexcept nogil
    void copy_runs "arrayhub_runs"(
        char* target, const char* source, Py_ssize_t outer, Py_ssize_t nbytes, Py_ssize_t target_outer,
        Py_ssize_t source_outer) noexcept nogil


cdef inline void copy_rows(RowLoop loop, Py_ssize_t word, char* target, const char* source, Py_ssize_t outer,
                           Py_ssize_t inner, Py_ssize_t target_outer, Py_ssize_t target_inner, Py_ssize_t source_outer,
                           Py_ssize_t source_inner) noexcept nogil:
    """Copy rows word by word, or as runs of bytes if the words are contiguous on both sides."""
    if target_inner == word and source_inner == word:
        copy_runs(target, source, outer, inner * word, target_outer, source_outer)
    else:
        loop(target, source, outer, inner, target_outer, target_inner, source_outer, source_inner)


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
