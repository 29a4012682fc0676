"""torch: import and export of tensors.

An ordinary dense tensor is imported through torch's C exchange table, every other tensor through ``__dlpack__``.
Tensors are exported through the table, after checks that the table omits. docs/private_names.md lists the private names
used here.
"""

from time import perf_counter

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    PACKED,
    WRITEABLE,
    Descriptor,
    bare_array,
    hold_object,
    kDLCPU,
    kDLCUDA,
    name_of_elements,
    shape_tuple,
    size_of,
)
from arrayhub._core.cpython.atomics cimport is_done, mark_done
from arrayhub._core.cpython.exceptions cimport raise_on, take
from arrayhub._core.runtime cimport device_name, order_consumer
from arrayhub.adapters cimport dlpack
from arrayhub.adapters.dlpack_abi cimport (
    DL_READ_ONLY,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLTensor,
    kDLBfloat,
    kDLBool,
    kDLComplex,
    kDLFloat,
    kDLInt,
    kDLUInt,
)
from arrayhub.libraries.known cimport library
from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    PER_THREAD_STREAM,
    refuse_without_device,
    remember_handle,
    stream_handle,
)
from arrayhub.runtimes.host cimport for_host_library

from arrayhub._core import tracing
from arrayhub._core.descriptor import Device
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import Refusal, first_line, needed

cdef extern from "Python.h":
    PyObject* PyObject_CallOneArg(object function, object argument) noexcept
    object call "PyObject_CallOneArg"(object function, object argument)

# From CPython 3.12 on, the garbage collector runs only between bytecode instructions, not during an allocation.
cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030C0000
    #define arrayhub_pause_collector() PyGC_Disable()
    #define arrayhub_resume_collector() PyGC_Enable()
    #else
    #define arrayhub_pause_collector() 0
    #define arrayhub_resume_collector() 0
    #endif
    /* Read an attribute by its descriptor, without a lookup of its name. */
    #define arrayhub_get(descriptor, object) Py_TYPE(descriptor)->tp_descr_get(descriptor, object, (PyObject *)Py_TYPE(object))
    """
    int arrayhub_pause_collector() noexcept
    int arrayhub_resume_collector() noexcept
    object get "arrayhub_get"(object descriptor, object tensor)

cdef int torch_found = 0
cdef DLPackExchangeAPI* exchange_table = NULL
cdef object _torch = None, _tensor_type = None, _parameter_type = None, _storage_type = None
cdef object _requires_grad = None, _is_conj = None, _is_neg = None, _untyped_storage = None
cdef object _uint8 = None, _int8 = None


# --------------------------------------------------------------------------------------------------------------- import


cdef int find_torch() except -1:
    """Import torch, and look up its exchange table and the objects used below. Only the first call has an effect."""
    global exchange_table, _torch, _tensor_type, _parameter_type, _storage_type
    global _requires_grad, _is_conj, _is_neg, _untyped_storage, _uint8, _int8
    torch = needed("torch", "to create its tensors")
    tensor_type, parameter_type, storage_type = torch.Tensor, torch.nn.Parameter, torch.UntypedStorage
    is_conj, is_neg, untyped_storage = tensor_type.is_conj, tensor_type.is_neg, tensor_type.untyped_storage
    uint8, int8 = torch.uint8, torch.int8
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(tensor_type)
    with cython.critical_section(torch):
        if not is_done(&torch_found):
            exchange_table, _torch, _tensor_type = api, torch, tensor_type
            _parameter_type, _storage_type = parameter_type, storage_type
            _requires_grad = tensor_type.requires_grad
            _is_conj, _is_neg, _untyped_storage = is_conj, is_neg, untyped_storage
            _uint8, _int8 = uint8, int8
            mark_done(&torch_found)
    return 0


cdef inline DLPackExchangeAPI* table() except? NULL:
    """Return torch's exchange table, or NULL if torch does not have an exchange table."""
    if not is_done(&torch_found):
        find_torch()
    return exchange_table


