"""Export through Arrow's C interfaces, as structs that keep the memory alive until the consumer releases them."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, intptr_t
from libc.string cimport memcpy, memset

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.exceptions cimport drop_reference
from arrayhub._core.cpython.finalizing cimport is_finalizing
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    EXACT_TIMES,
    NOTSWAPPED,
    OTHER_CONTEXT,
    PACKED,
    DLDevice,
    Descriptor,
    get_dtype,
    host_readable,
    kDLCPU,
    kDLCUDA,
    kDLCUDAManaged,
    labels_of,
    reshape,
    shape_tuple,
    size_of,
    stride_tuple,
    transpose,
)
from arrayhub._core.runtime cimport device_name, device_of, host_ready
from arrayhub._core.tree cimport (
    BIT_PACKED,
    CHARACTERS,
    CHUNKS,
    ENDS,
    FIELDS,
    FOREIGN,
    INDICES,
    LISTS,
    NODE_KINDS,
    NUMBERS,
    UNCOUNTED,
    VIEWS,
    VIEW_BYTES,
    WIDTH,
    Tree,
    check_below,
    first_array,
    has,
    is_sliced_with,
    new_chunked,
    same_node,
    visit_arrays,
)
from arrayhub.runtimes cimport cuda

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.errors import PACKED_ELEMENTS, Refusal, needed, reason_of, show, unreadable
from arrayhub.adapters.table import BY_VIA

# ----------------------------------------------------------------------------------------------------------- extension types

cdef bytes metadata_of(bytes name, bytes metadata):
    """Return the schema metadata of an extension type: its name and its metadata."""
    cdef list strings = [b"ARROW:extension:name", name, b"ARROW:extension:metadata", metadata]
    return np.int32(2).tobytes() + b"".join([np.int32(len(s)).tobytes() + s for s in strings])


cdef bytes _BOOL8 = metadata_of(b"arrow.bool8", b"")


cdef Tree tensor_storage(Tree t):
    """Return the storage of ``arrow.fixed_shape_tensor``: one list for each tensor, with the elements in memory order.

    The metadata is replaced if it describes a different shape or order, for example after a copy of a permuted tensor.
    """
    cdef Descriptor a = <Descriptor> t.content
    cdef Py_ssize_t run = 1
    fields = json_of(pairs_in(t.field[1]).get(b"ARROW:extension:metadata", b""))
    cdef list order = memory_order(a)
    permutation = list_in(fields, "permutation", int) or list(range(a.nd_ - 1))
    if sorted(permutation) == list(range(a.nd_ - 1)):
        # The strides of an empty tensor, or of dimensions of length 1, do not determine the order of the dimensions.
        stated = sorted(range(1, a.nd_), key=lambda axis: permutation[axis - 1])
        order = stated if is_compact(a, stated) else order
    if order is None:
        raise Refusal("Arrow", "the rows of the tensor are not compact", call="arrayhub.asnested(x, copy=True)")
    for axis in order:
        run *= a.shape_[axis]
    cdef Tree rows = new_rows(reshape(transpose(a, [0, *order]), (size_of(a),)), t.length, run)
    rows.validity, rows.bit, rows.nulls = t.validity, t.bit, t.nulls
    rows.name = t.name
    if a.dl_dtype_.code == BOOL_CODE:      # booleans of one byte; bit-packed booleans are nodes of another kind
        rows.child_fields = ((None, ARROW_FLAG_NULLABLE, _BOOL8),)
    same = fields.get("shape") == [a.shape_[axis] for axis in order] \
        and permutation == [order.index(axis) for axis in range(1, a.nd_)]
    rows.field = t.field if same else (t.field[0], tensor_metadata(a, order, names_of_dimensions(fields, permutation)))
    return rows


cdef list names_of_dimensions(dict fields, object permutation):
    """Return the dimension names in a tensor's metadata, one for each dimension after the first, or None."""
    names = list_in(fields, "dim_names", str)
    if names is None or type(permutation) is not list or sorted(permutation) != list(range(len(names))):
        return None
    return [names[axis] for axis in permutation]


cdef object with_tensors(object node, tuple field):
    """Return a copy of a node with the storage of each ``arrow.fixed_shape_tensor``, at any depth.

    Return a node without tensors unchanged. `field` is None, or contains the name, flags and metadata that the parent stores
    for the node.
    """
    cdef Tree t, changed
    cdef tuple old
    cdef list children
    cdef Py_ssize_t k
    if numbers_in(node) is not None:
        field = field_of_node(node, field)
        is_tensor = field is not None and extension_name(field[2]) == b"arrow.fixed_shape_tensor"
        return tensor_storage(with_facts(node, field)) if is_tensor else node
    t = <Tree> node
    cdef bint has_content = has(t, LISTS | INDICES)
    if not has_content and not has(t, FIELDS | FOREIGN | CHUNKS):
        return t
    old = (t.content,) if has_content else t.parts
    children = None
    for k in range(len(old)):
        child = with_tensors(old[k], child_field(t, k))
        if child is not old[k]:
            children = list(old) if children is None else children
            children[k] = child
    if children is None:
        return t
    if has(t, CHUNKS):
        return new_chunked(tuple(children))
    changed = same_node(t)
    if has_content:
        changed.content = children[0]
    else:
        changed.parts = tuple(children)
    return changed


