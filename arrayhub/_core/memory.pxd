"""Memory blocks: who owns bytes, how they are given back."""

from arrayhub._core.device cimport DLDevice

cdef enum BlockKind:
    EXTERNAL = 0     # a Python object owns the bytes and keeps them for as long as it lives
    BUFFER = 1       # a Py_buffer is held
    DLPACK = 2       # a DLPack managed tensor is held
    USM = 3          # a dpctl.memory.MemoryUSM* owns the bytes
    OWNED = 4        # allocated by this block

ctypedef void (*Release)(void* resource) noexcept

cdef class MemoryBlock:
    cdef int kind_
    cdef object owner_
    cdef char* address_
    cdef Py_ssize_t nbytes_      # bytes; -1 where unknown
    cdef DLDevice device_
    cdef void* resource          # handed to `release` exactly once; NULL afterwards
    cdef Release release
    cdef object __weakref__
    cdef void drop(self) noexcept


cdef MemoryBlock new_block(int kind, object owner, char* address, Py_ssize_t nbytes, DLDevice device)
cdef MemoryBlock allocate(Py_ssize_t nbytes, Py_ssize_t alignment, Py_ssize_t behind=*, bint zeroed=*)
cdef MemoryBlock heir_of(MemoryBlock block)
cdef object owner_of(MemoryBlock block)
cdef void set_owner(MemoryBlock block, object former, object owner, MemoryBlock heir) noexcept
cdef int name_release(Release release, const char* name) except -1


cdef inline size_t to_boundary(size_t address, size_t alignment, size_t behind) noexcept nogil:
    """Bytes from an address to the next one that lies `behind` bytes after an `alignment`-byte boundary."""
    return (alignment + behind - address % alignment) % alignment
