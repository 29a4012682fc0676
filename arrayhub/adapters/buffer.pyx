"""Import and export through the buffer protocol (PEP 3118)."""

import sys

cimport numpy as cnp
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_C_CONTIGUOUS,
    PyBUF_F_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_FULL_RO,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_CheckBuffer,
)
from cpython.exc cimport PyErr_Occurred
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_GET_BUFFER
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport strchr, strcmp, strlen

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    ALIGNED,
    BUFFER,
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    IMMUTABLE,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    DLDevice,
    MemoryBlock,
    bare_array,
    describe_release,
    get_dtype,
    hold_resource,
    host_readable,
    kDLCPU,
    new_array,
    new_block,
    reserve,
    seal,
    set_dtype,
    set_type,
    shape_tuple,
)
from arrayhub._core.cpython.exceptions cimport put_aside, put_back, raise_on
from arrayhub._core.runtime cimport host_ready
from arrayhub._core.cpython.atomics cimport found, read_int, write_int
from arrayhub.adapters.table cimport PEP3118

import numpy

from arrayhub._core.errors import DLPACK_CALL, PACKED_ELEMENTS, TOO_LARGE, Refusal, interface_error, name_of_type
from arrayhub._core.hooks import hooks

cnp.import_array()

# Caches of parsed and written formats. Their size is limited, because the number of different formats is not.
cdef dict _parsed = {}
cdef dict _written = {}
cdef enum:
    REMEMBERED_FORMATS = 256

# Address of the buffer of an empty array, because some consumers abort on a null pointer.
cdef char[16] _NOTHING


cdef extern from "Python.h":
    int get_buffer "PyObject_GetBuffer"(object exporter, Py_buffer* view, int request)  # -1 with an exception set

cdef extern from *:
    """
    #include "freelist.h"
    ARRAYHUB_ALLOCATED_SPARES(arrayhub_spare_view, Py_buffer, 32)
    """
    Py_buffer* allocate_view "arrayhub_spare_view_new"(size_t size) noexcept
    void free_view "arrayhub_spare_view_free"(Py_buffer* view) noexcept

cdef extern from *:
    """
    /* CPython's garbage collector may clear a memoryview while a buffer of the memoryview is held. Releasing the buffer
       then aborts the process. Therefore the buffer is requested from a new memoryview of the same memory, and the
       collector does not track the new memoryview. Instead, the collector visits the managed buffer that all memoryviews
       of the memory share. */
    static inline int arrayhub_is_untracked_view(PyObject *exporter) {
        return exporter != NULL && PyMemoryView_Check(exporter) && !PyObject_GC_IsTracked(exporter);
    }
    static inline PyObject *arrayhub_visited_exporter(Py_buffer *view) {
        if (view->obj == NULL || !PyMemoryView_Check(view->obj))
            return view->obj;
        /* The memoryview behind another object, such as a PickleBuffer, is not visited, so cycles through it leak. */
        return arrayhub_is_untracked_view(view->obj) ? (PyObject *) ((PyMemoryViewObject *) view->obj)->mbuf : NULL;
    }
    """
    bint is_untracked_view "arrayhub_is_untracked_view"(PyObject* exporter) noexcept
    PyObject* visited_exporter "arrayhub_visited_exporter"(Py_buffer* view) noexcept
    PyObject* memoryview_of "PyMemoryView_FromObject"(object exporter) noexcept   # NULL with an exception set
    void gc_untrack "PyObject_GC_UnTrack"(PyObject* o) noexcept
    void gc_track "PyObject_GC_Track"(PyObject* o) noexcept


cdef void _release_held(void* held) noexcept:
    aside = put_aside()
    if is_untracked_view(<PyObject*> (<Py_buffer*> held).obj):
        gc_track(<PyObject*> (<Py_buffer*> held).obj)      # a memoryview must be tracked when it is deallocated
    PyBuffer_Release(<Py_buffer*> held)
    put_back(aside)
    free_view(<Py_buffer*> held)


cdef PyObject* _exporter_of(void* held) noexcept:
    """Return the object that the garbage collector visits for a held buffer, or NULL. See `visited_exporter`."""
    return visited_exporter(<Py_buffer*> held)


describe_release(_release_held, b"PyBuffer_Release", _exporter_of)