cdef list memory_order(Descriptor a):
    """Return the axes after the first, sorted by decreasing stride, or None if the array is not contiguous in this order."""
    cdef list order = sorted(range(1, a.nd_), key=lambda axis: -a.byte_strides_[axis])
    if size_of(a) == 0:
        return list(range(1, a.nd_))
    return order if is_compact(a, order) else None


cdef bint is_compact(Descriptor a, list order):
    """Return whether an array is contiguous in the axis order ``[0, *order]``."""
    return transpose(a, [0, *order]).flags_ & C_CONTIGUOUS != 0


cdef bytes tensor_metadata(Descriptor a, list order, list names=None):
    """Return the schema metadata of a tensor, see `tensor_of`. `names` contains a name for each dimension after the first."""
    import json

    fields = {"shape": [a.shape_[axis] for axis in order]}
    if order != sorted(order):
        fields["permutation"] = [order.index(axis) for axis in range(1, a.nd_)]
    dims = getattr(labels_of(a), "dims", None)
    if names is None and dims is not None and None not in dims[1:]:
        names = list(dims[1:])
    if names is not None and len(names) == len(order):
        fields["dim_names"] = [names[axis - 1] for axis in order]
    return metadata_of(b"arrow.fixed_shape_tensor", json.dumps(fields).encode())


# ------------------------------------------------------------------------------------------------------------------- schemas

cdef bytes letter_of(Descriptor a):
    """Return the Arrow format of the element type of an array. Raise BufferError if Arrow lacks the type."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row != NULL and row.arrow != 0 and a.flags_ & NOTSWAPPED:
        return (&row.arrow)[:1]
    if a.dl_dtype_.code == BOOL_CODE:
        return b"c"
    dtype = get_dtype(a)
    if dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and row != NULL and row.kind == c"V":
        return b"w:%d" % dtype.itemsize
    if dtype in _TIME_FORMATS:
        return _TIME_FORMATS[dtype]
    raise Refusal(
        "Arrow", f"no format for dtype {dtype!r}",
        "integers, float16 to float64, bool, times in s, ms, us and ns, and raw bytes, in native byte order",
    )


cpdef str obstacle_of(Descriptor array, bint extension):
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


cdef int requested_form(object node, ArrowSchema* schema) except -1:
    """Return the extension types of a dense array that a request names, or whose storage it names. pyarrow casts the rest."""
    cdef Descriptor a
    cdef int form = 0
    if isinstance(node, Tree):
        return 0
    a = <Descriptor> node
    if extension_name(raw_metadata(schema)) == b"arrow.fixed_shape_tensor" or (a.nd_ > 2 and has_flat_storage(schema)):
        form = TENSOR
    while schema.n_children == 1:
        schema = schema.children[0]
    if a.dl_dtype_.code == BOOL_CODE and (schema.format[0] == c"c" or extension_name(raw_metadata(schema)) == b"arrow.bool8"):
        form |= BOOL8
    return form


cdef bint is_for_host(Descriptor a) noexcept:
    """Return whether an array is exported as host memory: memory that the host can read, except CUDA's managed memory."""
    return host_readable(a) and a.device_.device_type != kDLCUDAManaged


cdef inline bint is_packed(Descriptor a, bint as_bytes) noexcept:
    """Return whether the elements are booleans that are exported as bits. Booleans on a device stay bytes."""
    return a.dl_dtype_.code == BOOL_CODE and not as_bytes and is_for_host(a)


cdef inline Descriptor numbers_in(object node):
    """Return the array of a dense node or of a node of numbers, or None for other nodes."""
    if not isinstance(node, Tree):
        return <Descriptor> node
    return <Descriptor> (<Tree> node).content if has(<Tree> node, NUMBERS) else None


cdef bint has_bytes(object node, tuple field):
    """Return whether the booleans of a node have the type ``arrow.bool8``.

    `field` is None, or contains the name, flags and metadata that the parent stores for the node.
    """
    cdef Descriptor a = numbers_in(node)
    if a is None or a.dl_dtype_.code != BOOL_CODE:
        return False
    field = field_of_node(node, field)
    return field is not None and extension_name(field[2]) == b"arrow.bool8"


cdef bint packs(object node, tuple field):
    cdef Tree t
    cdef Descriptor a = numbers_in(node)
    if a is not None:
        return is_packed(a, has_bytes(node, field))
    t = <Tree> node
    if t.content is not None and packs(t.content, child_field(t, 0)):
        return True
    for k in range(0 if t.parts is None else len(t.parts)):
        if packs(t.parts[k], child_field(t, k)):
            return True
    return False


def packs_booleans(node):
    """Return whether an export of a node copies booleans to bits. A request for ``arrow.bool8`` avoids this copy."""
    return isinstance(node, (Descriptor, Tree)) and packs(node, None)


