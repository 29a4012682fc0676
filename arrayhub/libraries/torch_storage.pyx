"""Holding the storage of a torch tensor, which the tensor itself may give up.

``module.half()``, ``tensor.data = ...``, ``tensor.set_(...)`` and ``swap_tensors`` give a tensor new storage, and free the
old one under whoever held the tensor alone. So a view holds the storage: it adds one to the count of references that torch
keeps in it, and takes that off again. Where the two lie is not documented, so it is found out once, as the dispatch keys
are (`torch_states`), with tensors whose storage torch names and whose count is known. Where that fails nothing is held
here, and the caller holds a detached tensor, which costs several times as much.

``resize_`` moves the memory of one and the same storage, which no reference prevents. A storage on the host that is shown
is therefore marked as not resizable, for good, as ``Tensor.numpy`` does; torch then refuses. On a device, where memory is
given back by resizing the storage to nothing, it is not. ``share_memory_`` moves memory without asking for the mark.
"""

import sys

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from arrayhub._core.descriptor cimport Descriptor, hold_resource
from arrayhub._core.memory cimport EXTERNAL, describe_release
from arrayhub._core.raised cimport put_aside, put_back
from arrayhub._core.shared cimport is_done
from arrayhub.libraries.torch_states cimport arrayhub_find_getter, arrayhub_getter, impl_of, look_once, words_of

cdef extern from *:
    """
    /* The lower half counts the references. torch sets the highest bit while a Python object stands for the storage; such
       an object owns one reference, and lives for as long as there are others. So the step from one to two references
       and back is torch's alone: whoever would make it must not do so here. */
    #define ARRAYHUB_HAS_PYOBJECT (UINT64_C(1) << 63)
    #define ARRAYHUB_LEAST(seen) ((seen) & ARRAYHUB_HAS_PYOBJECT ? 2u : 1u)

    #if defined(__GNUC__)
    #define ARRAYHUB_COUNTS 1
    static inline int arrayhub_count(void *storage, int up) {
        uint64_t *at = (uint64_t *)((char *)storage + 8), seen = __atomic_load_n(at, __ATOMIC_RELAXED);
        do {
            uint32_t count = (uint32_t)seen;
            if (up ? count < ARRAYHUB_LEAST(seen) : count <= ARRAYHUB_LEAST(seen)) return 0;
        } while (!__atomic_compare_exchange_n(at, &seen, up ? seen + 1 : seen - 1, 1, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
        return 1;
    }
    #else
    #define ARRAYHUB_COUNTS 0
    static inline int arrayhub_count(void *storage, int up) { (void)storage; (void)up; return 0; }
    #endif
    """
    const bint ARRAYHUB_COUNTS
    bint arrayhub_count(void* storage, bint up) noexcept nogil

cdef enum:
    STORAGE_BYTES = 72       # of a StorageImpl in every torch since 2.0; nothing beyond is read
    COUNT_END = 16           # where its count ends, behind the table of its class
    UNKNOWN = -1

cdef int _looked = 0
cdef bint _known = False
cdef Py_ssize_t _storage_at       # bytes into the TensorImpl: the pointer to its StorageImpl
cdef Py_ssize_t _resizable_at     # bytes into the StorageImpl: the mark
cdef object _carrier = None       # a tensor that is only there to be told apart from
cdef arrayhub_getter _data        # torch's getter of Tensor.data, which no mode or transform redirects
cdef void* _data_closure


cdef bint hold(Descriptor a, object tensor, bint on_host) except -1:
    """Make `a` hold the storage of an exact ``torch.Tensor``; False where that cannot be done here."""
    cdef void* storage
    if not is_done(&_looked):
        look_once(&_looked, &_known, find)      # else a detached tensor is held
    if not _known:
        return False
    storage = storage_of(tensor)
    if storage == NULL or not arrayhub_count(storage, True):
        return False
    hold_resource(a, EXTERNAL, storage, _release)
    if on_host and mark_of(storage)[0] != 0:
        mark_of(storage)[0] = 0
    return True


cdef inline void** place_of_storage(object tensor) noexcept:
    return <void**> (<char*> impl_of(tensor) + _storage_at)


cdef inline void* storage_of(object tensor) noexcept:
    return place_of_storage(tensor)[0]


cdef inline char* mark_of(void* storage) noexcept:
    return <char*> storage + _resizable_at


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


cdef bint find() except -1:
    """Whether all places were found, and counting and marking do what torch says of them."""
    global _storage_at, _resizable_at, _carrier
    if not ARRAYHUB_COUNTS:
        return False
    torch = sys.modules["torch"]
    samples = [torch.zeros(3), torch.zeros(2, 2, dtype=torch.complex64)[1], torch.zeros(5, dtype=torch.int64),
               torch.empty(0)]
    storages = [sample.untyped_storage() for sample in samples]
    _storage_at = place_of_words(samples, [storage._cdata for storage in storages])
    if _storage_at == UNKNOWN:
        return False
    _resizable_at = place_of_mark(torch)
    if _resizable_at == UNKNOWN or not counts_as_torch_does(samples[0], storages[0]):
        return False
    _carrier = torch.empty(0)
    return arrayhub_find_getter(torch._C.TensorBase.__dict__["data"], &_data, &_data_closure)


cdef Py_ssize_t place_of_words(list tensors, list words) except? -1:
    """The first place in a TensorImpl where each of `tensors` has its word of `words`."""
    cdef Py_ssize_t at
    for at in range(0, 8 * min([words_of(tensor) for tensor in tensors]), 8):
        if all((<uint64_t*> (<char*> impl_of(tensor) + at))[0] == <uint64_t> word
               for tensor, word in zip(tensors, words, strict=True)):
            return at
    return UNKNOWN


cdef Py_ssize_t place_of_mark(object torch) except? -1:
    """The one byte that ``Tensor.numpy`` turns from 1 to 0 in the storage, where torch itself reads it back."""
    sample, trial = torch.zeros(3), torch.zeros(3)
    cdef const unsigned char* storage = <const unsigned char*> storage_of(sample)
    before = storage[:STORAGE_BYTES]
    sample.numpy()
    after = storage[:STORAGE_BYTES]
    changed = [at for at in range(COUNT_END, STORAGE_BYTES) if before[at] != after[at]]
    if len(changed) != 1 or (before[changed[0]], after[changed[0]]) != (1, 0):
        return UNKNOWN
    cdef Py_ssize_t at = changed[0]
    if not trial.untyped_storage().resizable():
        return UNKNOWN
    (<char*> storage_of(trial) + at)[0] = 0
    return UNKNOWN if trial.untyped_storage().resizable() else at


cdef bint counts_as_torch_does(object tensor, object storage) except -1:
    """Whether the count goes with the number of tensors that share a storage, and ours with torch's own."""
    use_count = sys.modules["torch"]._C._storage_Use_Count
    cdef uint64_t alone = count_in(tensor)
    others = [tensor.detach(), tensor.detach()]
    if count_in(tensor) != alone + 2 or use_count(storage._cdata) != alone + 2 or not arrayhub_count(storage_of(tensor), True):
        return False
    if use_count(storage._cdata) != alone + 3 or not arrayhub_count(storage_of(tensor), False):
        return False
    del others
    return count_in(tensor) == alone


cdef inline uint64_t count_in(object tensor) noexcept:
    return (<uint64_t*> (<char*> storage_of(tensor) + 8))[0] & 0xffffffffu
