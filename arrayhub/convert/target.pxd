from arrayhub._core.descriptor cimport Descriptor
from arrayhub.libraries.known cimport Library


cdef class ArrayType:
    """Facts about arrays that their type determines."""
    cdef readonly str library      # name that `convert` uses; "numpy" for arrays of unknown libraries
    cdef readonly str owner        # the library whose functions accept the arrays unchanged, or None
    cdef readonly str sparse       # the library of sparse arrays, or None
    cdef readonly bint wraps       # whether the library is that of a wrapped array
    cdef readonly bint refused     # whether `asarray` refuses all arrays of the type
    cdef readonly bint host        # whether the arrays are always in host memory
    cdef readonly bint has_maker            # whether `containers` makes instances of the type, whatever their shape
    cdef bint dense                # whether the arrays are of a library of dense arrays

    cdef tuple fields(self)


cdef class Target:
    """Library, class, device and model that an object is converted to."""
    cdef readonly str library      # name that `convert` uses
    cdef readonly object cls       # class of the result; None for the class that `convert` returns for the library
    cdef readonly object device    # Device of the memory; None leaves the memory where it is
    cdef readonly object model     # the array whose labels, element type, kind of memory and metadata are used, or None
    cdef readonly ArrayType model_type
    cdef readonly Library row      # row of the library, without properties if `convert` exports to it by ``from_dlpack``
    cdef bint host_only            # whether arrays of the library are always in host memory
    cdef str needed                # device type of the arrays of a library without arrays in host memory, or None

    cdef int set_fields(self, str library, cls, device, model, ArrayType model_type) except -1
    cpdef object convert(self, obj, str call, copy=*, dtype=*, bint labels=*, missing=*, bint move=*, str advice=*,
                         Descriptor array=*)
    cdef object _export(self, given, Descriptor array, cls, copy, dtype, device, missing, model)
    cdef object _move(self, obj, str call, bint allowed, str advice)
    cdef str _inner(self)


cdef ArrayType type_row(type cls)
cpdef ArrayType array_type(obj)
cpdef bint is_dense(obj) except -1
cpdef Descriptor array_of(obj, copy=*)
cdef Target target_like(model, ArrayType found, Descriptor array=*)
