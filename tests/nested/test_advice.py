"""Each call that `explain` suggests for nested data works, for every source and library."""

import sys

import ml_dtypes
import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
pa = pytest.importorskip("pyarrow")
SOURCES = pytest.importorskip("nested_sources").SOURCES  # requires the other libraries

LIBRARIES = ("numpy", "torch", "jax", "pandas", "polars", "arrow", "awkward")
NESTED = {
    f"asnested of {name}": (lambda make=make: ah.asnested(make()))
    for name, make in SOURCES.items()
    if name.partition(" ")[0] in ("pa", "list", "ak") and "reader" not in name
}


def made(call, x):
    """Return the result of a call that `explain` names for `x`."""
    return eval(call, {"arrayhub": ah, "jax": sys.modules.get("jax"), "x": x})


@pytest.mark.parametrize("to", LIBRARIES)
@pytest.mark.parametrize("name", [*SOURCES, *NESTED])
def test_suggested_call_works(name, to):
    make = SOURCES.get(name) or NESTED[name]
    explanation = ah.explain(make(), to)
    (verdict,) = explanation.verdicts
    if to == "jax" and not explanation.call:  # without x64, jax has no type for times
        assert verdict.verdict == "cannot" and verdict.reason
        return
    assert str(explanation).startswith(f"call: {explanation.call}\n")
    assert made(explanation.call, make()) is not None
    if verdict.verdict == "zero-copy":
        assert explanation.call == f"arrayhub.as_{to}(x)"
    elif verdict.verdict == "copy=True":
        try:
            ah.convert(make(), to)
        except (BufferError, TypeError, ValueError):
            assert explanation.call == f"arrayhub.as_{to}(x, copy=True)"
        else:  # the export copies even without copy=True, for example Python lists
            assert explanation.call == f"arrayhub.as_{to}(x)"
    else:
        assert verdict.call == explanation.call
    if verdict.verdict == "cannot":
        for copy in (False, True):
            with pytest.raises((BufferError, TypeError, ValueError)):
                ah.convert(make(), to, copy=copy)


@pytest.mark.parametrize("to", ["numba", "xarray", "arrayhub"])
@pytest.mark.parametrize("name", NESTED)
def test_verdicts_on_nested_arrays_agree_with_the_export(name, to):
    x = NESTED[name]()
    (verdict,) = ah.explain(x, to).verdicts
    for copy, is_exported in ((False, ("zero-copy",)), (True, ("zero-copy", "copy=True"))):
        if verdict.verdict in is_exported:
            assert ah.convert(x, to, copy=copy) is not None


@pytest.mark.parametrize("name", SOURCES)
def test_description_functions_work_or_suggest_a_call_without_reading_streams(name):
    x = SOURCES[name]()
    streamed = name == "pa reader" or name.startswith("duckdb")
    ah.explain(x)
    for describe in (ah.check, ah.debug_repr):
        refusal = None
        try:
            describe(x)
        except (BufferError, TypeError) as error:
            refusal = error
        if streamed or name == "pl lazy":
            assert refusal is not None
        if refusal is not None and name not in ("pl lazy", "pd sparse", "pd sparse NaN"):
            assert "arrayhub.as" in refusal.call and refusal.call in str(refusal)
            if not streamed:
                eval(refusal.call, {"arrayhub": ah, "x": x})
    if streamed:
        assert len(ah.asnested(x)) == 1


def test_explain_considers_elements_after_the_first_thousand():
    """`explain` tries copies of a thousand elements, but searches all elements for missing values and row lengths."""
    many = 3000
    missing = pa.array([*range(many), None])
    ragged = pa.array([[1.0, 2.0]] * many + [[1.0]])
    for x in (missing, ragged, pa.chunked_array([missing, missing]), ah.asnested(ragged)):
        for to in ("numpy", "torch", "jax"):
            explanation = ah.explain(x, to)
            assert made(explanation.call, x) is not None, (explanation, to)


def test_verdict_reasons_name_what_requires_a_copy():
    def reason(x, to="numpy"):
        (verdict,) = ah.explain(x, to).verdicts
        return verdict.reason

    import polars

    frame = polars.DataFrame({"a": [1], "b": [2.0]})
    assert "matrix" in reason(frame)
    assert "booleans" in reason(pa.array([True]))
    assert "2 chunks" in reason(pa.chunked_array([[1], [2]]))
    assert "2 chunks" in reason(pa.chunked_array([["a"], ["b"]]), "awkward")
    assert "missing" in reason(pa.array([1, None]), "torch")