cdef Descriptor parse(object obj, object stream):
    """Import a tensor without a copy."""
    cdef DLPackExchangeAPI* api = table()
    cdef Descriptor a = None
    cls = type(obj)
    if api != NULL and api.dltensor_from_py_object_no_sync != NULL and (cls is _tensor_type or cls is _parameter_type):
        try:
            a = parse_by_table(obj, stream, api)
        except Exception:      # parse_by_dlpack raises an error that names a remedy
            pass
    return parse_by_dlpack(obj, stream) if a is None else a


cdef Descriptor parse_by_table(object obj, object stream, DLPackExchangeAPI* api):
    """Import an ordinary dense tensor through the exchange table. Return None for any other tensor.

    The table exports tensors that require a gradient, and ignores the conjugate and the negative bit, so these states
    are checked here. The descriptor keeps the storage alive. The table's owning call would keep only the tensor alive,
    whose storage ``tensor.data = ...``, ``tensor.set_(...)``, ``module.half()`` and ``swap_tensors`` can replace.
    """
    cdef DLTensor tensor
    if get(_requires_grad, obj) is not False or call(_is_neg, obj) is not False:
        return None
    cdef Descriptor a = bare_array()
    storage = borrow(api, obj, &tensor)
    if type(storage) is not _storage_type or not is_simple(&tensor, stream):
        return None
    if tensor.data == NULL and obj.numel() != 0:      # torch has freed the memory
        return None
    hold_object(a, storage)
    dlpack.describe(a, &tensor, obj, 0)
    if tensor.dtype.code == kDLComplex and _is_conj(obj) is not False:
        return None
    if tensor.dtype.bits == 8 and tensor.dtype.code in (kDLInt, kDLUInt):
        refuse_parts_of_bytes(obj)
    if a.device_.device_type == kDLCUDA:
        dlpack.note_work_stream(a, api)
    return a


cdef object borrow(DLPackExchangeAPI* api, object tensor, DLTensor* out):
    """Fill `out` from a tensor, and return the tensor's storage.

    The pointers in `out` are valid until the tensor changes. On CPython 3.11, the garbage collector is disabled during both
    calls of torch. Otherwise, it may run when torch creates the Python object of the storage, and a finalizer could replace
    the storage before torch fills `out`.
    """
    cdef int enabled = arrayhub_pause_collector()
    cdef PyObject* storage = PyObject_CallOneArg(_untyped_storage, tensor)
    cdef bint failed = storage == NULL or api.dltensor_from_py_object_no_sync(<PyObject*> tensor, out) != 0
    if enabled:
        arrayhub_resume_collector()
    if storage == NULL:
        raise_on()
    held = take(storage)
    if failed:
        dlpack.raise_pending("torch's dltensor_from_py_object_no_sync")
    return held


cdef inline bint is_simple(const DLTensor* tensor, object stream) noexcept:
    """Return whether the exchange table describes a tensor completely.

    A borrowed DLTensor lacks a flag for packed elements, and the exchange table does not order streams.
    """
    cdef int kind = tensor.device.device_type
    return (dtypes.bits_of(tensor.dtype) >= 8
            and (kind == kDLCPU or kind == kDLCUDA and stream is None))


cdef Descriptor parse_by_dlpack(object obj, object stream):
    """Import any tensor through ``__dlpack__``, after checking each state through torch's documented methods.

    This path is used for subclasses, which may override any method, for tensors that `parse_by_table` does not import, and for
    all tensors if torch does not have an exchange table or fast paths are disabled.
    """
    cdef Descriptor a
    table()
    try:
        refuse_unsafe(obj)
    except BufferError:
        raise
    except Exception as error:     # raised by the __torch_function__ of a subclass
        raise tensor_error(obj, error) from error
    try:
        # Only this function refers to the detached tensor, so no other code can replace the tensor's storage.
        a = dlpack.parse(obj.detach(), stream)
    except Exception as error:     # transforms, modes and subclasses raise errors of many types
        raise tensor_error(obj, error) from error
    if a is not None and a.itemsize_ == 1:
        refuse_parts_of_bytes(obj)
    if stream is None and a is not None and a.device_.device_type == kDLCUDA:
        note_current_stream(a, table())
    return a


