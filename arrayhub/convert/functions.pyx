# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Public functions for import, export and copies: `asarray`, the ``as_*`` functions, `convert`, `to_host`, `to_device`.

The included file, dispatch, selects the importer or protocol for an object.
"""

from importlib import import_module
from time import perf_counter

from cpython.list cimport PyList_GET_SIZE

from arrayhub._core.tree cimport Tree
from arrayhub._core.descriptor cimport COPIED, PACKED, WRITEABLE, host_readable, is_aligned, same_layout
from arrayhub._core.cpython.atomics cimport refer_from_everywhere
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.libraries.known cimport Library, library

from arrayhub import transfer
from arrayhub._core import tracing
from arrayhub._core.copying import check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub._core.errors import PASSES_ON, Refusal, TypeRefusal, ValueRefusal, first_line, form_of, name_argument
from arrayhub._core.hooks import hooks
from arrayhub.libraries.known import NESTING, TARGETS
from arrayhub.transfer.host_copies import order_on_stream, share_bytes

include "dispatch.pxi"


cdef class SparseParts:
    """Fields of a SparseArray, which Python code cannot set. `SparseArray` adds only methods."""

    cdef readonly str format
    cdef readonly tuple shape
    cdef readonly object data
    cdef readonly tuple structure          # the arrays of indices and pointers, or of coordinates
    cdef readonly tuple blocksize
    cdef readonly int batch_ndim
    cdef public int _state                 # bits of `sparse.formats` and `sparse.libraries`
    cdef object __weakref__

    def __cinit__(self, str format, tuple shape, data, tuple structure, tuple blocksize=None, int batch_ndim=0, int state=0):
        self.format = format
        self.shape = shape
        self.data = data
        self.structure = structure
        self.blocksize = blocksize
        self.batch_ndim = batch_ndim
        self._state = state


# --------------------------------------------------------------------------------------------------- public functions


def asarray(obj, /, *, copy=False, dtype=None, device=None, missing=None, stream=None, via=None):
    """Import an array of any library as a USMArray, without a copy.

    Parameters
    ----------
    obj : object
        - An array of numpy, torch, jax, cupy, dpnp, dpctl, numba, pyarrow and others, or any object that supports one of the
          protocols.
        - A DLPack capsule, or a bytes-like object.
        - A number or a nested sequence of numbers, which NumPy copies.
    copy : {False, None, True}, optional
        False: share the memory, or raise BufferError. None: copy if sharing is impossible, on the same device. True: copy.
        docs/memory.md defines `copy`, `dtype`, `device` and `missing`, which have the same meaning in all functions.
    dtype : optional
        Element type, of any library. Elements of an array are cast as by ``numpy.ndarray.astype``. Numbers and sequences out of
        the range of an integer type raise OverflowError. Bytes and untyped buffers accept only types of one byte.
    device : Device, str, tuple or object, optional
        Device of the result.
    missing : {None, "nan"} or value, optional
        Replacement for missing values, as in `as_numpy`.
    stream : optional
        The stream or queue on which the caller will use the memory: None, an integer handle, an object with
        ``__cuda_stream__``, ``.ptr`` or ``.cuda_stream``, or a ``dpctl.SyclQueue``.
    via : {"array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack", "arrow"}, optional
        Protocol to use. By default, the first protocol that succeeds is used.

    Returns
    -------
    USMArray
        `obj` itself if it is a USMArray and no change is requested. The result has the dimension names and the origin of
        `obj`, which are read from ``__gt_dims__``, ``__gt_origin__`` or ``dims``.

    Raises
    ------
    TypeError
        `obj` does not support any protocol, contains Python objects, or contains complex numbers although `dtype` is real.
    InterfaceError
        The producer describes its memory incorrectly. InterfaceError is a subclass of ValueError.
    ValueError
        `device` is not the name of a device, or `via` is not the name of a protocol.
    BufferError
        The memory cannot be shared, or `device` does not exist. The message names a call to use instead.
    OverflowError
        A number, or an element of a sequence, is out of the range of `dtype` (see above), or the common type of a table
        or sequence would round an integer, or a time exceeds the range of the common type of a table.

    Examples
    --------
    >>> a = np.zeros((2, 3))
    >>> x = arrayhub.asarray(a)
    >>> x.shape, x.ptr == a.ctypes.data
    ((2, 3), True)
    >>> arrayhub.asarray(a, dtype="f4").is_copy
    True
    >>> arrayhub.asarray(np.array([300]), dtype="i1").tolist()
    [44]
    """
    if is_traced():
        options = {"copy": copy, "dtype": dtype, "device": device, "missing": missing, "stream": stream, "via": via}
        return call_traced("asarray", obj, asarray, **options)
    if via is not None:      # an error is about this protocol, so that the others are not tried
        return import_changed(obj, copy, dtype, device, missing, stream, via)
    cdef PyObject* result = attempt_import(import_changed, obj, copy, dtype, device, missing, stream, None)
    return take(result) if result != NULL else raise_refusal(obj, "arrayhub", copy, dtype, device, missing)


def import_unadvised(obj, /, *, copy=False, dtype=None, device=None, missing=None, via=None):
    """Call `asarray` for a function that completes the refusals of its own call."""
    return import_changed(obj, copy, dtype, device, missing, None, via)


cdef object import_changed(object obj, object copy, object dtype, object device, object missing, object stream, object via):
    """Return the result of `asarray`. The field `call` of a refusal may be incomplete."""
    if missing is not None:
        obj = without_missing(obj, missing, dtype)
    if dtype is not None and via is None:
        obj = values_of(obj)
    cdef bint is_view = dtype is None and device is None and copy is False
    if is_view and via is None:
        return import_view(obj, stream, "asarray")
    # With `device`, or with copy=True but without `dtype`, `stream` is passed to the copy instead of the import.
    cdef object order = None if device is not None or copy is True and dtype is None else stream
    cdef bint is_built = False
    cdef Descriptor a = None
    if via is None:
        a = import_or_build(obj, order, False, dtype, &is_built)
    else:
        a = import_via_allowed(obj, order, via, copy)
    if is_view:
        return refuse_copy(a, obj, "asarray")
    return apply_requests(a, obj, dtype, device, copy, stream, is_built)


cdef object call_alone(int k, object obj):
    """Call a function of `_ENTRIES` without keywords."""
    if k != 0:
        return give_as(obj, <Library> _ENTRY_LIBRARIES[k], False, None, None, None)
    if is_traced():
        return call_traced("asarray", obj, asarray)
    cdef PyObject* result = attempt_import_alone(import_view, obj, None, "asarray")
    return take(result) if result != NULL else raise_refusal(obj, "arrayhub")


cdef Descriptor import_view(object obj, object stream, str call):
    """Import an object without a copy. The field `call` of a refusal may be incomplete."""
    cdef Descriptor a = import_array(obj, stream)
    return a if not a.flags_ & COPIED else refuse_copy(a, obj, call)


cdef extern from *:
    """
    typedef PyObject *(*arrayhub_method)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
    typedef PyObject *(*arrayhub_numbered)(int, PyObject *);
    static arrayhub_method arrayhub_with_keywords[8];
    static arrayhub_numbered arrayhub_call_alone, arrayhub_refuse_second;

    #define ARRAYHUB_ENTRY(k) \
        static PyObject *arrayhub_entry_##k(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *names) { \
            if (count == 1 && names == NULL && k < 7) return arrayhub_call_alone(k, values[0]); \
            if (count > 1) return arrayhub_refuse_second(k, values[1]); \
            return arrayhub_with_keywords[k](module, values, count, names); \
        }
    ARRAYHUB_ENTRY(0) ARRAYHUB_ENTRY(1) ARRAYHUB_ENTRY(2) ARRAYHUB_ENTRY(3)
    ARRAYHUB_ENTRY(4) ARRAYHUB_ENTRY(5) ARRAYHUB_ENTRY(6) ARRAYHUB_ENTRY(7)
    static const arrayhub_method arrayhub_entries[8] = {
        arrayhub_entry_0, arrayhub_entry_1, arrayhub_entry_2, arrayhub_entry_3,
        arrayhub_entry_4, arrayhub_entry_5, arrayhub_entry_6, arrayhub_entry_7,
    };

    /* Call `alone` instead of the function, unless it is the last, if there is one argument. The wrapper that Cython generates
       takes and releases a reference to the default of each keyword, which is a sixth of the time of `asarray(ndarray)`. */
    static void arrayhub_set_entry(int k, PyObject *function, arrayhub_numbered alone, arrayhub_numbered refuse) {
        PyMethodDef *method = ((PyCFunctionObject *) function)->m_ml;
        arrayhub_call_alone = alone;
        arrayhub_refuse_second = refuse;
        arrayhub_with_keywords[k] = (arrayhub_method) (void (*)(void)) method->ml_meth;
        method->ml_meth = (PyCFunction) (void (*)(void)) arrayhub_entries[k];
    }
    """
    void set_entry "arrayhub_set_entry"(int k, object function, object (*alone)(int, object), object (*refuse)(int, object))


cdef object refuse_second(int k, object value):
    """Raise the error for a second positional argument. Python's error would not name the keyword."""
    function = _ENTRIES[k].__name__
    if value is None or isinstance(value, bool):
        keyword = "copy"
    elif isinstance(value, Device) or isinstance(value, str) and (":" in value or value in ("cpu", "cuda")):
        keyword = "device"
    else:
        keyword = "dtype"
    raise TypeError(
        f"{function}: {show(value)} is a second positional argument; accepted: one, and keywords."
        f" Use arrayhub.{function}(x, {keyword}={show(value)})"
    )


