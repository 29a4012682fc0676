"""jax: arrays out. They come in by the buffer protocol (CPU) or DLPack (GPU), so there is no way in here."""

from arrayhub.libraries.host import LegacyView


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
            "jax: it takes host memory without a copy only if compact, on a 64-byte boundary and of a type it has (64-bit ones"
            f" only with jax_enable_x64); address {array.ptr:#x}, byte strides {array.byte_strides}, dtype {array.dtype}."
            " Pass copy=True"
        )
    return result
