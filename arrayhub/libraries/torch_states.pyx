"""Which state a torch tensor is in, without asking Python for each state by name.

Why this is right. torch itself decides everything that matters here (conjugate and negative bit, sparse, meta, fake,
quantised, nested, wrapped by a functional transform, on which device) by one 64-bit word of a tensor, its set of
dispatch keys. A tensor whose word equals that of a fresh ordinary tensor (one on the host, one on a GPU) is in none of
those states, whichever there will be: the word is compared whole, not bit by bit. Where the word lies is not
documented, so it is found out once: it must be the one place at which six tensors of known, different states have
exactly the word that torch reports for each. If there is no such place, or more than one, the states are asked by name.
requires_grad is no key. torch keeps what a tensor needs for it behind a pointer that is null until the tensor first takes
part in autograd. Where that lies is found out in the same way: it is the one word that is 0 in fresh tensors and in none
that require a gradient. Where it is not 0 (in every view of a tensor, for one), or was not found, torch's own C getter is
asked, the one that the attribute calls; it takes longer, above all where a mode of torch's redirects it.
"""

import sys

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from arrayhub._core.shared cimport is_done, mark_done

from arrayhub._core.errors import PASSES_ON

cdef extern from *:
    """
    /* How large a TensorImpl is differs between releases (the keys lie in the 22nd word of torch 2.11's, and 2.13's has no
       more than 22), and torch does not tell. It lies alone in memory from malloc, which does. */
    #if defined(__GLIBC__)
    #include <malloc.h>
    static inline size_t arrayhub_size_of_block(const void *block) { return malloc_usable_size((void *)block); }
    #else
    static inline size_t arrayhub_size_of_block(const void *block) { (void)block; return 22 * 8; }
    #endif
    """
    size_t size_of_block "arrayhub_size_of_block"(const void* block) noexcept

cdef enum:
    MOST_WORDS = 32       # of a TensorImpl
    NOWHERE = -1

cdef int _looked = 0
cdef bint _known = False
cdef Py_ssize_t _impl_at        # bytes into the Python object: the pointer to its TensorImpl
cdef Py_ssize_t _keys_at        # bytes into the TensorImpl: the dispatch keys
cdef uint64_t _plain_keys
cdef bint _cuda_looked = False
cdef uint64_t _cuda_keys = 0     # no tensor has no keys
cdef Py_ssize_t _autograd_at = NOWHERE    # bytes into the TensorImpl: 0 for tensors that surely require no gradient
cdef arrayhub_getter _requires_grad
cdef void* _requires_grad_closure


cdef inline uint64_t word(const void* start, Py_ssize_t offset) noexcept:
    return (<const uint64_t*> (<const char*> start + offset))[0]


cdef int plain_tensor(object tensor) except -1:
    """ON_HOST or ON_CUDA where an exact ``torch.Tensor`` or ``Parameter`` is surely in no state that its memory does not
    show and lies there; NOT_SURE where it must be asked state by state."""
    cdef uint64_t keys
    cdef int place
    if not is_done(&_looked):
        look_once(&_looked, &_known, find)      # else states are asked by name
    if not _known:
        return NOT_SURE
    keys = key_at(tensor, _keys_at)
    place = ON_HOST if keys == _plain_keys else ON_CUDA if keys == _cuda_keys else NOT_SURE
    if place == NOT_SURE or _autograd_at != NOWHERE and key_at(tensor, _autograd_at) == 0:
        return place
    return place if _requires_grad(<PyObject*> tensor, _requires_grad_closure) is False else NOT_SURE


cdef int look_at_cuda(object device) except -1:
    """Learn the word of a plain tensor on a CUDA device, once the first tensor has come from there.

    A sample without elements takes no memory of the device, so this may happen while a graph is captured.
    """
    global _cuda_looked, _cuda_keys
    if _cuda_looked or not _known:
        return 0
    try:
        torch = sys.modules["torch"]
        sample = torch.empty(0, device=device)
        if is_ordinary(sample) and sample.device.type == "cuda" and key_at(sample, _keys_at) == keys_of(sample):
            _cuda_keys = keys_of(sample)
            _cuda_looked = True
    except PASSES_ON:
        raise
    except Exception:      # as in look_once()
        _cuda_looked = True
    return 0