cdef Descriptor parse(object obj, object stream):
    """Import the memory that `obj` exports. Return None if `obj` does not support the protocol.

    The memory block of the array holds one PyBUF_FULL_RO buffer. A ``bytearray`` cannot be resized until the block is
    deallocated.

    Sources: PEP 3118, and "Buffer Protocol" in the documentation of the C API.
    """
    if not PyObject_CheckBuffer(obj):
        return None
    cdef Descriptor a = bare_array()
    cdef Py_buffer* view = get_view(obj, PyBUF_FULL_RO)
    hold_resource(a, BUFFER, view, _release_held)      # from now on, the array releases the buffer, even after an error
    describe(a, obj, view)
    if read_int(&expects_map):
        check_map(<PyObject*> view.obj)
    return a


cdef int expects_map = True


cdef int check_map(PyObject* owner) except -1:
    """If `owner` is a memory map, let multiprocessing send the locations of maps, before it pickles the first one."""
    if owner != NULL and PyMemoryView_Check(<object> owner):
        owner = <PyObject*> PyMemoryView_GET_BUFFER(<object> owner).obj
    if owner != NULL and strcmp((<PyTypeObject*> Py_TYPE(<object> owner)).tp_name, b"mmap.mmap") == 0:
        hooks.transport.register_reduction()
        write_int(&expects_map, False)
    return 0


cdef Descriptor parse_bytes(object obj, object stream):
    """Import a ``bytes`` object without a buffer request, because its memory neither moves nor changes."""
    cdef Descriptor a = new_array(1)
    a.base_ = obj
    a.device_ = DLDevice(kDLCPU, 0)
    a.protocol_ = PEP3118
    a.data_ = PyBytes_AS_STRING(obj)
    a.flags_ |= IMMUTABLE
    a.shape_[0] = PyBytes_GET_SIZE(obj)
    a.byte_strides_[0] = 1
    set_type(a, dtypes.by_format(c"B"))
    seal(a)
    return a


cdef inline Py_buffer* get_view(object exporter, int request) except NULL:
    """Request a buffer of `exporter`, which `_release_held` releases. Errors of the exporter propagate.

    The buffer of a memoryview is requested through a new, untracked memoryview; see `is_untracked_view`.
    """
    cdef Py_buffer* view = allocate_view(sizeof(Py_buffer))
    cdef PyObject* untracked
    cdef bint failed
    if view == NULL:
        raise MemoryError
    if type(exporter) is memoryview:
        untracked = memoryview_of(exporter)
        failed = untracked == NULL or get_buffer(<object> untracked, view, request) != 0
        if not failed:
            gc_untrack(untracked)
        Py_XDECREF(untracked)
    else:
        failed = get_buffer(exporter, view, request) != 0
    if failed:
        free_view(view)
        refuse(exporter)
    return view


cdef int refuse(object exporter) except -1:
    """Raise the exporter's error, or a BufferError if the exporter failed without an exception.

    Python raises a ValueError for a released memoryview, which is converted to a BufferError.
    """
    if type(exporter) is memoryview:
        try:
            raise_on()
        except ValueError as error:
            raise Refusal("PEP 3118 buffer", f"memoryview: {error}; accepted: a memoryview that was not released") from None
    if PyErr_Occurred() == NULL:
        raise Refusal("PEP 3118 buffer", f"{type(exporter).__name__} failed without an exception; accepted: a buffer,"
                      " or an exception with the reason")
    return raise_on()


cdef MemoryBlock hold(object exporter, int request):
    """Return a memory block that holds a buffer of `exporter` and releases it exactly once.

    ``block.resource`` is the Py_buffer. Errors of the exporter, usually a BufferError, propagate.
    """
    cdef MemoryBlock block = new_block(BUFFER, exporter, NULL, -1, DLDevice(kDLCPU, 0))
    cdef Py_buffer* view = get_view(exporter, request)
    block.resource = view
    block.release = _release_held
    block.address_ = <char*> view.buf
    block.nbytes_ = view.len
    return block


cdef int access_of(object obj, Py_buffer* view) except -1:
    """Return WRITEABLE, IMMUTABLE or 0 for the memory of a buffer of `obj`, which may be a memoryview."""
    if not view.readonly:
        return WRITEABLE
    return IMMUTABLE if type(first_exporter(obj)) is bytes else 0


cdef object first_exporter(object obj):
    """Return the object behind a memoryview or a chain of memoryviews, or `obj` if it is not a memoryview."""
    while type(obj) is memoryview:
        obj = obj.obj
    return obj


