"""mypy checks that public functions have the right types. This file is not executed."""

from typing import Any, Literal, Self, assert_type

import jax
import numpy as np
import numpy.typing as npt
import pandas
import polars
import pyarrow
import torch

import arrayhub
from arrayhub import Device, USMArray
from arrayhub.convert.placement import Placement
from arrayhub.inspection.pictures.drawing import Picture
from arrayhub.inspection.pictures.picture import TextPicture


class Tensor:
    @classmethod
    def from_dlpack(cls, x: object) -> Self: ...  # type: ignore[empty-body]


def imports(a: npt.NDArray[np.float32], capsule: object) -> None:
    assert_type(arrayhub.asarray(a), USMArray)
    assert_type(arrayhub.asarray(a, dtype="f8", device=Device("cuda:0"), copy=True, stream=1, via="dlpack"), USMArray)
    assert_type(arrayhub.asarray([1, 2]), USMArray)
    assert_type(arrayhub.asarray(a, dtype=torch.bfloat16), USMArray)
    assert_type(arrayhub.zeros(3, jax.numpy.float32), USMArray)
    assert_type(arrayhub.asarray(a).astype(torch.float64).to_numpy(dtype=torch.int8), npt.NDArray[Any])
    assert_type(arrayhub.from_dlpack(capsule, device=(1, 0)), USMArray)
    assert_type(USMArray((2, 3), "u2", buffer="shared", strides=(3, 1), order="F"), USMArray)
    arrayhub.asarray(a, via="pep3118")  # type: ignore[arg-type]
    USMArray()  # type: ignore[call-arg]


def properties(x: USMArray) -> None:
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.memory.nbytes, int | None)
    assert_type(x.usm_type, Literal["host", "shared", "device"] | None)
    assert_type(x[0, ..., None, 1:], USMArray)
    assert_type(x.reshape(2, -1).transpose((1, 0)).T, USMArray)
    assert_type(x.device.dlpack, tuple[int, int])
    assert_type(x.dims, tuple[str | None, ...] | None)
    assert_type(x.with_dims("IJ", origin=(1, 0)).with_dims({"I": "K"}).align("J", "K").align(["K", "J"]), USMArray)
    assert_type(arrayhub.storage.get_dims(x), tuple[str, ...] | None)
    assert_type(x.with_dims(("I", None)).with_dims({"I": None}), USMArray)
    x.with_dims((1, 2))  # type: ignore[arg-type]
    x.flags.writeable = False
    x.shape = (1,)  # type: ignore[misc]
    x["field"]


def descriptions(x: USMArray) -> None:
    assert_type(arrayhub.datashape.of(x, symbolic=True), str)
    assert_type(arrayhub.datashape.parse("2 * int32"), arrayhub.datashape.Type)
    assert_type(arrayhub.datashape.parse("2 * int32").dtype, np.dtype[Any])
    assert_type(arrayhub.debug_repr(x), str)
    assert_type(arrayhub.explain(x, to="torch").verdicts[0].verdict, str)
    assert_type(x.aligned().native(copy=True), USMArray)
    assert_type(arrayhub.testing.check_producer(np.asarray, dtypes=[np.float32, "int8"]).ok, bool)
    arrayhub.transfer.configure(threads=2)
    arrayhub.explane(x)  # type: ignore[attr-defined]


def exports(x: USMArray, out: npt.NDArray[np.float64]) -> None:
    assert_type(arrayhub.to_host(x, out=out), npt.NDArray[np.float64])
    assert_type(arrayhub.as_numpy(x, copy=True), npt.NDArray[Any])
    assert_type(arrayhub.to_device(x, "oneapi:0"), USMArray)
    assert_type(arrayhub.to_host(x), USMArray)
    assert_type(arrayhub.as_torch(x), torch.Tensor)
    assert_type(arrayhub.as_jax(x), jax.Array)
    assert_type(arrayhub.as_torch(x, dtype="f4", device="cuda:0", missing=0), torch.Tensor)
    assert_type(arrayhub.as_numpy(x, missing="mask"), np.ma.MaskedArray[Any, Any])
    assert_type(arrayhub.convert(x, Tensor), Tensor)
    assert_type(arrayhub.convert(x, USMArray, copy=True), USMArray)
    assert_type(arrayhub.convert(x, arrayhub.NestedArray), arrayhub.NestedArray)
    assert_type(arrayhub.convert(x, "scipy"), Any)
    assert_type(arrayhub.as_pandas(x), pandas.Series | pandas.DataFrame)
    assert_type(arrayhub.as_polars(x), polars.Series | polars.DataFrame)
    assert_type(arrayhub.as_arrow(x), pyarrow.Array | pyarrow.ChunkedArray | pyarrow.Table | pyarrow.RecordBatch)
    assert_type(arrayhub.convert(x, np), Any)
    assert_type(x.item(0), float | Any)
    assert_type(x.tolist(), list[Any] | Any)
    x.tolist().append(x.item() + 1)
    assert_type(arrayhub.asnested(x, copy=True), arrayhub.NestedArray)
    assert_type(arrayhub.asnested(x), arrayhub.NestedArray)
    assert_type(np.asarray(x), npt.NDArray[Any])
    memoryview(x)
    bytes(x)
    np.from_dlpack(x)