cdef object without_missing(object obj, object missing, object dtype):
    """Return `obj` with its missing values replaced, for `asarray`."""
    if isinstance(missing, str) and missing == "mask":
        accepted = "'nan' or a value. arrayhub.as_numpy returns masked arrays"
        raise ValueRefusal("missing", "'mask' makes two arrays, and asarray returns one", accepted)
    try:
        hooks.nested.check_replacement(missing, dtype)
        made = hooks.nested.resolve_missing(obj, missing, as_dtype(dtype))[0]
        if isinstance(made, Tree):
            import_array(made, None)      # an error is about `obj`
        return made
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        refusal = error
    raise hooks.advice.complete_refusal(refusal, obj, "arrayhub", False, dtype, None, missing)


cdef Descriptor import_or_build(
        object obj, object stream, bint keeps_lists, object dtype=None, bint *is_built=NULL):
    """Import `obj`, or copy it to a dense array if its data is not dense, such as booleans in bits.

    If `keeps_lists` is true, lists of variable length are not copied to a dense array, even if their lengths are equal.
    If necessary, values and the columns of a table are built as elements of `dtype`, to which the caller converts the
    elements. `is_built` tells whether the elements were copied here, from other data than values.
    """
    if dtype is not None and is_value(obj):
        return import_values(obj, requested_dtype(dtype), stream)
    cdef bint once = arrow.is_stream(obj)      # which a second import would find empty
    try:
        if not once:
            return import_array(obj, stream)
        refusal = Refusal("Arrow", f"{name_of_type(type(obj))} is a stream whose elements are not dense", "dense elements")
    except (OverflowError, ValueError):      # about the values, which no other path accepts
        raise
    except (BufferError, TypeError) as error:
        refusal = error
    cdef Descriptor a = build_dense(obj, keeps_lists, dtype)
    if a is None:
        raise refusal
    if is_built is not NULL:
        is_built[0] = True
    return order_on_stream(a, stream)


cdef Descriptor import_via_allowed(object obj, object stream, object via, object copy):
    """Import `obj` through a protocol. Unless `copy` is False, resolve lazy bits of torch, and copy a mirrored USMArray."""
    cdef Descriptor a
    try:
        return import_via(obj, stream, via)
    except BufferError as error:
        refusal = error
    if copy is False or is_image(obj):
        raise refusal
    resolved = transfer.copy(obj) if isinstance(obj, Descriptor) else copy_unshared(obj)
    if resolved is None:
        raise refusal
    a = import_via(resolved, stream, via)
    a.flags_ |= COPIED
    return a


cdef inline bint is_image(object obj) except -1:
    """Return whether an object is a ``PIL.Image``."""
    return importer_of(record_of(obj)) == _PIL.first_importer


cdef object copy_unshared(object obj):
    """Return a copy of an image, or of a tensor with lazy conjugate or negative bits. Return None for other objects."""
    if is_image(obj):
        return interface_dict.parse_array_interface(obj, None)
    if not is_own(obj, _TORCH):
        return None
    from arrayhub.libraries.torch import resolve_lazy_bits

    return resolve_lazy_bits(obj)


cdef Descriptor build_dense(object obj, bint keeps_lists, object dtype):
    """Copy an object that `import_array` rejects to a dense array, or return None.

    An array of Python objects is copied like ``obj.tolist()`` if the elements are numbers, with rows of one length.
    """
    cdef Descriptor a
    if objects_of(obj) is not None:
        try:
            a = import_array(values_of(obj), None)
        except (BufferError, OverflowError, TypeError, ValueError):      # such as values other than numbers
            return None
        a.flags_ |= COPIED
        return a if get_dtype(a).kind in "?biufc" else None
    resolved = copy_unshared(obj)
    found = (resolved, True) if resolved is not None else hooks.nested.dense_copy(obj, keeps_lists, as_dtype(dtype))
    if found is None:
        return None
    a = import_array(found[0], None)
    a.flags_ |= COPIED if found[1] else 0
    return a


cdef inline bint is_ndarray(object obj) noexcept:
    """Return whether `obj` is an ndarray or an instance of a subclass, whatever its ``__class__`` says."""
    return PyType_IsSubtype(Py_TYPE(obj), _NDARRAY)


cpdef object objects_of(object obj):
    """Return the ndarray of Python objects that `obj` is, or that an array of xarray wraps. Return None for other objects."""
    data = obj
    if not is_ndarray(obj):
        if root_of(type(obj)) != "xarray" or getattr(obj, "dtype", None) != object:
            return None
        data = getattr(obj, "data", None)      # an index of xarray derives from pandas.Index
        if not is_ndarray(data):
            return None
    if cnp.PyArray_TYPE(<cnp.ndarray> data) != cnp.NPY_OBJECT:
        return None
    return None if issubclass(type(data), numpy.ma.MaskedArray) else data


cdef object values_of(object obj):
    """Return the elements of an array of Python objects as a nested list, and other objects unchanged.

    An array without elements keeps its shape.
    """
    objects = objects_of(obj)
    if objects is None:
        return obj
    return objects.tolist() if objects.size else numpy.zeros(objects.shape)


cdef object as_dtype(object dtype):
    return None if dtype is None else requested_dtype(dtype)


