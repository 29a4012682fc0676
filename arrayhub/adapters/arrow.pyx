"""Arrow's C data, C stream and C device data interfaces, through PyCapsules: parse and emit.

Source of every rule: the specifications of the three interfaces, of the PyCapsule protocol, of the columnar format's
layouts, and of the canonical extension types ``arrow.fixed_shape_tensor`` and ``arrow.bool8``.
"""

cimport cython

import json

import numpy as np

from cpython.exc cimport PyErr_CheckSignals, PyErr_Fetch, PyErr_Occurred, PyErr_Restore
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
from libc.string cimport memcpy, strlen

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    ARROW_PROTOCOL,
    C_CONTIGUOUS,
    IMMUTABLE,
    NOTSWAPPED,
    OTHER_CONTEXT,
    PACKED,
    USM_DEVICE,
    Descriptor,
    get_dtype,
    host_readable,
    labels_of,
    new_array,
    reshape,
    seal,
    set_dtype,
    set_labels,
    set_type,
    shape_tuple,
    size_of,
    stride_tuple,
    transpose,
)
from arrayhub._core.device cimport DLDevice, kDLCPU, kDLCUDA, kDLCUDAManaged, kDLOneAPI
from arrayhub._core.runtime cimport adopt, device_of, host_ready, place_of
from arrayhub._core.tree cimport (
    BITS,
    BYTES,
    BYTES_VIEW,
    CATEGORICAL,
    FLAT,
    LIST,
    LIST_VIEW,
    MAX_DEPTH,
    RECORD,
    REGULAR,
    STRING,
    STRING_VIEW,
    UNCOUNTED,
    VIEW_BYTES,
    Tree,
    count_nulls,
    first_array,
    integer_at,
    length_of,
    new_tree,
)
from arrayhub.adapters.arrow_abi cimport (
    ARROW_FLAG_DICTIONARY_ORDERED,
    ARROW_FLAG_NULLABLE,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
    ArrowSchema,
)
from arrayhub.adapters.arrow_format cimport REFUSED, Format, find_format, format_of_kind, unit_of
from arrayhub.runtimes cimport cuda

from arrayhub._core.device import TYPE_NAMES
from arrayhub._core.errors import interface_error, show
from arrayhub._core.labels import named

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    #define arrayhub_is_finalizing() Py_IsFinalizing()
    #else
    #define arrayhub_is_finalizing() (!Py_IsInitialized() || _Py_IsFinalizing())
    #endif
    """
    bint arrayhub_is_finalizing() nogil

cdef const char* SCHEMA_NAME = b"arrow_schema"
cdef const char* ARRAY_NAME = b"arrow_array"
cdef const char* STREAM_NAME = b"arrow_array_stream"
cdef const char* DEVICE_NAME = b"arrow_device_array"

cdef str DEVICE_METHOD = "__arrow_c_device_array__"
cdef str ARRAY_METHOD = "__arrow_c_array__"
cdef str STREAM_METHOD = "__arrow_c_stream__"

cdef enum:
    MAX_NODES = 100_000            # of one type: a hostile schema may contain itself
    MAX_PAIRS = 4096               # of metadata
    MAX_METADATA = 1 << 20         # bytes of one string in it
    EINVAL = 22

# What an offsets buffer that is NULL, as an empty array's may be, is read as.
cdef int64_t[2] _NO_OFFSETS


# ------------------------------------------------------------------------------------------------- what was handed over


@cython.final
@cython.no_gc
@cython.freelist(32)
cdef class Import:
    """The structs of a producer, moved here, each released exactly once: the owner of the memory that arrays view."""
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef DLDevice device
    cdef intptr_t stream           # CUDA: one that waits for the producer's work; 0: the memory may be read now

    def __init__(self):
        raise TypeError("Import: made by arrayhub.asarray and arrayhub.asnested alone")

    def __dealloc__(self):
        self.drop()

    cdef void drop(self) noexcept:
        cdef PyObject* kind
        cdef PyObject* value
        cdef PyObject* traceback
        cdef bint pending = PyErr_Occurred() != NULL
        if pending:       # a release may run Python code while an exception is on its way
            PyErr_Fetch(&kind, &value, &traceback)
        if self.array.release != NULL:
            self.array.release(&self.array)
            self.array.release = NULL
        drop_schema(&self.schema)
        if pending:
            PyErr_Restore(kind, value, traceback)

    def __repr__(self):
        return f"<memory of an Arrow array, released by {<size_t> <void*> self.array.release:#x}>"


cdef inline void drop_schema(ArrowSchema* schema) noexcept:
    if schema.release != NULL:
        schema.release(schema)
        schema.release = NULL


cdef Import new_import():
    cdef Import owner = Import.__new__(Import)
    owner.schema.release = NULL
    owner.array.release = NULL
    owner.device = DLDevice(kDLCPU, 0)
    owner.stream = 0
    return owner


cdef void* pointer_in(object capsule, const char* name, str method) except NULL:
    if not PyCapsule_IsValid(capsule, name):
        raise interface_error("Arrow", f"{method}()", capsule if not PyCapsule_CheckExact(capsule) else name_of(capsule),
                              f"a capsule named {name.decode()!r}")
    return PyCapsule_GetPointer(capsule, name)


cdef object name_of(object capsule):
    cdef const char* name = PyCapsule_GetName(capsule)
    return None if name == NULL else name


cdef object released(str what):
    return interface_error("Arrow", f"{what}.release", None, "a function: the struct was consumed before, and can be once"
                                                             " only; ask the producer for a new one")


cdef int take_schema(Import owner, object capsule, str method) except -1:
    cdef ArrowSchema* schema = <ArrowSchema*> pointer_in(capsule, SCHEMA_NAME, method)
    if schema.release == NULL:
        raise released("ArrowSchema")
    owner.schema = schema[0]
    schema.release = NULL
    return 0


cdef int take_array(Import owner, object capsule, str method) except -1:
    cdef ArrowArray* array = <ArrowArray*> pointer_in(capsule, ARRAY_NAME, method)
    if array.release == NULL:
        raise released("ArrowArray")
    owner.array = array[0]
    array.release = NULL
    return 0


cdef int take_device_array(Import owner, object capsule) except -1:
    cdef ArrowDeviceArray* array = <ArrowDeviceArray*> pointer_in(capsule, DEVICE_NAME, DEVICE_METHOD)
    if array.array.release == NULL:
        raise released("ArrowDeviceArray.array")
    owner.array = array.array
    array.array.release = NULL
    return place(owner, array.device_type, array.device_id, array.sync_event)


cdef int place(Import owner, int device_type, int64_t device_id, void* sync_event) except -1:
    """Note where the buffers lie, and have a stream of our own wait for the producer's event."""
    if device_type not in TYPE_NAMES:
        raise interface_error("Arrow", "device_type", device_type, f"one of {sorted(TYPE_NAMES)}")
    if device_type == kDLCPU:
        return 0
    if device_id < 0 or device_id >= 1 << 30:
        raise interface_error("Arrow", "device_id", device_id, "an ordinal of zero or more")
    owner.device = DLDevice(device_type, <int32_t> device_id)
    if sync_event == NULL:
        return 0
    if device_type != kDLCUDA and device_type != kDLCUDAManaged:
        raise BufferError(
            f"Arrow: sync_event is set for {TYPE_NAMES[device_type]}; accepted: NULL, after the producer's work is done,"
            " and a cudaEvent_t* for CUDA"
        )
    owner.stream = cuda.stream_after((<void**> sync_event)[0], owner.device.device_id)
    return 0


cdef bint speaks(object cls) except -1:
    return hasattr(cls, ARRAY_METHOD) or hasattr(cls, STREAM_METHOD) or hasattr(cls, DEVICE_METHOD)


cdef tuple pair_from(object obj, str method):
    pair = getattr(obj, method)()
    if type(pair) is not tuple or len(<tuple> pair) != 2:
        raise interface_error("Arrow", f"{method}()", pair, "a pair of capsules: the schema and the array")
    return <tuple> pair