cdef int note_current_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Store torch's current stream as the producer's stream, because another stream may be current at the export."""
    if api == NULL or api.current_work_stream == NULL:
        stream = _torch.cuda.current_stream(a.device_.device_id)
        return remember_handle(a, stream_handle(stream), stream)
    return dlpack.note_work_stream(a, api)


# --------------------------------------------------------------------------------------------------------------- export


cdef object emit(Descriptor a, bint copied, bint allow_readonly):
    """Export `a` as a ``torch.Tensor`` that shares its memory."""
    cdef DLManagedTensorVersioned* managed
    cdef void* result = NULL
    cdef DLPackExchangeAPI* api = table()
    # In the usual case, compact writeable host memory, torch accepts all arrays except unaligned complex128.
    if (a.device_.device_type != kDLCPU or a.flags_ & (C_CONTIGUOUS | WRITEABLE) != C_CONTIGUOUS | WRITEABLE
            or dtypes.bits_of(a.dl_dtype_) == 128):
        a = acceptable(a, allow_readonly, api)
    if not surely_known(a):
        check_elements(a)
    managed = dlpack.new_managed(a)
    managed.flags &= ~<unsigned long long> DL_READ_ONLY
    # If the table rejects a type, the managed tensor is neither consumed nor deleted. A type that the table may reject is
    # therefore exported through a capsule, which frees the managed tensor.
    if api == NULL or not surely_known(a):
        try:
            return _torch.from_dlpack(dlpack.capsule_of(managed))
        except Exception as error:       # RuntimeError, BufferError or AssertionError, depending on the version and the device
            raise torch_error(a, error) from None
    if api.managed_tensor_to_py_object_no_sync(managed, &result) != 0:
        try:
            dlpack.raise_pending("torch's managed_tensor_to_py_object_no_sync")
        except (BufferError, RuntimeError) as error:
            raise torch_error(a, error) from None
    tensor = <object> <PyObject*> result
    Py_DECREF(tensor)
    return tensor


cdef object copy_host(Descriptor a):
    """Return a tensor that torch copies, with several threads, from compact host memory.

    Return None for other memory, and if torch does not copy it: because memory is exhausted, or in a mode of torch such as
    FakeTensorMode.
    """
    if (a.device_.device_type != kDLCPU or not a.flags_ & C_CONTIGUOUS or dtypes.bits_of(a.dl_dtype_) == 128
            or not surely_known(a)):
        return None
    since = perf_counter() if tracing.open_traces else None
    view = emit(a, False, True)
    try:
        tensor = view.clone()
    except Exception:      # FakeTensorMode raises AssertionError, and other modes may raise any error
        return None
    if since is not None:
        tracing.report("copy", "torch", "cpu", "cpu", a.nbytes, perf_counter() - since)
    return tensor


cdef Descriptor acceptable(Descriptor a, bint allow_readonly, DLPackExchangeAPI* api):
    """Return `a`, or a view of its memory on a device that torch supports.

    For CUDA memory, make torch's current stream wait for the producer's work. Raise BufferError if torch does not support the
    memory.
    """
    a = for_host_library(a, "torch", kDLCUDA)
    check_memory(a, allow_readonly)
    if a.device_.device_type == kDLCUDA:
        order_current_stream(a, api)
    return a


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that torch cannot share: read-only memory, negative strides, and some addresses."""
    cdef int k
    a = for_host_library(a, "torch", kDLCUDA)
    refuse_without_device(a, "torch")
    if not allow_readonly and not a.flags_ & WRITEABLE:
        raise Refusal("torch", "the memory is read-only, and torch does not have read-only tensors",
                      "writable memory, or allow_readonly=True if nothing writes to the tensor")
    if not a.flags_ & PACKED:
        for k in range(a.nd_):
            if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
                raise Refusal("torch", "negative strides are not supported")
    return check_start(a)