TABLES = {
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
    "awkward": lambda columns: pytest.importorskip("awkward").Array(columns),
    "a dict": lambda columns: columns,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_explain_names_the_column_that_cannot_be_converted(make, to):
    frame = make({"height": [1.0], "name": ["x"]})
    (verdict,) = ah.explain(frame, to).verdicts
    assert "'name'" in verdict.reason
    columns = made(verdict.call, frame)
    if to == "numpy":
        assert [columns["height"].tolist(), columns["name"].tolist()] == [[1.0], ["x"]]
        assert type(columns["height"]) is np.ndarray
    else:
        assert verdict.call == "arrayhub.asnested(x)"


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_suggested_call_for_a_table_converts_all_columns(make):
    def called(columns, to):
        x = make(columns)
        return eval(ah.explain(x, to).call, {"arrayhub": ah, "jax": sys.modules.get("jax"), "pyarrow": pa, "x": x})

    numbers = {"a": [1, 2], "b": [1.5, 2.5]}
    for to in ("numpy", "torch", "jax"):
        assert called(numbers, to).tolist() == [[1.0, 1.5], [2.0, 2.5]]
    assert ah.asarray(called(numbers, None), copy=None).tolist() == [[1.0, 1.5], [2.0, 2.5]]
    assert called(numbers | {"b": pa.array([None, 2.5])}, "numpy").shape == (2, 2)
    for to in ("numpy", "torch", "jax", None):
        mixed = called({"a": [1, 2], "b": ["u", "v"]}, to)
        columns = mixed if isinstance(mixed, dict) else mixed.fields
        assert [list(ah.asnested(column).to_list()) for column in columns.values()] == [[1, 2], ["u", "v"]]


KEPT = {
    "lists": [[1.5, 2.5], [3.5]],
    "lists of lists": [[[1.5], [2.5, 3.5]], [[4.5]]],
    "strings": ["ab", "c"],
    "lists of strings": [["ab"], ["c", "d"]],
    "lists of records": [[{"a": 1}], [{"a": 2}, {"a": 3}]],
    "categories": ["lo", "hi", "lo"],
}


@pytest.mark.parametrize("source", ["list", "pyarrow", "polars", "pandas", "NestedArray"])
@pytest.mark.parametrize("to", ["numpy", "torch", "jax", "numba"])
@pytest.mark.parametrize("name", KEPT)
def test_suggested_call_for_lists_and_strings_keeps_their_structure(name, to, source):
    values = KEPT[name]
    array = pa.array(values).dictionary_encode() if name == "categories" else pa.array(values)
    if source == "polars":
        x = pytest.importorskip("polars").from_arrow(array)
    elif source == "pandas":
        x = pytest.importorskip("pandas").Series(array.to_pandas())
    else:
        x = {"list": values, "pyarrow": array, "NestedArray": ah.asnested(array)}[source]
    result = made(ah.explain(x, to).call, x)
    assert len(result) == len(values)
    if to != "torch" and name == "lists":
        assert type(result) is list and [row.tolist() for row in result] == values


def test_explain_does_not_suggest_a_call_for_an_object_that_is_not_an_array():
    assert ah.explain(object()).call == "" and ah.explain(object(), "polars").call == ""
    assert ah.explain(np.zeros(2, "f4"), "numpy").verdicts[0].call == ""


def of_torch(make):
    return lambda: make(pytest.importorskip("torch"))


PREPARED = {
    "a tensor that requires grad": of_torch(lambda torch: torch.ones(3, requires_grad=True)),
    "a conjugate view": of_torch(lambda torch: torch.ones(3, dtype=torch.complex64).conj()),
    "a negative view": of_torch(lambda torch: torch._neg_view(torch.ones(3))),
    "a conjugate view that requires grad": of_torch(
        lambda torch: torch.ones(3, dtype=torch.complex64, requires_grad=True).conj()
    ),
    "0-d, NumPy": lambda: np.array(1.0, "f4"),
    "0-d, torch": of_torch(lambda torch: torch.tensor(1.0)),
    "a number": lambda: 3.5,
    "records of types that torch lacks": lambda: np.zeros(3, [("a", ml_dtypes.float8_e3m4), ("b", "f4")]),
    "a dict of columns": lambda: {"a": [1, 2], "b": [3, 4]},
    "csr": lambda: pytest.importorskip("scipy.sparse").csr_array(np.eye(3)),
    "csr, wide": lambda: pytest.importorskip("scipy.sparse").csr_array((10**9, 10**9)),
    "repeated column names": lambda: _frame([[1, 2], [3, 4]]),
    "repeated column names of several types": lambda: _frame([["x", 2.0], ["y", 4.0]]),
}


def _frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows, columns=["a", "a"])


@pytest.mark.parametrize("to", [*LIBRARIES, None])
@pytest.mark.parametrize("make", PREPARED.values(), ids=PREPARED)
def test_suggested_call_works_for_objects_that_need_preparation(make, to):
    x = make()
    call = ah.explain(x, to=to).call
    if getattr(x, "shape", ()) == (10**9, 10**9) and to not in ("torch", "jax", None):
        assert call == ""  # the dense array would exceed the memory
        return
    assert eval(call, {"arrayhub": ah, "jax": sys.modules.get("jax"), "pyarrow": pa, "x": x}) is not None


