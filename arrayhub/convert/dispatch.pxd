from arrayhub._core.descriptor cimport Descriptor

cdef tuple VALUES

cdef Descriptor import_array(object obj, object stream)
cdef object import_one(object obj)
cdef Descriptor import_via(object obj, object stream, object via)


# Nobody else calls it. But what others might call, a C compiler does not put into the body of its one caller, whose every
# call would save registers for it.
cdef Descriptor ask_in_order(object obj, object stream, unsigned int speaks)
