"""Test `xarray.apply_ufunc` with a NumPy-based function and DataArrays of several libraries."""

import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

xarray = pytest.importorskip("xarray")


def smooth(x):
    """Return the means of neighboring elements along the last dimension, which is periodic, as an array like `x`."""
    a = ah.as_numpy(x)
    return ah.like((a + np.roll(a, -1, axis=-1)) / 2, x)


def expected(values):
    return (values + np.roll(values, -1, axis=-1)) / 2


def test_apply_ufunc_on_numpy_dataarrays():
    values = np.arange(6.0).reshape(2, 3)
    record = xarray.DataArray(values, dims=("y", "x"), coords={"x": [10, 20, 30]})
    result = xarray.apply_ufunc(smooth, record, input_core_dims=[["x"]], output_core_dims=[["x"]])
    assert result.dims == ("y", "x") and result.coords["x"].values.tolist() == [10, 20, 30]
    assert np.array_equal(result.values, expected(values))


def test_apply_ufunc_keeps_the_library_of_the_dataarray():
    strict = pytest.importorskip("array_api_strict")
    values = np.arange(6.0).reshape(2, 3)
    record = xarray.DataArray(strict.asarray(values), dims=("y", "x"))
    result = xarray.apply_ufunc(smooth, record, input_core_dims=[["x"]], output_core_dims=[["x"]])
    assert type(result.data) is type(record.data)
    assert np.array_equal(np.asarray(result.data), expected(values))


def test_apply_ufunc_on_dask_chunks():
    pytest.importorskip("dask.array")
    values = np.arange(12.0).reshape(4, 3)
    record = xarray.DataArray(values, dims=("y", "x")).chunk({"y": 2})
    result = xarray.apply_ufunc(
        smooth,
        record,
        input_core_dims=[["x"]],
        output_core_dims=[["x"]],
        dask="parallelized",
        output_dtypes=[values.dtype],
    )
    assert np.array_equal(result.compute().values, expected(values))