cdef object exportable(object node, int form):
    """Return `node` with each tensor replaced by its storage. Raise BufferError if Arrow cannot represent the node.

    `form` contains the extension types that the caller requested. A dense array becomes a node with these types.
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
        raise Refusal("Arrow", why)
    return with_extensions(compact(a, form), form) if form else a


cdef object with_extensions(Descriptor a, int form):
    """Return a node that stores a compact array as the extension types in `form`, or the array if they do not apply."""
    cdef Tree t
    cdef bint as_bytes = form & BOOL8 and a.dl_dtype_.code == BOOL_CODE
    if form & TENSOR and a.nd_ > 1:
        t = tensor_storage(with_facts(a, (None, ARROW_FLAG_NULLABLE, tensor_metadata(a, memory_order(a)))))
        t.child_fields = t.child_fields if as_bytes else None
        return t
    return with_facts(a, (None, ARROW_FLAG_NULLABLE, _BOOL8)) if as_bytes else a


def check_node(Tree node not None, bint copied):
    """Raise the error of the export of a node, or of its copy without gaps, from its types and strides."""
    schema_capsule(with_tensors(node, None))
    if not copied:
        exportable(node, 0)


cdef int check_chunks(Tree t) except -1:
    """Raise BufferError if the chunks of a node differ in their Arrow type, because a stream has one schema."""
    cdef Py_ssize_t k
    if not has(t, CHUNKS) or t.checked:
        return 0
    first = facts_of_node(t.parts[0])
    for k in range(1, len(t.parts)):
        if facts_of_node(t.parts[k]) != first:
            raise Refusal("Arrow", f"chunks 0 and {k} have different types; accepted: one type. Pass copy=True, which"
                          " concatenates the chunks, or use x.chunks one by one")
    t.checked = True
    return 0


cdef tuple facts_of_node(object node):
    """Return `type_facts` of the schema of a node."""
    capsule = schema_capsule(node)
    return type_facts(<ArrowSchema*> PyCapsule_GetPointer(capsule, SCHEMA_NAME))


cdef tuple type_facts(ArrowSchema* schema):
    """Return what defines the Arrow type in a schema of this module. The names of list items do not, as in pyarrow."""
    cdef int64_t k
    cdef ArrowSchema* child
    cdef list children = []
    cdef bint has_names = schema.format[0] == c"+" and schema.format[1] == c"s"
    cdef dict pairs = pairs_in(raw_metadata(schema))
    for k in range(schema.n_children):
        child = schema.children[k]
        children.append((<bytes> child.name if has_names else None, child.flags & ARROW_FLAG_NULLABLE, type_facts(child)))
    return (
        <bytes> schema.format,
        schema.flags & ARROW_FLAG_DICTIONARY_ORDERED,
        pairs.get(b"ARROW:extension:name"),
        pairs.get(b"ARROW:extension:metadata"),
        None if schema.dictionary == NULL else type_facts(schema.dictionary),
        children,
    )


cdef int refuse_gaps(Descriptor a, void* argument) except -1:
    """Raise BufferError if Arrow cannot represent the layout of an array of a node. See `sharing_obstacle` for booleans.

    Packed (sub-byte) elements of DLPack are not exported to Arrow.
    """
    if a.flags_ & PACKED or a.byte_strides_ == NULL:
        raise Refusal("Arrow", PACKED_ELEMENTS)
    return 0 if is_packed(a, False) else refuse_strides(a)


cdef int refuse_strides(Descriptor a) except -1:
    if not a.flags_ & C_CONTIGUOUS:
        reason = f"byte strides {stride_tuple(a)} with shape {shape_tuple(a)} of a nested array are not compact"
        raise Refusal("Arrow", reason, call="arrayhub.asnested(x, copy=True)")
    return 0


# ------------------------------------------------------------------------------------------------------------- the structs


cdef void _release_schema(ArrowSchema* schema) noexcept nogil:
    """Release a schema without the GIL. The strings, children and dictionary of the schema are in one allocation."""
    if schema == NULL or schema.release == NULL:
        return
    release_below(schema)
    PyMem_RawFree(schema.private_data)
    schema.release = NULL


cdef int new_schema(ArrowSchema* out, bytes text, tuple field, int64_t children=0, bint dictionary=False) except -1:
    """Allocate the strings, children and dictionary of `out` together, and set its release function.

    `field` contains the name, flags and metadata of the schema.
    """
    cdef bytes name = <bytes> field[0], metadata = <bytes> field[2]
    cdef size_t structs = size_below(children, dictionary, sizeof(ArrowSchema))
    cdef Py_ssize_t behind = 0 if metadata is None else len(metadata)
    cdef char* space = <char*> PyMem_RawCalloc(1, structs + behind + len(text) + len(name) + 2)
    if space == NULL:
        raise MemoryError
    cdef char* strings = place_below(out, space, children, dictionary)
    out.metadata = NULL
    if metadata is not None:
        memcpy(strings, <const char*> metadata, behind)
        out.metadata = strings
        strings += behind
    memcpy(strings, <const char*> text, len(text) + 1)
    out.format = strings
    strings += len(text) + 1
    memcpy(strings, <const char*> name, len(name) + 1)
    out.name = strings
    out.flags = <int64_t> field[1]
    out.private_data = space
    out.release = _release_schema
    return 0


cdef bytes _ITEM = b"item"        # conventional name of a list's child
cdef tuple _ITEM_FIELD = (_ITEM, ARROW_FLAG_NULLABLE, None)
cdef tuple _ROOT_FIELD = (b"", ARROW_FLAG_NULLABLE, None)


cdef tuple complete_field(tuple field, bytes name):
    """Return the name, flags and metadata of a node. `field` contains those that differ from `name` and the defaults."""
    if field is None:
        return _ITEM_FIELD if name is _ITEM else (name, ARROW_FLAG_NULLABLE, None)
    return field if field[0] is not None else (name, field[1], field[2])


cdef int fill_schema(ArrowSchema* out, object node, bytes name, tuple field=None) except -1:
    """Fill in the schema of a node. `field` contains the name, flags and metadata that the parent stores for the node."""
    cdef Tree t = <Tree> node if isinstance(node, Tree) else None
    cdef Descriptor a = numbers_in(node)
    cdef Py_ssize_t k, children
    if t is not None and has(t, CHUNKS):
        return fill_schema(out, t.parts[0], name, field)
    field = complete_field(field_of_node(node, field), name)
    if a is not None:
        return fill_dense_schema(out, a, None if t is None else t.meaning, field)
    if has(t, INDICES):
        new_schema(out, letter_of(t.indices), field, 0, True)
        if t.meaning is not None:
            out.flags |= ARROW_FLAG_DICTIONARY_ORDERED
        return fill_schema(out.dictionary, t.content, b"", child_field(t, 0))
    children = len(t.parts) if has(t, FIELDS | FOREIGN) else NODE_KINDS[t.kind].children
    new_schema(out, format_of(t), field, children)
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


cdef int fill_dense_schema(ArrowSchema* out, Descriptor a, str meaning, tuple field) except -1:
    """Fill in the schema of numbers: fixed-size lists for each dimension after the first.

    The extension type ``arrow.bool8`` belongs to the innermost elements, not to the lists.
    """
    cdef bint as_bytes = a.dl_dtype_.code == BOOL_CODE and extension_name(field[2]) == b"arrow.bool8"
    cdef int axis
    if as_bytes and a.nd_ > 1:
        field = (field[0], field[1], None)
    for axis in range(1, a.nd_):
        new_schema(out, b"+w:%d" % a.shape_[axis], field, 1)
        out = out.children[0]
        field = _ITEM_FIELD
    if meaning is not None:
        return new_schema(out, meaning.encode(), field)
    if is_packed(a, as_bytes):
        return new_schema(out, b"b", field)
    if a.dl_dtype_.code == BOOL_CODE and extension_name(field[2]) != b"arrow.bool8":
        field = (field[0], field[1], _BOOL8)
    return new_schema(out, letter_of(a), field)


cdef int fill_root_schema(ArrowSchema* out, object node) except -1:
    if not isinstance(node, Tree):
        return fill_dense_schema(out, <Descriptor> node, None, _ROOT_FIELD)
    name = (<Tree> (<Tree> node).parts[0]).name if has(<Tree> node, CHUNKS) else (<Tree> node).name
    return fill_schema(out, node, b"" if name is None else str(name).encode("utf-8", "replace"))


cdef object schema_capsule(object node):
    cdef void* held
    capsule = new_capsule(sizeof(ArrowSchema), SCHEMA_NAME, &held)
    fill_root_schema(<ArrowSchema*> held, node)
    return capsule


# -------------------------------------------------------------------------------------------------------------------- arrays

cdef extern from *:
    """
    /* The smallest int64 encodes NumPy's NaT ("not a time"). */
    static Py_ssize_t arrayhub_count_nat(const char *data, Py_ssize_t n) {
        Py_ssize_t count = 0;
        for (Py_ssize_t k = 0; k < n; k++) {
            long long value;
            memcpy(&value, data + 8 * k, 8);
            count += value == LLONG_MIN;
        }
        return count;
    }
    """
    Py_ssize_t arrayhub_count_nat(const char* data, Py_ssize_t n) noexcept nogil


cdef int fill_array(ArrowArray* out, object node, Py_ssize_t lead, tuple field=None) except -1:
    """Fill `out` with a node, preceded by `lead` elements that the offset of the parent skips.

    Numbers are exported as a primitive array inside one fixed-size list for each dimension after the first. Booleans are
    exported as bits if `is_packed` returns True. `field` contains the name, flags and metadata that the parent stores for the
    node, as in `fill_schema`.
    """
    cdef Tree t = <Tree> node if isinstance(node, Tree) else None
    cdef Descriptor a = numbers_in(node)
    cdef bint as_bytes, innermost
    cdef int axis
    if a is None:
        return fill_tree(out, t, lead)
    for axis in range(a.nd_):
        innermost = axis == a.nd_ - 1
        new_body(out, node, 2 if innermost else 1, 0 if innermost else 1, False)
        out.length = lead + layout.count(axis + 1, a.shape_)
        out.null_count = 0
        if axis == 0 and t is not None and t.validity is not None and out.length > 0:
            set_bitmap(out, t.validity, t.bit, lead, t.nulls)
        lead += out.offset
        if not innermost:
            lead *= a.shape_[axis + 1]
            out = out.children[0]
    as_bytes = a.dl_dtype_.code == BOOL_CODE and has_bytes(node, field)
    if as_bytes:
        refuse_strides(a)
    if is_packed(a, as_bytes):
        return pack_bits(out, a, lead)
    out.buffers[1] = back_by(a, lead)
    return mark_missing_times(out, a, lead)


cdef int pack_bits(ArrowArray* out, Descriptor a, Py_ssize_t lead) except -1:
    """Set the values buffer to a new bitmap that contains `lead` zeros followed by the booleans of `a` in C order."""
    values = np.asarray(a).ravel()
    if lead:
        values = np.concatenate([np.zeros(lead, bool), values])
    return set_bits(out, 1, values)


cdef int set_bits(ArrowArray* out, int buffer, object values) except -1:
    """Set a buffer to new bits, one for each of `values`."""
    bits = np.packbits(values, bitorder="little")
    hold_also(<Body*> out.private_data, bits)
    out.buffers[buffer] = cnp.PyArray_DATA(<cnp.ndarray> bits)
    return 0


cdef int mark_missing_times(ArrowArray* out, Descriptor a, Py_ssize_t lead) except -1:
    """Mark NumPy's NaT as missing in the bitmap.

    NumPy encodes NaT as the smallest int64, which is a valid time in Arrow. Times imported from Arrow are therefore not
    scanned.
    """
    cdef Py_ssize_t count, n = size_of(a)
    if n == 0 or not may_be_nat(a):
        return 0
    if not host_readable(a):
        raise Refusal("Arrow", nat_obstacle(a))
    count = arrayhub_count_nat(a.data_, n)
    if count == 0:
        return 0
    valid = np.ones(lead + n, bool)
    valid[lead:] = ~np.isnat(np.asarray(a).ravel())
    if out.buffers[0] != NULL:
        # including the bits before the offset
        old = np.asarray(<const unsigned char[: (out.offset + out.length + 7) >> 3]> out.buffers[0])
        valid &= np.unpackbits(old, bitorder="little")[: lead + n].astype(bool)
        count = UNCOUNTED
    out.null_count = count
    return set_bits(out, 0, valid)


cdef int hold_also(Body* body, object more) except -1:
    """Keep the object `more` alive until `body` is freed."""
    pair = (<object> body.owner, more)
    Py_INCREF(pair)
    Py_DECREF(<object> body.owner)
    body.owner = <PyObject*> pair
    return 0


cdef int set_bitmap(ArrowArray* out, Descriptor validity, Py_ssize_t bit, Py_ssize_t lead, Py_ssize_t nulls) except -1:
    """Set the bitmap of an array, and the array's offset."""
    out.offset = offset_of_bit(bit, lead)
    out.null_count = nulls if lead == 0 else UNCOUNTED
    out.buffers[0] = validity.data_ - ((out.offset + lead - bit) >> 3)
    return 0


