"""pyarrow: import of arrays, and advice for arrays that are not dense.

Arrays are imported through DLPack, the faster protocol, or through ``__arrow_c_array__`` if DLPack lacks the type. The classes
``pyarrow.Buffer`` and ``pyarrow.Tensor`` support PEP 3118 and do not need this module.
"""

import sys

from cpython.object cimport PyObject

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.cpython.exceptions cimport take
from arrayhub.adapters cimport arrow, dlpack
from arrayhub.libraries.known cimport library

from arrayhub._core.errors import MISSING_TIMES, MISSING_VALUES, PASSES_ON, Refusal, reason_of

cdef extern from *:
    PyObject* PyObject_VectorcallMethod(object name, PyObject** arguments, size_t positional, object keywords) noexcept

cdef str METHOD = "__dlpack__"
cdef tuple KEYWORDS = ("max_version",)
cdef tuple MAX_VERSION = (1, 0)      # pyarrow compares this version faster than a later one, with the same result


cdef Descriptor parse(object obj, object stream):
    """Import a ``pyarrow.Array`` as read-only memory. The offset of a slice is applied.

    Raises
    ------
    BufferError
        The array is not dense because of nulls, bits, chunks or strings. The message names a call to use instead.
    """
    cdef Descriptor a
    capsule = capsule_of(obj)
    if capsule is None:
        return by_arrow(obj)
    a = dlpack.parse_capsule(capsule, False, obj)
    return a if a.nd_ == 1 else by_arrow(obj)      # FixedShapeTensorArray: DLPack would lose its dimension names


cdef Descriptor by_arrow(object obj):
    """Import an array whose ``__dlpack__`` fails or is missing, or a FixedShapeTensorArray, through Arrow's interfaces.

    Examples are arrays of times, chunked arrays with one chunk, and arrays with a validity bitmap but without nulls.
    """
    cdef Descriptor a
    try:
        a = arrow.parse(obj, None)
    except BufferError as error:
        raise pyarrow_error(obj, error) from error
    if a is None:
        raise pyarrow_error(obj, "it does not support any protocol")
    return a


cdef inline object capsule_of(object obj):
    """Return ``obj.__dlpack__(max_version=(1, 0))``, or None if the method is missing or raises.

    For speed, the call is made without creating a bound method or a dict of keywords.
    """
    cdef PyObject* arguments[2]
    arguments[0] = <PyObject*> obj
    arguments[1] = <PyObject*> MAX_VERSION
    cdef PyObject* capsule = PyObject_VectorcallMethod(METHOD, arguments, 1, KEYWORDS)
    return legacy_capsule(obj) if capsule == NULL else take(capsule)


cdef object legacy_capsule(object obj):
    """Call ``__dlpack__`` without keywords if the pending exception is a TypeError, and return the capsule.

    The TypeError can mean that this pyarrow does not accept ``max_version``. Return None if the pending exception has another
    type, or if the second call fails.
    """
    try:
        dlpack.raise_pending("pyarrow's __dlpack__")
    except PASSES_ON:
        raise
    except Exception as error:      # ArrowInvalid, ArrowTypeError or others, depending on the version
        kind = type(error)
    if kind is not TypeError:      # only a TypeError can indicate an unknown keyword
        return None
    try:
        return obj.__dlpack__()
    except PASSES_ON:
        raise
    except Exception:
        return None


cdef object pyarrow_error(object obj, object reason):
    pyarrow = sys.modules["pyarrow"]
    words = "consists of chunks; call x.combine_chunks(), or use x.chunk(i) one by one"
    if not isinstance(obj, pyarrow.ChunkedArray):
        words = advice(obj, reason, "x")
    elif obj.num_chunks and refusal_of(obj.chunk(0)) is not None:
        words = advice(obj.chunk(0), reason, "x.combine_chunks()")
    return Refusal(f"pyarrow.{type(obj).__name__}", words, call="arrayhub.asnested(x)")


