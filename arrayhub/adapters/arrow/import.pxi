"""Import through Arrow's C interfaces. Each struct is validated before its pointers are used."""

import sys

import numpy as np

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, strcmp, strlen, strncmp

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.exceptions cimport put_aside, put_back
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    EXACT_TIMES,
    IMMUTABLE,
    USM_DEVICE,
    DLDevice,
    Descriptor,
    host_readable,
    kDLCPU,
    kDLCUDA,
    kDLCUDAManaged,
    kDLOneAPI,
    make_dims,
    new_array,
    reshape,
    seal,
    set_dtype,
    set_labels,
    set_type,
    shape_tuple,
    transpose,
)
from arrayhub._core.runtime cimport adopt, host_ready
from arrayhub._core.tree cimport (
    ANY,
    BIT_PACKED,
    CATEGORICAL,
    CHUNKS,
    FIELDS,
    FOREIGN,
    LISTS,
    NODE_KINDS,
    NUMBERS,
    OPAQUE,
    REGULAR,
    UNCOUNTED,
    VIEWS,
    VIEW_BYTES,
    WIDTH,
    Tree,
    bit_at,
    count_nulls,
    flat,
    has,
    integer_at,
    is_missing,
    is_sliced_with,
    length_of,
    new_tree,
    same_node,
    visit_arrays,
)
from arrayhub.adapters.table cimport ARROW_PROTOCOL
from arrayhub.adapters.type_cache cimport (
    ARROW_ARRAY,
    ARROW_ARRAY_FIRST,
    ARROW_BYTES_ARE_OBJECTS,
    ARROW_DEVICE,
    ARROW_IS_LAZY,
    ARROW_STREAM_FIRST,
    record_of,
)
from arrayhub.runtimes cimport cuda

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.errors import PASSES_ON, InterfaceError, Refusal, TypeRefusal, interface_error, name_of_type
from arrayhub._core.tree import union_codes
from arrayhub.adapters.table import PROTOCOLS

# ----------------------------------------------------------------------------------------------------------- extension types

cdef enum:
    BOOL_CODE = 6                  # DLPack's kDLBool
    MAX_PAIRS = 4096               # maximum number of key-value pairs in the metadata of a schema
    MAX_METADATA = 1 << 20         # maximum size of one key or value, in bytes


cdef bytes raw_metadata(ArrowSchema* schema):
    """Return the encoded metadata of a schema, whose lengths are validated, or None."""
    cdef Py_ssize_t at = 4
    cdef int32_t count, length
    if schema.metadata == NULL:
        return None
    memcpy(&count, schema.metadata, 4)
    if count < 0 or count > MAX_PAIRS:
        raise interface_error("Arrow", f"{text_of(schema.format)} schema's metadata", count, f"0 to {MAX_PAIRS} pairs")
    for _ in range(2 * <Py_ssize_t> count):
        memcpy(&length, schema.metadata + at, 4)
        if length < 0 or length > MAX_METADATA:
            raise interface_error("Arrow", f"{text_of(schema.format)} schema's metadata: length of a key or value", length,
                                  f"0 to {MAX_METADATA} bytes")
        at += 4 + length
    return schema.metadata[:at]


cdef dict pairs_in(bytes metadata):
    """Return the key-value pairs of encoded metadata from `raw_metadata`, which may be None."""
    cdef Py_ssize_t at = 4
    cdef list strings = []
    while metadata is not None and at < len(metadata):
        size = int.from_bytes(metadata[at : at + 4], sys.byteorder)
        strings.append(metadata[at + 4 : at + 4 + size])
        at += 4 + size
    return dict(zip(strings[::2], strings[1::2]))


cdef object extension_name(bytes metadata):
    """Return the name of the extension type in encoded metadata, which may be None. Return None without a name."""
    return pairs_in(metadata).get(b"ARROW:extension:name")


cdef tuple field_of(ArrowSchema* schema, const char* conventional):
    """Return the name, flags and metadata of a child's schema, or None if all three are the defaults.

    The name is None if it equals `conventional`. Pass NULL as `conventional` if the parent node stores the names of its
    children. The name is then always None.
    """
    cdef bint usual = conventional == NULL or schema.name == NULL or strcmp(schema.name, conventional) == 0
    cdef int64_t flags = schema.flags & (ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED)
    if usual and schema.metadata == NULL and flags == ARROW_FLAG_NULLABLE:
        return None
    return (None if usual else <bytes> schema.name, flags, raw_metadata(schema))


cdef tuple fields_of(ArrowSchema* schema, const char* conventional):
    """Return a tuple with the result of `field_of` for each child, or None if all results are None."""
    cdef int64_t k
    for k in range(schema.n_children):
        if field_of(schema.children[k], conventional) is not None:
            return tuple([field_of(schema.children[k], conventional) for k in range(schema.n_children)])
    return None


cdef inline tuple child_field(Tree t, Py_ssize_t k):
    return None if t.child_fields is None or k >= len(t.child_fields) else <tuple> t.child_fields[k]


cdef tuple field_of_node(object node, tuple field):
    """Return the name, flags and metadata of a node. `field` contains those that the parent stores for it, or is None."""
    if isinstance(node, Tree) and (<Tree> node).field is not None:
        return (None if field is None else field[0], *(<Tree> node).field)
    return field


cdef object extended(object node, ArrowSchema* schema, Descriptor validity, Py_ssize_t bit):
    """Convert the storage of a canonical extension type to the array that the type describes.

    Return the storage of other extension types unchanged, as the specification permits. `validity` is the bitmap of the node
    or None, and `bit` the position of its first element in the bitmap.
    """
    cdef dict pairs = pairs_in(raw_metadata(schema))
    name = pairs.get(b"ARROW:extension:name")
    if name == b"arrow.fixed_shape_tensor" and isinstance(node, Tree):
        dense = dense_content(node)
        if dense is not None:
            node = dense
        elif is_dense_where_valid(<Tree> node, validity, bit):
            node = reshape((<Tree> (<Tree> node).content).content, ((<Tree> node).length, (<Tree> node).width))
    if isinstance(node, Tree) or name is None:
        return node
    if name == b"arrow.bool8" and schema.format[0] == c"c":
        set_type(<Descriptor> node, dtypes.by_typestr(c"b", 1))
        return node
    if name == b"arrow.fixed_shape_tensor" and schema.format[0] == c"+" and (<Descriptor> node).nd_ == 2:
        return tensor_of(<Descriptor> node, pairs.get(b"ARROW:extension:metadata", b""))
    return node


