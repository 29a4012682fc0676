"""Node of a nested array. A node adds lists, strings, records or missing values to flat arrays."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from arrayhub._core.descriptor cimport Descriptor

cdef enum Kind:
    FLAT
    BITS
    LIST
    REGULAR
    STRING
    BYTES
    STRING_VIEW
    BYTES_VIEW
    RECORD
    CATEGORICAL
    CHUNKED
    OPAQUE
    KINDS

cdef enum Property:
    NUMBERS = 1 << 0        # `content` has one number, or one row of numbers, for each element
    BIT_PACKED = 1 << 1     # `content` has one bit for each element
    LISTS = 1 << 2          # an element is a run of elements of `content`
    CHARACTERS = 1 << 3     # an element is a run of bytes
    UTF8 = 1 << 4           # the bytes are UTF-8
    VIEWS = 1 << 5          # `content` has 16 bytes for each element; `parts` contains the buffers of long strings
    FIELDS = 1 << 6         # `parts` has one array for each field in `names`
    INDICES = 1 << 7        # `indices` has one index into `content` for each element
    ENDS = 1 << 8           # element i is content[offsets[i] : offsets[i + 1]]
    WIDTH = 1 << 9          # element i is content[i * width : (i + 1) * width]
    CHUNKS = 1 << 10        # the node is the concatenation of the Trees in `parts`; possible only for the outermost node
    FOREIGN = 1 << 11       # `buffers` and `parts` are the buffers and children of the Arrow format `meaning`

cdef enum:
    ANY = -1

cdef struct NodeKind:
    const char* name
    int properties          # bits of `Property`
    int buffers             # number of buffers in Arrow; ANY: 3 and the character buffers; FOREIGN: see `adapters/arrow/format`
    int children            # number of children in Arrow; ANY: one for each field; FOREIGN: see `adapters/arrow/format`
    const char* refusal     # why the node is not a dense array, and the call to use instead

cdef NodeKind[<int> KINDS] NODE_KINDS

cdef enum:
    UNCOUNTED = -1          # value of `nulls` until the missing elements are counted
    MAX_DEPTH = 64          # levels of nested nodes
    INLINE_VIEW = 12        # bytes: maximum length of a string that is stored in its view
    VIEW_BYTES = 16

cdef class Tree:
    cdef int kind                  # a Kind
    cdef bint checked              # whether offsets, sizes, views and indices were validated
    cdef Py_ssize_t length         # elements of this node
    cdef Py_ssize_t width          # WIDTH: number of elements of `content` per element
    cdef Py_ssize_t skip           # FOREIGN, run-end encoded: elements that the runs contain before the first element
    cdef Py_ssize_t nulls          # number of missing elements, or UNCOUNTED; equals `length` for Arrow's type null
    cdef Py_ssize_t bit            # number of bits before the first element in `validity`, and in BIT_PACKED `content`
    cdef Descriptor validity       # bitmap, least significant bit first; None without missing elements
    cdef Descriptor offsets        # ENDS: one more than elements
    cdef Descriptor indices        # INDICES: index of each element
    cdef object content            # a Descriptor or a Tree; FIELDS, FOREIGN, CHUNKS: None
    cdef tuple buffers             # FOREIGN: Descriptors with one item for each element, without the bitmap
    cdef tuple parts               # FIELDS, FOREIGN: Descriptors or Trees; VIEWS: Descriptors of bytes; CHUNKS: Trees
    cdef tuple names               # FIELDS, FOREIGN: str
    cdef str meaning               # Arrow's format, if the parts do not determine it (such as a time zone); or None
    cdef tuple starts              # CHUNKS: index of the first element of each chunk; else None
    cdef tuple field               # flags and metadata of the node in Arrow's schema; or None
    cdef object name               # name of the column (hashable) or None; set only in the outermost node and its chunks
    cdef tuple child_fields        # for each child: name (unless in `names`), flags, metadata; None for the defaults
    cdef object __weakref__

ctypedef int (*Visit)(Descriptor a, void* argument) except -1

cdef int visit_arrays(object node, Visit visit, void* argument) except -1
cdef Tree new_tree(int kind, Py_ssize_t length)
cdef Tree flat(object array)
cdef Tree same_node(Tree t)
cdef Tree new_chunked(tuple chunks)
cdef Py_ssize_t chunk_of(Tree t, Py_ssize_t i) except -1
cdef Py_ssize_t length_of(object node) except -1
cdef object part_of(object node, Py_ssize_t start, Py_ssize_t stop)
cdef Descriptor bytes_part(Descriptor a, Py_ssize_t start, Py_ssize_t stop)
cdef Py_ssize_t count_nulls(Tree t) except -1
cdef Py_ssize_t index_at(Descriptor a, Py_ssize_t i) noexcept nogil
cdef bint is_sliced_with(Tree t) noexcept
cdef int check_tree(Tree t) except -1
cdef int check_again(Tree t) except -1
cdef int check_below(object node) except -1
cdef object part_inside(Tree t, Py_ssize_t start, Py_ssize_t stop, str field)
cdef object false_field_error(Tree t, str field, object value, str accepted)
cdef int wait_for(Descriptor a, str what) except -1
cdef Descriptor first_array(object node)


cdef inline bint has(Tree t, int properties) noexcept nogil:
    """Return whether the kind of a node has one of the given properties."""
    return NODE_KINDS[t.kind].properties & properties != 0


cdef inline bint bit_at(const uint8_t* bits, Py_ssize_t k) noexcept nogil:
    return bits[k >> 3] >> (k & 7) & 1


cdef inline bint is_missing(Tree t, Py_ssize_t i) noexcept nogil:
    """Return whether element `i` is missing. The host must be able to read the bitmap."""
    if t.validity is None:
        return t.nulls > 0      # Arrow's type null
    return not bit_at(<const uint8_t*> t.validity.data_, t.bit + i)


cdef inline Py_ssize_t integer_at(const char* data, Py_ssize_t itemsize, Py_ssize_t i) noexcept nogil:
    """Return an int32 or int64 offset or size, which may be unaligned."""
    cdef int32_t narrow
    cdef int64_t wide
    if itemsize == 4:
        memcpy(&narrow, data + 4 * i, 4)
        return narrow
    memcpy(&wide, data + 8 * i, 8)
    return wide
