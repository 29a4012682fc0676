"""pyarrow: arrays in by DLPack, which is faster, and by Arrow's own interface where DLPack has no words; and what helps
where there is no dense array.

Buffers and Tensors of pyarrow have a PEP 3118 buffer and need no module here.
"""

import sys

from cpython.object cimport PyObject

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.cpython.exceptions cimport take
from arrayhub.adapters cimport arrow, dlpack

from arrayhub._core.errors import PASSES_ON
from arrayhub.libraries import wrappers

cdef extern from *:
    PyObject* PyObject_VectorcallMethod(object name, PyObject** arguments, size_t positional, object keywords) noexcept

cdef str METHOD = "__dlpack__"
cdef tuple KEYWORDS = ("max_version",)
cdef tuple MAX_VERSION = (1, 0)      # which pyarrow compares faster than a later one, and gives the same for


cdef Descriptor parse(object obj, object stream):
    """An array on a ``pyarrow.Array``, read-only, with the offset of a slice honoured.

    Raises
    ------
    BufferError
        Its memory is no plain run of numbers: nulls, bits, chunks, strings; the message names the call that helps.
    """
    cdef Descriptor a
    capsule = capsule_of(obj)
    if capsule is None:
        return by_arrow(obj)
    a = dlpack.parse_capsule(capsule, False, obj)
    return a if a.nd_ == 1 else by_arrow(obj)      # a tensor, whose dimensions DLPack has no names for


cdef Descriptor by_arrow(object obj):
    """What DLPack has no words for, and an array may have: times, tensors, a single chunk, nulls that are none."""
    cdef Descriptor a
    try:
        a = arrow.parse(obj, None)
    except BufferError as error:
        raise pyarrow_error(obj, error) from error
    if a is None:
        raise pyarrow_error(obj, "it speaks no protocol")
    return a


cdef inline object capsule_of(object obj):
    """What ``obj.__dlpack__(max_version=(1, 0))`` gives, without a bound method and keywords made anew; None where there
    is no such method, or it refuses."""
    cdef PyObject* arguments[2]
    arguments[0] = <PyObject*> obj
    arguments[1] = <PyObject*> MAX_VERSION
    cdef PyObject* capsule = PyObject_VectorcallMethod(METHOD, arguments, 1, KEYWORDS)
    return legacy_capsule(obj) if capsule == NULL else take(capsule)


cdef object legacy_capsule(object obj):
    """What a pyarrow from before versions gives; None for what this one has just refused."""
    try:
        dlpack.raise_pending("pyarrow's __dlpack__")
    except PASSES_ON:
        raise
    except Exception as error:      # ArrowInvalid, ArrowTypeError and others, by the version
        kind = type(error)
    if kind is not TypeError:      # which alone is Python's own, about the keyword
        return None
    try:
        return obj.__dlpack__()
    except PASSES_ON:
        raise
    except Exception:
        return None


cdef object pyarrow_error(object obj, object reason):
    pyarrow = sys.modules["pyarrow"]
    nested = "; or arrayhub.asnested(x), which takes it as it is" if "asnested" in str(reason) else ""
    words = advice_in_chunks(obj) if isinstance(obj, pyarrow.ChunkedArray) else advice(obj, reason)
    return BufferError(f"pyarrow: {type(obj).__name__} {words}{nested}")


# Whose memory is no array, and what helps: a look at pyarrow and the object, and the advice. The first that applies.
_ADVICE = (
    (lambda pa, x: isinstance(x, pa.Table), "has columns in chunks; call x.column(i).combine_chunks()"),
    (lambda pa, x: isinstance(x, pa.RecordBatch), "has columns; take x.column(i), or x.to_tensor(), which copies"),
    (lambda pa, x: isinstance(x, pa.Scalar), "is a single value; call x.as_py()"),
    (lambda pa, x: isinstance(x, pa.ExtensionArray), "is an extension array; take x.storage"),
    (lambda pa, x: pa.types.is_null(x.type), "has nulls alone; call arrayhub.asnested(x.cast(pyarrow.float64()))"),
    (lambda pa, x: x.null_count > 0, ""),
    (lambda pa, x: pa.types.is_boolean(x.type), "packs eight values into a byte; call x.cast(pyarrow.uint8()), which copies"),
    (lambda pa, x: pa.types.is_dictionary(x.type), "is encoded; take x.indices, and x.dictionary for what they stand for"),
    (lambda pa, x: pa.types.is_decimal(x.type), "has decimals; call x.cast(pyarrow.float64()), which rounds them"),
    (lambda pa, x: pa.types.is_interval(x.type), "has months, days and nanoseconds; call x.to_pylist()"),
    (lambda pa, x: pa.types.is_temporal(x.type),
     "has a type of time that says more than NumPy's; view the integers: x.view(pyarrow.int{bits}())"),
    (lambda pa, x: pa.types.is_run_end_encoded(x.type), "is encoded; call pyarrow.compute.run_end_decode(x)"),
    (lambda pa, x: pa.types.is_map(x.type), "is nested; take x.keys and x.items"),
    (lambda pa, x: pa.types.is_struct(x.type), "is nested; take x.field(i), or x.flatten(), all of them"),
    (lambda pa, x: pa.types.is_union(x.type), "is nested; take x.field(i)"),
    (lambda pa, x: pa.types.is_nested(x.type), "is nested; take x.flatten()"),
    (lambda pa, x: "string" in str(x.type) or "binary" in str(x.type), "has strings; take x.to_pylist()"),
)


cdef str advice(object obj, object reason):
    pyarrow = sys.modules["pyarrow"]
    for applies, words in _ADVICE:
        if applies(pyarrow, obj):
            if "{bits}" in words:
                return words.replace("{bits}", str(obj.type.bit_width))
            return words or advice_without_nulls(obj)
    return f"cannot be shown as an array ({reason}); accepted: numbers without nulls. x.buffers() gives the raw bytes"


cdef str advice_without_nulls(object obj):
    """For nulls; of a type that is no array without them either, the call without nulls."""
    why = "has nulls, which no protocol here can say"
    dropped = obj.drop_null()
    reason = refusal_of(dropped)
    if reason is not None:
        return f"{why}; without them it {wrappers.named_as('x.drop_null()', advice(dropped, reason))}"
    fill = "" if sys.modules["pyarrow"].types.is_nested(obj.type) else " or x.fill_null(value)"
    return f"{why}; call x.drop_null(){fill}"


cdef str advice_in_chunks(object obj):
    """For chunks; where one is no array itself, what helps with all of them in one."""
    for chunk in obj.chunks:
        reason = refusal_of(chunk)
        if reason is not None:
            return wrappers.named_as("x.combine_chunks()", advice(chunk, reason))
    return "lies in chunks; call x.combine_chunks(), or take x.chunk(i) one by one"


cdef object refusal_of(object obj):
    """The error of what is no dense array; None of what is one."""
    refusal = None
    try:
        arrow.parse(obj, None)
    except BufferError as error:
        refusal = error
    return refusal
