"""Import and export through DLPack: legacy capsules, versioned capsules, and the C exchange table.

Sources: the DLPack 1.3 specification, and the page on data interchange of the array API standard.
"""

import operator

from cpython.exc cimport PyErr_Occurred
from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_New,
    PyCapsule_SetDestructor,
    PyCapsule_SetName,
)
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, intptr_t, uint64_t
from libc.string cimport memcpy, strcmp

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    BOUNDARY,
    C_CONTIGUOUS,
    CONSTRUCTED,
    COPIED,
    DLPACK,
    OTHER_CONTEXT,
    PACKED,
    UNRESOLVED_ID,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    Release,
    allocate,
    bare_array,
    describe_release,
    extent,
    get_dtype,
    hold_resource,
    is_bool,
    kDLCPU,
    kDLCUDA,
    kDLCUDAManaged,
    kDLOneAPI,
    kDLROCM,
    reserve,
    seal,
    set_type,
    stride_tuple,
    type_is_host,
)
from arrayhub._core.cpython.finalizing cimport is_finalizing
from arrayhub._core.runtime cimport Runtime, adopt, device_of, host_ready, order_consumer, runtime_of
from arrayhub._core.cpython.exceptions cimport drop_reference, put_aside, put_back, raise_on, take
from arrayhub.adapters.dlpack_abi cimport (
    DL_IS_COPIED,
    DL_READ_ONLY,
    DL_SUBBYTE_PADDED,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    PADDED_SINCE,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
    DLPackVersion,
    DLTensor,
    DLTensorFromPyObject,
    ManagedTensorFromPyObject,
    ManagedTensorToPyObject,
)
from arrayhub.adapters.table cimport DLPACK_PROTOCOL
from arrayhub.adapters.type_cache cimport (
    BORROWS,
    EXPORTS,
    LEGACY_IS_WRITABLE,
    NO_STREAM_IS_NONE,
    HAS_DLPACK_DEVICE,
    record_of_type,
)
from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    NO_STREAM,
    PER_THREAD_STREAM,
    checked_handle,
    enter_device,
    leave,
    remember_handle,
)

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.errors import Refusal, interface_error, show

cdef extern from *:
    PyObject* PyObject_VectorcallMethod(object name, PyObject** arguments, size_t positional, object keywords) noexcept
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) noexcept
    PyObject* new_capsule "PyCapsule_New"(void* pointer, const char* name, void (*destructor)(object) noexcept) noexcept

cdef const char* LEGACY = b"dltensor"
cdef const char* LEGACY_USED = b"used_dltensor"
cdef const char* VERSIONED = b"dltensor_versioned"
cdef const char* VERSIONED_USED = b"used_dltensor_versioned"
cdef const char* EXCHANGE = b"dlpack_exchange_api"

cdef enum:
    MAX_TABLES = 16     # maximum length of the chain of exchange tables, from the newest version to older ones
    NO_DEVICE = 0       # not a DLPack device type
    NO_VERSION = -1     # minor version for consumers that predate DLPack 1.0

cdef tuple MAX_VERSION = (DLPACK_MAJOR, DLPACK_MINOR)
cdef str INSTEAD_OF_LEGACY = (
    f"use the function for the library, such as arrayhub.as_jax(x), or pass max_version={MAX_VERSION}"
)
cdef tuple KEYWORDS = ("max_version",)
cdef tuple STREAM_KEYWORDS = ("max_version", "stream")
cdef str METHOD = "__dlpack__"

# Device types whose `data` is a driver handle instead of an address.
cdef dict HANDLES = {4: "cl_mem", 7: "VkBuffer", 8: "MTLBuffer", 15: "GPUBuffer"}


# ----------------------------------------------------------------------------------------------------------- import


cdef void _delete_legacy(void* managed) noexcept:
    cdef DLManagedTensor* tensor = <DLManagedTensor*> managed
    if tensor.deleter != NULL:
        aside = put_aside()
        tensor.deleter(tensor)
        put_back(aside)


cdef void _delete_versioned(void* managed) noexcept:
    cdef DLManagedTensorVersioned* tensor = <DLManagedTensorVersioned*> managed
    if tensor.deleter != NULL:
        aside = put_aside()
        tensor.deleter(tensor)
        put_back(aside)


cdef PyObject* _array_of_legacy(void* managed) noexcept:
    """Return the array that exported the tensor `managed`, for the garbage collector, or NULL if arrayhub did not export it."""
    cdef DLManagedTensor* tensor = <DLManagedTensor*> managed
    return <PyObject*> tensor.manager_ctx if tensor.deleter == _legacy_deleter else NULL


cdef PyObject* _array_of_versioned(void* managed) noexcept:
    cdef DLManagedTensorVersioned* tensor = <DLManagedTensorVersioned*> managed
    return <PyObject*> tensor.manager_ctx if tensor.deleter == _managed_deleter else NULL


