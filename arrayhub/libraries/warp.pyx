"""warp's arrays: by DLPack, and those of structs by NumPy.

Of structs warp's ``__array_interface__`` has a ``descr`` that is no list, and DLPack has no word for them (warp 1.19).
"""

from arrayhub.adapters cimport dlpack
from arrayhub.libraries cimport numpy


cdef Descriptor parse(object obj, object stream):
    """The memory of a ``warp.array``.

    Raises
    ------
    BufferError
        Structs on a device; ``x.numpy()`` copies them.
    """
    if type(obj.dtype).__name__ != "Struct":
        return dlpack.parse(obj, stream)
    cdef Descriptor a = None
    if obj.device.is_cpu:
        a = numpy.parse(obj.numpy(), stream)
    if a is None or a.size and <size_t> a.data_ != <size_t> (obj.ptr or 0):
        raise BufferError(
            f"warp: an array of {obj.dtype.key} on {obj.device} has no protocol that says its elements; pass x.numpy(), a"
            " copy"
        )
    return a
