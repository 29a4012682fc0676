"""asarray and the as_* family: which way in a type takes, remembered by type; which way out a library wants."""

import os
import sys

import numpy

from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.pycapsule cimport PyCapsule_CheckExact

from arrayhub._core.descriptor cimport COPIED, Descriptor, host_readable
from arrayhub._core.raised cimport raise_on, take
from arrayhub._core.shared cimport refer_from_everywhere
from arrayhub._core.type_notes cimport TypeNote, recall, write_down
from arrayhub._core.type_version cimport version_tag
from arrayhub.adapters cimport array_interface, buffer, cuda_array, dlpack, sycl_usm
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI
from arrayhub.libraries cimport arrow, dpctl
from arrayhub.libraries cimport cupy as cupy_library
from arrayhub.libraries cimport jax as jax_library
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.libraries cimport torch as torch_library
from arrayhub.runtimes.streams cimport on_stream
from arrayhub.usm_array cimport USMArray, register_way_in

import arrayhub.libraries.devices  # noqa: F401 (enters the readers of the libraries' device objects)
import arrayhub.usm_array  # noqa: F401 (registers the class that new arrays are of)
from arrayhub import transfer
from arrayhub._core.copying import wanted
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import PASSES_ON, InterfaceError, show
from arrayhub.adapters import dimensions
from arrayhub.libraries import wrappers

ctypedef Descriptor (*Way)(object obj, object stream)

cdef extern from *:
    """
    static int arrayhub_has_buffer(PyTypeObject *type) {
        return type->tp_as_buffer != NULL && type->tp_as_buffer->bf_getbuffer != NULL;
    }
    /* Whether an object has an attribute; -1 where its getter raises, with the exception set. */
    static int arrayhub_look_for(PyObject *obj, PyObject *name) {
        PyObject *value = NULL;
    #if PY_VERSION_HEX >= 0x030D0000
        int found = PyObject_GetOptionalAttr(obj, name, &value);
    #else
        int found = _PyObject_LookupAttr(obj, name, &value);
    #endif
        Py_XDECREF(value);
        return found;
    }
    /* To call a way without a `try` around it: NULL, with the exception set. */
    #define arrayhub_attempt(way, obj, stream) ((PyObject *)way(obj, stream))
    static int arrayhub_bare_instances(PyTypeObject *type) {
        return type->tp_dictoffset == 0 && !PyType_HasFeature(type, (1UL << 4)) &&
               type->tp_getattro == PyObject_GenericGetAttr;
    }

    /* A function called with one argument and no keywords, the usual way, needs no parsing of arguments: `one` is
       called with it, unless it is of the type `own`, whose objects are their own answer. All else goes to the
       function's own entry, which is kept. */
    #define ARRAYHUB_SHORTCUT(name)                                                                                    \
        static vectorcallfunc name##_any;                                                                              \
        static PyObject *(*name##_one)(PyObject *);                                                                    \
        static PyTypeObject *name##_own;                                                                               \
        static PyObject *name##_enter(PyObject *f, PyObject *const *args, size_t n, PyObject *keywords) {              \
            if (PyVectorcall_NARGS(n) != 1 || keywords != NULL) return name##_any(f, args, n, keywords);               \
            return Py_TYPE(args[0]) == name##_own ? Py_NewRef(args[0]) : name##_one(args[0]);                          \
        }                                                                                                              \
        static void name##_shortcut(PyObject *f, PyObject *(*one)(PyObject *), PyTypeObject *own) {                    \
            Py_ssize_t offset = Py_TYPE(f)->tp_vectorcall_offset;                                                      \
            vectorcallfunc *entry = (vectorcallfunc *)((char *)f + offset);                                            \
            if (offset < (Py_ssize_t)sizeof(PyObject) || PyVectorcall_Function(f) == NULL || *entry == NULL) return;   \
            name##_any = *entry;                                                                                       \
            name##_one = one;                                                                                          \
            name##_own = own;                                                                                          \
            *entry = name##_enter;                                                                                     \
        }
    ARRAYHUB_SHORTCUT(arrayhub_asarray)
    ARRAYHUB_SHORTCUT(arrayhub_as_numpy)
    ARRAYHUB_SHORTCUT(arrayhub_as_torch)
    """
    PyObject* attempt "arrayhub_attempt"(Way way, object obj, object stream) noexcept
    void arrayhub_asarray_shortcut(object function, object (*one)(object), PyTypeObject* own)
    void arrayhub_as_numpy_shortcut(object function, object (*one)(object), PyTypeObject* own)
    void arrayhub_as_torch_shortcut(object function, object (*one)(object), PyTypeObject* own)
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()
    bint arrayhub_has_buffer(PyTypeObject* cls) nogil
    int arrayhub_look_for(object obj, object name) noexcept
    bint arrayhub_bare_instances(PyTypeObject* cls) nogil