describe_release(_delete_legacy, b"DLManagedTensor.deleter", _array_of_legacy)
describe_release(_delete_versioned, b"DLManagedTensorVersioned.deleter", _array_of_versioned)


cdef Descriptor parse(object obj, object stream):
    """Import the memory that ``obj.__dlpack__`` exports, or return None if the type of `obj` does not have the method.

    The caller will use the data on `stream`. Producers of CUDA memory receive the stream, unless it is the per-thread default
    stream. In all other cases, the caller of this function makes the stream wait (`on_stream`). Without a stream, the import
    does not synchronize. The producer is called again when a consumer passes a stream.
    """
    cls = type(obj)      # keep a reference, because a metaclass may assign another class to the object
    cdef unsigned int producer = record_of_type(cls)
    if not producer & EXPORTS:
        return None
    cdef long long ordinal = 0
    cdef long long device_type = device_type_of(obj, &ordinal) if producer & HAS_DLPACK_DEVICE else NO_DEVICE
    # Producers of memory on devices with streams accept a stream. -1 disables synchronization.
    cdef bint streamed = device_type == kDLCUDA or device_type == kDLROCM
    cdef intptr_t handle = NO_STREAM
    cdef Descriptor a
    if device_type == kDLCUDA and stream is not None:
        handle = checked_handle(stream)
    # Not every producer supports the per-thread stream, so `consumer_ready` relays the wait through an internal stream.
    cdef bint ordered = handle != NO_STREAM and handle != PER_THREAD_STREAM
    cdef bint pushed
    if streamed:
        nothing = None if producer & NO_STREAM_IS_NONE else NO_STREAM
        pushed = enter_device(ordinal) if device_type == kDLCUDA else False      # torch exports only from the current device
        try:
            capsule = request(obj, True, handle if ordered else nothing)
        finally:
            leave(pushed)
    else:
        capsule = request(obj, False, None)
    a = parse_capsule(capsule, producer & LEGACY_IS_WRITABLE != 0,
                      obj if streamed or device_type == kDLOneAPI or producer & BORROWS else None)
    if a.device_.device_type == kDLCUDAManaged:
        # Without a stream, producers synchronize with CUDA's legacy default stream.
        a.stream_ = <void*> <intptr_t> LEGACY_STREAM
    elif a.device_.device_type == kDLCUDA and ordered:
        remember_handle(a, handle, stream)    # the producer has made this stream wait for its work
    return a


cdef long long device_type_of(object obj, long long* device_id) except? -1:
    """Return the device type of ``__dlpack_device__``, or NO_DEVICE for a number that is too large. Set `device_id`."""
    cdef int overflow = 0
    pair = obj.__dlpack_device__()
    if not isinstance(pair, tuple) or len(<tuple> pair) != 2:
        raise device_error(pair)
    kind, ordinal = (<tuple> pair)[0], (<tuple> pair)[1]
    if not PyLong_CheckExact(kind) or not PyLong_CheckExact(ordinal):
        if not PyIndex_Check(ordinal) or is_bool(kind):
            raise device_error(pair)
        kind = number_of(kind, pair)
    if isinstance(ordinal, int):
        device_id[0] = PyLong_AsLongLongAndOverflow(ordinal, &overflow)
    cdef long long number = PyLong_AsLongLongAndOverflow(kind, &overflow)
    return NO_DEVICE if overflow != 0 else number


cdef object number_of(object kind, object pair):
    """Convert a device type of another class to an int. open3d uses a pybind11 enumeration without ``__index__``."""
    if PyIndex_Check(kind):
        return operator.index(kind)
    value = getattr(kind, "value", None)
    if PyIndex_Check(value):
        return operator.index(value)
    if hasattr(type(kind), "__int__") and not hasattr(type(kind), "__float__"):      # floats are not device types
        return int(kind)
    raise device_error(pair)


cdef object device_error(object pair):
    return interface_error("DLPack", "__dlpack_device__()", pair, "a pair of integers (device_type, device_id)")


# Errors that producers from before DLPack 1.0 raise for `max_version`: TypeError for the unknown keyword, or
# NotImplementedError in array_api_strict with NumPy 2.0.
cdef tuple UNKNOWN_KEYWORD = (TypeError, NotImplementedError)


cdef object request(object obj, bint streamed, object stream):
    """Call ``__dlpack__``, with a stream if `streamed` is true.

    The capsule is versioned if the producer supports `max_version`, else legacy.
    """
    cdef PyObject* arguments[3]
    arguments[0], arguments[1], arguments[2] = <PyObject*> obj, <PyObject*> MAX_VERSION, <PyObject*> stream
    cdef PyObject* capsule = PyObject_VectorcallMethod(METHOD, arguments, 1, STREAM_KEYWORDS if streamed else KEYWORDS)
    if capsule != NULL:
        return take(capsule)
    try:
        raise_on()
    except UNKNOWN_KEYWORD as error:
        if type(error) not in UNKNOWN_KEYWORD:      # the producer's own error, such as pyarrow's ArrowTypeError
            raise
    return obj.__dlpack__(stream=stream) if streamed else obj.__dlpack__()