@pytest.mark.parametrize("to", ["arrow", "polars", "awkward", "arrayhub.NestedArray"])
@pytest.mark.parametrize("rows", [[[1, 2], [3, 4]], [["x", 2.0], ["y", 4.0]]], ids=["one type", "several types"])
def test_explain_suggests_a_call_for_repeated_column_names(rows, to):
    x = _frame(rows)
    explained = ah.explain(x, to=to)
    assert [verdict.verdict for verdict in explained.verdicts] == ["cannot"]
    assert "x.set_axis(" in explained.call
    with pytest.raises(BufferError, match=r"several columns named 'a'.*x\.set_axis\(range\(x\.shape\[1\]\), axis=1\)"):
        ah.convert(x, to, copy=True)


def test_refused_query_names_a_call_that_works():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    x = duckdb.sql("select interval 1 day as i")
    with pytest.raises(ah.Refusal) as raised:
        ah.as_polars(x)
    assert eval(raised.value.call, {"arrayhub": ah, "x": x}) is not None


def test_long_series_in_chunks_is_described_as_a_whole():
    pd = pytest.importorskip("pandas")
    x = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(range(3000))] * 2)))
    explained = ah.explain(x, to="numpy")
    assert explained.summary == "6000 * int64, immutable, on cpu, in 2 chunks"
    assert explained.call == "arrayhub.as_numpy(x, copy=True)"


@pytest.mark.parametrize("to", ["numpy", "arrow"])
@pytest.mark.parametrize("gap", [None, 3, 2500])
def test_wide_frame_is_exported_once_and_described_by_columns_of_each_type(to, gap, monkeypatch):
    pd = pytest.importorskip("pandas")
    flags = pd.array([k != gap or None for k in range(3000)], dtype="boolean")
    x = pd.DataFrame({f"c{k}": flags if k % 7 == 0 else np.arange(3000.0) for k in range(50)})
    exported = []
    export = pd.DataFrame.__arrow_c_stream__
    counted = lambda x, *given: exported.append(x.shape) or export(x, *given)  # noqa: E731
    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", counted)
    explained = ah.explain(x, to=to)
    kind = "?bool" if gap else "bool"
    assert explained.summary.startswith(f"3000 rows with 50 columns, such as {{c0: {kind}, c1: float64}}")
    assert exported == [(100 + (gap == 2500), 2)]
    monkeypatch.undo()
    assert eval(explained.call, {"arrayhub": ah, "x": x}) is not None


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
@pytest.mark.parametrize("to", ["numpy", "torch", "arrow", "pandas"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_wide_table_is_described_by_columns_of_each_type(library, to, chunks):
    pa, _ = pytest.importorskip("pyarrow"), pytest.importorskip(library)
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    narrow = {"a": [1.5] * 3, "b": [1, None, 2], "c": [1, 2, 3], "d": [True, False, True]}
    columns = narrow | {f"{name}{k}": narrow[name] for name in narrow for k in range(5)}
    tables = [pa.concat_tables([pa.table(made)] * chunks) for made in (narrow, columns)]
    if library == "polars":
        tables = [pytest.importorskip("polars").from_arrow(table, rechunk=False) for table in tables]
    one, many = (ah.explain(table, to=to) for table in tables)
    rows = 3 * chunks
    assert many.summary.startswith(f"{rows} rows with 24 columns, such as {{a: float64, b: ?int64, c: int64, d: bool}}")
    assert (many.verdicts, many.call) == (one.verdicts, one.call)
    assert eval(many.call, {"arrayhub": ah, "x": tables[1]}) is not None


@pytest.mark.parametrize("to", ["numpy", "jax", "numba", "arrayhub", "xarray"])
def test_lazy_tensors_are_explained_as_copies(to):
    torch = pytest.importorskip("torch")
    pytest.importorskip("arrayhub" if to == "arrayhub" else to)
    x = torch.ones(2, dtype=torch.complex64).conj()
    explained = ah.explain(x, to=to)
    assert [verdict.verdict for verdict in explained.verdicts] == ["copy=True"]
    assert explained.summary == "2 * complex[float32], which is copied"
    assert eval(explained.call, {"arrayhub": ah, "x": x}) is not None


def test_records_of_a_frame_with_text_in_the_index_name_a_call_that_works():
    pd = pytest.importorskip("pandas")
    x = ah.asnested(pd.DataFrame({"a": [1]}, index=["u"]))
    with pytest.raises(ah.Refusal) as raised:
        ah.as_numpy(x)
    assert list(eval(raised.value.call, {"arrayhub": ah, "x": x})) == ["a", "__index_level_0__"]