# ------------------------------------------------------------------------------------------------------- the ways in


cdef struct NamedWay:
    const char* name        # as `via=` and `USMArray.protocol` say it
    const char* attribute   # on the type or the instance; NULL where a slot of the type decides
    bint on_instances       # dict protocols: real producers set them on instances
    Way parse

cdef enum:
    WAYS = 7

# One row per protocol, in the order in which an unknown type is asked. docs/protocols.md gives the reasons.
cdef NamedWay _WAYS[WAYS]
_WAYS[0] = NamedWay(b"sycl", b"__sycl_usm_array_interface__", True, sycl_usm.parse)
_WAYS[1] = NamedWay(b"cuda", b"__cuda_array_interface__", True, cuda_array.parse)
_WAYS[2] = NamedWay(b"exchange", b"__dlpack_c_exchange_api__", False, parse_exchange)
_WAYS[3] = NamedWay(b"buffer", NULL, False, buffer.parse)
_WAYS[4] = NamedWay(b"dlpack", b"__dlpack__", False, dlpack.parse)
_WAYS[5] = NamedWay(b"array_interface", b"__array_interface__", True, array_interface.parse)
_WAYS[6] = NamedWay(b"array_struct", b"__array_struct__", True, array_interface.parse_struct)

# The same names as Python strings, so that meeting a type makes none.
cdef int _way
cdef list _ATTRIBUTES = []
for _way in range(WAYS):
    _ATTRIBUTES.append(None if _WAYS[_way].attribute == NULL else sys.intern(_WAYS[_way].attribute.decode()))

# What has no memory that anybody could view.
cdef tuple _VALUES = (bool, int, float, complex, str, list, tuple, numpy.generic)

_VIA = ("array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack")


cdef Descriptor parse_exchange(object obj, object stream):
    """By the exchange table of a type other than torch's, which has a module of its own."""
    cls = type(obj)      # held: code of a metaclass may run, and give the object another class
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(cls)
    return None if api == NULL else dlpack.parse_exchange(obj, api)


# ------------------------------------------------------------------------------------------------ memory of the types


cdef enum Labels:          # whether the objects of a type name their dimensions or have an origin
    UNLABELLED
    LABELLED_SOME          # those with attributes of their own for it; most have none
    LABELLED_ALL           # the type has the attributes

cdef enum Known:           # exactly known types, each with a way of its own
    NOT_KNOWN
    OWN_ARRAY
    SCALAR
    NDARRAY
    BYTES
    BUFFER
    TENSOR
    CUPY_ARRAY
    JAX_ARRAY
    ARROW
    DPNP_ARRAY
    USM_NDARRAY
    USM_MEMORY
    WRAPPER
    KNOWN_TYPES            # how many there are

cdef enum:
    # What is remembered of a type: from the lowest bit on, a bit for each row of the ways that may answer; then the two.
    KNOWN_AT = 8
    LABELS_AT = 16
    WORKED_OUT = 1 << 24        # so that it is never 0

    REMEMBERED_TYPES = 4096     # a type that finds both its places taken takes one of them

cdef TypeNote _remembered[REMEMBERED_TYPES]

cdef object _GT_DIMS = sys.intern("__gt_dims__")
cdef object _DIMS = sys.intern("dims")

# Where the known types come from; a subclass of theirs that somebody else defines may have more attributes.
cdef tuple _KNOWN_ROOTS = ("cupy", "dpctl", "dpnp", "jax", "jaxlib", "numpy", "pyarrow", "torch")

