"""DLPack, legacy and versioned, and the C exchange table: parse and emit. Source of every rule: the DLPack 1.3
specification and the array API standard's data interchange page."""

import operator

from cpython.exc cimport PyErr_Fetch, PyErr_Restore, PyErr_SetObject
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
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
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset, strcmp

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    COPIED,
    DLPACK_PROTOCOL,
    F_CONTIGUOUS,
    ALIGNED,
    NOTSWAPPED,
    OTHER_CONTEXT,
    PACKED,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    extent,
    get_dtype,
    host_readable,
    new_array,
    seal,
    set_type,
    size_of,
)
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice, kDLCPU, kDLOneAPI, type_is_host
from arrayhub._core.memory cimport DLPACK, MemoryBlock, allocate, new_block
from arrayhub._core.runtime cimport Runtime, adopt, device_of, host_ready, order_consumer, runtime_of
from arrayhub.adapters.dlpack_abi cimport (
    DL_IS_COPIED,
    DL_READ_ONLY,
    DL_SUBBYTE_PADDED,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
    DLPackVersion,
    DLTensor,
)

from arrayhub._core.device import TYPE_NAMES
from arrayhub._core.errors import interface_error, show

cdef extern from *:
    """
    /* A deleter may run on a thread of its own while the interpreter goes down: then Python must not be entered. */
    #if PY_VERSION_HEX >= 0x030D0000
    #define arrayhub_is_finalizing() Py_IsFinalizing()
    #else
    #define arrayhub_is_finalizing() (!Py_IsInitialized() || _Py_IsFinalizing())
    #endif
    """
    bint arrayhub_is_finalizing() nogil

cdef const char* LEGACY = b"dltensor"
cdef const char* LEGACY_USED = b"used_dltensor"
cdef const char* VERSIONED = b"dltensor_versioned"
cdef const char* VERSIONED_USED = b"used_dltensor_versioned"
cdef const char* EXCHANGE = b"dlpack_exchange_api"

cdef tuple MAX_VERSION = (DLPACK_MAJOR, DLPACK_MINOR)
cdef tuple CPU_PAIR = (kDLCPU, 0)

# Libraries whose legacy capsules mean memory that may be written, because all their arrays may.
cdef tuple WRITABLE_LEGACY_ROOTS = ("torch", "cupy", "cupyx")


# ---------------------------------------------------------------------------------------------------------- parsing


cdef void _delete_legacy(void* managed) noexcept:
    cdef DLManagedTensor* tensor = <DLManagedTensor*> managed
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    if tensor.deleter != NULL:
        PyErr_Fetch(&kind, &value, &traceback)   # a deleter may run Python code while an exception is on its way
        tensor.deleter(tensor)
        PyErr_Restore(kind, value, traceback)


cdef void _delete_versioned(void* managed) noexcept:
    cdef DLManagedTensorVersioned* tensor = <DLManagedTensorVersioned*> managed
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    if tensor.deleter != NULL:
        PyErr_Fetch(&kind, &value, &traceback)
        tensor.deleter(tensor)
        PyErr_Restore(kind, value, traceback)


cdef Descriptor parse(object obj, object stream):
    """An array on the memory that ``obj.__dlpack__`` hands over, or None where its type has no such method.

    Parameters
    ----------
    obj : object
        The producer.
    stream : object
        The stream on which the caller will use the data, as ``__dlpack__`` takes it; None: no synchronisation now,
        the producer is asked again when a consumer names its stream.
    """
    cls = type(obj)
    if not hasattr(cls, "__dlpack__"):
        return None
    cdef bint on_device = False
    if hasattr(cls, "__dlpack_device__"):
        pair = obj.__dlpack_device__()
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise interface_error("DLPack", "__dlpack_device__()", pair, "a pair of integers (device_type, device_id)")
        on_device = not type_is_host(operator.index(pair[0])) and operator.index(pair[0]) != kDLOneAPI
    if on_device:
        capsule = request_on_device(obj, stream)
    else:
        capsule = request(obj)
    if not PyCapsule_CheckExact(capsule):
        raise interface_error("DLPack", "__dlpack__()", capsule, "a capsule named 'dltensor_versioned' or 'dltensor'")
    return parse_capsule(capsule, cls.__module__.partition(".")[0] in WRITABLE_LEGACY_ROOTS, obj if on_device else None)


