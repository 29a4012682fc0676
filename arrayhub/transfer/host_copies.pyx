"""Copies in host memory.

The sections are: copies between any two layouts by rows or tiles; the bytes that the elements of an array occupy; the
validation of `out` against the source (compatibility, broadcasting, overlap).
"""

from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    BOUNDARY,
    C_CONTIGUOUS,
    COPIED,
    F_CONTIGUOUS,
    IMMUTABLE,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    MemoryBlock,
    allocate,
    array_for_copy,
    block_of,
    extent,
    get_dtype,
    host_readable,
    labels_of,
    same_shape,
    seal,
    set_labels,
    set_type,
    shape_tuple,
    size_of,
    view_of,
)
from arrayhub._core.footprint cimport Footprint, measure
from arrayhub.libraries.numpy cimport emit_run
from arrayhub.runtimes.host cimport as_host, for_host_library, on_stream
from arrayhub.transfer.loops cimport (
    CACHE_LINE,
    LARGEST_WORD,
    Dimension,
    RowLoop,
    TileLoop,
    copy_rows,
    insert,
    join,
    row_loop,
    tile_loop,
    turn,
)

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import show


def host_view(Descriptor array):
    """Return `array` as an array with device ``cpu``, after waiting for its producer.

    Raise BufferError if the host cannot read the memory.
    """
    return for_host_library(array, "the host", 0)


def is_packed(Descriptor array):
    """Return whether several elements share a byte. Packed arrays are compact and do not have byte strides."""
    return bool(array.flags_ & PACKED)


def order_on_stream(Descriptor array, stream):
    """Return a view of `array` that is ordered on `stream` (see `on_stream`), or `array` itself if `stream` is None."""
    return array if stream is None else on_stream(array, stream, False)


# ------------------------------------------------------------------------------------------------------------------------ tiles

# Copy between any two layouts of host memory: rows of words of 1 to 16 bytes, or tiles of items of up to 32 bytes.
#
# If source and target are contiguous along different dimensions, a loop in the order of one array jumps through the
# other. Each cache line of the other array is then fetched once per element unless it stays in the cache. If the strides
# are large powers of two, the lines map to few cache sets, and most of them are evicted. A copy by tiles reads each cache
# line of a tile once and completely, transposes the elements, and writes each line of the target once and completely.
# loops.h lists the cases in which word-by-word copies are faster.
#
# Rows are copied one by one if both arrays are contiguous along the same dimension, if elements are longer than 32 bytes,
# or if a cache line does not hold several elements.

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


