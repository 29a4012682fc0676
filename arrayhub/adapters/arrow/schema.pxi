"""Export of types as Arrow schemas, and comparison with requested schemas."""

import numpy as np

cimport numpy as cnp
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int64_t
from libc.string cimport memcpy, strcmp, strlen

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    EXACT_TIMES,
    NOTSWAPPED,
    PACKED,
    Descriptor,
    get_dtype,
    host_readable,
    kDLCUDAManaged,
    reshape,
    same_layout,
    set_type,
    shape_tuple,
    stride_tuple,
)
from arrayhub._core.runtime cimport device_name
from arrayhub._core.tree cimport (
    CHUNKS,
    FIELDS,
    FOREIGN,
    INDICES,
    LISTS,
    MAX_DEPTH,
    NODE_KINDS,
    NUMBERS,
    WIDTH,
    Tree,
    has,
    new_chunked,
    same_node,
    visit_arrays,
)

from arrayhub._core.errors import PACKED_ELEMENTS, Refusal, interface_error, reason_of

cdef list _LETTERS = [bytes([_code]) for _code in range(128)]


cdef bytes letter_of(Descriptor a):
    """Return the Arrow format of the element type of an array. Raise BufferError if Arrow lacks the type."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row != NULL and row.arrow != 0 and a.flags_ & NOTSWAPPED:
        return <bytes> _LETTERS[row.arrow]
    if a.dl_dtype_.code == BOOL_CODE:
        return b"c"
    dtype = get_dtype(a)
    if dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and row != NULL and row.kind == c"V":
        return b"w:%d" % dtype.itemsize
    if dtype.kind in "mM" and dtype.isnative:
        unit, count = np.datetime_data(dtype)
        if count == 1 and unit in _FORMATS_OF_UNITS:
            return _FORMATS_OF_UNITS[unit][0 if dtype.kind == "M" else 1]
    raise Refusal(
        "Arrow", f"no format for dtype {dtype!r}",
        "integers, float16 to float64, bool, times in s, ms, us and ns, and raw bytes, in native byte order", call_for(dtype),
    )


cdef str call_for(object dtype):
    """Return a call that converts the elements to a type that Arrow has, or "" if none is known.

    The cast of times finer than nanoseconds drops their fractions. In the cast of months, a year has 365.2425 days.
    """
    if dtype.kind == "U":
        return "arrayhub.as_numpy(x)"
    if dtype.char == "g":
        return "arrayhub.asarray(x, dtype='float64')"
    if dtype.kind in "iuf" and not dtype.isnative:
        return "arrayhub.asarray(x).native()"
    if dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and np.can_cast(dtype, np.float32):
        return "arrayhub.asarray(x, dtype='float32')"      # types of ml_dtypes, such as bfloat16
    if dtype.kind not in "mM":
        return ""
    unit = np.datetime_data(dtype)[0]
    if unit not in _FORMATS_OF_UNITS:
        unit = "ns" if unit in ("ps", "fs", "as") else "s"
    return f"arrayhub.asarray(x).astype('{dtype.kind}8[{unit}]')"


# Formats of datetime64 and timedelta64 by NumPy's unit.
cdef dict _FORMATS_OF_UNITS = {
    "s": (b"tss:", b"tDs"), "ms": (b"tsm:", b"tDm"), "us": (b"tsu:", b"tDu"), "ns": (b"tsn:", b"tDn"),
}


def obstacle_of(Descriptor array not None, bint extension):
    """Return the reason why an array cannot be exported to Arrow without a copy, or None.

    Copies of booleans to bits are not reported. `extension` permits the type ``arrow.fixed_shape_tensor``.
    """
    return export_obstacle(array) or sharing_obstacle(array, TENSOR if extension else 0)


cdef str export_obstacle(Descriptor a):
    """Return the reason why an array cannot be exported to Arrow, or None.

    Strides of host memory are not an obstacle, because the export copies strided arrays.
    """
    if a.nd_ == 0:
        return "the array has 0 dimensions; accepted: one or more. Use x.reshape(1)"
    if a.flags_ & PACKED or a.byte_strides_ == NULL:
        return PACKED_ELEMENTS
    if not is_for_host(a) and sharing_obstacle(a, TENSOR) is not None:
        return sharing_obstacle(a, TENSOR)
    if may_be_nat(a) and not host_readable(a):
        return nat_obstacle(a)
    cdef str refusal = None
    try:
        letter_of(a)
    except (BufferError, TypeError) as error:
        refusal = reason_of(error)
    return refusal


cpdef bint may_be_nat(Descriptor a) noexcept:
    """Return whether elements may be NumPy's NaT, which Arrow encodes in the bitmap.

    In times that were imported from Arrow, and in copies of them, the integer that encodes NaT is a valid time.
    """
    return (a.typenum_ == cnp.NPY_DATETIME or a.typenum_ == cnp.NPY_TIMEDELTA) and not a.flags_ & EXACT_TIMES


cdef str nat_obstacle(Descriptor a):
    return f"times on {device_name(a)} may be NaT, which Arrow represents by a bitmap of host memory; call x.to_host() first"


cdef str sharing_obstacle(Descriptor a, int form):
    """Return the reason why Arrow cannot represent the memory of an array without a copy, or None."""
    if a.flags_ & C_CONTIGUOUS or form == 0 and is_packed(a, False):      # `pack_bits` reads booleans of any strides
        return None
    if a.nd_ == 1 or memory_order(a) is None:
        return f"byte strides {stride_tuple(a)} with shape {shape_tuple(a)} are not compact"
    if form & TENSOR:
        return None
    return f"byte strides {stride_tuple(a)} are not in C order, which lists require"


cdef object compact(object node, int form):
    """Return a C-contiguous copy of an array that Arrow cannot represent without a copy. Return other arrays unchanged."""
    if isinstance(node, Tree) or sharing_obstacle(<Descriptor> node, form) is None:
        return node
    return node.copy()


# Extension types of an exported array, which a requested schema selects. By default, dimensions are nested fixed-size lists,
# and booleans in host memory are bits.
cdef enum:
    TENSOR = 1       # arrow.fixed_shape_tensor, for several dimensions
    BOOL8 = 2        # arrow.bool8, for booleans


cdef int requested_form(object requested) except -1:
    """Return the extension types that a requested schema selects for a dense array.

    Higher layers and the consumer handle the other parts of the request, because a producer may ignore a request.
    """
    cdef ArrowSchema* schema
    cdef int form = 0
    if requested is None:
        return 0
    schema = <ArrowSchema*> pointer_in(requested, SCHEMA_NAME, "requested_schema")
    if schema.release == NULL or schema.format == NULL:
        raise released_error("requested_schema")
    if extension_name(schema) == b"arrow.fixed_shape_tensor":
        form = TENSOR
    for _ in range(MAX_DEPTH):
        if schema.n_children != 1 or schema.children == NULL or schema.children[0] == NULL:
            break
        schema = schema.children[0]
    return form | BOOL8 if extension_name(schema) == b"arrow.bool8" else form


cdef bint is_for_host(Descriptor a) noexcept:
    """Return whether an array is exported as host memory: memory that the host can read, except CUDA's managed memory."""
    return host_readable(a) and a.device_.device_type != kDLCUDAManaged