def refuse_bytes(obj, dtype, /):
    """Raise TypeRefusal for bytes and untyped buffers with a dtype of several bytes, whose elements would be single bytes."""
    if dtype is None or not is_untyped(obj):
        return
    wanted = requested_dtype(dtype)
    if wanted.itemsize == 1:
        return
    shown = repr(dtype) if type(dtype) is str else repr(wanted.name)
    reason = f"{name_of_type(type(obj))} consists of bytes without a type, and dtype is {shown}"
    array = asarray(obj)
    count, copied = array.nbytes, "" if array.flags["C"] else ".copy()"
    call = f"arrayhub.asarray(x){copied}.view({shown})"
    if count % wanted.itemsize:
        reason += f", which does not divide {count} bytes into elements of {wanted.itemsize} bytes"
        call = ""
    raise TypeRefusal("dtype", reason, "types of one byte", call)


cdef bint is_untyped(object obj) except -1:
    cls = type(obj)
    if issubclass(cls, memoryview):
        return obj.format in ("B", "b", "c") and obj.ndim == 1
    if issubclass(cls, numpy.generic):      # numpy.bytes_ is text
        return False
    names = [name_of_type(base) for base in cls.__mro__]
    if "_ctypes.Array" in names:
        return name_of_type(cls._type_) == "ctypes.c_char"
    return issubclass(cls, (bytes, bytearray)) or not UNTYPED.isdisjoint(names)


# Types of buffers that contain bytes without a type.
cdef frozenset UNTYPED = frozenset((
    "mmap.mmap", "multiprocessing.SharedMemory", "pyarrow.Buffer", "_io.BytesIO", "_pickle.PickleBuffer", "pickle.PickleBuffer",
    "dpctl.MemoryUSMDevice", "dpctl.MemoryUSMHost", "dpctl.MemoryUSMShared",
))


cdef Descriptor import_values(object obj, object dtype, object order):
    """Import numbers and sequences. If NumPy's default type cannot represent the values, convert them to `dtype` directly."""
    try:
        return import_array(obj, order)
    except (TypeError, OverflowError, ValueError) as error:
        numpy_library.refuse_endless(obj, "asarray")      # first, because the following code iterates over all elements
        values = import_elements(obj)      # first, because NumPy's conversion calls methods of the elements
        from arrayhub.array import casting

        if not (isinstance(error, OverflowError) or dtype.names or dtype.kind in "mM" or casting.need_a_type(values)):
            raise
    casting.validate_value(values, dtype, "asarray")
    return order_on_stream(numpy_library.copy_values_as(values, dtype), order)


cdef object apply_requests(
        Descriptor a, object obj, object dtype, object device, object copy, object stream, bint is_built):
    """Apply the arguments `dtype`, `device` and `copy` of `asarray` to an imported array.

    `is_built` tells whether `a` may be a fresh copy, such as the matrix of a table, which need not be copied again.
    """
    copy = check_copy(copy, "asarray")
    result = a
    if dtype is not None and not satisfies(a.dtype, requested_dtype(dtype)):
        refuse_bytes(obj, dtype)
        if device is not None:      # the host casts the elements
            result = transfer.to_host(result, stream=stream)
        result = cast_imported(result, obj, requested_dtype(dtype))
    if device is not None:
        result = transfer.to_device(result, device, copy=True if copy and result is a else None, stream=stream)
    if copy and a.memory is result.memory:
        if (is_built or is_value(obj)) and a.flags_ & COPIED and a.flags_ & WRITEABLE:
            return order_on_stream(result, stream)
        result = transfer.copy(result, stream=stream)
    return result


cdef Descriptor cast_imported(Descriptor a, object obj, object dtype):
    """Return a copy of `a` with a different element type. `a` was imported from `obj`."""
    if is_value(obj) and import_copied(a, obj) and host_readable(a):
        check_numbers(a, dtype)
        return numpy_library.copy_values_as(import_elements(obj), dtype)
    try:
        return transfer.astype(a, dtype)
    except RuntimeError as error:      # of NumPy, for strings that are too short for a time
        if get_dtype(a).kind not in "mM" or dtype.kind not in "SU":
            raise
        raise ValueRefusal("dtype", first_line(error)) from error
    except (TypeError, ValueError) as error:      # of NumPy
        raise name_argument(form_of(error), "dtype")


cdef int check_numbers(Descriptor a, object dtype) except -1:
    """Raise OverflowError for integers out of the range of `dtype`, and TypeError for complex numbers if `dtype` is real."""
    from arrayhub.array import casting

    cdef object rank = 1 if dtype.kind in "mM" else casting.rank(dtype)      # integers count time units
    if a.flags_ & PACKED or not rank:
        return 0
    given = numpy_library.emit(a)
    cdef object given_rank = casting.rank(given.dtype)
    if given_rank in (0, 1):
        casting.check_fit(given, dtype, f"asarray: dtype is {dtype!r}")
    elif given_rank == 3 and rank < 3:
        accepted = "a complex dtype. numpy.real(x) drops the imaginary parts"
        raise TypeRefusal("asarray", f"dtype is {dtype!r}, but the values are complex", accepted)
    return 0


cdef bint import_copied(Descriptor a, object obj) except -1:
    """Return whether the import of `obj` has made a copy.

    If `obj` itself is a copy, or wraps a copy, the flag COPIED does not mean that the import has made a copy.
    """
    if not a.flags_ & COPIED or isinstance(obj, Descriptor):
        return False
    from arrayhub.libraries import wrappers

    return wrappers.known(type(obj)).asked


cdef Descriptor refuse_copy(Descriptor a, object obj, str call):
    """Return `a`. Raise BufferError if the import has copied memory of `obj`, for ``copy=False``."""
    if import_copied(a, obj) and not is_value(obj) and not PyCapsule_CheckExact(obj):
        reason = f"{name_of_type(type(obj))} can only be imported as a copy through {(<object> a).protocol}"
        raise Refusal(call, reason, "copy=None, which copies",
                      call="arrayhub.asarray(x, copy=None)" if call == "asarray" else "")
    return a


def from_dlpack(obj, /, *, device=None, copy=None, stream=None):
    """Import an array through DLPack, like ``from_dlpack`` of the array API standard.

    Parameters
    ----------
    obj : object
        A producer with ``__dlpack__``, or a capsule.
    device : Device, str, tuple or object, optional
        Device of the result. If `obj` is on another device, the result is a copy.
    copy, stream : optional
        As in `asarray`, with the default None of the standard.

    Returns
    -------
    USMArray
        Array that shares the memory of `obj`, unless `copy` or `device` requires a copy.

    Raises
    ------
    TypeError
        `obj` does not support DLPack, or `stream` is not a stream.
    InterfaceError
        The producer describes its memory incorrectly. InterfaceError is a subclass of ValueError.
    BufferError
        The producer does not export the array, `device` does not exist, or a copy is required and ``copy=False`` forbids it.
    ValueError
        `device` is not the name of a device.

    Examples
    --------
    >>> arrayhub.from_dlpack(numpy.arange(3)).tolist()
    [0, 1, 2]
    """
    return asarray(obj, via="dlpack", device=device, copy=copy, stream=stream)


cpdef Descriptor import_allowed(object obj, object copy, str call):
    """Import `obj` as the argument `copy` permits."""
    if copy is not False and (copy is None or check_copy(copy, call) is not False):
        return import_or_build(obj, None, False)
    return import_view(obj, None, call)


