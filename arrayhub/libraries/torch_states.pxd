from cpython.object cimport PyObject

# What `plain_tensor` says.
cdef enum:
    NOT_SURE = 0
    ON_HOST = 1
    ON_CUDA = 2

ctypedef bint (*Find)() except -1

cdef int look_once(int* looked, bint* known, Find find) except -1
cdef int plain_tensor(object tensor) except -1
cdef int look_at_cuda(object device) except -1
cdef const void* impl_of(object tensor) noexcept
cdef Py_ssize_t words_of(object tensor) noexcept

cdef extern from *:
    """
    typedef PyObject *(*arrayhub_getter)(PyObject *, void *);
    static inline int arrayhub_find_getter(PyObject *descriptor, arrayhub_getter *get, void **closure) {
        if (!Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) return 0;
        *get = ((PyGetSetDescrObject *)descriptor)->d_getset->get;
        *closure = ((PyGetSetDescrObject *)descriptor)->d_getset->closure;
        return *get != NULL;
    }
    """
    ctypedef object (*arrayhub_getter)(PyObject*, void*)
    bint arrayhub_find_getter(object descriptor, arrayhub_getter* get, void** closure)
