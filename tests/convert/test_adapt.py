"""adapt: functions of one library that accept and return the arrays of every library."""

import asyncio
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import arrayhub as ah


class Pair(NamedTuple):
    low: Any
    high: Any


@ah.adapt("numpy", copy="if_needed")
def blur(x, width=3):
    """Return the moving average."""
    assert type(x) is np.ndarray
    return np.convolve(x, np.ones(width) / width, "same")


@pytest.mark.parametrize(
    ("library", "make", "cls"),
    [
        ("torch", "rand", "Tensor"), ("pyarrow", "array", "Array"), ("pandas", "Series", "Series"),
        ("polars", "Series", "Series"), ("xarray", "DataArray", "DataArray"), ("dpnp", "ones", "ndarray"),
    ],
)  # fmt: skip
def test_the_kind_of_the_caller_is_returned(library, make, cls):
    module = pytest.importorskip(library, reason=f"{library} is part of the extra test")
    x = getattr(module, make)(8) if make in ("rand", "ones") else getattr(module, make)([1.0, 2.0, 3.0])
    assert isinstance(blur(x), getattr(module, cls))


def test_labels_of_the_argument_are_kept():
    pandas = pytest.importorskip("pandas", reason="pandas is part of the extra test")
    result = blur(pandas.Series([1.0, 2.0, 3.0], index=list("abc"), name="n"))
    assert result.index.tolist() == ["a", "b", "c"]
    assert result.name == "n"


def test_lists_are_passed_as_numpy():
    assert type(blur([1.0, 2.0])) is np.ndarray


def test_metadata_is_kept():
    assert blur.__name__ == "blur"
    assert blur.__doc__ == "Return the moving average."


def test_containers_of_results():
    torch = pytest.importorskip("torch", reason="torch is part of the extra test")

    @ah.adapt("numpy", copy="if_needed")
    def parts(x, label=None):
        return Pair(x.min(keepdims=True), [x, {"max": x, "label": label}]), 3, "text"

    pair, number, text = parts(torch.ones(2), label="a")
    assert type(pair) is Pair
    assert isinstance(pair.low, torch.Tensor)
    assert isinstance(pair.high[1]["max"], torch.Tensor)
    assert (pair.high[1]["label"], number, text) == ("a", 3, "text")


def test_copy_is_an_error_that_names_the_argument():
    dpnp = pytest.importorskip("dpnp", reason="dpnp is part of the extra test")

    @ah.adapt("numpy")
    def same(x, y):
        return y

    with pytest.raises(BufferError, match="same: y: .*copy='if_needed'"):
        same(np.ones(2), dpnp.ones(2, usm_type="device"))


def test_requests_and_lengths():
    torch = pytest.importorskip("torch", reason="torch is part of the extra test")

    @ah.adapt("numpy")
    def weighted(
        x: Annotated[np.ndarray, ah.Request("n * float64", may="cast")],
        w: Annotated[np.ndarray, ah.Request("n * float64", may="cast")] = None,
    ):
        return x if w is None else x * w

    assert isinstance(weighted(torch.ones(3)), torch.Tensor)
    assert weighted(torch.ones(3), torch.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="weighted: n is 3 in x, and 2 in w; accepted: equal lengths"):
        weighted(torch.ones(3), torch.ones(2))
    with pytest.raises((TypeError, ValueError), match="weighted: x"):
        weighted(torch.ones((3, 3)))


def test_methods_and_async_functions():
    torch = pytest.importorskip("torch", reason="torch is part of the extra test")

    class Model:
        @ah.adapt()
        def double(self, x):
            return x * 2

    @ah.adapt()
    async def later(x):
        return x

    assert isinstance(Model().double(torch.ones(2)), torch.Tensor)
    assert isinstance(asyncio.run(later(torch.ones(2))), torch.Tensor)


def test_ambiguous_signatures_are_refused_at_decoration():
    def generator(x):
        yield x

    async def async_generator(x):
        yield x

    for what in (generator, async_generator, int, 3):
        with pytest.raises(TypeError, match="adapt: .*accepted: functions"):
            ah.adapt()(what)
    with pytest.raises(ValueError, match="accepted: numpy"):
        ah.adapt("numpi")