cdef Import import_one(object obj, bint on_device):
    """What the array interface hands over, or the device interface."""
    cdef str method = DEVICE_METHOD if on_device else ARRAY_METHOD
    cdef tuple pair = pair_from(obj, method)
    cdef Import owner = new_import()
    take_schema(owner, pair[0], method)
    if on_device:
        take_device_array(owner, pair[1])
    else:
        take_array(owner, pair[1], method)
    return owner


cdef list import_stream(object obj):
    """What a stream hands over, an Import a chunk; the first has the schema. A stream without chunks is one that has none.
    """
    cdef ArrowArrayStream stream
    capsule = getattr(obj, STREAM_METHOD)()
    cdef ArrowArrayStream* source = <ArrowArrayStream*> pointer_in(capsule, STREAM_NAME, STREAM_METHOD)
    cdef Import owner = new_import()
    cdef list chunks = [owner]
    if source.release == NULL:
        raise released("ArrowArrayStream")
    stream = source[0]
    source.release = NULL
    try:
        check_stream(&stream, stream.get_schema(&stream, &owner.schema), "get_schema")
        while True:
            check_stream(&stream, next_of(&stream, owner), "get_next")
            if owner.array.release == NULL:
                break
            PyErr_CheckSignals()
            owner = new_import()
            chunks.append(owner)
        if len(chunks) > 1:
            chunks.pop()
    finally:
        stream.release(&stream)
    return chunks


cdef int next_of(ArrowArrayStream* stream, Import owner) noexcept:
    cdef int code
    with nogil:
        code = stream.get_next(stream, &owner.array)
    if code != 0:
        owner.array.release = NULL       # the specification leaves open what is in it
    return code


cdef int check_stream(ArrowArrayStream* stream, int code, str function) except -1:
    cdef const char* words
    if code != 0:
        words = stream.get_last_error(stream)
        said = "" if words == NULL else ": " + words.decode("utf-8", "replace")
        raise BufferError(f"Arrow stream: {function} failed with the error number {code}{said}")
    return 0


# -------------------------------------------------------------------------------------------------------------- parsing


cdef Descriptor parse(object obj, object stream):
    """A dense array on the memory that Arrow's interfaces hand over; None where the type has none of them.

    Asked in this order: the device interface, the array's, the stream's (of one chunk).

    Raises
    ------
    InterfaceError
        The structs contradict themselves or the specification.
    BufferError
        The memory is no dense array; the message names ``asnested`` and, where there is one, a call of the producer's.
    """
    cdef object chunks = parse_chunks(obj)
    if chunks is None:
        return None
    if len(<list> chunks) != 1:
        raise BufferError(
            f"Arrow: {type(obj).__name__} hands over {len(<list> chunks)} chunks of memory; accepted: one. Call"
            " arrayhub.asnested(x), which gives the list of them, or asnested(x, copy=True), one copy"
        )
    return dense((<list> chunks)[0], obj)


cdef Descriptor dense(object node, object obj):
    """A node as a dense array, or the refusal that says which call helps."""
    if not isinstance(node, Tree):
        return <Descriptor> node
    raise BufferError(f"Arrow: {type(obj).__name__} {refusal_of(<Tree> node)}")


# One row per kind: why it is no dense array, and what helps.
cdef dict _REFUSALS = {
    LIST: "has rows of different lengths; call arrayhub.asnested(x), and .to_dense() where all are equally long",
    LIST_VIEW: "has rows of different lengths; call arrayhub.asnested(x), and .to_dense() where all are equally long",
    REGULAR: "has rows of what is no dense array; call arrayhub.asnested(x)",
    STRING: "has strings; call arrayhub.asnested(x)",
    STRING_VIEW: "has strings; call arrayhub.asnested(x)",
    BYTES: "has strings of bytes; call arrayhub.asnested(x)",
    BYTES_VIEW: "has strings of bytes; call arrayhub.asnested(x)",
    RECORD: "has columns; call arrayhub.asnested(x), or take one column",
    CATEGORICAL: "is encoded by a dictionary; call arrayhub.asnested(x), whose .indices and .content are arrays",
    BITS: "packs eight values into a byte; call arrayhub.asnested(x).to_dense(copy=True), which unpacks them",
}


cdef str refusal_of(Tree t):
    if t.validity is not None and (not host_readable(t.validity) or count_nulls(t)):
        count = f"{t.nulls} missing values" if t.nulls != UNCOUNTED else "a bitmap of missing values"
        return f"has {count}, which a dense array cannot say; call arrayhub.asnested(x), or fill them in first"
    if t.kind == FLAT:
        return f"has elements of Arrow's type {t.meaning!r}, of which NumPy's says less; call arrayhub.asnested(x), whose" \
            " .content is an array"
    return _REFUSALS[t.kind]


cdef object parse_chunks(object obj):
    """The chunks that Arrow's interfaces hand over, each a Descriptor where it is dense and a Tree elsewhere; None where
    the type has none of the interfaces."""
    cls = type(obj)
    cdef Import owner, first
    cdef list owners
    # pyarrow's own arrays have both, of which the device's takes longer, and the array's refuses what is on a device.
    if hasattr(cls, DEVICE_METHOD) and not (cls.__module__ == "pyarrow.lib" and is_on_host(obj)):
        owners = [import_one(obj, True)]
    elif hasattr(cls, ARRAY_METHOD):
        owners = [import_one(obj, False)]
    elif hasattr(cls, STREAM_METHOD):
        owners = import_stream(obj)
    else:
        return None
    first = <Import> owners[0]
    cdef list chunks = []
    for owner in owners:
        if owner.array.release == NULL:       # a stream without chunks
            make_empty(&owner.array, &owner.schema, 0)
        chunks.append(build_root(owner, &first.schema))
    drop_schema(&first.schema)
    return chunks


cdef bint is_on_host(object obj) except -1:
    return getattr(obj, "is_cpu", True)


cdef int make_empty(ArrowArray* out, ArrowSchema* schema, int depth) except -1:
    """The array of no elements that a schema describes, for a stream without chunks."""
    cdef int64_t k
    cdef const Format* row = find_format(schema.format) if schema.release != NULL else NULL
    if depth > MAX_DEPTH or row == NULL or schema.n_children < 0 or schema.n_children > MAX_NODES:
        raise interface_error("Arrow", "schema", None if schema.format == NULL else schema.format,
                              "a format of the C data interface, for a stream without chunks")
    new_body(out, None, row.buffers if row.buffers >= 0 else 3, schema.n_children, schema.dictionary != NULL)
    for k in range(schema.n_children):
        if schema.children == NULL or schema.children[k] == NULL:
            raise interface_error("Arrow", f"children[{k}]", None, "a pointer to a child")
        make_empty(out.children[k], schema.children[k], depth + 1)
    if schema.dictionary != NULL:
        make_empty(out.dictionary, schema.dictionary, depth + 1)
    return 0


cdef object build_root(Import owner, ArrowSchema* schema):
    cdef int nodes = 0
    return build(owner, schema, &owner.array, 0, owner.array.length, 0, &nodes)


cdef object array_error(ArrowSchema* schema, str field, object value, str accepted):
    return interface_error("Arrow", f"{text_of(schema.format)} array's {field}", value, accepted)


cdef str text_of(const char* text):
    if text == NULL:
        return "a NULL format"
    return repr(text[:strlen(text) if strlen(text) < 80 else 80].decode("utf-8", "replace"))


cdef object build(Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t start, Py_ssize_t length, int depth,
                  int* nodes):
    """Elements `start` to `start + length` of one node: a Descriptor where they are dense, else a Tree."""
    cdef const Format* row = check_head(schema, array, depth, nodes)
    cdef Py_ssize_t first
    if start < 0 or length < 0 or array.length < 0 or start > array.length - length:
        raise array_error(schema, "length", array.length, f"{start + length} or more, for what its parent needs of it")
    if layout.checked_add(array.offset, start, &first) or layout.checked_add(first, length, &start):
        raise array_error(schema, "offset", array.offset, "one that stays below 2**63 with the length")
    cdef Py_ssize_t nulls = nulls_in(schema, array, length)
    cdef Descriptor validity = None
    if nulls != 0:
        validity = buffer_of(owner, array.buffers[0], first >> 3, ((first & 7) + length + 7) >> 3)
    cdef object node
    if array.dictionary != NULL:
        node = build_categorical(owner, schema, array, row, first, length, depth, nodes)
    elif row.kind == FLAT:
        node = build_flat(owner, schema, array, row, first, length)
    elif row.kind == REGULAR:
        node = build_regular(owner, schema, array, first, length, depth, nodes)
    else:
        node = build_other(owner, schema, array, row, first, length, depth, nodes)
    if schema.metadata != NULL:
        node = extended(node, schema)
    return node if validity is None else with_validity(node, validity, first & 7, nulls)