cdef Py_ssize_t offset_of_bit(Py_ssize_t bit, Py_ssize_t lead) noexcept:
    """Return the offset of an array whose bits start at a byte boundary: `bit` before the first element, without `lead`.

    An ArrowArray has one offset for all its buffers, so every buffer must start `offset` elements before the first element.
    The memory before the first element is valid, because only slices of longer arrays have an offset.
    """
    return bit - lead if bit >= lead else (bit - lead) & 7


cdef int fill_tree(ArrowArray* out, Tree t, Py_ssize_t lead) except -1:
    cdef Py_ssize_t k, start, count = 0 if t.parts is None else len(t.parts)
    new_body(out, t, buffers_in(t, count), count if has(t, FIELDS | FOREIGN) else NODE_KINDS[t.kind].children,
             has(t, INDICES))
    out.length = t.length + lead
    out.null_count = 0
    if out.length == 0:      # pyarrow rejects an offset into the buffers of an empty array
        pass
    elif t.validity is not None and t.bit and has_runs(t):
        set_aligned_bitmap(out, t)
    elif t.validity is not None:
        set_bitmap(out, t.validity, t.bit, lead, t.nulls)
    elif has(t, BIT_PACKED):
        out.offset = offset_of_bit(t.bit, lead)
    start = out.offset + lead        # elements in each buffer before the first element of the node
    if has(t, ENDS):
        out.buffers[1] = back_by(t.offsets, start)
    if has(t, LISTS):
        fill_array(out.children[0], t.content, start * t.width if has(t, WIDTH) else 0, child_field(t, 0))
    elif has(t, VIEWS):
        fill_view_buffers(out, t, start)
    elif has(t, CHARACTERS):
        out.buffers[2] = (<Descriptor> t.content).data_
    elif has(t, FIELDS | FOREIGN):
        if has(t, FOREIGN):
            fill_opaque(out, t, start)
        for k in range(count):
            fill_array(out.children[k], t.parts[k], start if is_sliced_with(t) else 0, child_field(t, k))
    elif has(t, INDICES):
        out.buffers[1] = back_by(t.indices, start)
        fill_array(out.dictionary, t.content, 0, child_field(t, 0))
    elif has(t, BIT_PACKED):
        out.buffers[1] = (<Descriptor> t.content).data_ - ((start - t.bit) >> 3 if out.length else 0)
    return 0