cdef Descriptor dense_or_none(object obj, object copy, str call):
    """Import `obj` as the argument `copy` permits. Return None for a sparse array."""
    if is_sparse(obj):
        return None
    try:
        if is_traced() and not isinstance(obj, Tree):
            return call_traced("asarray", obj, import_allowed, copy, call)
        return import_array(obj, None) if isinstance(obj, Tree) else import_allowed(obj, copy, call)
    except (BufferError, TypeError) as error:
        refusal = error
    if isinstance(obj, Tree):
        raise BufferError(
            f"{call}: arrayhub.NestedArray is not a dense array; accepted: arrays that arrayhub.asarray or arrayhub.assparse"
            f" accepts. Call x.{call}({'device' if call == 'to_device' else ''})"
        ) from refusal
    if hooks.sparse.import_or_none(obj) is None:
        raise refusal
    return None


cdef object import_for(object obj, Library to, object copy, object dtype, bint changes, bint *is_built):
    """Import `obj` for a library as a USMArray or, if it is not dense, as a SparseArray or a NestedArray.

    `dtype` and `is_built` are those of `import_or_build`, whose copies ``copy=False`` forbids. `to` may be None for another
    `copy`. Values that `asarray` refuses, such as text that ends in NUL, are an error unless `changes` is true.
    """
    try:
        if copy is False:
            return import_view(obj, None, to.call)
        return import_or_build(obj, None, to is _TORCH, dtype, is_built)
    except (BufferError, TypeError) as error:
        if not changes and isinstance(error, (OverflowError, ValueError)):
            raise
        refusal = error
    structured = hooks.sparse.import_or_none(obj, copy)
    if structured is None and (copy is not False or objects_of(obj) is None):
        structured = hooks.nested.import_or_none(obj, copy)
    if structured is None:
        raise refusal
    return structured


def to_host(obj, /, *, out=None, copy=None, stream=None, progress=None):
    """Return an array in host memory. Copy the array from its device if the host cannot read the memory.

    The copy waits for the producer's pending work, and transfers only the bytes that the array uses. docs/copies.md
    describes the synchronization.

    Parameters
    ----------
    obj : object
        Any object that `asarray` or `assparse` accepts.
    out : object, optional
        Host memory to copy to: a writable array of the same shape and element type that `asarray` accepts. Elements of `out`
        must not overlap each other. If `out` overlaps `obj`, the result is the same as with a temporary copy.
    copy : {None, True, False}, optional
        None returns a view if the host can read the memory (host and shared USM, pinned and managed CUDA memory), after the
        pending work, otherwise a copy. False raises BufferError instead of copying.
    stream : optional
        Stream or queue on which the copy is ordered, as in `asarray`. With `stream`, a copy of CUDA memory to a pinned `out` is
        asynchronous: synchronize the stream before reading `out`.
    progress : bool or callable, optional
        If True, draw a progress bar during a long copy, with tqdm if it is installed. A function is called in this thread
        with the number of copied bytes and the total number of bytes. An exception that the function raises ends the copy.

    Returns
    -------
    USMArray or SparseArray
        Array on device ``cpu``, or `out` itself.

    Raises
    ------
    TypeError
        `obj` or `out` is not an array.
    ValueError
        `out` has a different shape or element type, is read-only, is on a device, or has elements that overlap.
    BufferError
        A copy is required and ``copy=False`` forbids it, or the device is not supported.
    MemoryError
        The host or the device does not have enough memory.

    Examples
    --------
    >>> import dpctl.memory
    >>> device = arrayhub.ones(3, memory="usm_device")
    >>> arrayhub.to_host(device).tolist()
    [1.0, 1.0, 1.0]
    """
    cdef Descriptor a = dense_or_none(obj, copy, "to_host")
    if a is None:
        return hooks.sparse.relocate("to_host", obj, CPU, copy, out)
    if out is None:
        return transfer.to_host(a, copy=copy, stream=stream, progress=progress)
    transfer.to_host(a, out=import_array(out, None), copy=copy, stream=stream, progress=progress)
    return out


def to_device(obj, device, /, *, out=None, copy=None, stream=None, progress=None):
    """Return an array on a device. Copy the array unless it is already on this device.

    Parameters
    ----------
    obj : object
        Any object that `asarray` or `assparse` accepts.
    device : Device, str, tuple or object
        Target, as in `Device`. For a ``dpctl.SyclQueue``, the result is in the context of the queue, and memory of this
        context is not copied.
    out : object, optional
        Memory on `device` to copy to: a writable array of the same shape that `asarray` accepts. Elements of `out` must not
        overlap each other. If the element types differ, the elements are cast on the host, by the rules of ``x[...] = value``.
        If `out` overlaps `obj`, the result is the same as with a temporary copy. Bytes between the elements of `out` are not
        written.
    copy : {None, True, False}, optional
        None: copy unless `obj` is on the device. True: always copy. False: raise BufferError instead of copying.
    stream : optional
        Stream or queue on which the copy is ordered, as in `asarray`.
    progress : bool or callable, optional
        As in `to_host`.

    Returns
    -------
    USMArray or SparseArray
        Array on the device, or `out` itself. Host memory of `obj` may be overwritten as soon as the function returns.

    Raises
    ------
    TypeError
        `obj` or `out` is not an array.
    ValueError
        `device` is not the name of a device. `out` has a different shape, is read-only, is not on `device`, or has elements
        that overlap.
    BufferError
        The device does not exist or is not supported, or ``copy=False`` forbids a required copy.
    MemoryError
        The host or the device does not have enough memory.

    Examples
    --------
    >>> x = arrayhub.asarray([1.0, 2.0])
    >>> arrayhub.to_device(x, "cpu") is x
    True
    """
    cdef Descriptor a = dense_or_none(obj, copy, "to_device")
    if a is None:
        return hooks.sparse.relocate("to_device", obj, device, copy, out)
    if out is not None:
        from arrayhub.array.assignment import copy_into

        copy_into(a, import_array(out, None), device, copy=copy, stream=stream, progress=progress)
        return out
    return transfer.to_device(a, device, copy=copy, stream=stream, progress=progress)


# ------------------------------------------------------------------------------------------------------------ export


cdef Library _NUMPY = library("numpy")
cdef Library _TORCH = library("torch")
cdef Library _PIL = library("PIL")
cdef Library _JAX = library("jax")
cdef Library _CUPY = library("cupy")
cdef Library _DPNP = library("dpnp")
cdef Library _NUMBA = library("numba")


def array_or_nested(obj, /):
    """Import `obj` without a copy, as a USMArray or, if it is not dense, as a NestedArray.

    Raises
    ------
    TypeError, ValueError, BufferError
        The error of `asarray`, if `asarray` and `asnested` reject `obj`.
    """
    if isinstance(obj, Tree):
        return obj
    try:
        return import_array(obj, None)
    except (OverflowError, ValueError):      # about the values, which `asnested` rejects, too
        raise
    except (BufferError, TypeError) as error:
        refusal = error
    try:
        return hooks.nested.import_nested(obj)
    except (BufferError, TypeError, ValueError):
        raise hooks.advice.complete_refusal(refusal, obj, "arrayhub") from None


cdef inline bint is_own(object obj, Library to) except -1:
    """Return whether `obj` is an array of the library `to`."""
    return to.first_own <= importer_of(record_of(obj)) <= to.last_own


cdef bint is_of_jax(object obj) except -1:
    """Return whether `obj` is an array or a tracer of jax."""
    return root_of(type(obj)) in ("jax", "jaxlib") and isinstance(obj, sys.modules["jax"].Array)