cdef object with_validity(object node, Descriptor validity, Py_ssize_t bit, Py_ssize_t nulls):
    """A node with its bitmap; a dense array, of which nothing turns out to be missing, stays one."""
    cdef Tree t
    if isinstance(node, Tree):
        t = <Tree> node
    else:
        t = new_tree(FLAT, length_of(node))
        t.content = node
    t.validity = validity
    t.bit = bit
    t.nulls = nulls
    if (t.kind == FLAT or t.kind == REGULAR) and validity.device_.device_type == kDLCPU and count_nulls(t) == 0:
        t.validity = None
        t.bit = 0
        return t.content if t.kind == FLAT and t.meaning is None else t
    return t


cdef const Format* check_head(ArrowSchema* schema, ArrowArray* array, int depth, int* nodes) except NULL:
    """What every node has to say rightly before any of its pointers is followed."""
    nodes[0] += 1
    if depth > MAX_DEPTH or nodes[0] > MAX_NODES:
        raise interface_error("Arrow", "children", f"{depth} levels, {nodes[0]} nodes",
                              f"at most {MAX_DEPTH} levels and {MAX_NODES} nodes")
    if schema.release == NULL or array.release == NULL:
        raise released("ArrowSchema" if schema.release == NULL else "ArrowArray")
    cdef const Format* row = find_format(schema.format)
    if row == NULL:
        raise interface_error("Arrow", "format", None if schema.format == NULL else schema.format,
                              "a format of the C data interface, such as 'g' or '+l'")
    if row.kind == REFUSED:
        raise BufferError(
            f"Arrow: format {text_of(schema.format)} is {row.words.decode()}, which has no form here; accepted: numbers,"
            " times, strings, lists, structs and dictionaries. Cast it with its own library first"
        )
    check_counts(schema, array, row)
    if array.length < 0:
        raise array_error(schema, "length", array.length, "zero or more")
    if array.offset < 0:
        raise array_error(schema, "offset", array.offset, "zero or more")
    return row


cdef int check_counts(ArrowSchema* schema, ArrowArray* array, const Format* row) except -1:
    cdef int64_t k
    if array.n_buffers != row.buffers and (row.buffers >= 0 or array.n_buffers < 3 or array.n_buffers > 1 << 30):
        raise array_error(schema, "n_buffers", array.n_buffers, str(row.buffers) if row.buffers >= 0 else "3 or more")
    if array.buffers == NULL:
        raise array_error(schema, "buffers", None, f"a pointer to {array.n_buffers} addresses")
    if schema.n_children < 0 or (row.children >= 0 and schema.n_children != row.children):
        raise array_error(schema, "schema.n_children", schema.n_children,
                          str(row.children) if row.children >= 0 else "zero or more")
    if array.n_children != schema.n_children:
        raise array_error(schema, "n_children", array.n_children, f"{schema.n_children}, as the schema has")
    if schema.n_children > MAX_NODES:
        raise array_error(schema, "n_children", schema.n_children, f"at most {MAX_NODES}")
    if schema.n_children > 0 and (schema.children == NULL or array.children == NULL):
        raise array_error(schema, "children", None, f"a pointer to {schema.n_children} children")
    for k in range(schema.n_children):
        if schema.children[k] == NULL or array.children[k] == NULL:
            raise array_error(schema, f"children[{k}]", None, "a pointer to a child")
    if (schema.dictionary == NULL) != (array.dictionary == NULL):
        raise array_error(schema, "dictionary", None, "one in the schema and in the array, or in neither")
    return 0


cdef Py_ssize_t nulls_in(ArrowSchema* schema, ArrowArray* array, Py_ssize_t length) except -2:
    """How many of `length` elements are missing: 0, or UNCOUNTED, where it takes a look at the bitmap."""
    if array.null_count < UNCOUNTED or array.null_count > array.length:
        raise array_error(schema, "null_count", array.null_count, f"-1 (not counted) to {array.length}, its length")
    if array.buffers[0] == NULL:
        if array.null_count > 0:
            raise array_error(schema, "buffers[0]", None, f"the bitmap of its {array.null_count} missing values")
        return 0
    if array.null_count == 0 or length == 0:
        return 0
    return UNCOUNTED


# --------------------------------------------------------------------------------------------- the arrays of one node


cdef inline Descriptor blank(Import owner, const void* data, Py_ssize_t length):
    """An array of one dimension at an address, still without a type."""
    cdef Descriptor a = new_array(1)
    a.protocol_ = ARROW_PROTOCOL
    a.flags_ = IMMUTABLE
    a.data_ = <char*> data
    a.base_ = owner
    a.device_ = owner.device
    if owner.device.device_type == kDLOneAPI:
        a.usm_type_ = USM_DEVICE      # until the runtime has looked, promise the least
    a.stream_ = <void*> owner.stream
    a.shape_[0] = length
    return a


cdef inline Descriptor finished(Descriptor a):
    a.byte_strides_[0] = a.itemsize_
    seal(a)
    adopt(a)
    return a


cdef Descriptor buffer_of(Import owner, const void* data, Py_ssize_t start, Py_ssize_t nbytes):
    """Bytes of a buffer."""
    cdef Descriptor a = blank(owner, moved(data, start, 1), nbytes)
    set_type(a, dtypes.by_arrow(c"C"))
    return finished(a)


cdef inline const void* moved(const void* data, Py_ssize_t elements, Py_ssize_t itemsize) except? NULL:
    """An address so many elements on; NULL stays NULL, which `seal` accepts of arrays without elements alone."""
    cdef Py_ssize_t distance, address
    if data == NULL:
        return NULL
    if layout.checked_mul(elements, itemsize, &distance) or layout.checked_add(<Py_ssize_t> data, distance, &address):
        raise interface_error("Arrow", "offset", elements, "one that stays in the address space")
    return <const void*> address


cdef Descriptor integers(Import owner, const void* data, Py_ssize_t start, Py_ssize_t length, int width):
    cdef Descriptor a = blank(owner, moved(data, start, width), length)
    set_type(a, dtypes.by_arrow(c"i" if width == 4 else c"l"))
    return finished(a)


cdef Descriptor offsets_of(Import owner, ArrowArray* array, Py_ssize_t first, Py_ssize_t length, int width):
    """The `length + 1` offsets of a node; of one without elements there may be none."""
    if array.buffers[1] == NULL and length == 0:
        return integers(owner, _NO_OFFSETS, 0, 1, width) if owner.device.device_type == kDLCPU else \
            integers(owner, NULL, 0, 0, width)
    return integers(owner, array.buffers[1], first, length + 1, width)


cdef dict _time_dtypes = {}


cdef object time_dtype(const Format* row, const char* text):
    """datetime64 or timedelta64 in a format's unit."""
    unit = "ms" if text[1] == c"d" else unit_of(text)
    return np.dtype(f"{row.number.decode()}8[{unit}]")


cdef Py_ssize_t number_after(ArrowSchema* schema, const char* digits) except -1:
    """The number at the end of a format."""
    text = digits[:strlen(digits) if strlen(digits) < 40 else 40]
    if not text.isdigit() or len(text) > 18:
        raise interface_error("Arrow", "format", schema.format[:80 if strlen(schema.format) > 80 else strlen(schema.format)],
                              "a number of zero or more after the colon")
    return int(text)