# Switched off, known types are read by a protocol each; what their modules know besides is still said.
cdef bint _fast_ways = os.environ.get("ARRAYHUB_DISABLE_FAST_PATHS", "0") in ("", "0")


cdef inline unsigned int speaks_of(unsigned int remembered) noexcept nogil:
    """The rows of the ways that may answer, a bit each."""
    return remembered & (1 << WAYS) - 1


cdef inline Known known_of(unsigned int remembered) noexcept nogil:
    return <Known> (remembered >> KNOWN_AT & 0xFF)


cdef inline Labels labels_of(unsigned int remembered) noexcept nogil:
    return <Labels> (remembered >> LABELS_AT & 0xFF)


cdef unsigned int learn(type cls) except 0:
    """Work out which ways a type may take, and remember it. A changed type has a new version, and is worked out again."""
    cdef unsigned int speaks = 0
    cdef bint bare = arrayhub_bare_instances(<PyTypeObject*> cls)
    cdef int k
    hasattr(cls, _ATTRIBUTES[0])     # a look-up is what makes the interpreter give out the version tag
    cdef unsigned int version = version_tag(<PyTypeObject*> cls)
    cdef Known known = known_type(cls)
    for k in range(WAYS):
        if _WAYS[k].attribute == NULL:
            speaks |= <unsigned int> arrayhub_has_buffer(<PyTypeObject*> cls) << k
        elif _WAYS[k].on_instances and not bare or hasattr(cls, _ATTRIBUTES[k]):
            speaks |= 1 << k
    cdef unsigned int learnt = speaks | known << KNOWN_AT | labels_of_type(cls, known, bare) << LABELS_AT | WORKED_OUT
    # Looking up may run code of a metaclass, which may change the type: then this is known of no version of it.
    write_down(_remembered, REMEMBERED_TYPES, <PyTypeObject*> cls, version, learnt)
    return learnt


cdef inline unsigned int remembered(object obj) except 0:
    """What is known of the type of `obj`; worked out where it is new or has changed."""
    cdef unsigned int known = recall(_remembered, REMEMBERED_TYPES, Py_TYPE(obj))
    return known if known != 0 else learned(type(obj))


cdef unsigned int learned(object cls) except 0:
    """The same of a type that is new or has changed."""
    held = cls      # code of a metaclass may run, and give the only object of this class another one
    return learn(<type> held)      # unchecked, here and below: a subclass of `type` is one too


cdef Labels labels_of_type(type cls, Known known, bint bare) except? UNLABELLED:
    """Which objects of a type have labels."""
    if known == OWN_ARRAY or known == SCALAR:     # the first carries them along
        return UNLABELLED
    if any([hasattr(cls, name) for name in dimensions.ATTRIBUTES]):
        return LABELLED_ALL
    if bare or known != NOT_KNOWN and dlpack.root_of(cls) in _KNOWN_ROOTS:    # whose own arrays have none
        return UNLABELLED
    return LABELLED_SOME


cdef Known known_type(type cls) except? NOT_KNOWN:
    """Which of the known types it is. Its library is found in sys.modules; none is imported to recognise it."""
    if cls is USMArray:
        return OWN_ARRAY
    if issubclass(cls, numpy.generic):     # whose buffers call dates bytes, and whose dicts know nothing of ml_dtypes
        return SCALAR
    if issubclass(cls, numpy.ndarray):
        return NDARRAY
    if cls is bytes:
        return BYTES
    if cls is bytearray or cls is memoryview or cls is getattr(sys.modules.get("array"), "array", None):
        return BUFFER
    if is_torch(cls):
        return TENSOR
    if wrappers.known(cls) is not None:
        return WRAPPER
    cdef str root = dlpack.root_of(cls)
    if root == "cupy" and cls is getattr(sys.modules.get("cupy"), "ndarray", None):
        return CUPY_ARRAY
    if root in ("jaxlib", "jax") and cls.__name__ == "ArrayImpl":
        return JAX_ARRAY
    if root == "pyarrow" and is_arrow(cls):
        return ARROW
    if root == "dpnp" and cls.__name__ == "dpnp_array" and cls is getattr(sys.modules.get("dpnp"), "ndarray", None):
        return DPNP_ARRAY
    if root in ("dpnp", "dpctl") and cls is getattr(sys.modules.get(f"{root}.tensor"), "usm_ndarray", None):
        return USM_NDARRAY
    if root == "dpctl" and cls.__name__ in ("MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"):
        return USM_MEMORY
    return NOT_KNOWN


