"""jax: its arrays in (they are immutable, which no protocol of theirs says, and their DLPack wants care), and out."""

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport IMMUTABLE, WRITEABLE, Descriptor
from arrayhub._core.device cimport kDLCUDA
from arrayhub.adapters cimport buffer, dlpack
from arrayhub.libraries.host cimport for_host_library
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, NO_STREAM, remember_stream, stream_handle

from arrayhub.libraries.host import LegacyView


cdef Descriptor parse(object obj, object stream):
    """An array on the memory of a ``jax.Array``, wherever that lies.

    Host memory comes by the buffer protocol, several times faster than by DLPack; what it cannot say (bfloat16, a
    GPU's memory) by DLPack.

    Raises
    ------
    BufferError
        The array was deleted or donated, is spread over several devices, or has a type that DLPack lacks too.
    """
    cdef Descriptor a
    try:
        a = buffer.parse(obj, None)
    except (BufferError, RuntimeError, TypeError, ValueError):    # jax says so in different words for types and devices
        a = None
    if a is None:
        if obj.is_deleted():
            raise BufferError("jax: the array was deleted or donated, so its memory is gone; keep a copy of it")
        a = parse_dlpack(obj, stream)
    a.flags_ &= ~WRITEABLE
    a.flags_ |= IMMUTABLE
    return a


cdef Descriptor parse_dlpack(object obj, object stream):
    """By DLPack: on a GPU with a real stream, because jax fails on -1."""
    cdef intptr_t handle = LEGACY_STREAM
    devices = obj.devices()
    if len(devices) != 1:
        raise BufferError(f"jax: the array is spread over {len(devices)} devices; take one of its addressable_shards,"
                          " or gather it with jax.device_put first")
    if next(iter(devices)).platform == "cpu":
        return parse_host(obj)
    if stream is not None and stream_handle(stream) != NO_STREAM:
        handle = stream_handle(stream)
    cdef Descriptor a = dlpack.parse_capsule(obj.__dlpack__(stream=handle), False, obj)
    if stream is not None:
        remember_stream(a, stream)
    return a


cdef Descriptor parse_host(object obj):
    """Host memory by DLPack, for the types that PEP 3118 lacks."""
    try:
        return dlpack.parse(obj, None)
    except (RuntimeError, ValueError) as error:
        raise BufferError(
            f"jax: no protocol can show an array of dtype {obj.dtype} ({str(error).partition(chr(10))[0]}); convert it with"
            " x.astype"
        ) from error


def emit(array, *, may_copy=False):
    """Return a ``jax.Array`` on the memory of `array`.

    With `may_copy` jax may convert and copy as it likes. Otherwise the memory itself must arrive there:
    jax takes host memory without a copy only where it is compact, starts on a 64-byte boundary and has one of its own
    element types; it copies silently otherwise, so the address is compared afterwards. jax never writes, so read-only
    memory is fine.

    Raises
    ------
    BufferError
        jax could not take the memory without a copy.
    """
    import jax

    view = LegacyView(for_host_library(array, "jax", kDLCUDA))
    try:
        result = jax.dlpack.from_dlpack(view)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BufferError(f"jax: it refuses this array ({error}); pass copy=True") from error
    if not may_copy and array.size and result.unsafe_buffer_pointer() != array.ptr:
        raise BufferError(
            "jax: it takes host memory without a copy only if compact, on a 64-byte boundary and of a type it has"
            f" (64-bit ones only with jax_enable_x64); address {array.ptr:#x}, byte strides {array.byte_strides}, dtype"
            f" {array.dtype}. Pass copy=True"
        )
    return result