cdef object build_flat(Import owner, ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first,
                       Py_ssize_t length):
    cdef Descriptor a
    cdef Tree t
    cdef Py_ssize_t width = row.width
    cdef object dtype = None
    if row.number == NULL:
        a = blank(owner, moved(array.buffers[1], first, width), length)
        set_type(a, dtypes.by_arrow(schema.format[0]))
        return finished(a)
    if row.number[0] == c"V":
        width = number_after(schema, schema.format + 2)
        if width > 1 << 30:
            raise interface_error("Arrow", "format", schema.format, "at most 2**30 bytes an element")
        dtype = np.dtype(f"V{width}")
    elif row.number[0] == c"i":
        dtype = np.dtype("i4")
    else:
        dtype = time_dtype(row, schema.format)
    a = blank(owner, moved(array.buffers[1], first, width), length)
    set_dtype(a, dtype)
    finished(a)
    if not says_more(schema.format, row):
        return a
    t = new_tree(FLAT, length)
    t.content = a
    t.meaning = schema.format.decode("utf-8", "replace")
    return t


cdef bint says_more(const char* text, const Format* row) noexcept:
    """Whether a format means more than NumPy's type: days and times of a day, and times with a zone."""
    if row.number[0] == c"V":
        return False
    return text[1] == c"d" or text[1] == c"t" or (text[1] == c"s" and text[4] != 0)


cdef object build_regular(Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t first, Py_ssize_t length,
                          int depth, int* nodes):
    cdef Py_ssize_t width = number_after(schema, schema.format + 3)
    cdef Py_ssize_t start, inner
    cdef Tree t
    if layout.checked_mul(first, width, &start) or layout.checked_mul(length, width, &inner):
        raise array_error(schema, "length", array.length, "fewer than 2**63 elements in all")
    node = build(owner, schema.children[0], array.children[0], start, inner, depth + 1, nodes)
    if not isinstance(node, Tree):
        if (<Descriptor> node).nd_ < layout.MAX_NDIM and (<Descriptor> node).flags_ & C_CONTIGUOUS:
            return reshape(<Descriptor> node, (length, width) + shape_tuple(<Descriptor> node)[1:])
    t = new_tree(REGULAR, length)
    t.width = width
    t.content = node
    return t


cdef object build_categorical(Import owner, ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first,
                              Py_ssize_t length, int depth, int* nodes):
    cdef const dtypes.ElementType* element = dtypes.by_arrow(schema.format[0]) if schema.format[1] == 0 else NULL
    if element == NULL or element.kind == c"f":
        raise array_error(schema, "format", schema.format, "an integer's, for the indices into a dictionary")
    cdef Tree t = new_tree(CATEGORICAL, length)
    t.indices = blank(owner, moved(array.buffers[1], first, element.itemsize), length)
    set_type(t.indices, element)
    finished(t.indices)
    t.content = build(owner, schema.dictionary, array.dictionary, 0, array.dictionary.length, depth + 1, nodes)
    if schema.flags & ARROW_FLAG_DICTIONARY_ORDERED:
        t.meaning = "ordered"
    return t


cdef Tree build_other(Import owner, ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first,
                      Py_ssize_t length, int depth, int* nodes):
    cdef Tree t = new_tree(row.kind, length)
    if row.kind == BITS:
        t.bit = first & 7
        t.content = buffer_of(owner, array.buffers[1], first >> 3, (t.bit + length + 7) >> 3)
    elif row.kind == RECORD:
        fill_record(t, owner, schema, array, first, length, depth, nodes)
    elif row.kind == STRING_VIEW or row.kind == BYTES_VIEW:
        fill_views(t, owner, schema, array, first, length)
    elif row.kind == LIST_VIEW:
        t.offsets = integers(owner, array.buffers[1], first, length, row.width)
        t.sizes = integers(owner, array.buffers[2], first, length, row.width)
        t.content = whole_child(owner, schema, array, depth, nodes)
    else:
        t.offsets = offsets_of(owner, array, first, length, row.width)
        t.content = whole_child(owner, schema, array, depth, nodes) if row.kind == LIST else \
            characters_of(owner, schema, array, t.offsets)
    return t


cdef object whole_child(Import owner, ArrowSchema* schema, ArrowArray* array, int depth, int* nodes):
    return build(owner, schema.children[0], array.children[0], 0, array.children[0].length, depth + 1, nodes)


cdef Descriptor characters_of(Import owner, ArrowSchema* schema, ArrowArray* array, Descriptor offsets):
    """The bytes that the last offset says there are. On a device it cannot be read: then their number is not known yet,
    and is said to be 0 until the offsets are on the host."""
    cdef Py_ssize_t end = 0
    if host_readable(offsets):
        host_ready(offsets)
        end = integer_at(offsets.data_, offsets.itemsize_, offsets.shape_[0] - 1)
    if end < 0:
        raise array_error(schema, f"offsets[{offsets.shape_[0] - 1}]", end, "zero or more")
    return buffer_of(owner, array.buffers[2], 0, end)


cdef int fill_views(Tree t, Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t first,
                    Py_ssize_t length) except -1:
    """The last buffer has the sizes of those that the views lead into."""
    cdef Py_ssize_t k, count = array.n_buffers - 3
    cdef const char* sizes = <const char*> array.buffers[array.n_buffers - 1]
    cdef list parts = []
    if owner.device.device_type != kDLCPU:
        raise BufferError(
            f"Arrow: format {text_of(schema.format)} on {TYPE_NAMES[owner.device.device_type]}; accepted: views in host"
            " memory. Cast them to utf8 or binary, which have offsets"
        )
    if count > 0 and sizes == NULL:
        raise array_error(schema, f"buffers[{array.n_buffers - 1}]", None, f"the sizes of its {count} buffers")
    for k in range(count):
        if integer_at(sizes, 8, k) < 0:
            raise array_error(schema, f"sizes[{k}]", integer_at(sizes, 8, k), "zero or more bytes")
        parts.append(buffer_of(owner, array.buffers[2 + k], 0, integer_at(sizes, 8, k)))
    cdef Py_ssize_t ignored
    if layout.checked_mul(length, VIEW_BYTES, &ignored):
        raise array_error(schema, "length", array.length, "one whose views stay in the address space")
    t.content = reshape(buffer_of(owner, moved(array.buffers[1], first, VIEW_BYTES), 0, VIEW_BYTES * length),
                        (length, VIEW_BYTES))
    t.parts = tuple(parts)
    return 0


cdef int fill_record(Tree t, Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t first, Py_ssize_t length,
                     int depth, int* nodes) except -1:
    """A struct's offset counts in its children too."""
    cdef int64_t k
    cdef list names = [], parts = []
    for k in range(schema.n_children):
        names.append("" if schema.children[k].name == NULL else field_name(schema.children[k].name))
        parts.append(build(owner, schema.children[k], array.children[k], first, length, depth + 1, nodes))
    if len(set(names)) != len(names):
        raise array_error(schema, "children's names", names, "a different name for each field")
    t.names = tuple(names)
    t.parts = tuple(parts)
    return 0


cdef str field_name(const char* name):
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise interface_error("Arrow", "name", name, "UTF-8") from None


# ------------------------------------------------------------------------------------------------------ extension types


cdef dict pairs_of(const char* metadata):
    """The extension's name and metadata; other keys are their owners' business."""
    cdef Py_ssize_t at = 4, n
    cdef int32_t length
    cdef list strings
    cdef dict found = {}
    memcpy(&length, metadata, 4)
    n = length
    if n < 0 or n > MAX_PAIRS:
        raise interface_error("Arrow", "metadata", n, f"0 to {MAX_PAIRS} pairs")
    for _ in range(n):
        strings = []
        for _ in range(2):
            memcpy(&length, metadata + at, 4)
            if length < 0 or length > MAX_METADATA:
                raise interface_error("Arrow", "metadata's length of a string", length, f"0 to {MAX_METADATA} bytes")
            strings.append(metadata[at + 4 : at + 4 + length])
            at += 4 + length
        found[strings[0]] = strings[1]
    return found


