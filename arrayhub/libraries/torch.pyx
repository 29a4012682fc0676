"""torch: tensors in and out through its C exchange table, behind the checks that the table leaves out."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport C_CONTIGUOUS, PACKED, WRITEABLE, Descriptor, bare_array, shape_tuple, size_of
from arrayhub._core.device cimport kDLCPU, kDLCUDA
from arrayhub._core.runtime cimport order_consumer
from arrayhub._core.shared cimport is_done, mark_done
from arrayhub.adapters cimport dlpack
from arrayhub.adapters.dlpack_abi cimport DL_READ_ONLY, DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor
from arrayhub.libraries cimport torch_states, torch_storage
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, remember_stream
from arrayhub.runtimes.host cimport for_host_library

from arrayhub._core.errors import PASSES_ON

cdef int _found = 0             # whether what follows is set
cdef DLPackExchangeAPI* _table = NULL
cdef object _torch = None
cdef object _tensor_type = None
cdef object _parameter_type = None


cdef DLPackExchangeAPI* table() except? NULL:
    """torch's exchange table, looked up once; NULL for a torch from before it had one."""
    if not is_done(&_found):
        find_torch()
    return _table


cdef int find_torch() except -1:
    global _table, _torch, _tensor_type, _parameter_type
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"torch cannot be imported ({error}); install it with: pip install torch") from error
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(torch.Tensor)
    tensor_type, parameter_type = torch.Tensor, torch.nn.Parameter
    with cython.critical_section(torch):
        if not is_done(&_found):
            _table, _torch, _tensor_type, _parameter_type = api, torch, tensor_type, parameter_type
            mark_done(&_found)
    return 0


cdef Descriptor parse(object obj, object stream):
    """An array on a tensor.

    The table exports silently what ``Tensor.__dlpack__`` refuses or resolves: tensors that require a gradient, and the
    conjugate and the negative bit, where memory holds other values than the tensor shows. They are refused here, each
    with the call that helps.

    Raises
    ------
    BufferError
        The tensor's memory does not hold its values, or it has no memory of its own.
    """
    cdef DLPackExchangeAPI* api = table()
    cdef object cls = type(obj)
    if cls is not _tensor_type and cls is not _parameter_type:
        return parse_by_dlpack(obj, stream)
    cdef int plain = torch_states.plain_tensor(obj)
    if plain == torch_states.NOT_SURE:
        refuse_unsafe(obj)
        kind = obj.device.type
        if kind == "cuda":
            torch_states.look_at_cuda(obj.device)
        if kind != "cpu" and (kind != "cuda" or stream is not None):
            return parse_slowly(obj, stream)
    elif plain == torch_states.ON_CUDA and stream is not None:
        return parse_slowly(obj, stream)
    if api == NULL or api.dltensor_from_py_object_no_sync == NULL:
        return parse_slowly(obj, stream)
    return parse_by_table(obj, plain, api)


cdef Descriptor parse_by_table(object obj, int plain, DLPackExchangeAPI* api):
    """By a borrowed tensor, with the storage held. Nothing between the two runs code that could change the tensor, the
    collector included, so the array is made first."""
    cdef DLTensor tensor
    cdef Descriptor a = bare_array()
    shown = obj
    if plain == torch_states.NOT_SURE or not torch_storage.hold(a, obj, plain == torch_states.ON_HOST):
        shown = detached(obj)
        dlpack.hold_object(a, shown)
    if api.dltensor_from_py_object_no_sync(<PyObject*> shown, &tensor) != 0:
        raise pending_as_tensor_error(obj)
    if tensor.data == NULL and obj.numel() != 0:
        raise tensor_error(obj, "its address is 0")
    if tensor.dtype.bits < 8 or tensor.dtype.lanes != 1:    # a borrowed tensor has no flag to say if they are packed
        return parse_slowly(obj, None)
    dlpack.describe_borrowed(a, obj, &tensor)
    if a.device_.device_type == kDLCUDA:
        dlpack.note_work_stream(a, api)
    return a


cdef object detached(object tensor):
    """A tensor on the same storage that nobody else has, so that nobody can give it another."""
    try:
        return tensor.detach()
    except PASSES_ON:
        raise
    except Exception as error:     # transforms and modes of torch's refuse in many ways
        raise tensor_error(tensor, error) from error


cdef object pending_as_tensor_error(object tensor):
    """What torch's table reported, as the error to be raised."""
    try:
        dlpack.raise_pending("torch's dltensor_from_py_object_no_sync")
    except PASSES_ON:
        raise
    except Exception as error:
        return tensor_error(tensor, error)


