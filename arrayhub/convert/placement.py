"""placement: selection of the library and the device for a function of several arrays."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from arrayhub._core.copying import Copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub.convert.functions import EXPORTERS
from arrayhub.convert.names import OWN, library_name
from arrayhub.convert.target import Target, array_of, convert_to, target_of
from arrayhub.libraries.numpy import is_value
from arrayhub.runtimes.cuda import safe_stream
from arrayhub.runtimes.sycl import queue_of


class Placement:
    """Library and device for a function of several arrays. Created by `placement`.

    Attributes
    ----------
    library : str
        Name that `convert` uses.
    device : Device
        Device of the memory.
    stream : int, SyclQueue or None
        Stream on which the array that determined the placement can be read: the handle of a CUDA stream (1 for the
        legacy default stream) or a SYCL queue. None for host memory, and if ``prefer=`` was a device.

    Examples
    --------
    >>> place = arrayhub.placement(numpy.ones(2), [1, 2])
    >>> place.library, place.device, place.stream
    ('numpy', Device('cpu'), None)
    """

    __slots__ = ("_array", "_target", "device", "library")

    def __init__(self, target: Target, source: Any) -> None:
        self.library: str = target.library
        self.device: Device = CPU if target.device is None else target.device
        self._target = target
        # Import the array now, because the import stores the current stream.
        self._array = None if self.device == CPU else _on_device(source, self.device)

    @property
    def stream(self) -> Any:
        if self._array is None:
            return None
        if self.device.type == "cuda":
            return safe_stream(self._array) or None
        return queue_of(self._array)

    def asarray(self, obj: Any, *, copy: Copy = None, dtype: Any = None) -> Any:
        """Return `obj` as a USMArray on the device.

        Parameters
        ----------
        obj : object
            Anything that `arrayhub.asarray` accepts.
        copy, dtype : optional
            As in `like`.

        Examples
        --------
        >>> placement(np.ones(2)).asarray([1, 2]).device
        Device('cpu')
        """
        target = Target(OWN, None, self._target.device, self._target.model)
        return convert_to(target, obj, "placement", copy, dtype)

    def convert(
        self, obj: Any, *, copy: Copy = None, dtype: Any = None, labels: bool = False, missing: Any = None
    ) -> Any:
        """Return `obj` as an array of the library, on the device. The parameters are those of `like`.

        Examples
        --------
        >>> placement(np.ones(2)).convert([1, 2])
        array([1, 2])
        """
        return convert_to(self._target, obj, "placement", copy, dtype, labels, missing)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return self.library == other.library and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.library, self.device))

    def __repr__(self) -> str:
        return f"Placement(library={self.library!r}, device={str(self.device)!r})"


def placement(*objs: Any, prefer: Any = None) -> Placement:
    """Select the library and the device for a function of several arrays.

    Device memory takes precedence over host memory, other array libraries over NumPy, and NumPy over lists and numbers.
    Among arguments of the same precedence, the first decides.

    Parameters
    ----------
    *objs : object
        Arrays, lists and numbers. None and strings are ignored.
    prefer : str, Device or object, optional
        - A library, such as ``"torch"``: `objs` decide only the device.
        - A device, such as ``"cuda:1"``: `objs` decide only the library. If this library does not support the device,
          the library is ``"arrayhub"``.
        - An array or a Placement: it decides instead of `objs`.

    Returns
    -------
    Placement
        Placements are hashable, and equal if library and device are equal.

    Raises
    ------
    ValueError
        Two arguments are on different devices and `prefer` is not given, or `prefer` is not a known library.
    TypeError
        An argument is not an array, a sequence or a number.

    Examples
    --------
    >>> import torch
    >>> placement(np.ones(2), torch.ones(2), 3.0)
    Placement(library='torch', device='cpu')
    """
    ignored = (type(None), str, bytes)
    targets = [None if issubclass(type(obj), ignored) else target_of(obj, "placement") for obj in objs]
    names = [f"argument {k + 1}" for k in range(len(objs))]
    advice = "Pass prefer='{}', or move one of them with arrayhub.to_device" if prefer is None else None
    found, source = find_deciding("placement", names, objs, targets, advice)
    return Placement(found, source) if prefer is None else _prefer(prefer, found, source)


def find_deciding(
    call: str, names: Sequence[str], objs: Sequence[Any], targets: Sequence[Target | None], advice: str | None
) -> tuple[Target, Any]:
    """Return the target and the object that determine a placement. Objects without a target are ignored.

    If no object has a target, return the target for NumPy arrays, and None as the object. Raise ValueError, with
    `names` and `advice`, if two objects are on different devices and `advice` is not None.
    """
    best, rank, source = Target("numpy", None, CPU), -1, None
    on_device: tuple[str, Device] | None = None
    for name, obj, target in zip(names, objs, targets, strict=True):
        if target is None:
            continue
        device = CPU if target.device is None else target.device
        if device != CPU:
            on_device = on_device or (name, device)
            first, other = on_device
            if advice is not None and other != device:
                raise ValueError(
                    f"{call}: {first} is on {other}, and {name} on {device}; accepted: one device."
                    f" {advice.format(device)}"
                )
        own = 3 if device != CPU else 0 if is_value(obj) else 1 if target.library == "numpy" else 2
        if own > rank:
            best, rank, source = target, own, obj
    return best, source


def _on_device(source: Any, device: Device) -> Any:
    """Return `source`, the array that determined a placement, as a USMArray if its memory is on the device, else None.

    A torch tensor that `asarray` rejects because it requires a gradient is detached first.
    """
    array = array_of(source)
    if array is None and hasattr(source, "detach"):
        array = array_of(source.detach())
    return array if array is not None and array.device.type in (device.type, f"{device.type}_managed") else None


def _prefer(prefer: Any, found: Target, source: Any) -> Placement:
    if isinstance(prefer, Placement):
        return prefer
    if not isinstance(prefer, (str, Device)):
        return Placement(target_of(prefer, "placement"), prefer)
    with suppress(TypeError, ValueError):  # of a string that is not the name of a device
        device = Device(prefer)
        return Placement(Target(_library_on(device, found.library), None, device), None)
    return Placement(Target(library_name(prefer, "placement", "prefer"), None, found.device), source)


def _library_on(device: Device, library: str) -> str:
    """Return `library` if its arrays may be on the device, otherwise "arrayhub"."""
    row = EXPORTERS.get(library)
    able = device.type not in ("cuda", "oneapi") or (row is not None and row.device_type == device.type)
    return library if able else OWN