cdef inline bint is_packed(Descriptor a, bint as_bytes) noexcept:
    """Return whether the elements are booleans that are exported as bits. Booleans on a device stay bytes."""
    return a.dl_dtype_.code == BOOL_CODE and not as_bytes and is_for_host(a)


cdef bint has_bytes(object node, tuple field):
    """Return whether the booleans of a node have the type ``arrow.bool8``.

    `field` is None, or contains the name, flags and metadata that the parent stores for the node.
    """
    cdef Descriptor a
    cdef Tree t = None
    if isinstance(node, Tree):
        t = <Tree> node
        field = t.field if field is None else field
        node = t.content if has(t, NUMBERS) else None
    if not isinstance(node, Descriptor) or (<Descriptor> node).dl_dtype_.code != BOOL_CODE:
        return False
    a = <Descriptor> node
    if a.nd_ > 1:
        field = None if t is None else child_field(t, a.nd_ - 2)
    return field is not None and name_in(field[len(field) - 1]) == b"arrow.bool8"


cdef bint packs(object node, tuple field):
    cdef Tree t
    if not isinstance(node, Tree) or has(<Tree> node, NUMBERS):
        a = (<Tree> node).content if isinstance(node, Tree) else node
        return is_packed(<Descriptor> a, has_bytes(node, field))
    t = <Tree> node
    if t.content is not None and packs(t.content, child_field(t, 0)):
        return True
    for k in range(0 if t.parts is None else len(t.parts)):
        if packs(t.parts[k], child_field(t, k)):
            return True
    return False


