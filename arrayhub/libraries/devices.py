"""Conversion of the libraries' device objects to DLPack's (device type, device id), one function per library.

Each function receives an object of its library, so the library is already loaded and is not imported here.
"""

import sys

from arrayhub._core.errors import show

# torch's device types that have a DLPack number
_TORCH_TYPES = {"cpu": 1, "cuda": 2, "mps": 8, "xpu": 14, "maia": 17}
_ROCM = 10


def read_torch(device):
    """Return the DLPack pair of a ``torch.device``. A device without an index means the current device of its type."""
    torch = sys.modules["torch"]
    if not isinstance(device, torch.device) or device.type not in _TORCH_TYPES:
        what = repr(device.type) if isinstance(device, torch.device) else show(device)
        raise TypeError(f"device: torch's {what} is not a DLPack device type; accepted: {sorted(_TORCH_TYPES)}")
    if device.type == "cpu":
        return (1, 0)
    index = device.index
    if index is None:
        index = torch.accelerator.current_device_index() if torch.accelerator.is_available() else 0
    number = _ROCM if device.type == "cuda" and torch.version.hip else _TORCH_TYPES[device.type]
    return (number, index)


def read_cupy(device):
    """Return the DLPack pair of a ``cupy.cuda.Device``."""
    cupy = sys.modules["cupy"]
    if not isinstance(device, cupy.cuda.Device):
        raise TypeError(f"device: cupy's {show(device)} is not a device; accepted: cupy.cuda.Device")
    return (_ROCM if is_hip(cupy) else 2, device.id)


def is_hip(cupy):
    """Return whether cupy was built for AMD GPUs, according to an undocumented attribute."""
    return getattr(cupy.cuda.runtime, "is_hip", False)


def read_jax(device):
    """Return the DLPack pair of a ``jax.Device``."""
    platform = getattr(device, "platform", None)
    if platform == "cpu":
        return (1, 0)
    if platform in ("gpu", "cuda", "rocm"):
        rocm = "rocm" in f"{platform} {device.client.platform_version}".lower()
        return (_ROCM if rocm else 2, device.local_hardware_id)
    raise TypeError(f"device: jax's {show(device)} is not a DLPack device; accepted: CPU and GPU devices")


def read_cuda_core(device):
    """Return the DLPack pair of a ``cuda.core.Device``."""
    if type(device).__name__ != "Device":
        raise TypeError(f"device: {show(device)} is not a device; accepted: cuda.core.Device")
    return (2, device.device_id)


def read_tvm_ffi(device):
    """Return the DLPack pair of a ``tvm_ffi.Device``."""
    if type(device).__name__ != "Device":
        raise TypeError(f"device: {show(device)} is not a device; accepted: tvm_ffi.Device")
    return (device.dlpack_device_type(), device.index)