cdef object request(object obj):
    """Call ``__dlpack__`` for host memory: versioned if it knows how, else legacy."""
    try:
        return obj.__dlpack__(max_version=MAX_VERSION)
    except TypeError:      # the only sign of a producer from before DLPack 1.0
        return obj.__dlpack__()


cdef object request_on_device(object obj, object stream):
    """Call ``__dlpack__`` for device memory; -1 asks for no synchronisation."""
    wanted = -1 if stream is None else stream
    try:
        return obj.__dlpack__(max_version=MAX_VERSION, stream=wanted)
    except TypeError:
        return obj.__dlpack__(stream=wanted)


cdef Descriptor parse_capsule(object capsule, bint legacy_is_writable, object producer):
    """Consume a capsule exactly once: it is renamed, and the memory block calls the deleter.

    Raises
    ------
    InterfaceError
        A capsule of another name, one that was consumed before, or a tensor that contradicts itself.
    BufferError
        A major version above 1, more than one lane.
    """
    cdef DLManagedTensorVersioned* versioned
    cdef DLManagedTensor* legacy
    cdef MemoryBlock block
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned*> PyCapsule_GetPointer(capsule, VERSIONED)
        PyCapsule_SetName(capsule, VERSIONED_USED)
        PyCapsule_SetDestructor(capsule, NULL)
        return parse_managed(versioned, producer)
    if PyCapsule_IsValid(capsule, LEGACY):
        legacy = <DLManagedTensor*> PyCapsule_GetPointer(capsule, LEGACY)
        PyCapsule_SetName(capsule, LEGACY_USED)
        PyCapsule_SetDestructor(capsule, NULL)
        block = new_block(DLPACK, producer, NULL, -1, DLDevice(0, 0))
        block.resource = legacy
        block.release = _delete_legacy
        return describe(&legacy.dl_tensor, block, producer, 0 if legacy_is_writable else DL_READ_ONLY)
    name = PyCapsule_GetName(capsule)
    raise interface_error(
        "DLPack", "capsule name", None if name == NULL else name,
        "'dltensor_versioned' or 'dltensor'; a capsule can be consumed once only: ask the producer for a new one",
    )


cdef Descriptor parse_managed(DLManagedTensorVersioned* managed, object producer):
    """An array that owns a versioned managed tensor from now on."""
    cdef MemoryBlock block = new_block(DLPACK, producer, NULL, -1, DLDevice(0, 0))
    block.resource = managed
    block.release = _delete_versioned
    if managed.version.major > DLPACK_MAJOR:
        # The layout of what follows is unknown; up to the deleter it is promised to stay.
        raise BufferError(
            f"DLPack: version is {managed.version.major}.{managed.version.minor}; accepted: up to major"
            f" {DLPACK_MAJOR}. Call the producer's __dlpack__(max_version={MAX_VERSION})"
        )
    return describe(&managed.dl_tensor, block, producer, managed.flags)


cdef Descriptor parse_borrowed(object obj, DLTensor* tensor):
    """An array on a borrowed tensor, valid only now: `obj` is held instead, shape and strides are copied."""
    cdef Descriptor a = fill(tensor, DL_SUBBYTE_PADDED)
    a.base_ = obj
    a.flags_ |= WRITEABLE
    return a


cdef Descriptor describe(DLTensor* tensor, MemoryBlock block, object producer, uint64_t flags):
    """An array on a managed tensor that `block` holds."""
    cdef Py_ssize_t low, high
    cdef Descriptor a = fill(tensor, flags)
    a.base_ = block if producer is None else producer
    a.producer_ = None if type_is_host(a.device_.device_type) else producer
    a.block_ = block
    if not flags & DL_READ_ONLY:
        a.flags_ |= WRITEABLE
    if flags & DL_IS_COPIED:
        a.flags_ |= COPIED
    extent(a, &low, &high)
    block.address_ = a.data_ + low
    block.nbytes_ = high - low
    block.device_ = a.device_
    adopt(a)
    return a


