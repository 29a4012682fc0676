"""Structs of Arrow's C data, C stream and C device data interfaces, copied from their specifications."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t

cdef extern from *:
    """
    static const char ARRAYHUB_SCHEMA_NAME[] = "arrow_schema";
    static const char ARRAYHUB_ARRAY_NAME[] = "arrow_array";
    static const char ARRAYHUB_STREAM_NAME[] = "arrow_array_stream";
    static const char ARRAYHUB_DEVICE_NAME[] = "arrow_device_array";
    static const char ARRAYHUB_DEVICE_STREAM_NAME[] = "arrow_device_array_stream";
    """
    # Capsule names
    const char* SCHEMA_NAME "ARRAYHUB_SCHEMA_NAME"
    const char* ARRAY_NAME "ARRAYHUB_ARRAY_NAME"
    const char* STREAM_NAME "ARRAYHUB_STREAM_NAME"
    const char* DEVICE_NAME "ARRAYHUB_DEVICE_NAME"
    const char* DEVICE_STREAM_NAME "ARRAYHUB_DEVICE_STREAM_NAME"

cdef enum:
    MAX_NODES = 100_000            # maximum number of nodes of one schema; a hostile schema may contain itself
    ARROW_FLAG_DICTIONARY_ORDERED = 1
    ARROW_FLAG_NULLABLE = 2
    ARROW_FLAG_MAP_KEYS_SORTED = 4

cdef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata                  # NULL, or an int32 number of pairs; each key and value follows its int32 length
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept nogil      # NULL after the struct is released or moved
    void* private_data

cdef struct ArrowArray:
    int64_t length                        # elements
    int64_t null_count                    # -1: not counted
    int64_t offset                        # number of elements to skip in every buffer
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept nogil
    void* private_data

cdef struct ArrowArrayStream:             # get_schema and get_next return 0 for success, else an errno
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out) noexcept nogil
    int (*get_next)(ArrowArrayStream*, ArrowArray* out) noexcept nogil     # at the end, sets out.release to NULL
    const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
    void (*release)(ArrowArrayStream*) noexcept nogil
    void* private_data

cdef struct ArrowDeviceArray:
    ArrowArray array
    int64_t device_id                     # -1 for host memory
    int32_t device_type                   # DLPack's number
    void* sync_event                      # for CUDA a cudaEvent_t*, or NULL if the memory may be read without waiting
    int64_t reserved[3]

cdef struct ArrowDeviceArrayStream:
    int32_t device_type                   # the same for every array of the stream
    int (*get_schema)(ArrowDeviceArrayStream*, ArrowSchema* out) noexcept nogil
    int (*get_next)(ArrowDeviceArrayStream*, ArrowDeviceArray* out) noexcept nogil
    const char* (*get_last_error)(ArrowDeviceArrayStream*) noexcept nogil
    void (*release)(ArrowDeviceArrayStream*) noexcept nogil
    void* private_data

ctypedef fused Stream:
    ArrowArrayStream
    ArrowDeviceArrayStream

ctypedef fused Releasable:
    ArrowSchema
    ArrowArray
    ArrowArrayStream
    ArrowDeviceArrayStream


cdef object new_capsule(size_t size, const char* name, void** held):
    """Return a capsule with a struct of zeros, and set `held` to the struct.

    The destructor of the capsule releases the struct unless it was moved. `name` is a name from this file.
    """
    held[0] = PyMem_RawCalloc(1, size)
    if held[0] == NULL:
        raise MemoryError
    try:
        return PyCapsule_New(held[0], name, _drop_capsule)
    except BaseException:
        PyMem_RawFree(held[0])
        raise


cdef void _drop_capsule(object capsule) noexcept:
    cdef const char* name = PyCapsule_GetName(capsule)
    cdef void* held = PyCapsule_GetPointer(capsule, name)
    if name == SCHEMA_NAME:
        release_struct(<ArrowSchema*> held)
    elif name == STREAM_NAME:
        release_struct(<ArrowArrayStream*> held)
    elif name == DEVICE_STREAM_NAME:
        release_struct(<ArrowDeviceArrayStream*> held)
    else:      # a device array starts with its array
        release_struct(<ArrowArray*> held)
    PyMem_RawFree(held)


cdef inline void release_struct(Releasable* held) noexcept:
    if held.release != NULL:
        held.release(held)