cdef Descriptor parse_capsule(object capsule, bint legacy_is_writable, object producer):
    """Import and consume a capsule: rename it, and let the memory block call the deleter."""
    cdef DLManagedTensor* legacy
    if not PyCapsule_CheckExact(capsule):
        raise interface_error("DLPack", "__dlpack__()", capsule, "a capsule named 'dltensor_versioned' or 'dltensor'")
    # Create the array first, because nothing may fail between renaming the capsule and storing its tensor in the array. Read
    # the capsule afterwards, because the allocation may run the garbage collector, and finalizers may consume the capsule.
    cdef Descriptor a = bare_array()
    cdef const char* name = PyCapsule_GetName(capsule)
    if name != NULL and strcmp(name, VERSIONED) == 0:
        take_over(a, capsule, VERSIONED_USED, PyCapsule_GetPointer(capsule, name), _delete_versioned)
        describe_versioned(a, producer)
    elif name != NULL and strcmp(name, LEGACY) == 0:
        legacy = <DLManagedTensor*> PyCapsule_GetPointer(capsule, name)
        take_over(a, capsule, LEGACY_USED, legacy, _delete_legacy)
        describe(a, &legacy.dl_tensor, producer, 0 if legacy_is_writable else DL_READ_ONLY)
    else:
        raise capsule_error(capsule)
    return a


cdef object capsule_error(object capsule):
    """Return the error for an invalid capsule.

    The error keeps the capsule alive. Otherwise, the destructor of the capsule could clear the pending exception.
    """
    name = PyCapsule_GetName(capsule)
    error = interface_error(
        "DLPack", "capsule name", None if name == NULL else name,
        "'dltensor_versioned' or 'dltensor'. A capsule can be consumed only once: request a new one from the producer",
    )
    error.capsule = capsule
    return error


cpdef Descriptor peek(object capsule):
    """Import a capsule without consuming it.

    The array is valid only while the capsule owns the tensor, that is, until a consumer renames the capsule.
    """
    cdef DLManagedTensorVersioned* versioned
    cdef Descriptor a = bare_array()         # first, because the allocation may run the garbage collector
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned*> PyCapsule_GetPointer(capsule, VERSIONED)
        check_version(versioned)
        describe(a, &versioned.dl_tensor, None, versioned.flags)
    elif PyCapsule_IsValid(capsule, LEGACY):      # legacy capsules do not have flags
        describe(a, &(<DLManagedTensor*> PyCapsule_GetPointer(capsule, LEGACY)).dl_tensor, None, DL_READ_ONLY)
    else:
        raise capsule_error(capsule)
    a.base_ = capsule
    return a


cdef inline int take_over(Descriptor a, object capsule, const char* used, void* managed, Release release) except -1:
    """Mark a capsule as consumed, and make `a` the owner of the managed tensor."""
    PyCapsule_SetName(capsule, used)
    PyCapsule_SetDestructor(capsule, NULL)
    hold_resource(a, DLPACK, managed, release)
    return 0


cdef Descriptor parse_managed(DLManagedTensorVersioned* managed, object producer):
    """Return an array that owns a versioned managed tensor. The tensor is released even after an error."""
    cdef Descriptor a
    try:
        a = bare_array()
    except BaseException:
        _delete_versioned(managed)
        raise
    hold_resource(a, DLPACK, managed, _delete_versioned)
    describe_versioned(a, producer)
    return a


cdef int check_version(DLManagedTensorVersioned* managed) except -1:
    if managed.version.major != DLPACK_MAJOR:
        # In other major versions, only the fields up to the deleter have this layout.
        raise Refusal(
            "DLPack", f"version is {managed.version.major}.{managed.version.minor}; accepted: major version"
            f" {DLPACK_MAJOR}. Call the producer's __dlpack__(max_version={MAX_VERSION})"
        )
    return 0


cdef inline int describe_versioned(Descriptor a, object producer) except -1:
    cdef DLManagedTensorVersioned* managed = <DLManagedTensorVersioned*> a.resource
    check_version(managed)
    return describe(a, &managed.dl_tensor, producer, managed.flags)


cdef int describe(Descriptor a, DLTensor* tensor, object producer, uint64_t flags) except -1:
    """Fill a bare array from a tensor that `a` or `producer` keeps alive.

    Without a producer, the array's base is its memory block, which owns the tensor. `flags` is 0 for a borrowed tensor, which
    is neither read-only nor padded, and is valid only during the call. DLPack's flag IS_COPIED is imported as the flag COPIED.
    `emit` exports IS_COPIED only if the consumer becomes the only owner.
    """
    fill(a, tensor, flags)
    a.base_ = producer
    if not type_is_host(a.device_.device_type):
        a.producer_ = producer
    if not flags & DL_READ_ONLY:
        a.flags_ |= WRITEABLE
    if flags & DL_IS_COPIED:
        a.flags_ |= COPIED
    return adopt(a)


