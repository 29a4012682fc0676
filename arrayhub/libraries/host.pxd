"""What libraries without SYCL need before they take an array: USM that the host can read, shown as host memory."""

from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor for_host_library(Descriptor a, str library, int other_device)
cdef Descriptor as_host(Descriptor a)
cdef int compact(Descriptor fresh, Descriptor array, object order) except -1
