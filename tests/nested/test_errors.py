"""Errors about missing values name calls that work. The tests make the calls."""

import datetime
import decimal
import itertools
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

# Columns with a missing value, and a value that can replace it.
COLUMNS = {
    "integers": (pa.array([1, None]), 0),
    "small integers": (pa.array([1, None], pa.int8()), 0),
    "unsigned integers": (pa.array([1, None], pa.uint64()), 0),
    "floats": (pa.array([1.5, None]), 0),
    "half floats": (pa.array([1.5, None], pa.float16()), 0),
    "booleans": (pa.array([True, None]), False),
    "strings": (pa.array(["a", None]), ""),
    "large strings": (pa.array(["a", None], pa.large_string()), ""),
    "string views": (pa.array(["a", None], pa.string_view()), ""),
    "bytes": (pa.array([b"a", None]), b""),
    "large bytes": (pa.array([b"a", None], pa.large_binary()), b""),
    "views of bytes": (pa.array([b"a", None], pa.binary_view()), b""),
    "bytes of fixed size": (pa.array([b"a", None], pa.binary(1)), b"b"),
    "date32": (pa.array([DAY, None]), DAY),
    "date64": (pa.array([DAY, None], pa.date64()), DAY),
    "time32": (pa.array([1, None], pa.time32("s")), datetime.time(1)),
    "time64": (pa.array([1, None], pa.time64("us")), datetime.time(1)),
    "timestamps": (pa.array([1, None], pa.timestamp("us")), datetime.datetime(2020, 1, 1)),
    "timestamps with a zone": (pa.array([1, None], pa.timestamp("us", "UTC")), datetime.datetime(2020, 1, 1)),
    "durations": (pa.array([1, None], pa.duration("s")), datetime.timedelta(1)),
    "intervals": (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), 0),
    "decimals": (pa.array([decimal.Decimal("1.5"), None]), decimal.Decimal(0)),
    "decimal256": (pa.array([decimal.Decimal("1.5"), None], pa.decimal256(40, 2)), decimal.Decimal(0)),
    "records": (pa.array(RECORDS), 0),
    "records of small numbers": (pa.array(RECORDS, pa.struct({"a": pa.int8(), "b": pa.float32()})), 0),
    "records with a missing field": (pa.array([{"a": 1, "b": None}]), 0),
    "records of strings": (pa.array([{"a": 1, "b": "x"}, None]), 0),
    "records of dates": (pa.array([{"a": DAY, "b": 1}, None]), 0),
    "records of booleans": (pa.array([{"a": True}, None]), False),
    "lists": (pa.array([[1], None]), []),
    "lists with a missing number": (pa.array([[1], [None]]), 0),
    "large lists": (pa.array([[1], None], pa.large_list(pa.int64())), []),
    "list views": (pa.array([[1], None], pa.list_view(pa.int64())), []),
    "lists of strings": (pa.array([["a"], None]), []),
    "lists of lists": (pa.array([[[1]], None]), []),
    "lists of dates": (pa.array([[DAY], None]), []),
    "maps": (pa.array([[(1, 2)], None], pa.map_(pa.int64(), pa.int64())), []),
    "fixed-size lists": (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), 0),
    "fixed-size lists with a missing number": (pa.array([[1, 2], [None, 3]], pa.list_(pa.int64(), 2)), 0),
    "fixed-size lists of dates": (pa.array([[DAY], None], pa.list_(pa.date32(), 1)), DAY),
    "fixed-size lists of booleans": (pa.array([[True], None], pa.list_(pa.bool_(), 1)), False),
    "fixed-size lists of strings": (pa.array([["a"], None], pa.list_(pa.string(), 1)), ""),
    "dictionaries": (pa.array(["a", None]).dictionary_encode(), "a"),
    "dictionaries of numbers": (pa.array([1, None]).dictionary_encode(), 1),
    "runs": (pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([1, None])), 0),
    "runs of strings": (pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["a", None])), ""),
    "sparse unions": (pa.UnionArray.from_sparse(CODES, CHILDREN), 0),
    "dense unions": (pa.UnionArray.from_dense(CODES, pa.array([0, 1], pa.int32()), CHILDREN), 0),
    "nulls": (pa.nulls(2), 0),
}  # fmt: skip
PRODUCERS = {
    "pyarrow": lambda column: column,
    "another library": lambda column: Column(pa.field("x", column.type), column),
    "chunks": lambda column: pa.chunked_array([column, column]),
}
EXPRESSION = re.compile(r"(?<![\w.'])(?:arrayhub|numpy|pyarrow|x)(?=[.\[])")


def expressions(text):
    """Yield the calls and the attributes of ``x`` that an error text contains."""
    for start in EXPRESSION.finditer(text):
        end = start.end()
        while length := length_of_part(text[end:]):
            end += length
        expression = text[start.start() : end]
        if expression.startswith("x") or "(" in expression:
            yield expression