cdef int fill(Descriptor a, DLTensor* tensor, uint64_t flags) except -1:
    """Set layout, type and device from a tensor, which may be managed, legacy or borrowed."""
    cdef const dtypes.ElementType* row
    check_head(tensor)
    reserve(a, tensor.ndim)
    a.protocol_ = DLPACK_PROTOCOL
    a.device_ = tensor.device
    if a.device_.device_type == kDLOneAPI:
        a.usm_type_ = USM_DEVICE      # DLPack lacks the USM type; assume the most restricted type until the runtime sets it
    row = dtypes.by_dlpack(tensor.dtype)
    if row == NULL:
        raise type_error(tensor.dtype)
    set_type(a, row)
    if tensor.ndim > 0:
        memcpy(a.shape_, tensor.shape, tensor.ndim * sizeof(Py_ssize_t))
    fill_pointer(a, tensor)
    if dtypes.bits_of(a.dl_dtype_) < 8 and not flags & DL_SUBBYTE_PADDED:
        a.flags_ |= PACKED
        fill_strides(a, tensor, 1, a.strides_)
    else:
        fill_strides(a, tensor, a.itemsize_, a.byte_strides_)
    return seal(a)


cdef inline int check_head(DLTensor* tensor) except -1:
    """Validate `ndim`, `shape` and `device`, before memory for shape and strides is allocated."""
    cdef int kind = tensor.device.device_type
    if tensor.ndim < 0 or tensor.ndim > layout.MAX_NDIM:
        raise interface_error("DLPack", "ndim", tensor.ndim, f"0 to {layout.MAX_NDIM}")
    if tensor.ndim > 0 and tensor.shape == NULL:
        raise interface_error("DLPack", "shape", None, f"a pointer to {tensor.ndim} lengths")
    if tensor.device.device_id < 0:
        raise interface_error("DLPack", "device_id", tensor.device.device_id, "an ordinal of zero or more")
    if kind == kDLCPU or kind == kDLCUDA:
        return 0
    if kind not in TYPE_NAMES:
        raise interface_error("DLPack", "device_type", kind, f"one of {sorted(TYPE_NAMES)}")
    if kind in HANDLES:
        raise Refusal(
            "DLPack", f"device_type is {kind} ({TYPE_NAMES[kind]}), whose data is a {HANDLES[kind]}, not an address;"
            " accepted: devices whose data is an address. Copy the array to the host first"
        )
    return 0


cdef inline int fill_pointer(Descriptor a, DLTensor* tensor) except -1:
    """Set the address of element zero, ``data + byte_offset``. ``data`` may be NULL for an array without elements."""
    cdef Py_ssize_t address = 0
    if tensor.data == NULL:
        if tensor.byte_offset != 0 and layout.count(a.nd_, a.shape_) != 0:
            raise interface_error("DLPack", "data", None, f"an address, because byte_offset is {tensor.byte_offset}")
    elif <Py_ssize_t> tensor.byte_offset < 0 or layout.checked_add(
            <Py_ssize_t> tensor.data, <Py_ssize_t> tensor.byte_offset, &address):
        raise interface_error("DLPack", "byte_offset", tensor.byte_offset, "an offset within the address space")
    a.data_ = <char*> address
    return 0


cdef object type_error(dtypes.DLDataType given):
    """Return the error for a DLPack type that the table of element types does not have."""
    cdef const dtypes.ElementType* row = dtypes.similar_to_dlpack(given)
    if row != NULL:
        return Refusal(
            "DLPack", f"dtype.lanes is {given.lanes}; accepted for {row.name.decode()}: {row.dlpack.lanes}. View the lanes as a"
            " last dimension first"
        )
    return interface_error(
        "DLPack", "dtype (code, bits)", (given.code, given.bits),
        "the pairs in arrayhub's table of element types, such as (2, 32) for float32 or (6, 8) for bool",
    )


cdef inline int fill_strides(Descriptor a, DLTensor* tensor, Py_ssize_t unit, Py_ssize_t* strides) except -1:
    """Set `strides` to the tensor's strides times `unit`. NULL, which DLPack permits before 1.2, means C order."""
    cdef int k
    cdef bint overflow = False
    if tensor.strides == NULL:
        overflow = layout.fill_strides(a.nd_, a.shape_, unit, False, strides)
    else:
        for k in range(a.nd_):
            if a.shape_[k] == 1:    # `seal` replaces this stride by the stride of C order
                strides[k] = 0
            else:
                overflow |= layout.checked_mul(tensor.strides[k], unit, &strides[k])
    if overflow:
        raise interface_error(
            "DLPack", "strides", None if tensor.strides == NULL else [tensor.strides[k] for k in range(a.nd_)],
            "strides that stay below 2**63 in bytes",
        )
    return 0


