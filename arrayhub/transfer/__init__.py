"""Explicit copies, one engine a kind of memory: host, SYCL, CUDA. Nothing here runs unless the caller asked for it."""

from arrayhub._core.device import Device
from arrayhub.libraries.host import host_view, is_host_readable
from arrayhub.transfer import host

_CPU = Device("cpu")
FIRST_OWN_TYPENUM = 4096  # as in _core/dtypes: from here on numbers are arrayhub's own


def _engine(device):
    """The room that copies from and to a device the host cannot read."""
    if device.type == "oneapi":
        from arrayhub.transfer import sycl

        return sycl
    if device.type in ("cuda", "cuda_host", "cuda_managed"):
        from arrayhub.transfer import cuda

        return cuda
    raise BufferError(f"device {device}: no engine copies from or to it; accepted: cpu, cuda and oneapi devices")


def copy(array, *, order="C"):
    """Return a writable copy of `array` on its own device. See ``USMArray.copy``."""
    if order not in ("C", "F", "K"):
        raise ValueError(f"copy: order is {order!r}; accepted: 'C', 'F' or 'K'")
    if array.device == _CPU:
        return host.copy(array, order)
    return _engine(array.device).copy(array, order)


def to_host(array, *, out=None, copy=None, stream=None):
    """Return `array` in host memory. See ``arrayhub.to_host``."""
    if out is not None:
        return _into(array, out, copy)
    if is_host_readable(array):
        return host.copy(host_view(array), "C") if copy else host_view(array)
    if copy is False:
        raise BufferError(f"to_host: the memory is on {array.device}, so a copy is needed, and copy=False forbids one")
    return _engine(array.device).to_host(array)


def _into(array, out, copy):
    """Copy `array` into the host array `out`."""
    if copy is False:
        raise BufferError("to_host: out= asks for a copy, and copy=False forbids one")
    if out.shape != array.shape or not _same_type(out, array):
        raise ValueError(f"to_host: out is {out!r}; accepted: the shape and the element type of {array!r}")
    source = array if is_host_readable(array) else _engine(array.device).to_host(array)
    host.copy_into(host_view(source), out)
    return out


def _same_type(a, b):
    """Whether bytes of one may be read as elements of the other: byte order, units and fields included."""
    if a.typenum != b.typenum or a.itemsize != b.itemsize:
        return False
    # Types without a dtype object (complex32, say) have nothing more to differ in.
    return a.typenum >= FIRST_OWN_TYPENUM or a.dtype == b.dtype


def to_device(array, device, *, copy=None, stream=None):
    """Return `array` on `device`. See ``arrayhub.to_device``."""
    device = device if isinstance(device, Device) else Device(device)
    if device == array.device:
        return _copy(array) if copy else array
    if device == _CPU:
        return to_host(array, copy=copy, stream=stream)
    if copy is False:
        raise BufferError(f"to_device: from {array.device} to {device} takes a copy, and copy=False forbids one")
    return _engine(device).from_host(to_host(array, stream=stream), device.id)


_copy = copy


def write(fresh, source):
    """Put the elements of `source` into `fresh`, an array of the same element type that nobody else has seen yet.

    `source` may lie anywhere, and may be a single element.
    """
    if is_host_readable(fresh):
        host.copy_into(to_host(source), fresh)
    elif fresh.size:
        _engine(fresh.device).write(fresh, source if source.device.type == fresh.device.type else to_host(source))


def for_dlpack(array, dl_device, copy, stream):
    """Return what ``__dlpack__(dl_device=, copy=)`` exports: `array`, or a copy where asked for or needed."""
    if dl_device is None:
        return _copy(array)
    device = Device(tuple(dl_device))
    if device == _CPU and stream is not None and array.device != _CPU:
        raise BufferError(f"DLPack: stream is {stream!r} with dl_device {dl_device}; accepted: None for host memory")
    return to_device(array, device, copy=copy, stream=stream)


def astype(array, dtype):
    """Return a fresh host copy with another element type; the elements are converted as NumPy's astype does."""
    if not is_host_readable(array):
        raise BufferError(
            f"asarray: converting {array.dtype!r} to {dtype!r} on {array.device} is arithmetic of its own library;"
            " convert there, or call to_host(x) first"
        )
    return host.astype(array, dtype)


def aligned(array, *, copy=None):
    """Return `array` with each element on a boundary of its type's alignment. See ``USMArray.aligned``."""
    if copy is not True and array.flags.aligned:
        return array
    if copy is False:
        raise BufferError("aligned: the elements lie unaligned, so a copy is needed, and copy=False forbids one")
    return _copy(array)


def native(array, *, copy=None):
    """Return `array` with its elements in the machine's byte order. See ``USMArray.native``."""
    if array.typenum >= FIRST_OWN_TYPENUM or array.dtype.isnative:  # our own types come in the machine's order only
        return _copy(array) if copy else array
    if copy is False:
        raise BufferError(f"native: from {array.dtype!r} takes a copy, and copy=False forbids one")
    if not is_host_readable(array):
        raise BufferError(f"native: the memory is on {array.device}; call to_host() first, for the host to swap them")
    return host.astype(host_view(array), array.dtype.newbyteorder("="))


def copy_for(array, device_type):
    """Return a copy that a library can read which knows the host and one device type: there if it is there already."""
    return _copy(array) if array.device.type == device_type else to_host(array, copy=True)


def copy_to(array, device_type):
    """Return a copy for a library that knows one device type only."""
    return _copy(array) if array.device.type == device_type else to_device(array, f"{device_type}:0")
