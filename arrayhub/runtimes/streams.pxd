"""``stream=``: the stream or queue in whose order an array is used."""

from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor on_stream(Descriptor a, object stream, bint fresh)
