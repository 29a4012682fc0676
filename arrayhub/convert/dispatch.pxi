"""Import of an object by the importer of its library if the type is known, else by the first protocol that succeeds.

`adapters/table` defines the order of the protocols, and `libraries/table` the importers of libraries.
"""

import sys
from datetime import datetime, timedelta

import numpy

cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.pycapsule cimport PyCapsule_CheckExact
from libc.math cimport fabs, isinf

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport Descriptor, get_dtype, host_readable, size_of
from arrayhub._core.cpython.atomics cimport item_of
from arrayhub._core.cpython.exceptions cimport raise_on, take
from arrayhub._core.runtime cimport device_name
from arrayhub.adapters cimport arrow, buffer, dlpack, interface_dict
from arrayhub.adapters.type_cache cimport (
    DLPACK_BY_IMPORTER,
    EXPORTS,
    KNOWN_AT,
    LABELS_AT,
    PROTOCOL_BITS,
    REMEMBERED_WRAPPERS,
    HAS_DLPACK_DEVICE,
    COMPUTED,
    learn,
    record_of,
    register_compute_record,
)
from arrayhub.adapters cimport type_cache
from arrayhub._core.cpython.type_notes cimport recall, version_tag
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.libraries.numpy cimport is_value
from arrayhub.libraries.known cimport (
    MAX_IMPORTERS,
    OWN_ARRAY,
    SPARSE,
    WRAPPER,
    Importer,
    Library,
    check_arrow_export,
    importer_of_type,
    importers,
    library_of_type,
)
from arrayhub.runtimes.host cimport on_stream
from arrayhub.array.usm_array cimport USMArray

from arrayhub._core.errors import (
    PASSES_ON,
    InterfaceError,
    Refusal,
    TypeRefusal,
    form_of,
    locate_refusal,
    name_of_type,
    reason_of,
    root_of,
    show,
)
from arrayhub.adapters.table import BY_VIA, PROTOCOLS

cdef extern from *:
    """
    static int arrayhub_has_buffer(PyTypeObject *type) {
        return type->tp_as_buffer != NULL && type->tp_as_buffer->bf_getbuffer != NULL;
    }
    /* Return whether an object has an attribute; -1 with an exception set if the getter raises. */
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
    /* Call an importer without Cython's `try`. After an error, the result is NULL and an exception is set. */
    #define arrayhub_attempt(importer, obj, stream) ((PyObject *)importer(obj, stream))
    static int arrayhub_bare_instances(PyTypeObject *type) {
        return type->tp_dictoffset == 0 && !PyType_HasFeature(type, (1UL << 4)) &&
               type->tp_getattro == PyObject_GenericGetAttr;
    }
    """
    PyObject* attempt "arrayhub_attempt"(Importer importer, object obj, object stream) noexcept
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()
    bint arrayhub_has_buffer(PyTypeObject* cls) nogil
    int arrayhub_look_for(object obj, object name) noexcept
    bint arrayhub_bare_instances(PyTypeObject* cls) nogil
    bint PyType_IsSubtype(PyTypeObject* cls, PyTypeObject* base) nogil


# ------------------------------------------------------------------------------------------------------ the protocols


cdef dict _ROWS = {row.name: k for k, row in enumerate(PROTOCOLS)}
cdef dict _VIA = {name: _ROWS[name] for name in BY_VIA}
cdef int _DLPACK = _ROWS["dlpack"]
cdef int _ARROW = _ROWS["arrow"]

# The importer of each protocol, in the order of the rows of adapters/table.
cdef Importer _parse[PROTOCOL_BITS]
_parse[<int> _ROWS["sycl"]] = interface_dict.parse_sycl_usm
_parse[<int> _ROWS["cuda"]] = interface_dict.parse_cuda_array
_parse[<int> _ROWS["exchange"]] = dlpack.parse_by_exchange
_parse[<int> _ROWS["buffer"]] = buffer.parse
_parse[<int> _ROWS["dlpack"]] = dlpack.parse
_parse[<int> _ROWS["array_interface"]] = interface_dict.parse_array_interface
_parse[<int> _ROWS["array_struct"]] = interface_dict.parse_struct
_parse[<int> _ROWS["arrow"]] = arrow.parse
if len(PROTOCOLS) > PROTOCOL_BITS or any([_parse[k] == NULL for k in range(len(PROTOCOLS))]):
    raise ImportError("convert/dispatch lacks an importer for a protocol of adapters/table")


