"""New host arrays with the type and shape of existing arrays."""

from arrayhub._core cimport layout


def empty_like(Descriptor array, object order="C"):
    """Return a new writable host array with the element type, shape and labels of `array`, contiguous in `order` (C, F or K).

    The label `aligned_index` is not kept. The memory is aligned to 64 bytes and not initialized. For packed elements, `order`
    is ignored, and the result is in C order.
    """
    cdef Descriptor fresh = layout_for_copy(array)
    cdef Py_ssize_t nbytes = array.nbytes
    cdef MemoryBlock block = allocate(nbytes, BOUNDARY)
    fresh.block_ = block
    fresh.base_ = block
    fresh.data_ = block.address_
    fresh.device_ = block.device_
    fresh.usm_type_ = NOT_USM
    fresh.stream_ = NULL
    fresh.producer_ = None
    fresh.flags_ &= ~(IMMUTABLE | OTHER_CONTEXT)
    fresh.flags_ |= WRITEABLE | COPIED
    fresh.protocol_ = CONSTRUCTED
    if not array.flags_ & PACKED:
        compact(fresh, array, order)
        seal(fresh)
    return fresh


def as_copy(Descriptor array):
    """Set the flag COPIED of a new array, and return the array. The caller copies the elements."""
    array.flags_ |= COPIED
    return array


def typed_like(Descriptor array, dtype):
    """Return a new C-contiguous host array with the shape and labels of `array` and the element type `dtype`."""
    cdef Descriptor model = new_array(array.nd_)
    cdef int k
    model.device_ = DLDevice(kDLCPU, 0)
    set_dtype(model, dtype)
    for k in range(array.nd_):
        model.shape_[k] = array.shape_[k]
        model.strides_[k] = model.byte_strides_[k] = 0     # initialized because `empty_like` copies all fields
    set_labels(model, labels_of(array))
    return empty_like(model, "C")


cdef int compact(Descriptor fresh, Descriptor array, object order) except -1:
    """Set the byte strides of `fresh` for contiguous memory in `order`. "K" keeps the order of the strides of `array`."""
    cdef Py_ssize_t step = array.itemsize_
    cdef int k
    fresh.strides_ = fresh.shape_ + fresh.nd_     # NULL so far if array.strides_ is NULL; `seal` sets the strides
    if order != "K":
        layout.fill_strides(fresh.nd_, fresh.shape_, fresh.itemsize_, order == "F", fresh.byte_strides_)
        return 0
    # Dimensions with equal strides, such as broadcast dimensions (stride 0), keep C order.
    for k in reversed(slowest_first(array)):
        fresh.byte_strides_[k] = step
        step *= max(fresh.shape_[k], 1)
    return 0


cpdef list slowest_first(Descriptor array):
    """Return the dimensions in the order of decreasing absolute stride. Broadcast dimensions (stride 0) are last.

    Return None for packed elements.
    """
    cdef int k
    if array.flags_ & PACKED:
        return None
    return [axis for _, axis in sorted([(-abs(array.byte_strides_[k]), k) for k in range(array.nd_)])]
