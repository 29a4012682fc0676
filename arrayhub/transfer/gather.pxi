"""Copies of the bytes that the elements of an array occupy: each byte once, and without gaps.

Broadcast dimensions and overlapping windows are not expanded.
"""

from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    COPIED,
    IMMUTABLE,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    MemoryBlock,
    block_of,
    extent,
    labels_of,
    refuse_packed,
    seal,
    set_labels,
    set_type,
    size_of,
    view_of,
)
from arrayhub._core.footprint cimport Footprint, measure
from arrayhub.libraries.numpy cimport emit_run

from arrayhub._core.errors import show


cdef void footprint(Descriptor a, Footprint* span) noexcept:
    """Compute the bytes that the elements of `a` occupy, including packed elements."""
    if a.flags_ & PACKED:
        span.low = span.levels = 0
        span.lengths[0] = span.nbytes = a.nbytes
        span.steps[0] = 1
    else:
        measure(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, span)


def footprint_bytes(Descriptor array):
    """Return the number of bytes that the elements of `array` occupy. Shared bytes count once."""
    cdef Footprint span
    footprint(array, &span)
    return span.nbytes


def pieces(Descriptor array):
    """Return a view of exactly the bytes that the elements of `array` occupy.

    The last dimension of the view is a run of contiguous bytes. Each dimension before it repeats this run with a fixed
    stride (a level in `_core/footprint.pxd`); the largest stride comes first. The element type of the view is that of
    `array` if the size of the run is a multiple of the item size, else ``uint8``.
    """
    cdef Footprint span
    footprint(array, &span)
    cdef Descriptor view = view_of(array, span.levels + 1)
    cdef int k
    view.flags_ &= ~PACKED
    if array.flags_ & PACKED or array.itemsize_ == 0 or span.lengths[0] % array.itemsize_ != 0:
        count_bytes(view)
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


def gather(Descriptor array, copy):
    """Copy the bytes that the elements of `array` occupy, and return an array of the same shape over this copy.

    Parameters
    ----------
    array : USMArray
    copy : callable
        Function that copies its argument, the `pieces` of `array`, to a new C-contiguous array in any memory.

    Returns
    -------
    USMArray
        Array with the element type, shape, labels and access flags of `array`, and the same order and signs of the strides.
    """
    cdef Footprint span
    cdef Descriptor wanted = pieces(array)
    cdef Descriptor fresh = compact(copy(wanted), wanted.nbytes, "gathered")
    footprint(array, &span)
    cdef Descriptor result = view_as_model(fresh, array, &span)
    result.flags_ |= COPIED
    if labels_of(array) is not None:
        set_labels(result, labels_of(array).forget_alignment())
    return result


cdef Descriptor compact(object made, Py_ssize_t nbytes, str caller):
    """Return `made`, the result of a caller's copy function, after validating it."""
    if not isinstance(made, Descriptor) or made.nbytes != nbytes or not (<Descriptor> made).flags_ & C_CONTIGUOUS:
        raise TypeError(f"{caller}: copy returned {show(made)}; accepted: a C-contiguous USMArray of {nbytes} bytes")
    return <Descriptor> made


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


def with_padding(Descriptor array, copy):
    """Copy the bytes of `array` including padding, and return an array with the same strides and labels.

    Parameters
    ----------
    array : USMArray
    copy : callable
        Function that copies its argument, a 1-d array of bytes, to a new array whose address has the same remainder
        modulo the alignment.
    """
    cdef Py_ssize_t low, high
    refuse_packed(array, "with_padding")
    extent(array, &low, &high)
    cdef Descriptor wanted = view_of(array, 1)
    count_bytes(wanted)
    wanted.data_ = array.data_ + low
    wanted.shape_[0] = high - low
    wanted.byte_strides_[0] = 1
    seal(wanted)
    cdef Descriptor fresh = compact(copy(wanted), high - low, "with_padding")
    cdef Descriptor result = as_type_of(view_of(fresh, array.nd_), array)
    cdef MemoryBlock block = block_of(result), model = block_of(array)
    result.data_ = fresh.data_ - low
    memcpy(result.byte_strides_, array.byte_strides_, array.nd_ * sizeof(Py_ssize_t))
    seal(result)
    result.flags_ |= COPIED
    block.row_, block.row_step_, block.boundary_ = model.row_, model.row_step_, model.boundary_
    set_labels(result, labels_of(array))
    return result


cdef void count_bytes(Descriptor a) noexcept:
    """Set the element type of `a` to ``uint8``."""
    a.dtype_ = None
    set_type(a, dtypes.by_format(c"B"))


cdef Descriptor as_type_of(Descriptor a, Descriptor model):
    """Set the element type, shape and access flags of `a` to those of `model`, and return `a`."""
    a.typenum_ = model.typenum_
    a.itemsize_ = model.itemsize_
    a.alignment_ = model.alignment_
    a.dl_dtype_ = model.dl_dtype_
    a.dtype_ = model.dtype_
    a.flags_ &= ~(WRITEABLE | IMMUTABLE | NOTSWAPPED)
    a.flags_ |= model.flags_ & (WRITEABLE | IMMUTABLE | NOTSWAPPED | PACKED)
    memcpy(a.shape_, model.shape_, model.nd_ * sizeof(Py_ssize_t))
    return a


cdef Descriptor view_as_model(Descriptor bytes_, Descriptor model, const Footprint* span):
    """Return an array with the element type, shape and access flags of `model` over `bytes_`, a copy of the bytes in `span`."""
    cdef Descriptor a = as_type_of(view_of(bytes_, model.nd_), model)
    cdef int k
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
