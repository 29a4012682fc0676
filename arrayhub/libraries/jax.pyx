"""jax: import and export of arrays. jax arrays are immutable, which their protocols do not express."""

import os
import sys
from functools import lru_cache

from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from arrayhub._core.cpython.atomics cimport read_int, seen, set_once, write_int
from arrayhub._core.descriptor cimport (
    BOUNDARY,
    C_CONTIGUOUS,
    IMMUTABLE,
    PACKED,
    WRITEABLE,
    Descriptor,
    get_dtype,
    host_readable,
    is_aligned,
    kDLCUDA,
)
from arrayhub._core.runtime cimport device_of, order_consumer
from arrayhub.adapters cimport buffer, dlpack
from arrayhub.libraries.known cimport library
from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    NO_STREAM,
    enter_device,
    has_devices,
    leave,
    refuse_without_device,
    remember_handle,
    stream_handle,
)
from arrayhub.runtimes.host cimport as_host, for_host_library

from arrayhub._core.errors import Refusal, first_line, needed, show


cdef int _on_gpu = False        # whether the last array was on a GPU; if so, the GPU path is tried first
cdef PyObject* _to_capsule = NULL     # jaxlib's function that ``__dlpack__`` calls; None if it is missing


cdef Descriptor parse(object obj, object stream):
    """Import a ``jax.Array`` as immutable memory, because neither jax nor other libraries may write to jax arrays.

    - Host memory is imported through the buffer protocol, which is several times faster than DLPack.
    - Element types without a buffer format, such as bfloat16, and GPU memory are imported through DLPack. For GPU memory,
      `parse_on_gpu` calls jaxlib's function without the Python code of ``__dlpack__``.
    - The CUDA interface dict would be even faster, but does not keep the memory alive. If the array is deleted or donated,
      jax reuses its memory while the view exists.
    """
    cdef Descriptor a = parse_on_gpu(obj, stream) if read_int(&_on_gpu) else None
    if a is None:
        try:
            a = buffer.parse(obj, None)
        except (BufferError, RuntimeError, TypeError, ValueError):    # jax's class depends on the dtype, device or sharding
            a = None
    if a is None:
        a = parse_by_dlpack(obj, stream)
    a.flags_ = (a.flags_ & ~WRITEABLE) | IMMUTABLE
    return a


cdef Descriptor parse_on_gpu(object obj, object stream):
    """Import a ``jax.Array`` through jaxlib's function. Return None for host memory, and after any error.

    The caller then tries the usual path, which reports the error.
    """
    cdef intptr_t handle
    cdef bint pushed
    cdef PyObject* to_capsule = seen(&_to_capsule)
    if to_capsule == NULL:
        jaxlib = sys.modules.get("jaxlib._jax") or sys.modules.get("jaxlib.xla_extension")
        to_capsule = set_once(&_to_capsule, NULL, getattr(jaxlib, "buffer_to_dlpack_managed_tensor", None))
    if to_capsule == <PyObject*> None:
        return None
    try:
        if obj.platform() == "cpu":
            write_int(&_on_gpu, False)
            return None
        if len(obj.sharding.device_set) != 1:
            return None
        # Export a single shard instead of the array. Otherwise, if the array was deleted, the release of its capsule would
        # end the process (jaxlib 0.11).
        handle = order_of(stream)
        pushed = enter_device_of(obj)
        try:
            capsule = (<object> to_capsule)(obj.addressable_data(0), stream=handle)
        finally:
            leave(pushed)
        return on_gpu(obj, stream, handle, capsule)
    except Exception:      # the private name is missing, or the array was deleted or is on several devices
        return None


cdef Descriptor parse_by_dlpack(object obj, object stream):
    try:
        devices = obj.devices()
        if len(devices) == 1:
            return parse_on_device(obj, stream, next(iter(devices)).platform)
    except Exception as error:     # exceptions of various classes; for a deleted array, the message mentions NoneType
        if obj.is_deleted():
            raise Refusal("jax", "the array was deleted or donated, so its memory is released; keep a copy") from None
        raise Refusal(
            "jax",
            f"dtype {obj.dtype} cannot be exported by any protocol ({first_line(error)}); use"
            " numpy.asarray(x), a copy, or convert it with x.astype('float32')",
            call="numpy.asarray(x)",
        ) from error
    raise Refusal(
        "jax",
        f"the array is spread over {len(devices)} devices; use its parts x.addressable_shards[i].data one by one, or call"
        " jax.device_put(x, jax.devices()[0]), which gathers it",
    )


cdef Descriptor parse_on_device(object obj, object stream, str platform):
    """Import a ``jax.Array`` through DLPack. On a GPU, pass an actual stream, because jax rejects -1."""
    cdef intptr_t handle
    cdef bint pushed
    if platform == "cpu":
        return dlpack.parse(obj, None)
    write_int(&_on_gpu, True)
    handle = order_of(stream)
    pushed = enter_device_of(obj)
    try:
        capsule = obj.__dlpack__(stream=handle)
    finally:
        leave(pushed)
    return on_gpu(obj, stream, handle, capsule)


cdef bint enter_device_of(object obj) except -1:
    """Call `enter_device` for the device of a jax array, which jax makes current for exports and copies.

    Do nothing for arrays on other devices or on several, and for tracers.
    """
    if not has_devices() or not hasattr(type(obj), "__dlpack_device__") or len(obj.sharding.device_set) != 1:
        return False
    kind, device = obj.__dlpack_device__()
    return enter_device(device) if kind == kDLCUDA else False