# Element types that torch's from_dlpack accepts.
cdef frozenset _ELEMENTS = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
))


cdef int check_elements(Descriptor a) except -1:
    """Raise Refusal for an element type that torch does not have, and for some empty arrays."""
    dlpack.check_exportable(a)
    name = name_of_elements(a)
    if name not in _ELEMENTS:
        raise Refusal("torch", f"elements of type {name} are not supported")
    return check_empty(a)


cdef int check_start(Descriptor a) except -1:
    """Reject an address for which torch would end the process.

    torch's vector instructions require 16-byte alignment for complex128, and its CUDA kernels require element-size
    alignment for every type.
    """
    cdef size_t boundary = a.itemsize_ if a.device_.device_type == kDLCUDA else 16 if dtypes.bits_of(a.dl_dtype_) == 128 else 1
    if boundary > 1 and <size_t> a.data_ % boundary != 0 and size_of(a) != 0:
        raise Refusal("torch", f"the elements start at address {<size_t> a.data_:#x}", f"{boundary}-byte boundaries")
    return 0


cdef int check_empty(Descriptor a) except -1:
    """Reject an empty array whose lengths overflow in torch.

    torch would call the deleter without consuming the capsule, which would then call the deleter again.
    """
    cdef Py_ssize_t total = a.itemsize_
    cdef int k
    if size_of(a) != 0 or a.flags_ & PACKED:
        return 0
    for k in range(a.nd_):
        if a.shape_[k] > 1 and layout.checked_mul(total, a.shape_[k], &total):
            raise Refusal("torch", f"the lengths {shape_tuple(a)} of an empty array overflow in torch",
                          "lengths whose product, without zeros, is less than 2**63 bytes")
    return 0


cdef int order_current_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Make torch's current stream wait for the producer's work, as ``torch.from_dlpack`` would."""
    cdef void* stream = NULL
    if api == NULL or api.current_work_stream == NULL:
        return order_consumer(a, _torch.cuda.current_stream(a.device_.device_id))
    if api.current_work_stream(kDLCUDA, a.device_.device_id, &stream) != 0:
        dlpack.raise_pending("torch's current_work_stream")
    return order_consumer(a, <intptr_t> stream if stream != NULL else <intptr_t> LEGACY_STREAM)


cdef bint surely_known(Descriptor a) noexcept:
    """Return whether every torch release with an exchange table supports the element type.

    These types are integers, floats, complex numbers, booleans and bfloat16 of at least one byte, without vector lanes.
    """
    return (a.dl_dtype_.code in (kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex, kDLBool)
            and a.dl_dtype_.bits == 8 * a.itemsize_)


cdef object torch_error(Descriptor a, object error):
    """Build a BufferError with the first line of torch's message, which continues with a C++ backtrace."""
    return Refusal(
        "torch",
        f"elements of type {dtypes.by_typenum(a.typenum_).name.decode()} are not supported ({first_line(error)})",
    )


# ----------------------------------------------------------------------------------------------------------- new memory


def allocate(Py_ssize_t nbytes, Descriptor model):
    """Return new memory from torch's allocator for the device of `model`, as an array of bytes.

    CUDA memory is allocated by torch's caching allocator, on the stream of `model` if this stream is known, else on torch's
    current stream. After its release, torch reuses the memory in the order of the same stream.
    """
    cdef Descriptor fresh
    table()      # imports torch
    stream = stream_of(model) if model.device_.device_type == kDLCUDA else None
    if stream is None:
        return new_memory(nbytes, model)
    context = _torch.cuda.stream(stream)
    context.__enter__()      # no `with`, which requires a traceback that a MemoryError may lack
    try:
        fresh = new_memory(nbytes, model)
    finally:
        context.__exit__(None, None, None)
    fresh.producer_ = stream
    return fresh


