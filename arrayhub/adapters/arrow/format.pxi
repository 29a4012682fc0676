"""Structs of Arrow's C interfaces, the table of format strings, and the ownership of structs.

Sources: the specifications of the C data, C stream and C device data interfaces.
"""

import numpy as np

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_New,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, intptr_t
from libc.string cimport strlen, strncmp

from arrayhub._core cimport dtypes
from arrayhub._core.cpython.exceptions cimport Aside, put_aside, put_back
from arrayhub._core.cpython.finalizing cimport is_finalizing
from arrayhub._core.descriptor cimport DLDevice, kDLCPU
from arrayhub._core.tree cimport (
    ANY,
    BITS,
    BYTES,
    BYTES_VIEW,
    FLAT,
    FOREIGN,
    LIST,
    MAX_DEPTH,
    NODE_KINDS,
    OPAQUE,
    RECORD,
    REGULAR,
    STRING,
    STRING_VIEW,
)
from arrayhub.runtimes cimport cuda

from arrayhub._core.errors import InterfaceError, interface_error

# ------------------------------------------------------------------------------------------------------------------- structs

cdef extern from *:
    """
    static const char ARRAYHUB_SCHEMA_NAME[] = "arrow_schema";
    static const char ARRAYHUB_ARRAY_NAME[] = "arrow_array";
    static const char ARRAYHUB_STREAM_NAME[] = "arrow_array_stream";
    static const char ARRAYHUB_DEVICE_NAME[] = "arrow_device_array";
    static const char ARRAYHUB_DEVICE_STREAM_NAME[] = "arrow_device_array_stream";
    """
    # Capsule names
    const char* SCHEMA_NAME "ARRAYHUB_SCHEMA_NAME"
    const char* ARRAY_NAME "ARRAYHUB_ARRAY_NAME"
    const char* STREAM_NAME "ARRAYHUB_STREAM_NAME"
    const char* DEVICE_NAME "ARRAYHUB_DEVICE_NAME"
    const char* DEVICE_STREAM_NAME "ARRAYHUB_DEVICE_STREAM_NAME"

cdef enum:
    MAX_NODES = 100_000            # maximum number of nodes of one schema; a hostile schema may contain itself
    ARROW_FLAG_DICTIONARY_ORDERED = 1
    ARROW_FLAG_NULLABLE = 2
    ARROW_FLAG_MAP_KEYS_SORTED = 4

cdef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata                  # NULL, or an int32 number of pairs; each key and value follows its int32 length
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept nogil      # NULL after the struct is released or moved
    void* private_data

cdef struct ArrowArray:
    int64_t length                        # elements
    int64_t null_count                    # -1: not counted
    int64_t offset                        # number of elements to skip in every buffer
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept nogil
    void* private_data

cdef struct ArrowArrayStream:             # get_schema and get_next return 0 for success, else an errno
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out) noexcept nogil
    int (*get_next)(ArrowArrayStream*, ArrowArray* out) noexcept nogil     # at the end, sets out.release to NULL
    const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
    void (*release)(ArrowArrayStream*) noexcept nogil
    void* private_data

cdef struct ArrowDeviceArray:
    ArrowArray array
    int64_t device_id                     # -1 for host memory
    int32_t device_type                   # DLPack's number
    void* sync_event                      # for CUDA a cudaEvent_t*, or NULL if the memory may be read without waiting
    int64_t reserved[3]

cdef struct ArrowDeviceArrayStream:
    int32_t device_type                   # the same for every array of the stream
    int (*get_schema)(ArrowDeviceArrayStream*, ArrowSchema* out) noexcept nogil
    int (*get_next)(ArrowDeviceArrayStream*, ArrowDeviceArray* out) noexcept nogil
    const char* (*get_last_error)(ArrowDeviceArrayStream*) noexcept nogil
    void (*release)(ArrowDeviceArrayStream*) noexcept nogil
    void* private_data

ctypedef fused Stream:
    ArrowArrayStream
    ArrowDeviceArrayStream

ctypedef fused Node:
    ArrowSchema
    ArrowArray

ctypedef fused Releasable:
    ArrowSchema
    ArrowArray
    ArrowArrayStream
    ArrowDeviceArrayStream


cdef object new_capsule(size_t size, const char* name, void** held):
    """Return a capsule with a struct of zeros, and set `held` to the struct.

    The destructor of the capsule releases the struct unless it was moved. `name` is a name from this file.
    """
    held[0] = PyMem_RawCalloc(1, size)
    if held[0] == NULL:
        raise MemoryError
    try:
        return PyCapsule_New(held[0], name, _drop_capsule)
    except BaseException:
        PyMem_RawFree(held[0])
        raise


