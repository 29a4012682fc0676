"""cupy: import from an array's attributes, and export through cupy's constructor.

Both paths are faster than cupy's protocols, and support bfloat16 and records. Importing this module does not import cupy.
`parse` receives cupy's arrays, so cupy is loaded already, and `emit` imports cupy.
"""

cimport cython
from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport (
    EXTERNAL,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    DLDevice,
    MemoryBlock,
    array_for_copy,
    extent,
    get_dtype,
    kDLCUDA,
    kDLCUDAHost,
    new_array,
    new_block,
    seal,
    set_dtype,
    shape_tuple,
    size_of,
    stride_tuple,
)
from arrayhub._core.runtime cimport device_name
from arrayhub._core.cpython.atomics cimport is_done, mark_done
from arrayhub.adapters cimport dlpack, interface_dict
from arrayhub.adapters.table cimport CUDA_DICT
from arrayhub.libraries.known cimport library
from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    PER_THREAD_STREAM,
    consumer_ready,
    device_at,
    has_device,
    is_cuda,
    locate,
)

from arrayhub._core.errors import NO_CUDA_DEVICE, Refusal, needed
from arrayhub.libraries.devices import is_hip

cdef int _found = 0                    # whether the first import has set the variables below
cdef object _current_stream = None     # cupy.cuda.get_current_stream
cdef bint _is_hip = False


cdef int _find_cupy() except -1:
    global _current_stream, _is_hip
    cupy = needed("cupy", "to create its arrays")
    hip = is_hip(cupy)
    current_stream = cupy.cuda.get_current_stream
    with cython.critical_section(cupy):
        if not is_done(&_found):
            _is_hip, _current_stream = hip, current_stream
            mark_done(&_found)
    return 0


# ----------------------------------------------------------------------------------------------------------- import


cdef Descriptor parse(object obj, object stream):
    """Import a ``cupy.ndarray``.

    cupy has queued the array's pending work on the current stream. Another stream may be current at the export, so the
    descriptor stores the stream and keeps its owner alive.
    """
    if not is_done(&_found):
        _find_cupy()
    if _is_hip:
        return dlpack.parse(obj, stream)
    memory = obj.data
    cdef tuple shape = obj.shape
    cdef tuple strides = obj.strides
    cdef Descriptor a = new_array(<int> len(shape))
    cdef int k
    a.protocol_ = CUDA_DICT
    a.base_ = obj
    a.flags_ |= WRITEABLE
    a.data_ = <char*> <size_t> memory.ptr
    for k in range(a.nd_):
        a.shape_[k] = shape[k]
        a.byte_strides_[k] = strides[k]
    set_dtype(a, obj.dtype)
    device = memory.device_id
    a.device_ = DLDevice(kDLCUDA, device)
    seal(a)
    locate(a, False)     # only the start is checked: cupy guarantees the extent of its arrays, as NumPy does
    set_stream(a, _current_stream(device))
    return a


cdef Descriptor parse_by_dict(object obj, object stream):
    """Import a ``cupy.ndarray`` through ``__cuda_array_interface__``.

    The dict is incomplete: the type string cannot represent every dtype, an empty array has the address 0 and no device,
    and the stream's owner is not kept alive. dtype, device and stream are therefore read from attributes.
    """
    if not is_done(&_found):
        _find_cupy()
    if _is_hip:
        return dlpack.parse(obj, stream)
    memory = obj.data
    interface = {**obj.__cuda_array_interface__, "data": (memory.ptr, False)}
    cdef Descriptor a = interface_dict.parse_cuda_array_as(interface, obj, obj.dtype)
    if size_of(a) == 0:
        a.device_.device_id = memory.device_id
    set_stream(a, _current_stream(memory.device_id))
    return a


cdef int set_stream(Descriptor a, object stream) except -1:
    """Set a cupy stream as the producer's stream."""
    cdef intptr_t handle = stream.ptr
    a.stream_ = <void*> (handle if handle != 0 else LEGACY_STREAM)
    if handle > PER_THREAD_STREAM:
        a.producer_ = stream
    return 0


# ----------------------------------------------------------------------------------------------------------- export


