"""xarray: export as a DataArray. `known` imports DataArrays: the wrapped array, with its dimension names."""

from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.errors import Refusal, form_of, needed
from arrayhub._core.hooks import hooks
from arrayhub.libraries.dtypes import cast_times
from arrayhub.libraries.known import derived_from
from arrayhub.libraries.numpy import ndarray


def as_xarray(obj, copy, **request):
    """Return a DataArray. If `obj` is a DataArray, the result has its coordinates, its name and its attributes."""
    is_own = is_data_array(type(obj))
    if is_own and all(value is None for value in request.values()) and not (copy and obj.chunks):
        return obj.copy() if copy else obj  # of any elements. A copy of a dask array would share memory in its graph
    array = hooks.functions.import_unadvised(obj, copy=copy, **request)
    if is_own and not copy and _is_unchanged(array, obj):
        return obj
    if copy is True and not is_host_readable(array) and array.device.type != "cuda":
        array = array.to_host()  # only device= and copy=True move memory to another device
    made = emit(array, copied=copy is not False)
    return obj.copy(data=made.data) if is_own else made


is_data_array = derived_from("xarray", "DataArray")


def _is_unchanged(array, obj):
    """Return whether an array, which was imported from `obj` with other keywords, has the memory of `obj`."""
    try:
        own = hooks.functions.asarray(obj)
    except (BufferError, TypeError):
        return False
    return own.ptr == array.ptr and own.dtype == array.dtype


def emit(array, copied=False):
    """Export `array` as an ``xarray.DataArray`` that shares its memory and has its dimension names.

    Raises
    ------
    BufferError
        xarray does not support arrays of the device, or the elements. With `copied`, times are cast.
    ImportError
        xarray is not installed.
    """
    xarray = needed("xarray", "for to_xarray")
    if is_host_readable(array):
        data = cast_times(ndarray(array), copied, "xarray")
    elif array.device.type == "cuda":
        from arrayhub.libraries import cupy

        data = cupy.emit(array)
    else:
        reason = f"the memory is on {array.device}, which xarray cannot read"
        raise Refusal("xarray", reason, call="arrayhub.to_host(x)")
    names = array.dims and [f"dim_{k}" if name is None else name for k, name in enumerate(array.dims)]  # as in xarray
    try:
        return xarray.DataArray(data, dims=names)
    except (TypeError, ValueError) as error:  # for example, of pandas for times without a unit
        raise form_of(error) from error