cdef void _drop_capsule(object capsule) noexcept:
    cdef const char* name = PyCapsule_GetName(capsule)
    cdef void* held = PyCapsule_GetPointer(capsule, name)
    if name == SCHEMA_NAME:
        drop_struct(<ArrowSchema*> held)
    elif name == STREAM_NAME:
        drop_struct(<ArrowArrayStream*> held)
    elif name == DEVICE_STREAM_NAME:
        drop_struct(<ArrowDeviceArrayStream*> held)
    else:      # a device array starts with its array
        drop_struct(<ArrowArray*> held)
    PyMem_RawFree(held)


cdef inline void drop_struct(Releasable* held) noexcept:
    """Release a struct, unless it was released or moved. A pending exception stays pending, although foreign code may run."""
    cdef Aside aside
    if held.release != NULL:
        aside = put_aside()
        held.release(held)
        held.release = NULL
        put_back(aside)


# ------------------------------------------------------------------------------------------------------------------- formats

cdef struct Format:
    const char* text         # the format, or its prefix up to a colon
    int kind                 # kind of node in _core/kinds
    int width                # size in bytes of an offset, or the largest size of an element
    const char* number       # FLAT: NumPy dtype of the elements, without the size of V; OPAQUE: buffers
    const char* words        # name of the type in messages

# For an opaque format, `number` contains "?" for a bitmap, and a letter for each other buffer. The letter is the size in bytes
# of an item: a digit, G for 16, or d if the format contains the size (see `decimal_width`).

cdef enum:
    ROWS = 37

cdef Format[ROWS] _TABLE
#                   text      kind         width  number     words
_TABLE[0] = Format(b"b",      BITS,        0,     NULL,      b"bool in bits")
_TABLE[1] = Format(b"u",      STRING,      4,     NULL,      b"utf8")
_TABLE[2] = Format(b"U",      STRING,      8,     NULL,      b"large_utf8")
_TABLE[3] = Format(b"z",      BYTES,       4,     NULL,      b"binary")
_TABLE[4] = Format(b"Z",      BYTES,       8,     NULL,      b"large_binary")
_TABLE[5] = Format(b"vu",     STRING_VIEW, 16,    NULL,      b"utf8_view")
_TABLE[6] = Format(b"vz",     BYTES_VIEW,  16,    NULL,      b"binary_view")
_TABLE[7] = Format(b"+l",     LIST,        4,     NULL,      b"list")
_TABLE[8] = Format(b"+L",     LIST,        8,     NULL,      b"large_list")
_TABLE[9] = Format(b"+vl",    OPAQUE,      4,     b"?44",    b"list_view")
_TABLE[10] = Format(b"+vL",   OPAQUE,      8,     b"?88",    b"large_list_view")
_TABLE[11] = Format(b"+w:",   REGULAR,     0,     NULL,      b"fixed_size_list")
_TABLE[12] = Format(b"+s",    RECORD,      0,     NULL,      b"struct")
_TABLE[13] = Format(b"w:",    FLAT,        0,     b"V",      b"fixed_size_binary")
_TABLE[14] = Format(b"tdD",   FLAT,        4,     b"i4",     b"date32")
_TABLE[15] = Format(b"tdm",   FLAT,        8,     b"M8[ms]", b"date64")
_TABLE[16] = Format(b"tts",   FLAT,        4,     b"i4",     b"time32[s]")
_TABLE[17] = Format(b"ttm",   FLAT,        4,     b"i4",     b"time32[ms]")
_TABLE[18] = Format(b"ttu",   FLAT,        8,     b"m8[us]", b"time64[us]")
_TABLE[19] = Format(b"ttn",   FLAT,        8,     b"m8[ns]", b"time64[ns]")
_TABLE[20] = Format(b"tss:",  FLAT,        8,     b"M8[s]",  b"timestamp[s]")
_TABLE[21] = Format(b"tsm:",  FLAT,        8,     b"M8[ms]", b"timestamp[ms]")
_TABLE[22] = Format(b"tsu:",  FLAT,        8,     b"M8[us]", b"timestamp[us]")
_TABLE[23] = Format(b"tsn:",  FLAT,        8,     b"M8[ns]", b"timestamp[ns]")
_TABLE[24] = Format(b"tDs",   FLAT,        8,     b"m8[s]",  b"duration[s]")
_TABLE[25] = Format(b"tDm",   FLAT,        8,     b"m8[ms]", b"duration[ms]")
_TABLE[26] = Format(b"tDu",   FLAT,        8,     b"m8[us]", b"duration[us]")
_TABLE[27] = Format(b"tDn",   FLAT,        8,     b"m8[ns]", b"duration[ns]")
_TABLE[28] = Format(b"tiM",   OPAQUE,      4,     b"?4",     b"interval[months]")
_TABLE[29] = Format(b"d:",    OPAQUE,      32,    b"?d",     b"decimal")
_TABLE[30] = Format(b"+ud:",  OPAQUE,      4,     b"14",     b"dense_union")
_TABLE[31] = Format(b"+r",    OPAQUE,      0,     b"",       b"run_end_encoded")
_TABLE[32] = Format(b"n",     OPAQUE,      0,     b"",       b"null")
_TABLE[33] = Format(b"+m",    LIST,        4,     NULL,      b"map")     # imported as a list
_TABLE[34] = Format(b"+us:",  OPAQUE,      1,     b"1",      b"sparse_union")
_TABLE[35] = Format(b"tiD",   OPAQUE,      8,     b"?8",     b"interval[days, milliseconds]")
_TABLE[36] = Format(b"tin",   OPAQUE,      16,    b"?G",     b"interval[months, days, nanoseconds]")