# ---------------------------------------------------------------------------------------------------------- export


cdef extern from *:
    """
    #include "freelist.h"
    ARRAYHUB_ALLOCATED_SPARES(arrayhub_spare_managed, void, 32)
    """
    void* allocate_managed "arrayhub_spare_managed_new"(size_t size) noexcept
    void keep_or_free "arrayhub_spare_managed_free"(void* managed) noexcept


cdef void free_managed(DLManagedTensorVersioned* managed) noexcept:
    """Free a versioned managed tensor that this module allocated. The caller must hold the GIL."""
    drop_reference(<PyObject*> managed.manager_ctx)
    keep_or_free(managed)


cdef void _managed_deleter(DLManagedTensorVersioned* managed) noexcept nogil:
    """Free a managed tensor, on any thread, with or without the GIL. During interpreter shutdown, leak the tensor."""
    if managed == NULL or is_finalizing():
        return
    with gil:
        free_managed(managed)


cdef void _legacy_deleter(DLManagedTensor* managed) noexcept nogil:
    if managed == NULL or is_finalizing():
        return
    with gil:
        drop_reference(<PyObject*> managed.manager_ctx)
    PyMem_RawFree(managed)


cdef void _versioned_destructor(object capsule) noexcept:
    """Free the content of a capsule unless a consumer has renamed the capsule."""
    if PyCapsule_IsValid(capsule, VERSIONED):
        free_managed(<DLManagedTensorVersioned*> PyCapsule_GetPointer(capsule, VERSIONED))


cdef void _legacy_destructor(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, LEGACY):
        _delete_legacy(PyCapsule_GetPointer(capsule, LEGACY))


cdef int check_exportable(Descriptor a) except -1:
    """Raise BufferError if a DLTensor cannot represent the array. After this check, `point` cannot fail."""
    if a.strides_ == NULL or a.dl_dtype_.code == dtypes.NO_DLPACK:
        refuse_export(a)
    if a.device_.device_id == UNRESOLVED_ID:
        device_of(a)      # may set OTHER_CONTEXT
    if a.flags_ & OTHER_CONTEXT:
        refuse_export(a)
    return 0


cdef int refuse_negative_strides(Descriptor a) except -1:
    """Raise BufferError for negative strides, for which torch aborts the process (pytorch/pytorch#188023).

    Any consumer may call ``__dlpack__``. The functions for a library and the exchange table, which torch does not read, support
    negative strides.
    """
    cdef int k
    if a.flags_ & (C_CONTIGUOUS | PACKED):
        return 0
    for k in range(a.nd_):
        if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
            reason = f"byte strides {stride_tuple(a)} are negative, for which torch aborts the process"
            raise Refusal("DLPack", reason, "copy=True", "arrayhub.as_torch(x, copy=True)")
    return 0


cdef bint has_native_code(object dtype) except -1:
    """Return whether a dtype is not in native byte order, and has a DLPack code in native byte order."""
    row = dtypes.by_dtype(dtype)
    return not dtype.isnative and row != NULL and row.dlpack.code != dtypes.NO_DLPACK


cdef str instead_of(Descriptor a, object dtype):
    """Return a call that converts an array whose dtype does not have a DLPack code to one that has, or to an ndarray."""
    if dtype.kind in "mM":
        return "arrayhub.asarray(x, dtype='int64')"
    if has_native_code(dtype):
        return "arrayhub.asarray(x).native()"
    if dtype.char in "gG":
        return f"arrayhub.asarray(x, dtype='{'float64' if dtype.char == 'g' else 'complex128'}')"
    return "arrayhub.as_numpy(x)" if a.device_.device_type == kDLCPU else "arrayhub.as_numpy(x, device='cpu')"


cdef int refuse_export(Descriptor a) except -1:
    if a.dl_dtype_.code == dtypes.NO_DLPACK:
        dtype = get_dtype(a)
        if has_native_code(dtype):
            raise Refusal("DLPack", f"dtype {dtype!r} is not in native byte order", call=instead_of(a, dtype))
        raise Refusal("DLPack", f"dtype {dtype!r} does not have a code", call=instead_of(a, dtype))
    if a.flags_ & OTHER_CONTEXT:
        raise Refusal(
            "DLPack",
            "the memory belongs to a SYCL context other than the default context of its device, which DLPack cannot represent",
            "this context through __sycl_usm_array_interface__",
            "arrayhub.to_host(x)",
        )
    raise Refusal(
        "DLPack", f"byte strides {stride_tuple(a)} are not multiples of the item size {a.itemsize_}",
        call="arrayhub.asarray(x).copy()",
    )


