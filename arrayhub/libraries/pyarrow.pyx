"""pyarrow: import of arrays.

Arrays are imported through DLPack, the faster protocol, or through ``__arrow_c_array__`` if DLPack lacks the type. The classes
``pyarrow.Buffer`` and ``pyarrow.Tensor`` support PEP 3118 and do not need this module.
"""

from cpython.object cimport PyObject

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.cpython.exceptions cimport take
from arrayhub.adapters cimport arrow, dlpack
from arrayhub.libraries.known cimport library

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
    # Without DLPack: times, chunked arrays with one chunk, and arrays with a validity bitmap but without nulls.
    if capsule is None:
        a = arrow.parse(obj, None)
        if a is None:
            refuse_scalar(obj)
        return a
    a = dlpack.parse_capsule(capsule, False, obj)
    return a if a.nd_ == 1 else arrow.parse(obj, None)      # FixedShapeTensorArray: DLPack would lose its dimension names


cdef int refuse_scalar(object obj) except -1:
    """Raise TypeRefusal. PEP 3118 would export the characters of a string as writable int8."""
    from arrayhub.libraries.wrappers import wrapper_error

    raise wrapper_error(obj, "is not imported as an array")


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
    except Exception as error:      # ArrowInvalid, ArrowTypeError or others, depending on the version
        kind = type(error)
    if kind is not TypeError:      # only a TypeError can indicate an unknown keyword
        return None
    try:
        return obj.__dlpack__()
    except Exception:
        return None


library("pyarrow").set_importer(0, parse, parse)
