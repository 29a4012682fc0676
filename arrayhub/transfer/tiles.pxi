"""Copy between any two layouts of host memory: rows of words of 1 to 16 bytes, or tiles of items of up to 32 bytes.

If source and target are contiguous along different dimensions, a loop in the order of one array jumps through the
other. Each cache line of the other array is then fetched once per element unless it stays in the cache. If the strides
are large powers of two, the lines map to few cache sets, and most of them are evicted. A copy by tiles reads each cache
line of a tile once and completely, transposes the elements, and writes each line of the target once and completely.
loops.h lists the cases in which word-by-word copies are faster.

Rows are copied one by one if both arrays are contiguous along the same dimension, if elements are longer than 32 bytes,
or if a cache line does not hold several elements.
"""

cimport numpy as cnp

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport PACKED, WRITEABLE, Descriptor, extent, host_readable, same_shape, size_of
from arrayhub.runtimes.host cimport as_host
from arrayhub.transfer.loops cimport CACHE_LINE, LARGEST_WORD, RowLoop, TileLoop, copy_rows, row_loop, tile_loop
from arrayhub.transfer.order cimport Dimension, insert, join, turn

cnp.import_array()

cdef enum:
    LARGEST_ITEM = 32       # bytes; maximum size of an item in a copy by tiles
    SHORTEST = 8            # bytes; tiles with a shorter side are slower than copies by rows
    SQUARE = 1024           # bytes per side of a square of tiles, whose cache lines then stay in the cache


cdef struct Loops:
    int nd
    Dimension dimensions[layout.MAX_NDIM + 1]   # step: of the target, which determines the order; other: of the source
    char* target
    char* source        # read only
    Py_ssize_t word     # bytes: a power of two up to 16
    Py_ssize_t item     # bytes that are copied as a unit: a word, or the words of the last dimension