# Rows for the formats of numbers, indexed by the letter of the format. Generated from the table of element types.
cdef Format[128] _NUMBERS
cdef const dtypes.ElementType* _row
cdef int _letter
for _letter in range(1, 128):
    _row = dtypes.by_arrow(_letter)
    if _row != NULL:
        _NUMBERS[_letter] = Format(NULL, FLAT, <int> _row.itemsize, NULL, _row.name)

# NumPy's dtypes of the rows of kind FLAT, created once: `numpy.dtype(name)` took 0.13 of the 0.6 us in which a short chunk of
# dates was imported (a loop over 10,000 chunks, 2026-11-27). The formats of datetime64 and timedelta64 by dtype.
cdef dict _DTYPES = {}
cdef dict _TIME_FORMATS = {}
cdef const Format* _format
for _number in range(ROWS):
    _format = &_TABLE[_number]
    if _format.number != NULL and not is_opaque(_format) and _format.number[0] != c"V":
        _DTYPES[_format.number] = np.dtype(_format.number.decode())
        if not has_logical_type(_format.text, _format):
            _TIME_FORMATS[_DTYPES[_format.number]] = <bytes> _format.text


cdef const Format* find_format(const char* text) noexcept nogil:
    """Return the table row of a format string, or NULL if the format is unknown."""
    cdef int k
    cdef size_t size
    if text == NULL or text[0] <= 0:      # formats are ASCII
        return NULL
    if text[1] == 0 and _NUMBERS[<int> text[0]].words != NULL:
        return &_NUMBERS[<int> text[0]]
    for k in range(ROWS):
        if text[0] != _TABLE[k].text[0]:
            continue
        size = strlen(_TABLE[k].text)
        if strncmp(text, _TABLE[k].text, size) == 0 and (text[size] == 0 or text[size - 1] == c":"):
            return &_TABLE[k]
    return NULL


cdef const Format* format_of_kind(int kind, Py_ssize_t width) noexcept nogil:
    """Return the first row of a kind with the given width, or with any width if `width` is 0."""
    cdef int k
    for k in range(ROWS):
        if _TABLE[k].kind == kind and (width == 0 or _TABLE[k].width == width):
            return &_TABLE[k]
    return NULL


cdef inline bint is_opaque(const Format* row) noexcept nogil:
    return NODE_KINDS[row.kind].properties & FOREIGN != 0


cdef int buffers_of(const Format* row) noexcept nogil:
    """Return the number of buffers of a format, or ANY if the number varies."""
    return <int> strlen(row.number) if is_opaque(row) else NODE_KINDS[row.kind].buffers


cdef int children_of(const Format* row) noexcept nogil:
    """Return the number of children of a format, or ANY if the number varies."""
    if not is_opaque(row):
        return NODE_KINDS[row.kind].children
    if row.text[0] != c"+":
        return 0
    return ANY if row.text[1] == c"u" else 2 if row.text[1] == c"r" else 1


cdef bint has_bitmap(const Format* row) noexcept nogil:
    """Return whether the first buffer of a format is a validity bitmap."""
    return not is_opaque(row) or row.number[0] == c"?"


cdef Py_ssize_t item_size(char letter, const char* text) except -1:
    """Return the size in bytes of an item of a buffer of an opaque format."""
    return decimal_width(text) if letter == c"d" else 16 if letter == c"G" else letter - c"0"


