"""The C exchange table of `USMArray`, called as a C library calls it."""

import ctypes

from dlpack_by_hand import ExchangeTable, Handmade, capsule_pointer

from arrayhub import USMArray

NAME = b"dlpack_exchange_api"
TABLE = ExchangeTable.from_address(capsule_pointer(USMArray.__dlpack_c_exchange_api__, NAME))

pointer = ctypes.c_void_p
SET_ERROR = ctypes.CFUNCTYPE(None, pointer, ctypes.c_char_p, ctypes.c_char_p)


def function(field, *arguments, with_gil=True):
    """Return a function of the table. If `with_gil` is true, ctypes raises the exception that the function sets."""
    make = ctypes.PYFUNCTYPE if with_gil else ctypes.CFUNCTYPE
    return make(ctypes.c_int, *arguments)(getattr(TABLE, field))


def prototype(**fields):
    made = Handmade(strides=None, **fields)
    made.managed.dl_tensor.data = 1  # invalid pointers, because only type, shape and device may be read
    made.managed.dl_tensor.byte_offset = 2**64 - 1
    made.managed.dl_tensor.strides = ctypes.cast(pointer(1), type(made.managed.dl_tensor.strides))
    return made.managed.dl_tensor