cdef Descriptor parse_by_dlpack(object obj, object stream):
    """The same by ``__dlpack__``, asking for each state by name: for instances of subclasses, which may redefine
    everything, and for who switches the fast ways off."""
    table()
    try:
        refuse_unsafe(obj)
    except BufferError:
        raise
    except PASSES_ON:
        raise
    except Exception as error:     # whatever its __torch_function__ raises
        raise tensor_error(obj, error) from error
    return parse_slowly(obj, stream)


cdef Descriptor parse_slowly(object obj, object stream):
    """By ``__dlpack__``; torch's own errors come as one line each."""
    cdef Descriptor a
    try:
        a = dlpack.parse(obj.detach(), stream)      # of a tensor that nobody else has: see `detached`
    except PASSES_ON:
        raise
    except Exception as error:
        raise tensor_error(obj, error) from error
    if stream is None and a is not None and a.device_.device_type == kDLCUDA:
        note_current_stream(a, table())
    return a


cdef int note_current_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Remember the stream that is torch's current one now: a tensor that is asked later speaks of the one current then."""
    if api == NULL or api.current_work_stream == NULL:
        return remember_stream(a, _torch.cuda.current_stream(a.device_.device_id))
    return dlpack.note_work_stream(a, api)


# Tensors that have no memory that could be shown, and what helps: a look at the tensor, and the advice.
_WITHOUT_MEMORY = (
    (lambda torch, x: x.is_nested, "it is nested; call x.to_padded_tensor(0.0), or take x.unbind() one by one"),
    (lambda torch, x: x.is_quantized, "it is quantised; call x.int_repr() or x.dequantize()"),
    (lambda torch, x: torch._C._functorch.is_functorch_wrapped_tensor(x),
     "it is one that torch.func transforms (vmap, grad, ...); call arrayhub outside the transformed function"),
    (lambda torch, x: torch._is_functional_tensor(x), "it is functionalised; call arrayhub outside functionalize()"),
    (lambda torch, x: x._is_zerotensor(), "it is a zero tensor without memory; call x.clone()"),
    (lambda torch, x: isinstance(x, torch._subclasses.FakeTensor), "it is fake, and has no data"),
    (lambda torch, x: x.untyped_storage().nbytes() == 0, "its storage was resized to nothing"),
)


cdef object tensor_error(object tensor, object reason):
    """The BufferError for a tensor that cannot be had, which says what helps where that is known."""
    torch = _torch
    for applies, advice in _WITHOUT_MEMORY:
        try:
            if applies(torch, tensor):
                return BufferError(f"torch: the tensor has no memory to show: {advice}")
        except PASSES_ON:
            raise
        except Exception:      # a private name of another torch, or a subclass that refuses the question
            continue
    lines = str(reason).splitlines() or [""]
    return BufferError(f"torch: {type(tensor).__name__} cannot be shown as memory ({lines[0]}); accepted: dense tensors")


# What makes another layout dense.
_DENSE = {"torch.jagged": "arrayhub.asnested(x) instead, or x.values() or x.to_padded_tensor(0.0)"}


cdef int refuse_unsafe(object tensor) except -1:
    if tensor.requires_grad:
        raise BufferError("torch: requires_grad is True; accepted: tensors outside autograd. Call x.detach() first")
    if tensor.is_conj():
        raise BufferError("torch: is_conj() is True, so memory holds the conjugate values; call x.resolve_conj() first")
    if tensor.is_neg():
        raise BufferError("torch: is_neg() is True, so memory holds the negated values; call x.resolve_neg() first")
    kind = tensor.layout
    if kind is not _torch.strided:
        call = _DENSE.get(str(kind), "x.to_dense()")
        raise BufferError(f"torch: layout is {kind}; accepted: torch.strided. Call {call} first")
    if tensor.is_meta:
        raise BufferError("torch: the tensor is on device 'meta', which has no memory; accepted: tensors with data")
    return 0