cdef Descriptor fill(DLTensor* tensor, uint64_t flags):
    """The layout, type and device of a tensor: what the managed, the legacy and the borrowed ways share."""
    if tensor.ndim < 0 or tensor.ndim > layout.MAX_NDIM:
        raise interface_error("DLPack", "ndim", tensor.ndim, f"0 to {layout.MAX_NDIM}")
    if tensor.ndim > 0 and tensor.shape == NULL:
        raise interface_error("DLPack", "shape", None, f"a pointer to {tensor.ndim} lengths")
    if tensor.device.device_type not in TYPE_NAMES:
        raise interface_error("DLPack", "device_type", tensor.device.device_type, f"one of {sorted(TYPE_NAMES)}")
    cdef Descriptor a = new_array(tensor.ndim)
    cdef bint padded = flags & DL_SUBBYTE_PADDED
    a.protocol_ = DLPACK_PROTOCOL
    a.device_ = tensor.device
    fill_type(a, tensor)
    if tensor.data != NULL:    # for no elements NULL is as good as any address
        a.data_ = <char*> tensor.data + tensor.byte_offset
    elif tensor.byte_offset != 0 and size_of_tensor(tensor) != 0:
        raise interface_error("DLPack", "data", None, f"the address that byte_offset {tensor.byte_offset} counts from")
    memcpy(a.shape_, tensor.shape, tensor.ndim * sizeof(Py_ssize_t))
    if a.dl_dtype_.bits < 8 and not padded:
        seal_packed(a, tensor)
    else:
        fill_strides(a, tensor)
        seal(a)
    return a


cdef Py_ssize_t size_of_tensor(DLTensor* tensor) noexcept:
    return layout.count(tensor.ndim, <Py_ssize_t*> tensor.shape)


cdef int fill_type(Descriptor a, DLTensor* tensor) except -1:
    cdef const dtypes.ElementType* row = dtypes.by_dlpack(tensor.dtype.code, tensor.dtype.bits)
    if tensor.dtype.lanes != 1:
        raise BufferError(
            f"DLPack: dtype.lanes is {tensor.dtype.lanes}; accepted: 1. View the vectors as a last dimension first"
        )
    if row == NULL:
        raise interface_error(
            "DLPack", "dtype (code, bits)", (tensor.dtype.code, tensor.dtype.bits),
            "the pairs of arrayhub's table of element types, such as (2, 32) for float32 or (6, 8) for bool",
        )
    return set_type(a, row)


cdef int fill_strides(Descriptor a, DLTensor* tensor) except -1:
    """Strides in bytes from strides in elements; none means C order (legal before DLPack 1.2)."""
    cdef int k
    cdef bint overflow = False
    if tensor.strides == NULL:
        overflow = layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_)
    else:
        for k in range(a.nd_):
            overflow |= layout.checked_mul(tensor.strides[k], a.itemsize_, &a.byte_strides_[k])
    if overflow:
        raise interface_error("DLPack", "strides", [tensor.strides[k] for k in range(a.nd_)] if tensor.strides else None,
                              "strides that stay below 2**63 in bytes")
    return 0


cdef int seal_packed(Descriptor a, DLTensor* tensor) except -1:
    """Complete an array whose elements share bytes: only compact C order has a meaning there."""
    cdef Py_ssize_t ignored
    cdef int k
    for k in range(a.nd_):
        if a.shape_[k] < 0:
            raise interface_error("DLPack", f"shape[{k}]", a.shape_[k], "a length of zero or more")
    if size_of(a) < 0 or layout.checked_mul(size_of(a), a.dl_dtype_.bits, &ignored):
        raise interface_error("DLPack", "shape", [a.shape_[k] for k in range(a.nd_)], "fewer than 2**63 bits in all")
    layout.fill_strides(a.nd_, a.shape_, 1, False, a.strides_)
    for k in range(a.nd_):
        if tensor.strides != NULL and a.shape_[k] > 1 and tensor.strides[k] != a.strides_[k]:
            raise BufferError("DLPack: packed elements of less than a byte with strides; accepted: compact C order only")
    if a.data_ == NULL and size_of(a) > 0:
        raise interface_error("DLPack", "data", None, "the address of the elements")
    a.byte_strides_ = NULL
    a.flags_ |= PACKED | C_CONTIGUOUS | ALIGNED
    if a.nd_ <= 1:
        a.flags_ |= F_CONTIGUOUS
    return 0


