"""Conversion of Arrow's structs to arrays and nodes. Each struct is validated before its pointers are used."""

import numpy as np

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport strlen

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    EXACT_TIMES,
    IMMUTABLE,
    USM_DEVICE,
    Descriptor,
    host_readable,
    kDLCPU,
    kDLOneAPI,
    new_array,
    reshape,
    seal,
    set_dtype,
    set_type,
)
from arrayhub._core.runtime cimport adopt, host_ready
from arrayhub._core.tree cimport (
    ANY,
    BIT_PACKED,
    CATEGORICAL,
    FIELDS,
    FOREIGN,
    LISTS,
    NODE_KINDS,
    NUMBERS,
    OPAQUE,
    UNCOUNTED,
    VIEW_BYTES,
    VIEWS,
    WIDTH,
    Tree,
    count_nulls,
    flat,
    has,
    integer_at,
    is_sliced_with,
    new_tree,
)
from arrayhub.adapters.table cimport ARROW_PROTOCOL

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.errors import Refusal, interface_error
from arrayhub._core.tree import union_codes

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
        validity = buffer_of(owner, array.buffers[0], first >> 3, ((first & 7) + length + 7) >> 3)
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
        name = extension_name(schema)
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
    if row.kind == REFUSED:
        raise Refusal(
            "Arrow", f"format {text_of(schema.format)} is {row.words.decode()}, which is not supported; accepted: numbers,"
            " times, strings, lists, structs and dictionaries. Use x.cast(polars.Decimal(38, 0))"
        )
    check_counts(schema, array, row)
    if array.length < 0:
        raise array_error(schema, "length", array.length, "zero or more")
    if array.offset < 0:
        raise array_error(schema, "offset", array.offset, "zero or more")
    return row


cdef object format_error(ArrowSchema* schema):
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


cdef inline Descriptor finished(Descriptor a):
    a.byte_strides_[0] = a.itemsize_
    seal(a)
    adopt(a)
    # Arrays of host memory and their nodes refer only to their Import, which does not refer to Python objects. Such arrays
    # cannot be part of a cycle, so the garbage collector need not visit them. Visits doubled the time to import 10,000 chunks
    # of lists.
    if a.device_.device_type == kDLCPU:
        gc_untrack(<PyObject*> a)
    return a


cdef Descriptor buffer_of(Import owner, const void* data, Py_ssize_t start, Py_ssize_t nbytes):
    """Return a range of bytes of a buffer as an array of uint8."""
    cdef Descriptor a = blank(owner, advance(data, start, 1), nbytes)
    set_type(a, dtypes.by_arrow(c"C"))
    return finished(a)


cdef inline const void* advance(const void* data, Py_ssize_t elements, Py_ssize_t itemsize) except? NULL:
    """Return an address advanced by `elements`. NULL stays NULL, which `seal` accepts only for empty arrays."""
    cdef Py_ssize_t distance, address
    if data == NULL:
        return NULL
    if layout.checked_mul(elements, itemsize, &distance) or layout.checked_add(<Py_ssize_t> data, distance, &address):
        raise interface_error("Arrow", "offset", elements, "an offset within the address space")
    return <const void*> address


cdef Descriptor integers(Import owner, const void* data, Py_ssize_t start, Py_ssize_t length, int width):
    cdef Descriptor a = blank(owner, advance(data, start, width), length)
    set_type(a, dtypes.by_arrow(c"i" if width == 4 else c"l"))
    return finished(a)


cdef Descriptor offsets_of(Import owner, ArrowArray* array, Py_ssize_t first, Py_ssize_t length, int width):
    """Return the `length + 1` offsets of a node, or an empty array for a node without elements on a device.

    The buffers of a node without elements are not read, because Arrow C++ permits them to have 0 bytes (ARROW-544,
    `cpp/src/arrow/array/validate.cc`).
    """
    if length == 0:
        return integers(owner, _NO_OFFSETS, 0, 1, width) if owner.device.device_type == kDLCPU else \
            integers(owner, array.buffers[1], first, 0, width)
    return integers(owner, array.buffers[1], first, length + 1, width)


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
        a = blank(owner, advance(array.buffers[1], first, width), length)
        set_type(a, dtypes.by_arrow(schema.format[0]))
        return finished(a)
    if row.number[0] == c"V":
        width = number_after(schema, schema.format + 2)
        if width > 1 << 30:
            raise interface_error("Arrow", "format", schema.format, "at most 2**30 bytes per element")
        dtype = np.dtype(f"V{width}")
    else:
        dtype = _DTYPES[row.number]
    a = blank(owner, advance(array.buffers[1], first, width), length)
    set_dtype(a, dtype)
    finished(a)
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
    t.indices = blank(owner, advance(array.buffers[1], first, element.itemsize), length)
    set_type(t.indices, element)
    finished(t.indices)
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
        t.content = buffer_of(owner, array.buffers[1], first >> 3, (t.bit + length + 7) >> 3)
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
    return buffer_of(owner, array.buffers[2], 0, end)


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
        parts.append(buffer_of(owner, array.buffers[2 + k], 0, integer_at(sizes, 8, k)))
    cdef Py_ssize_t ignored
    if layout.checked_mul(length, VIEW_BYTES, &ignored):
        raise array_error(schema, "length", array.length, "a length whose views end within the address space")
    t.content = reshape(buffer_of(owner, advance(array.buffers[1], first, VIEW_BYTES), 0, VIEW_BYTES * length),
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
        buffers.append(finished(a))
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