# --------------------------------------------------------------------------------------------- the record of a type


importers[OWN_ARRAY] = return_own
importers[WRAPPER] = parse_wrapper

cdef enum Labelled:          # which objects of a type have dimension names or an origin
    UNLABELLED
    LABELLED_SOME          # only objects whose instance dict contains the attributes
    LABELLED_ALL           # all objects, because the type has the attributes

cdef PyTypeObject* _NDARRAY = <PyTypeObject*> numpy.ndarray
cdef tuple PLAIN = (int, float, complex, str, bytes)      # types that `check_level` accepts without further checks

cdef object _GT_DIMS = sys.intern("__gt_dims__")
cdef object _DIMS = sys.intern("dims")


cdef unsigned int compute_record(type cls) except 0:
    """Compute the record of a type: its importer, the protocols that it may support, and the traits of its library."""
    if <PyTypeObject*> cls != _NDARRAY:
        from arrayhub.libraries import plugins

        plugins.load_libraries_of(cls)
    cdef bint bare = arrayhub_bare_instances(<PyTypeObject*> cls)
    cdef int importer = importer_number(cls)
    cdef Library library = library_of_type(cls, importer if importer < SPARSE else 0) if importer != OWN_ARRAY else None
    # Instances of a library's own types do not have protocols or labels beside those of the type.
    bare = bare or library is not None and root_of(cls) in library.roots
    cdef unsigned int record = importer << KNOWN_AT | labels_of_type(cls, importer, library, bare) << LABELS_AT | COMPUTED
    cdef int k
    for k, row in enumerate(PROTOCOLS):
        if row.on_instances and not bare or supports(cls, row.attributes):
            record |= 1 << k
    record |= arrow.interfaces_of(cls)
    if has(cls, "__dlpack__"):
        record |= EXPORTS
    if has(cls, "__dlpack_device__"):
        record |= HAS_DLPACK_DEVICE
    return record if library is None else record | library.traits


cdef bint supports(type cls, tuple attributes) except -1:
    """Return whether a type has one of the given attributes. For (), return whether it supports the buffer protocol."""
    if not attributes:
        return arrayhub_has_buffer(<PyTypeObject*> cls)
    for name in attributes:
        if has(cls, name):
            return True
    return False


cdef bint has(type cls, object name) except -1:
    """Return whether a type has an attribute. A subclass can disable an attribute by setting it to None."""
    return getattr(cls, name, None) is not None


cdef int importer_number(type cls) except -1:
    """Return the number of the importer that is called before any protocol, or 0 for a type without an importer."""
    if cls is USMArray:
        return OWN_ARRAY
    if <PyTypeObject*> cls == _NDARRAY:
        return importer_of_type(cls)
    from arrayhub.libraries import wrappers

    row = wrappers.known(cls)
    if row.sparse is not None:
        return SPARSE
    cdef int importer = importer_of_type(cls)
    if row.asked or importer != 0 and row.root in library_of_type(cls, importer).roots:
        return importer
    return WRAPPER      # also for a subclass of a type with an importer, such as a Quantity, which is an ndarray


cdef Labelled labels_of_type(type cls, int importer, Library library, bint bare) except? UNLABELLED:
    """Return which objects of a type may have labels."""
    # A USMArray has its labels in a field. The importer of a library's own type adds the labels that the type may have.
    # Subclasses that other modules define may have labels.
    if importer == OWN_ARRAY or importer != 0 and library is not None and root_of(cls) in library.roots:
        return UNLABELLED
    from arrayhub.adapters.dimensions import ATTRIBUTES

    if any([hasattr(cls, name) for name in ATTRIBUTES]):
        return LABELLED_ALL
    return UNLABELLED if bare else LABELLED_SOME


cdef inline unsigned int protocols_of(unsigned int record) noexcept nogil:
    """Return a bitmask of the protocols that the type may support, with one bit per table row."""
    return record & (1 << PROTOCOL_BITS) - 1


