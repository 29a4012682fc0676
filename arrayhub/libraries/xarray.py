"""xarray: export as a DataArray. convert/dispatch imports DataArrays: the wrapped array, with its dimension names."""

from arrayhub._core.errors import needed, unreadable
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.host import is_host_readable


def emit(array):
    """Export `array` as an ``xarray.DataArray`` that shares its memory and has its dimension names.

    Raises
    ------
    BufferError
        xarray does not support arrays of the device.
    ImportError
        xarray is not installed.
    """
    xarray = needed("xarray", "for to_xarray")
    return xarray.DataArray(_data(array), dims=array.dims)


def _data(array):
    """Return the memory as an array that xarray can wrap."""
    if is_host_readable(array):
        return ndarray(array)
    if array.device.type == "cuda":
        from arrayhub.libraries import cupy

        return cupy.emit(array)
    raise BufferError(unreadable("xarray", array.device, "xarray"))