cdef int describe(Descriptor a, object obj, Py_buffer* view) except -1:
    """Fill a bare array from the buffer that it holds."""
    cdef const dtypes.ElementType* row = native_type(view)
    cdef Py_ssize_t needed
    if view.ndim < 0 or view.ndim > layout.MAX_NDIM:
        raise interface_error("PEP 3118 buffer", "ndim", view.ndim, f"0 to {layout.MAX_NDIM}")
    a.base_ = obj
    a.device_ = DLDevice(kDLCPU, 0)
    a.protocol_ = PEP3118
    a.data_ = <char*> view.buf
    a.flags_ |= access_of(obj, view)
    if row != NULL:
        reserve(a, view.ndim)
        set_type(a, row)
        if view.ndim == 1 and view.shape != NULL and view.strides != NULL and view.suboffsets == NULL:    # the common case
            a.shape_[0] = view.shape[0]
            a.byte_strides_[0] = view.strides[0]
        else:
            fill_layout(a, view, ())
    else:
        describe_by_dtype(a, first_exporter(obj), view)
    seal(a)
    # In PEP 3118, `len` is the product of shape and itemsize, regardless of the strides.
    needed = layout.count(a.nd_, a.shape_) * a.itemsize_
    if view.len < needed:
        raise interface_error("PEP 3118 buffer", "len", view.len, f"at least {needed} bytes, the product of shape and itemsize")
    return 0


cdef int describe_by_dtype(Descriptor a, object exporter, Py_buffer* view) except -1:
    """Set type and layout from a format that has to be parsed. A sub-array format adds dimensions."""
    cdef object dtype = described_type(exporter, view)
    cdef tuple inner = dtype.shape
    if view.ndim + len(inner) > layout.MAX_NDIM:
        raise interface_error("PEP 3118 buffer", "sum of ndim and the dimensions in the format", view.ndim + len(inner),
                              f"0 to {layout.MAX_NDIM}")
    reserve(a, view.ndim + <int> len(inner))
    set_dtype(a, dtype.base)
    return fill_layout(a, view, inner)


cdef int fill_layout(Descriptor a, Py_buffer* view, tuple inner) except -1:
    """Set shape and byte strides from a held buffer. `inner` is the sub-array shape of the buffer's format."""
    cdef int k
    if view.suboffsets != NULL:
        for k in range(view.ndim):
            if view.suboffsets[k] >= 0:
                raise Refusal(
                    "PEP 3118 buffer", f"suboffsets[{k}] is {view.suboffsets[k]}; accepted: memory without suboffsets"
                    " (pointers to rows). Copy the values: numpy.array(memoryview(x).tolist(), memoryview(x).format)"
                )
    if view.ndim == 1 and view.shape == NULL:
        a.shape_[0] = view.len // view.itemsize if view.itemsize > 0 else 0
    elif view.ndim > 0 and view.shape == NULL:
        raise interface_error("PEP 3118 buffer", "shape", None, f"the lengths of {view.ndim} dimensions")
    else:
        for k in range(view.ndim):
            a.shape_[k] = view.shape[k]
    for k in range(<int> len(inner)):
        a.shape_[view.ndim + k] = inner[k]
    if view.strides == NULL or len(inner) != 0:
        if layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_):
            raise interface_error("PEP 3118 buffer", "shape", shape_tuple(a), TOO_LARGE)
    if view.strides != NULL:
        for k in range(view.ndim):
            a.byte_strides_[k] = view.strides[k]
    return 0


# Format characters whose standard and native sizes are equal. `l` has a standard size of 4 bytes, and often a native size of 8.
cdef const char* SAME_SIZE_EVERYWHERE = b"?bBhHiIqQefd"


cdef inline const dtypes.ElementType* native_type(Py_buffer* view) noexcept:
    """Return the table row of a native format of one character, or NULL if the format must be parsed."""
    cdef const char* letters = view.format
    cdef const dtypes.ElementType* row
    if letters == NULL:
        letters = b"B"
    elif letters[0] == c"@" or (letters[0] == c"<" and letters[1] in (c"b", c"B")):
        letters += 1
    elif letters[0] == c"=" and strchr(SAME_SIZE_EVERYWHERE, letters[1]) != NULL:    # written by jax
        letters += 1
    if letters[0] == 0 or letters[1] != 0:
        return NULL
    row = dtypes.by_format(letters[0])
    return row if row != NULL and row.itemsize == view.itemsize else NULL


