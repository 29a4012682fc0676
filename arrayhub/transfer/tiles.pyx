"""Copies that turn dimensions round: tile by tile, so that each cache line is read once and written once.

Where source and target run along different dimensions, going through one in order jumps through the other. If the
lines jumped to do not stay in the cache, each is fetched again for every element that it holds.
"""

cimport numpy as cnp

from arrayhub._core cimport layout

cnp.import_array()

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>

    #define ARRAYHUB_LINE 64

    /* Squares of as many elements as a line holds: so many lines are read, and so many written, and each only once.
       `along` is the dimension of the source's lines, `across` that of the target's; steps are in bytes. Elements move by
       memcpy of a constant size, which is one instruction and needs no alignment. In a whole square of compact lines,
       the usual case, steps and lengths are constant too, for the compiler to unroll. */
    #define ARRAYHUB_TILE(name, SIZE)                                                                                  \
        static void name(char *target, const char *source, ptrdiff_t along, ptrdiff_t across,             \
                         ptrdiff_t target_along, ptrdiff_t target_across, ptrdiff_t source_along,                      \
                         ptrdiff_t source_across) {                                                                    \
            enum { SIDE = ARRAYHUB_LINE / SIZE };                                                                      \
            const int compact = target_across == SIZE && source_along == SIZE;                                         \
            for (ptrdiff_t p = 0; p < along; p += SIDE)                                                                \
                for (ptrdiff_t q = 0; q < across; q += SIDE) {                                                         \
                    char *t = target + p * target_along + q * target_across;                                           \
                    const char *s = source + p * source_along + q * source_across;                                     \
                    const ptrdiff_t rows = along - p < SIDE ? along - p : SIDE;                                        \
                    const ptrdiff_t columns = across - q < SIDE ? across - q : SIDE;                                   \
                    if (compact && rows == SIDE && columns == SIDE) {                                                  \
                        for (ptrdiff_t i = 0; i < SIDE; i++)                                                           \
                            for (ptrdiff_t j = 0; j < SIDE; j++)                                                       \
                                memcpy(t + i * target_along + j * SIZE, s + i * SIZE + j * source_across, SIZE);       \
                    } else {                                                                                           \
                        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
                            for (ptrdiff_t j = 0; j < columns; j++)                                                    \
                                memcpy(t + i * target_along + j * target_across,                                       \
                                       s + i * source_along + j * source_across, SIZE);                                \
                    }                                                                                                  \
                }                                                                                                      \
        }
    ARRAYHUB_TILE(arrayhub_tile_1, 1)
    ARRAYHUB_TILE(arrayhub_tile_2, 2)
    ARRAYHUB_TILE(arrayhub_tile_4, 4)
    ARRAYHUB_TILE(arrayhub_tile_8, 8)
    ARRAYHUB_TILE(arrayhub_tile_16, 16)

    static void arrayhub_tile(char *target, const char *source, size_t size, ptrdiff_t along, ptrdiff_t across,
                              ptrdiff_t target_along, ptrdiff_t target_across, ptrdiff_t source_along,
                              ptrdiff_t source_across) {
    #define ARRAYHUB_USE(name)                                                                                         \
        name(target, source, along, across, target_along, target_across, source_along, source_across); break
        switch (size) {
        case 1: ARRAYHUB_USE(arrayhub_tile_1);
        case 2: ARRAYHUB_USE(arrayhub_tile_2);
        case 4: ARRAYHUB_USE(arrayhub_tile_4);
        case 8: ARRAYHUB_USE(arrayhub_tile_8);
        case 16: ARRAYHUB_USE(arrayhub_tile_16);
        }
    }
    """
    void arrayhub_tile(
        char* target, const char* source, size_t size, Py_ssize_t along, Py_ssize_t across, Py_ssize_t target_along,
        Py_ssize_t target_across, Py_ssize_t source_along, Py_ssize_t source_across) noexcept nogil

cdef enum:
    CACHE_LINE = 64         # bytes
    WAYS = 8                # lines of one place in the second-level cache, and how many bytes apart those lie at least
    WAY_BYTES = 65536
    TILE = 1024             # bytes of a tile's side


cdef struct Dimension:
    Py_ssize_t length
    Py_ssize_t target   # steps in bytes
    Py_ssize_t source

cdef struct Plan:
    int nd
    Dimension dimensions[layout.MAX_NDIM]   # the target's largest step first, none of length one
    char* target
    const char* source
    Py_ssize_t itemsize


cdef void simplify(Plan* plan) noexcept nogil:
    """Order the dimensions by the target's steps, all of them forwards, and join those that run on into each other."""
    cdef int k, j, kept
    cdef Dimension d
    for k in range(plan.nd):
        d = plan.dimensions[k]
        if d.target < 0:
            plan.target += d.target * (d.length - 1)
            plan.source += d.source * (d.length - 1)
            d.target = -d.target
            d.source = -d.source
        j = k
        while j > 0 and plan.dimensions[j - 1].target < d.target:
            plan.dimensions[j] = plan.dimensions[j - 1]
            j -= 1
        plan.dimensions[j] = d
    kept = 0
    for k in range(1, plan.nd):
        d = plan.dimensions[k]
        if plan.dimensions[kept].target == d.target * d.length and plan.dimensions[kept].source == d.source * d.length:
            d.length *= plan.dimensions[kept].length
        else:
            kept += 1
        plan.dimensions[kept] = d
    plan.nd = min(plan.nd, kept + 1)