def length_of_part(text):
    """Return the length of ``.name``, ``(...)`` or ``[...]`` at the start of a text, or 0."""
    name = re.match(r"\.[a-z_0-9]+", text)
    if name or not text.startswith(("(", "[")):
        return name.end() if name else 0
    depths = itertools.accumulate((letter in "([") - (letter in ")]") for letter in text)
    return next(k for k, depth in enumerate(depths, 1) if depth == 0)


def named_calls(text, call):
    """Yield the calls that `text`, the error of `call`, names."""
    for words, functions in re.findall(r"pass (missing=.*?) to (arrayhub\.as_\w+(?: or as_\w+)?)", text):
        copy = ", copy=None" if "copy=None" in words else ""
        for missing in re.findall(r"missing=(?:'\w*'|\[\]|value)", words):
            for function in re.findall(r"as_\w+", functions):
                yield f"arrayhub.{function}(x, {missing}{copy})"
    if re.search("pass copy=True", text, re.IGNORECASE) and "copy=" not in call:
        yield f"{call[:-1]}, copy=True)"
    yield from expressions(text)


def attempted(call, x, value):
    """Return the exception that a call raises, or None."""
    try:
        eval(call, {"arrayhub": ah, "numpy": np, "pyarrow": pa, "x": x, "value": value, "i": 0, "field": "a"})
    except (AttributeError, BufferError, TypeError, ValueError, OverflowError) as error:
        return error
    return None


def failures(call, x, value):
    """Return the calls in the error of `call` that neither work nor name a call that works."""
    error = attempted(call, x, value)
    if error is None:
        return []
    if getattr(error, "call", ""):
        second = attempted(error.call, x, value)
        return [] if second is None else [(error.call, str(second))]
    failed = []
    calls = list(named_calls(str(error), call))
    for first in calls:
        second = attempted(first, x, value)
        if second is None:
            continue
        receiver, _, _ = first.rpartition(".to_dense(")
        node = ah.asnested(x) if receiver == "arrayhub.asnested(x)" else x
        if all(attempted(other, node, value) is not None for other in named_calls(str(second), first)):
            failed.append((first, str(second)))
    return failed if calls else [(call, str(error))]


@pytest.mark.parametrize("function", ["as_numpy", "as_torch", "as_jax", "as_dpnp", "asarray"])
@pytest.mark.parametrize("producer", PRODUCERS.values(), ids=PRODUCERS)
@pytest.mark.parametrize(("column", "value"), COLUMNS.values(), ids=COLUMNS)
def test_errors_about_missing_values_suggest_calls_that_work(column, value, producer, function):
    if function == "as_dpnp":
        pytest.importorskip("dpnp")
    with jax.enable_x64(False):
        assert failures(f"arrayhub.{function}(x)", producer(column), value) == []


@pytest.mark.parametrize("function", ["as_torch", "asarray"])
@pytest.mark.parametrize("producer", PRODUCERS.values(), ids=PRODUCERS)
@pytest.mark.parametrize(("column", "value"), COLUMNS.values(), ids=COLUMNS)
def test_errors_about_missing_values_of_nested_arrays_suggest_calls_that_work(column, value, producer, function):
    x = ah.asnested(producer(column))
    call = f"arrayhub.{function}(x)"
    assert failures(call, x, value) == []
    assert "asnested(x)" not in str(attempted(call, x, value))  # asnested returns the array itself


NUMERIC = (
    "integers|unsigned|small|floats|half|booleans|date|timestamps$|durations|fixed-size lists(?! of strings)|runs$"
)
FILLED = [name for name in COLUMNS if re.match(NUMERIC, name)]
FILLED += ["records", "records of small numbers", "records of booleans"]


@pytest.mark.parametrize("missing", ["mask", "nan"])
@pytest.mark.parametrize("function", ["as_numpy", "as_torch", "as_jax", "as_dpnp"])
@pytest.mark.parametrize("name", FILLED)
def test_errors_with_argument_missing_lead_to_a_working_call(name, function, missing):
    if function == "as_dpnp":
        pytest.importorskip("dpnp")
    column, value = COLUMNS[name]
    with jax.enable_x64(False):
        call = f"arrayhub.{function}(x, missing={missing!r})"
        assert failures(call, PRODUCERS["another library"](column), value) == []


def library(name):
    return pytest.importorskip(name)


def categories():
    return library("polars").Series(["a"], dtype=library("polars").Categorical)


UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
# Calls that raise an error, and functions that make the objects.
REJECTED = {
    "a union, polars": ("arrayhub.as_polars(x)", lambda: UNION),
    "an awkward union, polars": ("arrayhub.as_polars(x)", lambda: library("awkward").Array([1, "a"])),
    "intervals, polars": ("arrayhub.as_polars(x)", lambda: COLUMNS["intervals"][0]),
    "rows of length 0, polars": ("arrayhub.as_polars(x)", lambda: np.zeros((2, 0, 3))),
    "items of length 0, polars": ("arrayhub.as_polars(x)", lambda: np.zeros((2, 3, 0))),
    "records, jax": ("arrayhub.as_jax(x, copy=True)", lambda: pa.array([{"a": 1, "b": 2}])),
    "polars records, jax": ("arrayhub.as_jax(x, copy=True)", lambda: library("polars").Series([{"a": 1}])),
    "nested records, jax": ("arrayhub.as_jax(x, copy=True)", lambda: ah.asnested([{"a": 1, "b": 2}])),
    "rows, jax": ("arrayhub.as_jax(x)", lambda: library("awkward").Array([[1.0, 2.0], [3.0, 4.0]])),
    "device memory, jax": ("arrayhub.as_jax(x, copy=True)", lambda: library("dpnp").ones(3, dtype="f8")),
    "rows, dpnp": ("arrayhub.as_dpnp(x)", lambda: library("awkward").Array([[1, 2], [3, 4]])),
    "nested rows, dpnp": ("arrayhub.as_dpnp(x)", lambda: ah.asnested([[1, 2], [3, 4]])),
    "strings, dpnp": ("arrayhub.as_dpnp(x)", lambda: ah.asnested(["a", "b"])),
    "strings, jax": ("arrayhub.as_jax(x)", lambda: ah.asnested(["a", "b"])),
    "strings, numba": ("arrayhub.as_numba(x, copy=True)", lambda: ah.asnested(["a", "b"])),
    "a mask of strings": ("arrayhub.as_numpy(x, missing='mask')", lambda: ah.asnested(["a", None])),
    "lists of strings": ("x.to_dense()", lambda: ah.asnested([["a"], ["b"]])),
    "bytes": ("x.to_dense()", lambda: ah.asnested([b"a", b"b"])),
    "a repeated row": ("arrayhub.as_arrow(x)", lambda: library("torch").ones(2).expand(3, 2)),
    "a strided buffer": ("arrayhub.as_arrow(x)", lambda: memoryview(b"abcd")[::2]),
    "columns in Fortran order": ("arrayhub.as_arrow(x)", lambda: np.ones((3, 2), order="F")),
    "polars categories": ("arrayhub.as_numpy(x, copy=True)", categories),
    "nested strings": ("arrayhub.asarray(x)", lambda: ah.asnested(["a", "b"])),
    "nested lists": ("arrayhub.asarray(x)", lambda: ah.asnested([[1, 2], [3, 4]])),
    "a nested table": ("arrayhub.asarray(x)", lambda: ah.asnested(pa.table({"a": [1], "b": [2]}))),
    "nested chunks": ("arrayhub.asarray(x)", lambda: ah.asnested(pa.chunked_array([[1], [2]]))),
    "nested categories": ("arrayhub.asarray(x)", lambda: ah.asnested(pa.array(["a"]).dictionary_encode())),
    "nested booleans": ("arrayhub.asarray(x)", lambda: ah.asnested(pa.array([True]))),
    "a nested union": ("arrayhub.asarray(x)", lambda: ah.asnested(UNION)),
    "nested nulls": ("arrayhub.asarray(x)", lambda: ah.asnested(pa.nulls(2))),
    "nested runs": (
        "arrayhub.asarray(x)",
        lambda: ah.asnested(pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([1, 2]))),
    ),
    "nested decimals": ("arrayhub.asarray(x)", lambda: ah.asnested(pa.array([decimal.Decimal("1.5")]))),
    "several fields": ("x[['a', 'b']]", lambda: ah.asnested([{"a": 1, "b": 2}])),
    "several elements": ("x[[0, 1]]", lambda: ah.asnested(["a", "b"])),
    "a field as an attribute": ("x.first", lambda: ah.asnested([{"first": 1}])),
}


@pytest.mark.parametrize(("call", "make"), REJECTED.values(), ids=REJECTED)
def test_errors_name_calls_that_work_for_the_object(call, make):
    x = make()
    if "as_dpnp" in call:
        pytest.importorskip("dpnp")
    with jax.enable_x64(False):
        error = attempted(call, x, 0)
        assert error is not None and failures(call, x, 0) == []
    if isinstance(x, ah.NestedArray):  # asnested returns the array itself
        assert "asnested(x)" not in str(error)


def test_errors_about_lists_of_unions_have_one_prefix():
    x = ah.asnested(pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), UNION))
    for library in ("numpy", "numba", "polars"):
        with pytest.raises(ah.Refusal) as raised:
            ah.convert(x, library, copy=True)
        assert raised.value.subject == library
    with pytest.raises(ah.Refusal, match=r"^to_dense: the elements have several types"):
        x.to_dense(copy=True)
