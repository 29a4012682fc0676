"""Test that generated pyarrow arrays survive a round trip through `asnested`, through pickle, and in several chunks."""

import copy
import decimal
import pickle

import pyarrow as pa
import pytest
from arrow_columns import Column, DeviceColumn, field_of, streamed
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import arrayhub as ah

pytestmark = pytest.mark.slow

NUMBERS = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=20),
    pa.large_string(): st.text(max_size=20),
    pa.string_view(): st.text(max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.binary_view(): st.binary(max_size=20),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.binary(0): st.just(b""),
    pa.date32(): st.integers(-1000, 1000),
    pa.timestamp("us"): st.integers(0, 2**40),
    pa.timestamp("ms", "Europe/Berlin"): st.integers(0, 2**40),
    pa.time64("ns"): st.integers(0, 86_399_999_999_999),
    pa.duration("s"): st.integers(-(2**30), 2**30),
    pa.null(): st.none(),
    pa.decimal32(7, 3): st.decimals(-9999, 9999, places=3),
    pa.decimal64(18, 0): st.decimals(-(10**17), 10**17, places=0),
    pa.decimal128(38, 10): st.decimals(-(10**20), 10**20, places=10),
    pa.decimal256(70, 2): st.decimals(-(10**20), 10**20, places=2),
    pa.month_day_nano_interval(): st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 2**40)),
}
ENCODED = {
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b", "a word of more than twelve bytes"]),
    pa.dictionary(pa.int64(), pa.int32(), ordered=True): st.integers(0, 3),
}
LEAVES = NUMBERS | ENCODED


def lists_of(kind_and_values):
    kind, values = kind_and_values
    rows = st.lists(values, max_size=4)
    return st.sampled_from([(pa.list_(kind), rows), (pa.large_list(kind), rows), (pa.list_view(kind), rows),
                            (pa.list_(kind, 2), st.lists(values, min_size=2, max_size=2))])  # fmt: skip


def records_of(fields):
    names = [f"f{k}" for k in range(len(fields))]
    kind = pa.struct([(name, kind) for name, (kind, _) in zip(names, fields, strict=True)])
    return st.just((kind, st.fixed_dictionaries({n: v for n, (_, v) in zip(names, fields, strict=True)})))


def with_missing(kind_and_values):
    kind, values = kind_and_values
    return st.booleans().map(lambda missing: (kind, st.none() | values if missing else values))


def nested(inner):
    inner = inner.flatmap(with_missing)
    return inner.flatmap(lists_of) | st.lists(inner, min_size=1, max_size=3).flatmap(records_of)


KINDS = st.recursive(st.sampled_from(list(LEAVES.items())), nested, max_leaves=4).flatmap(with_missing)


def wrapped_in_union(array):
    """Return records of a dense and a sparse union, whose elements alternate between those of `array` and integers."""
    n = len(array)
    codes, offsets = pa.array([k % 2 for k in range(n)], pa.int8()), pa.array(range(n), pa.int32())
    children = [array, pa.array(range(n), pa.int64())]
    dense = pa.UnionArray.from_dense(codes, offsets, children, ["a", "b"])
    sparse = pa.UnionArray.from_sparse(codes, children, ["a", "b"])
    return pa.StructArray.from_arrays([dense, sparse], ["dense", "sparse"])


def wrapped_in_runs(array):
    """Return lists of one element over run-end encoded values with runs of length 2."""
    n = len(array)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(range(2, 2 * n + 2, 2), pa.int32()), array)
    return pa.ListArray.from_arrays(pa.array(range(2 * n + 1), pa.int32()), runs)


