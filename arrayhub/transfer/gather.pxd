from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.footprint cimport Footprint

cdef void footprint(Descriptor a, Footprint* taken) noexcept
cdef Descriptor laid_over(Descriptor bytes_, Descriptor model, const Footprint* taken)
