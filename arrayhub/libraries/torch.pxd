from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.cpython.atomics cimport is_done
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI

cdef int torch_found
cdef DLPackExchangeAPI* exchange_table

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_by_dlpack(object obj, object stream)
cdef int find_torch() except -1


cdef inline DLPackExchangeAPI* table() except? NULL:
    """Return torch's exchange table; NULL for a torch without one."""
    if not is_done(&torch_found):
        find_torch()
    return exchange_table