def is_array_of(obj, str name, /):
    """Return whether `obj` is an array of a library, which the export to this library returns unchanged."""
    cdef Library to = EXPORTERS.get(name)
    return to is not None and (is_own(obj, to) or to is _JAX and is_of_jax(obj))


cdef object give(object obj, Library to, object copy, bint allow_readonly):
    """Return `obj` as an array of a library: a view, or if `copy` requests it, a copy in memory that the library supports."""
    cdef int importer = importer_of(record_of(obj))
    if to.first_own <= importer <= to.last_own:
        return copy_own(obj, to) if copy is True else obj
    if importer == SPARSE:
        return hooks.sparse.export(obj, to.name, copy, allow_readonly)
    if isinstance(obj, Tree):
        if copy is None:
            return give_view_or_copy(obj, obj, to, allow_readonly)
        return obj._export(to.name, copy, allow_readonly)
    cdef bint copied = copy is True, is_fresh = False
    if importer == 0 and to is _JAX and is_of_jax(obj):      # a tracer, whose type does not have an importer
        return copy_own(obj, to) if copied else obj
    imported = obj if importer == OWN_ARRAY else import_for(obj, to, copy, None, False, &is_fresh)
    if not isinstance(imported, Descriptor):
        return give(imported, to, copy, allow_readonly)
    cdef Descriptor a = <Descriptor> imported
    if to is _JAX and has_values(obj):
        a = narrow_for_jax(a, to.call)
        copied = copy is not None      # jax shares aligned memory only
    if copy is None:
        return give_view_or_copy(a, obj, to, allow_readonly)
    if to is _NUMPY and not copied:
        source = obj if is_ndarray(obj) else numpy_library.find_source(a)
        if source is not None:
            return source
    to.load()
    copied = copied or is_built(obj, to)
    if copied and to.require != NULL:
        to.require()       # first, because the copy may succeed without the library
    if to is not _NUMPY and (copied or is_value(obj)):      # a list of arrays may be built in another byte order
        a = transfer.native_anywhere(a)      # the other libraries do not support non-native byte order
    # An array of elements that were copied here, such as the matrix of a table, is not copied again.
    if copied and not (is_fresh and a.flags_ & COPIED and a.flags_ & WRITEABLE and to.reads_host and host_readable(a)):
        made = to.copier(a) if to.copier != NULL else None
        if made is not None:
            return made
        a = transfer.copy_for(a, to.device_type, to.reads_host)
    return to.exporter(a, copied, allow_readonly)


def narrow_for_jax(Descriptor array not None, subject, /):
    """Return an array with the element type that JAX gives to its elements: without ``jax_enable_x64``, 32 bits.

    Raises
    ------
    OverflowError
        An integer or a finite float is out of the range of the narrower type. The message starts with `subject`.
    """
    dtype = get_dtype(array)
    if dtype.kind not in "iufc" or dtype.itemsize != (16 if dtype.kind == "c" else 8):
        return array
    from arrayhub.array.casting import cast_checked
    from arrayhub.libraries.jax import NARROWED, has_x64

    return array if has_x64() else cast_checked(array, numpy.dtype(NARROWED[dtype.name]), subject)


cdef object copy_own(object obj, Library to):
    """Copy an array by its own library, so that gradients and subclasses are kept."""
    if to is not _TORCH:
        has_own = to is _CUPY or to is _JAX
        return import_module(f"arrayhub.libraries.{to.name}").copy_array(obj) if has_own else obj.copy()
    try:
        return obj.clone()
    except NotImplementedError:      # torch 2.13 cannot clone integers of less than 8 bits, which it stores in a byte each
        pass
    return obj.view(sys.modules["torch"].uint8).clone().view(obj.dtype)


cdef object give_view_or_copy(object imported, object obj, Library to, bint allow_readonly):
    """Return a view of `imported` if possible, otherwise a copy that does not leave the device. It was imported from `obj`."""
    if to is _NUMPY and is_ndarray(obj) and objects_of(obj) is None:
        return obj
    if to is not _JAX or isinstance(imported, Tree) or is_aligned(imported):
        try:
            return give(imported, to, False, allow_readonly)
        except BufferError as error:
            refusal = error
        if not stays(imported, to) and not is_built(obj, to):      # only device= and copy=True move memory to another device
            raise refusal
    return give(imported, to, True, allow_readonly)


cdef bint is_built(object obj, Library to) except -1:
    """Return whether `obj` has Python numbers, which are built on the device of a library without host arrays."""
    return not to.reads_host and has_values(obj)


cdef bint has_values(object obj) except -1:
    """Return whether `obj` is a list or number, or an array of Python numbers."""
    return is_value(obj) or objects_of(obj) is not None


cdef bint stays(object array, Library to) except -1:
    """Return whether a copy of `array` for a library can be on the device of `array`, or is read by the host from there."""
    if array.device.type == to.device_type:
        return True
    if isinstance(array, Tree):
        return to.reads_host and array._is_on_host()
    return to.reads_host and host_readable(array)


cdef object give_as(
    object obj, Library to, object copy, object dtype, object device, object missing, bint allow_readonly=False,
    Descriptor array=None
):
    """Return `obj` as an array of a library, with the keywords of the ``as_*`` functions.

    `array` is the imported `obj`, or None. A refusal has the call that works for `obj` in its field `call`.
    """
    if is_traced():
        return call_traced(to.call, obj, convert, to.name, copy=copy, dtype=dtype, device=device, missing=missing,
                           allow_readonly=allow_readonly)
    source = obj if array is None else array
    cdef PyObject* result = attempt_export(give_changed, source, to, copy, dtype, device, missing, allow_readonly)
    return take(result) if result != NULL else raise_refusal(obj, to.name, copy, dtype, device, missing)


cdef extern from *:
    """
    /* Call a function without Cython's `try`. After an error, the result is NULL and an exception is set. */
    #define arrayhub_attempt_call(function, ...) ((PyObject *)function(__VA_ARGS__))
    """
    PyObject* attempt_import_alone "arrayhub_attempt_call"(
        Descriptor (*view)(object, object, str), object obj, object stream, str call) noexcept
    PyObject* attempt_import "arrayhub_attempt_call"(
        object (*give)(object, object, object, object, object, object, object), object obj, object copy, object dtype,
        object device, object missing, object stream, object via
    ) noexcept
    PyObject* attempt_export "arrayhub_attempt_call"(
        object (*give)(object, Library, object, object, object, object, bint), object obj, Library to, object copy,
        object dtype, object device, object missing, bint allow_readonly
    ) noexcept


cdef object raise_refusal(obj, str name, copy=False, dtype=None, device=None, missing=None):
    """Raise the pending exception of an import, or of an export to a library. A refusal gets the call that works."""
    try:
        raise_on()
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        refusal = error
    raise hooks.advice.complete_refusal(refusal, obj, name, copy, dtype, device, missing)


def call_completing(function, obj, str name, /, *arguments, **options):
    """Call a function that imports `obj`. A refusal gets the call that works."""
    try:
        return function(obj, *arguments, **options)
    except Refusal as error:
        refusal = error
    raise hooks.advice.complete_refusal(refusal, obj, name, *arguments[:3], **options)      # copy, dtype, device


cdef extern from *:
    """
    /* Number of nested traced conversions of this thread. A threading.local is not used, because its access can fail if
       memory is exhausted. */
    static _Thread_local int arrayhub_trace_depth;
    """
    int trace_depth "arrayhub_trace_depth"

cdef list _open_traces = tracing.open_traces


