"""jax: its arrays in (they are immutable, which no protocol of theirs says, and their DLPack wants care), and out."""

import sys

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport C_CONTIGUOUS, IMMUTABLE, PACKED, WRITEABLE, Descriptor, get_dtype, host_readable
from arrayhub._core.device cimport kDLCUDA
from arrayhub._core.memory cimport BOUNDARY
from arrayhub._core.runtime cimport device_of, order_consumer
from arrayhub.adapters cimport buffer, dlpack
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, NO_STREAM, remember_handle, stream_handle
from arrayhub.runtimes.host cimport as_host, for_host_library

from arrayhub._core.errors import PACKED_ELEMENTS, PASSES_ON, first_line, needed


cdef bint _on_gpu = False       # where the last array lay, which is where the next one is looked for first
cdef object _to_capsule = None  # jaxlib's function under ``__dlpack__``; False where it has none of that name


cdef Descriptor parse(object obj, object stream):
    """An array on a ``jax.Array``: immutable, because nobody may write to one, jax itself included.

    Host memory comes by the buffer protocol, several times faster than by DLPack; what it cannot say (bfloat16, a GPU's
    memory) by DLPack. On a GPU that is jaxlib's own function, past the Python in front of it. Its interface dict would be
    quicker still, but holds nothing: memory that is donated or deleted goes to the next array, under the view.

    Raises
    ------
    BufferError
        The array was deleted or donated, is spread over several devices, or has a type that DLPack lacks too.
    """
    cdef Descriptor a = parse_on_gpu(obj, stream) if _on_gpu else None
    if a is None:
        try:
            a = buffer.parse(obj, None)
        except PASSES_ON:
            raise
        except (BufferError, RuntimeError, TypeError, ValueError):    # different words for types, devices and shards
            a = None
    if a is None:
        a = parse_by_dlpack(obj, stream)
    a.flags_ = (a.flags_ & ~WRITEABLE) | IMMUTABLE
    return a


cdef Descriptor parse_on_gpu(object obj, object stream):
    """By jaxlib's own function, where that is there; None: ask in the usual order, which has the words for what fails."""
    global _on_gpu, _to_capsule
    cdef intptr_t handle
    if _to_capsule is None:
        jaxlib = sys.modules.get("jaxlib._jax") or sys.modules.get("jaxlib.xla_extension")
        _to_capsule = getattr(jaxlib, "buffer_to_dlpack_managed_tensor", False)
    if _to_capsule is False:
        return None
    try:
        if obj.platform() == "cpu":
            _on_gpu = False
            return None
        # Not of the array itself: giving back what that makes ends the process once the array is deleted (jaxlib 0.11).
        handle = order_of(stream)
        return on_gpu(obj, stream, handle, _to_capsule(obj.addressable_data(0), stream=handle))
    except PASSES_ON:
        raise
    except Exception:      # private names of jaxlib, a deleted array, one on several devices
        return None


cdef Descriptor parse_by_dlpack(object obj, object stream):
    try:
        devices = obj.devices()
        if len(devices) == 1:
            return parse_on_device(obj, stream, next(iter(devices)).platform)
        if obj.is_fully_replicated:      # each device has all of the values, so that any shard is the array
            return parse(obj.addressable_data(0), stream)
    except PASSES_ON:
        raise
    except Exception as error:     # jax raises many kinds, and NoneType's own for a deleted array
        if obj.is_deleted():
            raise BufferError("jax: the array was deleted or donated, so its memory is gone; keep a copy of it") from None
        raise BufferError(
            f"jax: no protocol can show the array of dtype {obj.dtype} ({first_line(error)}); take"
            " numpy.asarray(x), a copy, or convert it with x.astype('float32')"
        ) from error
    raise BufferError(
        f"jax: the array is spread over {len(devices)} devices; take x.addressable_shards[i].data one by one, or call"
        " jax.device_put(x, jax.devices()[0]), which gathers it"
    )


cdef Descriptor parse_on_device(object obj, object stream, str platform):
    """By DLPack: on a GPU with a real stream, because jax fails on -1."""
    global _on_gpu
    cdef intptr_t handle
    if platform == "cpu":
        return dlpack.parse(obj, None)
    _on_gpu = True
    handle = order_of(stream)
    return on_gpu(obj, stream, handle, obj.__dlpack__(stream=handle))


cdef intptr_t order_of(object stream) except? -1:
    """The stream that is to wait for jax's work: the caller's, else CUDA's legacy default one, which all others heed."""
    cdef intptr_t handle = NO_STREAM if stream is None else stream_handle(stream)
    return LEGACY_STREAM if handle == NO_STREAM else handle


cdef Descriptor on_gpu(object obj, object stream, intptr_t handle, object capsule):
    """An array whose work a stream waits for by now; jax need not be asked again, nor could a deleted array answer."""
    cdef Descriptor a = dlpack.parse_capsule(capsule, False, obj)
    remember_handle(a, handle, stream)
    return a


cdef object address_of(object array):
    """Where the only buffer of a jax array lies. Its own name for that is not public; its protocols say it too."""
    ask = getattr(array, "unsafe_buffer_pointer", None)
    return <size_t> parse(array, None).data_ if ask is None else ask()


cdef class LegacyView:
    """An array as a producer for jax, which reads legacy capsules and never writes: such a capsule cannot say read-only, so
    it is left out. Host-readable memory is shown as host memory."""
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


cdef str advice(Descriptor a, bint may_copy, object jax):
    """What helps with an array that jax refuses: its layout has gaps or another direction, its device is not there, or
    there is no such element type."""
    if a.flags_ & PACKED:
        return PACKED_ELEMENTS
    if not may_copy and not a.flags_ & C_CONTIGUOUS:
        return "pass copy=True"
    if not host_readable(a) and not has_cuda(jax):
        return "call arrayhub.to_host(x)"
    return 'convert the elements first, as in arrayhub.asarray(x, dtype="complex64")'


cdef bint has_cuda(object jax) except -1:
    try:
        return len(jax.devices("cuda")) > 0
    except PASSES_ON:
        raise
    except RuntimeError:      # jax was installed without it, or finds no driver
        return False


cdef object emit(Descriptor a, bint may_copy):
    """A ``jax.Array`` on the memory of `a`.

    With `may_copy` jax may copy as it likes, but not narrow the values. Otherwise the memory itself must arrive there: jax
    takes host memory without a copy only where it is compact, starts on a 64-byte boundary and has one of its own element
    types; it copies silently otherwise, so the address is compared afterwards. jax never writes, so read-only memory is
    fine.

    Raises
    ------
    BufferError
        jax could not take the memory without a copy, or has no such element type.
    """
    jax = needed("jax", "for its arrays")
    view = LegacyView(for_host_library(a, "jax", kDLCUDA))
    try:
        result = jax.dlpack.from_dlpack(view)
    except PASSES_ON:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise BufferError(f"jax: it refuses this array ({error}); {advice(a, may_copy, jax)}") from error
    if result.dtype != get_dtype(a):
        raise BufferError(
            f"jax: it has no {get_dtype(a)} without jax_enable_x64, and would narrow the values to {result.dtype}; call"
            f" jax.config.update('jax_enable_x64', True) first, or arrayhub.asarray(x, dtype='{result.dtype}') to narrow them"
        )
    if not may_copy and a.size and address_of(result) != a.ptr:
        raise BufferError(
            f"jax: it takes host memory without a copy only if compact and on a {<int> BOUNDARY}-byte boundary;"
            f" address {a.ptr:#x}, byte strides {a.byte_strides}. Pass copy=True"
        )
    return result