def for_authors(x: USMArray, a: npt.NDArray[np.float64]) -> None:
    @arrayhub.adapt("numpy", copy=None, device="cpu", labels=True)
    def double(v: npt.NDArray[np.float64], n: int = 2) -> npt.NDArray[np.float64]:
        return v * n

    assert_type(double(a, n=3), npt.NDArray[np.float64])
    double(a, "3")  # type: ignore[arg-type]
    place = arrayhub.placement(a, x, prefer="torch")
    assert_type(place, Placement)
    assert_type(place.library, str)
    assert_type(place.device, Device)
    assert_type(arrayhub.like(a, x), USMArray)
    assert_type(arrayhub.like(x, USMArray, copy=True), USMArray)
    assert_type(arrayhub.like(x, a, dtype="model", missing=0), npt.NDArray[np.float64])
    assert_type(arrayhub.like(a, arrayhub.asnested([[1]])), arrayhub.NestedArray)
    assert_type(arrayhub.like(x, [1.0]), npt.NDArray[Any])
    assert_type(arrayhub.like(a, np, labels=True), Any)
    assert_type(arrayhub.like(a, x, missing="mask"), Any)
    request = arrayhub.Request("n * 3 * float32", where=("host", "usm"), may="cast", name="f: x")
    assert_type(request.asarray(a), USMArray)
    assert_type(request.matches(a), bool)
    assert_type(request.explain(a), str)


def new_arrays(a: npt.NDArray[np.float32]) -> None:
    assert_type(arrayhub.empty((3, 4), "f4", backend="gt:cpu_ifirst", alignment=64, halo=((1, 1), 0)), USMArray)
    assert_type(arrayhub.zeros(3, memory="usm_shared", device="oneapi:0"), USMArray)
    assert_type(arrayhub.full((3,), 1, dims=("x",), origin=[0], layout="F"), USMArray)
    assert_type(arrayhub.from_array(a, dtype=None, memory="cuda"), USMArray)
    assert_type(arrayhub.ones(like=a, dtype="f8", layout=(1, 0)), USMArray)
    assert_type(arrayhub.full(fill_value=1, like=a), USMArray)
    assert_type(arrayhub.storage.plan((3, 4), alignment=64).strides, tuple[int, ...])
    assert_type(arrayhub.storage.layout_for("IJK", "numpy"), tuple[int, ...])
    arrayhub.storage.layouts.register("mine", lambda dimensions: range(len(dimensions)))
    assert_type(arrayhub.check(a), list[str])
    arrayhub.empty(3, memory="gpu")  # type: ignore[arg-type]
    arrayhub.ones(3, order="F")  # type: ignore[call-arg]
    arrayhub.storage.plan(3).offset = 1  # type: ignore[misc]


def pictures(x: USMArray) -> None:
    assert_type(x.picture, Picture)
    assert_type(arrayhub.picture((2, 3), (3, 1), offset=2, size=6, itemsize=8), Picture)
    assert_type(x.picture.text() + x.picture.svg(), str)
    assert_type(x.picture.strides, tuple[int, ...] | None)
    arrayhub.picture("(2, 3)", 1.5)  # type: ignore[call-overload]
    assert_type(x.picture(), Picture)
    assert_type(arrayhub.picture(x), Picture)
    assert_type(arrayhub.picture(arrayhub.asnested([[1]])), Picture | TextPicture)