cdef int decimal_width(const char* format) except -1:
    """Return the size in bytes of a decimal with the format ``d:precision,scale`` or ``d:precision,scale,bits``."""
    text = format[: min(<Py_ssize_t> strlen(format), 80)]
    numbers = text[2:].split(b",")
    if len(numbers) not in (2, 3) or any([len(n) > 9 or not n.removeprefix(b"-").isdigit() for n in numbers]):
        raise interface_error("Arrow", "format", text, "'d:precision,scale' or 'd:precision,scale,bits'")
    bits = int(numbers[2]) if len(numbers) == 3 else 128
    if bits not in (32, 64, 128, 256):
        raise interface_error("Arrow", "format", text, "a size of 32, 64, 128 or 256 bits")
    if not 1 <= int(numbers[0]) <= 76:
        raise interface_error("Arrow", "format", text, "a precision of 1 to 76 digits")
    return bits // 8


def layout_of(str meaning not None):
    """Return the layout of an opaque format: whether it has a bitmap, the size of an item of each other buffer, and children.

    The number of children is None for unions. Raise InterfaceError for the format of another kind.
    """
    cdef bytes text = meaning.encode()
    cdef const Format* row = find_format(text)
    if row == NULL or not is_opaque(row):
        raise interface_error("Arrow", "format", meaning, "the format of an opaque array, such as 'n' or '+r'")
    letters = (<bytes> row.number).lstrip(b"?")
    children = children_of(row)
    return has_bitmap(row), tuple([item_size(letter, text) for letter in letters]), None if children < 0 else children


cdef bint has_logical_type(const char* text, const Format* row) noexcept:
    """Return whether the NumPy dtype of the elements does not determine the format.

    This is the case for dates, times of day and timestamps with a time zone.
    """
    if row.number[0] == c"V":
        return False
    return text[1] == c"d" or text[1] == c"t" or (text[1] == c"s" and text[4] != 0)


def type_name(str meaning not None):
    """Return the type name of an Arrow format for messages, such as ``date32`` or ``timestamp[us, UTC]``.

    For an unknown format, return the repr of the format.
    """
    cdef bytes text = meaning.encode()
    cdef const Format* row = find_format(text)
    if row == NULL:
        return repr(meaning)
    cdef str name = row.words.decode()
    return f"{name[:len(name) - 1]}, {meaning[4:]}]" if meaning[:2] == "ts" and meaning[4:] else name


cdef str text_of(const char* text):
    """Return the repr of a format for messages, truncated to 80 characters."""
    if text == NULL:
        return "a NULL format"
    return repr(text[:strlen(text) if strlen(text) < 80 else 80].decode("utf-8", "replace"))


# ----------------------------------------------------------------------------------------------------------------- ownership

@cython.final
@cython.no_gc
@cython.freelist(32)
cdef class Import:
    """Schema and array structs that were moved out of a producer's capsules or stream.

    The array struct owns the memory that arrays view.
    """
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef DLDevice device
    cdef intptr_t stream           # CUDA: a stream that waits for the producer's work; 0: no work is pending

    def __cinit__(self):
        self.device = DLDevice(kDLCPU, 0)

    def __init__(self):
        raise TypeError("cannot create 'Import' instances directly; use arrayhub.asarray or arrayhub.asnested")

    def __dealloc__(self):
        drop_struct(&self.array)
        drop_struct(&self.schema)

    def __repr__(self):
        return f"<memory of an Arrow array, released by {<size_t> <void*> self.array.release:#x}>"


cdef void* pointer_in(object capsule, const char* name, str source) except NULL:
    """Return the pointer in a capsule. `source` is the method or argument that supplied the capsule, for error messages."""
    if not PyCapsule_IsValid(capsule, name):
        raise interface_error("Arrow", source, capsule if not PyCapsule_CheckExact(capsule) else name_of(capsule),
                              f"a capsule named {name.decode()!r}")
    return PyCapsule_GetPointer(capsule, name)


cdef object name_of(object capsule):
    cdef const char* name = PyCapsule_GetName(capsule)
    return None if name == NULL else name


cdef object released_error(str what):
    return interface_error("Arrow", f"{what}.release", None, "a function. The struct was consumed before, and can be"
                           " consumed only once. Request a new struct from the producer")


