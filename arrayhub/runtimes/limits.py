"""Limits of SYCL devices: element types, which are checked before memory is allocated, and sizes, which errors name.

Some element types are optional in SYCL. An "aspect" of a device specifies whether the device supports such a type. For
example, GPUs of the Arc A series lack the aspect ``fp64``. dpctl allocates memory of any type on such a device, and the
first kernel that reads the memory then fails. dpnp and scikit-learn check the aspect.
"""

import sys
from typing import Any

# Aspect of each optional element type, and the type to suggest on devices without the aspect. dpnp uses the same
# types, except for complex32, which dpnp does not support.
OPTIONAL = {
    "float64": ("fp64", "float32"),
    "complex128": ("fp64", "complex64"),
    "float16": ("fp16", "float32"),
    "complex32": ("fp16", "complex64"),
}


def has_type(element: str, queue: Any) -> bool:
    """Return whether the device of a queue, or the default device for None, supports an element type."""
    device = _device_of(queue) if element in OPTIONAL else None
    return device is None or getattr(device, f"has_aspect_{OPTIONAL[element][0]}")


def check_element(element: str, queue: Any, call: str) -> None:
    """Raise TypeError if the device of a queue, or the default device for None, does not support an element type.

    `call` is the call that allocates, for the message.
    """
    if not has_type(element, queue):
        aspect, other = OPTIONAL[element]
        raise TypeError(
            f"{call}: dtype is {element}, which {_name(_device_of(queue))} does not support (it lacks the aspect"
            f" {aspect}); accepted: types that do not need this aspect. Pass dtype={other!r}, for example"
            f" arrayhub.asarray(x, dtype={other!r}, device=...)"
        )


def allocation_error(nbytes: int, queue: Any, kind: str, error: Exception) -> MemoryError:
    """Return the error for a failed allocation, with the limit of the device of a queue, or of the default device.

    `kind` is the USM type, and `error` the runtime's error, which does not state the limit.
    """
    device = _device_of(queue)
    most = "" if device is None else f"at most {device.max_mem_alloc_size} bytes in one allocation of {_name(device)}"
    accepted = most and f"; accepted: {most} (max_mem_alloc_size)"
    return MemoryError(f"cannot allocate {nbytes} bytes of USM-{kind} memory ({error}){accepted}")


def _name(device: Any) -> str:
    name: str = device.name
    return name.strip()


def _device_of(queue: Any) -> Any:
    """Return the ``dpctl.SyclDevice`` of `queue`, or the default device if `queue` is None.

    Return None if dpctl does not find a default device, or if `queue` is not a queue. The allocation then raises an
    error.
    """
    if queue is not None:
        return getattr(queue, "sycl_device", None)
    dpctl = sys.modules["dpctl"]
    try:
        return dpctl.select_default_device()
    except dpctl.SyclDeviceCreationError:
        return None