cdef int check_without_flags(Descriptor a, str what, str instead, bint allow_readonly) except -1:
    """Raise BufferError if the export of `a` requires flags. `what` names the format or function that lacks flags."""
    if not allow_readonly and not a.flags_ & WRITEABLE:
        raise Refusal(
            "DLPack", f"the array is read-only, and {what} cannot represent this; {instead}, or call x.copy() first"
        )
    if flags_of(a) & DL_SUBBYTE_PADDED:
        raise padded_error(a, f"{what} can only represent packed elements", instead)
    return 0


cdef object padded_error(Descriptor a, str why, str instead):
    return Refusal("DLPack", f"the {dtypes.bits_of(a.dl_dtype_)}-bit elements are padded to bytes, and {why}; {instead}")


cdef inline void point(Descriptor a, DLTensor* tensor) noexcept:
    """Fill a tensor that borrows shape and strides from `a`, which must have passed `check_exportable`.

    - For host memory, ``data`` is the address of element zero, as in NumPy's capsules, because some consumers ignore
      ``byte_offset``.
    - On devices, ``data`` is the lowest address that the view reaches, and ``byte_offset`` is the distance to element zero.
      dpnp requires an address within an allocation, and then supports negative strides.
    - An array without elements has a null pointer, as dlpack.h requires. On oneAPI devices, the pointer is kept, because dpnp
      0.20 fails for a null pointer (``__cinit__() takes exactly 1 positional argument``).
    """
    cdef Py_ssize_t low = 0, high
    if a.flags_ & C_CONTIGUOUS or a.device_.device_type == kDLCPU:
        high = layout.count(a.nd_, a.shape_)      # used only to test for an empty array
    else:
        extent(a, &low, &high)
    tensor.device = a.device_
    tensor.ndim = a.nd_
    tensor.dtype = a.dl_dtype_
    tensor.shape = <int64_t*> a.shape_
    tensor.strides = <int64_t*> a.strides_
    tensor.data = a.data_ + low if high > low or a.device_.device_type == kDLOneAPI else NULL
    tensor.byte_offset = <uint64_t> -low if high > low else 0


cdef inline uint64_t flags_of(Descriptor a) noexcept:
    cdef uint64_t flags = 0
    if not a.flags_ & WRITEABLE:
        flags |= DL_READ_ONLY
    if dtypes.bits_of(a.dl_dtype_) < 8 and not a.flags_ & PACKED:
        flags |= DL_SUBBYTE_PADDED
    return flags


cdef DLManagedTensorVersioned* new_managed(Descriptor a) except NULL:
    """Return a managed tensor that owns a reference to `a`, with at most one allocation."""
    cdef DLManagedTensorVersioned* managed
    check_exportable(a)
    managed = <DLManagedTensorVersioned*> allocate_managed(sizeof(DLManagedTensorVersioned))
    if managed == NULL:
        raise MemoryError
    managed.version = DLPackVersion(DLPACK_MAJOR, DLPACK_MINOR)
    managed.deleter = _managed_deleter
    managed.flags = flags_of(a)
    point(a, &managed.dl_tensor)
    managed.manager_ctx = <void*> a
    Py_INCREF(a)
    return managed


cdef object emit(Descriptor a, object stream, object max_version, bint sole):
    """Return a capsule of `a`: versioned if the consumer's `max_version` permits it, else legacy.

    Make `stream`, the consumer's stream in DLPack's convention for the device, wait for the producer's work. If the consumer
    will be the `sole` owner of the array, the capsule of a copy has the flag IS_COPIED. Raise BufferError if DLPack, or the
    consumer's version of DLPack, cannot represent the array.
    """
    cdef int minor = minor_known(max_version)
    refuse_negative_strides(a)
    order(a, stream)
    if minor == NO_VERSION:
        return emit_legacy(a, False)
    if minor < PADDED_SINCE and flags_of(a) & DL_SUBBYTE_PADDED:
        check_exportable(a)
        raise padded_error(a, f"DLPack 1.{minor} lacks a flag for padding", f"pass max_version=(1, {PADDED_SINCE}) or later")
    cdef DLManagedTensorVersioned* managed = new_managed(a)
    if sole and a.flags_ & COPIED:
        managed.flags |= DL_IS_COPIED
    return capsule_of(managed)


cdef object capsule_of(DLManagedTensorVersioned* managed):
    """Return a versioned capsule that owns a result of `new_managed`."""
    cdef PyObject* capsule = new_capsule(managed, VERSIONED, _versioned_destructor)
    if capsule == NULL:
        free_managed(managed)
    return take(capsule)


cdef int order(Descriptor a, object stream) except -1:
    """Make the consumer's stream wait for the producer's work."""
    if a.device_.device_type == kDLCPU:
        if stream is not None and (type(stream) is not int or stream != -1):
            raise Refusal("DLPack", f"stream is {show(stream)} for host memory; accepted: None or -1")
    elif stream is None and type_is_host(a.device_.device_type):
        host_ready(a)      # without a stream, the consumer reads pinned and managed memory on the host
    else:
        order_consumer(a, stream)
    return 0


