"""SYCL runtime through dpctl's C functions, which are looked up at run time."""

from arrayhub._core.descriptor cimport Descriptor, MemoryBlock

ctypedef void* QueueRef
ctypedef void* ContextRef
ctypedef void* EventRef

cdef str NAME      # name of the interface dict's attribute

cdef bint available() except -1
cdef bint is_memory(object obj) except -1
cdef bint is_queue(object obj) except -1
cdef bint speaks_as_memory(object obj) except -1
cdef object queue_from(object syclobj, void* pointer)
cdef object queue_of_ref(void* queue)
cpdef object queue_of_ordinal(int ordinal)
cdef QueueRef checked_ref(object queue) except NULL
cdef QueueRef queue_ref_of(Descriptor a) except? NULL
cdef int usm_type_of(char* first, object queue, Py_ssize_t nbytes=*, bint* whole=*) except -1
cdef int memory_usm_type(object memory) except -1
cdef char* memory_pointer(object memory) except? NULL
cdef Py_ssize_t memory_nbytes(object memory) except -1
cdef MemoryBlock block_of_memory(object memory)
cdef int place(Descriptor a, MemoryBlock block, int usm_type) except -1
cdef int set_usm(Descriptor a, object owner, int usm_type) noexcept
cpdef object queue_of(Descriptor a)
cdef object base_of(Descriptor a)
cdef object memory_on_queue(Descriptor a)
cpdef int check_element(Descriptor a, object queue, str call) except -1
cpdef bint has_type(str element, object queue) except -1
cpdef bint is_laid_out_as(Descriptor array, Descriptor other) except -1
cpdef int wait(object queue) except -1
cpdef int tell_dpnp(object queue, list after) except -1
cpdef list dpctl_events(list after)
cpdef object new_memory(object usm_type, Py_ssize_t nbytes, dict options)