cdef int fill_opaque(ArrowArray* out, Tree t, Py_ssize_t start) except -1:
    """Set the buffers of an opaque node after its bitmap, the offset of runs, and the number of elements of type null."""
    cdef Py_ssize_t k, first = out.n_buffers - len(t.buffers)
    for k in range(len(t.buffers)):
        out.buffers[first + k] = back_by(<Descriptor> t.buffers[k], start)
    if t.meaning == "+r":
        out.offset = t.skip if t.length else 0
    elif t.meaning == "n":
        out.null_count = out.length
    return 0


cdef bint has_runs(object node):
    """Return whether a node contains a run-end encoded array, to which an offset cannot add leading elements."""
    cdef Tree t
    if not isinstance(node, Tree):
        return False
    t = <Tree> node
    if (has(t, FOREIGN) and t.meaning == "+r") or has_runs(t.content):
        return True
    for part in t.parts or ():
        if has_runs(part):
            return True
    return False


cdef int set_aligned_bitmap(ArrowArray* out, Tree t) except -1:
    """Set the bitmap to a copy that starts at a byte boundary, so that the array does not need an offset."""
    out.null_count = t.nulls
    return set_bits(out, 0, np.unpackbits(np.asarray(t.validity), bitorder="little")[t.bit : t.bit + t.length])


