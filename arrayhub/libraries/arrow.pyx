"""pyarrow: arrays in by DLPack, and for all that DLPack cannot say, the call that makes it sayable.

Buffers and Tensors of pyarrow have a PEP 3118 buffer and need no room.
"""

import sys

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters cimport dlpack


cdef Descriptor parse(object obj, object stream):
    """An array on a ``pyarrow.Array``, read-only, with the offset of a slice honoured.

    Raises
    ------
    BufferError
        Its memory is no plain run of numbers: nulls, bits, chunks, strings; the message names the call that helps.
    """
    export = getattr(obj, "__dlpack__", None)
    if export is None:
        raise BufferError(f"pyarrow: {type(obj).__name__} {advice(obj, 'it has no __dlpack__')}")
    try:
        capsule = capsule_from(export)
    except MemoryError:
        raise
    except Exception as error:     # ArrowInvalid, ArrowTypeError and others, by the version
        raise BufferError(f"pyarrow: {type(obj).__name__} {advice(obj, error)}") from error
    return dlpack.parse_capsule(capsule, False, None)


cdef object capsule_from(object export):
    try:
        return export(max_version=(1, 0))
    except TypeError as error:
        if type(error) is not TypeError:      # pyarrow's own is a refusal; Python's means a pyarrow before versions
            raise
        return export()


# Whose memory is no array, and what helps: a look at pyarrow and the object, and the advice. The first that applies.
_ADVICE = (
    (lambda pa, x: isinstance(x, pa.ChunkedArray), "lies in chunks; call x.combine_chunks(), or take x.chunk(i) one by one"),
    (lambda pa, x: isinstance(x, pa.Table), "has columns in chunks; call x.column(i).combine_chunks()"),
    (lambda pa, x: isinstance(x, pa.RecordBatch), "has columns; take x.column(i), or x.to_tensor(), which copies"),
    (lambda pa, x: isinstance(x, pa.Scalar), "is a single value; call x.as_py()"),
    (lambda pa, x: isinstance(x, pa.ExtensionArray), "is an extension array; take x.storage"),
    (lambda pa, x: x.null_count > 0, "has nulls, which no protocol here can say; call x.drop_null() or x.fill_null(value)"),
    (lambda pa, x: pa.types.is_boolean(x.type), "packs eight values into a byte; call x.cast(pyarrow.uint8()), which copies"),
    (lambda pa, x: pa.types.is_dictionary(x.type), "is encoded; take x.indices and x.dictionary, or x.dictionary_decode()"),
    (lambda pa, x: pa.types.is_temporal(x.type),
     "has a type of time, which DLPack lacks; view the integers: x.view(pyarrow.int{bits}())"),
    (lambda pa, x: pa.types.is_nested(x.type), "is nested; take x.flatten() or x.field(i)"),
)


cdef str advice(object obj, object reason):
    pyarrow = sys.modules["pyarrow"]
    for applies, words in _ADVICE:
        if applies(pyarrow, obj):
            return words.replace("{bits}", str(obj.type.bit_width)) if "{bits}" in words else words
    return f"cannot be shown as an array ({reason}); accepted: numbers without nulls. x.buffers() gives the raw bytes"