cdef void begin(Loops* loops, char* target, const Py_ssize_t* steps, Descriptor source) noexcept nogil:
    """Initialize `loops` with the merged dimensions of two arrays. If elements have several words, add them as a dimension."""
    cdef Dimension* dimensions = loops.dimensions
    cdef Dimension dimension
    cdef Py_ssize_t itemsize = source.itemsize_
    cdef int k, count = 0
    loops.target = target
    loops.source = source.data_
    for k in range(source.nd_):
        dimension = Dimension(source.shape_[k], steps[k], source.byte_strides_[k])
        count = insert(dimensions, count, dimension, &loops.target, &loops.source)
    loops.word = min(itemsize & -itemsize, <Py_ssize_t> LARGEST_WORD)
    if itemsize > loops.word:
        dimensions[count] = Dimension(itemsize // loops.word, loops.word, loops.word)
        count += 1
    loops.nd = join(dimensions, count)


cdef void widen(Loops* loops) noexcept nogil:
    """Combine words that are contiguous on both sides into one item of up to 32 bytes, or into one larger word."""
    cdef Dimension* last
    cdef Py_ssize_t nbytes
    loops.item = loops.word
    if loops.nd == 0:
        return
    last = &loops.dimensions[loops.nd - 1]
    if last.step != loops.word or last.other != loops.word:
        return
    nbytes = last.length * loops.word
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


cdef int check_alike(Descriptor target, Descriptor source) except -1:
    """Raise ValueError if the arrays differ in shape, item size or packing, so that a copy would exceed one of them."""
    if (not same_shape(target, source) or target.itemsize_ != source.itemsize_
            or (target.flags_ ^ source.flags_) & PACKED or (target.flags_ & PACKED and target.nbytes != source.nbytes)):
        raise ValueError("the arrays do not match; accepted: the same shape and item size")
    return 0


def copy(Descriptor target, Descriptor source):
    """Copy a host-readable array to another one. Both may have any layout. Signals are not handled during the copy.

    Parameters
    ----------
    target, source : USMArray
        Arrays of the same shape and item size. They must not overlap. `target` must be writable, and its elements must not
        overlap each other.
    """
    check_alike(target, source)
    if not target.flags_ & WRITEABLE or not host_readable(target) or not host_readable(source):
        raise ValueError("the arrays cannot be copied; accepted: memory that the host can access, and a writable target")
    target, source = as_host(target), as_host(source)
    if target.flags_ & PACKED:
        memcpy(target.data_, source.data_, target.nbytes)
    elif size_of(target) * target.itemsize_ != 0:
        with nogil:
            put(target.data_, target.byte_strides_, source)


def view_stage(Descriptor array, MemoryBlock memory):
    """Return a host array on `memory` with the type, shape and strides of `array`. The lowest element is the first one."""
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    if not 0 <= high - low <= memory.nbytes_:
        raise ValueError(f"view_stage: the memory has {memory.nbytes_} bytes; accepted: {high - low} or more")
    cdef Descriptor view = array_for_copy(array, memory, "C")
    memcpy(view.byte_strides_, array.byte_strides_, array.nd_ * sizeof(Py_ssize_t))
    view.data_ = memory.address_ - low
    seal(view)
    return view


def new_stage(Py_ssize_t nbytes):
    """Return new host memory."""
    return allocate(nbytes, BOUNDARY)


cdef void put(char* target, const Py_ssize_t* steps, Descriptor source) noexcept nogil:
    """Copy the host array `source` to the memory at `target`.

    `target` is the address of the first target element, and `steps` contains the target's strides in bytes. `source` must not
    be empty or packed.
    """
    cdef Loops loops
    begin(&loops, target, steps, source)
    widen(&loops)
    run(&loops)


cpdef bint share_bytes(Descriptor a, Descriptor b) noexcept nogil:
    """Return whether the address ranges of two arrays intersect."""
    cdef Py_ssize_t low, high, other_low, other_high
    extent(a, &low, &high)
    extent(b, &other_low, &other_high)
    return (low < high and other_low < other_high
            and a.data_ + low < b.data_ + other_high and b.data_ + other_low < a.data_ + high)


# ----------------------------------------------------------------------------------------------------------------------- gather

# Copies of the bytes that the elements of an array occupy: each byte once, and without gaps.
#
# Broadcast dimensions and overlapping windows are not expanded.


cdef void footprint(Descriptor a, Footprint* span) noexcept:
    """Compute the bytes that the elements of `a` occupy, including packed elements."""
    if a.flags_ & PACKED:
        span.low = span.levels = 0
        span.lengths[0] = span.nbytes = a.nbytes
        span.steps[0] = 1
    else:
        measure(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, span)


cdef void measure_reach(Descriptor a, Footprint* span) noexcept:
    """Compute the bytes from the lowest to the highest element of `a`, gaps included."""
    cdef Py_ssize_t high
    extent(a, &span.low, &high)
    span.levels = 0
    span.lengths[0] = span.nbytes = high - span.low
    span.steps[0] = 1
    if not a.flags_ & PACKED:       # packed elements have C order, and no strides in bytes
        memcpy(span.strides, a.byte_strides_, a.nd_ * sizeof(Py_ssize_t))


def footprint_bytes(Descriptor array):
    """Return the number of bytes that the elements of `array` occupy. Shared bytes count once."""
    cdef Footprint span
    footprint(array, &span)
    return span.nbytes


cdef Descriptor pieces(Descriptor array, const Footprint* span, bint as_bytes):
    """Return a view of exactly the bytes of `array` in `span`.

    The last dimension of the view is a run of contiguous bytes. Each dimension before it repeats this run with a fixed
    stride (a level in `_core/footprint.pxd`); the largest stride comes first. The element type of the view is ``uint8`` if
    `as_bytes` is true, or if the size of the run is not a multiple of the item size, else that of `array`.
    """
    cdef Descriptor view = view_of(array, span.levels + 1)
    cdef int k
    view.flags_ &= ~PACKED
    if as_bytes or array.flags_ & PACKED or array.itemsize_ == 0 or span.lengths[0] % array.itemsize_ != 0:
        view.dtype_ = None
        set_type(view, dtypes.by_format(c"B"))
    view.data_ = array.data_ + span.low
    for k in range(span.levels + 1):
        view.shape_[span.levels - k] = span.lengths[k]
        view.byte_strides_[span.levels - k] = span.steps[k]
    view.shape_[span.levels] //= view.itemsize_
    view.byte_strides_[span.levels] = view.itemsize_
    seal(view)
    return view


def emit_reach(Descriptor array):
    """Return the bytes from the lowest to the highest address of `array` as a 1-d ndarray that keeps `array` alive.

    The array must be in host memory.
    """
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    return emit_run(array, array.data_ + low, high - low, array)


def gather(Descriptor array, copy, bint padded=False):
    """Copy the bytes that the elements of `array` occupy, and return an array of the same shape over this copy.

    Parameters
    ----------
    array : USMArray
    copy : callable
        Function that copies its argument, the `pieces` of `array`, to a new C-contiguous array in any memory.
    padded : bool
        Whether to copy the bytes between the elements too. `copy` then receives a 1-d array of bytes, and returns an array
        whose address has the same remainder modulo the alignment of the rows. The result has the strides of `array`.

    Returns
    -------
    USMArray
        Array with the element type, shape, labels and access flags of `array`, and the same order and signs of the strides.
    """
    cdef Footprint span
    if padded:
        measure_reach(array, &span)
    else:
        footprint(array, &span)
    cdef Descriptor wanted = pieces(array, &span, padded)
    made = copy(wanted)
    if not isinstance(made, Descriptor) or made.nbytes != wanted.nbytes or not (<Descriptor> made).flags_ & C_CONTIGUOUS:
        raise TypeError(f"gather: copy returned {show(made)}; accepted: a C-contiguous USMArray of {wanted.nbytes} bytes")
    cdef Descriptor result = view_as_model(<Descriptor> made, array, &span)
    cdef MemoryBlock block, model
    result.flags_ |= COPIED
    labels = labels_of(array)
    if padded:
        block, model = block_of(result), block_of(array)
        block.row_, block.row_step_, block.boundary_ = model.row_, model.row_step_, model.boundary_
    elif labels is not None:
        labels = labels.forget_alignment()
    set_labels(result, labels)
    return result


def row_boundary(Descriptor array):
    """Return the alignment in bytes that was requested for the rows of `array`.

    Return 0 if the array was allocated without `alignment`, or if the view does not consist of complete rows.
    """
    cdef Footprint span
    if array.block_ is None or not array.block_.row_ or array.flags_ & PACKED or size_of(array) == 0:
        return 0
    footprint(array, &span)
    if span.levels == 0 or (
        span.levels == 1 and span.lengths[0] == array.block_.row_ and span.steps[1] == array.block_.row_step_
    ):
        return array.block_.boundary_
    return 0


cdef Descriptor view_as_model(Descriptor bytes_, Descriptor model, const Footprint* span):
    """Return an array with the element type, shape and access flags of `model` over `bytes_`, a copy of the bytes in `span`."""
    cdef Descriptor a = view_of(bytes_, model.nd_)
    cdef int k
    a.typenum_ = model.typenum_
    a.itemsize_ = model.itemsize_
    a.alignment_ = model.alignment_
    a.dl_dtype_ = model.dl_dtype_
    a.dtype_ = model.dtype_
    a.flags_ &= ~(WRITEABLE | IMMUTABLE | NOTSWAPPED)
    a.flags_ |= model.flags_ & (WRITEABLE | IMMUTABLE | NOTSWAPPED | PACKED)
    memcpy(a.shape_, model.shape_, model.nd_ * sizeof(Py_ssize_t))
    if model.flags_ & PACKED:
        memcpy(a.strides_, model.strides_, model.nd_ * sizeof(Py_ssize_t))
    else:
        if span.nbytes == 0:
            layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_)
        else:
            memcpy(a.byte_strides_, span.strides, model.nd_ * sizeof(Py_ssize_t))
        for k in range(model.nd_):
            if span.strides[k] < 0:
                a.data_ -= span.strides[k] * (model.shape_[k] - 1)
    seal(a)
    return a