# One row per known type: past the protocols, or by one of them with what is known besides.
cdef Way _KNOWN_WAYS[<int> KNOWN_TYPES]
_KNOWN_WAYS[<int> NOT_KNOWN] = NULL
_KNOWN_WAYS[<int> OWN_ARRAY] = itself
_KNOWN_WAYS[<int> SCALAR] = copy_scalar
_KNOWN_WAYS[<int> NDARRAY] = numpy_library.parse if _fast_ways else numpy_library.parse_by_dict
_KNOWN_WAYS[<int> BYTES] = buffer.parse_bytes if _fast_ways else buffer.parse
_KNOWN_WAYS[<int> BUFFER] = buffer.parse
_KNOWN_WAYS[<int> TENSOR] = torch_library.parse if _fast_ways else torch_library.parse_by_dlpack
_KNOWN_WAYS[<int> CUPY_ARRAY] = cupy_library.parse if _fast_ways else cupy_library.parse_by_dict
_KNOWN_WAYS[<int> JAX_ARRAY] = jax_library.parse
_KNOWN_WAYS[<int> ARROW] = arrow.parse
_KNOWN_WAYS[<int> DPNP_ARRAY] = dpctl.parse_dpnp if _fast_ways else dpctl.parse_by_dict
_KNOWN_WAYS[<int> USM_NDARRAY] = dpctl.parse_usm_ndarray if _fast_ways else dpctl.parse_by_dict
_KNOWN_WAYS[<int> USM_MEMORY] = dpctl.parse_memory if _fast_ways else dpctl.parse_by_dict
_KNOWN_WAYS[<int> WRAPPER] = parse_wrapper


cdef bint is_torch(type cls) except -1:
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and issubclass(cls, tensor)


cdef bint is_arrow(type cls) except -1:
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and issubclass(
        cls, (pyarrow.Array, pyarrow.ChunkedArray, pyarrow.RecordBatch, pyarrow.Scalar, pyarrow.Table))


# ----------------------------------------------------------------------------------------------------------- way in


cdef inline Descriptor import_array(object obj, object stream):
    """`obj` as an array without a copy, by the first way that answers, in the order of `stream`.

    The ways are told the stream for those that ask a producer anyway, and need not heed it: `on_stream` orders them all.
    """
    cdef unsigned int known = remembered(obj)
    cdef Way way = _KNOWN_WAYS[<int> known_of(known)]
    cdef Descriptor a = None if way == NULL else way(obj, stream)
    if a is None:     # also of a type that only looks like a known one: its protocols are asked like any other's
        a = ask_in_order(obj, stream, speaks_of(known))
    if is_labelled(obj, labels_of(known)):
        a = dimensions.parse(obj, a)
    return a if stream is None else on_stream(a, stream, a is not obj)


cdef Descriptor itself(object obj, object stream):
    return <Descriptor> obj


cdef inline bint is_labelled(object obj, Labels labels) except -1:
    return labels == LABELLED_ALL or labels == LABELLED_SOME and has_names(obj)


cdef bint has_names(object obj) except -1:
    """Whether an object names its dimensions. One that has an origin alone has it in its class."""
    return may_have(obj, _GT_DIMS) or may_have(obj, _DIMS)


cdef inline bint may_have(object obj, object name) except -1:
    """Whether an object has an attribute, or a getter that raises: `dimensions` asks again, and minds the error."""
    cdef int found = arrayhub_look_for(obj, name)
    return found != 0 if found >= 0 else answered()


cdef bint answered() except -1:
    """True where the exception that is set is an answer, which is dropped; else it is raised on."""
    try:
        raise_on()
    except PASSES_ON:
        raise
    except Exception:
        return True