cdef int minor_known(object max_version) except -2:
    """Return the minor version of DLPack 1 to export, or NO_VERSION for a legacy capsule.

    A consumer that supports a later major version receives the newest minor version of DLPack 1, and must check the version of
    the capsule.
    """
    cdef int overflow = 0
    cdef long long number
    if max_version is None:
        return NO_VERSION
    if not isinstance(max_version, tuple) or len(<tuple> max_version) != 2 \
            or not PyIndex_Check((<tuple> max_version)[0]) or not PyIndex_Check((<tuple> max_version)[1]):
        raise TypeError(
            f"DLPack: max_version is {show(max_version)}; accepted: None or a tuple of two integers such as {MAX_VERSION}"
        )
    major, minor = PyNumber_Index((<tuple> max_version)[0]), PyNumber_Index((<tuple> max_version)[1])
    if major != 1:
        return DLPACK_MINOR if major > 1 else NO_VERSION
    number = PyLong_AsLongLongAndOverflow(minor, &overflow)      # -1 after an overflow in either direction
    return DLPACK_MINOR if overflow > 0 or number > DLPACK_MINOR else <int> max(0, number)


cdef object emit_legacy(Descriptor a, bint allow_readonly):
    """Return a legacy capsule. Reject arrays that require flags, but accept read-only memory if `allow_readonly` is True."""
    check_exportable(a)
    check_without_flags(a, "a legacy capsule", INSTEAD_OF_LEGACY, allow_readonly)
    cdef DLManagedTensor* managed = <DLManagedTensor*> PyMem_RawMalloc(sizeof(DLManagedTensor))
    if managed == NULL:
        raise MemoryError
    point(a, &managed.dl_tensor)
    managed.deleter = _legacy_deleter
    managed.manager_ctx = <void*> a
    Py_INCREF(a)
    cdef PyObject* capsule = new_capsule(managed, LEGACY, _legacy_destructor)
    if capsule == NULL:
        _delete_legacy(managed)
    return take(capsule)


# --------------------------------------------------------------------------------------------- the C exchange table


cdef DLPackExchangeAPI* exchange_api(object cls) except? NULL:
    """Return the exchange table that a type itself declares, or NULL if it does not declare a usable table of DLPack 1.

    A table that the type inherits is not used, because the type may override ``__dlpack__``.
    """
    cdef int _step
    capsule = cls.__dict__.get("__dlpack_c_exchange_api__")
    if capsule is None or not PyCapsule_IsValid(capsule, EXCHANGE):
        return NULL
    cdef DLPackExchangeAPIHeader* header = <DLPackExchangeAPIHeader*> PyCapsule_GetPointer(capsule, EXCHANGE)
    for _step in range(MAX_TABLES):      # bounded, because the chain may be circular
        if header == NULL or header.version.major == DLPACK_MAJOR:
            break
        header = header.prev_api
    if header == NULL or header.version.major != DLPACK_MAJOR:
        return NULL
    cdef DLPackExchangeAPI* api = <DLPackExchangeAPI*> header
    return api if api.managed_tensor_from_py_object_no_sync != NULL else NULL


cdef Descriptor parse_by_exchange(object obj, object stream):
    """Import an array through the exchange table of its type, or return None if `exchange_api` returns NULL."""
    cls = type(obj)      # keep a reference, because a metaclass may assign another class to the object
    cdef DLPackExchangeAPI* api = exchange_api(cls)
    if api == NULL:
        return None
    return parse_exchange(obj, api)


cdef Descriptor parse_exchange(object obj, DLPackExchangeAPI* api):
    """Import an array through an exchange table, as a ``DLManagedTensorVersioned``."""
    cdef DLManagedTensorVersioned* managed = NULL
    if api.managed_tensor_from_py_object_no_sync(<PyObject*> obj, &managed) != 0 or managed == NULL:
        raise_pending("managed_tensor_from_py_object_no_sync")
    cdef Descriptor a = parse_managed(managed, obj)
    note_work_stream(a, api)
    return a


