"""The constructor of seed 000: a layout over new USM, over existing memory, or over host memory."""

import operator

import numpy as np

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    CONSTRUCTED,
    F_CONTIGUOUS,
    IMMUTABLE,
    PACKED,
    USM_DEVICE,
    USM_HOST,
    USM_SHARED,
    WRITEABLE,
    Descriptor,
    block_of,
    reserve,
    seal,
    set_dtype,
)
from arrayhub._core.device cimport DLDevice, kDLCPU
from arrayhub._core.memory cimport MemoryBlock, allocate
from arrayhub.adapters cimport buffer as buffer_room
from arrayhub.runtimes cimport sycl

from arrayhub._core.errors import show

cdef dict _USM_TYPES = {"device": USM_DEVICE, "shared": USM_SHARED, "host": USM_HOST}
_OPTIONS = frozenset(("queue", "alignment", "copy"))
cdef enum:
    HOST_ALIGNMENT = 64     # bytes: jax takes a host buffer without a copy only from such a boundary


cdef int fill_new(Descriptor a, object shape, object dtype, object buffer, object strides, object offset,
                  object order, object buffer_ctor_kwargs) except -1:
    """Fill a fresh array as seed 000's constructor says; see USMArray."""
    cdef Py_ssize_t low, high, start
    cdef int k
    lengths = as_lengths(shape)
    options = dict(buffer_ctor_kwargs)
    if not options.keys() <= _OPTIONS:
        raise TypeError(f"USMArray: buffer_ctor_kwargs has {sorted(options.keys() - _OPTIONS)}; accepted: {sorted(_OPTIONS)}")
    if order not in ("C", "F"):
        raise ValueError(f"USMArray: order is {show(order)}; accepted: 'C' or 'F'")
    reserve(a, <int> len(lengths))
    a.protocol_ = CONSTRUCTED
    set_dtype(a, np.dtype(dtype))
    for k in range(a.nd_):
        a.shape_[k] = lengths[k]
    fill_strides(a, strides, order == "F")
    start = checked_start(a, offset, isinstance(buffer, str), &low, &high)
    take_memory(a, buffer, options, start + high)
    check_inside(a, start, low, high)
    cdef MemoryBlock block = block_of(a)
    a.data_ = block.address_ + start
    seal(a)
    return 0