cdef object stream_of(Descriptor model):
    """Return the stream of `model` as a torch stream.

    Return None if the stream is unknown, is the per-thread default stream, or is torch's current stream.
    """
    cdef int device = model.device_.device_id
    cdef intptr_t current = stream_handle(_torch.cuda.current_stream(device)), own = <intptr_t> model.stream_
    if own == 0 or own == current or own == PER_THREAD_STREAM:      # torch cannot select the per-thread stream
        return None
    if own == LEGACY_STREAM:
        return _torch.cuda.default_stream(device)
    return _torch.cuda.ExternalStream(own, device=device)


cdef Descriptor new_memory(Py_ssize_t nbytes, Descriptor model):
    """Return new memory, allocated on torch's current stream."""
    device = f"cuda:{model.device_.device_id}" if model.device_.device_type == kDLCUDA else "cpu"
    try:
        tensor = _torch.empty(nbytes, dtype=_uint8, device=device)
    except RuntimeError as error:      # torch.OutOfMemoryError, or for host memory RuntimeError itself
        reason = first_line(error)
        text = f"torch: cannot allocate {nbytes} bytes on {device_name(model)} ({reason})"
        raise (MemoryError(text) if "memory" in reason.lower() else BufferError(text)) from error
    return parse(tensor, None)


# --------------------------------------------------------------------------------------------------------------- errors


cdef int refuse_unsafe(object tensor) except -1:
    """Raise BufferError for a state that DLPack ignores, or that torch rejects without naming a remedy."""
    if tensor.requires_grad:
        if is_uninitialized(tensor):
            raise Refusal("torch", "requires_grad is True", "tensors outside autograd; call x.materialize(shape), and then"
                          " x.detach()")
        call = ".resolve_conj()" if tensor.is_conj() else ".resolve_neg()" if tensor.is_neg() else ""
        raise Refusal("torch", "requires_grad is True", "tensors outside autograd", f"x.detach(){call}")
    if tensor.is_conj():
        raise Refusal("torch", "is_conj() is True, so memory holds the conjugate values", call="x.resolve_conj()")
    if tensor.is_neg():
        raise Refusal("torch", "is_neg() is True, so memory holds the negated values", call="x.resolve_neg()")
    tensor_layout = tensor.layout
    if tensor_layout is not _torch.strided:
        accepted, call = "torch.strided", "x.to_dense()"
        if tensor_layout is _torch.jagged:
            accepted, call = advice_for_jagged(tensor)
        elif str(tensor_layout).startswith("torch.sparse_"):
            accepted, call = "torch.strided, as of x.to_dense()", "arrayhub.assparse(x)"
        raise Refusal("torch", f"layout is {tensor_layout}", accepted, call)
    if tensor.is_meta:
        raise Refusal("torch", "device is 'meta', without memory; accepted: tensors with data")
    dtype = str(tensor.dtype)
    if dtype.startswith("torch.bits"):
        raise Refusal("torch", f"dtype is {dtype}; accepted: dtypes that DLPack has. Call"
                      f" x.view(torch.uint{8 * tensor.element_size()}) for the bytes")
    return 0


def resolve_lazy_bits(tensor, /):
    """Return a copy of a tensor without lazy conjugate and negative bits, or None for a tensor without these bits."""
    try:
        lazy = tensor.is_conj() or tensor.is_neg()
    except Exception:      # raised by the __torch_function__ of a subclass
        return None
    return tensor.resolve_conj().resolve_neg() if lazy else None