def packs_booleans(node):
    """Return whether an export of a node copies booleans to bits. A request for ``arrow.bool8`` avoids this copy."""
    return packs(node, None)


def extension_schema(Descriptor a):
    """Return a schema capsule that requests the extension types of a dense array."""
    return schema_capsule(exportable(a, TENSOR), TENSOR | BOOL8)


cdef object exportable(object node, int form):
    """Return `node` with each tensor replaced by its storage. Raise BufferError if Arrow cannot represent the node.

    `form` contains the extension types that the caller requested.
    """
    cdef Descriptor a
    if isinstance(node, Tree):
        node = with_tensors(node, None)
        visit_arrays(node, refuse_gaps, NULL)
        check_chunks(<Tree> node)
        return node
    a = <Descriptor> node
    why = export_obstacle(a)
    if why is None and not is_for_host(a):
        why = sharing_obstacle(a, form)
    if why is not None:
        raise Refusal("Arrow", f"{why}")
    return a


def check_node(Tree node not None, bint copied):
    """Raise the error of the export of a node, or of its copy without gaps, from its types and strides."""
    schema_capsule(with_tensors(node, None), 0)
    if not copied:
        exportable(node, 0)


cdef int check_chunks(Tree t) except -1:
    """Raise BufferError if the chunks of a node differ in their Arrow type, because a stream has one schema."""
    cdef Py_ssize_t k
    cdef str found
    if not has(t, CHUNKS) or t.checked:
        return 0
    first = schema_capsule(t.parts[0], 0)
    cdef ArrowSchema* expected = <ArrowSchema*> PyCapsule_GetPointer(first, SCHEMA_NAME)
    for k in range(1, len(t.parts)):
        other = schema_capsule(t.parts[k], 0)
        found = difference_below(expected, <ArrowSchema*> PyCapsule_GetPointer(other, SCHEMA_NAME),
                                 ("chunks[0]", f"chunks[{k}]"), "")
        if found is not None:
            raise Refusal("Arrow", f"the chunks have several types: {found}; accepted: one type. Pass copy=True,"
                          " which concatenates the chunks, or use x.chunks one by one")
    t.checked = True
    return 0


cdef object with_requested_extensions(object node, object requested, tuple asked):
    """Return a node with the extension types that a requested schema names, at every depth.

    Nodes for which the schema does not name an extension type are replaced by their storage. If the result would not have the
    requested type, at most the extension type of the outermost node is removed, and all other nodes keep their types.
    """
    cdef ArrowSchema* schema = <ArrowSchema*> pointer_in(requested, SCHEMA_NAME, "requested_schema")
    cdef Tree t
    if not isinstance(node, Tree):
        return storage_of(<Descriptor> node, requested, asked)
    t = <Tree> node
    if has(t, CHUNKS):
        return new_chunked(tuple([with_requested_extensions(chunk, requested, asked) for chunk in t.parts]))
    field = None if t.field is None else (None, *t.field)
    changed, facts = as_requested(t, field, schema)
    if changed is t and facts is field:
        return t
    changed = root_with_field(changed, facts)
    if difference(requested, schema_capsule(with_tensors(changed, None), 0)) is None:
        return changed
    if field is None or extension_in(field) is None or extension_name(schema) is not None:
        return t
    changed, facts = without_extension(t, field, schema)
    return root_with_field(changed, facts)


