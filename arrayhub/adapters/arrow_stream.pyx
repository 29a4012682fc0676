"""Arrow's stream interface: the chunks that a producer gives out one after another, and a stream of one array."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from arrayhub._core.finalizing cimport is_finalizing
from arrayhub._core.tree cimport MAX_DEPTH
from arrayhub.adapters.arrow_abi cimport MAX_NODES, STREAM_NAME, ArrowArray, ArrowArrayStream, ArrowSchema
from arrayhub.adapters.arrow_emit cimport fill_root_array, new_body, ready_for_host
from arrayhub.adapters.arrow_format cimport Format, find_format
from arrayhub.adapters.arrow_owner cimport Import, new_import, pointer_in, released
from arrayhub.adapters.arrow_schema cimport as_said, fill_root_schema, wants_lists

from arrayhub._core.errors import interface_error

cdef enum:
    EINVAL = 22


cdef list import_stream(object obj):
    """What a stream hands over, an Import a chunk; the first has the schema. A stream without chunks is one that has none.
    """
    cdef ArrowArrayStream stream
    capsule = getattr(obj, "__arrow_c_stream__")()
    cdef ArrowArrayStream* source = <ArrowArrayStream*> pointer_in(capsule, STREAM_NAME, "__arrow_c_stream__")
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
    if is_finalizing():
        return
    shown = <Shown*> stream.private_data
    with gil:
        Py_DECREF(<object> shown.node)
        PyMem_RawFree(shown)


cdef void _drop_stream_capsule(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, STREAM_NAME)
    if stream.release != NULL:
        stream.release(stream)
    PyMem_RawFree(stream)


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
