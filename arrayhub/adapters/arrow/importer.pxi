"""Import of what Arrow's interfaces of an object hand over: which interface is called, and what of it is a dense array."""

cimport numpy as cnp

from arrayhub._core.descriptor cimport Descriptor, host_readable
from arrayhub._core.kinds cimport CATEGORICAL, FIELDS, NODE_KINDS, NUMBERS, WIDTH
from arrayhub._core.tree cimport UNCOUNTED, Tree, count_nulls, has, length_of, visit_arrays
from arrayhub.adapters.type_cache cimport (
    ARROW_ARRAY,
    ARROW_ARRAY_FIRST,
    ARROW_BYTES_ARE_OBJECTS,
    ARROW_DEVICE,
    ARROW_IS_LAZY,
    ARROW_STREAM_FIRST,
    record_of,
)

from arrayhub._core.errors import PASSES_ON, interface_error, name_of_type


cdef Descriptor parse(object obj, object stream):
    """A dense array on the memory that Arrow's interfaces hand over; None where the type has none of them.

    Asked in this order: the device interface, the array's, the device stream's, the stream's (of one chunk each). A stream
    that can be read once is refused by its schema where that suffices, so that the call that the message names can read it.

    Raises
    ------
    InterfaceError
        The structs contradict themselves or the specification.
    BufferError
        The memory is no dense array; the message names ``asnested`` and, where there is one, a call of the producer's.
    """
    cdef Import owner = handed_over(obj)
    if owner is not None:
        return dense(whole(owner), obj)
    if not is_stream(obj):
        return single(streamed(obj, NULL), obj)
    check_unread(obj)
    try:
        return single(streamed(obj, check_format), obj)
    except BufferError as error:
        raise BufferError(f"{error}. This has opened the stream, which may give nothing a second time: make it anew first") \
            from error


cdef Descriptor single(list chunks, object obj):
    """The one chunk of a stream as a dense array; None without a stream."""
    if chunks is None:
        return None
    if len(chunks) > 1:
        chunks = [chunk for chunk in chunks if length_of(chunk)] or chunks[:1]
    if len(chunks) != 1:
        raise BufferError(
            f"Arrow: {name_of_type(type(obj))} hands over {len(chunks)} chunks of memory; accepted: one. Call"
            " arrayhub.asnested(x), which gives the list of them, or asnested(x, copy=True), one copy"
        )
    return dense(chunks[0], obj)


cdef Descriptor dense(object node, object obj):
    """A node as a dense array, or the refusal that says which call helps."""
    if not isinstance(node, Tree):
        return <Descriptor> node
    raise BufferError(f"Arrow: {name_of_type(type(obj))} {refusal_of(<Tree> node)}")


cdef str refusal_of(Tree t):
    if t.validity is not None and (not host_readable(t.validity) or count_nulls(t)):
        count = f"{t.nulls} missing values" if t.nulls != UNCOUNTED else "a bitmap of missing values"
        return f"has {count}, which a dense array cannot say; call arrayhub.asnested(x), or fill them in first"
    if has(t, NUMBERS):
        return f"has elements of Arrow's type {t.meaning!r}, of which NumPy's says less; call arrayhub.asnested(x), whose" \
            " .content is an array"
    return NODE_KINDS[t.kind].refusal.decode()


# ------------------------------------------------------------------------------------------- streams that are read once


cdef bint is_stream(object obj) except -1:
    """Return whether reading `obj` may consume or compute it: its only interface is a stream's, and it lacks a length.

    The specification of the PyCapsule interface leaves open whether a stream can be requested twice. Tables and columns have a
    length; readers do not (pyarrow, nanoarrow, arro3), and duckdb and ibis count the rows of a query to give it.
    """
    cdef unsigned int record
    if isinstance(obj, Descriptor):
        return False
    record = record_of(obj)
    if record & (ARROW_ARRAY | ARROW_DEVICE):
        return False
    cls = type(obj)
    if not hasattr(cls, "__arrow_c_stream__") and not hasattr(cls, "__arrow_c_device_stream__"):
        return False
    return record & ARROW_IS_LAZY or not hasattr(cls, "__len__")


cdef int check_unread(object obj) except -1:
    """Refuse a stream that cannot be a dense array, without opening it."""
    if record_of(obj) & ARROW_IS_LAZY:
        raise BufferError(f"Arrow: {name_of_type(type(obj))} is a query, whose result has columns; call"
                          " arrayhub.asnested(x), which computes it")
    cdef Import owner = stated_schema(obj)
    return 0 if owner is None else check_format(&owner.schema, obj)


cdef int check_format(ArrowSchema* schema, object obj) except -1:
    """Refuse what is not dense whatever its values are; of lists of a fixed size these decide."""
    cdef const Format* row = find_format(schema.format)
    if schema.dictionary == NULL and (row == NULL or row.kind == REFUSED):
        return 0
    cdef int kind = CATEGORICAL if schema.dictionary != NULL else row.kind
    if not NODE_KINDS[kind].properties & (NUMBERS | WIDTH):
        raise BufferError(f"Arrow: {name_of_type(type(obj))} {NODE_KINDS[kind].refusal.decode()}")
    return 0


cdef Import stated_schema(object obj):
    """The schema that a stream's producer states apart from the stream, by ``__arrow_c_schema__`` or by an attribute `schema`
    that has it; None where it states none."""
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
    take_schema(owner, capsule, "__arrow_c_schema__")
    return owner