def change_tensor(tensor, dtype, device, /):
    """Return a tensor with elements of `dtype` on `device`, or the tensor itself if nothing changes, as ``tensor.to``."""
    table()
    changes = {}
    if dtype is not None:
        name = requested_dtype(dtype).name
        changes["dtype"] = getattr(_torch, name, None)
        if not isinstance(changes["dtype"], _torch.dtype):
            raise TypeError(f"torch: dtype is {name}, which torch does not have; accepted: types of torch, such as float32")
    if device is not None:
        changes["device"] = str(Device(device))
        if changes["device"].partition(":")[0] not in ("cpu", "cuda"):
            raise BufferError(f"torch: device is {changes['device']}; accepted: cpu and cuda devices")
    try:
        return tensor.to(**changes)
    except (AssertionError, RuntimeError) as error:      # of a quantized tensor, one without memory, or a torch without CUDA
        raise Refusal("torch", first_line(error)) from error


cdef bint is_uninitialized(object tensor) except -1:
    return isinstance(tensor, _torch.nn.parameter.UninitializedTensorMixin)


cdef tuple advice_for_jagged(object tensor):
    """Return what is accepted instead of a jagged tensor, and the call that imports it, or ""."""
    ragged = [axis for axis, length in enumerate(tensor.shape) if not isinstance(length, int)]
    if ragged != [1]:
        return "torch.strided, as of x.to_padded_tensor(0.0)", ""
    has_gaps = tensor.lengths() is not None      # torch does not pad tensors with gaps between their rows
    dense = "x.values()" if has_gaps else "x.values() or x.to_padded_tensor(0.0)"
    return f"torch.strided, as of {dense}", "arrayhub.asnested(x)"


cdef int refuse_parts_of_bytes(object tensor) except -1:
    """Raise BufferError for integers of 1 to 7 bits, which torch's DLPack export describes as 8-bit integers."""
    dtype = tensor.dtype
    if dtype is _uint8 or dtype is _int8:
        return 0
    if str(dtype).partition("int")[2] in ("1", "2", "3", "4", "5", "6", "7"):
        raise Refusal(
            "torch", f"dtype is {dtype}, which torch exports as 8-bit integers; accepted: dtypes of 8 bits or more. Call"
            " x.view(torch.uint8) for the bytes"
        )
    return 0


# States in which a tensor's memory cannot be shared: a predicate, the state, what is accepted, and the call that returns all
# values.
_WITHOUT_MEMORY = (
    (lambda torch, x: isinstance(x, torch.masked.MaskedTensor), "it has a mask",
     "x.to_tensor(value), or x.get_data(), which ignores the mask", ""),
    (lambda torch, x: is_uninitialized(x), "it does not have a shape yet", "x.materialize(shape)", ""),
    (lambda torch, x: x.is_nested, "it is nested", "x.to_padded_tensor(0.0), or x.unbind() for its parts", ""),
    (lambda torch, x: x.is_quantized, "it is quantized", "x.int_repr() or x.dequantize()", "x.dequantize()"),
    (lambda torch, x: isinstance(x, torch.distributed.tensor.DTensor), "it is distributed", "x.to_local()", ""),
    (lambda torch, x: x._is_zerotensor(), "it is a zero tensor without memory", "", "x.clone()"),
    (lambda torch, x: x.untyped_storage().nbytes() == 0, "its storage was resized to 0 bytes", "", ""),
)


cdef object tensor_error(object tensor, object reason):
    """Return the BufferError for a tensor that torch does not export, with a remedy if a remedy is known."""
    for applies, state, accepted, call in _WITHOUT_MEMORY:
        if is_in_state(applies, tensor):
            return Refusal("torch", f"cannot share the tensor's memory: {state}", accepted, call)
    return Refusal(
        "torch", f"cannot share the memory of a {type(tensor).__name__} ({first_line(reason)}); accepted: dense tensors"
    )


cdef bint is_in_state(object applies, object tensor) except -1:
    """Return whether the predicate of a row of `_WITHOUT_MEMORY` is true for a tensor, or False if the predicate raises."""
    try:
        return applies(_torch, tensor)
    except Exception:      # raised by a subclass
        return False


library("torch").set_importer(0, parse, parse_by_dlpack)
library("torch").set_exporter(emit, check_memory, check_elements, NULL, copy_host)
