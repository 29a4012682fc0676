"""The bytes that the elements of an array occupy, and the strides after gaps are removed. No Python objects are used.

The algorithm starts with a piece, the bytes of one element, and visits the dimensions in order of increasing absolute
stride:

1. If the stride is at most the size of the piece, the dimension extends the piece without a gap. Compact arrays and
   sliding windows consist of one piece.
2. A longer stride repeats the piece at a constant distance. This repetition is called a level. Further dimensions whose
   strides are multiples of this distance may extend the level without a gap. Otherwise they start another level, which
   repeats the previous one.
3. A dimension with stride 0 (a broadcast) does not occupy bytes.

The result is a nest of levels. The algorithm works for any order and any signs of the strides.
"""

from arrayhub._core cimport layout


cdef struct Footprint:
    Py_ssize_t low                          # bytes from element zero to the lowest byte
    Py_ssize_t nbytes                       # total size of all pieces in bytes
    int levels                              # levels of repetition; 0: one piece without gaps
    Py_ssize_t lengths[layout.MAX_NDIM + 1]  # bytes of a piece, then the number of repetitions of each level
    Py_ssize_t steps[layout.MAX_NDIM + 1]    # 1, then the bytes from one repetition to the next
    Py_ssize_t strides[layout.MAX_NDIM]     # byte strides of the array if the pieces are stored without gaps


cdef inline void measure(int nd, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t itemsize,
                         Footprint* print_) noexcept nogil:
    """Compute the footprint of an array. The extent and the size in bytes must not overflow, which `seal` ensures."""
    cdef int by_step[layout.MAX_NDIM]
    cdef int level_of[layout.MAX_NDIM]
    cdef int moving = 0, k, j
    cdef Py_ssize_t step, multiple, unit
    print_.low = 0
    print_.levels = 0
    print_.lengths[0] = itemsize
    print_.steps[0] = 1
    for k in range(nd):
        if shape[k] == 0:
            print_.lengths[0] = 0
        print_.strides[k] = 0
    if print_.lengths[0] == 0:
        print_.nbytes = 0
        return
    for k in range(nd):
        if shape[k] == 1 or strides[k] == 0:
            continue
        if strides[k] < 0:
            print_.low += strides[k] * (shape[k] - 1)
        j = moving
        while j > 0 and absolute(strides[by_step[j - 1]]) > absolute(strides[k]):
            by_step[j] = by_step[j - 1]
            j -= 1
        by_step[j] = k
        moving += 1
    for j in range(moving):
        k = by_step[j]
        step = absolute(strides[k])
        multiple = step // print_.steps[print_.levels]
        if step % print_.steps[print_.levels] != 0 or multiple > print_.lengths[print_.levels]:
            print_.levels += 1
            print_.lengths[print_.levels] = multiple = 1
            print_.steps[print_.levels] = step
        print_.lengths[print_.levels] += multiple * (shape[k] - 1)
        level_of[k] = print_.levels
        print_.strides[k] = multiple if strides[k] > 0 else -multiple
    print_.nbytes = unit = print_.lengths[0]
    for j in range(1, print_.levels + 1):      # convert multiples of a level's step to bytes
        for k in range(moving):
            if level_of[by_step[k]] == j:
                print_.strides[by_step[k]] *= unit
        unit *= print_.lengths[j]
        print_.nbytes = unit


cdef inline Py_ssize_t absolute(Py_ssize_t value) noexcept nogil:
    return -value if value < 0 else value