cdef object extended(object node, ArrowSchema* schema):
    """What a canonical extension type makes of its storage; others are what their storage is, as the format allows."""
    cdef dict pairs = pairs_of(schema.metadata)
    name = pairs.get(b"ARROW:extension:name")
    if isinstance(node, Tree) or name is None:
        return node
    if name == b"arrow.bool8" and schema.format[0] == c"c":
        return as_bool(<Descriptor> node)
    if name == b"arrow.fixed_shape_tensor" and schema.format[0] == c"+" and (<Descriptor> node).nd_ == 2:
        return tensor_of(<Descriptor> node, pairs.get(b"ARROW:extension:metadata", b""))
    return node


cdef Descriptor as_bool(Descriptor a):
    set_type(a, dtypes.by_typestr(c"b", 1))
    return a


cdef Descriptor tensor_of(Descriptor flat, bytes metadata):
    """The dimensions that the metadata gives: `shape` and `dim_names` are those of the memory, `permutation` says which of
    them each dimension of the array is."""
    said = json_of(metadata)
    shape = listed(said, "shape", int)
    if shape is None or any([length < 0 for length in shape]):
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, "lengths of zero or more")
    order = listed(said, "permutation", int)
    names = listed(said, "dim_names", str)
    size = 1
    for length in shape:
        size *= length
    if size != flat.shape_[1]:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"lengths whose product is {flat.shape_[1]}, as the"
                                                                          " list's")
    if order is None:
        order = list(range(len(shape)))
    if sorted(order) != list(range(len(shape))):
        raise interface_error("arrow.fixed_shape_tensor", "permutation", order, f"the numbers 0 to {len(shape) - 1}, each once")
    if names is not None and len(names) != len(shape):
        raise interface_error("arrow.fixed_shape_tensor", "dim_names", names, f"{len(shape)} names")
    if len(shape) >= layout.MAX_NDIM:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"at most {layout.MAX_NDIM - 1} dimensions")
    a = transpose(reshape(flat, (flat.shape_[0], *shape)), [0, *[1 + axis for axis in order]])
    if names is not None and len(set(names)) == len(names):
        set_labels(a, named((None, *[names[axis] for axis in order])))
    return a


cdef dict json_of(bytes metadata):
    try:
        said = json.loads(metadata.decode())
    except (ValueError, RecursionError):
        said = None
    if type(said) is not dict:
        raise interface_error("arrow.fixed_shape_tensor", "metadata", metadata, 'JSON such as {"shape": [2, 3]}')
    return said


cdef object listed(dict said, str key, type kind):
    values = said.get(key)
    if values is None:
        return None
    if type(values) is not list or not all([type(value) is kind and (kind is str or abs(value) < 1 << 62) for value in values]):
        raise interface_error("arrow.fixed_shape_tensor", key, values, f"a list of {kind.__name__}")
    return values


# ------------------------------------------------------------------------------------------------------------- emitting


cdef struct Body:              # what a released array or schema gives back; what follows it is in the same allocation
    PyObject* owner            # what has the buffers of this node
    cuda.CudaEvent event           # of the outermost array of a CUDA device array


cdef void _release_array(ArrowArray* array) noexcept nogil:
    """Children that a consumer has moved elsewhere have a release of NULL here, and their own body there."""
    cdef int64_t k
    if array == NULL or array.release == NULL:
        return
    if arrayhub_is_finalizing():      # Python must not be entered any more: the memory goes with the process
        array.release = NULL
        return
    for k in range(array.n_children):
        if array.children[k].release != NULL:
            array.children[k].release(array.children[k])
    if array.dictionary != NULL and array.dictionary.release != NULL:
        array.dictionary.release(array.dictionary)
    free_body(<Body*> array.private_data)
    array.release = NULL


cdef void free_body(Body* body) noexcept with gil:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    cdef bint pending = PyErr_Occurred() != NULL
    if pending:
        PyErr_Fetch(&kind, &value, &traceback)
    if body.event != NULL:
        cuda.destroy_event(body.event)
    Py_DECREF(<object> body.owner)
    PyMem_RawFree(body)
    if pending:
        PyErr_Restore(kind, value, traceback)


cdef Body* new_body(ArrowArray* out, object owner, int buffers, int64_t children, bint dictionary) except NULL:
    """Give `out` space for its buffers, children and dictionary, and make it release them."""
    cdef int64_t structs = children + dictionary, k
    cdef size_t size = sizeof(Body) + buffers * sizeof(void*) + children * sizeof(void*) + structs * sizeof(ArrowArray)
    cdef Body* body = <Body*> PyMem_RawCalloc(1, size)
    if body == NULL:
        raise MemoryError
    Py_INCREF(owner)
    body.owner = <PyObject*> owner
    out.buffers = <const void**> (<char*> body + sizeof(Body))
    out.n_buffers = buffers
    out.children = <ArrowArray**> (out.buffers + buffers)
    out.n_children = children
    cdef ArrowArray* below = <ArrowArray*> (out.children + children)
    for k in range(children):
        out.children[k] = below + k
    out.dictionary = below + children if dictionary else NULL
    out.offset = 0
    out.private_data = body
    out.release = _release_array
    return body


cdef int fill_array(ArrowArray* out, object node, Py_ssize_t lead) except -1:
    """The array of a node; `lead`: how many elements in front of its first one the parent's offset will skip."""
    if isinstance(node, Tree):
        return fill_tree(out, <Tree> node, lead)
    return fill_dense(out, node, <Descriptor> node, 0, lead)


cdef int fill_dense(ArrowArray* out, object owner, Descriptor a, int axis, Py_ssize_t lead) except -1:
    """Numbers: a primitive array under a fixed-size list for each dimension after the first. The owner is `a`, or the Tree
    of kind FLAT that it is the content of."""
    cdef bint innermost = axis == a.nd_ - 1
    cdef Tree t = <Tree> owner if isinstance(owner, Tree) else None
    new_body(out, owner, 2 if innermost else 1, 0 if innermost else 1, False)
    out.length = lead + layout.count(axis + 1, a.shape_)
    out.null_count = 0
    if axis == 0 and t is not None and t.validity is not None and out.length > 0:
        set_bitmap(out, t.validity, t.bit, lead, t.nulls)
    lead += out.offset
    if not innermost:
        return fill_dense(out.children[0], owner, a, axis + 1, lead * a.shape_[axis + 1])
    out.buffers[1] = NULL if a.data_ == NULL else a.data_ - lead * a.itemsize_
    return 0


cdef int set_bitmap(ArrowArray* out, Descriptor validity, Py_ssize_t bit, Py_ssize_t lead, Py_ssize_t nulls) except -1:
    """The bitmap and the offset that goes with it, so that its first bit stands for the first element after `lead`.

    An array has one offset for all its buffers, which therefore start as many elements earlier. They do exist: bits are
    left over by slices, which have left as many elements in front.
    """
    cdef Py_ssize_t back = 0
    if bit < lead:
        back = (lead - bit + 7) >> 3
    out.offset = bit + 8 * back - lead
    out.null_count = nulls if lead == 0 else UNCOUNTED
    out.buffers[0] = validity.data_ - back
    return 0


cdef int fill_tree(ArrowArray* out, Tree t, Py_ssize_t lead) except -1:
    cdef Py_ssize_t k, start, count = 0 if t.parts is None else len(t.parts)
    if t.kind == FLAT:
        return fill_dense(out, t, <Descriptor> t.content, 0, lead)
    cdef int views = t.kind == STRING_VIEW or t.kind == BYTES_VIEW
    new_body(out, t, 3 + <int> count if views else _BUFFERS[t.kind], count if t.kind == RECORD else _CHILDREN[t.kind],
             t.kind == CATEGORICAL)
    out.length = t.length + lead
    out.null_count = 0
    if out.length == 0:      # pyarrow takes buffers of no elements for empty, and an offset into them for a mistake
        pass
    elif t.validity is not None:
        set_bitmap(out, t.validity, t.bit, lead, t.nulls)
    elif t.kind == BITS:
        set_bitmap(out, <Descriptor> t.content, t.bit, lead, 0)
        out.buffers[0] = NULL
        out.null_count = 0
    start = out.offset + lead        # elements in the buffers before the first of this node
    if t.kind == LIST or t.kind == LIST_VIEW or t.kind == STRING or t.kind == BYTES:
        out.buffers[1] = back_by(t.offsets, start)
    if t.kind == LIST_VIEW:
        out.buffers[2] = back_by(t.sizes, start)
    if t.kind == LIST or t.kind == LIST_VIEW:
        fill_array(out.children[0], t.content, 0)
    elif t.kind == REGULAR:
        fill_array(out.children[0], t.content, start * t.width)
    elif t.kind == STRING or t.kind == BYTES:
        out.buffers[2] = (<Descriptor> t.content).data_
    elif t.kind == RECORD:
        for k in range(count):
            fill_array(out.children[k], t.parts[k], start)
    elif t.kind == CATEGORICAL:
        out.buffers[1] = back_by(t.indices, start)
        fill_array(out.dictionary, t.content, 0)
    elif t.kind == BITS:
        out.buffers[1] = (<Descriptor> t.content).data_ - ((start - t.bit) >> 3 if out.length else 0)
    elif views:
        fill_view_buffers(out, t, start)
    return 0


