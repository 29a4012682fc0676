"""``__cuda_array_interface__``, versions 0 to 3: parse(producer) and emit(array). Source: numba's specification of it.

Parsing needs neither a driver nor a GPU; where there is a driver it is asked what kind of memory the pointer is.
"""

from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    PACKED,
    WRITEABLE,
    Descriptor,
    get_dtype,
    seal,
    shape_tuple,
    size_of,
    stride_tuple,
)
from arrayhub._core.device cimport kDLCUDA, kDLCUDAHost, kDLCUDAManaged
from arrayhub.adapters.interface_dict cimport new_from_dict, set_pointer
from arrayhub.adapters.interface_keys cimport DATA, STREAM, VERSION, Entries, begin, dict_error, entry, let_go, read, whole
from arrayhub.adapters.table cimport CUDA_DICT
from arrayhub.adapters.type_cache cimport SILENT_ON_DEFAULT, record_of_type
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, locate, safe_stream

cdef enum:
    EMITTED_VERSION = 3
    FIRST_WITH_STREAM = 3


cdef Descriptor parse(object obj, object stream):
    """An array on the memory that ``obj.__cuda_array_interface__`` describes, or None where it has no such attribute.

    Parameters
    ----------
    obj : object
        The producer; it is kept, and with it, by the specification, memory and stream.
    stream : object
        Not used: the dict says all that a stream can be ordered behind.

    Raises
    ------
    InterfaceError
        A key is missing, of the wrong type, or says what cannot be.
    """
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is None:
        return None
    return parse_as(interface, obj, None)


cdef Descriptor parse_as(object interface, object obj, object dtype):
    """The same of a dict in hand, with elements of a dtype that is known; None: of the type that the dict says."""
    cdef Entries entries
    begin(&entries)
    try:
        read(interface, CUDA_DICT, &entries)
        return described(obj, &entries, dtype)
    finally:
        let_go(&entries)


cdef Descriptor described(object obj, const Entries* entries, object dtype):
    """The array that the entries of an interface dict describe."""
    cdef Descriptor a = new_from_dict(entries, CUDA_DICT, dtype)
    a.base_ = obj
    a.device_.device_type = kDLCUDA
    set_pointer(a, entry(entries, DATA))
    seal(a)
    locate(a)
    set_stream(a, entries, obj)
    return a


cdef int set_stream(Descriptor a, const Entries* entries, object obj) except -1:
    """What the producer says of work in flight: on which stream, none, or (before version 3) nothing."""
    cdef Py_ssize_t handle
    if whole(entry(entries, VERSION), CUDA_DICT, "version", -1) < FIRST_WITH_STREAM:
        a.producer_ = obj
        return 0
    named = entry(entries, STREAM)
    if named is not None:
        handle = whole(named, CUDA_DICT, "stream", -1)
        if handle <= 0:
            raise dict_error(CUDA_DICT, "stream", named, "None (nothing to wait for), 1 (legacy default stream), 2"
                             " (per-thread default stream) or the handle of a stream; 0 could be either default stream")
        a.stream_ = <void*> <intptr_t> handle
        return 0
    cls = type(obj)      # held: code of a metaclass may run, and give the object another class
    if record_of_type(cls) & SILENT_ON_DEFAULT:      # which is not what version 3 means by None
        a.stream_ = <void*> <intptr_t> LEGACY_STREAM
    return 0


cdef object emit(Descriptor a):
    """The dict of version 3, for memory that a CUDA kernel can reach.

    Consumers decide by ``hasattr``, so whatever makes the dict untrue is an AttributeError. ``stream`` is a stream in
    whose order the memory is safe to read, or None where nothing is in flight.
    """
    cdef intptr_t stream
    if a.device_.device_type not in (kDLCUDA, kDLCUDAManaged, kDLCUDAHost):
        raise AttributeError("__cuda_array_interface__: a CUDA kernel cannot reach this memory; call"
                             " x.to_device('cuda:0'), which copies")
    typestr, descr = type_keys(a)
    try:
        stream = safe_stream(a)
    except BufferError as error:
        raise AttributeError(f"__cuda_array_interface__: no stream can be named; {error}") from error
    cdef dict keys = {
        "shape": shape_tuple(a),
        "typestr": typestr,
        "data": (<size_t> a.data_ if size_of(a) != 0 else 0, not a.flags_ & WRITEABLE),
        "strides": None if a.flags_ & C_CONTIGUOUS else stride_tuple(a),
        "version": EMITTED_VERSION,
        "stream": stream if stream != 0 else None,
    }
    if descr is not None:
        keys["descr"] = descr
    return keys


cdef tuple type_keys(Descriptor a):
    """typestr and descr (None unless there are fields); AttributeError where the protocol cannot say the type."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row.kind == c"E" or a.flags_ & PACKED:
        raise AttributeError(f"__cuda_array_interface__: no typestr says {row.name.decode()};"
                             f" {dtypes.names_of('own')} can")
    dtype = get_dtype(a)
    if dtype.names is None:
        return dtype.str, None
    if dtypes.has_user_types(dtype):
        raise AttributeError(f"__cuda_array_interface__: no descr says {dtype!r}; view the memory as bytes, or field by field")
    try:
        return dtype.str, dtype.descr
    except ValueError as error:      # overlapping fields, or fields out of order
        raise AttributeError(f"__cuda_array_interface__: no descr says {dtype!r}; {error}") from None