cpdef bint is_traced() noexcept:
    """Return whether to report a conversion: a trace is open, and this thread is not within another conversion."""
    return PyList_GET_SIZE(_open_traces) != 0 and trace_depth == 0


def call_traced(str call, obj, function, /, *arguments, **options):
    """Call a function that converts `obj`, and report the conversion to `trace` as `call`.

    Also report a copy of the bytes that the functions below have not reported, if the result does not share memory with `obj`.
    """
    global trace_depth
    since = perf_counter()      # first, because this can fail if memory is exhausted
    cdef object reported = tracing.thread.nbytes, kind = "out", by = call, copied
    trace_depth += 1
    try:
        result = function(obj, *arguments, **options)
        seconds = perf_counter() - since
        arrays = hooks.nested.find_arrays(result[0] if isinstance(result, tuple) else result)
        nbytes = tracing.read_nbytes(result) or sum([array.nbytes for array in arrays])
        copied = nbytes - (tracing.thread.nbytes - reported)
        copied = copied if copied > 0 and has_other_memory(result, arrays, obj) else 0
    finally:
        trace_depth -= 1
    target = name_of_type(type(result))
    if call in ("asarray", "asnested", "assparse"):
        if result is obj:
            return obj
        kind, by, target = "in", getattr(result, "protocol", call), str(result.device)
        by = call if by == "constructed" else by
    source = name_of_type(type(obj))
    if copied:
        tracing.report("copy", by, source, target, copied, seconds)
    tracing.report(kind, by, source, target, nbytes, seconds)
    return result


cdef bint has_other_memory(object result, list arrays, object obj) except -1:
    """Return whether no memory of a result belongs to the object that it was converted from. Return False if unknown.

    `arrays` are the arrays of the result.
    """
    if result is obj or is_value(obj):
        return result is not obj
    if PyCapsule_CheckExact(obj) or arrow.is_stream(obj):      # can be read only once
        return isinstance(result, Descriptor) and (<Descriptor> result).flags_ & COPIED != 0
    given = hooks.nested.find_arrays(obj) if arrays else []
    return arrays and not any([share_bytes(array, other) for array in arrays for other in given])


cdef object give_changed(object obj, Library to, object copy, object dtype, object device, object missing, bint allow_readonly):
    """Call `give` for an array with other elements or on another device. These changes may copy whatever `copy` says."""
    if copy is not False and copy is not None:
        copy = check_copy(copy, to.call)
    if dtype is None and device is None and missing is None:
        return give(obj, to, copy, allow_readonly)
    cdef bint narrow = dtype is None and to is _JAX and has_values(obj), is_fresh
    mask = None
    if missing is not None:
        hooks.nested.check_replacement(missing, dtype)
        if not is_complete(obj, missing):
            obj, mask = hooks.nested.resolve_missing(obj, missing, as_dtype(dtype), to is _TORCH)
        is_fresh = isinstance(obj, Descriptor) and (<Descriptor> obj).flags_ & COPIED      # such as the values of a list
        if copy is False and (mask is None or dtype is not None or is_fresh):
            copy = None
    if narrow:      # before the export, which does not know that the elements were values
        obj, copy = narrow_for_jax(import_or_build(obj, None, False), to.call), None if copy is False else copy
    changed = change(obj, to, dtype, device)
    if changed is not obj and (copy is not True or is_whole_copy(changed, to)):
        copy = True if is_built(obj, to) else None
    result = give(changed, to, copy, allow_readonly)
    if mask is None:
        return result
    if to is _NUMPY:
        return numpy.ma.MaskedArray(result, numpy_library.emit(transfer.to_host(mask)))
    return result, give_as(mask, to, None if copy is False else copy, None, device, None)


cdef bint is_whole_copy(object changed, Library to) except -1:
    """Return whether an array that `change` made is the copy for a library. Jagged and sparse arrays may share parts."""
    if isinstance(changed, Descriptor):
        return (<Descriptor> changed).flags_ & COPIED and stays(changed, to)
    if is_own(changed, _TORCH):
        return not changed.is_nested and changed.layout is sys.modules["torch"].strided
    return is_of_jax(changed)


cdef bint is_complete(object obj, object missing) except -1:
    """Return whether `missing` does not change `obj`, a tensor or a jax array, whose libraries do not have missing values."""
    if not is_own(obj, _TORCH) and not is_of_jax(obj):
        return False
    if isinstance(missing, str) and missing == "nan":
        return "float" in str(obj.dtype) or "complex" in str(obj.dtype)      # others become float64
    return isinstance(missing, (bool, int, float, complex))


cdef object change(object obj, Library to, object dtype, object device):
    """Return `obj` with elements of `dtype` on `device`, or `obj` itself if nothing changes. `to` is the target or None."""
    cdef bint is_built = False
    if dtype is None and device is None:
        return obj
    if to is _TORCH and is_own(obj, _TORCH):
        from arrayhub.libraries.torch import change_tensor

        return change_tensor(obj, dtype, device)
    if to is _JAX and device is None and is_of_jax(obj):
        from arrayhub.libraries.jax import cast_array

        return cast_array(obj, requested_dtype(dtype))
    if isinstance(obj, Tree):
        return obj._change(dtype, device)
    if is_sparse(obj):
        sparse = hooks.sparse.import_or_none(obj, None)
        changed = sparse._change(dtype, device)
        return obj if changed is sparse else changed
    obj = obj if dtype is None else values_of(obj)
    imported = import_for(obj, to, None, dtype, True, &is_built)
    if isinstance(imported, Tree):
        return hooks.nested.change_imported(imported, obj, dtype, device)
    if not isinstance(imported, Descriptor):
        return imported._change(dtype, device)
    cdef Descriptor a = <Descriptor> imported
    result = apply_requests(a, obj, dtype, device, None, None, is_built)
    return obj if result is a and not is_built and not import_copied(a, obj) else result


def as_numpy(obj, /, *, copy=False, dtype=None, device=None, missing=None):
    """Return a ``numpy.ndarray`` that shares the memory of `obj`.

    Parameters
    ----------
    obj : object
        Any object that `asarray` accepts, or that `asnested` accepts and whose elements the library supports.
    copy, dtype, device : optional
        As in `asarray`. Lists and numbers are built whatever `copy` says.
    missing : {None, "mask", "nan"} or value, optional
        Representation of missing values, which are those that the producer calls missing (``isna``, ``is_null``).

        - None: keep NaN and NaT of NumPy's types, and raise an error for other missing values.
        - "mask": a ``numpy.ma.MaskedArray`` that shares the values. For other libraries, the result is a pair of arrays: the
          values, and booleans that are True for missing elements. The values of missing elements are undefined.
        - "nan": NaN, or NaT for times. Booleans and integers become float64, even if no value is missing. An integer that
          float64 would round raises OverflowError. A `dtype` of integers or booleans raises ValueError.
        - A value: replaces missing values. The element type must be able to represent the value.

        `dtype`, `device` and `missing` may allocate whatever `copy` says. Where nothing has to change, the memory is shared.

    Returns
    -------
    numpy.ndarray
        Read-only if the memory is read-only. A ``numpy.ma.MaskedArray`` for ``missing="mask"``. If `obj` is a writable ndarray,
        or was imported from one and is not a part of it, this ndarray itself.

    Raises
    ------
    TypeError
        `obj` is not an array, or is a list whose rows differ in length. Its elements are Python objects or have a type that
        NumPy does not have. `missing` has another type than the elements.
    BufferError
        The library does not support the device, the element type or the strides, a copy is required and `copy` does not permit
        it, or a value is missing. The message names a call that works.
    ImportError
        The library is not installed.
    ValueError
        The rows of a NestedArray differ in length, or a row is missing and `missing` is not a list.
    OverflowError
        `missing` is out of the range of the element type, or ``missing="nan"`` would round an integer.

    Examples
    --------
    >>> as_numpy([1, None, 3], missing=0)
    array([1, 0, 3])
    >>> as_numpy([1, None, 3], missing="nan")
    array([ 1., nan,  3.])
    >>> as_numpy([1, None, 3], missing="mask").sum()
    np.int64(4)
    """
    return give_as(obj, _NUMPY, copy, dtype, device, missing)