cdef inline int importer_of(unsigned int record) noexcept nogil:
    return record >> KNOWN_AT & MAX_IMPORTERS - 1


cdef inline Labelled labels_of(unsigned int record) noexcept nogil:
    return <Labelled> (record >> LABELS_AT & 3)


register_compute_record(compute_record)


# ----------------------------------------------------------------------------------------------------------- import


cdef Descriptor import_array(object obj, object stream):
    """Import `obj` without a copy, through its importer or the first protocol that succeeds.

    Some importers pass `stream` to the producer. In every case, `on_stream` makes the stream wait for the producer's work.
    """
    cdef unsigned int record = record_of(obj)
    cdef Importer importer = importers[importer_of(record)]
    cdef Descriptor a = None
    if importer != NULL:       # not a conditional expression, for which Cython would check the type of the result
        a = importer(obj, stream)
    if a is None:     # an importer returns None for objects that it leaves to the protocols
        a = try_protocols(obj, stream, protocols_of(record))
    if labels_of(record) != UNLABELLED:
        a = add_labels(obj, a, labels_of(record))
    return a if stream is None else on_stream(a, stream, a is not obj)


cdef Descriptor return_own(object obj, object stream):
    return <Descriptor> obj


cdef Descriptor add_labels(object obj, Descriptor a, Labelled labels):
    """Return `a`, which was imported from `obj`, with the labels of `obj`.

    An origin without names is read only if the type has the attribute (LABELLED_ALL).
    """
    if labels == UNLABELLED or labels == LABELLED_SOME and not may_have(obj, _GT_DIMS) and not may_have(obj, _DIMS):
        return a
    from arrayhub.adapters.dimensions import parse

    return parse(obj, a)


cdef inline bint may_have(object obj, object name) except -1:
    """Return whether an object has an attribute, including one whose getter raises. `dimensions` handles this error."""
    cdef int found = arrayhub_look_for(obj, name)
    return found != 0 if found >= 0 else fetch_refusal() is not None


cdef Descriptor try_protocols(object obj, object stream, unsigned int supported):
    """Try the protocols that the type may support until one succeeds. An InterfaceError propagates."""
    cdef PyObject* answer
    cdef Descriptor a
    cdef list refusals = None
    cdef object reason
    cdef int k
    for k in range(PROTOCOL_BITS):
        if not supported >> k & 1:
            continue
        answer = attempt(_parse[k], obj, stream)
        if answer == NULL:
            reason = fetch_refusal()      # first, because no code may run while an exception is set
            refusals = refusals or []
            refusals.append((PROTOCOLS[k].words, reason))
            continue
        a = <Descriptor> take(answer)
        if a is not None:
            return a
    return by_other_means(obj, refusals)


cdef inline bint is_sparse(object obj) except -1:
    """Return whether `obj` belongs to a type of sparse arrays."""
    return importer_of(record_of(obj)) == SPARSE


cdef object fetch_refusal():
    """Clear and return the pending exception if the next protocol may be tried, otherwise raise it."""
    try:
        raise_on()
    except InterfaceError:
        raise
    except PASSES_ON:
        raise
    except Exception as error:      # libraries define exceptions of their own
        reason = error
    return reason


cdef Descriptor by_other_means(object obj, list refusals):
    """Import a DLPack capsule, a scalar or a sequence, or raise the error for an object that no protocol has imported."""
    cdef Descriptor a
    if PyCapsule_CheckExact(obj):
        return dlpack.parse_capsule(obj, False, None)
    if is_value(obj):
        numpy_library.refuse_endless(obj, "asarray")
        values = import_elements(obj)      # first, because NumPy calls methods of the elements, which may run a query
        from arrayhub.array.casting import are_unsigned, check_common, no_type_error

        try:
            a = numpy_library.copy_values(values)
        except OverflowError as error:
            raise form_of(no_type_error(obj, error, "asarray")) from error
        if isinstance(obj, (list, tuple)) and may_have_lost(a):
            if a.typenum_ == cnp.NPY_DOUBLE and are_unsigned(values):      # NumPy rounds integers of int64 and uint64
                return numpy_library.copy_values_as(values, numpy.dtype("u8"))
            try:
                check_common(values, numpy_library.emit(a), "asarray")
            except (OverflowError, TypeError) as error:
                raise form_of(error)
        return a
    if isinstance(obj, Tree):
        content = hooks.nested_array.unwrap_flat(obj)
        if isinstance(content, Descriptor):      # Arrow does not have the strides of its elements
            return content
    if refusals:
        raise refusal_error(obj, refusals) from refusals[0][1]
    from arrayhub.libraries import wrappers

    raise TypeRefusal(
        "asarray",
        f"{show(obj)} is of type {type(obj).__name__}, which does not support an array protocol{wrappers.hint(obj)}",
        "arrays, buffers, columns and tables, numbers, and lists of numbers",
        wrappers.advise(obj)[0],
    )


