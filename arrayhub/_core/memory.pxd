"""Memory blocks: who owns bytes, how they are given back."""

from cpython.object cimport PyObject, PyTypeObject

from arrayhub._core.device cimport DLDevice

cpdef enum:
    BOUNDARY = 64       # bytes: jax takes a host buffer without a copy only from such a boundary; new host memory starts on one
    PAGE = 4096         # bytes: the smallest page of memory that the processors here have
    HUGE_PAGE = 2 << 20  # bytes: what Linux has for large memory there

cdef enum BlockKind:
    EXTERNAL = 0     # a Python object owns the bytes and keeps them for as long as it lives
    BUFFER = 1       # a Py_buffer is held
    DLPACK = 2       # a DLPack managed tensor is held
    USM = 3          # a dpctl.memory.MemoryUSM* owns the bytes
    OWNED = 4        # allocated by this block

ctypedef void (*Release)(void* resource) noexcept
ctypedef PyObject* (*Referent)(void* resource) noexcept    # the object that a resource has a reference to, or NULL
ctypedef int (*Visit)(PyObject*, void*) noexcept           # the collector's visitproc
ctypedef int (*Traverse)(PyObject*, Visit, void*) noexcept

cdef class MemoryBlock:
    cdef int kind_
    cdef object owner_
    cdef char* address_
    cdef Py_ssize_t nbytes_      # bytes; -1 where unknown
    cdef DLDevice device_
    # Of rows that were aligned, so that copies can be laid out alike: bytes; 0 where no alignment was asked for.
    cdef Py_ssize_t row_         # of a row that elements lie in
    cdef Py_ssize_t row_step_    # from one row to the next
    cdef Py_ssize_t boundary_    # that rows lie on
    cdef void* resource          # handed to `release` exactly once; NULL afterwards
    cdef Release release
    cdef object __weakref__
    cdef void drop(self) noexcept


cdef MemoryBlock new_block(int kind, object owner, char* address, Py_ssize_t nbytes, DLDevice device)
cdef MemoryBlock allocate(Py_ssize_t nbytes, Py_ssize_t alignment, Py_ssize_t behind=*, bint zeroed=*)
cdef MemoryBlock successor_of(MemoryBlock block)
cdef object owner_of(MemoryBlock block)
cdef void set_owner(MemoryBlock block, object former, object owner, MemoryBlock successor) noexcept
cdef int describe_release(Release release, const char* name, Referent referent) except -1
cdef PyObject* referent_of(Release release, void* resource) noexcept


cdef extern from *:
    """
    /* Let the collector see what the instances of a type hold, and never take it away from them. */
    static CYTHON_UNUSED inline void arrayhub_collect(PyTypeObject *type, int (*traverse)(PyObject *, visitproc, void *)) {
        type->tp_traverse = traverse;
        type->tp_clear = NULL;
    }
    """
    void collect "arrayhub_collect"(PyTypeObject* cls, Traverse traverse) noexcept


cdef inline size_t to_boundary(size_t address, size_t alignment, size_t behind) noexcept nogil:
    """Bytes from an address to the next one that lies `behind` bytes after an `alignment`-byte boundary."""
    return (alignment + behind - address % alignment) % alignment
