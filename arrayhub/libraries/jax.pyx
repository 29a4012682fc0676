"""jax: its arrays in. They are immutable, which no protocol of theirs says, and their DLPack wants care."""

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport IMMUTABLE, WRITEABLE, Descriptor
from arrayhub.adapters cimport buffer, dlpack
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, NO_STREAM, remember_stream, stream_handle


cdef Descriptor parse(object obj, object stream):
    """An array on the memory of a ``jax.Array``, wherever that lies.

    Host memory comes by the buffer protocol, several times faster than by DLPack; what it cannot say (bfloat16, a
    GPU's memory) by DLPack.

    Raises
    ------
    BufferError
        The array is spread over several devices.
    """
    cdef Descriptor a
    try:
        a = buffer.parse(obj, None)
    except (BufferError, TypeError, ValueError):    # jax says so in different words for types, devices and shards
        a = None
    if a is None:
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
        return dlpack.parse(obj, None)
    if stream is not None and stream_handle(stream) != NO_STREAM:
        handle = stream_handle(stream)
    cdef Descriptor a = dlpack.parse_capsule(obj.__dlpack__(stream=handle), False, obj)
    if stream is not None:
        remember_stream(a, stream)
    return a