cdef object described_type(object exporter, Py_buffer* view):
    """Return the dtype of a held buffer, from its format, from the ctypes type or from the dtype of a structured ndarray."""
    if view.itemsize <= 0 and view.format == NULL:
        raise interface_error("PEP 3118 buffer", "itemsize", view.itemsize, "a positive size in bytes")
    # A memoryview of a ctypes object that was cast has a format of one character. Its elements do not have the ctypes type.
    # ctypes also exports packed structures with the format 'B', but with an item size other than 1.
    if is_ctypes(exporter) and (view.itemsize != 1 or view.format == NULL or strlen(view.format) != 1):
        cls = type(exporter)
        return ctypes_element(cls, view)
    if cnp.PyArray_Check(exporter) and view.format != NULL and view.format[0] == c"T":
        dtype = <object> <PyObject*> cnp.PyArray_DESCR(<cnp.ndarray> exporter)     # a subclass may override `dtype`
        if dtype.itemsize == view.itemsize:
            return dtype      # NumPy's formats omit the trailing padding of records, so parsed offsets could be wrong
    key = (b"B" if view.format == NULL else <bytes> view.format, view.itemsize)
    dtype = found(_parsed, key)
    if dtype is None:
        from arrayhub.adapters.format_language import parse_format    # imported on first use, to keep `import arrayhub` fast

        dtype = parse_format(key[0].decode("utf-8", "surrogateescape"), view.itemsize)
        if len(_parsed) >= REMEMBERED_FORMATS:
            _parsed.clear()
        _parsed[key] = dtype
    return dtype


cdef bint is_ctypes(object exporter) except -1:
    """Return whether `exporter` is a ctypes object, without importing ctypes."""
    simple = getattr(sys.modules.get("_ctypes"), "_SimpleCData", None)      # None while another thread imports ctypes
    return simple is not None and isinstance(exporter, simple.__base__)


# ctypes of Python 3.15 writes complex types like PEP 3118. NumPy 2.5 reads only the codes of earlier releases.
cdef dict COMPLEX_CTYPES = {"Zf": "F", "Zd": "D", "Zg": "G"}


cdef object ctypes_element(object ctype, Py_buffer* view):
    """Return the dtype of the elements of a ctypes object from its type, not from its format.

    The format of ctypes is wrong for packed structures ('B' for nine bytes) and, before Python 3.12, omits trailing padding.
    """
    import ctypes

    for _ in range(layout.MAX_NDIM + 1):      # bounded, because `_type_` may refer to the type itself
        if not issubclass(ctype, ctypes.Array):
            break
        ctype = ctype._type_
    else:
        raise interface_error("PEP 3118 buffer", "the ctypes type", ctype, f"at most {layout.MAX_NDIM} nested arrays")
    try:
        dtype = dtype_of_ctype(ctype, ctypes)
    except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise interface_error("PEP 3118 buffer", "the ctypes type", name_of_type(ctype),
                              f"a type that NumPy supports ({error})") from None
    if dtype.itemsize != view.itemsize:
        raise interface_error("PEP 3118 buffer", "itemsize", view.itemsize, f"the {dtype.itemsize} bytes of {ctype}")
    return dtype


cdef object dtype_of_ctype(object ctype, object ctypes):
    """Return the dtype of a ctypes type."""
    if issubclass(ctype, (ctypes.Structure, ctypes.Union)):
        return record_of_ctype(ctype, ctypes)
    if issubclass(ctype, ctypes.Array):
        return numpy.dtype((dtype_of_ctype(ctype._type_, ctypes), (ctype._length_,)))
    code = ctype._type_ if issubclass(ctype, ctypes._SimpleCData) else None
    # NumPy does not support c_wchar, but 'U1' has the same layout if c_wchar has four bytes.
    wide = code == "u" and ctypes.sizeof(ctype) == 4
    return numpy.dtype("U1" if wide else COMPLEX_CTYPES.get(code, ctype))


cdef object record_of_ctype(object ctype, object ctypes):
    """Return the dtype of a structure or union, with the fields of its base classes.

    ``numpy.dtype`` ignores these fields, and places the other fields as if they came first (NumPy 2.4).
    """
    cdef dict record = {"names": [], "formats": [], "offsets": [], "itemsize": ctypes.sizeof(ctype)}
    if issubclass(ctype, ctypes.Structure):
        record["aligned"] = not hasattr(ctype, "_pack_")      # as ``numpy.dtype``
    for cls in reversed(ctype.__mro__):
        for field in cls.__dict__.get("_fields_", ()):
            if len(field) != 2:
                raise TypeError(f"{field[0]} is a bitfield")
            record["names"].append(field[0])
            record["formats"].append(dtype_of_ctype(field[1], ctypes))
            record["offsets"].append(cls.__dict__[field[0]].offset)
    return numpy.dtype(record)


