"""Memory blocks: the owner of memory, and how the memory is released."""

from cpython.object cimport PyObject, PyTypeObject

from arrayhub._core.device cimport DLDevice

cpdef enum:
    BOUNDARY = 64       # bytes; new host memory starts on such a boundary: jax imports a host buffer elsewhere only by a copy
    PAGE = 4096         # bytes: smallest page size of the supported processors
    HUGE_PAGE = 2 << 20  # bytes: size of Linux's huge pages on these processors

cdef enum BlockKind:
    EXTERNAL = 0     # a Python object owns the bytes and keeps them for as long as it lives
    BUFFER = 1       # a Py_buffer is held
    DLPACK = 2       # a DLPack managed tensor is held
    USM = 3          # a dpctl.memory.MemoryUSM* owns the bytes
    OWNED = 4        # allocated by this block

ctypedef void (*Release)(void* resource) noexcept
ctypedef PyObject* (*Referent)(void* resource) noexcept    # object that a resource refers to, or NULL
ctypedef int (*Visit)(PyObject*, void*) noexcept           # the garbage collector's visitproc
ctypedef int (*Traverse)(PyObject*, Visit, void*) noexcept

cdef class MemoryBlock:
    cdef int kind_
    cdef object owner_
    cdef char* address_
    cdef Py_ssize_t nbytes_      # bytes; -1 if unknown
    cdef DLDevice device_
    # Layout of aligned rows, in bytes, so that copies can have the same layout; 0 if no alignment was requested.
    cdef Py_ssize_t row_         # size of the row that contains the elements
    cdef Py_ssize_t row_step_    # distance from one row to the next
    cdef Py_ssize_t boundary_    # boundary that rows start on
    cdef void* resource          # passed to `release` exactly once, then NULL
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
    /* Let the garbage collector traverse the instances of a type, but never clear them. */
    static CYTHON_UNUSED inline void arrayhub_collect(PyTypeObject *type, int (*traverse)(PyObject *, visitproc, void *)) {
        type->tp_traverse = traverse;
        type->tp_clear = NULL;
    }
    """
    void collect "arrayhub_collect"(PyTypeObject* cls, Traverse traverse) noexcept


cdef inline size_t to_boundary(size_t address, size_t alignment, size_t behind) noexcept nogil:
    """Return the bytes from an address to the next one that is `behind` bytes after an `alignment`-byte boundary."""
    return (alignment + behind - address % alignment) % alignment