cdef inline int buffers_in(Tree t, Py_ssize_t count) except -1:
    """Return the number of buffers of a node with `count` parts."""
    if has(t, VIEWS):
        return 3 + <int> count
    return buffers_of(find_format(t.meaning.encode())) if has(t, FOREIGN) else NODE_KINDS[t.kind].buffers


cdef inline const void* back_by(Descriptor a, Py_ssize_t elements) noexcept:
    return NULL if a.data_ == NULL else a.data_ - elements * a.itemsize_


cdef int fill_view_buffers(ArrowArray* out, Tree t, Py_ssize_t start) except -1:
    """Set the buffers of a view array: the views, the characters, and the sizes of the character buffers."""
    cdef Py_ssize_t k, count = len(t.parts)
    sizes = np.array([(<Descriptor> part).shape_[0] for part in t.parts], np.int64)
    out.buffers[1] = back_by(<Descriptor> t.content, start * VIEW_BYTES)
    for k in range(count):
        out.buffers[2 + k] = (<Descriptor> t.parts[k]).data_
    hold_also(<Body*> out.private_data, sizes)
    out.buffers[2 + count] = cnp.PyArray_DATA(<cnp.ndarray> sizes)
    return 0


cdef int ready_for_host(object node) except -1:
    """Wait until the host can read every array of a node. Validate offsets and indices, because most consumers do not."""
    visit_arrays(node, wait_for_host, NULL)
    return check_below(node)


cdef int wait_for_host(Descriptor a, void* argument) except -1:
    if not host_readable(a):
        raise BufferError(unreadable("Arrow", device_name(a), call="use __arrow_c_device_array__, or call x.to_host()"))
    return host_ready(a)


# ------------------------------------------------------------------------------------------------------------------- devices

cdef inline bint has_events(DLDevice device) noexcept:
    return device.device_type == kDLCUDA or device.device_type == kDLCUDAManaged


cdef DLDevice exported_device(Descriptor a) except *:
    """Return the device to export, or the host if `a` is None.

    Pinned memory, shared USM and host USM are exported as host memory. If such USM were exported as oneAPI memory, pyarrow
    could not import it: pyarrow tries ``__arrow_c_device_array__`` first, and rejects oneAPI devices ("Device type 14is not
    registered").
    """
    return DLDevice(kDLCPU, 0) if a is None or is_for_host(a) else device_of(a)


cdef DLDevice device_of_node(object node) except *:
    """Return the device of the arrays of a node, or the host if the node does not have arrays."""
    cdef Descriptor a = first_array(node)
    return DLDevice(kDLCPU, 0) if a is None else device_of(a)


cdef int ready_on_device(object node) except -1:
    """Check that all arrays of a node are on one device, and validate host-readable offsets.

    Wait for pending work, except on CUDA.
    """
    cdef DLDevice device = exported_device(first_array(node))
    visit_arrays(node, check_device, &device)
    if not has_events(device):
        visit_arrays(node, wait_on_device, NULL)
    return check_below(node)


cdef int fill_device_array(ArrowDeviceArray* out, object node) except -1:
    """Fill `out` with the arrays of a node, for which the caller must have called `ready_on_device`.

    After an error, the caller must release ``out.array`` unless ``out.array.release`` is NULL.
    """
    cdef DLDevice device = exported_device(first_array(node))
    memset(out, 0, sizeof(ArrowDeviceArray))
    fill_array(&out.array, node, 0)
    out.device_type = device.device_type
    out.device_id = -1 if device.device_type == kDLCPU else device.device_id
    return note_event(out, node, device.device_id) if has_events(device) else 0


cdef int check_device(Descriptor a, void* argument) except -1:
    cdef DLDevice device = (<DLDevice*> argument)[0], other = exported_device(a)
    if other.device_type != device.device_type or other.device_id != device.device_id:
        raise Refusal(
            "Arrow", f"the arrays of the node are on several devices, {TYPE_NAMES[device.device_type]}:{device.device_id} and"
            f" {TYPE_NAMES[other.device_type]}:{other.device_id}; accepted: one. Call x.to_device(device) first"
        )
    if a.flags_ & OTHER_CONTEXT and other.device_type != kDLCPU:
        raise Refusal("Arrow", "the memory belongs to a SYCL context other than the default context of its device, which the"
                      " device interface cannot represent; call arrayhub.to_host(x)")
    return 0


cdef int wait_on_device(Descriptor a, void* argument) except -1:
    return host_ready(a)


cdef int note_event(ArrowDeviceArray* array, object node, int device) except -1:
    """Record an event after the pending work on the arrays of a node. Do nothing if no work is pending."""
    cdef Body* body = <Body*> array.array.private_data
    cdef intptr_t stream
    cdef bint pending = False
    visit_arrays(node, has_pending_work, &pending)
    if not pending or not cuda.has_device():
        return 0
    stream = cuda.waiting_stream(device)
    visit_arrays(node, wait_in_order, &stream)
    body.event = cuda.event_on(stream, device)
    array.sync_event = &body.event
    return 0


