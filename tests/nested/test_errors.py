"""Refusals of nested data name calls that work. The tests make the calls."""

import datetime
import decimal
import re

import jax
import numpy as np
import pyarrow as pa
import pytest
from arrow_columns import Column

import arrayhub as ah

DAY = datetime.date(2020, 1, 1)
RECORDS = [{"a": 1, "b": 2.5}, None]
CODES = pa.array([0, 1], pa.int8())
CHILDREN = [pa.array([1, 2]), pa.array([1, None], pa.int64())]

# Columns with a missing value.
COLUMNS = {
    "integers": pa.array([1, None]),
    "small integers": pa.array([1, None], pa.int8()),
    "unsigned integers": pa.array([1, None], pa.uint64()),
    "floats": pa.array([1.5, None]),
    "half floats": pa.array([1.5, None], pa.float16()),
    "booleans": pa.array([True, None]),
    "strings": pa.array(["a", None]),
    "large strings": pa.array(["a", None], pa.large_string()),
    "string views": pa.array(["a", None], pa.string_view()),
    "bytes": pa.array([b"a", None]),
    "large bytes": pa.array([b"a", None], pa.large_binary()),
    "views of bytes": pa.array([b"a", None], pa.binary_view()),
    "bytes of fixed size": pa.array([b"a", None], pa.binary(1)),
    "date32": pa.array([DAY, None]),
    "date64": pa.array([DAY, None], pa.date64()),
    "time32": pa.array([1, None], pa.time32("s")),
    "time64": pa.array([1, None], pa.time64("us")),
    "timestamps": pa.array([1, None], pa.timestamp("us")),
    "timestamps with a zone": pa.array([1, None], pa.timestamp("us", "UTC")),
    "durations": pa.array([1, None], pa.duration("s")),
    "intervals": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "decimals": pa.array([decimal.Decimal("1.5"), None]),
    "decimal256": pa.array([decimal.Decimal("1.5"), None], pa.decimal256(40, 2)),
    "records": pa.array(RECORDS),
    "records of small numbers": pa.array(RECORDS, pa.struct({"a": pa.int8(), "b": pa.float32()})),
    "records with a missing field": pa.array([{"a": 1, "b": None}]),
    "records of strings": pa.array([{"a": 1, "b": "x"}, None]),
    "records of dates": pa.array([{"a": DAY, "b": 1}, None]),
    "records of booleans": pa.array([{"a": True}, None]),
    "lists": pa.array([[1], None]),
    "lists with a missing number": pa.array([[1], [None]]),
    "large lists": pa.array([[1], None], pa.large_list(pa.int64())),
    "list views": pa.array([[1], None], pa.list_view(pa.int64())),
    "lists of strings": pa.array([["a"], None]),
    "lists of lists": pa.array([[[1]], None]),
    "lists of dates": pa.array([[DAY], None]),
    "maps": pa.array([[(1, 2)], None], pa.map_(pa.int64(), pa.int64())),
    "fixed-size lists": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
    "fixed-size lists with a missing number": pa.array([[1, 2], [None, 3]], pa.list_(pa.int64(), 2)),
    "fixed-size lists of dates": pa.array([[DAY], None], pa.list_(pa.date32(), 1)),
    "fixed-size lists of booleans": pa.array([[True], None], pa.list_(pa.bool_(), 1)),
    "fixed-size lists of strings": pa.array([["a"], None], pa.list_(pa.string(), 1)),
    "dictionaries": pa.array(["a", None]).dictionary_encode(),
    "dictionaries of numbers": pa.array([1, None]).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([1, None])),
    "runs of strings": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["a", None])),
    "sparse unions": pa.UnionArray.from_sparse(CODES, CHILDREN),
    "dense unions": pa.UnionArray.from_dense(CODES, pa.array([0, 1], pa.int32()), CHILDREN),
    "nulls": pa.nulls(2),
}  # fmt: skip
PRODUCERS = {
    "pyarrow": lambda column: column,
    "another library": lambda column: Column(pa.field("x", column.type), column),
    "chunks": lambda column: pa.chunked_array([column, column]),
}


def failed_call(function, x, **keywords):
    """Call a function, and return the call that its refusal names and that fails, or None."""
    try:
        function(x, **keywords)
    except (BufferError, TypeError, ValueError, OverflowError) as error:
        call = getattr(error, "call", "")
        if call:
            try:
                eval(call, {"arrayhub": ah, "jax": jax, "x": x})
            except (AttributeError, BufferError, TypeError, ValueError, OverflowError) as second:
                return call, second
    return None