cdef Tree new_rows(object content, Py_ssize_t length, Py_ssize_t width):
    """Return a node of `length` fixed-size lists of the elements of `content`."""
    cdef Tree rows = new_tree(REGULAR, length)
    rows.width = width
    rows.content = content
    return rows


cdef Descriptor dense_content(object node):
    """Return the numbers of a node as an array, or None if they do not form a dense array.

    An extension type of the node, and the names and metadata of list items, are not part of the array.
    """
    cdef Tree t
    cdef Descriptor items
    if not isinstance(node, Tree):
        return <Descriptor> node
    t = <Tree> node
    if t.validity is not None or t.meaning is not None:
        return None
    if has(t, NUMBERS):
        return <Descriptor> t.content
    if not has(t, WIDTH) or (isinstance(t.content, Tree) and (<Tree> t.content).field is not None):
        return None
    items = dense_content(t.content)
    if items is None or items.nd_ == layout.MAX_NDIM or not items.flags_ & C_CONTIGUOUS:
        return None
    return reshape(items, (t.length, t.width) + shape_tuple(items)[1:])


cdef bint is_dense_where_valid(Tree rows, Descriptor validity, Py_ssize_t bit):
    """Return whether a node consists of fixed-size lists of numbers that are missing only in missing lists.

    pyarrow marks each number of a missing list as missing. Bitmaps on a device are not read, and the result is then False.
    """
    cdef Tree items
    cdef Py_ssize_t k
    if not has(rows, WIDTH) or not isinstance(rows.content, Tree):
        return False
    items = <Tree> rows.content
    if validity is None or items.validity is None or validity.device_.device_type != kDLCPU:
        return False
    if not has(items, NUMBERS) or items.meaning is not None or (<Descriptor> items.content).nd_ != 1:
        return False
    if items.field is not None and (<Descriptor> items.content).dl_dtype_.code != BOOL_CODE:
        return False      # the tensor would lose the extension type of its items
    for k in range(items.length):
        if is_missing(items, k) and bit_at(<const uint8_t*> validity.data_, bit + k // rows.width):
            return False
    return True


cdef bint has_flat_storage(ArrowSchema* schema) noexcept:
    """Return whether a schema is a list whose child is not nested, like the storage of a tensor."""
    return schema.format[0] == c"+" and schema.n_children == 1 and schema.children[0].n_children == 0


cdef Tree with_facts(object node, tuple field):
    """Return a node with the numbers of `node`, and with the flags and metadata of `field`."""
    cdef Tree t = same_node(<Tree> node) if isinstance(node, Tree) else flat(node)
    t.field = (field[1], field[2])
    return t


def extension_of_node(Tree t):
    """Return the name and the metadata of a node's Arrow extension type, or None."""
    pairs = metadata_of_node(t)
    name = pairs.get(b"ARROW:extension:name")
    return None if name is None else (name.decode("utf-8", "replace"), pairs.get(b"ARROW:extension:metadata", b""))


def metadata_of_node(Tree t):
    """Return the metadata in a node's Arrow schema, as a dict from bytes to bytes."""
    return {} if t.field is None else pairs_in(t.field[1])


cdef Descriptor tensor_of(Descriptor rows, bytes metadata):
    """Return `rows` as the tensor that the metadata of ``arrow.fixed_shape_tensor`` describes.

    In the metadata, ``shape`` and ``dim_names`` are in memory order. For each dimension of the tensor, ``permutation`` contains
    the position of this dimension in memory order.
    """
    fields = json_of(metadata)
    shape = list_in(fields, "shape", int)
    if shape is None or any([length < 0 for length in shape]):
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, "lengths of zero or more")
    order = list_in(fields, "permutation", int)
    names = list_in(fields, "dim_names", str)
    size = 1
    for length in shape:
        size *= length
    if size != rows.shape_[1]:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"lengths whose product is {rows.shape_[1]}, the"
                              " length of the list")
    if order is None:
        order = list(range(len(shape)))
    if sorted(order) != list(range(len(shape))):
        raise interface_error("arrow.fixed_shape_tensor", "permutation", order, f"a permutation of 0 to {len(shape) - 1}")
    if names is not None and len(names) != len(shape):
        raise interface_error("arrow.fixed_shape_tensor", "dim_names", names, f"{len(shape)} names")
    if len(shape) >= layout.MAX_NDIM:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"at most {layout.MAX_NDIM - 1} dimensions")
    a = transpose(reshape(rows, (rows.shape_[0], *shape)), [0, *[1 + axis for axis in order]])
    if names is not None and len(set(names)) == len(names):
        set_labels(a, make_dims((None, *[names[axis] for axis in order])))
    return a


cdef dict json_of(bytes metadata):
    import json      # on first use, because importing json takes a tenth of the package's import time

    try:
        fields = json.loads(metadata.decode())
    except (ValueError, RecursionError):
        fields = None
    if type(fields) is not dict:
        raise interface_error("arrow.fixed_shape_tensor", "metadata", metadata, 'JSON such as {"shape": [2, 3]}')
    return fields


cdef object list_in(dict fields, str key, type kind):
    values = fields.get(key)
    if values is None:
        return None
    if type(values) is not list or not all([type(value) is kind and (kind is str or abs(value) < 1 << 62) for value in values]):
        raise interface_error("arrow.fixed_shape_tensor", key, values, f"a list of {kind.__name__}")
    return values


# ---------------------------------------------------------------------------------------------------------- arrays and nodes

cdef extern from "Python.h":
    void gc_untrack "PyObject_GC_UnTrack"(PyObject* o) noexcept

# Offsets of empty arrays in host memory
cdef int64_t[2] _NO_OFFSETS


cdef object build_root(Import owner, ArrowSchema* schema):
    return build(owner, schema, &owner.array, 0, owner.array.length, True)