# By kind: how many buffers and children a node has that has a fixed number of them.
cdef int[11] _BUFFERS
cdef int[11] _CHILDREN
_BUFFERS[:] = [2, 2, 2, 3, 1, 3, 3, 3, 3, 1, 2]
_CHILDREN[:] = [0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0]


cdef inline const void* back_by(Descriptor a, Py_ssize_t elements) noexcept:
    return NULL if a.data_ == NULL else a.data_ - elements * a.itemsize_


cdef int fill_view_buffers(ArrowArray* out, Tree t, Py_ssize_t start) except -1:
    """The views, their buffers, and the sizes of those, which lie behind the array's own space."""
    cdef Py_ssize_t k, count = len(t.parts)
    cdef Tree holder = t
    sizes = np.array([(<Descriptor> part).shape_[0] for part in t.parts], np.int64)
    out.buffers[1] = back_by(<Descriptor> t.content, start * VIEW_BYTES)
    for k in range(count):
        out.buffers[2 + k] = (<Descriptor> t.parts[k]).data_
    # The owner of this body is from now on the pair, so that the sizes live as long.
    cdef Body* body = <Body*> out.private_data
    pair = (holder, sizes)
    Py_INCREF(pair)
    Py_DECREF(<object> body.owner)
    body.owner = <PyObject*> pair
    out.buffers[2 + count] = <const void*> <size_t> sizes.ctypes.data
    return 0


# --------------------------------------------------------------------------------------------------------- their schema


cdef void _release_schema(ArrowSchema* schema) noexcept nogil:
    """A schema has no Python object behind it: its strings lie in its own allocation."""
    cdef int64_t k
    if schema == NULL or schema.release == NULL:
        return
    for k in range(schema.n_children):
        if schema.children[k].release != NULL:
            schema.children[k].release(schema.children[k])
    if schema.dictionary != NULL and schema.dictionary.release != NULL:
        schema.dictionary.release(schema.dictionary)
    PyMem_RawFree(schema.private_data)
    schema.release = NULL


cdef int new_schema(ArrowSchema* out, bytes text, bytes name, bytes metadata, int64_t children, bint dictionary) except -1:
    """Give `out` copies of its strings, space for its children and dictionary, and make it release them."""
    cdef int64_t k
    cdef size_t structs = (children + dictionary) * sizeof(ArrowSchema) + children * sizeof(void*)
    cdef Py_ssize_t behind = 0 if metadata is None else len(metadata)
    cdef char* space = <char*> PyMem_RawCalloc(1, structs + behind + len(text) + len(name) + 2)
    if space == NULL:
        raise MemoryError
    cdef ArrowSchema* below = <ArrowSchema*> space
    out.children = <ArrowSchema**> (below + children + dictionary)
    for k in range(children):
        out.children[k] = below + k
    out.dictionary = below + children if dictionary else NULL
    out.n_children = children
    cdef char* strings = space + structs
    if metadata is not None:
        memcpy(strings, <const char*> metadata, behind)
        out.metadata = strings
        strings += behind
    else:
        out.metadata = NULL
    memcpy(strings, <const char*> text, len(text) + 1)
    out.format = strings
    strings += len(text) + 1
    memcpy(strings, <const char*> name, len(name) + 1)
    out.name = strings
    out.flags = ARROW_FLAG_NULLABLE
    out.private_data = space
    out.release = _release_schema
    return 0


cdef bytes _ITEM = b"item"        # what a list's child is called everywhere


cdef int fill_schema(ArrowSchema* out, object node, bytes name) except -1:
    cdef Tree t
    cdef Py_ssize_t k
    if not isinstance(node, Tree):
        return fill_dense_schema(out, <Descriptor> node, None, 0, name)
    t = <Tree> node
    if t.kind == FLAT:
        return fill_dense_schema(out, <Descriptor> t.content, t.meaning, 0, name)
    if t.kind == CATEGORICAL:
        new_schema(out, letter_of(t.indices), name, None, 0, True)
        if t.meaning is not None:
            out.flags |= ARROW_FLAG_DICTIONARY_ORDERED
        return fill_schema(out.dictionary, t.content, b"")
    new_schema(out, format_of(t), name, None, len(t.parts) if t.kind == RECORD else _CHILDREN[t.kind], False)
    if t.kind == RECORD:
        for k in range(len(t.parts)):
            fill_schema(out.children[k], t.parts[k], t.names[k].encode())
    elif _CHILDREN[t.kind]:
        fill_schema(out.children[0], t.content, _ITEM)
    return 0


cdef bytes format_of(Tree t):
    if t.kind == REGULAR:
        return b"+w:%d" % t.width
    return format_of_kind(t.kind, 0 if t.offsets is None else t.offsets.itemsize_).text


cdef int fill_dense_schema(ArrowSchema* out, Descriptor a, str meaning, int axis, bytes name) except -1:
    if axis < a.nd_ - 1:
        new_schema(out, b"+w:%d" % a.shape_[axis + 1], name, None, 1, False)
        return fill_dense_schema(out.children[0], a, meaning, axis + 1, _ITEM)
    return new_schema(out, letter_of(a) if meaning is None else meaning.encode(), name,
                      _BOOL8 if a.dl_dtype_.code == BOOL_CODE else None, 0, False)


cdef enum:
    BOOL_CODE = 6          # DLPack's


cdef bytes metadata_of(bytes name, bytes said):
    """The two pairs of an extension type."""
    cdef list strings = [b"ARROW:extension:name", name, b"ARROW:extension:metadata", said]
    return np.int32(2).tobytes() + b"".join([np.int32(len(s)).tobytes() + s for s in strings])


cdef bytes _BOOL8 = metadata_of(b"arrow.bool8", b"")
cdef list _LETTERS = [bytes([_code]) for _code in range(128)]