cdef int check_schema(ArrowSchema* schema, str source, int depth, int* nodes) except -1:
    """Validate the pointers and counts of a foreign schema. A hostile schema may contain itself."""
    cdef int64_t k
    nodes[0] += 1
    if schema.release == NULL:
        raise released_error(source)
    if depth > MAX_DEPTH or nodes[0] > MAX_NODES or schema.n_children > MAX_NODES:
        raise InterfaceError(
            f"Arrow: {source} has more than {MAX_DEPTH} levels of children or more than {MAX_NODES} nodes; accepted: at most"
            f" {MAX_DEPTH} levels and {MAX_NODES} nodes"
        )
    if schema.format == NULL:
        raise interface_error("Arrow", f"{source}.format", None, "a format of the C data interface, such as 'g' or '+l'")
    if schema.n_children < 0:
        raise interface_error("Arrow", f"{source}.n_children", schema.n_children, "zero or more")
    if schema.n_children > 0 and schema.children == NULL:
        raise interface_error("Arrow", f"{source}.children", None, f"a pointer to {schema.n_children} children")
    for k in range(schema.n_children):
        if schema.children[k] == NULL:
            raise interface_error("Arrow", f"{source}.children[{k}]", None, "a pointer to a child")
        check_schema(schema.children[k], source, depth + 1, nodes)
    return 0 if schema.dictionary == NULL else check_schema(schema.dictionary, source, depth + 1, nodes)


cdef int validate_schema(ArrowSchema* schema, str source) except -1:
    """Validate a schema and all schemas below it. Errors name `source`."""
    cdef int nodes = 0
    return check_schema(schema, source, 0, &nodes)


cdef int move_struct(Releasable* target, Releasable* source, str what) except -1:
    """Move a struct of a producer. The error for a struct that was moved before names it `what`."""
    if source.release == NULL:
        raise released_error(what)
    target[0] = source[0]
    source.release = NULL
    return 0


cdef int move_schema(Import owner, object capsule, str source) except -1:
    return move_struct(&owner.schema, <ArrowSchema*> pointer_in(capsule, SCHEMA_NAME, source), "ArrowSchema")


# ------------------------------------------------------------------------------------------------------------ exported structs


cdef inline size_t size_below(int64_t children, bint dictionary, size_t size) noexcept:
    """Return the number of bytes that `place_below` uses. `size` is the size of one struct."""
    return children * sizeof(void*) + (children + dictionary) * size


cdef inline char* place_below(Node* out, void* space, int64_t children, bint dictionary) noexcept:
    """Let a struct point to its children and its dictionary, which are placed in `space`. Return the end of the used space."""
    cdef int64_t k
    out.children = <Node**> space
    cdef Node* below = <Node*> (out.children + children)
    for k in range(children):
        out.children[k] = below + k
    out.n_children = children
    out.dictionary = below + children if dictionary else NULL
    return <char*> (below + children + dictionary)


cdef inline void release_below(Node* node) noexcept nogil:
    """Release the children and the dictionary of a struct, except those that a consumer has moved: their `release` is NULL."""
    cdef int64_t k
    for k in range(node.n_children):
        if node.children[k].release != NULL:
            node.children[k].release(node.children[k])
    if node.dictionary != NULL and node.dictionary.release != NULL:
        node.dictionary.release(node.dictionary)


cdef struct Body:              # private data of an exported array; its buffer pointers and child structs follow in memory
    PyObject* owner            # owner of the buffers of this node
    cuda.CudaEvent event       # set for the outermost array in a CUDA device array


cdef void _release_array(ArrowArray* array) noexcept nogil:
    if array == NULL or array.release == NULL:
        return
    if is_finalizing():      # Python code can no longer run, so the memory is kept until the process ends
        array.release = NULL
        return
    release_below(array)
    free_body(<Body*> array.private_data)
    array.release = NULL


cdef void free_body(Body* body) noexcept with gil:
    cdef Aside aside = put_aside()
    if body.event != NULL:
        cuda.destroy_event(body.event)
    Py_DECREF(<object> body.owner)
    PyMem_RawFree(body)
    put_back(aside)


cdef Body* new_body(ArrowArray* out, object owner, int buffers, int64_t children, bint dictionary) except NULL:
    """Allocate the buffer pointers, children and dictionary of `out`, and set its release function."""
    cdef size_t size = sizeof(Body) + buffers * sizeof(void*)
    cdef Body* body = <Body*> PyMem_RawCalloc(1, size + size_below(children, dictionary, sizeof(ArrowArray)))
    if body == NULL:
        raise MemoryError
    Py_INCREF(owner)
    body.owner = <PyObject*> owner
    out.buffers = <const void**> (<char*> body + sizeof(Body))
    out.n_buffers = buffers
    place_below(out, out.buffers + buffers, children, dictionary)
    out.offset = 0
    out.private_data = body
    out.release = _release_array
    return body
