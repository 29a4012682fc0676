"""Export of types as Arrow schemas."""

cimport numpy as cnp
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    EXACT_TIMES,
    NOTSWAPPED,
    PACKED,
    Descriptor,
    get_dtype,
    host_readable,
    kDLCUDAManaged,
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
    NODE_KINDS,
    NUMBERS,
    WIDTH,
    Tree,
    has,
    visit_arrays,
)

from arrayhub._core.errors import PACKED_ELEMENTS, Refusal, reason_of

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
    if dtype in _TIME_FORMATS:
        return _TIME_FORMATS[dtype]
    raise Refusal(
        "Arrow", f"no format for dtype {dtype!r}",
        "integers, float16 to float64, bool, times in s, ms, us and ns, and raw bytes, in native byte order",
    )


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


cdef int requested_form(object node, ArrowSchema* schema) except -1:
    """Return the extension types of a dense array that a request names, or whose storage it names. pyarrow casts the rest."""
    cdef Descriptor a
    cdef int form = 0
    if isinstance(node, Tree):
        return 0
    a = <Descriptor> node
    if extension_name(schema) == b"arrow.fixed_shape_tensor" or (a.nd_ > 2 and has_flat_storage(schema)):
        form = TENSOR
    while schema.n_children == 1:
        schema = schema.children[0]
    if a.dl_dtype_.code == BOOL_CODE and (schema.format[0] == c"c" or extension_name(schema) == b"arrow.bool8"):
        form |= BOOL8
    return form


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
    field = field_of_node(node, field)
    if field is None:
        return False
    array = (<Tree> node).content if isinstance(node, Tree) and has(<Tree> node, NUMBERS) else node
    if not isinstance(array, Descriptor) or (<Descriptor> array).dl_dtype_.code != BOOL_CODE:
        return False
    return name_in(field[2]) == b"arrow.bool8"


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
        raise Refusal("Arrow", f"{why}")
    return with_extensions(compact(a, form), form) if form else a


cdef object with_extensions(Descriptor a, int form):
    """Return a node that stores a compact array as the extension types in `form`, or the array if they do not apply."""
    cdef Tree t
    cdef int axis
    cdef tuple item = (None, ARROW_FLAG_NULLABLE, _BOOL8)
    cdef bint as_bytes = form & BOOL8 and a.dl_dtype_.code == BOOL_CODE
    if form & TENSOR and a.nd_ > 1:
        t = tensor_storage(with_facts(a, (None, ARROW_FLAG_NULLABLE, tensor_metadata(a, memory_order(a)))))
        t.child_fields = t.child_fields if as_bytes else None
        return t
    if not as_bytes:
        return a
    if a.nd_ == 1:
        return with_facts(a, item)
    rows = reshape(a, (size_of(a),))
    for axis in range(a.nd_ - 1, 0, -1):
        t = new_rows(rows, layout.count(axis, a.shape_), a.shape_[axis])
        t.child_fields = (item,) if axis == a.nd_ - 1 else None
        rows = t
    return rows


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
    name = extension_name(schema)
    for k in range(schema.n_children):
        child = schema.children[k]
        children.append((<bytes> child.name if has_names else None, child.flags & ARROW_FLAG_NULLABLE, type_facts(child)))
    return (
        <bytes> schema.format,
        schema.flags & ARROW_FLAG_DICTIONARY_ORDERED,
        name,
        tensor_facts(schema) if name == b"arrow.fixed_shape_tensor" else None,
        None if schema.dictionary == NULL else type_facts(schema.dictionary),
        children,
    )


cdef dict tensor_facts(ArrowSchema* schema):
    """Return the parameters of ``arrow.fixed_shape_tensor`` in a schema. Omit parameters with the default value."""
    fields = json_of(pairs_of(schema).get(b"ARROW:extension:metadata", b""))
    permutation = list_in(fields, "permutation", int)
    if permutation is not None and permutation == sorted(permutation):
        fields["permutation"] = None
    return {key: value for key, value in fields.items() if value is not None}


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


cdef int new_schema(ArrowSchema* out, bytes text, tuple field, int64_t children=0, bint dictionary=False) except -1:
    """Allocate the strings, children and dictionary of `out` together, and set its release function.

    `field` contains the name, flags and metadata of the schema.
    """
    cdef bytes name = <bytes> field[0], metadata = <bytes> field[2]
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
    cdef Tree t
    cdef Py_ssize_t k, children
    if not isinstance(node, Tree):
        return fill_dense_schema(out, <Descriptor> node, None, complete_field(field, name), has_bytes(node, field))
    t = <Tree> node
    if has(t, CHUNKS):
        return fill_schema(out, t.parts[0], name, field)
    field = field_of_node(t, field)
    if has(t, NUMBERS):
        return fill_dense_schema(out, <Descriptor> t.content, t.meaning, complete_field(field, name), has_bytes(t, field))
    field = complete_field(field, name)
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


cdef int fill_dense_schema(ArrowSchema* out, Descriptor a, str meaning, tuple field, bint as_bytes) except -1:
    """Fill in the schema of numbers: fixed-size lists for each dimension after the first."""
    cdef int axis
    for axis in range(1, a.nd_):
        new_schema(out, b"+w:%d" % a.shape_[axis], field, 1)
        out = out.children[0]
        field = _ITEM_FIELD
    if meaning is not None:
        return new_schema(out, meaning.encode(), field)
    if is_packed(a, as_bytes):
        return new_schema(out, b"b", field)
    if a.dl_dtype_.code == BOOL_CODE and name_in(field[2]) != b"arrow.bool8":
        field = (field[0], field[1], _BOOL8)
    return new_schema(out, letter_of(a), field)


cdef int fill_root_schema(ArrowSchema* out, object node) except -1:
    if not isinstance(node, Tree):
        return fill_dense_schema(out, <Descriptor> node, None, _ROOT_FIELD, False)
    name = (<Tree> (<Tree> node).parts[0]).name if has(<Tree> node, CHUNKS) else (<Tree> node).name
    return fill_schema(out, node, b"" if name is None else str(name).encode("utf-8", "replace"))


cdef object schema_capsule(object node):
    cdef void* held
    capsule = new_capsule(sizeof(ArrowSchema), SCHEMA_NAME, &held)
    fill_root_schema(<ArrowSchema*> held, node)
    return capsule
