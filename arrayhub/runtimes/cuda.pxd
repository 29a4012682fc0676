"""The CUDA driver as the other rooms see it: where memory lies, and streams in order."""

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport Descriptor

# Handles of streams with a meaning of their own. Source: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of the driver API,
# and the same numbers in DLPack's and the CUDA array interface's conventions.
cdef enum:
    NO_STREAM = -1       # DLPack: no synchronisation wanted
    LEGACY_STREAM = 1
    PER_THREAD_STREAM = 2

cdef bint driver_present() except -1
cdef int locate(Descriptor a) except -1
cdef int locate_start(Descriptor a) except -1
cdef intptr_t stream_handle(object stream) except? 0
cdef int order_streams(intptr_t producer, intptr_t consumer, int device) except -1
cdef int consumer_ready(Descriptor a, object stream) except -1
cdef int adopt_stream(Descriptor a, object stream) except -1
cdef int remember_stream(Descriptor a, object stream) except -1
cdef intptr_t safe_stream(Descriptor a) except? -2
