from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from arrayhub.adapters.arrow_abi cimport ArrowArray
from arrayhub.runtimes cimport cuda

cdef struct Body:              # what a released array gives back; what follows it is in the same allocation
    PyObject* owner            # what has the buffers of this node
    cuda.CudaEvent event       # of the outermost array of a CUDA device array

cdef Body* new_body(ArrowArray* out, object owner, int buffers, int64_t children, bint dictionary) except NULL
cdef int fill_root_array(ArrowArray* out, object node, bint lists) except -1
cdef int ready_for_host(object node) except -1
cdef tuple emit(object node, object requested_schema)
