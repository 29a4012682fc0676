"""The structs that an Arrow producer handed over. See arrow_owner.pyx."""

from libc.stdint cimport intptr_t

from arrayhub._core.device cimport DLDevice
from arrayhub._core.cpython.exceptions cimport Aside, put_aside, put_back
from arrayhub.adapters.arrow_abi cimport ArrowArray, ArrowSchema

cdef class Import:
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef DLDevice device
    cdef intptr_t stream           # CUDA: one that waits for the producer's work; 0: the memory may be read now
    cdef void drop(self) noexcept

cdef Import new_import()
cdef void* pointer_in(object capsule, const char* name, str method) except NULL
cdef object released_error(str what)
cdef int take_schema(Import owner, object capsule, str method) except -1
cdef int take_array(Import owner, object capsule, str method) except -1


cdef inline void drop_schema(ArrowSchema* schema) noexcept:
    cdef Aside aside
    if schema.release != NULL:
        aside = put_aside()
        schema.release(schema)
        schema.release = NULL
        put_back(aside)