# --------------------------------------------------------------------------------------------------------- emitting


cdef void _drop_owner(void* owner) noexcept with gil:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    PyErr_Fetch(&kind, &value, &traceback)
    Py_DECREF(<object> <PyObject*> owner)
    PyErr_Restore(kind, value, traceback)


cdef void _managed_deleter(DLManagedTensorVersioned* managed) noexcept nogil:
    """Runs on any thread, with or without the GIL. Once the interpreter is going, the memory goes with the process."""
    if managed == NULL or arrayhub_is_finalizing():
        return
    _drop_owner(managed.manager_ctx)
    PyMem_RawFree(managed)


cdef void _legacy_deleter(DLManagedTensor* managed) noexcept nogil:
    if managed == NULL or arrayhub_is_finalizing():
        return
    _drop_owner(managed.manager_ctx)
    PyMem_RawFree(managed)


cdef void _versioned_destructor(object capsule) noexcept:
    """An unconsumed capsule frees what it carries."""
    if PyCapsule_IsValid(capsule, VERSIONED):
        _delete_versioned(PyCapsule_GetPointer(capsule, VERSIONED))


cdef void _legacy_destructor(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, LEGACY):
        _delete_legacy(PyCapsule_GetPointer(capsule, LEGACY))


cdef int check_sayable(Descriptor a) except -1:
    """Refuse what a DLTensor has no words for."""
    if a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise BufferError(
            f"DLPack: no code for dtype {get_dtype(a)!r}; {dtypes.names_of('host')} can say it, or convert it first"
        )
    if a.device_.device_type == 0:
        raise BufferError("DLPack: the array was never given memory; make it with arrayhub.asarray or USMArray(...)")
    if a.flags_ & OTHER_CONTEXT:
        raise BufferError(
            "DLPack: the memory belongs to a SYCL context that is not its device's default one, which DLPack cannot name;"
            " __sycl_usm_array_interface__ can, or call to_host(x)"
        )
    if a.strides_ == NULL:
        raise BufferError(
            f"DLPack: byte strides {tuple([a.byte_strides_[k] for k in range(a.nd_)])} are no multiple of the item size"
            f" {a.itemsize_}; call x.copy() first"
        )
    return 0


cdef int point(Descriptor a, DLTensor* tensor) except -1:
    """Fill a tensor that borrows shape and strides from `a`, which must outlive it.

    ``data`` is the lowest address that the view reaches and ``byte_offset`` leads up to element zero: readers that
    check for a start within an allocation then accept negative strides.
    """
    cdef Py_ssize_t low, high
    tensor.device = device_of(a)
    check_sayable(a)
    extent(a, &low, &high)
    tensor.ndim = a.nd_
    tensor.dtype = a.dl_dtype_
    tensor.shape = <int64_t*> a.shape_
    tensor.strides = <int64_t*> a.strides_
    tensor.data = a.data_ + low if high > low else NULL
    tensor.byte_offset = <uint64_t> -low if high > low else 0
    return 0


cdef uint64_t flags_of(Descriptor a) noexcept:
    cdef uint64_t flags = 0
    if not a.flags_ & WRITEABLE:
        flags |= DL_READ_ONLY
    if a.flags_ & COPIED:
        flags |= DL_IS_COPIED
    if a.dl_dtype_.bits < 8 and not a.flags_ & PACKED:
        flags |= DL_SUBBYTE_PADDED
    return flags