cdef intptr_t order_of(object stream) except? -1:
    """Return the stream that waits for jax's work: the caller's stream, or else CUDA's legacy default stream.

    Other blocking streams synchronize with the legacy default stream.
    """
    cdef intptr_t handle = NO_STREAM if stream is None else stream_handle(stream)
    return LEGACY_STREAM if handle == NO_STREAM else handle


cdef Descriptor on_gpu(object obj, object stream, intptr_t handle, object capsule):
    """Import a capsule whose stream already waits for jax's work.

    This function does not call jax again, because such a call would fail if the array was deleted.
    """
    cdef Descriptor a = dlpack.parse_capsule(capsule, False, obj)
    remember_handle(a, handle, stream)
    return a


cdef class LegacyView:
    """Producer of legacy DLPack capsules for jax.

    Legacy capsules lack a read-only flag, which is safe here because jax never writes to imported memory. Host-readable
    memory is exported as host memory.
    """
    cdef Descriptor array

    def __cinit__(self, Descriptor array):
        self.array = as_host(array) if host_readable(array) else array

    def __dlpack__(self, *, stream=None, **ignored):
        if stream is not None:
            order_consumer(self.array, stream)
        return dlpack.emit_legacy(self.array, True)

    def __dlpack_device__(self):
        device = device_of(self.array)
        return (device.device_type, device.device_id)


# Element types that jax has, of at least one byte.
cdef frozenset _ELEMENTS = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "complex64", "complex128", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
))
# Element types that jax narrows without the option jax_enable_x64.
NARROWED = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


cdef object _name_of_dtype = lru_cache(maxsize=64)(str)      # NumPy's function takes longer than the other checks


def cast_array(array, dtype, /):
    """Return a jax array or a tracer with elements of `dtype`, or the array itself if its elements have this type."""
    import jax
    import numpy

    if not isinstance(dtype, numpy.dtype):
        raise TypeError(f"dtype is {show(dtype)}; accepted: a NumPy dtype")
    if array.dtype == dtype:
        return array
    if dtype.kind in "iufc" and jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise Refusal("jax", f"{dtype} requires jax_enable_x64", "jax.config.update('jax_enable_x64', True), called first")
    cdef bint pushed = enter_device_of(array)
    try:
        return array.astype(dtype)
    except RuntimeError as error:      # of random keys
        raise Refusal("jax", first_line(error)) from error
    finally:
        leave(pushed)


def copy_array(array, /):
    """Return a copy of a jax array or a tracer."""
    cdef bint pushed = enter_device_of(array)
    try:
        return array.copy()
    finally:
        leave(pushed)


cpdef bint has_x64() except -1:
    """Return whether jax_enable_x64 is set. If jax is not imported, its environment variable decides."""
    config = getattr(sys.modules.get("jax"), "config", None)
    if config is None:
        return os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true", "t", "yes", "y", "on")
    return config.jax_enable_x64


cdef int check_elements(Descriptor a) except -1:
    """Raise Refusal for an element type that jax does not have, or would narrow."""
    dtype = get_dtype(a)      # TypeError for a type that NumPy and jax do not have
    dlpack.check_exportable(a)
    name = _name_of_dtype(dtype)
    if name in NARROWED and not has_x64():
        raise Refusal("jax", f"{dtype} requires jax_enable_x64; without it the values would be narrowed to {NARROWED[name]}",
                      "jax.config.update('jax_enable_x64', True), called first")
    if name not in _ELEMENTS:
        raise Refusal("jax", f"elements of type {name} are not supported")
    return 0


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that jax cannot share."""
    a = for_host_library(a, "jax", kDLCUDA)
    refuse_without_device(a, "jax")
    if not is_compact(a) or not is_aligned(a):
        raise Refusal("jax", f"host memory can be shared only if it is compact and starts on a {<int> BOUNDARY}-byte boundary;"
                             f" address {a.ptr:#x}" + ("" if a.flags_ & PACKED else f", byte strides {a.byte_strides}"))
    return 0


cdef bint is_compact(Descriptor a) except -1:
    """Return whether the elements have no gaps, in any order of the dimensions."""
    if a.flags_ & (C_CONTIGUOUS | PACKED):
        return True
    expected = a.itemsize_
    for stride, length in sorted(zip(a.byte_strides, a.shape)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


cdef object export(Descriptor a, bint copied, bint allow_readonly):
    """Export `a` as a ``jax.Array`` that shares its memory.

    If `copied` is true, jax may copy the values but not narrow them. Otherwise the result must share the memory. jax shares
    host memory only if it is compact, aligned to 64 bytes and of a supported element type. Read-only memory is accepted,
    because jax never writes to it.
    """
    jax = needed("jax", "to create its arrays")
    view = LegacyView(for_host_library(a, "jax", kDLCUDA))
    check_elements(a)
    if not copied:
        check_memory(a, True)
    cdef bint pushed = enter_device(a.device_.device_id) if a.device_.device_type == kDLCUDA else False
    try:
        return jax.dlpack.from_dlpack(view, copy=None if copied else False)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Refusal("jax", f"from_dlpack rejects the array ({error})") from error
    finally:
        leave(pushed)


library("jax").set_importer(0, parse)
library("jax").set_exporter(export, check_memory, check_elements)