cpdef object emit(Descriptor a, bint allow_readonly=False):
    """Export `a` as a ``cupy.ndarray`` that keeps the memory alive. cupy's current stream waits for the producer's stream.

    With `allow_readonly`, also export read-only memory, although cupy does not prevent writes to it.
    """
    if a is None:
        raise TypeError("cupy: array is None; accepted: USMArray")
    check_memory(a, allow_readonly)
    check_elements(a)
    cupy = needed("cupy", "to create its arrays")
    cdef Py_ssize_t low, high
    extent(a, &low, &high)
    cdef int device = cupy.cuda.runtime.getDevice() if a.device_.device_type == kDLCUDAHost else a.device_.device_id
    consumer_ready(a, cupy.cuda.get_current_stream(device))
    memory = cupy.cuda.UnownedMemory(<size_t> (a.data_ + low), high - low, a, device)
    dtype = get_dtype(a)
    try:
        return cupy.ndarray(shape_tuple(a), dtype, cupy.cuda.MemoryPointer(memory, -low), stride_tuple(a))
    except ValueError as error:
        raise Refusal("cupy", f"dtype {dtype!r} is not supported ({error})") from error


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that cupy cannot share: memory that CUDA kernels cannot access, and read-only memory."""
    if not is_cuda(a.device_.device_type):
        check_device()
        raise Refusal("cupy", f"the memory is on {device_name(a)}, which CUDA cannot read")
    if not allow_readonly and not a.flags_ & WRITEABLE:
        raise Refusal("cupy", "the memory is read-only, and cupy does not have read-only arrays",
                      "writable memory, or allow_readonly=True if nothing writes to the array")
    if number_of(a) and size_of(a) != 0 and (a.strides_ == NULL or <size_t> a.data_ % <size_t> a.itemsize_ != 0):
        raise Refusal("cupy", f"elements are not aligned (address {<size_t> a.data_:#x}, item size {a.itemsize_}), and CUDA"
                              " kernels cannot read them")
    return 0 if has_device() else check_device()


cdef int check_device() except -1:
    """Raise ImportError without cupy, and Refusal on a machine without a device for it."""
    cupy = needed("cupy", "to create its arrays")      # first, because its ImportError is more helpful
    if not has_device() and not is_hip(cupy):
        raise Refusal("cupy", NO_CUDA_DEVICE)
    return 0


cdef bint number_of(Descriptor a) noexcept:
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    return row.kind in (c"b", c"i", c"u", c"f", c"c", c"E") and row.dlpack.code != dtypes.NO_DLPACK


cdef int check_elements(Descriptor a) except -1:
    """Reject element types that cupy does not have."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if a.flags_ & PACKED or not a.flags_ & NOTSWAPPED or not (number_of(a) or is_record(a)):
        raise Refusal("cupy", f"{row.name.decode()} elements"
                              f" ({'packed' if a.flags_ & PACKED else repr(get_dtype(a))}) are not supported")
    return 0


cdef bint is_record(Descriptor a) except -1:
    return dtypes.by_typenum(a.typenum_).kind == c"V" and get_dtype(a).names is not None


def copy_array(array, /):
    """Return a copy of a cupy array on its device; ``array.copy()`` copies to the current device."""
    device = array.device
    device.__enter__()      # no `with`, which requires a traceback that a MemoryError may lack
    try:
        return array.copy()
    finally:
        device.__exit__(None, None, None)


# --------------------------------------------------------------------------------------- for the transfer engine


def on_memory(Descriptor model, memory, order):
    """Return a writable array with the type and shape of `model` on new CUDA memory, in `order` as in `empty_like`.

    `memory` is a MemoryPointer or a PinnedMemoryPointer of cupy with at least ``model.nbytes`` bytes. For device memory, cupy's
    current stream becomes the producer's stream.
    """
    if not is_done(&_found):
        _find_cupy()
    cdef size_t address = memory.ptr
    cdef bint pinned = not hasattr(memory, "device_id")
    cdef DLDevice found, device = DLDevice(kDLCUDAHost, 0) if pinned else DLDevice(kDLCUDA, memory.device_id)
    if not pinned and has_device():      # ask about the memory, not about the elements, of which there may be none
        found = device_at(address)
        if found.device_type != 0:
            device = found
    cdef MemoryBlock block = new_block(EXTERNAL, memory, <char*> address, model.nbytes, device)
    cdef Descriptor a = array_for_copy(model, block, order)
    if not pinned:
        set_stream(a, _current_stream(memory.device_id))
    return a


cdef object export(Descriptor a, bint copied, bint allow_readonly):
    return emit(a, allow_readonly)


library("cupy").set_importer(0, parse, parse_by_dict)
library("cupy").set_exporter(export, check_memory, check_elements, check_device)
