"""warp: import of its arrays by DLPack, and of arrays of structs by NumPy.

For structs, the ``descr`` in warp's ``__array_interface__`` is not a list, and DLPack does not have such types (warp 1.19).
"""

from arrayhub.adapters cimport dlpack
from arrayhub.libraries cimport numpy


cdef Descriptor parse(object obj, object stream):
    """Import a ``warp.array``.

    Raises
    ------
    BufferError
        The elements are structs on a device; ``x.numpy()`` copies them.
    """
    if type(obj.dtype).__name__ != "Struct":
        return dlpack.parse(obj, stream)
    cdef Descriptor a = None
    if obj.device.is_cpu:
        a = numpy.parse(obj.numpy(), stream)
    if a is None or a.size and <size_t> a.data_ != <size_t> (obj.ptr or 0):
        raise BufferError(
            f"warp: {obj.dtype.key} elements on {obj.device} cannot be exported by any protocol; pass x.numpy(), a"
            " copy"
        )
    return a