# -------------------------------------------------------------------------------------------------------------------- check out

# Checks of the source and the target of a copy: validation of `out`, broadcasting, overlap.


cdef int _FIRST_OWN = FIRST_OWN_TYPENUM


def check_out(Descriptor array, Descriptor out, str call):
    """Check that `array` can be copied to `out`. Messages begin with `call`.

    Raises
    ------
    ValueError
        `out` differs in shape or element type, is read-only, or has overlapping elements.
    """
    if not same_shape(out, array) or not have_one_type(out, array):
        raise ValueError(f"{call}: out is {out!r}; accepted: the shape and the element type of {array!r}")
    check_writable(out, f"{call}: out")


def check_writable(Descriptor out, str subject):
    """Raise ValueError if `out` is read-only, or if its elements overlap each other. Messages begin with `subject`."""
    if not out.flags_ & WRITEABLE:
        raise ValueError(f"{subject} is read-only; accepted: a writable array")
    if not out.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS) and overlaps_itself(out):
        raise ValueError(
            f"{subject} has byte strides {out.byte_strides} for shape {out.shape}, so its elements overlap; "
            "accepted: an array whose elements do not overlap"
        )


def broadcast(Descriptor array, Descriptor out):
    """Broadcast `array` to the shape of `out` according to NumPy's rules for assignment.

    Missing dimensions and dimensions of length 1 are repeated with the stride 0. Leading dimensions of length 1 that
    `out` does not have are dropped.

    Raises
    ------
    ValueError
        The shape of `array` cannot be broadcast to the shape of `out`.
    """
    cdef int nd = out.nd_, surplus = max(array.nd_ - nd, 0), missing = max(nd - array.nd_, 0), k, own
    cdef Descriptor view
    cdef Py_ssize_t length
    if same_shape(array, out):
        return array
    for k in range(surplus):
        if array.shape_[k] != 1:
            raise shape_error(array, out)
    if array.flags_ & PACKED:
        raise shape_error(array, out)      # packed elements do not have byte strides, so they cannot be repeated
    view = view_of(array, nd)
    set_labels(view, None)
    for k in range(nd):
        own = surplus + k - missing
        length = 1 if k < missing else array.shape_[own]
        view.shape_[k] = out.shape_[k]
        view.byte_strides_[k] = 0 if length == 1 else array.byte_strides_[own]
        if length != 1 and length != view.shape_[k]:
            raise shape_error(array, out)
    seal(view)
    return view