cdef int has_pending_work(Descriptor a, void* pending) except -1:
    if a.stream_ != NULL or a.producer_ is not None:
        (<bint*> pending)[0] = True
    return 0


cdef int wait_in_order(Descriptor a, void* stream) except -1:
    return cuda.consumer_ready(a, (<intptr_t*> stream)[0])


# ------------------------------------------------------------------------------------------------------------------- streams

cdef extern from "Python.h":
    const char* PyBytes_AS_STRING(PyObject* words) noexcept nogil

cdef extern from "<errno.h>" nogil:
    int EINVAL
    int ENOMEM


cdef struct Exported:          # private data of an exported stream
    PyObject* node
    PyObject* words            # bytes that `last` may point to, or NULL
    const char* last           # message of the last error, or NULL if no error occurred
    Py_ssize_t next            # index of the chunk that the next call exports


cdef int record_error(Exported* exported, object error) noexcept:
    """Return an errno for an exception, and store the exception's message for ``get_last_error``."""
    if isinstance(error, MemoryError):       # formatting the exception's message would allocate memory
        exported.last = b"MemoryError: not enough memory for the export"
        return ENOMEM
    exported.last = b"the export failed, and its message could not be encoded"
    try:
        words = (str(error) or type(error).__name__).encode("utf-8", "replace")
        Py_INCREF(words)
        Py_XDECREF(exported.words)
        exported.words = <PyObject*> words
        exported.last = PyBytes_AS_STRING(exported.words)
    except BaseException:
        pass
    return EINVAL


cdef int export_schema(Exported* exported, ArrowSchema* out) noexcept with gil:
    cdef int code
    out.release = NULL
    try:
        fill_root_schema(out, <object> exported.node)
        return 0
    except BaseException as error:
        code = record_error(exported, error)
    drop_struct(out)
    return code


cdef int _stream_schema(Stream* stream, ArrowSchema* out) noexcept nogil:
    return export_schema(<Exported*> stream.private_data, out)


cdef int export_next(Exported* exported, ArrowArray* out, ArrowDeviceArray* device) noexcept with gil:
    """Export the next chunk, or signal the end of the stream. `device` is NULL or contains `out`."""
    cdef int code
    cdef object chunk = <object> exported.node
    cdef bint has_chunks = isinstance(chunk, Tree) and has(<Tree> chunk, CHUNKS)
    out.release = NULL
    if exported.next == (len((<Tree> chunk).parts) if has_chunks else 1):
        return 0
    try:
        chunk = (<Tree> chunk).parts[exported.next] if has_chunks else chunk
        if device == NULL:
            ready_for_host(chunk)
            fill_array(out, chunk, 0)
        else:
            ready_on_device(chunk)
            fill_device_array(device, chunk)
        exported.next += 1
        return 0
    except BaseException as error:
        code = record_error(exported, error)
    drop_struct(out)
    return code


cdef int _stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept nogil:
    return export_next(<Exported*> stream.private_data, out, NULL)


cdef int _device_stream_next(ArrowDeviceArrayStream* stream, ArrowDeviceArray* out) noexcept nogil:
    return export_next(<Exported*> stream.private_data, &out.array, out)


cdef const char* _stream_error(Stream* stream) noexcept nogil:
    return (<Exported*> stream.private_data).last


cdef void _release_stream(Stream* stream) noexcept nogil:
    cdef Exported* exported
    if stream == NULL or stream.release == NULL:
        return
    stream.release = NULL
    if is_finalizing():
        return
    with gil:
        exported = <Exported*> stream.private_data
        drop_reference(exported.node)
        drop_reference(exported.words)
        PyMem_RawFree(exported)


cdef int fill_stream(Stream* stream, object node) except -1:
    cdef Exported* exported = <Exported*> PyMem_RawCalloc(1, sizeof(Exported))
    if exported == NULL:
        raise MemoryError
    Py_INCREF(node)
    exported.node = <PyObject*> node
    stream.private_data = exported
    stream.release = _release_stream
    stream.get_schema = _stream_schema
    if Stream is ArrowArrayStream:
        stream.get_next = _stream_next
    else:
        stream.get_next = _device_stream_next
        stream.device_type = exported_device(first_array(node)).device_type
    stream.get_last_error = _stream_error
    return 0


# ------------------------------------------------------------------------------------------------------------------- methods

# In the order of the enum in arrow.pxd.
cdef tuple _ATTRIBUTES = ("__arrow_c_schema__", *BY_VIA["arrow"].attributes)


cdef object emit(object node, int what, int form):
    """Return the capsule, or the schema and array capsules, of an export method.

    `form` contains the extension types of a dense array. The host waits for pending work, except on CUDA, where arrays of the
    device interfaces contain an event. For SYCL, this function waits instead of exporting the ``sycl::event*`` that the
    interface defines. `exported_device` determines which memory is exported as host memory.
    """
    return export(exportable(node, form), what)


