"""torch: how its tensors come in, through its C exchange table, behind the checks that the table leaves out.

In five parts: the way in, what a refusal says, which state a tensor is in, its storage, and how torch's undocumented fields
are found. The way out is in `torch_emit`; what torch reads of an array without arrayhub is in `torch_as_consumer`.
"""

import re

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from arrayhub._core.descriptor cimport Descriptor, bare_array, hold_resource
from arrayhub._core.device cimport kDLCUDA
from arrayhub._core.memory cimport EXTERNAL, describe_release
from arrayhub._core.cpython.exceptions cimport put_aside, put_back
from arrayhub._core.cpython.atomics cimport is_done, mark_done
from arrayhub.adapters cimport dlpack
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI, DLTensor, kDLInt, kDLUInt
from arrayhub.runtimes.cuda cimport remember_handle, stream_handle

from arrayhub._core.errors import PASSES_ON, first_line, needed

cdef object _torch = None
cdef object _tensor_type = None
cdef object _parameter_type = None
cdef object _uint8 = None
cdef object _int8 = None


# ----------------------------------------------------------------------------------------------------------- the way in


cdef int find_torch() except -1:
    """Import torch and set what `table` gives, and what this module needs of torch, once."""
    global exchange_table, _torch, _tensor_type, _parameter_type, _uint8, _int8
    torch = needed("torch", "for its tensors")
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(torch.Tensor)
    tensor_type, parameter_type = torch.Tensor, torch.nn.Parameter
    with cython.critical_section(torch):
        if not is_done(&torch_found):
            exchange_table, _torch, _tensor_type, _parameter_type = api, torch, tensor_type, parameter_type
            _uint8, _int8 = torch.uint8, torch.int8
            mark_done(&torch_found)
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
    cdef int plain = plain_tensor(obj)
    if plain == NOT_SURE:
        refuse_unsafe(obj)
        kind = obj.device.type
        if kind == "cuda":
            look_at_cuda(obj.device)
        if kind != "cpu" and (kind != "cuda" or stream is not None):
            return parse_slowly(obj, stream)
    elif plain == ON_CUDA and stream is not None:
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
    if plain == NOT_SURE or not hold(a, obj, plain == ON_HOST):
        shown = detached(obj)
        dlpack.hold_object(a, shown)
    if api.dltensor_from_py_object_no_sync(<PyObject*> shown, &tensor) != 0:
        raise pending_as_tensor_error(obj)
    if tensor.data == NULL and obj.numel() != 0:
        raise tensor_error(obj, "its address is 0")
    if tensor.dtype.bits < 8 or tensor.dtype.lanes != 1:    # a borrowed tensor has no flag to say if they are packed
        return parse_slowly(obj, None)
    if tensor.dtype.bits == 8 and tensor.dtype.code in (kDLInt, kDLUInt):
        refuse_parts_of_bytes(obj)
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
    if a is not None and a.itemsize_ == 1:
        refuse_parts_of_bytes(obj)
    if stream is None and a is not None and a.device_.device_type == kDLCUDA:
        note_current_stream(a, table())
    return a


cdef int note_current_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Remember the stream that is torch's current one now: a tensor that is asked later speaks of the one current then."""
    if api == NULL or api.current_work_stream == NULL:
        stream = _torch.cuda.current_stream(a.device_.device_id)
        return remember_handle(a, stream_handle(stream), stream)
    return dlpack.note_work_stream(a, api)


# -------------------------------------------------------------------------------------------------- what a refusal says


cdef int refuse_unsafe(object tensor) except -1:
    if tensor.requires_grad:
        without = "x.materialize(shape), and then " if is_uninitialised(tensor) else ""
        raise BufferError(f"torch: requires_grad is True; accepted: tensors outside autograd. Call {without}x.detach() first")
    if tensor.is_conj():
        raise BufferError("torch: is_conj() is True, so memory holds the conjugate values; call x.resolve_conj() first")
    if tensor.is_neg():
        raise BufferError("torch: is_neg() is True, so memory holds the negated values; call x.resolve_neg() first")
    kind = tensor.layout
    if kind is not _torch.strided:
        call = jagged_call(tensor) if kind is _torch.jagged else "x.to_dense()"
        raise BufferError(f"torch: layout is {kind}; accepted: torch.strided. Call {call} first")
    if tensor.is_meta:
        raise BufferError("torch: the tensor is on device 'meta', which has no memory; accepted: tensors with data")
    return 0


