"""Import and export through Arrow's two stream interfaces. An exported stream contains one array per chunk."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t

from arrayhub._core.cpython.finalizing cimport is_finalizing
from arrayhub._core.cpython.exceptions cimport drop_reference, put_aside, put_back
from arrayhub._core.tree cimport ANY, CHUNKS, Tree, has

from arrayhub._core.errors import Refusal, interface_error

cdef extern from "Python.h":
    const char* PyBytes_AS_STRING(PyObject* words) noexcept nogil

cdef extern from "<errno.h>" nogil:
    int EINVAL
    int ENOMEM


# Called before the first array of a stream is read. Raises an error if the caller does not support the schema.
ctypedef int (*Check)(ArrowSchema* schema, object obj) except -1


cdef list read_stream(Stream* source, Check check, object obj):
    """Move a stream out of its capsule, read it, and return one Import per chunk. The first Import owns the schema.

    For a stream without chunks, return one Import without an array. `check` may be NULL.
    """
    cdef Stream stream
    move_struct(&stream, source, name_of_struct(source))
    cdef Import owner = new_import()
    cdef list chunks = [owner]
    try:
        read_schema(&stream, &owner.schema)
        if check != NULL:
            check(&owner.schema, obj)
        while read_next(&stream, owner):
            PyErr_CheckSignals()
            owner = new_import()
            chunks.append(owner)
        if len(chunks) > 1:
            chunks.pop()
    finally:
        aside = put_aside()
        stream.release(&stream)
        put_back(aside)
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
    cdef int buffers = 0 if row.kind == REFUSED else buffers_of(row)
    new_body(out, None, 3 if buffers == ANY else buffers, schema.n_children, schema.dictionary != NULL)
    for k in range(schema.n_children):
        make_empty(out.children[k], schema.children[k])
    return 0 if schema.dictionary == NULL else make_empty(out.dictionary, schema.dictionary)


# ------------------------------------------------------------------------------------------------------------- export


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
    if out.release != NULL:
        out.release(out)
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
    if out.release != NULL:
        out.release(out)
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