@st.composite
def arrays(draw):
    """Generate a slice of an array of any supported type. The slice may be empty."""
    kind, values = draw(KINDS)
    items = draw(st.lists(values, max_size=6))
    try:
        array = pa.array(items, kind)
    except pa.ArrowNotImplementedError:  # pyarrow does not convert every type inside of list views
        array = pa.array([], kind)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # for missing records, pyarrow creates invalid indices into an empty dictionary
        assume(False)
    array = draw(st.sampled_from([lambda x: x, lambda x: x, wrapped_in_union, wrapped_in_runs]))(array)
    start = draw(st.integers(0, len(array)))
    return array.slice(start, draw(st.integers(0, len(array) - start)))


SETTINGS = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def exported(x, kind):
    """Export an array to pyarrow with a requested type."""
    return pa.array(x, type=kind)


@SETTINGS
@given(arrays())
def test_generated_arrays_survive_a_round_trip(source):
    x = ah.asnested(source)
    back = exported(x, source.type)
    back.validate(full=True)
    assert back.type == source.type and back.equals(source)
    assert pa.field("x", back.type).equals(pa.field("x", source.type), check_metadata=True)
    assert len(x) == len(source) and x.null_count == source.null_count
    assert x.is_null().tolist() == source.is_null().to_pylist()


@SETTINGS
@given(arrays())
def test_generated_arrays_survive_pickling(source):
    back = exported(pickle.loads(pickle.dumps(ah.asnested(source))), source.type)
    back.validate(full=True)
    assert back.type == source.type and back.equals(source)


@SETTINGS
@given(arrays(), st.integers(1, 3))
def test_generated_chunks_survive_a_round_trip(source, count):
    column = pa.chunked_array([source] * count)
    back = ah.as_arrow(column)
    assert back.to_pylist() == column.to_pylist()
    if count > 1:
        assert [len(chunk) for chunk in back.chunks] == [len(source)] * count
    joined = ah.as_arrow(column, copy=True)
    joined.validate(full=True)
    assert joined.type == source.type and joined.to_pylist() == column.to_pylist()


FIELDS = st.tuples(
    st.text(max_size=3).filter(lambda name: "\0" not in name),
    st.booleans(),
    st.none() | st.dictionaries(st.sampled_from(["k", "unit"]), st.text(max_size=3)),
)
PRODUCERS = {
    "array": Column,
    "device array": DeviceColumn,
    "stream": lambda field, array: streamed(field, [array]),
    "two chunks": lambda field, array: streamed(field, [array, array]),
    "no chunks": lambda field, array: streamed(field, []),
}
COPIES = {
    "view": lambda x: x,
    "slice": lambda x: x[: len(x) // 2],
    "chunk": lambda x: x.chunks[-1],
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "copy": lambda x: ah.asnested(x, copy=True),
}


@SETTINGS
@given(arrays(), FIELDS, st.sampled_from(list(PRODUCERS)), st.sampled_from(list(COPIES)))
def test_names_nullability_and_metadata_survive_a_round_trip(source, facts, producer, copied):
    name, nullable, metadata = facts
    field = pa.field(name, source.type, nullable or source.null_count > 0 or source.type == pa.null(), metadata)
    x = ah.asnested(PRODUCERS[producer](field, source))
    assert field_of(x).equals(field, check_metadata=True)
    assert x.metadata == (field.metadata or {})
    y = COPIES[copied](x)
    assert field_of(y).equals(field, check_metadata=True)
    if producer == "array" and copied in ("view", "copy"):
        assert pa.array(y).equals(source)


def test_polars_null_and_decimal_columns_survive_a_round_trip():
    """Import polars' null arrays, which have a bitmap in polars 2.1, although Arrow specifies no buffers for them."""
    polars = pytest.importorskip("polars")
    nulls = polars.Series("n", [None, None])
    assert str(ah.asnested(nulls).type).endswith("* null") and ah.as_polars(nulls).to_list() == [None, None]
    decimals = polars.Series("d", [decimal.Decimal("1.5"), None])
    x = ah.asnested(decimals)
    assert x.meaning.startswith("d:") and ah.as_polars(x).equals(decimals)
