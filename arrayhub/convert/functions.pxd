"""Import by the type of an object, as C sees it. See dispatch.pxi."""

from arrayhub._core.descriptor cimport Descriptor

cdef tuple VALUES

cdef bint import_copied(Descriptor a, object obj) except -1
cdef Descriptor import_array(object obj, object stream)
cdef Descriptor import_via(object obj, object stream, object via)


# Declared here although only dispatch.pxi calls it: as a static function it would be inlined into `import_array`, each call of
# which would then save more registers.
cdef Descriptor try_protocols(object obj, object stream, unsigned int speaks)