cdef bint is_ordinary(object tensor) except -1:
    """Whether a fresh tensor is what torch makes when no mode or transform of its caller's wraps it."""
    torch = sys.modules["torch"]
    return (type(tensor) is torch.Tensor and not torch.is_inference(tensor) and not torch._is_functional_tensor(tensor)
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor))


cdef bint in_a_mode() except -1:
    """Whether some mode of torch's changes what a tensor is: then one looks another time."""
    try:
        return not is_ordinary(sys.modules["torch"].zeros(3))
    except PASSES_ON:
        raise
    except Exception:      # as in look_once()
        return False


cdef int look_once(int* looked, bint* known, Find find) except -1:
    """Let `find` look for places inside torch's structs, once, when no mode of torch's changes what a tensor is; `known`
    then says whether it found them. Where it did not, the caller goes another way."""
    with cython.critical_section(sys.modules["torch"]):
        if not is_done(looked) and not in_a_mode():
            try:
                known[0] = find()
            except PASSES_ON:
                raise
            except Exception:      # private names of torch: whatever happens, there is another way
                known[0] = False
            mark_done(looked)
    return 0


cdef bint find() except -1:
    global _impl_at, _keys_at, _plain_keys, _autograd_at
    torch = sys.modules["torch"]
    plain = torch.zeros(3)
    complex_ = torch.zeros(2, 2, dtype=torch.complex64)
    samples = [plain, complex_, torch.zeros(2, dtype=torch.int64), complex_.conj(), complex_.conj().imag,
               torch.empty(2, device="meta")]
    _plain_keys = keys_of(plain)
    if keys_of(complex_) != _plain_keys or any(keys_of(sample) == _plain_keys for sample in samples[3:]):
        return False
    impl_places = [at for at in range(sizeof(PyObject), type(plain).__basicsize__, sizeof(void*))
                   if all(word(<PyObject*> sample, at) == <uint64_t> sample._cdata for sample in samples)]
    if len(impl_places) != 1:
        return False
    _impl_at = impl_places[0]
    key_places = [at for at in range(0, 8 * min([words_of(sample) for sample in samples]), 8)
                  if all(key_at(sample, at) == keys_of(sample) for sample in samples)]
    if len(key_places) != 1:
        return False
    _keys_at = key_places[0]
    _autograd_at = place_of_autograd(torch)
    return arrayhub_find_getter(torch._C.TensorBase.__dict__["requires_grad"], &_requires_grad, &_requires_grad_closure)


cdef Py_ssize_t place_of_autograd(object torch) except? -2:
    """The one word of a TensorImpl that is 0 until its tensor takes part in autograd; NOWHERE where that is not one."""
    tensors = [torch.zeros(3), torch.zeros(2, 2, dtype=torch.complex64), torch.empty(0)]
    places = set(range(0, 8 * min([words_of(tensor) for tensor in tensors]), 8))
    places = {at for at in places if all(key_at(tensor, at) == 0 for tensor in tensors)}
    with torch.enable_grad():
        tensors = [tensor.requires_grad_() for tensor in tensors]
        results = [tensors[0] * 2, (tensors[0] * 2)[1:], torch.nn.Parameter(torch.zeros(2))]
        places = {at for at in places if all(key_at(tensor, at) != 0 for tensor in tensors + results)}
    return places.pop() if len(places) == 1 else NOWHERE


cdef uint64_t keys_of(object tensor) except? 0:
    """The dispatch keys that torch itself reports."""
    return sys.modules["torch"]._C._dispatch_keys(tensor).raw_repr()


cdef uint64_t key_at(object tensor, Py_ssize_t offset) noexcept:
    return word(impl_of(tensor), offset)


cdef Py_ssize_t words_of(object tensor) noexcept:
    """How many words of the TensorImpl of an exact ``torch.Tensor`` may be read."""
    return min(<Py_ssize_t> (size_of_block(impl_of(tensor)) // sizeof(uint64_t)), <Py_ssize_t> MOST_WORDS)


cdef const void* impl_of(object tensor) noexcept:
    """The TensorImpl of an exact ``torch.Tensor``; only where `plain_tensor` knows the places."""
    return <const void*> word(<PyObject*> tensor, _impl_at)
