"""Import ``__cuda_array_interface__`` of any version, and export version 3. Source: numba's specification.

The import does not require a driver or a GPU. If a driver is available, it determines the kind of memory.
"""

import numpy

cimport numpy as cnp
from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    PACKED,
    WRITEABLE,
    Descriptor,
    get_dtype,
    kDLCUDA,
    kDLCUDAHost,
    kDLCUDAManaged,
    seal,
    set_dtype,
    shape_tuple,
    size_of,
    stride_tuple,
)
from arrayhub.adapters.table cimport CUDA_DICT
from arrayhub.adapters.type_cache cimport SILENT_ON_DEFAULT, record_of_type
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, locate, safe_stream

cdef enum:
    EMITTED_VERSION = 3
    FIRST_WITH_STREAM = 3


cdef Descriptor parse_cuda_array(object obj, object stream):
    """Import the memory that ``obj.__cuda_array_interface__`` describes, or return None without the attribute.

    Parameters
    ----------
    obj : object
        The producer. The array keeps the producer alive. The specification requires that the producer keeps its memory and
        stream alive.
    stream : object
        Not used. The caller of this function makes `stream` wait for the producer's stream, which the dict contains.

    Raises
    ------
    InterfaceError
        A key is missing, or its value is invalid or has the wrong type.
    """
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is None:
        return None
    return parse_cuda_array_as(interface, obj, None)


cdef Descriptor parse_cuda_array_as(object interface, object obj, object dtype):
    """Import an interface dict. Unless `dtype` is None, it replaces the element type of the dict."""
    cdef Entries entries
    begin(&entries)
    try:
        read(interface, CUDA_DICT, &entries)
        return described_cuda_array(obj, &entries, dtype)
    finally:
        release_values(&entries)


cdef Descriptor described_cuda_array(object obj, const Entries* entries, object dtype):
    """Return the array that the entries of an interface dict describe."""
    cdef Descriptor a = new_from_dict(entries, CUDA_DICT, dtype)
    if a.typenum_ == cnp.NPY_VOID and get_dtype(a).names is None:
        # numba's device arrays omit `descr`, without which the fields of records are unknown (numba 0.66).
        own = getattr(obj, "dtype", None)
        if isinstance(own, numpy.dtype) and own.names is not None and own.itemsize == a.itemsize_ and not own.hasobject:
            set_dtype(a, own)
    a.base_ = obj
    a.device_.device_type = kDLCUDA
    set_pointer(a, entry(entries, DATA))
    seal(a)
    locate(a)
    set_stream(a, entries, obj)
    return a


cdef int set_stream(Descriptor a, const Entries* entries, object obj) except -1:
    """Set the producer's stream. A dict from before version 3 does not contain a stream, so store the producer instead."""
    cdef Py_ssize_t handle
    if integer(entry(entries, VERSION), CUDA_DICT, "version", -1) < FIRST_WITH_STREAM:
        a.producer_ = obj
        return 0
    named = entry(entries, STREAM)
    if named is not None:
        handle = integer(named, CUDA_DICT, "stream", -1)
        if handle <= 0:
            raise dict_error(CUDA_DICT, "stream", named, "None (no pending work), 1 (legacy default stream), 2"
                             " (per-thread default stream) or the handle of a stream; 0 could mean either default stream")
        a.stream_ = <void*> <intptr_t> handle
        return 0
    cls = type(obj)      # keep a reference, because a metaclass may assign another class to the object
    if record_of_type(cls) & SILENT_ON_DEFAULT:      # for other producers, None means that no work is pending (version 3)
        a.stream_ = <void*> <intptr_t> LEGACY_STREAM
    return 0


cdef object emit_cuda_array(Descriptor a):
    """Return the dict of version 3.

    Raise AttributeError if CUDA kernels cannot access the memory, or if the dict cannot represent the element type or the
    stream, because consumers test the attribute with ``hasattr``. ``stream`` is a stream on which the memory can be read in
    stream order, or None if no work is pending.
    """
    cdef intptr_t stream
    if a.device_.device_type not in (kDLCUDA, kDLCUDAManaged, kDLCUDAHost):
        raise AttributeError("__cuda_array_interface__: CUDA kernels cannot access this memory; call"
                             " x.to_device('cuda:0'), which copies it")
    typestr, descr = type_keys(a)
    try:
        stream = safe_stream(a)
    except BufferError as error:
        raise AttributeError(f"__cuda_array_interface__: the stream cannot be exported; {error}") from error
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
    """Return typestr and descr (None without fields). Raise AttributeError if the dict cannot represent the type."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row.kind == c"E" or a.flags_ & PACKED:
        raise AttributeError(f"__cuda_array_interface__: typestr cannot represent {row.name.decode()};"
                             f" use {dtypes.names_of('own')}")
    dtype = get_dtype(a)
    if dtype.names is None:
        return dtype.str, None
    if dtypes.has_user_types(dtype):
        raise AttributeError(f"__cuda_array_interface__: descr cannot represent {dtype!r}; export the fields one by one, or"
                             " view the memory as bytes")
    try:
        return dtype.str, dtype.descr
    except ValueError as error:      # overlapping fields, or fields out of order
        raise AttributeError(f"__cuda_array_interface__: descr cannot represent {dtype!r}; {error}") from None
