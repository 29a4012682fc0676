"""Test that inspecting or rejecting an object does not consume its Arrow stream or run its query."""

import gc

import numpy as np
import pytest
from children import python

import arrayhub as ah

pa = pytest.importorskip("pyarrow")

ROWS = [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
LOOKS = {
    "asarray": ah.asarray,
    "asarray of a list": lambda x: ah.asarray([x]),
    "as_numpy": ah.as_numpy,
    "explain": ah.explain,
    "explain to polars": lambda x: ah.explain(x, to="polars"),
    "debug_repr": ah.debug_repr,
    "check": ah.check,
    "datashape": ah.datashape.of,
    "via": lambda x: ah.asarray(x, via="arrow"),
    "convert": lambda x: ah.convert(x, "torch"),
}


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


def batches():
    return [pa.record_batch({"a": [1.0, 2.0]}), pa.record_batch({"a": [3.0]})]


def reader():
    made = batches()
    return pa.RecordBatchReader.from_batches(made[0].schema, made)


READERS = {
    "pyarrow": reader,
    "duckdb": lambda: library("duckdb").sql("select * from (values (1e0), (2e0), (3e0)) t(a)").to_arrow_reader(),
    "nanoarrow": lambda: library("nanoarrow").ArrayStream(pa.Table.from_batches(batches())),
    "arro3": lambda: library("arro3.core").RecordBatchReader.from_arrow(reader()),
}


def look(at, x):
    """Call the function `at` of LOOKS, and ignore BufferError and TypeError."""
    try:
        LOOKS[at](x)
    except (BufferError, TypeError):
        return


def rows(x):
    return ah.asnested(x, copy=True).to_list()


@pytest.mark.slow
@pytest.mark.parametrize("at", LOOKS)
@pytest.mark.parametrize("kind", READERS)
def test_reader_keeps_all_rows_after_explain(kind, at):
    x = READERS[kind]()
    look(at, x)
    gc.collect()
    assert rows(x) == ROWS


@pytest.mark.parametrize("kind", READERS)
def test_asarray_error_for_a_reader_suggests_a_call_that_reads_it(kind):
    x = READERS[kind]()
    with pytest.raises(BufferError, match=r"has columns; .* Call arrayhub\.asnested\(x\)"):
        ah.asarray(x)
    assert sum(map(len, ah.asnested(x)) if kind != "duckdb" else [len(ah.asnested(x))]) == 3


@pytest.mark.slow
def test_explain_does_not_consume_a_reader_without_other_imports():
    """Run `explain` in a process that imports only arrayhub and pyarrow."""
    done = python(
        "import arrayhub, pyarrow as pa\n"
        "b = pa.record_batch({'a': [1.0, 2.0]})\n"
        "r = pa.RecordBatchReader.from_batches(b.schema, [b, b])\n"
        "arrayhub.explain(r), str(arrayhub.explain(r, to='numpy'))\n"
        "print(pa.table(r).num_rows)\n"
    )
    assert done.split() == ["4"]


@pytest.mark.parametrize("function", [ah.debug_repr, ah.check, ah.datashape.of, ah.picture], ids=lambda f: f.__name__)
def test_as_function_error_for_a_reader_suggests_a_working_call(function):
    name = "datashape.of" if function is ah.datashape.of else function.__name__
    x = reader()
    words = (
        rf"{name}: RecordBatchReader is a stream of records with 1 field.*arrayhub\.{name}\(arrayhub\.asnested\(x, copy"
    )
    with pytest.raises(BufferError, match=words):
        function(x)
    assert function(ah.asnested(x, copy=True)) is not None


def test_explain_states_that_a_reader_can_be_read_once():
    told = ah.explain(reader())
    assert told.summary == "a stream of records with 1 field, which can be read once"
    assert "arrayhub.asnested(x)" in told.why
    for verdict in told.verdicts:
        assert verdict.verdict == "not tried" or "which this machine lacks" in verdict.reason or "pip" in verdict.reason
    assert {verdict.consumer for verdict in told.verdicts} > {"numpy", "torch", "arrow", "polars"}
    assert [verdict.consumer for verdict in ah.explain(reader(), to="pandas").verdicts] == ["pandas"]


# ---- producers whose schema is only in the stream


class Once:
    """An object whose only protocol is an Arrow stream. `asked` counts the calls of ``__arrow_c_stream__``."""

    def __init__(self, source):
        self.source, self.asked = source, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.asked += 1
        return self.source.__arrow_c_stream__(requested_schema)


class OnceAndNumbers(Once):
    """A stream that also has NumPy's interface."""

    __array_interface__ = property(lambda self: np.arange(3.0).__array_interface__)


class Chunks:
    """An iterable that creates each batch on request and counts the batches."""

    def __init__(self):
        self.read = 0

    def __iter__(self):
        for batch in batches():
            self.read += 1
            yield batch


@pytest.mark.parametrize("at", ["explain", "explain to polars", "debug_repr", "check", "datashape"])
def test_explain_does_not_request_the_stream_of_an_unknown_type(at):
    x = Once(reader())
    look(at, x)
    assert x.asked == 0
    assert rows(x) == ROWS


def test_asarray_rejects_a_schema_with_columns_before_reading_a_chunk():
    chunks = Chunks()
    x = Once(pa.RecordBatchReader.from_batches(batches()[0].schema, chunks))
    with pytest.raises(BufferError, match="has columns; .*create it again") as raised:
        ah.asarray(x)
    assert "create it again" in str(raised.value)
    assert (x.asked, chunks.read) == (1, 0)


@pytest.mark.parametrize(
    "values",
    [pa.array(["a"]), pa.array([[1]]), pa.array([True]), pa.array(["a"]).dictionary_encode(), pa.array([b"a"])],
)
def test_nested_schema_is_rejected_before_reading(values):
    x = library("arro3.core").ArrayReader.from_arrow(pa.chunked_array([values]))
    with pytest.raises(BufferError, match=r"Call arrayhub\.asnested\(x\)"):
        ah.asarray(x)
    assert rows(x) == values.to_pylist()


def test_single_use_stream_of_numbers_is_imported():
    numbers = pa.chunked_array([[1.0, 2.0]])
    assert ah.asarray(Once(numbers)).tolist() == [1.0, 2.0]
    assert ah.asarray(library("arro3.core").ArrayReader.from_arrow(numbers)).tolist() == [1.0, 2.0]
    assert ah.asarray(library("nanoarrow").ArrayStream(numbers)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("values", [[[1.0], [2.0]], [[1.0, None]]], ids=["chunks", "missing"])
def test_error_states_that_the_stream_was_read(values):
    x = library("nanoarrow").ArrayStream(pa.chunked_array(values))
    with pytest.raises(BufferError, match="stream has been read, create it again.*asnested"):
        ah.asarray(x)
    anew = library("nanoarrow").ArrayStream(pa.chunked_array(values))
    assert rows(anew) == [value for chunk in values for value in chunk]


@pytest.mark.parametrize("values", [[1, None], [[1], [2, 3]], ["a"]], ids=["missing", "lists", "text"])
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("function", [ah.asarray, ah.as_numpy, ah.as_torch])
def test_stream_is_not_read_twice_for_a_copy(values, copy, function):
    x = library("nanoarrow").ArrayStream(pa.chunked_array([values]))
    with pytest.raises(BufferError, match="stream has been read, create it again"):
        function(x, copy=copy)


def test_chunks_of_a_stream_are_exported_to_pyarrow_as_chunks():
    for x in (reader(), pa.Table.from_batches(batches())):
        column = ah.as_arrow(x)
        assert isinstance(column, pa.ChunkedArray) and column.num_chunks == len(batches())
        assert column.to_pylist() == ROWS
    assert len(ah.as_arrow(reader(), copy=True)) == 3


def test_tables_and_columns_can_be_read_again():
    for x in (pa.chunked_array([[1.0], [2.0]]), pa.table({"a": [1.0]})):
        assert "not read" not in str(ah.explain(x))
        assert ah.debug_repr(ah.asnested(x, copy=True))
        assert ah.check(x) == []


def test_explain_prefers_array_interface_to_a_stream():
    x = OnceAndNumbers(reader())
    told = ah.explain(x)
    assert (told.taken, x.asked) == ("array_interface", 0)
    assert "strided_dim arrmeta" in ah.debug_repr(x)
    assert ah.check(x) == []
    assert x.asked == 0


# ---- queries


class Counting:
    """A duckdb relation whose query calls a Python function for each of its 100 rows."""

    def __init__(self):
        duckdb = library("duckdb")
        self.called = called = []
        self.connection = duckdb.connect()
        self.connection.create_function("counted", lambda i: called.append(i) or i, ["BIGINT"], "BIGINT")
        self.relation = self.connection.sql("select counted(i) as n, i from range(100) t(i)")


@pytest.mark.parametrize("at", LOOKS)
def test_explain_does_not_run_a_duckdb_query(at):
    query = Counting()
    look(at, query.relation)
    assert query.called == []


def test_asarray_error_for_a_query_suggests_a_call_that_computes_it():
    query = Counting()
    with pytest.raises(BufferError, match=r"is a query, .* copy=True, .* Call arrayhub\.asnested\(x\)"):
        ah.asarray(query.relation)
    assert query.called == []
    assert len(ah.asnested(query.relation)) == 100


@pytest.mark.parametrize("read", [ah.asnested, ah.as_arrow, ah.as_polars, ah.as_pandas, ah.as_awkward])
def test_reading_a_query_runs_it_once(read):
    query = Counting()
    assert len(read(query.relation)) == 100
    assert sorted(query.called) == list(range(100))


def test_explain_states_that_an_object_is_a_query():
    told = ah.explain(Counting().relation)
    assert told.summary == "a query, which runs when it is read"
    assert told.protocols == ("arrow",)


def test_inspection_does_not_run_datafusion_queries():
    ran = []
    datafusion = library("datafusion")

    def counted(array):
        ran.append(len(array))
        return array

    context = datafusion.SessionContext()
    context.register_udf(datafusion.udf(counted, [pa.int64()], pa.int64(), "volatile", name="counted"))
    context.from_pydict({"a": [1, 2, 3]}, name="t")
    frame = context.sql("select counted(a) as a from t")
    del ran[:]
    for at in LOOKS:
        look(at, frame)
    assert ran == []
    assert rows(frame) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert ran


@pytest.mark.slow
def test_inspection_does_not_run_ibis_queries():
    ibis = library("ibis")
    ran = []

    @ibis.udf.scalar.python
    def counted(i: int) -> int:
        ran.append(i)
        return i

    table = ibis.memtable({"i": [1, 2, 3]})
    query = table.select(n=counted(table.i))
    for x in (query, query.n, query.n.sum()):
        for at in LOOKS:
            look(at, x)
        for call in ELEMENT_CALLS.values():
            with pytest.raises((BufferError, TypeError, ValueError), match="computes it"):
                call(x)
    assert ran == []
    assert rows(query) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert ran == [1, 2, 3]


# Calls with a lazy array as an element or value. NumPy would call the `__array__` of the array, which computes it.
ELEMENT_CALLS = {
    "asarray": lambda x: ah.asarray([x]),
    "asarray with a dtype": lambda x: ah.asarray([1.0, x], dtype="f4"),
    "asarray of nested lists": lambda x: ah.asarray([[1.0], [x]]),
    "full": lambda x: ah.full((2,), x),
    "full with a dtype": lambda x: ah.full((2,), x, dtype="i4"),
    "from_array": lambda x: ah.from_array([x]),
    "as_numpy": lambda x: ah.as_numpy([x], copy=True),
    "an assignment": lambda x: ah.zeros((1, 4)).__setitem__(slice(None), [x]),
}


@pytest.mark.parametrize("call", ELEMENT_CALLS)
def test_dask_arrays_in_a_list_are_not_computed(call):
    ran = []

    def counted(block):
        ran.append(1)
        return block

    x = library("dask.array").from_array(np.arange(4.0)).map_blocks(counted, dtype=float, meta=np.array([]))
    with pytest.raises((TypeError, ValueError), match=r"dask\.Array is not imported as an array"):
        ELEMENT_CALLS[call](x)
    assert ran == []
    x.compute()
    assert ran


def test_asarray_error_for_an_ibis_expression_suggests_a_working_call():
    x = library("ibis").memtable({"i": [1, 2, 3]}).i
    with pytest.raises(TypeError, match=r"use arrayhub\.asnested\(x\.to_pyarrow\(\)\)"):
        ah.asarray(x)
    assert ah.asnested(x.to_pyarrow()).to_list() == [1, 2, 3]
    x = x.sum()
    with pytest.raises(TypeError, match=r"pass x\.execute\(\)"):
        ah.asarray(x)
    assert ah.asarray(x.execute()).item() == 6


# ---- narwhals


@pytest.mark.parametrize("native", ["pyarrow", "polars"])
def test_narwhals_series_is_viewed_without_a_copy(native):
    """Import narwhals' ``__arrow_c_stream__``, which shares chunks. Its ``__arrow_c_array__`` concatenates them."""
    narwhals = library("narwhals")
    values = np.arange(4.0)
    owner = pa.chunked_array([values]) if native == "pyarrow" else library("polars").Series(values)
    x = ah.asarray(narwhals.from_native(owner, series_only=True), copy=False)
    assert (x.ptr, x.is_copy) == (ah.asarray(owner).ptr, False)
    assert ah.asarray(narwhals.from_native(owner, series_only=True)).ptr == x.ptr


def test_nanoarrow_array_of_several_chunks_is_read_as_a_stream():
    na = pytest.importorskip("nanoarrow")
    a = na.Array.from_chunks([[1, 2, 3], [4, 5]], na.int32())
    x = ah.asnested(a)
    assert (x.kind, len(x.chunks), x.to_list()) == ("chunked", 2, [1, 2, 3, 4, 5])
    assert ah.as_arrow(a).to_pylist() == ah.as_polars(a).to_list() == x.to_list()
    assert ah.as_numpy(a, copy=True).tolist() == ah.as_torch(a, copy=True).tolist() == x.to_list()
    with pytest.raises(BufferError, match="has 2 chunks; accepted: one chunk, or copy=True"):
        ah.asarray(a)


class Refusing:
    """A producer whose array method raises, with or without a stream."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_array__(self, requested_schema=None):
        raise NotImplementedError("an array of several chunks")


class RefusingWithStream(Refusing):
    def __arrow_c_stream__(self, requested_schema=None):
        return self.column.__arrow_c_stream__(requested_schema)


def test_array_method_that_raises_is_replaced_by_the_stream():
    column = pa.chunked_array([[1], [2, 3]])
    assert ah.asnested(RefusingWithStream(column)).to_list() == [1, 2, 3]
    assert ah.asarray(RefusingWithStream(pa.chunked_array([[1, 2]]))).tolist() == [1, 2]
    assert ah.as_arrow(RefusingWithStream(pa.table({"a": [1, 2]}))).to_pylist() == [{"a": 1}, {"a": 2}]
    with pytest.raises(NotImplementedError, match="an array of several chunks"):
        ah.asnested(Refusing(column))
