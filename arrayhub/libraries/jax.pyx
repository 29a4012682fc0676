"""jax: its arrays in (they are immutable, which no protocol of theirs says, and their DLPack wants care), and out."""

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport IMMUTABLE, WRITEABLE, Descriptor
from arrayhub.adapters cimport buffer, dlpack
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, NO_STREAM, remember_stream, stream_handle

from arrayhub.libraries.host import LegacyView


cdef Descriptor parse(object obj, object stream):
    """An array on the memory of a ``jax.Array``, wherever that lies.

    Host memory comes by the buffer protocol, several times faster than by DLPack; what it cannot say (bfloat16, a
    GPU's memory) by DLPack.

    Raises
    ------
    BufferError
        The array is spread over several devices, was deleted, or has elements that jax exports by no protocol.
    """
    cdef Descriptor a
    try:
        a = buffer.parse(obj, None)
    except (BufferError, TypeError, ValueError):    # jax says so in different words for types, devices and shards
        a = None
    if a is None:
        try:
            a = parse_dlpack(obj, stream)
        except RuntimeError as error:      # XLA's: types that it has no DLPack code for, arrays that were given away
            raise BufferError(f"jax: it refuses to export this array ({error}); convert or copy it with jax first") from error
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
        return dlpack.parse(obj, None)
    if stream is not None and stream_handle(stream) != NO_STREAM:
        handle = stream_handle(stream)
    cdef Descriptor a = dlpack.parse_capsule(obj.__dlpack__(stream=handle), False, obj)
    if stream is not None:
        remember_stream(a, stream)
    return a


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

    view = LegacyView(array)
    try:
        result = jax.dlpack.from_dlpack(view)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BufferError(f"jax: it refuses this array ({error}); pass copy=True") from error
    if not may_copy and array.size and result.unsafe_buffer_pointer() != array.ptr:
        raise BufferError(
            "jax: it takes host memory without a copy only if compact, on a 64-byte boundary and of a type it has"
            f" (64-bit ones only with jax_enable_x64); address {array.ptr:#x}, byte strides {array.byte_strides}, dtype"
            f" {array.dtype}."
            " Pass copy=True"
        )
    return result