def unread(obj, /):
    """Return what is known of a stream that has not been read, as in "a stream of records"; None for all other objects."""
    cdef const Format* row = NULL
    if not is_stream(obj):
        return None
    if record_of(obj) & ARROW_IS_LAZY:
        return "a query, which is computed when it is read"
    cdef Import owner = stated_schema(obj)
    if owner is not None:
        row = find_format(owner.schema.format)
    kind = "" if row == NULL else f" of Arrow's type {row.words.decode()}"
    if row != NULL and row.kind != REFUSED and NODE_KINDS[row.kind].properties & FIELDS:
        kind = f" of records with {owner.schema.n_children} field{'' if owner.schema.n_children == 1 else 's'}"
    return f"a stream{kind}, which can be read once"


cdef list parse_chunks(object obj):
    """The chunks that Arrow's interfaces hand over, each a Descriptor where it is dense and a Tree elsewhere; None where
    the type has none of the interfaces."""
    cdef Import owner = handed_over(obj)
    return streamed(obj, NULL) if owner is None else [whole(owner)]


def has_form(obj, /):
    """Return whether what Arrow's interfaces of an object hand over is something that `asnested` has a form for."""
    try:
        return parse_chunks(obj) is not None
    except PASSES_ON:
        raise
    except Exception:      # pyarrow's own too, of values of several kinds
        return False


cdef Import handed_over(object obj):
    """What the device's or the array's interface hands over; None where the type has neither."""
    cdef unsigned int record
    if isinstance(obj, Descriptor):      # whose other interfaces say more
        return None
    record = record_of(obj)
    if record & ARROW_STREAM_FIRST and hasattr(type(obj), "__arrow_c_stream__"):
        return None
    if record & ARROW_ARRAY and record & ARROW_ARRAY_FIRST:
        return import_array_first(obj)
    if record & ARROW_DEVICE:
        return import_on_device(obj)
    return import_array(obj) if record & ARROW_ARRAY else None


cdef object whole(Import owner):
    """The node of an array that came with its schema."""
    node = build_root(owner, &owner.schema)
    drop_schema(&owner.schema)
    return node


cdef list streamed(object obj, Check check):
    """Import the chunks of a stream as nodes; return None if the type does not have a stream's interface.

    `check` is called with the schema before the first chunk is read."""
    cdef Import owner, first
    cdef list owners, chunks = []
    if isinstance(obj, Descriptor):
        return None
    if hasattr(type(obj), "__arrow_c_device_stream__"):
        owners = import_device_stream(obj, check)
    elif hasattr(type(obj), "__arrow_c_stream__"):
        owners = import_stream(obj, check)
    else:
        return None
    first = <Import> owners[0]
    for owner in owners:
        if owner.array.release == NULL:       # a stream without chunks
            make_empty(&owner.array, &owner.schema)
        chunks.append(build_root(owner, &first.schema))
    drop_schema(&first.schema)
    if record_of(obj) & ARROW_BYTES_ARE_OBJECTS:
        for node in chunks:
            visit_arrays(node, refuse_objects, <void*> obj)
    return chunks


cdef int refuse_objects(Descriptor a, void* producer) except -1:
    """Refuse the addresses of Python objects, which is what the producer's bytes of a fixed size are."""
    if a.typenum_ == cnp.NPY_VOID:
        raise TypeError(
            f"Arrow: {name_of_type(type(<object> producer))} holds Python objects, and hands over their addresses; accepted:"
            " elements of a type that Arrow has. Take x.to_list() of the column, or make it anew, of numbers, strings or lists"
        )
    return 0


cdef unsigned int interfaces_of(object cls) except? 0:
    """What a record says of a type's interfaces besides."""
    cdef unsigned int found = 0
    if getattr(cls, "__arrow_c_device_array__", None) is not None:
        found |= ARROW_DEVICE
    if getattr(cls, "__arrow_c_array__", None) is not None:
        found |= ARROW_ARRAY
    return found


cdef int check_pair(object pair, str method) except -1:
    if type(pair) is not tuple or len(<tuple> pair) != 2:
        raise interface_error("Arrow", f"{method}()", pair, "a pair of capsules: the schema and the array")
    return 0


cdef Import import_array(object obj):
    """What the array interface hands over."""
    pair = obj.__arrow_c_array__()
    check_pair(pair, "__arrow_c_array__")
    cdef Import owner = new_import()
    take_schema(owner, (<tuple> pair)[0], "__arrow_c_array__")
    take_array(owner, (<tuple> pair)[1], "__arrow_c_array__")
    return owner


cdef Import import_on_device(object obj):
    """What the device interface hands over."""
    pair = obj.__arrow_c_device_array__()
    check_pair(pair, "__arrow_c_device_array__")
    cdef Import owner = new_import()
    take_schema(owner, (<tuple> pair)[0], "__arrow_c_device_array__")
    take_device_array(owner, (<tuple> pair)[1])
    return owner


cdef Import import_array_first(object obj):
    """What the array interface hands over, or, of what it refuses because it is elsewhere, the device interface."""
    try:
        return import_array(obj)
    except PASSES_ON:
        raise
    except Exception:
        if getattr(obj, "is_cpu", True):
            raise
    return import_on_device(obj)
