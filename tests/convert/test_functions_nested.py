"""Test that `convert`, `like` and the ``as_*`` functions accept input of `asnested`, or suggest a working call."""

import contextlib
import re

import awkward
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
import torch

import arrayhub as ah
from arrayhub.convert.functions import CONSUMERS

pytestmark = pytest.mark.slow

RECORDS = {"a": [1, 2], "b": [0.5, 1.5]}
KINDS = {
    "ragged list": lambda: [[1.0], [2.0, 3.0]],
    "list with None": lambda: [1, None, 3],
    "list of strings": lambda: ["a", "b"],
    "strings with None": lambda: ["a", None],
    "dicts": lambda: [{"a": 1, "b": 2.5}],
    "pyarrow numbers": lambda: pa.array([1, 2]),
    "pyarrow missing": lambda: pa.array([1, None]),
    "pyarrow lists": lambda: pa.array([[1.0], [2.0, 3.0]]),
    "pyarrow equal lists": lambda: pa.array([[1.0, 2.0], [2.0, 3.0]]),
    "pyarrow bits": lambda: pa.array([True, False]),
    "pyarrow strings": lambda: pa.array(["a", "b"]),
    "pyarrow dates": lambda: pa.array([1, 2], pa.date32()),
    "pyarrow zone": lambda: pa.array([1, 2], pa.timestamp("us", "UTC")),
    "pyarrow dictionary": lambda: pa.array(["a", "b"]).dictionary_encode(),
    "pyarrow records": lambda: pa.array([{"a": 1, "b": 2.5}]),
    "pyarrow chunks": lambda: pa.chunked_array([[1.0], [2.0]]),
    "pyarrow chunks of lists": lambda: pa.chunked_array([[[1.0]], [[2.0, 3.0]]]),
    "pyarrow chunks of missing": lambda: pa.chunked_array([[1.0], [None]]),
    "pyarrow table": lambda: pa.table(RECORDS),
    "pyarrow mixed table": lambda: pa.table({"a": [1, 2], "b": ["x", "y"]}),
    "pyarrow union": lambda: pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array("ab")]),
    "polars missing": lambda: polars.Series([1, None]),
    "polars lists": lambda: polars.Series([[1.0], [2.0, 3.0]]),
    "polars frame": lambda: polars.DataFrame(RECORDS),
    "pandas masked": lambda: pandas.Series([1, None], dtype="Int64"),
    "pandas on Arrow": lambda: pandas.Series([1, 2], dtype="int64[pyarrow]"),
    "pandas strings": lambda: pandas.Series(["a", "b"]),
    "pandas frame": lambda: pandas.DataFrame(RECORDS),
    "pandas mixed frame": lambda: pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
    "awkward": lambda: awkward.Array([[1.0], [2.0, 3.0]]),
    "awkward missing": lambda: awkward.Array([1.0, None]),
    "numpy records": lambda: np.array([(1, 2.5)], [("a", "i8"), ("b", "f8")]),
    "numpy str": lambda: np.array(["a", "b"]),
    "numpy StringDType": lambda: np.array(["a", "b"], np.dtypes.StringDType()),
    "numpy objects": lambda: np.array(["a", None], object),
    "masked": lambda: np.ma.array([1, 2], mask=[0, 1]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged),
    "nested": lambda: ah.asnested([[1.0], [2.0, 3.0]]),
}
LIBRARIES = ("numpy", "torch", "jax", "dpnp", "numba", "arrow", "polars", "pandas", "awkward")
NAMES = {
    "arrayhub": ah, "numpy": np, "pyarrow": pa, "polars": polars, "pandas": pandas, "awkward": awkward,
}  # fmt: skip
# Matches a call in an error message, with at most one level of nested parentheses, and following attributes or methods.
CALL = re.compile(
    r"\b(?:arrayhub|numpy|pyarrow|polars|pandas|awkward|jax|x)\b[\w.\[\]'-]*"
    r"\((?:[^()]|\([^()]*\))*\)(?:\.\w+(?:\([^()]*\))?)*"
)


def works(call, x):
    given = re.sub(r"\bdevice(?=\))", "'oneapi:0'", re.sub(r"\bvalue(?=\))", "0", call))
    try:
        eval(given, NAMES, {"x": x})
    except Exception:
        return False
    return True


def check(make, export, message, copy):
    """Assert that one of the calls that an error message suggests works."""
    arguments = [("allow_readonly=True", {"allow_readonly": True}), ("dtype='int64'", {"dtype": "int64", "copy": copy})]
    for text, keywords in (*arguments, ("copy=True", {"copy": True})):
        if text in message and keywords != {"copy": copy}:
            with contextlib.suppress(BufferError, TypeError, ValueError):
                export(make(), **keywords)
                return
    calls = CALL.findall(message)
    assert any(works(call, make()) for call in calls), (message, calls)


@pytest.fixture(autouse=True)
def _wide_numbers():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_converted_or_its_error_suggests_a_working_call(name, library, copy):
    if library == "dpnp":
        pytest.importorskip("dpnp")
    make, export = KINDS[name], getattr(ah, f"as_{library}")
    try:
        export(make(), copy=copy)
    except (BufferError, TypeError, ValueError) as error:
        message = str(error)
    else:
        return
    check(make, export, message, copy)


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
    assert set(LIBRARIES) >= set(CONSUMERS) - {"cupy"}