cdef bytes letter_of(Descriptor a):
    """The format of an element type; BufferError where Arrow has none."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row != NULL and row.arrow != 0 and a.flags_ & NOTSWAPPED:
        return <bytes> _LETTERS[row.arrow]
    if a.dl_dtype_.code == BOOL_CODE:
        return b"c"
    dtype = get_dtype(a)
    if dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and dtype.itemsize and row != NULL \
            and row.kind == c"V":
        return b"w:%d" % dtype.itemsize
    if dtype.kind in "mM" and dtype.isnative:
        unit, count = np.datetime_data(dtype)
        if count == 1 and unit in _FORMATS_OF_UNITS:
            return _FORMATS_OF_UNITS[unit][0 if dtype.kind == "M" else 1]
    raise BufferError(
        f"Arrow: no format for dtype {dtype!r}; accepted: integers, float16 to float64, bool, times in s, ms, us and ns and"
        " bytes without a meaning, in the machine's byte order. Convert it first"
    )


# NumPy's units: the formats of instants and of durations.
cdef dict _FORMATS_OF_UNITS = {
    "s": (b"tss:", b"tDs"), "ms": (b"tsm:", b"tDm"), "us": (b"tsu:", b"tDu"), "ns": (b"tsn:", b"tDn"),
}


# --------------------------------------------------------------------------------------- dense arrays of many dimensions


cdef list memory_order(Descriptor a):
    """The axes after the first in the order of the memory, the longest step first; None where they are not compact, each
    element of the first axis a run of its own."""
    cdef Py_ssize_t expected = a.itemsize_
    cdef list order = sorted(range(1, a.nd_), key=lambda axis: -a.byte_strides_[axis])
    if size_of(a) == 0:
        return list(range(1, a.nd_))
    for axis in reversed(order):
        if a.shape_[axis] != 1:
            if a.byte_strides_[axis] != expected:
                return None
            expected *= a.shape_[axis]
    return None if a.shape_[0] > 1 and a.byte_strides_[0] != expected else order


cdef bytes tensor_metadata(Descriptor a, list order):
    """What says how a list of `order`'s lengths is the array: see `tensor_of`."""
    said = {"shape": [a.shape_[axis] for axis in order]}
    if order != sorted(order):
        said["permutation"] = [order.index(axis) for axis in range(1, a.nd_)]
    dims = getattr(labels_of(a), "dims", None)
    if dims is not None and None not in dims[1:]:
        said["dim_names"] = [dims[axis] for axis in order]
    return metadata_of(b"arrow.fixed_shape_tensor", json.dumps(said).encode())


cdef str why_not(Descriptor a):
    """Why Arrow cannot say an array; None where it can."""
    if a.shape_ == NULL:
        return "the array was never given memory"
    if a.nd_ == 0:
        return "it has no dimension; accepted: one or more. Take x.reshape(1)"
    if a.flags_ & PACKED or a.byte_strides_ == NULL:
        return "elements of less than a byte are packed; only DLPack can say that"
    if not a.flags_ & C_CONTIGUOUS and (a.nd_ == 1 or memory_order(a) is None):
        return f"byte strides {stride_tuple(a)} with shape {shape_tuple(a)} are not compact; call x.copy() first"
    try:
        letter_of(a)
    except (BufferError, TypeError) as error:
        return str(error)
    return None


cdef bint is_sayable(Descriptor a) except -1:
    return why_not(a) is None


# ------------------------------------------------------------------------------------------------------------- capsules


cdef void _drop_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*> PyCapsule_GetPointer(capsule, SCHEMA_NAME)
    if schema.release != NULL:
        schema.release(schema)
    PyMem_RawFree(schema)


