from libc.stdint cimport uint64_t

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.dlpack_abi cimport DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor

cdef Descriptor parse(object obj, object stream)
cpdef Descriptor peek(object capsule)
cdef Descriptor parse_capsule(object capsule, bint legacy_is_writable, object producer)
cdef int describe(Descriptor a, DLTensor* tensor, object producer, uint64_t flags) except -1
cdef Descriptor parse_managed(DLManagedTensorVersioned* managed, object producer)
cdef object emit(Descriptor a, object stream, object max_version, bint sole)
cdef object emit_legacy(Descriptor a, bint allow_readonly)
cdef DLManagedTensorVersioned* new_managed(Descriptor a) except NULL
cdef DLPackExchangeAPI* exchange_api(object cls) except? NULL
cdef Descriptor parse_by_exchange(object obj, object stream)
cdef Descriptor parse_exchange(object obj, DLPackExchangeAPI* api)
cdef int note_work_stream(Descriptor a, DLPackExchangeAPI* api) except -1
cdef object exchange_capsule()
cdef int raise_pending(str function) except -1
cdef object capsule_of(DLManagedTensorVersioned* managed)
cdef int check_exportable(Descriptor a) except -1