cdef object refusal_error(object obj, list refusals):
    """Return the error for an object whose protocols have all failed. `refusals` contains (protocol, error) pairs.

    The prefix of the message is the protocol if only one has failed, and `asarray` if several have failed.
    """
    cdef bint single = len(refusals) == 1
    cls = name_of_type(type(obj))
    words, error = refusals[0]
    from arrayhub.libraries import wrappers

    if isinstance(error, ImportError):
        return error
    call = next((reason.call for _, reason in refusals if isinstance(reason, Refusal) and reason.call), "")
    hint = "" if call else wrappers.hint(obj, True)
    call = call or wrappers.advise(obj)[0]
    kind = TypeRefusal if isinstance(error, TypeError) else Refusal
    if not single:
        said = "; ".join([f"{words}: {reason_of(reason)}" for words, reason in refusals])
        return kind("asarray", f"all protocols of {cls} failed ({said}){hint}", call=call)
    if isinstance(error, Refusal):      # of this package
        return kind(error.subject, error.reason + hint, error.accepted, call)
    return kind(words, f"{cls} refuses: {error}{hint}", call=call)


cdef double EXACT = 2.0 ** 53     # float64 represents all integers below this limit


cdef bint may_have_lost(Descriptor a) except -1:
    """Return whether the conversion of a sequence to one element type may have changed values.

    float64 represents all integers below 2**53, so values below this limit have not changed.
    """
    cdef Py_ssize_t k
    if a.typenum_ != cnp.NPY_DOUBLE:
        return get_dtype(a).kind not in "?biu"
    for k in range(size_of(a)):
        if fabs((<double*> a.data_)[k]) >= EXACT and not isinf((<double*> a.data_)[k]):
            return True
    return False


cpdef object import_elements(object obj):
    """Return a value or a sequence with its arrays replaced by the ndarrays of what `asarray` imports.

    Raise an error for a value, or an element of a sequence, that `asarray` rejects. NumPy would silently discard a mask, a unit
    or a missing value, or read the buffer of a video plane with the padding of its rows.
    """
    return numpy_library.with_ndarrays(obj) if check_level(obj, 0, {}) else obj


cpdef bint check_level(object obj, int level, dict seen) except -1:
    """Check a value, or a sequence that is nested in `level` other sequences. Return whether it contains an array.

    `seen` contains the visited sequences by id, because sequences may form cycles.
    """
    cdef bint has_arrays = False
    cdef type cls
    cdef Py_ssize_t k = -1
    if not isinstance(obj, (list, tuple)):
        return 0 if issubclass(type(obj), PLAIN) else check_value(obj, level, seen)
    if level > layout.MAX_NDIM:
        return 0
    if level > 0:
        if id(obj) in seen:
            return 0
        seen[id(obj)] = obj
    for item in obj:
        k += 1
        cls = type(item)
        if cls is float or cls is int or <PyTypeObject*> cls == _NDARRAY or issubclass(cls, PLAIN):      # fastest test first
            continue
        try:
            has_arrays |= check_value(item, level, seen)
        except (BufferError, TypeError) as error:
            raise locate_refusal(error, f"x[{k}]") from error
    return has_arrays