cdef Tree build_column(Import owner, ArrowSchema* schema):
    """Build the outermost node of a column, with the name, flags and metadata in its schema."""
    node = build_root(owner, schema)
    cdef Tree t = <Tree> node if isinstance(node, Tree) else <Tree> with_field(flat(node), schema, True)
    if schema.name != NULL and schema.name[0] != 0:
        t.name = field_name(schema.name)
    return t


cdef object array_error(ArrowSchema* schema, str field, object value, str accepted):
    return interface_error("Arrow", f"{text_of(schema.format)} array's {field}", value, accepted)


cdef object build(Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t start, Py_ssize_t length,
                  bint is_root=False):
    """Build elements `start` to `start + length` of a node: a Descriptor if they are dense, else a Tree.

    The caller must have called `validate_schema`.
    """
    cdef const Format* row = check_head(schema, array)
    cdef int properties = NODE_KINDS[row.kind].properties
    cdef Py_ssize_t first
    if start < 0 or length < 0 or array.length < 0 or start > array.length - length:
        raise array_error(schema, "length", array.length, f"at least {start + length}, which its parent requires")
    if layout.checked_add(array.offset, start, &first) or layout.checked_add(first, length, &start):
        raise array_error(schema, "offset", array.offset, "an offset whose sum with the length is below 2**63")
    check_data(schema, array, row, first, length)
    cdef Py_ssize_t nulls = nulls_in(schema, array, length) if has_bitmap(row) else 0
    cdef Descriptor validity = None
    if nulls != 0:
        validity = bytes_of(owner, array.buffers[0], first >> 3, ((first & 7) + length + 7) >> 3)
    cdef object node
    if array.dictionary != NULL:
        node = build_categorical(owner, schema, array, row, first, length)
    elif properties & NUMBERS:
        node = build_flat(owner, schema, array, row, first, length)
    elif properties & WIDTH:
        node = build_regular(owner, schema, array, first, length)
    elif properties & FOREIGN:
        node = build_opaque(owner, schema, array, row, first, length)
    else:
        node = build_other(owner, schema, array, row, first, length)
    if schema.metadata != NULL:
        node = extended(node, schema, validity, first & 7)
    if validity is not None:
        node = with_validity(node, validity, first & 7, nulls)
    node = with_field(node, schema, is_root)
    if owner.device.device_type == kDLCPU and isinstance(node, Tree):
        gc_untrack(<PyObject*> node)
    return node


cdef object with_field(object node, ArrowSchema* schema, bint is_root):
    """Return a node with the flags and metadata of its schema. A dense array becomes a Tree if it has an extension type.

    Inside other nodes, tensors and booleans of ``arrow.bool8`` stay dense arrays, and the parent's `child_fields` store the
    extension type.
    """
    cdef int64_t flags = schema.flags & (ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED)
    if schema.metadata == NULL and flags == ARROW_FLAG_NULLABLE:
        return node
    if not isinstance(node, Tree):
        name = extension_name(raw_metadata(schema))
        if name is None or (not is_root and is_converted(<Descriptor> node, schema, name)):
            return node
        node = flat(node)
    (<Tree> node).field = (flags, raw_metadata(schema))
    return node


cdef bint is_converted(Descriptor a, ArrowSchema* schema, object name) except -1:
    """Return whether `extended` converted an array from the storage of an extension type."""
    if name == b"arrow.bool8":
        return a.dl_dtype_.code == BOOL_CODE
    return name == b"arrow.fixed_shape_tensor" and has_flat_storage(schema)


cdef object with_validity(object node, Descriptor validity, Py_ssize_t bit, Py_ssize_t nulls):
    """Return a node with a bitmap of missing elements.

    For numbers and fixed-size lists in host memory, omit the bitmap if no element is missing.
    """
    cdef Tree t = <Tree> node if isinstance(node, Tree) else flat(node)
    t.validity = validity
    t.bit = bit
    t.nulls = nulls
    if has(t, NUMBERS | WIDTH) and validity.device_.device_type == kDLCPU and count_nulls(t) == 0:
        t.validity = None
        t.bit = 0
        return t.content if has(t, NUMBERS) and t.meaning is None else t
    return t


cdef const Format* check_head(ArrowSchema* schema, ArrowArray* array) except NULL:
    """Validate the fields of a node that are needed before its pointers are used."""
    if array.release == NULL:
        raise released_error("ArrowArray")
    cdef const Format* row = find_format(schema.format)
    if row == NULL:
        raise format_error(schema)
    check_counts(schema, array, row)
    if array.length < 0:
        raise array_error(schema, "length", array.length, "zero or more")
    if array.offset < 0:
        raise array_error(schema, "offset", array.offset, "zero or more")
    return row


cdef object format_error(ArrowSchema* schema):
    """Return the error for a format that the table does not have."""
    if strncmp(schema.format, b"_pl", 3) == 0:
        return Refusal(
            "Arrow", f"format {text_of(schema.format)} is a type that only polars defines, which is not supported; accepted:"
            " numbers, times, strings, lists, structs and dictionaries. Use x.cast(polars.Decimal(38, 0)); x.cast(float) rounds"
        )
    return interface_error("Arrow", "format", schema.format, "a format of the C data interface, such as 'g' or '+l'")


cdef int check_counts(ArrowSchema* schema, ArrowArray* array, const Format* row) except -1:
    cdef int64_t k
    cdef int buffers = buffers_of(row), children = children_of(row)
    cdef bint right = array.n_buffers == buffers if buffers != ANY else 3 <= array.n_buffers <= 1 << 30
    if array.n_buffers == 1 and row.text != NULL and row.text[0] == c"n":      # polars 2.1 exports a bitmap that is NULL
        right = array.buffers != NULL and array.buffers[0] == NULL
    if not right:
        raise array_error(schema, "n_buffers", array.n_buffers, str(buffers) if buffers != ANY else "3 or more")
    if array.buffers == NULL and buffers != 0:
        raise array_error(schema, "buffers", None, f"a pointer to {array.n_buffers} addresses")
    if children != ANY and schema.n_children != children:
        raise array_error(schema, "schema.n_children", schema.n_children, str(children))
    if array.n_children != schema.n_children:
        raise array_error(schema, "n_children", array.n_children, f"{schema.n_children}, as in the schema")
    if schema.n_children > 0 and array.children == NULL:
        raise array_error(schema, "children", None, f"a pointer to {schema.n_children} children")
    for k in range(schema.n_children):
        if array.children[k] == NULL:
            raise array_error(schema, f"children[{k}]", None, "a pointer to a child")
    if (schema.dictionary == NULL) != (array.dictionary == NULL):
        raise array_error(schema, "dictionary", None, "a dictionary in both the schema and the array, or in neither")
    return 0


