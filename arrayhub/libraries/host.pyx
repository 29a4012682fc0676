"""Host memory: what the host can read shown as such (shared and host USM, CUDA's pinned and managed memory), and fresh."""

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport (
    CONSTRUCTED,
    COPIED,
    IMMUTABLE,
    NOT_USM,
    OTHER_CONTEXT,
    PACKED,
    WRITEABLE,
    Descriptor,
    host_readable,
    labels_of,
    layout_for_copy,
    new_array,
    same_layout,
    seal,
    set_dtype,
    set_labels,
)
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice, kDLCPU
from arrayhub._core.runtime cimport device_of, host_ready, order_consumer, place_of
from arrayhub._core.memory cimport MemoryBlock, allocate
from arrayhub.adapters cimport dlpack
from arrayhub.libraries cimport numpy as numpy_library


cdef enum:
    HOST_ALIGNMENT = 64     # bytes: jax takes a host buffer without a copy only from such a boundary


cdef Descriptor as_host(Descriptor a):
    """The same memory under the device ``cpu``, after the wait that makes it safe to read; `a` must be host-readable."""
    if a.device_.device_type == kDLCPU:
        return a
    host_ready(a)
    cdef Descriptor view = same_layout(a)
    view.device_ = DLDevice(kDLCPU, 0)
    view.usm_type_ = NOT_USM
    view.flags_ &= ~OTHER_CONTEXT     # of no concern to who reads it as host memory
    view.stream_ = NULL
    if view.block_.device_.device_id != UNRESOLVED_ID:     # else the queue tells, once somebody asks for x.memory.device
        view.producer_ = None
    return view


cdef Descriptor for_host_library(Descriptor a, str library, int other_device):
    """`a` as a library takes it that knows host memory and one device type besides (0: none).

    Raises
    ------
    BufferError
        The memory is on a device that the library does not know.
    """
    if host_readable(a):
        return as_host(a)
    if a.device_.device_type == other_device:
        return a
    raise BufferError(
        f"{library}: the memory is on {place_of(a)}, which"
        f" {library} cannot read; call arrayhub.to_host(x), or pass copy=True"
    )


cdef class LegacyView:
    """An array as a producer for libraries that read legacy capsules only and never write: their capsules cannot say
    read-only, so it is left out. Host-readable memory is shown as host memory."""
    cdef Descriptor array

    def __cinit__(self, Descriptor array not None):
        self.array = as_host(array) if host_readable(array) else array

    def __dlpack__(self, *, stream=None, **ignored):
        if stream is not None:
            order_consumer(self.array, stream)
        return dlpack.emit_legacy(self.array, True)

    def __dlpack_device__(self):
        device = device_of(self.array)
        return (device.device_type, device.device_id)


def host_view(Descriptor array not None):
    """Return `array` as plain host memory, once the host may read it; BufferError where it cannot."""
    return for_host_library(array, "the host", 0)


def is_host_readable(Descriptor array not None):
    """Return whether a host thread may read the memory where it lies."""
    return host_readable(array)


def is_packed(Descriptor array not None):
    """Return whether elements of less than a byte share bytes; such arrays are compact, and have no byte strides."""
    return bool(array.flags_ & PACKED)


def empty_like(Descriptor array not None, object order="C"):
    """Return a fresh writable host array with the type and shape of `array`, compact in `order` (C, F or K), starting
    on a 64-byte boundary."""
    cdef Descriptor fresh = layout_for_copy(array)
    cdef Py_ssize_t nbytes = array.nbytes
    cdef MemoryBlock block = allocate(nbytes, HOST_ALIGNMENT)
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
        fresh.strides_ = fresh.shape_ + fresh.nd_     # NULL where the array's are no whole number of elements
        compact(fresh, array, order)
        seal(fresh)
    return fresh


def as_copy(Descriptor array not None):
    """Return a fresh `array` that says to be a copy, because the elements of another are in it."""
    array.flags_ |= COPIED
    return array


def typed_like(Descriptor array not None, dtype):
    """Return a fresh C-contiguous host array with the shape of `array` and another element type."""
    cdef Descriptor model = new_array(array.nd_)
    cdef int k
    model.device_ = DLDevice(kDLCPU, 0)
    set_dtype(model, dtype)
    for k in range(array.nd_):
        model.shape_[k] = array.shape_[k]
        model.strides_[k] = model.byte_strides_[k] = 0     # read when the fields are copied, though never used
    set_labels(model, labels_of(array))
    return empty_like(model, "C")


def ndarray(Descriptor array not None):
    """Return host-readable memory as an ndarray of its own element type, which keeps it alive."""
    return numpy_library.emit(as_host(array))


cdef int compact(Descriptor fresh, Descriptor array, object order) except -1:
    """Compact byte strides for `fresh`: C order, Fortran order, or the order of `array`'s own strides."""
    cdef Py_ssize_t step = array.itemsize_
    cdef int k
    if order != "K":
        layout.fill_strides(fresh.nd_, fresh.shape_, fresh.itemsize_, order == "F", fresh.byte_strides_)
        return 0
    strides = [abs(array.byte_strides_[k]) for k in range(array.nd_)]
    # Ties, such as the zeros of a broadcast, keep C order among themselves: the last dimension is the fastest.
    for k in sorted(range(array.nd_), key=lambda axis: (strides[axis], -axis)):
        fresh.byte_strides_[k] = step
        step *= max(fresh.shape_[k], 1)
    return 0


def raw(Descriptor array not None, writable=False):
    """Return host-readable memory as an ndarray of opaque items, for copies that must not interpret the elements.

    Packed elements come as one run of bytes.
    """
    cdef Descriptor view = as_host(array)
    if writable and not array.flags_ & WRITEABLE:
        raise ValueError("out: the array is read-only; accepted: a writable one")
    return numpy_library.emit_raw(view)