cdef bint check_value(object item, int level, dict seen) except -1:
    """Check an element of a sequence that is nested in `level` other sequences. Return whether it is or contains an array."""
    cdef type cls = type(item)
    cdef unsigned int record
    if isinstance(item, (list, tuple)):
        return check_level(item, level + 1, seen)
    if issubclass(cls, datetime) and item.tzinfo is not None:
        raise TypeRefusal("asarray", f"{show(item)} has a time zone", "datetimes without a time zone, such as"
                          " x.astimezone(datetime.timezone.utc).replace(tzinfo=None). arrayhub.asnested keeps the time zone")
    elif cls is not numpy.ndarray and not issubclass(cls, numpy.generic):
        numpy_library.refuse_mask(item)
        numpy_library.refuse_unit(item)
        if cls.__name__ in ("NAType", "NaTType"):      # of pandas.NA and pandas.NaT
            from arrayhub.libraries import wrappers

            wrappers.refuse_missing(item)
        record = record_of(item)
        # NumPy would convert a pandas.Timestamp like the datetime that it derives from, without nanoseconds.
        is_derived_time = issubclass(cls, (datetime, timedelta)) and cls is not datetime and cls is not timedelta
        if importer_of(record) != 0 or protocols_of(record) or is_derived_time:
            check_element(item)
            return True
    return False


cdef int check_element(object item) except -1:
    """Raise the error of an element that cannot be imported. Elements are copied, so that the memory need not be shared."""
    cdef Descriptor a
    try:
        a = import_array(item, None)
    except BufferError:
        resolved = copy_unshared(item)
        if resolved is None:
            raise
        a = import_array(resolved, None)
    if not host_readable(a):
        raise Refusal("asarray", f"the memory is on {device_name(a)}, which the host cannot read", call="arrayhub.to_host(x)")
    return 0


cdef list _wrappers = [None]      # rows of the table of wrappers, indexed by number
cdef dict _numbers = {}           # index in _wrappers of each row, keyed by id(row)


cdef object wrapper_of(object obj):
    """Return the table row of a wrapper's type. The number of the row is cached, because the search compares names."""
    cdef unsigned int number = recall(type_cache.wrappers, REMEMBERED_WRAPPERS, Py_TYPE(obj))
    cdef unsigned int version = version_tag(Py_TYPE(obj))
    cdef int looked_up_in = type_cache.types_generation()
    if number != 0:
        return item_of(_wrappers, number)
    from arrayhub.libraries import wrappers

    row = wrappers.known(type(obj))
    number = type_cache.number_of(_wrappers, _numbers, id(row), row)
    type_cache.write_since(looked_up_in, type_cache.wrappers, REMEMBERED_WRAPPERS, Py_TYPE(obj), version, number)
    return row


cdef Descriptor parse_wrapper(object obj, object stream):
    """Import the array in a wrapper of a known type, or the array that a plug-in's function returns for `obj`.

    Return None if the plug-in leaves the import to the protocols of `obj`. The array is read twice, because a copy on each
    access, in which writes would be lost, is an error.
    """
    cdef Descriptor a, again
    from arrayhub.libraries import wrappers

    Py_EnterRecursiveCall(" in arrayhub.asarray: wrappers are nested too deeply")
    try:
        row = wrapper_of(obj)
        inner = read_inner(obj, row, wrappers)
        if inner is None and (row.root, None) in wrappers.TYPES:
            return None
        a = import_inner(obj, row, inner, wrappers)
        second = read_inner(obj, row, wrappers)
        is_same = second is inner and not is_value(inner)      # values are copied
        again = a if is_same else import_inner(obj, row, second, wrappers)
        if a.data_ != again.data_ and size_of(a):
            wrappers.raise_fault(row, obj, f"returned {name_of_type(type(inner))} with a copy")
        if a is not again and a.shape != again.shape:
            wrappers.raise_fault(row, obj, f"returned shapes {a.shape} and {again.shape} in two calls for this object")
        check_declared(row, obj, a, wrappers)
        return a
    finally:
        Py_LeaveRecursiveCall()


cdef int check_declared(object row, object obj, Descriptor a, object wrappers) except -1:
    """Compare the array of a wrapper with the wrapper's shape and element type."""
    shape = getattr(obj, "shape", a.shape)
    # In a type of a plug-in, a `shape` that is not a tuple may have another meaning.
    if (row.parse is None or isinstance(shape, tuple)) and tuple(shape) != a.shape:
        wrappers.raise_fault(row, obj, f"returned shape {a.shape} for an object of shape {show(shape)}")
    dtype = row.dtype(obj)
    if dtype is not None and dtype != get_dtype(a):
        wrappers.raise_fault(row, obj, f"returned elements of {get_dtype(a)} for an object of dtype {dtype}")
    return 0