cdef list as_lengths(object shape):
    """The lengths of a shape that may be a single integer."""
    lengths = [as_integer(length, "shape") for length in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    if len(lengths) > layout.MAX_NDIM:
        raise ValueError(f"USMArray: shape has {len(lengths)} dimensions; accepted: at most {layout.MAX_NDIM}")
    if any(length < 0 for length in lengths):
        raise ValueError(f"USMArray: shape is {show(shape)}; accepted: lengths of zero or more")
    return lengths


cdef Py_ssize_t as_integer(object value, str name) except? -1:
    if isinstance(value, bool):
        raise TypeError(f"USMArray: {name} has the bool {value}; accepted: integers")
    try:
        return operator.index(value)
    except OverflowError:
        raise ValueError(f"USMArray: {name} has {value}; accepted: integers below 2**63") from None


cdef int fill_strides(Descriptor a, object strides, bint fortran) except -1:
    """Byte strides from strides in elements, or compact ones."""
    cdef bint overflow = False
    cdef int k
    if strides is None:
        overflow = layout.fill_strides(a.nd_, a.shape_, a.itemsize_, fortran, a.byte_strides_)
    else:
        strides = strides if isinstance(strides, (tuple, list)) else (strides,)
        if len(strides) != a.nd_:
            raise ValueError(f"USMArray: strides has {len(strides)} entries, shape has {a.nd_}; accepted: as many")
        for k in range(a.nd_):
            overflow |= layout.checked_mul(as_integer(strides[k], "strides"), a.itemsize_, &a.byte_strides_[k])
    if overflow or layout.count(a.nd_, a.shape_) < 0:
        raise ValueError(f"USMArray: shape {a.shape} with strides {show(strides)} is larger than the address space")
    return 0


cdef Py_ssize_t checked_start(Descriptor a, object offset, bint is_new, Py_ssize_t* low, Py_ssize_t* high) except -1:
    """Bytes from the start of the memory to element zero; computed for new memory with negative strides."""
    cdef Py_ssize_t start, end
    if layout.reach(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, low, high):
        raise ValueError(f"USMArray: shape {a.shape} with byte strides {a.byte_strides} is larger than the address space")
    if layout.checked_mul(as_integer(offset, "offset"), a.itemsize_, &start) or layout.checked_add(start, high[0], &end):
        raise ValueError(f"USMArray: offset is {offset}; accepted: one whose bytes stay below 2**63")
    if is_new and start == 0:
        start = -low[0]
    if start + low[0] < 0:
        raise ValueError(
            f"USMArray: offset is {offset}, but strides reach {-low[0] // a.itemsize_} elements before element zero;"
            f" accepted: at least {-low[0] // a.itemsize_}"
        )
    return start


cdef int check_inside(Descriptor a, Py_ssize_t start, Py_ssize_t low, Py_ssize_t high) except -1:
    """Refuse a layout that leaves its memory: the seed leaves that to the user, who then gets a crash."""
    cdef Py_ssize_t nbytes = block_of(a).nbytes_
    if high > low and nbytes >= 0 and start + high > nbytes:
        raise ValueError(
            f"USMArray: shape {a.shape}, strides and offset reach {start + high} bytes into memory of {nbytes} bytes;"
            " accepted: a layout that stays inside"
        )
    return 0


cdef int take_memory(Descriptor a, object buffer, dict options, Py_ssize_t nbytes) except -1:
    """Give `a` the memory that `buffer` names or is."""
    if isinstance(buffer, str):
        if buffer == "cpu":
            return take_host(a, options, nbytes)
        if buffer in _USM_TYPES:
            return take_usm(a, buffer, options, nbytes)
        raise ValueError(
            f"USMArray: buffer is {buffer!r}; accepted: 'device', 'shared', 'host' (USM), 'cpu', a dpctl.memory object, a"
            " USMArray, or an object with a writable buffer"
        )
    if isinstance(buffer, Descriptor):
        return share_block(a, buffer, options)
    if sycl.is_memory(buffer):
        return take_memory_object(a, buffer, options)
    return take_buffer(a, buffer, options)


cdef int take_host(Descriptor a, dict options, Py_ssize_t nbytes) except -1:
    alignment = options.get("alignment") or HOST_ALIGNMENT
    if alignment & (alignment - 1) or alignment < 0:
        raise ValueError(f"USMArray: alignment is {alignment}; accepted: a power of two, in bytes")
    if options.get("queue") is not None:
        raise ValueError("USMArray: a queue is of no use for buffer='cpu'; accepted: buffer='host', 'shared' or 'device'")
    cdef MemoryBlock block = allocate(nbytes, max(<Py_ssize_t> alignment, HOST_ALIGNMENT))
    a.block_ = block
    a.base_ = block
    a.device_ = DLDevice(kDLCPU, 0)
    a.flags_ |= WRITEABLE
    return 0


cdef int take_usm(Descriptor a, str kind, dict options, Py_ssize_t nbytes) except -1:
    check_usm_type(a)
    # dpctl cannot allocate nothing, so an empty array gets one byte that it never shows.
    cdef MemoryBlock block = sycl.block_of_memory(sycl.new_memory(kind, max(nbytes, 1), options))
    block.nbytes_ = nbytes
    sycl.place(a, block, _USM_TYPES[kind])
    a.flags_ |= WRITEABLE
    return 0


cdef int take_memory_object(Descriptor a, object memory, dict options) except -1:
    check_usm_type(a)
    if options.pop("copy", None):
        # Memory(x, copy=True) keeps x alive for ever, so the copy is made in two steps.
        fresh = type(memory)(memory.nbytes, **{"queue": memory.sycl_queue, **options})
        fresh.copy_from_device(memory)
        memory = fresh
    sycl.place(a, sycl.block_of_memory(memory), sycl.memory_usm_type(memory))
    a.flags_ |= WRITEABLE
    return 0


cdef int share_block(Descriptor a, Descriptor other, dict options) except -1:
    """Lay `a` over the whole memory block of another array, with the same access."""
    if options.get("copy"):
        raise ValueError("USMArray: copy=True with a USMArray as buffer; accepted: USMArray.copy() of it, as the buffer")
    if other.shape_ == NULL or other.flags_ & PACKED:
        raise ValueError("USMArray: buffer is an array without memory of whole bytes")
    if other.usm_type_:
        check_usm_type(a)
    a.block_ = block_of(other)
    a.base_ = other.base_
    a.device_ = other.device_
    a.usm_type_ = other.usm_type_
    a.stream_ = other.stream_
    a.producer_ = other.producer_
    a.flags_ |= other.flags_ & (WRITEABLE | IMMUTABLE)
    return 0


cdef int take_buffer(Descriptor a, object obj, dict options) except -1:
    """Lay `a` over the bytes that an object exports by the buffer protocol."""
    cdef Descriptor exported = buffer_room.parse(obj, None)
    if exported is None:
        raise TypeError(
            f"USMArray: buffer is {show(obj)}; accepted: 'device', 'shared', 'host', 'cpu', a dpctl.memory object, a USMArray,"
            " or an object with a writable buffer"
        )
    if not exported.flags_ & WRITEABLE:
        raise BufferError(f"USMArray: the buffer of {show(obj)} is read-only; accepted: a writable one, such as a bytearray")
    if not exported.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS):
        raise ValueError(f"USMArray: the buffer of {show(obj)} is not contiguous; accepted: one run of bytes")
    return share_block(a, exported, options)


cdef int check_usm_type(Descriptor a) except -1:
    """USM holds what SYCL has types for, which is what DLPack has numbers for."""
    if a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise TypeError(
            f"USMArray: dtype is {a.dtype_!r}; accepted on USM: bool, integers, floating point and complex types in native"
            " byte order"
        )
    return 0
