"""paddle's tensors: by the exchange table, after a look at what it exports silently.

``__dlpack__`` refuses tensors that require gradients, and the table does not; of sparse ones neither knows what to say, and
``__dlpack_device__`` gives None for the number of the host (paddle 3.3).
"""

import sys

from arrayhub.adapters cimport dlpack
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI


cdef Descriptor parse(object obj, object stream):
    """The memory of a ``paddle.Tensor`` or of a parameter.

    Raises
    ------
    BufferError
        It requires gradients, or is sparse; the message names ``detach()`` or ``to_dense()``.
    """
    if not obj.is_dense():
        raise BufferError("paddle: a sparse tensor has no array; pass x.to_dense(), a dense copy")
    if not obj.stop_gradient:
        raise BufferError("paddle: the tensor requires gradients, of which an array knows nothing; pass x.detach()")
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(sys.modules["paddle"].Tensor)
    if api == NULL:
        return None
    return dlpack.parse_exchange(obj, api)