cdef int order_current_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Make torch's current stream wait for the producer's work, as ``torch.from_dlpack`` would."""
    cdef void* stream = NULL
    if api == NULL or api.current_work_stream == NULL:
        return order_consumer(a, _torch.cuda.current_stream(a.device_.device_id))
    if api.current_work_stream(kDLCUDA, a.device_.device_id, &stream) != 0:
        dlpack.raise_pending("torch's current_work_stream")
    return order_consumer(a, <intptr_t> stream if stream != NULL else <intptr_t> LEGACY_STREAM)


cdef object emit(Descriptor a, bint allow_readonly):
    """A ``torch.Tensor`` on the memory of `a`.

    Raises
    ------
    BufferError
        Read-only memory (torch cannot say so) unless `allow_readonly`; negative strides, at which torch ends the process;
        memory, types or strides that torch does not have.
    """
    cdef DLManagedTensorVersioned* managed
    cdef void* result = NULL
    cdef DLPackExchangeAPI* api = table()
    # Compact writable memory of the host, the usual case, is nothing that torch could not take, if it is not complex128.
    if (a.device_.device_type != kDLCPU or a.flags_ & (C_CONTIGUOUS | WRITEABLE) != C_CONTIGUOUS | WRITEABLE
            or a.dl_dtype_.bits == 128):
        a = acceptable(a, allow_readonly, api)
    if not surely_known(a):
        check_empty(a)
    managed = dlpack.new_managed(a)
    managed.flags &= ~<unsigned long long> DL_READ_ONLY
    # The table neither takes over nor deletes a managed tensor whose type it refuses; a capsule frees what nobody took.
    if api == NULL or not surely_known(a):
        return by_capsule(a, dlpack.capsule_of(managed))
    if api.managed_tensor_to_py_object_no_sync(managed, &result) != 0:
        raise pending_as_refusal(a)
    tensor = <object> <PyObject*> result
    Py_DECREF(tensor)
    return tensor


cdef Descriptor acceptable(Descriptor a, bint allow_readonly, DLPackExchangeAPI* api):
    """`a` as torch takes it, or the reason why it does not; in the order of torch's current stream."""
    cdef int k
    a = for_host_library(a, "torch", kDLCUDA)
    if not allow_readonly and not a.flags_ & WRITEABLE:
        raise BufferError(
            "torch: the memory is read-only, and torch has no read-only tensors; pass copy=True, or allow_readonly=True"
            " and do not write"
        )
    if not a.flags_ & PACKED:
        for k in range(a.nd_):
            if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
                raise BufferError("torch: negative strides, which torch does not have; pass copy=True")
    check_start(a)
    if a.device_.device_type == kDLCUDA:
        order_current_stream(a, api)
    return a


cdef int check_start(Descriptor a) except -1:
    """Refuse element zero where torch's code for the type would end the process: its vector instructions ask for whole
    complex128 numbers on 16-byte boundaries, and a CUDA kernel for every element on a multiple of its size."""
    cdef size_t needed = a.itemsize_ if a.device_.device_type == kDLCUDA else 16 if a.dl_dtype_.bits == 128 else 1
    if needed > 1 and <size_t> a.data_ % needed != 0 and size_of(a) != 0:
        raise BufferError(f"torch: the elements start at address {<size_t> a.data_:#x}; accepted: {needed}-byte"
                          " boundaries. Pass copy=True")
    return 0


cdef int check_empty(Descriptor a) except -1:
    """Refuse an array without elements whose lengths are beyond what torch counts with: it calls the deleter and then
    leaves the capsule, which calls it again."""
    cdef Py_ssize_t total = a.itemsize_
    cdef int k
    if size_of(a) != 0 or a.flags_ & PACKED:
        return 0
    for k in range(a.nd_):
        if a.shape_[k] > 1 and layout.checked_mul(total, a.shape_[k], &total):
            raise BufferError(f"torch: the lengths {shape_tuple(a)} of an array without elements overflow there; pass an"
                              " array whose other lengths stay below 2**63 bytes in all")
    return 0


cdef object by_capsule(Descriptor a, object capsule):
    try:
        return _torch.from_dlpack(capsule)
    except PASSES_ON:
        raise
    except Exception as error:       # RuntimeError, BufferError, AssertionError: by the version and the device
        raise torch_error(a, error) from None


cdef object pending_as_refusal(Descriptor a):
    """What torch's table reported, as the error to be raised."""
    try:
        dlpack.raise_pending("torch's managed_tensor_to_py_object_no_sync")
    except PASSES_ON:
        raise
    except (BufferError, RuntimeError) as error:
        return torch_error(a, error)


cdef object torch_error(Descriptor a, object error):
    """A BufferError with the first line of torch's own message, which goes on with a backtrace through its C++."""
    return BufferError(
        f"torch: it takes no elements of type {dtypes.by_typenum(a.typenum_).name.decode()}"
        f" ({str(error).partition(chr(10))[0]}); convert them first"
    )


cdef bint surely_known(Descriptor a) noexcept:
    """Whether every torch that has a table has the element type: ints, floats, complex numbers, bool and bfloat16."""
    return a.dl_dtype_.code in (0, 1, 2, 4, 5, 6) and a.dl_dtype_.bits >= 8