cdef int check_data(ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first, Py_ssize_t length) except -1:
    """Check that the required buffers are not NULL, and that the elements end below 2**63 bytes."""
    cdef Py_ssize_t ignored, k
    if layout.checked_mul(first + length, row.width, &ignored):
        raise array_error(schema, "length", array.length, "a length whose elements end below 2**63 bytes")
    cdef int buffers = buffers_of(row), start = has_bitmap(row)
    if length == 0 or buffers == start or (row.number != NULL and row.number[0] == c"V"):
        return 0
    for k in range(start, buffers if is_opaque(row) else 2):
        if array.buffers[k] == NULL:
            raise array_error(schema, f"buffers[{k}]", None, f"the address of {length} elements")
    return 0


cdef Py_ssize_t nulls_in(ArrowSchema* schema, ArrowArray* array, Py_ssize_t length) except -2:
    """Validate `null_count`. Return 0 if no element is missing, or UNCOUNTED if the bitmap must be read."""
    if array.null_count < UNCOUNTED or array.null_count > array.length:
        raise array_error(schema, "null_count", array.null_count, f"-1 (not counted) to {array.length}, the length")
    if array.buffers[0] == NULL:
        if array.null_count > 0:
            raise array_error(schema, "buffers[0]", None, f"the address of a bitmap with {array.null_count} missing values")
        return 0
    if array.null_count == 0 or length == 0:
        return 0
    return UNCOUNTED


# ---------------------------------------------------------------------------------------------- the arrays of a node


cdef inline Descriptor blank(Import owner, const void* data, Py_ssize_t length):
    """Return a one-dimensional array at an address. The caller must set the element type."""
    cdef Descriptor a = new_array(1)
    a.protocol_ = ARROW_PROTOCOL
    a.flags_ = IMMUTABLE | EXACT_TIMES
    a.data_ = <char*> data
    a.base_ = owner
    a.device_ = owner.device
    if owner.device.device_type == kDLOneAPI:
        a.usm_type_ = USM_DEVICE      # the most restricted USM type, until the runtime determines the actual one
    a.stream_ = <void*> owner.stream
    a.shape_[0] = length
    return a


cdef inline Descriptor finish(Descriptor a):
    """Seal an array whose element type was set."""
    a.byte_strides_[0] = a.itemsize_
    seal(a)
    adopt(a)
    # Arrays of host memory and their nodes refer only to their Import, which does not refer to Python objects. Such arrays
    # cannot be part of a cycle, so the garbage collector need not visit them. Visits doubled the time to import 10,000 chunks
    # of lists.
    if a.device_.device_type == kDLCPU:
        gc_untrack(<PyObject*> a)
    return a


cdef Descriptor elements_of(Import owner, const void* data, Py_ssize_t first, Py_ssize_t length,
                            const dtypes.ElementType* element):
    """Return a range of elements of a buffer as an array."""
    cdef Descriptor a = blank(owner, advance(data, first, element.itemsize), length)
    set_type(a, element)
    return finish(a)


cdef Descriptor bytes_of(Import owner, const void* data, Py_ssize_t start, Py_ssize_t nbytes):
    """Return a range of bytes of a buffer as an array of uint8."""
    return elements_of(owner, data, start, nbytes, dtypes.by_arrow(c"C"))


cdef inline const void* advance(const void* data, Py_ssize_t elements, Py_ssize_t itemsize) except? NULL:
    """Return an address advanced by `elements`. NULL stays NULL, which `seal` accepts only for empty arrays."""
    cdef Py_ssize_t distance, address
    if data == NULL:
        return NULL
    if layout.checked_mul(elements, itemsize, &distance) or layout.checked_add(<Py_ssize_t> data, distance, &address):
        raise interface_error("Arrow", "offset", elements, "an offset within the address space")
    return <const void*> address


cdef Descriptor offsets_of(Import owner, ArrowArray* array, Py_ssize_t first, Py_ssize_t length, int width):
    """Return the `length + 1` offsets of a node, or an empty array for a node without elements on a device.

    The buffers of a node without elements are not read, because Arrow C++ permits them to have 0 bytes (ARROW-544,
    `cpp/src/arrow/array/validate.cc`).
    """
    cdef const dtypes.ElementType* element = dtypes.by_arrow(c"i" if width == 4 else c"l")
    if length > 0:
        return elements_of(owner, array.buffers[1], first, length + 1, element)
    if owner.device.device_type == kDLCPU:
        return elements_of(owner, _NO_OFFSETS, 0, 1, element)
    return elements_of(owner, array.buffers[1], first, 0, element)


cdef Py_ssize_t number_after(ArrowSchema* schema, const char* digits) except -1:
    """Return the number at the end of a format."""
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
        return elements_of(owner, array.buffers[1], first, length, dtypes.by_arrow(schema.format[0]))
    if row.number[0] == c"V":
        width = number_after(schema, schema.format + 2)
        if width > 1 << 30:
            raise interface_error("Arrow", "format", schema.format, "at most 2**30 bytes per element")
        dtype = np.dtype(f"V{width}")
    else:
        dtype = _DTYPES[row.number]
    a = blank(owner, advance(array.buffers[1], first, width), length)
    set_dtype(a, dtype)
    finish(a)
    if not has_logical_type(schema.format, row):
        return a
    t = new_tree(row.kind, length)
    t.content = a
    t.meaning = schema.format.decode("utf-8", "replace")
    return t


