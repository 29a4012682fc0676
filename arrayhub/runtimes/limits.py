"""Limits of SYCL devices, which are checked before memory is allocated: element types, size and alignment.

Some element types are optional in SYCL. An "aspect" of a device specifies whether the device supports such a type. For
example, GPUs of the Arc A series lack the aspect ``fp64``. dpctl allocates memory of any type on such a device, and the
first kernel that reads the memory then fails. dpnp and scikit-learn check the aspect.
"""

import sys
from functools import lru_cache
from typing import Any, NamedTuple

# Aspect of each optional element type, and the type to suggest on devices without the aspect. dpnp uses the same
# types, except for complex32, which dpnp does not support.
OPTIONAL = {
    "float64": ("fp64", "float32"),
    "complex128": ("fp64", "complex64"),
    "float16": ("fp16", "float32"),
    "complex32": ("fp16", "complex64"),
}

_PAGE = 4096  # bytes
_LARGE = 64 << 20  # bytes; smaller allocations are not checked, because every device supports them


class Limits(NamedTuple):
    """Name, aspects and maximum allocation size of a device."""

    name: str
    aspects: frozenset[str]  # "fp64", "fp16"
    most: int  # maximum size of one allocation in bytes


def check_type(limits: Limits, element: str, call: str) -> None:
    """Raise TypeError if a device does not support an element type. `call` is the prefix of the message.

    Parameters
    ----------
    limits : Limits
        The device.
    element : str
        Name of the element type.
    call : str
        The call that allocates.
    """
    aspect, other = OPTIONAL.get(element, (None, None))
    if aspect is not None and aspect not in limits.aspects:
        raise TypeError(
            f"{call}: dtype is {element}, which {limits.name} does not support (it lacks the aspect {aspect});"
            f" accepted: types that do not need this aspect. Pass dtype={other!r}, for example arrayhub.asarray(x,"
            f" dtype={other!r}, device=...)"
        )


def check_size(limits: Limits, nbytes: int, alignment: int, kind: str) -> None:
    """Raise MemoryError if an allocation exceeds the limit of a device. `kind` is the USM type, for the message."""
    if max(nbytes, alignment) > limits.most:
        aligned = f" with an alignment of {alignment} bytes" if alignment > limits.most else ""
        raise MemoryError(
            f"cannot allocate {nbytes} bytes of USM-{kind} memory{aligned}; accepted: at most {limits.most} bytes in"
            f" one allocation of {limits.name} (max_mem_alloc_size)"
        )


@lru_cache(64)
def limits_of(device: Any) -> Limits:
    """Return the limits of a ``dpctl.SyclDevice``."""
    aspects = frozenset(aspect for aspect in ("fp64", "fp16") if getattr(device, f"has_aspect_{aspect}"))
    return Limits(device.name.strip(), aspects, device.max_mem_alloc_size)


def check_element(element: str, queue: Any, call: str) -> None:
    """Raise TypeError if the device of `queue`, or the default device for None, does not support an element type."""
    device = _device_of(queue) if element in OPTIONAL else None
    if device is not None:
        check_type(limits_of(device), element, call)


def has_type(element: str, queue: Any) -> bool:
    """Return whether the device of a queue supports an element type."""
    aspect, _ = OPTIONAL.get(element, (None, None))
    return aspect is None or aspect in limits_of(queue.sycl_device).aspects


def check_allocation(nbytes: int, alignment: int, queue: Any, kind: str) -> None:
    """Raise MemoryError if an allocation exceeds the limit of the device of `queue`, or of the default device."""
    device = _device_of(queue) if nbytes > _LARGE or alignment > _PAGE else None
    if device is not None:
        check_size(limits_of(device), nbytes, alignment, kind)


def _device_of(queue: Any) -> Any:
    """Return the device of `queue`, or the default device if `queue` is None.

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