cdef void _drop_array_capsule(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*> PyCapsule_GetPointer(capsule, ARRAY_NAME)
    if array.release != NULL:
        array.release(array)
    PyMem_RawFree(array)


cdef void _drop_device_capsule(object capsule) noexcept:
    cdef ArrowDeviceArray* array = <ArrowDeviceArray*> PyCapsule_GetPointer(capsule, DEVICE_NAME)
    if array.array.release != NULL:
        array.array.release(&array.array)
    PyMem_RawFree(array)


cdef void _drop_stream_capsule(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, STREAM_NAME)
    if stream.release != NULL:
        stream.release(stream)
    PyMem_RawFree(stream)


cdef tuple described(object capsule):
    """What a schema asks for: its format, and the same of its children."""
    cdef int nodes = 0
    cdef ArrowSchema* schema = <ArrowSchema*> pointer_in(capsule, SCHEMA_NAME, "requested_schema")
    return described_node(schema, 0, &nodes)


cdef tuple described_node(ArrowSchema* schema, int depth, int* nodes):
    cdef int64_t k
    nodes[0] += 1
    if depth > MAX_DEPTH or nodes[0] > MAX_NODES or schema.release == NULL or schema.format == NULL \
            or schema.n_children < 0 or (schema.n_children > 0 and schema.children == NULL):
        raise interface_error("Arrow", "requested_schema", None, "a schema of the C data interface")
    text = schema.format[:min(<Py_ssize_t> strlen(schema.format), 80)].decode("utf-8", "replace")
    cdef list children = []
    for k in range(schema.n_children):
        if schema.children[k] == NULL:
            raise interface_error("Arrow", f"requested_schema.children[{k}]", None, "a pointer to a child")
        children.append(described_node(schema.children[k], depth + 1, nodes))
    return (text, children)


cdef bint wants_lists(object requested) except -1:
    """Whether a requested schema is of nested lists, rather than of tensors. What else it asks for is up to the layers
    above, and to the consumer: a request is no promise."""
    cdef ArrowSchema* schema
    if requested is None:
        return False
    schema = <ArrowSchema*> pointer_in(requested, SCHEMA_NAME, "requested_schema")
    if schema.release == NULL or schema.format == NULL:
        raise released("requested_schema")
    if schema.metadata != NULL and b"ARROW:extension:name" in pairs_of(schema.metadata):
        return False
    return schema.format[0] == c"+" and schema.format[1] == c"w"


cdef object as_said(object node, bint lists):
    """What is exported of a node: of a dense array of many dimensions, the runs that a tensor's lists are."""
    cdef Descriptor a
    if isinstance(node, Tree):
        return node
    a = <Descriptor> node
    why = why_not(a)
    if why is None and lists and not a.flags_ & C_CONTIGUOUS:
        why = f"byte strides {stride_tuple(a)} are not in C order, which lists take; call x.copy() first"
    if why is not None:
        raise BufferError(why if why.startswith("Arrow: ") else f"Arrow: {why}")
    return a


cdef int fill_root_schema(ArrowSchema* out, object node, bint lists) except -1:
    cdef Descriptor a
    cdef list order
    cdef Py_ssize_t run = 1
    if lists or isinstance(node, Tree) or (<Descriptor> node).nd_ == 1:
        return fill_schema(out, node, b"")
    a = <Descriptor> node
    order = memory_order(a)
    for axis in order:
        run *= a.shape_[axis]
    new_schema(out, b"+w:%d" % run, b"", tensor_metadata(a, order), 1, False)
    return new_schema(out.children[0], letter_of(a), _ITEM, None, 0, False)


cdef int fill_root_array(ArrowArray* out, object node, bint lists) except -1:
    cdef Descriptor a
    if lists or isinstance(node, Tree) or (<Descriptor> node).nd_ == 1:
        return fill_array(out, node, 0)
    a = <Descriptor> node
    new_body(out, a, 1, 1, False)
    out.length = a.shape_[0]
    out.null_count = 0
    new_body(out.children[0], a, 2, 0, False)
    out.children[0].length = size_of(a)
    out.children[0].null_count = 0
    out.children[0].buffers[1] = a.data_
    return 0


cdef object schema_capsule(object node, bint lists):
    cdef ArrowSchema* schema = <ArrowSchema*> PyMem_RawCalloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError
    capsule = PyCapsule_New(schema, SCHEMA_NAME, _drop_schema_capsule)
    fill_root_schema(schema, node, lists)
    return capsule


cdef object emit_schema(object node, object requested_schema):
    """The capsule of the type alone."""
    cdef bint lists = wants_lists(requested_schema)
    return schema_capsule(as_said(node, lists), lists)


cdef tuple emit(object node, object requested_schema):
    """The capsules of a Descriptor or a Tree in memory that the host can read, once its producer's work is done.

    Raises
    ------
    BufferError
        It lies on a device; Arrow has no words for its type; or it is not compact.
    """
    cdef bint lists = wants_lists(requested_schema)
    cdef ArrowArray* array
    node = as_said(node, lists)
    ready_for_host(node)
    schema = schema_capsule(node, lists)
    array = <ArrowArray*> PyMem_RawCalloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError
    capsule = PyCapsule_New(array, ARRAY_NAME, _drop_array_capsule)
    fill_root_array(array, node, lists)
    return (schema, capsule)


cdef int ready_for_host(object node) except -1:
    """Return once the host may read every array of a node."""
    cdef Descriptor a
    if isinstance(node, Tree):
        for part in arrays_of(<Tree> node):
            ready_for_host(part)
        return 0
    a = <Descriptor> node
    if not host_readable(a):
        raise BufferError(
            f"Arrow: the memory is on {place_of(a)}, which only __arrow_c_device_array__ can say; call to_host() first"
        )
    return host_ready(a)


cdef list arrays_of(Tree t):
    """The nodes and arrays right below a node."""
    cdef list found = [part for part in (t.validity, t.offsets, t.sizes, t.indices, t.content) if part is not None]
    if t.parts is not None:
        found.extend(t.parts)
    return found


cdef tuple emit_device(object node, object requested_schema, dict keywords):
    """The capsules by the device interface: memory anywhere, all of it on one device.

    CUDA's event happens once the producer's work is done; SYCL's work is waited for, since the interface has no event of
    its.
    """
    cdef bint lists = wants_lists(requested_schema)
    cdef ArrowDeviceArray* array
    cdef DLDevice device
    for name, value in keywords.items():
        if value is not None:
            raise NotImplementedError(f"__arrow_c_device_array__: {name} is {show(value)}; accepted: no such keyword, or None")
    node = as_said(node, lists)
    device = device_of(first_array(node))
    check_place(node, device)
    schema = schema_capsule(node, lists)
    array = <ArrowDeviceArray*> PyMem_RawCalloc(1, sizeof(ArrowDeviceArray))
    if array == NULL:
        raise MemoryError
    capsule = PyCapsule_New(array, DEVICE_NAME, _drop_device_capsule)
    fill_root_array(&array.array, node, lists)
    array.device_type = device.device_type
    array.device_id = -1 if device.device_type == kDLCPU else device.device_id
    if device.device_type == kDLCUDA or device.device_type == kDLCUDAManaged:
        note_event(array, node, device.device_id)
    else:
        wait_on_device(node)
    return (schema, capsule)


cdef int check_place(object node, DLDevice device) except -1:
    cdef DLDevice other
    if isinstance(node, Tree):
        for part in arrays_of(<Tree> node):
            check_place(part, device)
        return 0
    other = device_of(<Descriptor> node)
    if other.device_type != device.device_type or other.device_id != device.device_id:
        raise BufferError(
            f"Arrow: its arrays lie on several devices, {TYPE_NAMES[device.device_type]}:{device.device_id} and"
            f" {TYPE_NAMES[other.device_type]}:{other.device_id}; accepted: one. Call to_device() first"
        )
    if (<Descriptor> node).flags_ & OTHER_CONTEXT:
        raise BufferError("Arrow: the memory belongs to a SYCL context that is not its device's default one, which the device"
                          " interface cannot name; call to_host(x)")
    return 0


cdef int wait_on_device(object node) except -1:
    if isinstance(node, Tree):
        for part in arrays_of(<Tree> node):
            wait_on_device(part)
        return 0
    return host_ready(<Descriptor> node)


cdef int note_event(ArrowDeviceArray* array, object node, int device) except -1:
    """The event that stands for the work on every array of a node; none where nothing is in flight."""
    cdef Body* body = <Body*> array.array.private_data
    cdef intptr_t stream
    if not in_flight(node) or not cuda.driver_present():
        return 0
    stream = cuda.waiting_stream(device)
    wait_in_order(node, stream)
    body.event = cuda.event_on(stream, device)
    array.sync_event = &body.event
    return 0


cdef bint in_flight(object node) except -1:
    if isinstance(node, Tree):
        for part in arrays_of(<Tree> node):
            if in_flight(part):
                return True
        return False
    return (<Descriptor> node).stream_ != NULL or (<Descriptor> node).producer_ is not None


cdef int wait_in_order(object node, intptr_t stream) except -1:
    if isinstance(node, Tree):
        for part in arrays_of(<Tree> node):
            wait_in_order(part, stream)
        return 0
    return cuda.consumer_ready(<Descriptor> node, stream)


# --------------------------------------------------------------------------------------------------- a stream of one array


cdef struct Shown:             # behind an exported stream
    PyObject* node
    bint lists
    bint done


cdef int _stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef Shown* shown = <Shown*> stream.private_data
    out.release = NULL
    try:
        fill_root_schema(out, <object> shown.node, shown.lists)
        return 0
    except BaseException:
        if out.release != NULL:
            out.release(out)
        return EINVAL


cdef int _stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef Shown* shown = <Shown*> stream.private_data
    out.release = NULL
    if shown.done:
        return 0
    try:
        ready_for_host(<object> shown.node)
        fill_root_array(out, <object> shown.node, shown.lists)
        shown.done = True
        return 0
    except BaseException:
        if out.release != NULL:
            out.release(out)
        return EINVAL


cdef const char* _stream_error(ArrowArrayStream* stream) noexcept nogil:
    return b"arrayhub: the array could not be exported"


cdef void _release_stream(ArrowArrayStream* stream) noexcept nogil:
    cdef Shown* shown
    if stream == NULL or stream.release == NULL:
        return
    stream.release = NULL
    if arrayhub_is_finalizing():
        return
    shown = <Shown*> stream.private_data
    with gil:
        Py_DECREF(<object> shown.node)
        PyMem_RawFree(shown)


cdef object emit_stream(object node, object requested_schema):
    """The capsule of a stream of one array, for who takes nothing else."""
    cdef bint lists = wants_lists(requested_schema)
    node = as_said(node, lists)
    ready_for_host(node)
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> PyMem_RawCalloc(1, sizeof(ArrowArrayStream))
    cdef Shown* shown = <Shown*> PyMem_RawCalloc(1, sizeof(Shown))
    if stream == NULL or shown == NULL:
        PyMem_RawFree(stream)
        PyMem_RawFree(shown)
        raise MemoryError
    Py_INCREF(node)
    shown.node = <PyObject*> node
    shown.lists = lists
    stream.get_schema = _stream_schema
    stream.get_next = _stream_next
    stream.get_last_error = _stream_error
    stream.release = _release_stream
    stream.private_data = shown
    return PyCapsule_New(stream, STREAM_NAME, _drop_stream_capsule)


# ------------------------------------------------------------------------------------------------ attributes of arrays


@cython.final
cdef class Export:
    """A method of Arrow's on an array: it exists only where it tells the truth, so it is made when asked for."""
    cdef object node
    cdef int what

    def __init__(self):
        raise TypeError("Export: take an array's __arrow_c_array__")

    def __call__(self, requested_schema=None, **keywords):
        if self.what == DEVICE_ARRAY:
            return emit_device(self.node, requested_schema, keywords)
        if keywords:
            raise TypeError(f"{_ATTRIBUTES[self.what]}: no such keyword: {next(iter(keywords))}")
        if self.what == ARRAY:
            return emit(self.node, requested_schema)
        return emit_stream(self.node, requested_schema)

    def __repr__(self):
        return f"<{_ATTRIBUTES[self.what]} of a {type(self.node).__name__}>"


@cython.final
cdef class ExportSchema:
    """``__arrow_c_schema__``, which takes no argument."""
    cdef object node

    def __init__(self):
        raise TypeError("ExportSchema: take an array's __arrow_c_schema__")

    def __call__(self):
        return emit_schema(self.node, None)


cdef tuple _ATTRIBUTES = ("__arrow_c_schema__", ARRAY_METHOD, DEVICE_METHOD, STREAM_METHOD)


cdef object emit_attribute(object node, int what):
    """The method, or AttributeError where the array's memory or type do not make it true."""
    cdef Export export
    cdef ExportSchema schema
    if not isinstance(node, Tree):
        why = why_not(<Descriptor> node)
        if why is not None:
            raise AttributeError(f"{_ATTRIBUTES[what]}: {why}")
    elif (<Tree> node).content is None and (<Tree> node).parts is None:
        raise AttributeError(f"{_ATTRIBUTES[what]}: the array was never given memory; make arrays with arrayhub.asnested")
    if (what == ARRAY or what == STREAM) and not host_readable(first_array(node)):
        raise AttributeError(
            f"{_ATTRIBUTES[what]}: the memory is on {place_of(first_array(node))}; __arrow_c_device_array__ can say that, or"
            " call to_host()"
        )
    if what == SCHEMA:
        schema = ExportSchema.__new__(ExportSchema)
        schema.node = node
        return schema
    export = Export.__new__(Export)
    export.node = node
    export.what = what
    return export