cdef object build_regular(Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t first, Py_ssize_t length):
    cdef Py_ssize_t width = number_after(schema, schema.format + 3)
    cdef Py_ssize_t start, inner
    if layout.checked_mul(first, width, &start) or layout.checked_mul(length, width, &inner):
        raise array_error(schema, "length", array.length, "fewer than 2**63 elements in total")
    cdef Tree t = new_rows(build(owner, schema.children[0], array.children[0], start, inner), length, width)
    t.child_fields = fields_of(schema, b"item")
    dense = None if t.child_fields is not None or isinstance(t.content, Tree) else dense_content(t)
    return t if dense is None else dense


cdef object build_categorical(Import owner, ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first,
                              Py_ssize_t length):
    cdef const dtypes.ElementType* element = dtypes.by_arrow(schema.format[0]) if schema.format[1] == 0 else NULL
    if element == NULL or element.kind == c"f":
        raise array_error(schema, "format", schema.format, "the format of an integer type for the indices of a dictionary")
    cdef Tree t = new_tree(CATEGORICAL, length)
    t.indices = elements_of(owner, array.buffers[1], first, length, element)
    t.content = build(owner, schema.dictionary, array.dictionary, 0, array.dictionary.length)
    if schema.flags & ARROW_FLAG_DICTIONARY_ORDERED:
        t.meaning = "ordered"
    field = field_of(schema.dictionary, NULL)
    t.child_fields = None if field is None else (field,)
    return t


cdef Tree build_other(Import owner, ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first,
                      Py_ssize_t length):
    cdef Tree t = new_tree(row.kind, length)
    if has(t, BIT_PACKED):
        t.bit = first & 7 if length else 0      # the buffer of an empty array may be empty
        t.content = bytes_of(owner, array.buffers[1], first >> 3, (t.bit + length + 7) >> 3)
    elif has(t, FIELDS):
        fill_children(t, owner, schema, array, first, length)
    elif has(t, VIEWS):
        fill_views(t, owner, schema, array, first, length)
    else:
        t.offsets = offsets_of(owner, array, first, length, row.width)
        if has(t, LISTS):
            t.content = build(owner, schema.children[0], array.children[0], 0, array.children[0].length)
            t.child_fields = fields_of(schema, b"item")
            t.meaning = "+m" if schema.format[1] == c"m" else None
        else:
            t.content = characters_of(owner, schema, array, t.offsets)
    return t


cdef Descriptor characters_of(Import owner, ArrowSchema* schema, ArrowArray* array, Descriptor offsets):
    """Return the characters up to the last offset.

    If the host cannot read the offsets, return an empty array, because the number of characters is known only after the
    offsets are copied to the host.
    """
    cdef Py_ssize_t end = 0
    if host_readable(offsets) and offsets.shape_[0] > 0:
        host_ready(offsets)
        end = integer_at(offsets.data_, offsets.itemsize_, offsets.shape_[0] - 1)
    if end < 0:
        raise array_error(schema, f"offsets[{offsets.shape_[0] - 1}]", end, "zero or more")
    if end > 0 and array.buffers[2] == NULL:
        raise array_error(schema, "buffers[2]", None, f"the address of {end} bytes of characters")
    return bytes_of(owner, array.buffers[2], 0, end)


cdef int fill_views(Tree t, Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t first,
                    Py_ssize_t length) except -1:
    """Set the views and the character buffers. The last buffer of the struct contains the sizes of the character buffers."""
    cdef Py_ssize_t k, count = array.n_buffers - 3
    cdef const char* sizes = <const char*> array.buffers[array.n_buffers - 1]
    cdef list parts = []
    if owner.device.device_type != kDLCPU:
        raise Refusal(
            "Arrow", f"format {text_of(schema.format)} on {TYPE_NAMES[owner.device.device_type]}; accepted: views in host"
            " memory. Cast the array to utf8 or binary, which have offsets"
        )
    if count > 0 and sizes == NULL:
        raise array_error(schema, f"buffers[{array.n_buffers - 1}]", None, f"the sizes of the {count} character buffers")
    for k in range(count):
        if integer_at(sizes, 8, k) < 0:
            raise array_error(schema, f"sizes[{k}]", integer_at(sizes, 8, k), "zero or more bytes")
        if array.buffers[2 + k] == NULL and integer_at(sizes, 8, k) > 0:
            raise array_error(schema, f"buffers[{2 + k}]", None, f"the address of {integer_at(sizes, 8, k)} bytes")
        parts.append(bytes_of(owner, array.buffers[2 + k], 0, integer_at(sizes, 8, k)))
    cdef Py_ssize_t ignored
    if layout.checked_mul(length, VIEW_BYTES, &ignored):
        raise array_error(schema, "length", array.length, "a length whose views end within the address space")
    t.content = reshape(bytes_of(owner, advance(array.buffers[1], first, VIEW_BYTES), 0, VIEW_BYTES * length),
                        (length, VIEW_BYTES))
    t.parts = tuple(parts)
    return 0


cdef int fill_children(Tree t, Import owner, ArrowSchema* schema, ArrowArray* array, Py_ssize_t first,
                       Py_ssize_t length) except -1:
    """Set the children of a struct or of an opaque node. Field names may repeat.

    The offset of a struct or a sparse union also applies to its children. If `length` is -1, children keep their own length.
    """
    cdef int64_t k
    cdef list names = [], parts = []
    for k in range(schema.n_children):
        names.append("" if schema.children[k].name == NULL else field_name(schema.children[k].name))
        parts.append(build(owner, schema.children[k], array.children[k], first,
                           array.children[k].length if length < 0 else length))
    t.names = tuple(names)
    t.parts = tuple(parts)
    t.child_fields = fields_of(schema, NULL)
    return 0