def as_torch(obj, /, *, copy=False, dtype=None, device=None, missing=None, allow_readonly=False):
    """Return a ``torch.Tensor`` that shares the memory of `obj`.

    Parameters
    ----------
    obj, copy, dtype, device, missing : optional
        As in `as_numpy`. `obj` may be sparse.
    allow_readonly : bool, optional
        Export read-only memory, too. torch does not have read-only tensors, so the caller must not write to the result.

    Returns
    -------
    torch.Tensor
        A pair of tensors for ``missing="mask"``. A column whose type is a list of variable length always becomes a jagged
        tensor, and so do lists of different lengths.

    Raises
    ------
    BufferError, ImportError, TypeError, ValueError, OverflowError
        As in `as_numpy`. Also if the memory is read-only and `allow_readonly` is False.

    Examples
    --------
    >>> import torch
    >>> a = np.zeros(2)
    >>> arrayhub.as_torch(a)[0] = 7
    >>> a.tolist()
    [7.0, 0.0]
    >>> arrayhub.as_torch(a[::-1], copy=True)
    tensor([0., 7.], dtype=torch.float64)
    """
    return give_as(obj, _TORCH, copy, dtype, device, missing, allow_readonly)


def as_jax(obj, /, *, copy=False, dtype=None, device=None, missing=None):
    """Return a ``jax.Array`` that shares the memory of `obj`.

    The memory must be dense: C order, F order or another order of the axes, without gaps between the elements. Host memory must
    also be aligned to 64 bytes.

    Parameters
    ----------
    obj, copy, dtype, device, missing : optional
        As in `as_numpy`.

    Returns
    -------
    jax.Array

    Raises
    ------
    BufferError, ImportError, TypeError, ValueError, OverflowError
        As in `as_numpy`. 64-bit types require ``jax_enable_x64``.

    Examples
    --------
    >>> import jax
    >>> arrayhub.as_jax(np.ones(2, "f4"), copy=True)
    Array([1., 1.], dtype=float32)
    """
    return give_as(obj, _JAX, copy, dtype, device, missing)


def as_cupy(obj, /, *, copy=False, dtype=None, device=None, missing=None, allow_readonly=False):
    """Return a ``cupy.ndarray`` that shares the memory of `obj`, which CUDA kernels must be able to access.

    Parameters
    ----------
    obj, copy, dtype, device, missing : optional
        As in `as_numpy`. Arrays in host memory are exported with `device` or ``copy=True``.
    allow_readonly : bool, optional
        As in `as_torch`.

    Returns
    -------
    cupy.ndarray

    Raises
    ------
    BufferError, ImportError, TypeError, ValueError, OverflowError
        As in `as_torch`.

    Examples
    --------
    >>> arrayhub.as_cupy(numpy.arange(3), copy=True)  # doctest: +SKIP
    array([0, 1, 2])
    """
    return give_as(obj, _CUPY, copy, dtype, device, missing, allow_readonly)


def as_dpnp(obj, /, *, copy=False, dtype=None, device=None, missing=None):
    """Return a ``dpnp.ndarray`` that shares the memory of `obj`, which must be SYCL USM.

    Parameters
    ----------
    obj, copy, dtype, device, missing : optional
        As in `as_numpy`. Arrays in other memory are exported with `device` or ``copy=True``.

    Returns
    -------
    dpnp.ndarray

    Raises
    ------
    BufferError, ImportError, TypeError, ValueError, OverflowError
        As in `as_numpy`.

    Examples
    --------
    >>> arrayhub.as_dpnp(numpy.arange(3), copy=True)  # doctest: +SKIP
    array([0, 1, 2])
    """
    return give_as(obj, _DPNP, copy, dtype, device, missing)


def as_numba(obj, /, *, copy=False, dtype=None, device=None, missing=None):
    """Return an array that numba's functions accept and that shares the memory of `obj`.

    The result is a ``numpy.ndarray`` for host memory, and a device array of numba for CUDA memory.

    Parameters
    ----------
    obj, copy, dtype, device, missing : optional
        As in `as_numpy`.

    Returns
    -------
    numpy.ndarray or numba.cuda.cudadrv.devicearray.DeviceNDArray

    Raises
    ------
    BufferError, ImportError, TypeError, ValueError, OverflowError
        As in `as_numpy`.

    Examples
    --------
    >>> import numba
    >>> @numba.njit
    ... def total(a):
    ...     return a.sum()
    >>> total(arrayhub.as_numba(np.ones(3)))
    3.0
    """
    return give_as(obj, _NUMBA, copy, dtype, device, missing)


# The last function, which is not for a library, is not called by `call_alone`.
cdef tuple _ENTRIES = (asarray, as_numpy, as_torch, as_jax, as_cupy, as_dpnp, as_numba, from_dlpack)
cdef tuple _ENTRY_LIBRARIES = (None, _NUMPY, _TORCH, _JAX, _CUPY, _DPNP, _NUMBA)
for _k, _function in enumerate(_ENTRIES):
    set_entry(_k, _function, call_alone, refuse_second)
    refer_from_everywhere(_function)


# The libraries with a compiled exporter.
EXPORTERS = {name: row for name, row in TARGETS.items() if row.call is not None}


def convert(obj, to, *, copy=False, dtype=None, device=None, missing=None, allow_readonly=False):
    """Return `obj` as an array of the library that `to` names.

    Parameters
    ----------
    obj : object
        Any object that `asarray`, `asnested` or `assparse` accepts.
    to : str, module or type
        - "numpy", "torch", "jax", "cupy", "dpnp", "numba", "arrow", "polars", "pandas", "awkward", "xarray" or "arrayhub"
          (a USMArray), or for sparse arrays "scipy" or "pydata_sparse".
        - A common spelling such as "np" or "pyarrow", or the name of a library that was added with `register_library`.
        - The library's module, or any module or class with ``from_dlpack``, such as ``mlx.core``. A string is looked up among
          the known libraries and the loaded modules, and never imports a module.
        - A type of the library's arrays or tables, such as ``pyarrow.Table``. The result is an instance of this type.
    copy, dtype, device : optional
        As in `as_numpy`.
    missing : {None, "mask", "nan"} or value, optional
        As in `as_numpy`. arrow, polars, pandas and awkward represent missing values themselves. For these libraries, a value
        replaces missing values, and "mask" and "nan" are rejected.
    allow_readonly : bool, optional
        As in `as_torch`, for any library that cannot represent read-only memory.

    Returns
    -------
    object
        Array of the library. `obj` itself if it is such an array and nothing has to change.

    Raises
    ------
    ValueError
        `to` is not a known library (the message suggests a similar name), or the library does not support `missing`.
    TypeError
        `obj` is not an array, has elements that the library does not support, or does not fit the type `to`.
    BufferError
        The library rejects the memory, copies the memory although no copy was requested, cannot represent read-only memory, or
        has another element type for the elements.

    Examples
    --------
    >>> import torch
    >>> convert(np.arange(3), "pytorch")
    tensor([0, 1, 2])
    >>> convert([1.0, 2.0], torch.Tensor).dtype
    torch.float64
    """
    exporter = EXPORTERS.get(to) if type(to) is str else None
    if exporter is not None:
        return give_as(obj, exporter, copy, dtype, device, missing, bool(allow_readonly))
    if isinstance(to, type):
        return hooks.containers.to_class(obj, to, copy, dtype, device, missing, bool(allow_readonly))
    return convert_to_library(obj, hooks.containers.library_name(to), copy, dtype, device, missing, bool(allow_readonly))