cdef Tree root_with_field(object node, tuple field):
    """Return a copy of a node with the flags and metadata of `field`, or with the defaults if `field` is None."""
    cdef Tree t = same_node(<Tree> node) if isinstance(node, Tree) else with_facts(node, (None, ARROW_FLAG_NULLABLE, None))
    t.field = None if field is None or field[1:] == (ARROW_FLAG_NULLABLE, None) else field[1:]
    return t


cdef object extension_in(tuple field):
    """Return the name of the extension type of a field, or None. See `field_of`."""
    return None if field is None else name_in(field[2])


cdef tuple as_requested(object node, tuple field, ArrowSchema* asked):
    """Return a node and its field (see `field_of`) with the extension types of a requested schema.

    The caller must check that the storage has the requested type.
    """
    cdef Tree t, changed
    cdef Py_ssize_t k
    if isinstance(node, Tree) and field is None and (<Tree> node).field is not None:
        field = (None, *(<Tree> node).field)
    own, wanted = extension_in(field), extension_name(asked)
    if own is not None and wanted is None:
        node, field = without_extension(node, field, asked)
    elif own is None and wanted is not None:
        field = (None if field is None else field[0], ARROW_FLAG_NULLABLE if field is None else field[1], raw_metadata(asked))
    if not isinstance(node, Tree) or has(<Tree> node, NUMBERS):
        if extension_in(field) != b"arrow.fixed_shape_tensor":
            node = items_as_requested(node, field, asked)
        return node, field
    t = <Tree> node
    fields = list(t.child_fields or ())
    content, parts = t.content, t.parts
    if has(t, INDICES) and asked.dictionary != NULL:
        content, facts = as_requested(content, child_field(t, 0), asked.dictionary)
        set_item(fields, 0, facts)
    elif has(t, LISTS) and asked.n_children == 1:
        content, facts = as_requested(content, child_field(t, 0), asked.children[0])
        set_item(fields, 0, facts)
    elif has(t, FIELDS | FOREIGN) and asked.n_children == len(t.parts):
        parts = list(t.parts)
        for k in range(len(parts)):
            parts[k], facts = as_requested(parts[k], child_field(t, k), asked.children[k])
            set_item(fields, k, facts)
    made = None if fields.count(None) == len(fields) else tuple(fields)
    changed = with_parts(t, content, made, parts)
    if changed is t and made != t.child_fields:
        changed = same_node(t)
        changed.child_fields = made
    return changed, field


cdef int set_item(list fields, Py_ssize_t k, object facts) except -1:
    """Set the field of child `k` in a list. Append None for each missing entry before it."""
    while len(fields) <= k:
        fields.append(None)
    fields[k] = facts
    return 0


