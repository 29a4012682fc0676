"""paddle: import of its tensors by the exchange table, after checks that its exports omit.

``__dlpack__`` rejects tensors that require gradients, and the exchange table does not. Neither supports sparse tensors, and
``__dlpack_device__`` returns None as the host's device number (paddle 3.3).
"""

import sys

from arrayhub.adapters cimport dlpack
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI


cdef Descriptor parse(object obj, object stream):
    """Import a ``paddle.Tensor`` or a parameter.

    Raises
    ------
    BufferError
        The tensor requires gradients, or is sparse; the message names ``detach()`` or ``to_dense()``.
    """
    if not obj.is_dense():
        raise BufferError("paddle: the tensor is sparse; pass x.to_dense(), a dense copy")
    if not obj.stop_gradient:
        raise BufferError("paddle: the tensor requires gradients, which an array does not track; pass x.detach()")
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(sys.modules["paddle"].Tensor)
    if api == NULL:
        return None
    return dlpack.parse_exchange(obj, api)