cdef DLManagedTensorVersioned* new_managed(Descriptor a) except NULL:
    """A managed tensor that owns a reference to `a`: one allocation."""
    cdef DLTensor tensor
    point(a, &tensor)
    cdef DLManagedTensorVersioned* managed = <DLManagedTensorVersioned*> PyMem_RawMalloc(sizeof(DLManagedTensorVersioned))
    if managed == NULL:
        raise MemoryError
    managed.version = DLPackVersion(DLPACK_MAJOR, DLPACK_MINOR)
    managed.deleter = _managed_deleter
    managed.flags = flags_of(a)
    managed.dl_tensor = tensor
    managed.manager_ctx = <void*> a
    Py_INCREF(a)
    return managed


cdef object emit(Descriptor a, object stream, object max_version):
    """A capsule of `a`: versioned where the consumer's `max_version` allows, else legacy.

    Parameters
    ----------
    a : Descriptor
        The array.
    stream : object
        The consumer's stream in DLPack's convention for the device; it is made to wait for the producer's work.
    max_version : tuple of int or None
        The newest version that the consumer knows.

    Raises
    ------
    BufferError
        The type or the strides have no DLPack form, or the memory is read-only and only a legacy capsule is wanted.
    """
    if type_is_host(a.device_.device_type):
        if stream is not None:
            check_host_stream(stream)
        host_ready(a)
    else:
        order_consumer(a, stream)
    if max_version is None or max_version[0] < 1:
        return emit_legacy(a, False)
    return capsule_of(new_managed(a))


cdef object capsule_of(DLManagedTensorVersioned* managed):
    """A versioned capsule that owns `managed`."""
    try:
        return PyCapsule_New(managed, VERSIONED, _versioned_destructor)
    except BaseException:
        _managed_deleter(managed)
        raise


cdef object emit_legacy(Descriptor a, bint allow_readonly):
    """A legacy capsule, which has no words for read-only memory."""
    if not allow_readonly and not a.flags_ & WRITEABLE:
        raise BufferError(
            "DLPack: the array is read-only, and a legacy capsule cannot say so; ask with max_version=(1, 0) or later,"
            " or call x.copy() first"
        )
    cdef DLTensor tensor
    point(a, &tensor)
    cdef DLManagedTensor* managed = <DLManagedTensor*> PyMem_RawMalloc(sizeof(DLManagedTensor))
    if managed == NULL:
        raise MemoryError
    managed.dl_tensor = tensor
    managed.deleter = _legacy_deleter
    managed.manager_ctx = <void*> a
    Py_INCREF(a)
    try:
        return PyCapsule_New(managed, LEGACY, _legacy_destructor)
    except BaseException:
        _legacy_deleter(managed)
        raise


cdef int check_host_stream(object stream) except -1:
    """Refuse a `stream=` that has no meaning for memory of the host."""
    if type(stream) is not int or stream != -1:
        raise BufferError(f"DLPack: stream is {show(stream)} for memory of the host; accepted: None or -1")
    return 0


# --------------------------------------------------------------------------------------------- the C exchange table


cdef DLPackExchangeAPI* exchange_api(object cls) except? NULL:
    """The table that a type itself declares, or NULL. An inherited one is not used: it may export silently what the
    subclass redefines."""
    capsule = cls.__dict__.get("__dlpack_c_exchange_api__")
    if capsule is None or not PyCapsule_IsValid(capsule, EXCHANGE):
        return NULL
    cdef DLPackExchangeAPIHeader* header = <DLPackExchangeAPIHeader*> PyCapsule_GetPointer(capsule, EXCHANGE)
    while header != NULL and header.version.major != DLPACK_MAJOR:
        header = header.prev_api
    return <DLPackExchangeAPI*> header


cdef Descriptor parse_exchange(object obj, DLPackExchangeAPI* api):
    """An array by a foreign table, through its managed tensor, which says what is read-only."""
    cdef DLManagedTensorVersioned* managed = NULL
    if api.managed_tensor_from_py_object_no_sync(<PyObject*> obj, &managed) != 0 or managed == NULL:
        raise_pending("managed_tensor_from_py_object_no_sync")
    cdef Descriptor a = parse_managed(managed, obj)
    return a