cdef bint is_uninitialised(object tensor) except -1:
    return isinstance(tensor, _torch.nn.parameter.UninitializedTensorMixin)


cdef str jagged_call(object tensor):
    """What helps with a jagged tensor, as it is laid out."""
    ragged = [axis for axis, length in enumerate(tensor.shape) if not isinstance(length, int)]
    if ragged != [1]:
        return "x.to_padded_tensor(0.0)"
    if tensor.lengths() is not None:      # there are elements between its rows, with which torch pads nothing
        return "arrayhub.asnested(x) instead, or x.values()"
    return "arrayhub.asnested(x) instead, or x.values() or x.to_padded_tensor(0.0)"


cdef int refuse_parts_of_bytes(object tensor) except -1:
    """Refuse integers of 1 to 7 bits, of which torch keeps each in a byte, or several: DLPack has them as bytes."""
    dtype = tensor.dtype
    if dtype is _uint8 or dtype is _int8:
        return 0
    if str(dtype).partition("int")[2] in ("1", "2", "3", "4", "5", "6", "7"):
        raise BufferError(f"torch: dtype is {dtype}, and torch shows such elements as whole bytes; accepted: what they are kept"
                          " in, as x.view(torch.uint8)")
    return 0


# Tensors that have no memory that could be shown, and what helps: a look at the tensor, and the advice.
_WITHOUT_MEMORY = (
    (lambda torch, x: isinstance(x, torch.masked.MaskedTensor),
     "it has a mask; call x.to_tensor(value), or x.get_data() to ignore it"),
    (lambda torch, x: is_uninitialised(x), "it has no shape yet; call x.materialize(shape)"),
    (lambda torch, x: x.is_nested, "it is nested; call x.to_padded_tensor(0.0), or take x.unbind() one by one"),
    (lambda torch, x: x.is_quantized, "it is quantised; call x.int_repr() or x.dequantize()"),
    (lambda torch, x: isinstance(x, torch.distributed.tensor.DTensor), "it is distributed; call x.to_local()"),
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
    dtype, call = packed_call(tensor)
    if call is not None:
        return BufferError(
            f"torch: dtype is {dtype}; accepted: dtypes with one number in an element. Call {call}, a view of what it is"
            " kept in"
        )
    return BufferError(
        f"torch: {type(tensor).__name__} cannot be shown as memory ({first_line(reason)}); accepted: dense tensors"
    )


cdef tuple packed_call(object tensor):
    """The dtype of elements that arrayhub's table does not have, and the call that shows their bytes; two None for others."""
    try:
        dtype = str(tensor.dtype)
        if re.match("torch.bits|torch.*_x2$", dtype):
            return dtype, f"x.view(torch.uint{8 * tensor.element_size()})"
    except PASSES_ON:
        raise
    except Exception:      # as above
        pass
    return None, None


cdef object pending_as_tensor_error(object tensor):
    """What torch's table reported, as the error to be raised."""
    try:
        dlpack.raise_pending("torch's dltensor_from_py_object_no_sync")
    except PASSES_ON:
        raise
    except Exception as error:
        told = tensor_error(tensor, error)
    return told


# ------------------------------------------------------------------------------------------- which state a tensor is in

# torch itself decides everything that matters here (conjugate and negative bit, sparse, meta, fake, quantised, nested, wrapped
# by a functional transform, on which device) by one 64-bit word of a tensor, its set of dispatch keys. A tensor whose word
# equals that of a fresh ordinary tensor (one on the host, one on a GPU) is in none of those states, whichever there will be:
# the word is compared whole, not bit by bit. requires_grad is no key. torch keeps what a tensor needs for it behind a pointer
# that is null until the tensor first takes part in autograd. Where that is not null (in every view of a tensor, for one), or
# was not found, torch's own C getter is asked, the one that the attribute calls; it takes longer, above all where a mode of
# torch's redirects it.

cdef enum:                # what `plain_tensor` says
    NOT_SURE = 0
    ON_HOST = 1
    ON_CUDA = 2

cdef uint64_t _plain_keys
cdef int _cuda_looked = 0
cdef uint64_t _cuda_keys = 0     # no tensor has no keys


cdef int plain_tensor(object tensor) except -1:
    """ON_HOST or ON_CUDA where an exact ``torch.Tensor`` or ``Parameter`` is surely in no state that its memory does not
    show and lies there; NOT_SURE where it must be asked state by state."""
    cdef uint64_t keys
    cdef int place
    if not is_done(&_looked):
        look_once()
    if not is_done(&_looked) or not _states_known:
        return NOT_SURE
    keys = key_at(tensor, _keys_at)
    place = ON_HOST if keys == _plain_keys else ON_CUDA if is_done(&_cuda_looked) and keys == _cuda_keys else NOT_SURE
    if place == NOT_SURE or _autograd_at != NOWHERE and key_at(tensor, _autograd_at) == 0:
        return place
    return place if _requires_grad(<PyObject*> tensor, _requires_grad_closure) is False else NOT_SURE


cdef int look_at_cuda(object device) except -1:
    """Learn the word of a plain tensor on a CUDA device, once the first tensor has come from there.

    A sample without elements takes no memory of the device, so this may happen while a graph is captured.
    """
    global _cuda_keys
    cdef uint64_t keys = 0
    if is_done(&_cuda_looked) or not is_done(&_looked) or not _states_known:
        return 0
    try:
        sample = _torch.empty(0, device=device)
        if not (is_ordinary(sample) and sample.device.type == "cuda" and key_at(sample, _keys_at) == keys_of(sample)):
            return 0
        keys = keys_of(sample)
    except PASSES_ON:
        raise
    except Exception:      # as in all_found()
        pass
    with cython.critical_section(_torch):
        if not is_done(&_cuda_looked):
            _cuda_keys = keys
            mark_done(&_cuda_looked)
    return 0


cdef bint is_ordinary(object tensor) except -1:
    """Whether a fresh tensor is what torch makes when no mode or transform of its caller's wraps it."""
    return (type(tensor) is _tensor_type and not _torch.is_inference(tensor) and not _torch._is_functional_tensor(tensor)
            and not _torch._C._functorch.is_functorch_wrapped_tensor(tensor))


# ---------------------------------------------------------------------------------------------------------- its storage

# ``module.half()``, ``tensor.data = ...``, ``tensor.set_(...)`` and ``swap_tensors`` give a tensor new storage, and free the
# old one under whoever held the tensor alone. So a view holds the storage: it adds one to the count of references that torch
# keeps in it, and takes that off again. Where the place of that is not found a detached tensor is held, which costs several
# times as much.
#
# ``resize_`` moves the memory of one and the same storage, which no reference prevents. A storage on the host that is shown is
# therefore marked as not resizable, for good, as ``Tensor.numpy`` does; torch then refuses. On a device, where memory is given
# back by resizing the storage to nothing, it is not. ``share_memory_`` moves memory without asking for the mark.

cdef extern from *:
    """
    /* The lower half counts the references. torch sets the highest bit while a Python object stands for the storage; such
       an object owns one reference, and lives for as long as there are others. So the step from one to two references
       and back is torch's alone: whoever would make it must not do so here. */
    #define ARRAYHUB_HAS_PYOBJECT (UINT64_C(1) << 63)
    #define ARRAYHUB_LEAST(seen) ((seen) & ARRAYHUB_HAS_PYOBJECT ? 2u : 1u)

    static inline int arrayhub_count(void *storage, int up) {
        uint64_t *at = (uint64_t *)((char *)storage + 8), seen = __atomic_load_n(at, __ATOMIC_RELAXED);
        do {
            uint32_t count = (uint32_t)seen;
            if (up ? count < ARRAYHUB_LEAST(seen) : count <= ARRAYHUB_LEAST(seen)) return 0;
        } while (!__atomic_compare_exchange_n(at, &seen, up ? seen + 1 : seen - 1, 1, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
        return 1;
    }
    """
    bint arrayhub_count(void* storage, bint up) noexcept nogil


cdef bint hold(Descriptor a, object tensor, bint on_host) except -1:
    """Make `a` hold the storage of a tensor of which `plain_tensor` is sure; False where that cannot be done here."""
    if not is_done(&_looked) or not _storage_known:
        return False
    cdef void* storage = storage_of(tensor)
    if storage == NULL or not arrayhub_count(storage, True):
        return False
    hold_resource(a, EXTERNAL, storage, _release)
    if on_host and mark_of(storage)[0] != 0:
        mark_of(storage)[0] = 0
    return True


cdef void _release(void* storage) noexcept:
    if not arrayhub_count(storage, False):
        release_last(storage)


cdef void release_last(void* storage) noexcept:
    """Give back the last reference, which only torch may do: to a tensor that is dropped at once."""
    aside = put_aside()
    try:
        give_to_a_tensor(storage)
    except BaseException:      # no memory, or a mode that answers something else: then the storage stays
        pass
    put_back(aside)


cdef int give_to_a_tensor(void* storage) except -1:
    cdef void* carried = storage_of(_carrier)
    tensor = _data(<PyObject*> _carrier, _data_closure)
    if type(tensor) is type(_carrier) and tensor is not _carrier and storage_of(tensor) == carried \
            and arrayhub_count(carried, False):
        place_of_storage(tensor)[0] = storage
    return 0


describe_release(_release, b"StorageImpl::release", NULL)


# ------------------------------------------------------------------------------------------ torch's undocumented fields

# Where torch keeps what is read here is not documented, so it is found out once, with tensors of different states whose keys
# and storage torch names: a place counts that has exactly this in each of them. Without it states are asked by name, and a
# detached tensor is held.

cdef extern from *:
    """
    typedef PyObject *(*arrayhub_getter)(PyObject *, void *);
    static inline int arrayhub_find_getter(PyObject *descriptor, arrayhub_getter *get, void **closure) {
        if (!Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) return 0;
        *get = ((PyGetSetDescrObject *)descriptor)->d_getset->get;
        *closure = ((PyGetSetDescrObject *)descriptor)->d_getset->closure;
        return *get != NULL;
    }
    /* How large a TensorImpl is differs between releases (the keys lie in the 22nd word of torch 2.11's, and 2.13's has no
       more than 22), and torch does not tell. It lies alone in memory from malloc, which does. */
    #if defined(__GLIBC__)
    #include <malloc.h>
    static inline size_t arrayhub_size_of_block(const void *block) { return malloc_usable_size((void *)block); }
    #else
    static inline size_t arrayhub_size_of_block(const void *block) { (void)block; return 22 * 8; }
    #endif
    """
    ctypedef object (*arrayhub_getter)(PyObject*, void*)
    bint arrayhub_find_getter(object descriptor, arrayhub_getter* get, void** closure)
    size_t size_of_block "arrayhub_size_of_block"(const void* block) noexcept

ctypedef bint (*Find)() except -1

cdef enum:
    MOST_WORDS = 32          # of a TensorImpl
    STORAGE_BYTES = 72       # of a StorageImpl in every torch since 2.0; nothing beyond is read
    COUNT_END = 16           # where its count ends, behind the table of its class
    NOWHERE = -1

cdef bint _looking = False        # whether a thread is about to set what follows
cdef int _looked = 0              # whether that is set

cdef bint _states_known = False
cdef Py_ssize_t _impl_at          # bytes into the Python object: the pointer to its TensorImpl
cdef Py_ssize_t _keys_at          # bytes into the TensorImpl: the dispatch keys
cdef Py_ssize_t _autograd_at = NOWHERE    # bytes into the TensorImpl: 0 for tensors that surely require no gradient
cdef arrayhub_getter _requires_grad
cdef void* _requires_grad_closure

cdef bint _storage_known = False
cdef Py_ssize_t _storage_at       # bytes into the TensorImpl: the pointer to its StorageImpl
cdef Py_ssize_t _resizable_at     # bytes into the StorageImpl: the mark
cdef object _carrier = None       # a tensor that is only there to be told apart from
cdef arrayhub_getter _data        # torch's getter of Tensor.data, which no mode or transform redirects
cdef void* _data_closure


cdef inline uint64_t word(const void* start, Py_ssize_t offset) noexcept:
    return (<const uint64_t*> (<const char*> start + offset))[0]


cdef inline char* impl_of(object tensor) noexcept:
    """The TensorImpl of an exact ``torch.Tensor``; only where its place is known."""
    return <char*> word(<PyObject*> tensor, _impl_at)


cdef inline uint64_t key_at(object tensor, Py_ssize_t offset) noexcept:
    return word(impl_of(tensor), offset)


cdef inline void** place_of_storage(object tensor) noexcept:
    return <void**> (impl_of(tensor) + _storage_at)


cdef inline void* storage_of(object tensor) noexcept:
    return place_of_storage(tensor)[0]


cdef inline char* mark_of(void* storage) noexcept:
    return <char*> storage + _resizable_at


cdef int look_once() except -1:
    """Look for all places, when no mode of torch's changes what a tensor is; in one that does, another time.

    One thread looks, and nobody waits for it: what torch does meanwhile could wait for another thread.
    """
    global _looking, _states_known, _storage_known
    cdef bint mine
    with cython.critical_section(_torch):
        mine = not _looking and not is_done(&_looked)
        _looking |= mine
    if not mine:
        return 0
    try:
        if not in_a_mode():
            _states_known = all_found(find_states)
            _storage_known = _states_known and all_found(find_storage)
            mark_done(&_looked)
    finally:
        with cython.critical_section(_torch):
            _looking = False
    return 0


cdef bint in_a_mode() except -1:
    try:
        return not is_ordinary(_torch.zeros(3))
    except PASSES_ON:
        raise
    except Exception:      # as in all_found()
        return False


cdef bint all_found(Find find) except -1:
    try:
        return find()
    except PASSES_ON:
        raise
    except Exception:      # private names of torch: whatever happens, there is another way
        return False


cdef bint find_states() except -1:
    """Find what `plain_tensor` reads; False where that is not sure."""
    global _impl_at, _keys_at, _plain_keys, _autograd_at
    plain = _torch.zeros(3)
    complex_ = _torch.zeros(2, 2, dtype=_torch.complex64)
    samples = [plain, complex_, _torch.zeros(2, dtype=_torch.int64), complex_.conj(), complex_.conj().imag,
               _torch.empty(2, device="meta")]
    _plain_keys = keys_of(plain)
    if keys_of(complex_) != _plain_keys or any(keys_of(sample) == _plain_keys for sample in samples[3:]):
        return False
    impl_places = [at for at in range(sizeof(PyObject), type(plain).__basicsize__, sizeof(void*))
                   if all(word(<PyObject*> sample, at) == <uint64_t> sample._cdata for sample in samples)]
    if len(impl_places) != 1:
        return False
    _impl_at = impl_places[0]
    key_places = places_of(samples, [keys_of(sample) for sample in samples])
    if len(key_places) != 1:
        return False
    _keys_at = key_places[0]
    _autograd_at = place_of_autograd()
    return arrayhub_find_getter(_torch._C.TensorBase.__dict__["requires_grad"], &_requires_grad, &_requires_grad_closure)


cdef Py_ssize_t place_of_autograd() except? -2:
    """The one word of a TensorImpl that is 0 until its tensor takes part in autograd; NOWHERE where that is not one."""
    tensors = [_torch.zeros(3), _torch.zeros(2, 2, dtype=_torch.complex64), _torch.empty(0)]
    places = places_of(tensors, [0, 0, 0])
    with _torch.enable_grad():
        tensors = [tensor.requires_grad_() for tensor in tensors]
        results = [tensors[0] * 2, (tensors[0] * 2)[1:], _torch.nn.Parameter(_torch.zeros(2))]
        places = [at for at in places if all(key_at(tensor, at) != 0 for tensor in tensors + results)]
    return places[0] if len(places) == 1 else NOWHERE


cdef bint find_storage() except -1:
    """Find what `hold` reads and writes; False where that is not sure, or does not do what torch says of it."""
    global _storage_at, _resizable_at, _carrier
    samples = [_torch.zeros(3), _torch.zeros(2, 2, dtype=_torch.complex64)[1], _torch.zeros(5, dtype=_torch.int64),
               _torch.empty(0)]
    storages = [sample.untyped_storage() for sample in samples]
    places = places_of(samples, [storage._cdata for storage in storages])
    if not places:
        return False
    _storage_at = places[0]
    _resizable_at = place_of_mark()
    if _resizable_at == NOWHERE or not counts_as_torch_does(samples[0], storages[0]):
        return False
    _carrier = _torch.empty(0)
    return arrayhub_find_getter(_torch._C.TensorBase.__dict__["data"], &_data, &_data_closure)


cdef Py_ssize_t place_of_mark() except? -1:
    """The one byte that ``Tensor.numpy`` turns from 1 to 0 in the storage, where torch itself reads it back."""
    sample, trial = _torch.zeros(3), _torch.zeros(3)
    cdef const unsigned char* storage = <const unsigned char*> storage_of(sample)
    before = storage[:STORAGE_BYTES]
    sample.numpy()
    after = storage[:STORAGE_BYTES]
    changed = [at for at in range(COUNT_END, STORAGE_BYTES) if before[at] != after[at]]
    if len(changed) != 1 or (before[changed[0]], after[changed[0]]) != (1, 0):
        return NOWHERE
    cdef Py_ssize_t at = changed[0]
    if not trial.untyped_storage().resizable():
        return NOWHERE
    (<char*> storage_of(trial) + at)[0] = 0
    return NOWHERE if trial.untyped_storage().resizable() else at


cdef bint counts_as_torch_does(object tensor, object storage) except -1:
    """Whether the count goes with the number of tensors that share a storage, and ours with torch's own."""
    use_count = _torch._C._storage_Use_Count
    cdef uint64_t alone = count_in(tensor)
    others = [tensor.detach(), tensor.detach()]
    if count_in(tensor) != alone + 2 or use_count(storage._cdata) != alone + 2 or not arrayhub_count(storage_of(tensor), True):
        return False
    if use_count(storage._cdata) != alone + 3 or not arrayhub_count(storage_of(tensor), False):
        return False
    del others
    return count_in(tensor) == alone


cdef list places_of(list tensors, list words):
    """The places in a TensorImpl where each of `tensors` has its word of `words`."""
    cdef Py_ssize_t at
    return [at for at in range(0, 8 * min([words_of(tensor) for tensor in tensors]), 8)
            if all(key_at(tensor, at) == <uint64_t> word for tensor, word in zip(tensors, words, strict=True))]


cdef uint64_t keys_of(object tensor) except? 0:
    """The dispatch keys that torch itself reports."""
    return _torch._C._dispatch_keys(tensor).raw_repr()


cdef Py_ssize_t words_of(object tensor) noexcept:
    """How many words of the TensorImpl of an exact ``torch.Tensor`` may be read."""
    return min(<Py_ssize_t> (size_of_block(impl_of(tensor)) // sizeof(uint64_t)), <Py_ssize_t> MOST_WORDS)


cdef inline uint64_t count_in(object tensor) noexcept:
    return (<uint64_t*> (<char*> storage_of(tensor) + 8))[0] & 0xffffffffu