cdef object refused_request(str reason):
    """Return the Refusal of a request, created without Python code.

    NumPy discards the errors of a request. A KeyboardInterrupt that arrives in ``Refusal.__init__`` would be lost.
    """
    error = BufferError.__new__(Refusal, "buffer protocol", reason, "", "")
    error.subject, error.reason, error.accepted, error.call = "buffer protocol", reason, "", ""
    return error


cdef int emit(Descriptor a, Py_buffer* out, int request) except -1:
    """Export `a` for a request with any PyBUF flags, or raise BufferError.

    Shape and strides point into the array. Only unusual format strings require an allocation.
    """
    cdef int nd = a.nd_
    if not host_readable(a):
        raise refused_request("the host cannot read this memory; call arrayhub.to_host(x)")
    if a.flags_ & PACKED:
        raise refused_request(PACKED_ELEMENTS)
    if request & PyBUF_WRITABLE and not a.flags_ & WRITEABLE:
        raise refused_request("a writable buffer of a read-only array was requested; call x.copy() first")
    if not a.flags_ & C_CONTIGUOUS or not request & PyBUF_ND or request & FORTRAN:
        check_contiguity(a, request)
    if a.device_.device_type != kDLCPU:
        host_ready(a)
    out.format = NULL
    out.internal = NULL
    if request & PyBUF_FORMAT:
        fill_format(a, out)
    out.len = layout.count(a.nd_, a.shape_) * a.itemsize_
    out.buf = a.data_ if a.data_ != NULL else <void*> _NOTHING
    out.itemsize = a.itemsize_
    out.readonly = not a.flags_ & WRITEABLE
    # Without PyBUF_ND, export a 1-d array of bytes, as memoryview does.
    out.ndim = nd if request & PyBUF_ND else 1
    out.shape = a.shape_ if request & PyBUF_ND and nd > 0 else NULL
    out.strides = a.byte_strides_ if (request & PyBUF_STRIDES) == PyBUF_STRIDES and nd > 0 else NULL
    out.suboffsets = NULL
    out.obj = a
    return 0


cdef enum:
    FORTRAN = PyBUF_F_CONTIGUOUS & ~PyBUF_STRIDES     # the bit that requests Fortran order


cdef int check_contiguity(Descriptor a, int request) except -1:
    """Raise BufferError if the layout does not satisfy a request, or if the flags of the request are inconsistent."""
    cdef bint c_order = a.flags_ & C_CONTIGUOUS
    cdef bint f_order = a.flags_ & F_CONTIGUOUS
    cdef str wanted
    if request & PyBUF_FORMAT and not request & PyBUF_ND:
        raise refused_request("PyBUF_FORMAT was requested without PyBUF_ND; accepted: PyBUF_FORMAT with PyBUF_ND")
    if (request & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS and not c_order:
        wanted = "a C-contiguous buffer"
    elif (request & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS and not f_order:
        wanted = "a Fortran-contiguous buffer"
    elif (request & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS and not (c_order or f_order):
        wanted = "a contiguous buffer"
    elif (request & PyBUF_STRIDES) != PyBUF_STRIDES and not c_order:
        wanted = "a buffer without strides"
    else:
        return 0
    raise refused_request(f"{wanted} was requested, but the array has a different layout; call x.copy() first")


cdef int fill_format(Descriptor a, Py_buffer* out) except -1:
    """Set ``out.format`` to the format of the element type.

    If the format is not in the table of element types, ``out.internal`` holds a reference to the string.
    """
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    cdef const char* text = row.format if a.flags_ & ALIGNED else row.packed_format
    if text != NULL and a.flags_ & NOTSWAPPED:
        out.format = <char*> text
        return 0
    if row.kind == c"E":
        raise refused_request(
            f"PEP 3118 does not have a format for {row.name.decode()}; use {DLPACK_CALL}"
        )
    dtype = get_dtype(a)
    key = (dtype, dtype.char, bool(a.flags_ & ALIGNED))      # with `char`, because dtypes "S1" and "c" compare equal
    if row.kind == c"V" and dtype.names is None:
        # NumPy tries the buffer protocol first, and reads `6x` as a record without fields.
        raise refused_request(
            f"consumers disagree on the format of plain void ({dtype.str}); use __array_interface__, or a"
            " request without PyBUF_FORMAT"
        )
    written = found(_written, key)
    if written is None:
        from arrayhub.adapters.format_language import write_format

        written = write_format(dtype, key[2]).encode()
        if len(_written) >= REMEMBERED_FORMATS:
            _written.clear()
        _written[key] = written
    Py_INCREF(written)
    out.internal = <void*> written
    out.format = PyBytes_AS_STRING(written)
    return 0