cdef object read_inner(object obj, object row, object wrappers):
    """Read the object that holds the memory of a wrapper, or call a plug-in's function for it."""
    if row.parse is None:
        return wrappers.inside(obj, row)
    try:
        inner = row.parse(obj)
    except MemoryError:
        raise
    except Exception as error:
        wrappers.raise_fault(row, obj, "raised", error, TypeError)
    if type(inner) is type(obj):
        wrappers.raise_fault(row, obj, "returned an object of the same type")
    return inner


cdef Descriptor import_inner(object obj, object row, object inner, object wrappers):
    """Import `inner`, which was read from the wrapper `obj`. Errors name the path or the plug-in's function."""
    try:
        return import_array(inner, None)      # without the stream, because the caller calls on_stream
    except MemoryError:
        raise
    except Exception as error:
        if row.parse is not None:
            wrappers.raise_fault(row, obj, f"returned {name_of_type(type(inner))}:", error)
        if not isinstance(error, (BufferError, TypeError)):
            raise
        raise locate_refusal(error, f"x.{row.attribute}") from error


cdef Descriptor import_via(object obj, object stream, object via):
    """Import `obj` through the protocol that the caller chose."""
    cdef Descriptor a
    row = _VIA.get(via) if isinstance(via, str) else None
    if row is None:
        raise ValueError(f"asarray: via is {show(via)}; accepted: {', '.join(_VIA)}")
    cdef unsigned int record = record_of(obj)
    a = None
    if <int> row == _DLPACK and PyCapsule_CheckExact(obj):
        a = dlpack.parse_capsule(obj, False, None)
    elif <int> row == _DLPACK and record & DLPACK_BY_IMPORTER and importer_of(record) != 0:
        a = importers[importer_of(record)](obj, stream)
    if a is None:
        if importer_of(record) != 0:
            from arrayhub.libraries import wrappers

            if wrappers.known(type(obj)).refuses_protocols:
                raise wrappers.wrapper_error(obj, "is not imported through protocols")
        if is_ndarray(obj):
            numpy_library.check_subclass(obj)
        if <int> row == _ARROW and is_image(obj):
            check_arrow_export(obj)
        a = parse_dlpack(obj, stream) if <int> row == _DLPACK else _parse[<int> row](obj, stream)
    if a is None:
        raise TypeError(
            f"asarray: {name_of_type(type(obj))} does not support the protocol {via!r}; accepted: objects that support it."
            " arrayhub.asarray(x) tries all protocols"
        )
    a = add_labels(obj, a, labels_of(record))
    return a if stream is None else on_stream(a, stream, True)


cdef Descriptor parse_dlpack(object obj, object stream):
    """Import `obj` through ``__dlpack__``. Its exception becomes a Refusal, as the standard asks of `from_dlpack`."""
    cdef PyObject* answer = attempt(_parse[_DLPACK], obj, stream)
    if answer == NULL:
        reason = fetch_refusal()      # first, because no code may run while an exception is set
        raise refusal_error(obj, [(PROTOCOLS[_DLPACK].words, reason)]) from reason
    return <Descriptor> take(answer)


# --------------------------------------------------------------------------------------------------- for inspection


def protocols_of_type(cls, /):
    """Return whether a type has an importer, and the names of the protocols that its instances may support, in table order."""
    if not isinstance(cls, type):
        raise TypeError(f"protocols_of_type: cls is {show(cls)}; accepted: a type")
    cdef unsigned int record = learn(cls)
    names = [row.name for k, row in enumerate(PROTOCOLS) if protocols_of(record) >> k & 1]
    return importer_of(record) != 0, tuple(names)


def check_exportable(obj, /):
    """Raise the importer's error for an array that the ``__dlpack__`` of its library would export incorrectly."""
    cdef unsigned int record = record_of(obj)
    if record & DLPACK_BY_IMPORTER and importer_of(record) != 0:
        importers[importer_of(record)](obj, None)
