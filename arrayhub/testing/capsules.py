"""DLPack capsules with unusual contents, such as a byte offset, null pointers or an unknown device type."""

import ctypes
from typing import Any

_python = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle)
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_NAME = b"dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_alive: list[Any] = []  # keeps the tensors and their arrays alive forever, because the deleter does nothing
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda tensor: None)


def capsule(
    array: Any,
    *,
    offset: int = 0,
    strides: bool = True,
    data: bool = True,
    deleter: bool = True,
    device: tuple[int, int] = (1, 0),
) -> Any:
    """Return a legacy capsule of a C-contiguous NumPy array of float64.

    `offset` is the value of the field `byte_offset`, and is subtracted from the field `data`. If `strides`, `data` or
    `deleter` is False, the field of this name is a null pointer. `device` is the device type and the device ID.
    """
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    steps = (ctypes.c_int64 * max(array.ndim, 1))(*[step // 8 for step in array.strides])
    tensor = _Tensor(
        array.ctypes.data - offset if data else None,
        *device,
        array.ndim,
        2,
        64,
        1,
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)) if strides else None,
        offset,
        None,
        ctypes.cast(_DELETER, ctypes.c_void_p) if deleter else None,
    )
    _alive.append((tensor, shape, steps, array))
    return _new(ctypes.addressof(tensor), _NAME, None)