cdef Tree build_opaque(Import owner, ArrowSchema* schema, ArrowArray* array, const Format* row, Py_ssize_t first,
                       Py_ssize_t length):
    """Build a node of a format whose elements only pass through.

    The offset of the array applies to its buffers, and to the children of a sparse union. Runs keep the offset.
    """
    cdef Tree t = new_tree(OPAQUE, length)
    cdef Descriptor a
    cdef Py_ssize_t size
    cdef int k
    cdef list buffers = []
    t.meaning = schema.format[:min(<Py_ssize_t> strlen(schema.format), 1000)].decode("utf-8", "replace")
    for k in range(has_bitmap(row), buffers_of(row)):
        size = item_size(row.number[k], schema.format)
        a = blank(owner, advance(array.buffers[k], first, size), length)
        set_dtype(a, _ITEMS[size])
        buffers.append(finish(a))
    t.buffers = tuple(buffers)
    cdef bint sliced = is_sliced_with(t)
    fill_children(t, owner, schema, array, first if sliced else 0, length if sliced else -1)
    if schema.format[1] == c"u":
        union_codes(t.meaning, schema.n_children)
    elif schema.format[1] == c"r":
        t.skip = first
        check_run_ends(schema, t.parts[0])
    elif schema.format[0] == c"n":
        t.nulls = length
    return t


# NumPy's dtype for an item of each size in bytes.
cdef dict _ITEMS = {1: np.dtype("i1"), 4: np.dtype("i4"), 8: np.dtype("i8"), 16: np.dtype("V16"), 32: np.dtype("V32")}


cdef int check_run_ends(ArrowSchema* schema, object ends) except -1:
    if not isinstance(ends, Descriptor) or (<Descriptor> ends).nd_ != 1 or (<Descriptor> ends).dl_dtype_.code != 0 \
            or (<Descriptor> ends).itemsize_ < 2:
        raise array_error(schema, "run_ends", text_of(schema.children[0].format),
                          "int16, int32 or int64 without missing values")
    return 0


cdef str field_name(const char* name):
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise interface_error("Arrow", "name", name, "UTF-8") from None


# ------------------------------------------------------------------------------------------------------------------- devices

cdef int move_device_struct(Import owner, ArrowDeviceArray* array) except -1:
    move_struct(&owner.array, &array.array, "ArrowDeviceArray.array")
    return set_device(owner, array.device_type, array.device_id, array.sync_event)


cdef int set_device(Import owner, int device_type, int64_t device_id, void* sync_event) except -1:
    """Set the device of the buffers, and make an internal stream wait for the producer's event."""
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
        raise Refusal(
            "Arrow", f"sync_event is set for {TYPE_NAMES[device_type]}; accepted: NULL, after the producer's work is done,"
            " and a cudaEvent_t* for CUDA"
        )
    owner.stream = cuda.stream_after(<cuda.CudaEvent*> sync_event, owner.device.device_id)
    return 0


# ------------------------------------------------------------------------------------------------------------------- streams

# Called before the first array of a stream is read. Raises an error if the caller does not support the schema.
ctypedef int (*Check)(ArrowSchema* schema, object obj) except -1


cdef list read_stream(Stream* source, Check check, object obj):
    """Move a stream out of its capsule, read it, and return one Import per chunk. The first Import owns the schema.

    For a stream without chunks, return one Import without an array. `check` may be NULL.
    """
    cdef Stream stream
    move_struct(&stream, source, name_of_struct(source))
    cdef Import owner = Import.__new__(Import)
    cdef list chunks = [owner]
    try:
        read_schema(&stream, &owner.schema)
        if check != NULL:
            check(&owner.schema, obj)
        while read_next(&stream, owner):
            PyErr_CheckSignals()
            owner = Import.__new__(Import)
            chunks.append(owner)
        if len(chunks) > 1:
            chunks.pop()
    finally:
        drop_struct(&stream)
    return chunks


cdef str name_of_struct(Stream* stream):
    return "ArrowArrayStream" if Stream is ArrowArrayStream else "ArrowDeviceArrayStream"


cdef int read_schema(Stream* stream, ArrowSchema* out) except -1:
    cdef int code
    if stream.get_schema == NULL or stream.get_next == NULL:
        missing = "get_schema" if stream.get_schema == NULL else "get_next"
        raise interface_error("Arrow", f"{name_of_struct(stream)}.{missing}", None, "a function")
    aside = put_aside()
    code = stream.get_schema(stream, out)
    put_back(aside)      # also reports and clears an exception that the producer left pending
    if code != 0:
        out.release = NULL       # the struct is undefined after an error
        raise stream_error(stream, code, "get_schema")
    return validate_schema(out, "ArrowSchema")


cdef bint read_next(Stream* stream, Import owner) except -1:
    """Read the next array into `owner`. Return False at the end of the stream."""
    cdef int code
    cdef ArrowDeviceArray found
    aside = put_aside()
    with nogil:
        if Stream is ArrowArrayStream:
            code = stream.get_next(stream, &owner.array)
        else:
            code = stream.get_next(stream, &found)
    put_back(aside)
    if code != 0:
        owner.array.release = NULL
        raise stream_error(stream, code, "get_next")
    if Stream is ArrowDeviceArrayStream:
        if found.array.release == NULL:
            return False
        move_device_struct(owner, &found)
        if found.device_type != stream.device_type:
            raise interface_error("Arrow", "ArrowDeviceArray.device_type", found.device_type,
                                  f"{stream.device_type}, as in the stream")
    return owner.array.release != NULL


cdef object stream_error(Stream* stream, int code, str function):
    cdef const char* words = NULL
    if stream.get_last_error != NULL:
        words = stream.get_last_error(stream)
    message = "" if words == NULL else ": " + words.decode("utf-8", "replace")
    return Refusal("Arrow stream", f"{function} failed with error number {code}{message}")


cdef int make_empty(ArrowArray* out, ArrowSchema* schema) except -1:
    """Create an empty array of a schema's type, for a stream without chunks."""
    cdef int64_t k
    cdef const Format* row = find_format(schema.format)
    if row == NULL:
        raise format_error(schema)
    cdef int buffers = buffers_of(row)
    new_body(out, None, 3 if buffers == ANY else buffers, schema.n_children, schema.dictionary != NULL)
    for k in range(schema.n_children):
        make_empty(out.children[k], schema.children[k])
    return 0 if schema.dictionary == NULL else make_empty(out.dictionary, schema.dictionary)


# --------------------------------------------------------------------------------------------------- interfaces of an object