cdef object shape_error(Descriptor array, Descriptor out):
    return ValueError(f"could not broadcast input array from shape {shape_tuple(array)} into shape {shape_tuple(out)}")


cpdef bint have_one_type(Descriptor a, Descriptor b) except -1:
    """Return whether `a` and `b` have the same element type, including byte order, datetime units and fields."""
    if a.typenum_ != b.typenum_ or a.itemsize_ != b.itemsize_ or (a.flags_ ^ b.flags_) & PACKED:
        return False
    # The type number identifies arrayhub's own types (such as complex32) completely.
    return a.typenum_ >= _FIRST_OWN or get_dtype(a) == get_dtype(b)


cdef bint overlaps_itself(Descriptor array) noexcept:
    """Return whether elements may overlap: a stride is shorter than the extent of the dimensions with smaller strides.

    The result is also True for interleaved strides without an overlap. An exact test can take exponential time, and no
    library is known to create such strides.
    """
    cdef Dimension dimensions[layout.MAX_NDIM]
    cdef Py_ssize_t covered = array.itemsize_
    cdef char* lowest = array.data_
    cdef char* other = array.data_
    cdef int k, count = 0
    for k in range(array.nd_):
        count = insert(dimensions, count, Dimension(array.shape_[k], array.byte_strides_[k], 0), &lowest, &other)
    for k in reversed(range(count)):      # from the smallest stride on; strides of 0 come last
        if dimensions[k].step < covered:
            return True
        covered += dimensions[k].step * (dimensions[k].length - 1)
    return False
