"""C declarations of the table of element types. dtypes.pyx contains the rows."""

from libc.stdint cimport uint8_t, uint16_t

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef enum:
    NO_DLPACK = 255          # value of DLDataType.code for a type that DLPack does not have

cpdef enum:
    FIRST_USER_TYPENUM = 256    # NumPy's first typenum for user-defined types; StringDType also has a larger typenum
    FIRST_OWN_TYPENUM = 4096    # arrayhub's first typenum, larger than all NumPy typenums

cdef struct ElementType:
    const char* name
    int typenum              # NumPy's typenum, or arrayhub's from FIRST_OWN_TYPENUM on
    char kind                # NumPy's kind letter; 'E' for types that NumPy does not have
    int bits                 # of all lanes of an element; less than 8 * itemsize if an element is padded to a byte
    Py_ssize_t itemsize      # bytes; 0 if it varies (strings, records)
    Py_ssize_t alignment     # bytes
    DLDataType dlpack
    const char* typestr      # without the byte-order character; NULL if it depends on the dtype or does not exist
    const char* format       # PEP 3118, native and aligned; NULL if it depends on the dtype or does not exist
    const char* packed_format  # PEP 3118 format for unaligned addresses
    char arrow               # Arrow's format, a letter; 0 if Arrow does not have the type in this layout

cdef enum:
    NUMPY_TYPENUMS = 24      # NumPy's own numbers, 0 to 23

cdef const ElementType* numpy_rows[NUMPY_TYPENUMS]      # NULL if unknown
cdef const ElementType* by_own_typenum(int typenum) noexcept nogil
cdef const ElementType* by_own_name(str name)
cdef const ElementType* by_dlpack(DLDataType wanted) noexcept nogil
cdef const ElementType* similar_to_dlpack(DLDataType wanted) noexcept nogil
cdef const ElementType* by_format(int letter) noexcept nogil
cdef const ElementType* by_arrow(int letter) noexcept nogil
cdef const ElementType* by_typestr(int kind, Py_ssize_t itemsize) noexcept nogil
cdef const ElementType* by_plain_dtype(object dtype) noexcept
cdef const ElementType* by_dtype(object dtype)
cdef bint has_user_types(object dtype) except -1
cpdef bint is_native(object dtype) except -1
cdef object dtype_of(const ElementType* row)


cdef inline int bits_of(DLDataType element) noexcept nogil:
    """Return the number of bits of an element, with all its lanes. Elements of less than 8 bits are padded or packed."""
    return element.bits * element.lanes


cdef inline const ElementType* by_typenum(int typenum) noexcept nogil:
    """Return the table row for a typenum of NumPy or arrayhub. Return NULL if the typenum is unknown."""
    return numpy_rows[typenum] if 0 <= typenum < NUMPY_TYPENUMS else by_own_typenum(typenum)