@pytest.mark.parametrize("function", ["as_numpy", "as_torch", "as_jax", "as_dpnp", "asarray"])
@pytest.mark.parametrize("producer", PRODUCERS.values(), ids=PRODUCERS)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_refusals_of_missing_values_name_calls_that_work(column, producer, function):
    if function == "as_dpnp":
        pytest.importorskip("dpnp")
    x = producer(column)
    with jax.enable_x64(False):
        assert failed_call(getattr(ah, function), x) is None
    if function in ("as_torch", "asarray"):
        nested = ah.asnested(x)
        assert failed_call(getattr(ah, function), nested) is None
        with pytest.raises(ah.Refusal) as raised:
            getattr(ah, function)(nested)
        assert raised.value.call != "arrayhub.asnested(x)"  # which returns the array itself


NUMERIC = (
    "integers|unsigned|small|floats|half|booleans|date|timestamps$|durations|fixed-size lists(?! of strings)|runs$"
)
FILLED = [name for name in COLUMNS if re.match(NUMERIC, name)]
FILLED += ["records", "records of small numbers", "records of booleans"]


@pytest.mark.parametrize("missing", ["mask", "nan"])
@pytest.mark.parametrize("function", ["as_numpy", "as_torch", "as_jax", "as_dpnp"])
@pytest.mark.parametrize("name", FILLED)
def test_refusals_of_argument_missing_name_calls_that_work(name, function, missing):
    if function == "as_dpnp":
        pytest.importorskip("dpnp")
    x = PRODUCERS["another library"](COLUMNS[name])
    with jax.enable_x64(False):
        assert failed_call(getattr(ah, function), x, missing=missing) is None


def library(name):
    return pytest.importorskip(name)


UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
# Functions that refuse an object, and functions that make the object.
REJECTED = {
    "rows of length 0, polars": (ah.as_polars, lambda: np.zeros((2, 0, 3))),
    "nested records, jax": (ah.as_jax, lambda: ah.asnested([{"a": 1, "b": 2}])),
    "nested rows, numba": (ah.as_numba, lambda: ah.asnested([[1, 2], [3]])),
    "strings, jax": (ah.as_jax, lambda: ah.asnested(["a", "b"])),
    "lists of strings": (lambda x: x.to_dense(), lambda: ah.asnested([["a"], ["b"]])),
    "bytes": (lambda x: x.to_dense(), lambda: ah.asnested([b"a", b"b"])),
    "a repeated row": (ah.as_arrow, lambda: library("torch").ones(2).expand(3, 2)),
    "a strided buffer": (ah.as_arrow, lambda: memoryview(b"abcd")[::2]),
    "columns in Fortran order": (ah.as_arrow, lambda: np.ones((3, 2), order="F")),
    "nested lists": (ah.asarray, lambda: ah.asnested([[1], [3, 4]])),
    "a nested table": (ah.asarray, lambda: ah.asnested(pa.table({"a": [1], "b": [2]}))),
    "nested chunks": (ah.asarray, lambda: ah.asnested(pa.chunked_array([[1], [2]]))),
    "a nested union": (ah.asarray, lambda: ah.asnested(UNION)),
    "nested nulls": (ah.asarray, lambda: ah.asnested(pa.nulls(2))),
    "nested decimals": (ah.asarray, lambda: ah.asnested(pa.array([decimal.Decimal("1.5")]))),
}


@pytest.mark.parametrize(("function", "make"), REJECTED.values(), ids=REJECTED)
def test_refusals_name_calls_that_work_for_the_object(function, make):
    x = make()
    with jax.enable_x64(False):
        with pytest.raises((BufferError, TypeError, ValueError)) as raised:
            function(x)
        assert failed_call(function, x) is None
    if isinstance(x, ah.NestedArray):  # asnested returns the array itself
        assert "asnested(x)" not in str(raised.value)


def test_errors_of_fields_name_an_expression():
    x = ah.asnested([{"a": 1, "b": 2}])
    with pytest.raises(TypeError, match="as_awkward"):
        x[["a", "b"]]
    for name, instead in (("a", r"x\['a'\]"), ("shape", "x.type")):
        with pytest.raises(AttributeError, match=instead):
            getattr(x, name)


def test_errors_about_lists_of_unions_have_one_prefix():
    x = ah.asnested(pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), UNION))
    for library in ("numpy", "numba", "polars"):
        with pytest.raises(ah.Refusal) as raised:
            ah.convert(x, library, copy=True)
        assert raised.value.subject == library
    with pytest.raises(ah.Refusal, match=r"^to_dense: the elements have several types"):
        x.to_dense(copy=True)
