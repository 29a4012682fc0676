"""Test that `convert`, `like` and the ``as_*`` functions accept input of `asnested`."""

import awkward
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
import torch

import arrayhub as ah

pytestmark = pytest.mark.slow

KINDS = {
    "ragged list": lambda: [[1.0], [2.0, 3.0]],
    "list with None": lambda: [1, None, 3],
    "pyarrow missing": lambda: pa.array([1, None]),
    "pyarrow lists": lambda: pa.array([[1.0], [2.0, 3.0]]),
    "pyarrow strings": lambda: pa.array(["a", "b"]),
    "pyarrow chunks of lists": lambda: pa.chunked_array([[[1.0]], [[2.0, 3.0]]]),
    "polars missing": lambda: polars.Series([1, None]),
    "polars lists": lambda: polars.Series([[1.0], [2.0, 3.0]]),
    "pandas masked": lambda: pandas.Series([1, None], dtype="Int64"),
    "pandas strings": lambda: pandas.Series(["a", "b"]),
    "awkward": lambda: awkward.Array([[1.0], [2.0, 3.0]]),
    "awkward missing": lambda: awkward.Array([1.0, None]),
    "numpy StringDType": lambda: np.array(["a", "b"], np.dtypes.StringDType()),
}


@pytest.mark.parametrize("name", ["ragged list", "pyarrow lists", "polars lists", "awkward", "pyarrow chunks of lists"])
def test_ragged_lists_are_converted_to_jagged_tensors(name):
    x = KINDS[name]()
    for call in (lambda: ah.as_torch(x, copy=True), lambda: ah.convert(x, "torch", copy=True),
                 lambda: ah.like(x, torch.ones(1), copy=True)):  # fmt: skip
        assert [row.tolist() for row in call().unbind()] == [[1.0], [2.0, 3.0]]
    if name == "pyarrow lists":
        with pytest.raises(BufferError, match="allow_readonly=True"):
            ah.as_torch(x)
        assert ah.as_torch(x, allow_readonly=True).values().data_ptr() == x.values.buffers()[1].address


def test_list_views_of_equal_lengths_are_copied_to_a_jagged_tensor():
    x = pa.array([[1.0], [2.0]], pa.list_view(pa.float64()))
    for tensor in (ah.as_torch(x, copy=None), ah.as_torch(x, dtype="f8"), ah.convert(x, "torch", copy=True)):
        assert tensor.layout is torch.jagged
    assert ah.asarray(x, copy=None).is_copy


def test_strings_are_converted_to_numpy_strings():
    for name in ("pyarrow strings", "pandas strings", "numpy StringDType"):
        assert ah.as_numpy(KINDS[name](), copy=True).tolist() == ["a", "b"]
    assert ah.as_numpy(np.array(["a", None], object), copy=True).tolist()[0] == "a"


def test_rejected_stream_is_not_read():
    batches = pa.record_batch([pa.array([[1], [2, 3]])], names=["a"])
    reader = pa.RecordBatchReader.from_batches(batches.schema, [batches])
    with pytest.raises(BufferError, match="asnested"):
        ah.as_numpy(reader)
    assert ah.asnested(reader).to_list() == [{"a": [1]}, {"a": [2, 3]}]


@pytest.mark.parametrize(
    "name", ["list with None", "pyarrow missing", "polars missing", "pandas masked", "awkward missing"]
)
def test_convert_and_like_replace_missing_values(name):
    make = KINDS[name]
    for convert in (
        lambda missing: ah.convert(make(), "numpy", missing=missing),
        lambda missing: ah.like(make(), np.ones(1), missing=missing),
        lambda missing: ah.convert(make(), np.ndarray, missing=missing),
    ):
        assert convert(7)[1] == 7 and np.isnan(convert("nan")[1])
    assert ah.convert(make(), "torch", missing=7)[1] == 7 == ah.like(make(), torch.ones(1), missing=7)[1]
    for convert in (
        lambda missing: ah.convert(make(), "polars", missing=missing),
        lambda missing: ah.like(make(), polars.Series([1.0]), missing=missing),
    ):
        assert convert(7).to_list()[1] == 7
        for word in ("mask", "nan"):
            with pytest.raises(ValueError, match="accepted: a value, or None"):
                convert(word)


def test_convert_and_like_return_masks():
    assert isinstance(ah.convert([1, None], "numpy", missing="mask"), np.ma.MaskedArray)
    assert isinstance(ah.like([1, None], np.ones(1), missing="mask"), np.ma.MaskedArray)
    for pair in (ah.convert([1, None], "torch", missing="mask"), ah.like([1, None], torch.ones(1), missing="mask")):
        values, mask = pair
        assert mask.tolist() == [False, True] and values[~mask].tolist() == [1]