cdef Descriptor parse(object obj, object stream):
    """Import the memory of an Arrow producer as a dense array. Return None if `obj` does not have an Arrow interface.

    By default, the interfaces are tried in this order: device array, array, device stream, stream. Rows of libraries/known
    change this order for some libraries. A stream must not have more than one nonempty chunk.

    Some streams can be read only once. If the schema of such a stream shows that its data is not a dense array, the stream is
    rejected before it is read, so that the call in the error message can still read it. Queries are rejected without running
    them.
    """
    cdef Import owner = import_single(obj)
    if owner is not None:
        node = build_root(owner, &owner.schema)
        drop_struct(&owner.schema)
        return dense(node, obj)
    if not is_stream(obj):
        return single(import_chunks(obj, NULL), obj)
    check_unread(obj)
    return single(import_chunks(obj, check_format), obj)


cdef Descriptor single(list chunks, object obj):
    """Return the only nonempty chunk of a stream as a dense array, or the first chunk if all are empty.

    Return None if `chunks` is None. Raise BufferError if several chunks have elements.
    """
    if chunks is None:
        return None
    if len(chunks) > 1:
        chunks = [chunk for chunk in chunks if length_of(chunk)] or chunks[:1]
    if len(chunks) != 1:
        if any([isinstance(chunk, Tree) and may_be_missing(chunk) for chunk in chunks]):      # not solved by copy=True
            raise not_dense(obj, "has missing values, which a dense array cannot represent")
        raise not_dense(obj, f"has {len(chunks)} chunks; accepted: one chunk, or copy=True, which concatenates them")
    return dense(chunks[0], obj)


cdef Descriptor dense(object node, object obj):
    """Return a node as a dense array, or raise BufferError, whose message names the call to make instead."""
    array = dense_content(node)
    if array is None:
        raise not_dense(obj, refusal_of(<Tree> node))
    return array


cdef object not_dense(object obj, str reason):
    """Return the refusal of an object as a dense array."""
    call = "x.to_list()" if isinstance(obj, Tree) else "arrayhub.asnested(x)"
    reason, _, accepted = f"{name_of_type(type(obj))} {reason}".partition("; accepted: ")
    return Refusal("Arrow", reason, accepted, call)


cdef bint may_be_missing(Tree t) except -1:
    """Return whether an element of a node is missing. Return True for a bitmap that the host cannot read."""
    return t.validity is not None and (not host_readable(t.validity) or count_nulls(t) != 0)


cdef str refusal_of(Tree t):
    """Return why a node is not a dense array."""
    if may_be_missing(t):
        plural = "" if t.nulls == 1 else "s"
        count = "a bitmap of missing values" if t.nulls == UNCOUNTED else f"{t.nulls} missing value{plural}"
        return f"has {count}, which a dense array cannot represent"
    return refusal_of_type(type_name(t.meaning)) if has(t, NUMBERS | FOREIGN) else NODE_KINDS[t.kind].refusal.decode()


cdef dict _REMEDIES = {
    "date32": "; accepted: copy=True, which converts to datetime64[D]",
    "date64": "; accepted: copy=True, which converts to datetime64[ms]",
    "decimal": "; arrayhub.as_arrow(x).cast('float64') rounds them",
}


cdef str refusal_of_type(str name):
    """Return why elements of a type that NumPy does not have are not a dense array."""
    return f"has elements of {name}, a type that NumPy does not have{_REMEDIES.get(name, '')}"


# ------------------------------------------------------------------------------------------- streams that are read once


# The bit of Arrow's protocol in the record of a type.
cdef unsigned int _SPEAKS_ARROW = 1 << [row.name for row in PROTOCOLS].index("arrow")


cdef bint is_stream(object obj) except -1:
    """Return whether reading `obj` may consume it or run a query.

    The specification of the PyCapsule interface leaves open whether a stream can be requested twice. This function assumes
    that objects with only a stream interface and without a length can be read once. Examples are the readers of pyarrow,
    nanoarrow and arro3. Objects with a length are normally tables or columns, which can be read repeatedly. Queries of duckdb,
    ibis and datafusion are exceptions, which the table of libraries marks (ARROW_IS_LAZY).
    """
    cdef unsigned int record
    if isinstance(obj, Descriptor):
        return False
    record = record_of(obj)
    if record & (ARROW_ARRAY | ARROW_DEVICE) or not record & _SPEAKS_ARROW:
        return False
    cls = type(obj)
    if not hasattr(cls, "__arrow_c_stream__") and not hasattr(cls, "__arrow_c_device_stream__"):
        return False
    return record & ARROW_IS_LAZY or not hasattr(cls, "__len__")


cdef int check_unread(object obj) except -1:
    """Raise BufferError if the schema shows that a stream is not a dense array. Do not open the stream."""
    if record_of(obj) & ARROW_IS_LAZY:
        raise not_dense(obj, "is a query, which runs when it is read, and its result has columns; accepted: copy=True,"
                        " which makes a matrix of them")
    cdef Import owner = stated_schema(obj)
    return 0 if owner is None else check_format(&owner.schema, obj)


cdef int check_format(ArrowSchema* schema, object obj) except -1:
    """Raise BufferError if a type cannot be a dense array. Accept every fixed-size list without examining its values."""
    cdef const Format* row = find_format(schema.format)
    if schema.dictionary == NULL and row == NULL:
        return 0
    cdef int kind = CATEGORICAL if schema.dictionary != NULL else row.kind
    if NODE_KINDS[kind].properties & FOREIGN:
        raise not_dense(obj, refusal_of_type(row.words.decode()))
    if not NODE_KINDS[kind].properties & (NUMBERS | WIDTH):
        raise not_dense(obj, NODE_KINDS[kind].refusal.decode())
    return 0


cdef Import stated_schema(object obj):
    """Return the schema from ``__arrow_c_schema__`` of `obj` or of ``obj.schema``, without opening the stream.

    Return None if neither has this method, or if the method raises.
    """
    cls = type(obj)
    try:
        stated = obj if hasattr(cls, "__arrow_c_schema__") else obj.schema if hasattr(cls, "schema") else None
        if not hasattr(type(stated), "__arrow_c_schema__"):
            return None
        capsule = stated.__arrow_c_schema__()
    except PASSES_ON:
        raise
    except Exception:
        return None
    cdef Import owner = Import.__new__(Import)
    move_schema(owner, capsule, "__arrow_c_schema__()")
    validate_schema(&owner.schema, "ArrowSchema")
    return owner


