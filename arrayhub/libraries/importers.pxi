"""Importers that check an object or select a protocol, for libraries without a module of their own."""

import sys

cimport numpy as cnp

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters cimport buffer, dlpack
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI
from arrayhub.libraries cimport numpy

from arrayhub._core.errors import PASSES_ON, InterfaceError


cdef Descriptor without_strings(object obj, object stream):
    """Reject TensorFlow tensors whose elements are not numbers. Return None for other tensors, so that protocols are tried.

    ``__dlpack__`` of the rejected tensors ends the process (``CHECK(DataTypeCanUseMemcpy)`` in tensorflow 2.21).
    """
    name = obj.dtype.name
    if name == "string":
        call = "arrayhub.asnested(x.numpy().tolist())" if obj.shape.rank else "x.numpy(), which returns its bytes"
        raise BufferError(f"tensorflow.Tensor: dtype is 'string'; accepted: numbers. Call {call}")
    if name == "variant" or name == "resource":
        raise BufferError(f"tensorflow.Tensor: dtype is {name!r}, whose elements are opaque handles; accepted: numbers")
    return None


cdef Descriptor dlpack_first(object obj, object stream):
    """Import an object through DLPack, which describes these objects better than their buffer does.

    Return None if the export through DLPack raises an error. An invalid export raises InterfaceError.
    """
    try:
        return dlpack.parse(obj, stream)
    except InterfaceError:
        raise
    except PASSES_ON:
        raise
    except Exception:
        return None


cdef Descriptor unpacked_buffer(object obj, object stream):
    """Import an object through the buffer protocol.

    Reject packed booleans, because nanoarrow (0.9) exports them with the format of bytes.
    """
    cdef Descriptor a = buffer.parse(obj, stream)
    if a is not None and a.typenum_ == cnp.NPY_UBYTE and obj.data_type == "bool":
        raise TypeError(f"nanoarrow.{type(obj).__name__}: booleans are packed, eight per byte; accepted: one per byte. Use"
                        " numpy.fromiter(x.elements(), bool), which copies")
    return a


cdef Descriptor parse_paddle(object obj, object stream):
    """Import a ``paddle.Tensor`` or a parameter through the exchange table.

    The table is used because ``__dlpack_device__`` returns None as the host's device number (paddle 3.3). Unlike
    ``__dlpack__``, the table exports tensors that require gradients, so these tensors are rejected here. The table and
    ``__dlpack__`` do not support sparse tensors. Return None if paddle does not have a table.

    Raises
    ------
    BufferError
        The tensor requires gradients, or is sparse. The message names ``detach()`` or ``to_dense()``.
    """
    if not obj.is_dense():
        raise BufferError("paddle: the tensor is sparse; pass x.to_dense(), a dense copy")
    if not obj.stop_gradient:
        raise BufferError("paddle: the tensor requires gradients, which an array does not track; pass x.detach()")
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(sys.modules["paddle"].Tensor)
    if api == NULL:
        return None
    return dlpack.parse_exchange(obj, api)


cdef Descriptor parse_warp(object obj, object stream):
    """Import a ``warp.array`` through DLPack, or a host array of structs through NumPy.

    DLPack does not have structs, and the ``descr`` in warp's ``__array_interface__`` is not a list (warp 1.19).

    Raises
    ------
    BufferError
        The elements are structs on a device. ``x.numpy()`` copies them.
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