cdef object export(object node, int what):
    """Return the result of `emit` for a node from `exportable`."""
    cdef void* held
    if what == SCHEMA:
        return schema_capsule(node)
    node = compact(node, 0)
    # Must precede the filling of arrays, which scans times for NaT.
    ready_for_host(node) if what == ARRAY or what == STREAM else ready_on_device(node)
    if what == STREAM:
        capsule = new_capsule(sizeof(ArrowArrayStream), STREAM_NAME, &held)
        fill_stream(<ArrowArrayStream*> held, node)
        return capsule
    if what == DEVICE_STREAM:
        capsule = new_capsule(sizeof(ArrowDeviceArrayStream), DEVICE_STREAM_NAME, &held)
        fill_stream(<ArrowDeviceArrayStream*> held, node)
        return capsule
    schema = schema_capsule(node)
    if what == ARRAY:
        capsule = new_capsule(sizeof(ArrowArray), ARRAY_NAME, &held)
        fill_array(<ArrowArray*> held, node, 0)
    else:
        capsule = new_capsule(sizeof(ArrowDeviceArray), DEVICE_NAME, &held)
        fill_device_array(<ArrowDeviceArray*> held, node)
    return schema, capsule


def emit_with_extensions(Descriptor a not None):
    """Return the schema and device array capsules of a dense array, with its extension types."""
    return emit(a, DEVICE_ARRAY, TENSOR | BOOL8)


cdef object emit_requested(object node, int what, object requested):
    """Export a node with a requested type, by pyarrow's cast.

    The specification permits a producer to ignore a request. This function ignores it without pyarrow, for memory on devices,
    for streams of device arrays, and for tables (structs that are not nullable), whose columns the consumer casts.
    """
    cdef ArrowSchema* schema = <ArrowSchema*> pointer_in(requested, SCHEMA_NAME, "requested_schema")
    validate_schema(schema, "requested_schema")
    node = exportable(node, requested_form(node, schema))
    cdef bint is_table = schema.format[0] == c"+" and schema.format[1] == c"s" and not schema.flags & ARROW_FLAG_NULLABLE
    exported = export(node, what)
    if is_table or what == DEVICE_STREAM or exported_device(first_array(node)).device_type != kDLCPU:
        return exported
    try:
        pyarrow = needed("pyarrow", "to cast to a requested type")
    except ImportError:
        return exported
    method = _ATTRIBUTES[what]
    own = pyarrow.field(as_producer("__arrow_c_schema__", schema_capsule(node))).type
    wanted = pyarrow.field(as_producer("__arrow_c_schema__", requested)).type
    if own.equals(wanted):
        return exported
    column = (pyarrow.chunked_array if what == STREAM else pyarrow.array)(as_producer(method, exported))
    try:
        return getattr(column.cast(wanted), method)()
    except pyarrow.ArrowException as error:
        raise Refusal(method, f"pyarrow does not cast {own} to the requested type {wanted}") from error


cdef object as_producer(str method, object exported):
    """Return an object whose method `method` returns `exported`, because pyarrow imports objects, not capsules."""
    return type("Producer", (), {method: lambda self, requested_schema=None: exported})()


cdef int check_keywords(int what, dict keywords) except -1:
    for name, value in keywords.items():
        if what != DEVICE_ARRAY and what != DEVICE_STREAM:
            raise TypeError(f"{_ATTRIBUTES[what]}: unknown keyword {name}; accepted: requested_schema")
        if value is not None:
            raise NotImplementedError(f"{_ATTRIBUTES[what]}: keyword {name} is {show(value)}; accepted: None. Omit the keyword")
    return 0


@cython.final
cdef class Export:
    """Bound method of an Arrow interface, created by `bind_export` on access."""
    cdef object node
    cdef int what

    def __init__(self):
        raise TypeError("cannot create 'Export' instances directly; use x.__arrow_c_array__")

    def __call__(self, requested_schema=None, **keywords):
        if self.node is None:
            raise TypeError("Export: the object was created by __new__ without an array; use x.__arrow_c_array__")
        if keywords:
            check_keywords(self.what, keywords)
        if requested_schema is None:
            return emit(self.node, self.what, 0)
        if self.what == SCHEMA:
            raise TypeError("__arrow_c_schema__ takes no arguments")
        return emit_requested(self.node, self.what, requested_schema)

    def __repr__(self):
        return f"<{_ATTRIBUTES[self.what]} of a {type(self.node).__name__}>"


cdef object bind_export(object node, int what):
    """Return an export method. Raise AttributeError if the method cannot export the array's memory or type."""
    cdef Export export
    if not isinstance(node, Tree):
        why = export_obstacle(<Descriptor> node)
        if why is not None:
            raise AttributeError(f"{_ATTRIBUTES[what]}: {why}")
    elif has(<Tree> node, CHUNKS) and (what == ARRAY or what == DEVICE_ARRAY):
        raise AttributeError(f"{_ATTRIBUTES[what]}: the array has several chunks; use __arrow_c_stream__, or call"
                             " arrayhub.asnested(x, copy=True)")
    cdef Descriptor first = first_array(node)
    if (what == ARRAY or what == STREAM) and first is not None and not host_readable(first):
        other = _ATTRIBUTES[DEVICE_ARRAY if what == ARRAY else DEVICE_STREAM]
        raise AttributeError(unreadable(_ATTRIBUTES[what], device_name(first), call=f"use {other}, or call x.to_host()"))
    export = Export.__new__(Export)
    export.node = node
    export.what = what
    return export