def unread(obj, /):
    """Return a description of a stream that was not opened, such as "a stream of records", or None for other objects."""
    cdef const Format* row = NULL
    if not is_stream(obj):
        return None
    if record_of(obj) & ARROW_IS_LAZY:
        return "a query, which runs when it is read"
    cdef Import owner = stated_schema(obj)
    if owner is not None:
        row = find_format(owner.schema.format)
    kind = "" if row == NULL else f" of Arrow's type {row.words.decode()}"
    if row != NULL and NODE_KINDS[row.kind].properties & FIELDS:
        kind = f" of records with {owner.schema.n_children} field{'' if owner.schema.n_children == 1 else 's'}"
    return f"a stream{kind}, which can be read once"


cdef list parse_chunks(object obj):
    """Import the chunks of an Arrow producer as Trees. Return None if `obj` does not have an Arrow interface."""
    cdef Import owner = import_single(obj)
    if owner is None:
        return import_chunks(obj, NULL)
    column = build_column(owner, &owner.schema)
    drop_struct(&owner.schema)
    return [column]


cdef Import import_single(object obj):
    """Import an object through ``__arrow_c_device_array__`` or ``__arrow_c_array__``.

    Return None if the type has neither method, if another interface or protocol describes the object better, or if the
    method raises for an object that has a stream, such as a nanoarrow.Array of several chunks.
    """
    cdef unsigned int record
    if isinstance(obj, Descriptor):      # other protocols describe a Descriptor more precisely
        return None
    if isinstance(obj, Tree) and has(<Tree> obj, CHUNKS):      # chunks are exported as streams
        return None
    record = record_of(obj)
    if record & ARROW_STREAM_FIRST and hasattr(type(obj), "__arrow_c_stream__"):
        return None
    if not record & (ARROW_ARRAY | ARROW_DEVICE):
        return None
    try:
        if record & ARROW_ARRAY and record & ARROW_ARRAY_FIRST:
            return import_array_first(obj)
        return import_struct(obj, record & ARROW_DEVICE != 0)
    except InterfaceError:
        raise
    except PASSES_ON:
        raise
    except Exception:
        if not hasattr(type(obj), "__arrow_c_stream__") and not hasattr(type(obj), "__arrow_c_device_stream__"):
            raise
    return None


cdef list import_chunks(object obj, Check check):
    """Import the chunks of a stream as Trees, or return None if the type does not have a stream interface.

    `check` is called with the schema before the first chunk is read, unless it is NULL.
    """
    cdef Import owner, first
    cdef list owners, chunks = []
    cdef void* found
    if isinstance(obj, Descriptor):
        return None
    if hasattr(type(obj), "__arrow_c_device_stream__"):
        capsule = obj.__arrow_c_device_stream__()
        found = pointer_in(capsule, DEVICE_STREAM_NAME, "__arrow_c_device_stream__()")
        owners = read_stream(<ArrowDeviceArrayStream*> found, check, obj)
    elif hasattr(type(obj), "__arrow_c_stream__"):
        capsule = obj.__arrow_c_stream__()
        found = pointer_in(capsule, STREAM_NAME, "__arrow_c_stream__()")
        owners = read_stream(<ArrowArrayStream*> found, check, obj)
    else:
        return None
    first = <Import> owners[0]
    for owner in owners:
        if owner.array.release == NULL:       # a stream without chunks
            make_empty(&owner.array, &owner.schema)
        chunks.append(build_column(owner, &first.schema))
    drop_struct(&first.schema)
    if record_of(obj) & ARROW_BYTES_ARE_OBJECTS:
        for node in chunks:
            visit_arrays(node, refuse_objects, <void*> obj)
    return chunks


cdef int refuse_objects(Descriptor a, void* producer) except -1:
    """Raise TypeError for elements that are addresses of Python objects, which some producers export as raw bytes.

    Raw bytes of the size of a pointer are considered addresses. Decimals are also raw bytes, but have 16 or 32 bytes.
    """
    if a.typenum_ == cnp.NPY_VOID and a.itemsize_ == sizeof(void*):
        raise TypeRefusal(
            "Arrow", f"{name_of_type(type(<object> producer))} exports addresses of Python objects",
            "elements of an Arrow type, such as a column of numbers, strings or lists",
            "x.to_list()" if hasattr(<object> producer, "to_list") else "x.to_dicts()",
        )
    return 0


cdef unsigned int interfaces_of(object cls) except? 0:
    """Return ARROW_DEVICE and ARROW_ARRAY if a type has these interfaces, as bits of the type's record."""
    cdef unsigned int found = 0
    if getattr(cls, "__arrow_c_device_array__", None) is not None:
        found |= ARROW_DEVICE
    if getattr(cls, "__arrow_c_array__", None) is not None:
        found |= ARROW_ARRAY
    return found


cdef Import import_struct(object obj, bint on_device):
    """Import an object through ``__arrow_c_device_array__`` or ``__arrow_c_array__``."""
    cdef Import owner = Import.__new__(Import)
    cdef str source = "__arrow_c_device_array__()" if on_device else "__arrow_c_array__()"
    pair = obj.__arrow_c_device_array__() if on_device else obj.__arrow_c_array__()
    if type(pair) is not tuple or len(<tuple> pair) != 2:
        raise interface_error("Arrow", source, pair, "a pair of capsules: the schema and the array")
    move_schema(owner, (<tuple> pair)[0], source)
    if on_device:
        move_device_struct(owner, <ArrowDeviceArray*> pointer_in((<tuple> pair)[1], DEVICE_NAME, source))
    else:
        move_struct(&owner.array, <ArrowArray*> pointer_in((<tuple> pair)[1], ARRAY_NAME, source), "ArrowArray")
    validate_schema(&owner.schema, "ArrowSchema")
    return owner


cdef Import import_array_first(object obj):
    """Import an object through ``__arrow_c_array__``.

    If this method rejects device memory, use ``__arrow_c_device_array__``.
    """
    try:
        return import_struct(obj, False)
    except PASSES_ON:
        raise
    except Exception:
        if getattr(obj, "is_cpu", True):
            raise
    return import_struct(obj, True)
