from arrayhub._core.descriptor cimport Descriptor

cdef tuple VALUES

cdef Descriptor import_array(object obj, object stream)
cdef object import_one(object obj)
cdef Descriptor import_via(object obj, object stream, object via)
