"""Copies between any two layouts of host memory, by words of 1 to 16 bytes: in rows, or in tiles of items of up to 32.

Where source and target run along different dimensions, going through one in order jumps through the other. Lines that
were jumped to are fetched again for every element that they hold if they do not stay in the cache; and where steps are
large powers of two, they share so few places in it that hardly any stays. So tiles read each line once and as a whole,
turn the elements round, and write each line of the target once and as a whole. Which words go one by one after all, since
all their lines stay, is said in loops.h.

Where both run along the same dimension, or elements are as long as lines, rows are copied one after the other.
"""

cimport numpy as cnp

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport PACKED, WRITEABLE, Descriptor, extent, host_readable, same_shape, size_of
from arrayhub.runtimes.host cimport as_host
from arrayhub.transfer.loops cimport CACHE_LINE, LARGEST_WORD, RowLoop, TileLoop, copy_rows, row_loop, tile_loop
from arrayhub.transfer.order cimport Dimension, insert, join, turn

cnp.import_array()

cdef enum:
    LARGEST_ITEM = 32       # bytes of what tiles move
    SHORTEST = 8            # bytes of a side of a tile that pay
    SQUARE = 1024           # bytes of the side of a square of tiles: what one row of tiles fetches is there for the next


cdef struct Loops:
    int nd
    Dimension dimensions[layout.MAX_NDIM + 1]   # steps: the target's, whose order it is; other: the source's
    char* target
    char* source        # only read
    Py_ssize_t word     # bytes: a power of two up to 16
    Py_ssize_t item     # bytes of what is moved as one: a word, or those that the last dimension holds


cdef void begin(Loops* loops, int nd, const Py_ssize_t* shape, Py_ssize_t itemsize, char* target,
                const Py_ssize_t* target_steps, const char* source, const Py_ssize_t* source_steps) noexcept nogil:
    """The dimensions of two arrays, the words of an element being the last; as few as do."""
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
    """Whether the last dimension's words lie one after the other on both sides; `loops` has a dimension."""
    cdef Dimension* last = &loops.dimensions[loops.nd - 1]
    return last.step == loops.word and last.other == loops.word


cdef void widen(Loops* loops) noexcept nogil:
    """Make one item of the words that lie one after the other on both sides, if they are as few as tiles move; one word
    where it is as long as one."""
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
    """The last dimension but that of an item's words."""
    return loops.nd - 1 if loops.item == loops.word else loops.nd - 2


cdef int along_source(Loops* loops) noexcept nogil:
    """The dimension of the source's lines, where it is another than that of the target's and tiles pay; else -1.

    They pay where a line holds several items on both sides.
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
    """Copy all words: those of two dimensions at once, for every index of the others."""
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
        if loops.dimensions[along].other < 0:      # read lines forwards
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
    """Copy two dimensions by tiles: those of one square, then those of the next."""
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
    """A square's side, or all that is left where that would leave less than a square."""
    return rest if rest < 2 * side else side


cdef int check_alike(cnp.ndarray target, cnp.ndarray source) except -1:
    """Refuse arrays that no loop over both could copy."""
    cdef int k, nd = cnp.PyArray_NDIM(target)
    cdef bint alike = nd == cnp.PyArray_NDIM(source) and cnp.PyArray_ITEMSIZE(target) == cnp.PyArray_ITEMSIZE(source)
    for k in range(nd if alike else 0):
        alike &= cnp.PyArray_DIMS(target)[k] == cnp.PyArray_DIMS(source)[k]
    if not alike or not cnp.PyArray_ISWRITEABLE(target) or target.dtype.hasobject or source.dtype.hasobject:
        raise ValueError("tiles: the arrays differ in shape or item size, hold Python objects, or the target is read-only")
    return 0


def copy(cnp.ndarray target, cnp.ndarray source):
    """Copy `source` into `target`, whatever their layouts are.

    Parameters
    ----------
    target, source : numpy.ndarray
        Of the same shape and item size, without Python objects; they share no memory, and `target` is writable and has
        no elements that share bytes.
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
    """Copy one host-readable array into another without an ndarray of either, where no more than a loop is needed.

    Parameters
    ----------
    target, source : USMArray
        Of the same shape and item size; `target` has no elements that share bytes.
    at_most : int
        Bytes that may be copied with no look at signals.

    Returns
    -------
    bool
        False where nothing was copied: more than that, memory that they share, elements of less than a byte, memory that
        the host cannot reach, or another thing that asks for the long way.
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
    if share_memory(a, b):
        return False
    with nogil:
        put(a.data_, a.byte_strides_, b)
    return True


cdef void put(char* target, const Py_ssize_t* steps, Descriptor source) noexcept nogil:
    """Copy an array in host memory, not empty and not packed, to where its first element is at `target` and its dimensions
    have these steps, in bytes."""
    cdef Loops loops
    begin(&loops, source.nd_, source.shape_, source.itemsize_, target, steps, source.data_, source.byte_strides_)
    finish(&loops)


cdef void finish(Loops* loops) noexcept nogil:
    """Copy what `begin` has been told of."""
    widen(loops)
    run(loops)


cdef bint share_memory(Descriptor a, Descriptor b) noexcept nogil:
    """Whether the bytes from the first to the last of one array reach into those of the other."""
    cdef Py_ssize_t low, high, other_low, other_high
    extent(a, &low, &high)
    extent(b, &other_low, &other_high)
    return a.data_ + low < b.data_ + other_high and b.data_ + other_low < a.data_ + high