cdef Descriptor ask_in_order(object obj, object stream, unsigned int speaks):
    """Ask each protocol that the type may speak. A refusal (not a false description) passes on to the next."""
    cdef PyObject* answer
    cdef Descriptor a
    cdef list refusals = None
    cdef object reason
    cdef int k
    for k in range(WAYS):
        if not speaks >> k & 1:
            continue
        answer = attempt(_WAYS[k].parse, obj, stream)
        if answer == NULL:
            reason = taken_error()      # first: nothing may run while it is set
            refusals = refusals or []
            refusals.append((_WAYS[k].name.decode(), reason))
            continue
        a = <Descriptor> take(answer)
        if a is not None:
            return a
    return by_other_means(obj, stream, refusals)


cdef object taken_error():
    """The exception that a way has just raised, if it is one that passes on to the next; else it is raised on."""
    try:
        raise_on()
    except InterfaceError:
        raise
    except PASSES_ON:
        raise
    except (AttributeError, BufferError, ImportError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return error


cdef Descriptor by_other_means(object obj, object stream, list refusals):
    """What speaks no protocol: a bare capsule, a scalar or a sequence."""
    if PyCapsule_CheckExact(obj):
        return dlpack.parse_capsule(obj, False, None)
    if isinstance(obj, _VALUES):
        return copy_python_values(obj)
    if refusals:
        error = refusals[0][1]
        reasons = "; ".join(f"{way}: {reason}" for way, reason in refusals)
        kind = type(error) if type(error) in (BufferError, ImportError, TypeError) else BufferError
        raise kind(f"asarray: {type(obj).__name__} refuses every protocol it has ({reasons})") from error
    raise TypeError(
        f"asarray: {show(obj)} is of type {type(obj).__name__}, which speaks no array protocol{wrappers.hint(obj)}; accepted:"
        " anything with __sycl_usm_array_interface__, __cuda_array_interface__, a buffer, __dlpack__, __array_interface__ or"
        " __array_struct__, a DLPack capsule, numbers, and nested sequences of numbers"
    )


cdef Descriptor parse_wrapper(object obj, object stream):
    """The array in a wrapper of a known type, if that is its own memory in its own type."""
    Py_EnterRecursiveCall(" in arrayhub.asarray: a wrapper in a wrapper without end")
    try:
        inner = wrappers.inside(obj)
        a = import_array(inner, None)      # the caller orders it
        again = wrappers.inside(obj)
        wrappers.check(obj, a, a if again is inner else import_array(again, None))
        return a
    finally:
        Py_LeaveRecursiveCall()


cdef Descriptor copy_scalar(object obj, object stream):
    return copy_python_values(obj)


cdef Descriptor copy_python_values(object obj):
    """Python numbers and nested sequences, through NumPy: the one copy that nobody has to ask for."""
    try:
        array = numpy.array(obj)
    except ValueError as error:
        raise TypeError(f"asarray: {show(obj)} is no regular nested sequence of numbers ({error})") from error
    if array.dtype == object:
        raise TypeError(f"asarray: {show(obj)} would become an array of Python objects; accepted: numbers of one type")
    cdef Descriptor a = numpy_library.parse(array, None)
    a.flags_ |= COPIED
    return a


cdef Descriptor import_allowed(object obj, object copy, str call, object stream):
    """`obj` as an array, if what comes in is what ``copy=`` allows."""
    cdef Descriptor a = import_array(obj, stream)
    if copy is not None and wanted(copy, call) is False:
        forbid_copy(a, obj, call)
    return a


cdef Descriptor import_via(object obj, object stream, object via):
    """`obj` by the one protocol that the caller chose."""
    cdef Descriptor a
    if via not in _VIA:
        raise ValueError(f"asarray: via is {show(via)}; accepted: {', '.join(_VIA)}")
    if via == "dlpack" and PyCapsule_CheckExact(obj):
        a = dlpack.parse_capsule(obj, False, None)
        return a if stream is None else on_stream(a, stream, True)
    a = ask(obj, stream, via)
    if a is None:
        raise TypeError(
            f"asarray: {type(obj).__name__} does not speak {via!r}; leave via out to take the protocol that it does"
        )
    if is_labelled(obj, labels_of(remembered(obj))):
        a = dimensions.parse(obj, a)
    return a if stream is None else on_stream(a, stream, True)


cdef Descriptor ask(object obj, object stream, object protocol):
    """`obj` by one protocol; None where it does not speak it."""
    cdef int k
    cls = type(obj)
    if protocol == "dlpack" and is_torch(<type> cls):     # whose own __dlpack__ crashes on some of its tensors
        return _KNOWN_WAYS[<int> TENSOR](obj, stream)
    if wrappers.known(cls) is not None:     # whose own description of the memory leaves out what they add to it
        raise wrappers.wrapper_error(obj, "is asked for no protocol")
    if issubclass(cls, numpy.ndarray):
        numpy_library.refuse_mask(obj)
    for k in range(WAYS):
        if _WAYS[k].name.decode() == protocol:
            return _WAYS[k].parse(obj, stream)
    raise ValueError(f"asarray: no protocol is called {show(protocol)}; accepted: those of ways_in")


# ---------------------------------------------------------------------------- the same, to be looked at (see inspection)


def ways_in(cls, /):
    """Return whether a type is known exactly, and the names of the protocols its instances are asked for, in order."""
    if not isinstance(cls, type):
        raise TypeError(f"ways_in: {show(cls)} is no type")
    cdef unsigned int known = learn(<type> cls)
    names = [_WAYS[k].name.decode() for k in range(WAYS) if speaks_of(known) >> k & 1]
    return known_of(known) != NOT_KNOWN, tuple(names)


def offer(obj, protocol, /):
    """Return what `obj` gives by a protocol of `ways_in`: an array, or None where it does not speak it."""
    return ask(obj, None, protocol)


def peek(capsule, /):
    """Return what a DLPack capsule would give, without consuming it. The array is valid while nobody else does."""
    return dlpack.peek(capsule)


# --------------------------------------------------------------------------------------------------- public functions


def asarray(obj, /, *, dtype=None, device=None, copy=None, stream=None, via=None):
    """Take any foreign array as a USMArray, without a copy.

    Parameters
    ----------
    obj : object
        An array of numpy, torch, jax, cupy, dpnp, dpctl, numba, pyarrow, ...; anything that speaks one of the protocols;
        a DLPack capsule; bytes-like objects; numbers and nested sequences of numbers (these are copied, through NumPy).
    dtype : optional
        The element type wanted; a copy is made where it differs.
    device : Device, str, tuple or object, optional
        Where the array is wanted; a copy is made where it is elsewhere.
    copy : bool, optional
        True: always copy. False: never, BufferError instead. None: only where `dtype` or `device` asks for it.
    stream : optional
        The stream or queue on which the caller will use the memory: None, an integer handle, an object with
        ``__cuda_stream__``, ``.ptr`` or ``.cuda_stream``, or a ``dpctl.SyclQueue``.
    via : {"array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack"}, optional
        Choose the protocol by hand.

    Returns
    -------
    USMArray
        `obj` itself where it is one already and nothing else was asked for. It has the names of dimensions and the origin
        that `obj` gives by ``__gt_dims__``, ``__gt_origin__`` or ``dims``.

    Raises
    ------
    TypeError
        `obj` speaks no protocol, or holds Python objects.
    InterfaceError
        What `obj` says of its memory is not true or not allowed (a ValueError).
    BufferError
        The memory cannot be had without a copy, or not at all; the message names the call to make instead.
    """
    cdef object order = stream if device is None else None     # of a copy elsewhere it is the target's stream
    cdef Descriptor a = import_array(obj, order) if via is None else import_via(obj, order, via)
    if dtype is None and device is None and copy is None:
        return a
    return converted(a, obj, dtype, device, copy, stream)


cdef object converted(Descriptor a, object obj, object dtype, object device, object copy, object stream):
    """The slow end of asarray: what was asked for besides a view."""
    copy = wanted(copy, "asarray")
    if copy is False:
        forbid_copy(a, obj, "asarray")
    result = a
    if dtype is not None and not same_dtype(a, dtype):
        if copy is False:
            raise BufferError(
                f"asarray: from {a.dtype!r} to {requested_dtype(dtype)!r} takes a copy, and copy=False forbids one"
            )
        if device is not None and not host_readable(a):     # on the host there is somebody who converts
            result = transfer.to_device(result, device, stream=stream)
        result = transfer.astype(result, requested_dtype(dtype))
    if device is not None:
        result = transfer.to_device(result, device, copy=copy if result is a else None, stream=stream)
    if copy and shares(a, result) and not (isinstance(obj, _VALUES) and a.flags_ & COPIED):
        result = transfer.copy(result, stream=stream)
    return result


cdef int forbid_copy(Descriptor a, object obj, str call) except -1:
    """For copy=False: refuse an array that was a copy as soon as it came in.

    A copy that the caller holds, as itself or in a wrapper, is the caller's memory like any other.
    """
    if a.flags_ & COPIED and a is not obj and wrappers.known(type(obj)) is None:
        raise BufferError(f"{call}: {type(obj).__name__} gives no memory to view but a copy, and copy=False forbids one")
    return 0


cdef bint shares(Descriptor a, object result):
    return a.memory is result.memory


cdef bint same_dtype(Descriptor a, object dtype) except -1:
    return a.dtype == requested_dtype(dtype)


def from_dlpack(obj, /, *, device=None, copy=None):
    """Take an array by DLPack, as the array API standard names it.

    Parameters
    ----------
    obj : object
        A producer with ``__dlpack__``, or a capsule.
    device : Device, str, tuple or object, optional
        Where the array is wanted.
    copy : bool, optional
        As in `asarray`.

    Returns
    -------
    USMArray
    """
    return asarray(obj, via="dlpack", device=device, copy=copy)


def to_host(obj, /, *, out=None, copy=None, stream=None, progress=None):
    """Return an array in host memory: the explicit device-to-host copy.

    A copy comes after the work that the producer has queued on the array, and moves only the bytes that the array
    reaches. docs/copies.md says what is waited for.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes.
    out : object, optional
        Host memory to copy into: anything `asarray` takes that is writable, of the same shape and element type, in any
        layout whose elements do not overlap each other. Where it overlaps `obj` it gets the values from before.
    copy : bool, optional
        None: a view where the host can read the memory (host and shared USM, pinned and managed CUDA memory, after the
        wait that makes it safe), else a copy. True: always copy. False: never, BufferError instead.
    stream : optional
        The stream to order the copy on, see `asarray`. CUDA memory into a pinned `out` is then copied asynchronously:
        synchronise the stream before `out` is read.
    progress : bool or callable, optional
        True: a bar while a long copy runs, by tqdm where it is installed. A function is called, in this thread, with
        the bytes copied so far and all bytes; what it raises ends the copy.

    Returns
    -------
    USMArray
        On the device ``cpu``; `out` itself where it was given.

    Raises
    ------
    ValueError
        `out` is of another shape or element type, read-only, on a device, or overlaps itself.
    BufferError
        ``copy=False`` where a copy is needed, or no engine reads the memory.
    MemoryError
        The host, or the device, has not enough memory.
    """
    a = import_allowed(obj, copy, "to_host", None)
    if out is None:
        return transfer.to_host(a, copy=copy, stream=stream, progress=progress)
    transfer.to_host(a, out=import_array(out, None), copy=copy, stream=stream, progress=progress)
    return out


def to_device(obj, device, /, *, copy=None, stream=None, progress=None):
    """Return an array on a device, copied there unless it is there already.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes.
    device : Device, str, tuple or object
        Where to; see `Device`.
    copy : bool, optional
        True: copy even if it is there. False: BufferError if it is not.
    stream : optional
        The stream to order the copy on, see `asarray`.
    progress : bool or callable, optional
        As in `to_host`.

    Returns
    -------
    USMArray
        `obj` may be written again at once.

    Raises
    ------
    BufferError
        There is no such device, no engine copies to it, or ``copy=False`` forbids what is needed.
    MemoryError
        The host, or the device, has not enough memory.
    """
    a = import_allowed(obj, copy, "to_device", None)
    return transfer.to_device(a, device, copy=copy, stream=stream, progress=progress)


# ---------------------------------------------------------------------------------------------------------- ways out


cdef Descriptor import_for(object obj, object copy, str call, object copier, str device_type):
    """`obj` for a library that knows `device_type`: a view, or what `copier` makes of it where a copy is asked for."""
    cdef Descriptor a = import_allowed(obj, copy, call, None)
    return copier(a, device_type) if copy is not None and copy else a


def as_numpy(obj, /, *, copy=None):
    """Return a ``numpy.ndarray`` on the memory of `obj`.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes.
    copy : bool, optional
        True: a copy, from wherever the memory is. Otherwise zero-copy or BufferError; False refuses lists and numbers
        too, which have no memory to view.

    Returns
    -------
    numpy.ndarray
        Read-only where the memory is.
    """
    return numpy_library.emit(import_for(obj, copy, "as_numpy", transfer.copy_for, "cpu"))


def as_torch(obj, /, *, copy=None, allow_readonly=False):
    """Return a ``torch.Tensor`` on the memory of `obj`; see `as_numpy`.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes.
    copy : bool, optional
        True: a copy. Otherwise zero-copy or BufferError.
    allow_readonly : bool, optional
        Give out read-only memory all the same: torch has no read-only tensors, so the caller promises not to write.

    Returns
    -------
    torch.Tensor
    """
    return torch_library.emit(import_for(obj, copy, "as_torch", transfer.copy_for, "cuda"), allow_readonly)


def as_jax(obj, /, *, copy=None):
    """Return a ``jax.Array`` on the memory of `obj`; see `as_numpy`. jax takes compact memory on a 64-byte boundary."""
    cdef Descriptor a = import_for(obj, copy, "as_jax", transfer.copy_for, "cuda")
    return jax_library.emit(a, bool(copy))


def as_cupy(obj, /, *, copy=None, allow_readonly=False):
    """Return a ``cupy.ndarray`` on the memory of `obj`; see `as_numpy` and, for `allow_readonly`, `as_torch`."""
    return cupy_library.emit(import_for(obj, copy, "as_cupy", transfer.copy_to, "cuda"), allow_readonly)


def as_dpnp(obj, /, *, copy=None):
    """Return a ``dpnp.ndarray`` on the memory of `obj`; see `as_numpy`."""
    return dpctl.emit_dpnp(import_for(obj, copy, "as_dpnp", transfer.copy_to, "oneapi"))


def as_numba(obj, /, *, copy=None):
    """Return what numba takes: a ``numpy.ndarray`` for host memory, a device array for CUDA's; see `as_numpy`."""
    from arrayhub.libraries import numba

    return numba.emit(import_for(obj, copy, "as_numba", transfer.copy_for, "cuda"))


cdef object asarray_of_one(object obj):
    return import_array(obj, None)


cdef object as_numpy_of_one(object obj):
    return numpy_library.emit(import_array(obj, None))


cdef object as_torch_of_one(object obj):
    return torch_library.emit(import_array(obj, None), False)


register_way_in(asarray)
arrayhub_asarray_shortcut(asarray, asarray_of_one, <PyTypeObject*> USMArray)
arrayhub_as_numpy_shortcut(as_numpy, as_numpy_of_one, NULL)
arrayhub_as_torch_shortcut(as_torch, as_torch_of_one, NULL)
for _function in (asarray, as_numpy, as_torch):
    refer_from_everywhere(_function)


# One row per library that `convert` knows by name.
_WAYS_OUT = {
    "numpy": as_numpy,
    "torch": as_torch,
    "jax": as_jax,
    "cupy": as_cupy,
    "dpnp": as_dpnp,
    "numba": as_numba,
}


CONSUMERS = tuple(_WAYS_OUT)


def convert(obj, to="torch", *, copy=None):
    """Return `obj` as an array of the library that `to` names.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes.
    to : {"numpy", "torch", "jax", "cupy", "dpnp", "numba"}
        The library.
    copy : bool, optional
        True: a copy. Otherwise zero-copy or BufferError.
    """
    way = _WAYS_OUT.get(to)
    if way is None:
        raise ValueError(f"convert: to is {show(to)}; accepted: {', '.join(_WAYS_OUT)}")
    return way(obj, copy=copy)