# Advice for objects that are not a single dense array: pairs of a predicate and a text. The first match applies.
_ADVICE = (
    (lambda pa, x: isinstance(x, pa.Table),
     "has columns in chunks; call {x}.column(i).combine_chunks(), or pass copy=True, which makes a matrix"),
    (lambda pa, x: isinstance(x, pa.RecordBatch), "has columns; use {x}.column(i), or pass copy=True, which makes a matrix"),
    (lambda pa, x: isinstance(x, pa.Scalar), "is a single value; call {x}.as_py()"),
    (lambda pa, x: isinstance(x, pa.ExtensionArray), "is an extension array; use {x}.storage"),
    (lambda pa, x: pa.types.is_null(x.type), "has nulls but no values; call arrayhub.asnested({x}.cast(pyarrow.float64()))"),
    (lambda pa, x: pa.types.is_boolean(x.type), "packs eight values into a byte; call {x}.cast(pyarrow.uint8()), which copies"),
    (lambda pa, x: pa.types.is_dictionary(x.type), "is dictionary-encoded; use {x}.indices and {x}.dictionary"),
    (lambda pa, x: pa.types.is_decimal(x.type), "has decimals; call {x}.cast(pyarrow.float64()), which rounds them"),
    (lambda pa, x: pa.types.is_interval(x.type), "has months, days and nanoseconds; call {x}.to_pylist()"),
    (lambda pa, x: pa.types.is_date(x.type),
     "has dates; pass copy=True, which converts to datetime64, or view the integers: {x}.view(pyarrow.int{bits}())"),
    (lambda pa, x: pa.types.is_temporal(x.type) and not is_numpy_time(pa, x.type),
     "has a temporal type that NumPy does not have; view the integers: {x}.view(pyarrow.int{bits}())"),
    (lambda pa, x: pa.types.is_run_end_encoded(x.type), "is run-end encoded; call pyarrow.compute.run_end_decode({x})"),
    (lambda pa, x: pa.types.is_map(x.type), "is nested; use {x}.keys and {x}.items"),
    (lambda pa, x: pa.types.is_struct(x.type), "is nested; use {x}.field(i), or {x}.flatten() for all fields"),
    (lambda pa, x: pa.types.is_union(x.type), "is nested; use {x}.field(i)"),
    (lambda pa, x: pa.types.is_nested(x.type), "is nested; use {x}.flatten()"),
    (lambda pa, x: "string" in str(x.type) or "binary" in str(x.type), "has strings; use {x}.to_pylist()"),
)


cdef str advice(object obj, object reason, str x):
    """Return the reason for which an array of this type is not dense, with calls on the expression `x`."""
    pyarrow = sys.modules["pyarrow"]
    if getattr(obj, "null_count", 0) and not isinstance(obj, pyarrow.Table) and not pyarrow.types.is_null(obj.type):
        without = kind_of_elements(obj, f"{x}.drop_null()")
        why = "has nulls, which a dense array cannot represent"
        if without:
            dates = f"{MISSING_TIMES}; " if pyarrow.types.is_date(obj.type) else ""
            return f"{why}; {dates}without them it {without}"
        missing = f"{MISSING_TIMES if pyarrow.types.is_temporal(obj.type) else MISSING_VALUES}, or "
        fill = "" if pyarrow.types.is_nested(obj.type) else f" or {x}.fill_null(value)"
        return f"{why}; {missing}call {x}.drop_null(){fill}"
    return kind_of_elements(obj, x) or \
        f"is not dense ({reason_of(reason)}); accepted: numbers without nulls. x.buffers() returns the raw buffers"


def is_numpy_time(pyarrow, type):
    return pyarrow.types.is_duration(type) or pyarrow.types.is_timestamp(type) and type.tz is None


cdef str kind_of_elements(object obj, str x):
    pyarrow = sys.modules["pyarrow"]
    for applies, words in _ADVICE:
        if applies(pyarrow, obj):
            return words.format(x=x, bits=getattr(getattr(obj, "type", None), "bit_width", 64) if "{bits}" in words else "")
    return ""


cdef object refusal_of(object obj):
    """Return the error for an array that is not dense, or None for a dense array."""
    refusal = None
    try:
        arrow.parse(obj, None)
    except BufferError as error:
        refusal = error
    return refusal


library("pyarrow").set_importer(0, parse, parse)