cdef int raise_pending(str function) except -1:
    """Raise what a foreign C function reported, or say that it reported nothing."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    PyErr_Fetch(&kind, &value, &traceback)
    if kind == NULL:
        raise BufferError(f"DLPack exchange table: {function} failed without an exception")
    PyErr_Restore(kind, value, traceback)
    return -1


cdef int _table_from_py_object(void* obj, DLManagedTensorVersioned** out) noexcept with gil:
    try:
        out[0] = new_managed(<Descriptor?> <object> <PyObject*> obj)
        return 0
    except BaseException as error:
        return fail(error)


cdef int _table_to_py_object(DLManagedTensorVersioned* managed, void** out) noexcept with gil:
    cdef object result
    try:
        result = parse_managed(managed, None)
        Py_INCREF(result)
        out[0] = <void*> <PyObject*> result
        return 0
    except BaseException as error:
        return fail(error)


cdef int _table_borrow(void* obj, DLTensor* out) noexcept with gil:
    cdef Descriptor a
    try:
        a = <Descriptor?> <object> <PyObject*> obj
        if not a.flags_ & WRITEABLE:
            raise BufferError(
                "DLPack exchange table: the array is read-only, and a borrowed DLTensor cannot say so; use"
                " managed_tensor_from_py_object_no_sync, whose flags can"
            )
        return point(a, out)
    except BaseException as error:
        return fail(error)


cdef int _table_current_stream(int device_type, int32_t device_id, void** out) noexcept nogil:
    """The hub launches nothing, so it has no stream of its own: NULL, which CUDA reads as its legacy default stream."""
    out[0] = NULL
    return 0


cdef int _table_allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                         void (*set_error)(void*, const char*, const char*) noexcept) noexcept with gil:
    cdef object a
    try:
        a = new_like(prototype)
        out[0] = new_managed(a)
        return 0
    except BaseException as error:
        kind = type(error).__name__.encode()
        message = str(error).encode("utf-8", "replace")
        if set_error != NULL:
            set_error(error_ctx, kind, message)
        return -1


cdef Descriptor new_like(DLTensor* prototype):
    """A fresh C-contiguous array with the type, shape and device of `prototype`; its other fields are not read."""
    cdef DLTensor wanted = prototype[0]
    cdef Runtime* runtime
    cdef Descriptor a
    cdef MemoryBlock block
    wanted.strides = NULL
    wanted.byte_offset = 0
    wanted.data = <void*> 64      # any address: the layout is checked before there is memory
    a = fill(&wanted, DL_SUBBYTE_PADDED)
    a.flags_ |= WRITEABLE
    cdef Py_ssize_t nbytes = size_of(a) * a.itemsize_
    if wanted.device.device_type == kDLCPU:
        block = allocate(nbytes, 64)
        a.block_ = block
        a.base_ = block
        a.data_ = block.address_
    else:
        runtime = runtime_of(wanted.device.device_type)
        if runtime.allocate == NULL:
            raise BufferError(f"DLPack exchange table: no runtime to allocate on {TYPE_NAMES[wanted.device.device_type]}")
        runtime.allocate(a, nbytes, wanted.device)
    return a


cdef int fail(object error) noexcept:
    """Leave `error` pending for the C caller."""
    PyErr_SetObject(type(error), error)
    return -1


cdef DLPackExchangeAPI _table
_table.header.version = DLPackVersion(DLPACK_MAJOR, DLPACK_MINOR)
_table.header.prev_api = NULL
_table.managed_tensor_allocator = _table_allocate
_table.managed_tensor_from_py_object_no_sync = _table_from_py_object
_table.managed_tensor_to_py_object_no_sync = _table_to_py_object
_table.dltensor_from_py_object_no_sync = _table_borrow
_table.current_work_stream = _table_current_stream


cdef object exchange_capsule():
    """The capsule of arrayhub's own table, for the class attribute ``__dlpack_c_exchange_api__``."""
    return PyCapsule_New(&_table, EXCHANGE, NULL)
