"""``stream=``: whose order an array is used in from now on."""

from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor on_stream(Descriptor a, object stream, bint fresh)