cdef object items_as_requested(object node, tuple field, ArrowSchema* asked):
    """Return an array of numbers whose items have the requested extension types.

    Arrow represents each dimension after the first as a list. The child of this list is an item, which can have an extension
    type.
    """
    cdef Descriptor a = <Descriptor> ((<Tree> node).content if isinstance(node, Tree) else node)
    cdef list items = list((<Tree> node).child_fields or ()) if isinstance(node, Tree) else []
    cdef Py_ssize_t axis
    cdef Tree t
    before = list(items)
    for axis in range(a.nd_ - 1):
        if asked.n_children != 1:
            break
        asked = asked.children[0]
        item = items[axis] if axis < len(items) else None
        own, wanted = extension_in(item), extension_name(asked)
        if own is None and wanted is not None:
            set_item(items, axis, (None, ARROW_FLAG_NULLABLE, raw_metadata(asked)) if item is None
                     else (item[0], item[1], raw_metadata(asked)))
        elif own is not None and wanted is None:
            items[axis] = (item[0], item[1], None)
            if own == b"arrow.bool8" and asked.format[0] == c"c":
                a = as_bytes(a)
    if items == before:
        return node
    t = with_facts(node, (None, ARROW_FLAG_NULLABLE, None) if field is None else field)
    t.field = (<Tree> node).field if isinstance(node, Tree) else None
    t.content = a
    t.child_fields = tuple(items)
    return t


cdef tuple without_extension(object node, tuple field, ArrowSchema* asked):
    """Return the storage of a node with an extension type, and the node's field without the metadata.

    Tensors become flat rows if `asked` is a list of a type without children. Booleans become int8 if `asked` is int8.
    """
    cdef Descriptor a
    cdef Tree t = None
    if isinstance(node, Tree) and not has(<Tree> node, NUMBERS):
        t = same_node(<Tree> node)
    elif extension_in(field) == b"arrow.fixed_shape_tensor":
        t = tensor_storage(with_facts(node, field)) if has_flat_storage(asked) else with_facts(node, field)
    else:
        a = <Descriptor> ((<Tree> node).content if isinstance(node, Tree) else node)
        a = as_bytes(a) if a.dl_dtype_.code == BOOL_CODE and asked.format[0] == c"c" else a
        if not isinstance(node, Tree):
            return a, (field[0], field[1], None)
        t = same_node(<Tree> node)
        t.content = a
    t.field = None
    return t, (field[0], field[1], None)


cdef Descriptor storage_of(Descriptor a, object requested, tuple asked):
    """Return a dense array as the storage that a schema requests: flat rows instead of tensors, int8 instead of bool.

    Return the array unchanged if the schema requests the extension types.
    """
    cdef int form = requested_form(requested)
    if not form & TENSOR and has_flat_rows(asked) and a.nd_ > 2 and a.flags_ & C_CONTIGUOUS:
        a = reshape(a, (a.shape_[0], layout.count(a.nd_ - 1, a.shape_ + 1)))
    while len(asked[1]) == 1:
        asked = asked[1][0]
    return as_bytes(a) if a.dl_dtype_.code == BOOL_CODE and asked[0] == "c" and not form & BOOL8 else a


cdef bint has_flat_rows(tuple asked):
    """Return whether a requested type is a list of a type without children."""
    return len(asked[1]) == 1 and not asked[1][0][0].startswith("+")


cdef Descriptor as_bytes(Descriptor a):
    cdef Descriptor view = same_layout(a)
    set_type(view, dtypes.by_arrow(c"c"))
    return view


cdef int refuse_gaps(Descriptor a, void* argument) except -1:
    """Raise BufferError if Arrow cannot represent the layout of an array of a node. See `sharing_obstacle` for booleans.

    Packed (sub-byte) elements of DLPack are not exported to Arrow.
    """
    if a.flags_ & PACKED or a.byte_strides_ == NULL:
        raise Refusal("Arrow", PACKED_ELEMENTS)
    return 0 if is_packed(a, False) else refuse_strides(a)


cdef int refuse_strides(Descriptor a) except -1:
    if not a.flags_ & C_CONTIGUOUS:
        raise Refusal(
            "Arrow", f"byte strides {stride_tuple(a)} with shape {shape_tuple(a)} of a nested array are not compact; call"
            " arrayhub.asnested(x, copy=True), or pass copy=True to as_arrow, as_polars or as_pandas"
        )
    return 0


# ------------------------------------------------------------------------------------------------------------- the structs


