"""Device objects of the libraries, read as DLPack pairs: one function per library.

A reader is called with the object in hand, so its library is loaded; none is imported here.
"""

import sys

from arrayhub._core.errors import show

# torch's names of kinds of device, where DLPack has a number for them
_TORCH_TYPES = {"cpu": 1, "cuda": 2, "mps": 8, "xpu": 14, "maia": 17}
_ROCM = 10


def read_torch(device):
    """Return the pair of a ``torch.device``; one without an index is the current device of its kind."""
    torch = sys.modules["torch"]
    if not isinstance(device, torch.device) or device.type not in _TORCH_TYPES:
        what = repr(device.type) if isinstance(device, torch.device) else show(device)
        raise TypeError(f"device: {what} of torch has no DLPack number; accepted: {sorted(_TORCH_TYPES)}")
    if device.type == "cpu":
        return (1, 0)
    index = device.index
    if index is None:
        index = torch.accelerator.current_device_index() if torch.accelerator.is_available() else 0
    number = _ROCM if device.type == "cuda" and torch.version.hip else _TORCH_TYPES[device.type]
    return (number, index)


def read_cupy(device):
    """Return the pair of a ``cupy.cuda.Device``."""
    cupy = sys.modules["cupy"]
    if not isinstance(device, cupy.cuda.Device):
        raise TypeError(f"device: {show(device)} of cupy is no cupy.cuda.Device")
    return (_ROCM if is_hip(cupy) else 2, device.id)


def is_hip(cupy):
    """Return whether cupy was built for AMD's GPUs, which it does not document."""
    return getattr(cupy.cuda.runtime, "is_hip", False)


def read_jax(device):
    """Return the pair of a ``jax.Device``."""
    platform = getattr(device, "platform", None)
    if platform == "cpu":
        return (1, 0)
    if platform in ("gpu", "cuda", "rocm"):
        rocm = "rocm" in f"{platform} {device.client.platform_version}".lower()
        return (_ROCM if rocm else 2, device.local_hardware_id)
    raise TypeError(f"device: {show(device)} of jax has no DLPack number; accepted: CPU and GPU devices")


def read_cuda_core(device):
    """Return the pair of a ``cuda.core.Device``."""
    if type(device).__name__ != "Device":
        raise TypeError(f"device: {show(device)} of cuda.core is no cuda.core.Device")
    return (2, device.device_id)
