"""Import through the best Arrow interface of an object, as a dense array or as chunks."""

cimport numpy as cnp

from arrayhub._core.descriptor cimport Descriptor, host_readable
from arrayhub._core.tree cimport (
    CATEGORICAL,
    CHUNKS,
    FIELDS,
    FOREIGN,
    NODE_KINDS,
    NUMBERS,
    UNCOUNTED,
    WIDTH,
    Tree,
    count_nulls,
    has,
    length_of,
    visit_arrays,
)
from arrayhub.adapters.type_cache cimport (
    ARROW_ARRAY,
    ARROW_ARRAY_FIRST,
    ARROW_BYTES_ARE_OBJECTS,
    ARROW_DEVICE,
    ARROW_IS_LAZY,
    ARROW_STREAM_FIRST,
    record_of,
)

from arrayhub._core.errors import PASSES_ON, Refusal, TypeRefusal, interface_error, name_of_type
from arrayhub.adapters.table import PROTOCOLS


cdef Descriptor parse(object obj, object stream):
    """Import the memory of an Arrow producer as a dense array. Return None if `obj` does not have an Arrow interface.

    By default, the interfaces are tried in this order: device array, array, device stream, stream. Rows of libraries/known
    change this order for some libraries. A stream must not have more than one nonempty chunk.

    Some streams can be read only once. If the schema of such a stream shows that its data is not a dense array, the stream is
    rejected before it is read, so that the call in the error message can still read it. Queries are rejected without running
    them.

    Raises
    ------
    InterfaceError
        The structs are inconsistent or violate the specification.
    BufferError
        The data is not a dense array. The message names the call to make instead.
    """
    cdef Import owner = import_single(obj)
    if owner is not None:
        node = build_root(owner, &owner.schema)
        drop_schema(&owner.schema)
        return dense(node, obj)
    if not is_stream(obj):
        return single(import_chunks(obj, NULL), obj)
    check_unread(obj)
    try:
        return single(import_chunks(obj, check_format), obj)
    except Refusal as refusal:
        again = "The stream has been opened, and may be readable only once: create it again first"
        raise Refusal(refusal.subject, f"{refusal.reason}. {again}", call=refusal.call) from refusal


cdef Descriptor single(list chunks, object obj):
    """Return the only nonempty chunk of a stream as a dense array, or the first chunk if all are empty.

    Return None if `chunks` is None. Raise BufferError if several chunks have elements.
    """
    if chunks is None:
        return None
    if len(chunks) > 1:
        chunks = [chunk for chunk in chunks if length_of(chunk)] or chunks[:1]
    if len(chunks) != 1:
        raise not_dense(obj, f"has {len(chunks)} chunks; pass copy=True, which concatenates them")
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
    return Refusal("Arrow", f"{name_of_type(type(obj))} {reason}", call=call)


cdef str refusal_of(Tree t):
    """Return why a node is not a dense array."""
    if t.validity is not None and (not host_readable(t.validity) or count_nulls(t)):
        plural = "" if t.nulls == 1 else "s"
        count = "a bitmap of missing values" if t.nulls == UNCOUNTED else f"{t.nulls} missing value{plural}"
        return f"has {count}, which a dense array cannot represent"
    return refusal_of_type(type_name(t.meaning)) if has(t, NUMBERS | FOREIGN) else NODE_KINDS[t.kind].refusal.decode()


cdef dict _REMEDIES = {
    "date32": "; pass copy=True, which converts to datetime64[D]",
    "date64": "; pass copy=True, which converts to datetime64[ms]",
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
        raise Refusal("Arrow", f"{name_of_type(type(obj))} is a query, which runs when it is read, and its result has"
                      " columns", call="arrayhub.asnested(x)")
    cdef Import owner = stated_schema(obj)
    return 0 if owner is None else check_format(&owner.schema, obj)


cdef int check_format(ArrowSchema* schema, object obj) except -1:
    """Raise BufferError if a type cannot be a dense array. Accept every fixed-size list without examining its values."""
    cdef const Format* row = find_format(schema.format)
    if schema.dictionary == NULL and (row == NULL or row.kind == REFUSED):
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
    cdef Import owner = new_import()
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
    if row != NULL and row.kind != REFUSED and NODE_KINDS[row.kind].properties & FIELDS:
        kind = f" of records with {owner.schema.n_children} field{'' if owner.schema.n_children == 1 else 's'}"
    return f"a stream{kind}, which can be read once"


cdef list parse_chunks(object obj):
    """Import the chunks of an Arrow producer as Trees. Return None if `obj` does not have an Arrow interface."""
    cdef Import owner = import_single(obj)
    if owner is None:
        return import_chunks(obj, NULL)
    column = build_column(owner, &owner.schema)
    drop_schema(&owner.schema)
    return [column]


def has_form(obj, /):
    """Return whether `asnested` can import an object through Arrow's interfaces."""
    try:
        return parse_chunks(obj) is not None
    except PASSES_ON:
        raise
    except Exception:      # for example, pyarrow rejects values of several kinds
        return False


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
    drop_schema(&first.schema)
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
    cdef Import owner = new_import()
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