cdef void _release_schema(ArrowSchema* schema) noexcept nogil:
    """Release a schema without the GIL. The strings, children and dictionary of the schema are in one allocation."""
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
    """Allocate the strings, children and dictionary of `out` together, and set its release function."""
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


cdef bytes _ITEM = b"item"        # conventional name of a list's child


cdef int fill_schema(ArrowSchema* out, object node, bytes name, tuple field=None) except -1:
    """Fill in the schema of a node. `field` contains the name, flags and metadata that the parent stores for the node."""
    cdef bytes metadata = None
    if isinstance(node, Tree) and has(<Tree> node, CHUNKS):
        return fill_schema(out, (<Tree> node).parts[0], name, field)
    if field is None and isinstance(node, Tree) and (<Tree> node).field is not None:
        field = (None, *(<Tree> node).field)
    if field is not None:
        name = name if field[0] is None else field[0]
        metadata = field[2]
    fill_typed_schema(out, node, name, metadata, has_bytes(node, field))
    if field is not None:
        out.flags = (out.flags & ARROW_FLAG_DICTIONARY_ORDERED) | <int64_t> field[1]
    return 0


cdef int fill_typed_schema(ArrowSchema* out, object node, bytes name, bytes metadata, bint as_bytes) except -1:
    cdef Tree t
    cdef Py_ssize_t k, children
    if not isinstance(node, Tree):
        return fill_dense_schema(out, <Descriptor> node, None, 0, name, metadata, None, as_bytes)
    t = <Tree> node
    if has(t, NUMBERS):
        return fill_dense_schema(out, <Descriptor> t.content, t.meaning, 0, name, metadata, t.child_fields, as_bytes)
    if has(t, INDICES):
        new_schema(out, letter_of(t.indices), name, metadata, 0, True)
        if t.meaning is not None:
            out.flags |= ARROW_FLAG_DICTIONARY_ORDERED
        return fill_schema(out.dictionary, t.content, b"", child_field(t, 0))
    children = len(t.parts) if has(t, FIELDS | FOREIGN) else NODE_KINDS[t.kind].children
    new_schema(out, format_of(t), name, metadata, children, False)
    if has(t, FIELDS | FOREIGN):
        for k in range(len(t.parts)):
            fill_schema(out.children[k], t.parts[k], t.names[k].encode(), child_field(t, k))
    elif children:
        fill_schema(out.children[0], t.content, _ITEM, child_field(t, 0))
    return 0


cdef bytes format_of(Tree t):
    if has(t, WIDTH):
        return b"+w:%d" % t.width
    if has(t, FOREIGN):
        return t.meaning.encode()
    if t.meaning is not None and has(t, LISTS) and t.offsets.itemsize_ == 4:
        return b"+m"
    return format_of_kind(t.kind, 0 if t.offsets is None else t.offsets.itemsize_).text


cdef int fill_dense_schema(ArrowSchema* out, Descriptor a, str meaning, int axis, bytes name, bytes metadata,
                           tuple items, bint as_bytes) except -1:
    """Fill in the schema of numbers.

    For each dimension after the first, `items` contains the name, flags and metadata of the list items in this dimension.
    """
    cdef tuple item = None
    if axis < a.nd_ - 1:
        new_schema(out, b"+w:%d" % a.shape_[axis + 1], name, metadata, 1, False)
        if items is not None and axis < len(items):
            item = items[axis]
        if item is None:
            return fill_dense_schema(out.children[0], a, meaning, axis + 1, _ITEM, None, items, as_bytes)
        fill_dense_schema(out.children[0], a, meaning, axis + 1, _ITEM if item[0] is None else item[0], item[2], items,
                          as_bytes)
        out.children[0].flags = item[1]
        return 0
    if meaning is not None:
        return new_schema(out, meaning.encode(), name, metadata, 0, False)
    if is_packed(a, as_bytes):
        return new_schema(out, b"b", name, metadata, 0, False)
    if a.dl_dtype_.code == BOOL_CODE and name_in(metadata) != b"arrow.bool8":
        metadata = _BOOL8
    return new_schema(out, letter_of(a), name, metadata, 0, False)