def convert_to_library(obj, str name, copy, dtype, device, missing, bint allow_readonly=False, model=None):
    """Return `obj` as an array of the library that `names.library_name` has returned. See `convert`.

    The function of a registered library may copy the metadata of `model`, or of an `obj` that is an array of the library.
    """
    if name in EXPORTERS:
        return give_as(obj, EXPORTERS[name], copy, dtype, device, missing, allow_readonly)
    export = hooks.containers.get_exporter(name)
    if name in NESTING:
        return export(obj, copy=copy, dtype=dtype, device=device, missing=missing)      # completes its refusals, as `give_as`
    if is_traced():
        return call_traced("convert", obj, convert_to_library, name, copy, dtype, device, missing, allow_readonly, model)
    try:
        if export is not None:
            return export(obj, copy=copy, dtype=dtype, device=device, missing=missing)
        return convert_registered(obj, name, copy, dtype, device, missing, allow_readonly, model)
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        refusal = error
    raise hooks.advice.complete_refusal(refusal, obj, name, copy, dtype, device, missing)


cdef object convert_registered(
        object obj, str name, object copy, object dtype, object device, object missing, bint allow_readonly, object model):
    """Return `obj` as an array of a registered library, or of a module or class with ``from_dlpack``."""
    from arrayhub.convert import names
    from arrayhub.libraries import plugins

    cdef bint is_own = names.name_of_type(type(obj)) == name
    emit = plugins.emitter(name, obj if is_own else model)
    take = names.from_dlpack_of(name) if emit is None else None
    if missing is not None:
        obj, is_own = without_missing(obj, missing, dtype), False
    changed = change(obj, None, dtype, device)
    copy = check_copy(copy, "convert")
    if is_own and changed is obj and copy is not True:
        return obj
    if changed is not obj or missing is not None and copy is False:
        copy = None
    cdef Descriptor a = import_allowed(changed, copy, "convert")
    if copy is None:
        try:
            return give_by_function(a, take, emit, name, False, allow_readonly, model is not None)
        except BufferError:
            if emit is None and not host_readable(a):      # copy=None does not leave the device
                raise
    return give_by_function(a, take, emit, name, copy is not False, allow_readonly, model is not None)


cdef object give_by_function(
        Descriptor a, object take, object emit, str to, bint copied, bint allow_readonly, bint narrows):
    """Return the result of a library's `emit` or ``from_dlpack``, after checking it.

    `narrows` permits elements of another type that represents their values, for a model.
    """
    if copied:
        a = transfer.native(a, copy=True) if emit is None else transfer.copy(a)
    elif allow_readonly and not a.flags_ & WRITEABLE:
        a = same_layout(a)
        a.flags_ |= WRITEABLE
    result = call_from_dlpack(take, a, to, copied) if emit is None else call_emit(emit, a, to)
    call = f"{to}.from_dlpack" if emit is None else f"{to}.emit"
    if copied:
        check_elements(a, result, call, narrows)
    else:
        check_view(a, result, call)
    return result


cdef int check_elements(Descriptor a, object result, str call, bint narrows) except -1:
    """Raise an error if a library changed the shape or the element type of a copy of `a`, as mlx narrows float64.

    If `narrows` is true, raise an error only if the library's type does not represent a value of `a`.
    """
    try:
        back = import_array(result, None)
    except PASSES_ON:
        raise
    except Exception:      # the element type is unknown
        return 0
    dtype = back.dtype
    if back.shape != a.shape:
        raise Refusal("convert", f"{call} returns shape {back.shape} for an array of shape {a.shape}")
    if dtype != a.dtype and not narrows:
        reason = f"{call} converts elements of {a.dtype} to {dtype}"
        raise Refusal("convert", reason, f"elements of {dtype}. Pass dtype='{dtype}'")
    if dtype != a.dtype:
        from arrayhub.array import casting

        casting.check_fit(numpy_library.emit(transfer.to_host(a)), dtype, f"convert: {call} returns {dtype}")
    return 0


cdef object call_emit(object emit, Descriptor a, str root):
    """Return the result of a registered library's `emit`, after checking that it is an array of the library."""
    from arrayhub.libraries import plugins

    result = None
    try:
        result = emit(a)
    except MemoryError:
        raise
    except Exception as error:
        plugins.raise_emit_error(root, "raised", error)
    if plugins.library_of(type(result)) != root:
        plugins.raise_emit_error(root, f"returned {name_of_type(type(result))}")
    return result


def _host_view(array):
    return transfer.to_host(array, copy=False) if array.device.type == "oneapi" else None


def _capsule(array):
    return None if array is None else array.__dlpack__()


# A library's from_dlpack is called with the array, with a capsule, with a view on device cpu, and with a capsule of this view,
# because some libraries accept only capsules, or do not support SYCL devices.
cdef tuple _OFFERS = (lambda array: array, _capsule, _host_view, lambda array: _capsule(_host_view(array)))
cdef object _HOST_COPY = lambda array: None if transfer.is_host_readable(array) else transfer.to_host(array)


cdef object call_from_dlpack(object take, Descriptor a, str to, bint copied):
    """Call a library's ``from_dlpack`` with each argument of `_OFFERS` until a call succeeds.

    If `copied` is true, also try a copy in host memory. The error contains the library's reason for the last argument that is
    not a capsule. If this argument is a view or copy in host memory, the device is not the reason. Many libraries reject all
    capsules, so their reasons for capsules are not reported.
    """
    cdef object refusal = None
    for offer in (*_OFFERS, _HOST_COPY) if copied else _OFFERS:
        offered = None
        try:
            offered = offer(a)
            if offered is not None:
                return take(offered)
        except PASSES_ON:
            raise
        except Exception as error:
            if offered is not None and not PyCapsule_CheckExact(offered):
                refusal = error
    accepted = "" if copied else "copy=True"
    raise Refusal("convert", f"{to}.from_dlpack rejects {a!r}: {first_line(refusal)}", accepted) from refusal


cdef int check_view(Descriptor a, object result, str call) except -1:
    """Raise BufferError if the result of a library is not a view of `a`, or is writable although `a` is read-only."""
    cdef Descriptor back
    try:
        back = import_array(result, None)
    except PASSES_ON:
        raise
    except Exception as error:
        reason = f"arrayhub cannot determine whether the result of {call} is a view ({error})"
        raise Refusal("convert", reason, "copy=True") from error
    if size_of(a) and back.data_ != a.data_ or back.shape != a.shape or back.dtype != a.dtype:
        raise Refusal("convert", f"{call} copies the memory although no copy was requested", "copy=True")
    if back.flags_ & WRITEABLE and not a.flags_ & WRITEABLE:
        raise Refusal(
            "convert",
            f"the array is read-only, but the result of {call} is writable",
            "copy=True, or allow_readonly=True if the result is not written",
        )
    return 0