cdef int note_work_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Store the producer's current CUDA stream, if the exchange table has a function for it.

    The stream is stored at the import, because another stream may be current at the export.
    """
    cdef void* stream = NULL
    if a.device_.device_type == kDLCUDA and api.current_work_stream != NULL:
        if api.current_work_stream(kDLCUDA, a.device_.device_id, &stream) != 0:
            raise_pending("current_work_stream")
        a.stream_ = stream if stream != NULL else <void*> <intptr_t> LEGACY_STREAM
    return 0


cdef int raise_pending(str function) except -1:
    """Raise the error of a foreign C function, or a BufferError if it did not set an exception."""
    if PyErr_Occurred() == NULL:
        raise Refusal("DLPack exchange table", f"{function} failed without an exception")
    return -1


# Functions of arrayhub's own exchange table. After an error, the functions that convert arrays return -1 with an exception set,
# as Cython functions with `except -1` do. The allocator reports errors to `set_error` instead.


cdef int _table_from_py_object(void* obj, DLManagedTensorVersioned** out) except -1 with gil:
    cdef Descriptor a
    out[0] = NULL
    a = <Descriptor?> <object> <PyObject*> obj
    order_table_stream(a)
    out[0] = new_managed(a)
    return 0


cdef int _table_to_py_object(DLManagedTensorVersioned* managed, void** out) except -1 with gil:
    cdef object result
    out[0] = NULL
    if managed == NULL:
        raise ValueError("DLPack exchange table: the managed tensor is NULL; accepted: a tensor to own")
    result = parse_managed(managed, None)
    Py_INCREF(result)
    out[0] = <void*> <PyObject*> result
    return 0


cdef int _table_borrow(void* obj, DLTensor* out) except -1 with gil:
    cdef Descriptor a = <Descriptor?> <object> <PyObject*> obj
    check_exportable(a)
    check_without_flags(a, "a borrowed DLTensor", "use managed_tensor_from_py_object_no_sync, which has flags", False)
    order_table_stream(a)
    point(a, out)
    return 0


cdef int order_table_stream(Descriptor a) except -1:
    """Make the stream of `_table_current_stream`, CUDA's legacy default stream, wait for the producer's work, or wait here."""
    return order_consumer(a, None) if a.device_.device_type == kDLCUDAManaged else order(a, None)


cdef int _table_current_stream(int device_type, int32_t device_id, void** out) noexcept nogil:
    """Return NULL, which is CUDA's legacy default stream. Exports make this stream wait (`order_table_stream`)."""
    out[0] = NULL
    return 0


cdef int _table_allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                         void (*set_error)(void*, const char*, const char*) noexcept) noexcept with gil:
    cdef bytes kind = b"MemoryError", message = b"DLPack exchange table: managed_tensor_allocator failed"
    out[0] = NULL
    try:
        out[0] = new_managed(new_like(prototype))
        return 0
    except BaseException as error:
        kind, message = error_texts(error)
    # Called outside of the handler, so that an exception that `set_error` sets stays pending.
    if set_error != NULL:
        set_error(error_ctx, kind, message)
    return -1


cdef tuple error_texts(object error):
    """Return the type name and message of an exception as bytes, or general texts if its ``__str__`` raises.

    The name for a Refusal is that of its base class BufferError, which consumers know.
    """
    try:
        kind = "BufferError" if isinstance(error, BufferError) else type(error).__name__
        return kind.encode(), str(error).encode("utf-8", "replace")
    except Exception:
        pass
    return b"RuntimeError", b"DLPack exchange table: managed_tensor_allocator failed"


cdef Descriptor new_like(DLTensor* prototype):
    """Return a new C-contiguous array with the type, shape and device of `prototype`. Ignore the other fields of `prototype`.

    A DLTensor does not have flags, so elements of less than a byte are packed.
    """
    cdef DLTensor wanted = prototype[0]
    cdef Runtime* runtime
    cdef Descriptor a
    cdef Py_ssize_t low, high
    wanted.strides = NULL
    wanted.byte_offset = 0
    wanted.data = <void*> 64      # a placeholder: `fill` validates the layout before memory is allocated
    a = bare_array()
    fill(a, &wanted, 0)
    a.protocol_ = CONSTRUCTED
    a.flags_ |= WRITEABLE
    extent(a, &low, &high)
    if wanted.device.device_type == kDLCPU:
        a.block_ = allocate(high, BOUNDARY)
        a.base_ = a.block_
        a.data_ = a.block_.address_
    else:
        runtime = runtime_of(wanted.device.device_type)
        if runtime.allocate == NULL:
            raise Refusal(
                "DLPack exchange table", f"memory on {TYPE_NAMES[wanted.device.device_type]} cannot be allocated; accepted:"
                " cpu, and devices whose runtime is available"
            )
        runtime.allocate(a, high, wanted.device)
    return a


cdef DLPackExchangeAPI _table
_table.header.version = DLPackVersion(DLPACK_MAJOR, DLPACK_MINOR)
_table.header.prev_api = NULL
_table.managed_tensor_allocator = _table_allocate
_table.managed_tensor_from_py_object_no_sync = <ManagedTensorFromPyObject> _table_from_py_object
_table.managed_tensor_to_py_object_no_sync = <ManagedTensorToPyObject> _table_to_py_object
_table.dltensor_from_py_object_no_sync = <DLTensorFromPyObject> _table_borrow
_table.current_work_stream = _table_current_stream


cdef object exchange_capsule():
    """Return the capsule of arrayhub's exchange table, for the class attribute ``__dlpack_c_exchange_api__``."""
    return PyCapsule_New(&_table, EXCHANGE, NULL)