cdef bytes column_name_of(Tree t):
    """Return the name of a column, encoded for Arrow's schema."""
    name = (<Tree> t.parts[0]).name if has(t, CHUNKS) else t.name
    return b"" if name is None else str(name).encode("utf-8", "replace")


cdef int fill_root_schema(ArrowSchema* out, object node, int form) except -1:
    cdef Descriptor a
    cdef list order
    if isinstance(node, Tree):
        try:
            return fill_schema(out, node, column_name_of(<Tree> node))
        except Refusal as error:
            if has(<Tree> node, NUMBERS):
                raise
            refusal = error
        raise Refusal(refusal.subject, refusal.reason, refusal.accepted)      # its call fails for a record or a list
    a = <Descriptor> node
    if a.nd_ == 1 or not form & TENSOR:
        return fill_typed_schema(out, a, b"", None, form & BOOL8)
    order = memory_order(a) or list(range(1, a.nd_))      # if no order is compact, `compact` copies in C order
    new_schema(out, b"+w:%d" % layout.count(a.nd_ - 1, a.shape_ + 1), b"", tensor_metadata(a, order), 1, False)
    return fill_dense_schema(out.children[0], a, None, a.nd_ - 1, _ITEM, None, None, form & BOOL8)


cdef void _drop_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*> PyCapsule_GetPointer(capsule, SCHEMA_NAME)
    if schema.release != NULL:
        schema.release(schema)
    PyMem_RawFree(schema)


cdef object schema_capsule(object node, int form):
    cdef ArrowSchema* schema = <ArrowSchema*> PyMem_RawCalloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(schema, SCHEMA_NAME, _drop_schema_capsule)
    except BaseException:
        PyMem_RawFree(schema)
        raise
    fill_root_schema(schema, node, form)
    return capsule


cdef object emit_schema(object node, object requested_schema):
    """Return a schema capsule for a node."""
    cdef int form = requested_form(requested_schema)
    return schema_capsule(exportable(node, form), form)


# ------------------------------------------------------------------------------------------------------------- requests


cdef tuple described(object capsule):
    """Return a requested schema as a pair of its format and a list of such pairs for its children."""
    cdef int nodes = 0
    cdef ArrowSchema* schema = <ArrowSchema*> pointer_in(capsule, SCHEMA_NAME, "requested_schema")
    return described_node(schema, 0, &nodes)


cdef tuple described_node(ArrowSchema* schema, int depth, int* nodes):
    cdef int64_t k
    nodes[0] += 1
    if depth > MAX_DEPTH or nodes[0] > MAX_NODES:
        raise too_many_nodes("requested_schema")
    if schema.release == NULL:
        raise released_error("requested_schema")
    if schema.format == NULL:
        raise interface_error("Arrow", "requested_schema.format", None, "a format of the C data interface")
    if schema.n_children < 0:
        raise interface_error("Arrow", "requested_schema.n_children", schema.n_children, "zero or more")
    if schema.n_children > 0 and schema.children == NULL:
        raise interface_error("Arrow", "requested_schema.children", None, f"{schema.n_children} pointers to children")
    text = spelled(schema)
    cdef list children = []
    for k in range(schema.n_children):
        if schema.children[k] == NULL:
            raise interface_error("Arrow", f"requested_schema.children[{k}]", None, "a pointer to a child")
        children.append(described_node(schema.children[k], depth + 1, nodes))
    if schema.dictionary != NULL:
        described_node(schema.dictionary, depth + 1, nodes)
    return (text, children)