cdef void begin(Loops* loops, int nd, const Py_ssize_t* shape, Py_ssize_t itemsize, char* target,
                const Py_ssize_t* target_steps, const char* source, const Py_ssize_t* source_steps) noexcept nogil:
    """Initialize `loops` with the merged dimensions of two arrays. If elements have several words, add them as a dimension."""
    cdef Dimension* dimensions = loops.dimensions
    cdef int k, count = 0
    loops.target = target
    loops.source = <char*> source
    for k in range(nd):
        count = insert(
            dimensions, count, Dimension(shape[k], target_steps[k], source_steps[k]), &loops.target, &loops.source)
    loops.word = min(itemsize & -itemsize, <Py_ssize_t> LARGEST_WORD)
    if itemsize > loops.word:
        dimensions[count] = Dimension(itemsize // loops.word, loops.word, loops.word)
        count += 1
    loops.nd = join(dimensions, count)


cdef inline bint runs(Loops* loops) noexcept nogil:
    """Return whether the words of the last dimension are contiguous on both sides. Requires ``loops.nd > 0``."""
    cdef Dimension* last = &loops.dimensions[loops.nd - 1]
    return last.step == loops.word and last.other == loops.word


cdef void widen(Loops* loops) noexcept nogil:
    """Combine words that are contiguous on both sides into one item of up to 32 bytes, or into one larger word."""
    cdef Py_ssize_t nbytes
    loops.item = loops.word
    if loops.nd == 0 or not runs(loops):
        return
    nbytes = loops.dimensions[loops.nd - 1].length * loops.word
    if nbytes <= LARGEST_WORD and nbytes & (nbytes - 1) == 0:
        loops.item = loops.word = nbytes
        loops.nd -= 1
    elif nbytes <= LARGEST_ITEM:
        loops.item = nbytes


cdef inline int items_last(Loops* loops) noexcept nogil:
    """Return the last dimension of the array, not counting the dimension of the words within an item."""
    return loops.nd - 1 if loops.item == loops.word else loops.nd - 2


cdef int along_source(Loops* loops) noexcept nogil:
    """Return the dimension along which the source is contiguous if tiles are faster than rows, else -1.

    Tiles are faster if source and target are contiguous along different dimensions, and if a cache line holds several
    items on both sides.
    """
    cdef int k, last = items_last(loops), best = last
    cdef Dimension* dimensions = loops.dimensions
    if last < 1 or dimensions[last].step >= CACHE_LINE or magnitude(dimensions[last].other) < CACHE_LINE:
        return -1
    for k in range(last):
        if magnitude(dimensions[k].other) < magnitude(dimensions[best].other):
            best = k
    if best == last or dimensions[best].other == 0 or magnitude(dimensions[best].other) >= CACHE_LINE:
        return -1
    return best if min(dimensions[best].length, dimensions[last].length) * loops.item >= SHORTEST else -1


cdef inline Py_ssize_t magnitude(Py_ssize_t value) noexcept nogil:
    return -value if value < 0 else value


cdef void run(Loops* loops) noexcept nogil:
    """Copy all words, with a two-dimensional loop for every index of the other dimensions."""
    cdef Py_ssize_t index[layout.MAX_NDIM + 1]
    cdef Dimension* a
    cdef Dimension* b
    cdef Dimension single = Dimension(1, 0, 0)
    cdef RowLoop rows = row_loop(loops.word)
    cdef TileLoop tiles = NULL
    cdef char* target
    cdef const char* source
    cdef int k, along = along_source(loops), last = loops.nd - 1, second
    if along >= 0:
        last = items_last(loops)
        tiles = tile_loop(loops.item)
        if loops.dimensions[along].other < 0:      # read cache lines in ascending order
            turn(&loops.dimensions[along], &loops.target, &loops.source)
    target, source = loops.target, loops.source
    second = along if along >= 0 else last - 1
    a = &loops.dimensions[second] if second >= 0 else &single
    b = &loops.dimensions[last] if last >= 0 else &single
    for k in range(last):
        index[k] = 0
    while True:
        if tiles != NULL:
            square_by_square(tiles, loops.item, target, source, a, b)
        else:
            copy_rows(rows, loops.word, target, source, a.length, b.length, a.step, b.step, a.other, b.other)
        k = last - 1
        while k >= 0:
            if k != second:
                index[k] += 1
                target += loops.dimensions[k].step
                source += loops.dimensions[k].other
                if index[k] < loops.dimensions[k].length:
                    break
                target -= loops.dimensions[k].step * index[k]
                source -= loops.dimensions[k].other * index[k]
                index[k] = 0
            k -= 1
        if k < 0:
            return


cdef void square_by_square(TileLoop tiles, Py_ssize_t item, char* target, const char* source, Dimension* a,
                           Dimension* b) noexcept nogil:
    """Copy two dimensions by tiles, one square of tiles (see `SQUARE`) after another."""
    cdef Py_ssize_t side = SQUARE // item, tall, wide, i = 0, j
    while i < a.length:
        tall = part(a.length - i, side)
        j = 0
        while j < b.length:
            wide = part(b.length - j, side)
            tiles(
                target + i * a.step + j * b.step, source + i * a.other + j * b.other, item, tall, wide, a.step, b.step,
                a.other, b.other)
            j += wide
        i += tall


cdef inline Py_ssize_t part(Py_ssize_t rest, Py_ssize_t side) noexcept nogil:
    """Return the side of the next square: `side`, or `rest` if fewer than `side` items would remain."""
    return rest if rest < 2 * side else side


cdef int check_alike(cnp.ndarray target, cnp.ndarray source) except -1:
    """Raise ValueError if the arrays differ in shape or item size, hold Python objects, or if `target` is read-only."""
    cdef int k, nd = cnp.PyArray_NDIM(target)
    cdef bint alike = nd == cnp.PyArray_NDIM(source) and cnp.PyArray_ITEMSIZE(target) == cnp.PyArray_ITEMSIZE(source)
    for k in range(nd if alike else 0):
        alike &= cnp.PyArray_DIMS(target)[k] == cnp.PyArray_DIMS(source)[k]
    if not alike or not cnp.PyArray_ISWRITEABLE(target) or target.dtype.hasobject or source.dtype.hasobject:
        raise ValueError(
            "tiles: the arrays do not match; accepted: the same shape and item size, no Python objects, and a writable "
            "target"
        )
    return 0


def copy(cnp.ndarray target, cnp.ndarray source):
    """Copy `source` to `target`. Both may have any layout.

    Parameters
    ----------
    target, source : numpy.ndarray
        Arrays of the same shape and item size, without Python objects. They must not overlap. `target` must be
        writable, and its elements must not overlap each other.
    """
    cdef Loops loops
    check_alike(target, source)
    if cnp.PyArray_SIZE(target) == 0 or cnp.PyArray_ITEMSIZE(target) == 0:
        return
    begin(
        &loops, cnp.PyArray_NDIM(target), <Py_ssize_t*> cnp.PyArray_DIMS(target), cnp.PyArray_ITEMSIZE(target),
        <char*> cnp.PyArray_DATA(target), <Py_ssize_t*> cnp.PyArray_STRIDES(target),
        <const char*> cnp.PyArray_DATA(source), <Py_ssize_t*> cnp.PyArray_STRIDES(source))
    with nogil:
        finish(&loops)


def copy_at_once(Descriptor target, Descriptor source, Py_ssize_t at_most):
    """Copy a small host-readable array to another array in one piece, without creating an ndarray.

    Parameters
    ----------
    target, source : USMArray
        Arrays of the same shape and item size. The elements of `target` must not overlap each other.
    at_most : int
        Maximum number of bytes, because signals are not handled during the copy.

    Returns
    -------
    bool
        True if the array was copied. False if the array is larger than `at_most`, if the arrays overlap, are packed, or
        differ in shape or item size, if `target` is read-only, or if the host cannot access the memory.
    """
    cdef Descriptor a, b
    cdef Py_ssize_t nbytes = size_of(target) * target.itemsize_
    if (nbytes > at_most or target.itemsize_ != source.itemsize_ or not same_shape(target, source)
            or not target.flags_ & WRITEABLE or (target.flags_ | source.flags_) & PACKED
            or not host_readable(target) or not host_readable(source)):
        return False
    a, b = as_host(target), as_host(source)
    if nbytes == 0:
        return True
    if share_bytes(a, b):
        return False
    with nogil:
        put(a.data_, a.byte_strides_, b)
    return True


cdef void put(char* target, const Py_ssize_t* steps, Descriptor source) noexcept nogil:
    """Copy the host array `source` to the memory at `target`.

    `target` is the address of the first target element, and `steps` contains the target's strides in bytes. `source` must not
    be empty or packed.
    """
    cdef Loops loops
    begin(&loops, source.nd_, source.shape_, source.itemsize_, target, steps, source.data_, source.byte_strides_)
    finish(&loops)


cdef void finish(Loops* loops) noexcept nogil:
    """Run the copy that `begin` has initialized."""
    widen(loops)
    run(loops)


cpdef bint share_bytes(Descriptor a, Descriptor b) noexcept nogil:
    """Return whether the address ranges of two arrays intersect."""
    cdef Py_ssize_t low, high, other_low, other_high
    extent(a, &low, &high)
    extent(b, &other_low, &other_high)
    return (low < high and other_low < other_high
            and a.data_ + low < b.data_ + other_high and b.data_ + other_low < a.data_ + high)