cdef int along_source(Plan* plan) noexcept nogil:
    """The dimension of the source's smallest step, where it pays to copy along it too; -1 where it does not.

    It pays where the source's lines that one line of the target asks for do not stay in the cache until the next line of
    the target asks for them again.
    """
    cdef int k, best = plan.nd - 1
    cdef Dimension* last = &plan.dimensions[plan.nd - 1]
    if plan.nd < 2 or last.target >= CACHE_LINE or magnitude(last.source) < CACHE_LINE \
            or last.length <= lines_kept(last.source):
        return -1
    for k in range(plan.nd):
        if magnitude(plan.dimensions[k].source) < magnitude(plan.dimensions[best].source):
            best = k
    return best if best != plan.nd - 1 and magnitude(plan.dimensions[best].source) < CACHE_LINE else -1


cdef inline Py_ssize_t lines_kept(Py_ssize_t step) noexcept nogil:
    """How many lines that lie `step` bytes apart the cache keeps: steps of a large power of two share few places in it."""
    cdef Py_ssize_t apart = step & -step     # the largest power of two that divides it; 0 of a broadcast
    return WAYS * (WAY_BYTES // min(max(apart, CACHE_LINE), WAY_BYTES))


cdef inline Py_ssize_t magnitude(Py_ssize_t value) noexcept nogil:
    return -value if value < 0 else value


cdef void run(Plan* plan, int along) noexcept nogil:
    """Copy all tiles: those of one pair of dimensions for every index of the others."""
    cdef Py_ssize_t index[layout.MAX_NDIM]
    cdef Dimension* a = &plan.dimensions[along]
    cdef Dimension* b = &plan.dimensions[plan.nd - 1]
    cdef Py_ssize_t tall, wide, i, j
    cdef char* target = plan.target
    cdef const char* source = plan.source
    cdef int k
    tall = wide = TILE // plan.itemsize
    for k in range(plan.nd):
        index[k] = 0
    while True:
        for i from 0 <= i < a.length by tall:
            for j from 0 <= j < b.length by wide:
                arrayhub_tile(
                    target + i * a.target + j * b.target, source + i * a.source + j * b.source, plan.itemsize,
                    min(tall, a.length - i), min(wide, b.length - j), a.target, b.target, a.source, b.source)
        k = plan.nd - 2
        while k >= 0:
            if k != along:
                index[k] += 1
                target += plan.dimensions[k].target
                source += plan.dimensions[k].source
                if index[k] < plan.dimensions[k].length:
                    break
                target -= plan.dimensions[k].target * index[k]
                source -= plan.dimensions[k].source * index[k]
                index[k] = 0
            k -= 1
        if k < 0:
            return


cdef inline bint tiled(Py_ssize_t itemsize) noexcept nogil:
    """Whether there are tiles of elements of that size."""
    return itemsize in (1, 2, 4, 8, 16)


def copy(cnp.ndarray target not None, cnp.ndarray source not None):
    """Copy `source` into `target` by tiles, if that is the faster way.

    Parameters
    ----------
    target, source : numpy.ndarray
        Of the same shape and item size, without Python objects; they share no memory.

    Returns
    -------
    bool
        False where nothing was copied, because NumPy is as fast.
    """
    cdef Plan plan
    cdef int k, along, nd = cnp.PyArray_NDIM(target)
    plan.nd = 0
    plan.itemsize = cnp.PyArray_ITEMSIZE(target)
    plan.target = <char*> cnp.PyArray_DATA(target)
    plan.source = <const char*> cnp.PyArray_DATA(source)
    if nd < 2 or cnp.PyArray_SIZE(target) == 0 or not tiled(plan.itemsize):
        return False
    for k in range(nd):
        if cnp.PyArray_DIMS(target)[k] > 1:
            plan.dimensions[plan.nd] = Dimension(
                cnp.PyArray_DIMS(target)[k], cnp.PyArray_STRIDES(target)[k], cnp.PyArray_STRIDES(source)[k])
            plan.nd += 1
    with nogil:
        simplify(&plan)
        along = along_source(&plan)
        if along >= 0:
            run(&plan, along)
    return along >= 0
