"""Kinds of nodes, as C sees them. See kinds.pyx for the table."""

cdef enum Kind:
    FLAT
    BITS
    LIST
    LIST_VIEW
    REGULAR
    STRING
    BYTES
    STRING_VIEW
    BYTES_VIEW
    RECORD
    CATEGORICAL
    KINDS

cdef enum Property:
    NUMBERS = 1 << 0        # `content` has one number, or one row of numbers, for each element
    BIT_PACKED = 1 << 1         # `content` has one bit for each element
    LISTS = 1 << 2          # an element is a run of elements of `content`
    CHARACTERS = 1 << 3     # an element is a run of bytes
    UTF8 = 1 << 4           # the bytes are UTF-8
    VIEWS = 1 << 5          # `content` has 16 bytes for each element; `parts` are the buffers of the longer ones
    FIELDS = 1 << 6         # `parts` has one array for each of `names`
    INDICES = 1 << 7        # `indices` has one index into `content` for each element
    ENDS = 1 << 8           # element i is content[offsets[i] : offsets[i + 1]]
    SIZES = 1 << 9          # element i is content[offsets[i] : offsets[i] + sizes[i]]
    WIDTH = 1 << 10         # element i is content[i * width : (i + 1) * width]

cdef enum:
    ANY = -1

cdef struct NodeKind:
    const char* name
    int properties          # of `Property`
    int buffers             # Arrow's; ANY: three and one for each buffer of the views
    int children            # Arrow's; ANY: one for each field
    const char* refusal     # why it is not a dense array, and the call that helps

cdef NodeKind[<int> KINDS] NODE_KINDS