cdef str difference(object requested, object own):
    """Describe how a requested type differs from the type of an array, or return None if they are equal.

    The name of a list's items is ignored, as in pyarrow. If the requested schema is a struct that is not nullable (a table),
    the types are not compared, because the consumer casts the columns.
    """
    cdef ArrowSchema* asked = <ArrowSchema*> pointer_in(requested, SCHEMA_NAME, "requested_schema")
    if asked.format[0] == c"+" and asked.format[1] == c"s" and not asked.flags & ARROW_FLAG_NULLABLE:
        return None
    return difference_below(asked, <ArrowSchema*> PyCapsule_GetPointer(own, SCHEMA_NAME),
                            ("requested_schema", "the array's schema"), "")


cdef str difference_below(ArrowSchema* asked, ArrowSchema* given, tuple names, str path):
    """Describe the first difference between two nodes or their children, or return None if the nodes are equal.

    `names` contains the names of the two root nodes in the description, and `path` is the path from the root to the node.
    The caller must have validated both schemas.
    """
    cdef int64_t k
    cdef str found
    if strcmp(asked.format, given.format) != 0:
        return contrast(names, path, f"has format {spelled(asked)!r}", f"has format {spelled(given)!r}")
    if extension_of(asked) != extension_of(given):
        return contrast(names, path, extension_of(asked), extension_of(given))
    if extension_name(asked) == b"arrow.fixed_shape_tensor" and tensor_facts(asked) != tensor_facts(given):
        return contrast(names, path, f"is a tensor of {tensor_facts(asked)}", f"is a tensor of {tensor_facts(given)}")
    if dictionary_of(asked) != dictionary_of(given):
        return contrast(names, path, dictionary_of(asked), dictionary_of(given))
    if asked.dictionary != NULL:
        found = difference_below(asked.dictionary, given.dictionary, names, f"{path}.dictionary")
        if found is not None:
            return found
    if asked.n_children != given.n_children:
        return contrast(names, path, f"has {asked.n_children} children", f"has {given.n_children} children")
    for k in range(asked.n_children):
        found = difference_of_fields(asked.children[k], given.children[k], asked.format[1] == c"s", names,
                                     f"{path}.children[{k}]")
        if found is not None:
            return found
    return None


cdef str contrast(tuple names, str path, str first, str second):
    return f"{names[0]}{path} {first}, and {names[1]}{path} {second}"


cdef dict tensor_facts(ArrowSchema* schema):
    """Return the parameters of ``arrow.fixed_shape_tensor`` in a schema. Omit parameters with the default value."""
    fields = json_of(pairs_of(schema).get(b"ARROW:extension:metadata", b""))
    permutation = list_in(fields, "permutation", int)
    if permutation is not None and permutation == sorted(permutation):
        fields["permutation"] = None
    return {key: value for key, value in fields.items() if value is not None}


cdef str difference_of_fields(ArrowSchema* asked, ArrowSchema* given, bint named, tuple names, str path):
    if named and (asked.name == NULL or strcmp(asked.name, given.name) != 0):
        name = None if asked.name == NULL else asked.name.decode("utf-8", "replace")
        return contrast(names, path, f"is named {name!r}", f"is named {given.name.decode()!r}")
    if (asked.flags ^ given.flags) & ARROW_FLAG_NULLABLE:
        return contrast(names, path, nullability(asked), nullability(given))
    return difference_below(asked, given, names, path)


cdef str nullability(ArrowSchema* schema):
    return "is nullable" if schema.flags & ARROW_FLAG_NULLABLE else "is not nullable"


cdef str spelled(ArrowSchema* schema):
    return schema.format[:min(<Py_ssize_t> strlen(schema.format), 80)].decode("utf-8", "replace")


cdef str extension_of(ArrowSchema* schema):
    name = extension_name(schema)
    return "does not have an extension type" if name is None else f"has extension type {name.decode('utf-8', 'replace')!r}"


cdef str dictionary_of(ArrowSchema* schema):
    if schema.dictionary == NULL:
        return "does not have a dictionary"
    return "has an ordered dictionary" if schema.flags & ARROW_FLAG_DICTIONARY_ORDERED else "has an unordered dictionary"
