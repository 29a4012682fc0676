"""Test `convert`, `like` and `adapt` with table types, such as pandas.DataFrame."""

import numpy as np
import pytest

import arrayhub as ah

pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")

GIVEN = pytest.importorskip("nested_sources").SOURCES  # requires the other libraries
TYPES = [pd.DataFrame, pl.DataFrame, pa.Table, pa.RecordBatch]
MATRIX = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
COLUMNS = {"a": [1, 2], "b": [0.5, 1.5]}
TABLES = {
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
    "batch": pa.record_batch(COLUMNS),
    "records": ah.asnested(pa.table(COLUMNS)),
    "numpy": np.array([(1, 0.5), (2, 1.5)], [("a", "i8"), ("b", "f8")]),
}


def rows(table):
    return ah.asarray(table, copy=True).tolist()


@pytest.mark.parametrize("cls", TYPES)
def test_matrix_columns_become_table_columns(cls):
    torch = pytest.importorskip("torch")
    for matrix in (MATRIX, torch.from_numpy(MATRIX), ah.asarray(MATRIX)):
        made = ah.convert(matrix, cls)
        assert type(made) is cls and rows(made) == [[1, 2], [3, 4]]
    if cls is not pd.DataFrame:
        rows_first = np.ascontiguousarray(MATRIX)
        with pytest.raises(ah.Refusal, match="the columns of the array, .* are not contiguous") as raised:
            ah.convert(rows_first, cls)
        assert raised.value.subject == cls.__module__.partition(".")[0]
        with pytest.raises(ah.Refusal, match="complex128") as refused:
            ah.convert(rows_first * 1j, cls)
        assert "copy=True" not in refused.value.call
        again = eval(raised.value.call, {"arrayhub": ah, "polars": pl, "pyarrow": pa, "x": rows_first})
        assert type(again) is cls and rows(again) == [[1, 2], [3, 4]]
    made = ah.convert(np.ascontiguousarray(MATRIX), cls, copy=None)
    assert type(made) is cls and rows(made) == [[1, 2], [3, 4]]


@pytest.mark.parametrize("cls", TYPES)
def test_1d_array_becomes_one_column(cls):
    for values in (np.array([1.0, 2.0]), pa.array([1.0, 2.0]), pl.Series([1.0, 2.0]), pd.Series([1.0, 2.0])):
        made = ah.convert(values, cls, copy=None)
        assert type(made) is cls and rows(made) == [[1], [2]]


@pytest.mark.parametrize("cls", TYPES)
@pytest.mark.parametrize("name", TABLES)
def test_tables_and_records_become_tables(name, cls):
    given = TABLES[name]
    made = ah.convert(given, cls, copy=None)
    assert type(made) is cls and rows(made) == [[1, 0.5], [2, 1.5]]
    names = made.column_names if isinstance(made, pa.Table) else list(getattr(made, "columns", [])) or made.schema.names
    assert (names if isinstance(names[0], str) else made.schema.names) == ["a", "b"]
    if type(given) is cls:
        assert made is given


ONE_TYPE = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
MIXED = {"a": np.array([1.0, 2.0]), "b": np.array([3, 4])}


def make_table(name, columns):
    awkward = pytest.importorskip("awkward")
    return {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "batch": lambda columns: pa.record_batch({key: pa.array(column) for key, column in columns.items()}),
        "awkward": awkward.zip,
    }[name](columns)


def names_of(table):
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        return table.schema.names
    for attribute in ("columns", "fields"):
        if hasattr(table, attribute):
            return list(getattr(table, attribute))
    return None


SOURCES = ["pandas", "polars", "pyarrow", "batch", "awkward"]


@pytest.mark.parametrize("columns", [ONE_TYPE, MIXED], ids=["one type", "mixed"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", SOURCES)
@pytest.mark.parametrize("copy", [False, True])
def test_column_names_are_kept(source, target, columns, copy):
    given = make_table(source, columns)
    model = make_table(target, {"p": np.arange(3), "q": np.arange(3), "r": np.arange(3)})
    assert names_of(ah.like(given, type(model), copy=copy)) == ["a", "b"]
    assert names_of(ah.like(given, model, copy=copy)) == ["a", "b"]
    assert names_of(ah.convert(given, type(model), copy=copy)) == ["a", "b"]
    seen = []

    @ah.adapt(type(model), copy=None if copy else False)
    def unchanged(table):
        seen.append(names_of(table))
        return table

    result = unchanged(given)
    assert seen == [["a", "b"]] and names_of(result) == ["a", "b"]


@pytest.mark.parametrize("cls", [pa.Table, pa.RecordBatch, pl.DataFrame])
def test_columns_of_a_frame_of_one_type_are_shared(cls):
    frame = pd.DataFrame(MATRIX, columns=["a", "b"], copy=False)
    for made in (ah.convert(frame, cls, copy=False), ah.like(frame, cls, copy=False)):
        column = made["b"] if cls is pl.DataFrame else made.column(1)
        assert ah.asarray(column).ptr == MATRIX[:, 1].ctypes.data


@pytest.mark.parametrize("to", ["arrow", "polars", pl.DataFrame, pa.Table, pa.RecordBatch])
@pytest.mark.parametrize("name", [name for name in GIVEN if "gaps" in name])
def test_pandas_columns_with_gaps_are_shared_or_refused(name, to):
    given, library = GIVEN[name](), "polars" if to in ("polars", pl.DataFrame) else "arrow"
    model = to if isinstance(to, type) else ah.convert([1], to)
    for call in (ah.convert, lambda x, to, copy: ah.like(x, model, copy=copy)):
        with pytest.raises(ah.Refusal) as raised:
            call(given, to, copy=False)
        assert raised.value.call == ah.explain(given, to=library).call == f"arrayhub.as_{library}(x, copy=True)"
        assert len(call(given, to, copy=None)) == len(call(given, to, copy=True)) == len(given)
    expected = ah.convert(given.copy(), library, copy=True)
    assert eval(raised.value.call, {"arrayhub": ah, "x": given}).equals(expected)
    if name in ("pd frame gaps", "pd frame gaps mixed"):
        assert ah.asarray(ah.asnested(given)["b"]).ptr == given["b"].to_numpy().ctypes.data
        assert ah.asnested(given).to_list() == ah.asnested(given.copy()).to_list()


@pytest.mark.parametrize("cls", [pa.Table, pa.RecordBatch])
@pytest.mark.parametrize("copy", [False, None, True])
def test_columns_of_one_name_keep_their_types_and_the_index(cls, copy):
    frame = pd.DataFrame({"a": [2**53 + 1, 2], "b": [0.5, 1.5], "c": ["x", None]}, index=["u", "v"])
    frame.columns = ["a", "a", "c"]
    made = ah.convert(frame, cls, copy=copy)
    assert made.schema.names == ["a", "a", "c", "__index_level_0__"] and made.column(3).to_pylist() == ["u", "v"]
    assert [made.column(k).to_pylist() for k in range(3)] == [[2**53 + 1, 2], [0.5, 1.5], ["x", None]]
    filled = ah.convert(frame, cls, missing={"c": "y"})
    assert filled.schema == made.schema and filled.column(2).to_pylist() == ["x", "y"]
    with pytest.raises(ValueError, match="'d'"):
        ah.convert(frame, cls, missing={"d": "y"})


def test_chunks_become_one_batch_where_a_copy_is_allowed():
    given = pa.table({"a": pa.chunked_array([[1], [2, None]]), "b": pa.chunked_array([["x", "y"], ["z"]])})
    with pytest.raises(ah.Refusal, match="has one chunk") as raised:
        ah.convert(given, pa.RecordBatch)
    again = eval(raised.value.call, {"arrayhub": ah, "pyarrow": pa, "x": given})
    (passed,) = ah.adapt(pa.RecordBatch)(lambda x: [x])(given)
    for made in (again, ah.convert(given, pa.RecordBatch, copy=None), passed):
        assert made.num_rows == 3 and [column.to_pylist() for column in made.columns] == [[1, 2, None], ["x", "y", "z"]]


@pytest.mark.parametrize("cls", TYPES)
def test_like_with_a_dtype_keeps_the_names_of_a_frame_of_one_type(cls):
    frame = pd.DataFrame(ONE_TYPE, index=["x", "y"])
    made = ah.like(frame, cls, dtype="f4", copy=True)
    assert names_of(made) == names_of(ah.like(frame, cls))  # tables of pyarrow keep the index as a column
    assert names_of(made)[:2] == ["a", "b"] and [row[:2] for row in rows(made)] == [[1, 3], [2, 4]]
    if cls is pd.DataFrame:
        assert list(made.index) == ["x", "y"]


def test_repeated_column_names_are_kept_or_rejected():
    frame = pd.DataFrame(MATRIX, columns=["a", "a"])
    assert ah.like(frame, pa.Table).column_names == ["a", "a"]
    assert ah.like(frame.iloc[:, 0], pa.Table).column_names == ["a"]
    assert list(ah.like(frame, pd.DataFrame).columns) == ["a", "a"]
    with pytest.raises(BufferError, match=r"several columns named 'a'.*Use x\.set_axis"):
        ah.like(frame, pl.DataFrame)


@pytest.mark.parametrize("columns", [COLUMNS, ONE_TYPE], ids=["mixed", "one type"])
def test_pandas_metadata_of_a_schema_is_kept(columns):
    frame = pd.DataFrame(columns, index=pd.Index(["x", "y"], name="key"))
    table = ah.convert(frame, pa.Table)
    pd.testing.assert_frame_equal(table.to_pandas(), frame)


def test_functions_adapted_to_pyarrow_table_receive_tables():
    seen = []

    @ah.adapt(pa.Table, labels=True)
    def ordered(table):
        seen.append(type(table))
        return table.select(["b", "a"])

    frame = pd.DataFrame(COLUMNS, index=["x", "y"])
    pd.testing.assert_frame_equal(ordered(frame), frame[["b", "a"]])
    assert ordered(TABLES["polars"]).equals(TABLES["polars"].select("b", "a"))
    assert ordered(TABLES["batch"]).column_names == ["b", "a"]
    assert seen == [pa.Table] * 3


@pytest.mark.parametrize("cls", TYPES)
def test_tables_with_missing_values_remain_tables(cls):
    made = ah.convert(pl.DataFrame({"a": [1, None], "b": [1.5, 2.5]}), cls, copy=None, missing=0)
    assert isinstance(made, cls)
    assert ah.asnested(made).to_list() == [{"a": 1, "b": 1.5}, {"a": 0, "b": 2.5}]


def test_types_of_xarray():
    xarray = pytest.importorskip("xarray")
    for cls in (xarray.DataArray, xarray.Variable):
        made = ah.convert(np.ones((2, 3)), cls)
        assert type(made) is cls and made.shape == (2, 3)
    assert type(ah.convert(pa.array([1, None]), xarray.Variable, missing=0)) is xarray.Variable
    with pytest.raises(TypeError, match=r"^convert: to is xarray\.Dataset"):
        ah.convert(np.ones((2, 3)), xarray.Dataset)
    with pytest.raises(TypeError, match=r"^like: the model .* is of type xarray\.Dataset; accepted: an array of numpy"):
        ah.like(np.ones(2), xarray.Dataset({"a": ("x", [1])}))


@pytest.mark.parametrize("cls", [pl.DataFrame, pa.Table])
def test_refusals_for_tables_name_a_call_for_the_given_object(cls):
    for x in (np.zeros(2, ">i4"), np.zeros(2, [("a", ">i4")]), torch_conjugate()):
        with pytest.raises(ah.Refusal) as raised:
            ah.convert(x, cls)
        call = raised.value.call
        assert not call or eval(call, {"arrayhub": ah, "x": x}) is not None


def torch_conjugate():
    return pytest.importorskip("torch").ones(2, dtype=pytest.importorskip("torch").complex64).conj()


def test_matrix_of_records_becomes_columns_of_structs():
    frame = ah.convert(np.ones((2, 3), "i4,f8"), pl.DataFrame, copy=True)
    assert frame.shape == (2, 3) and frame["column_2"].to_list() == [{"f0": 1, "f1": 1.0}] * 2
    assert ah.convert(np.arange(3.0), pl.DataFrame).columns == ["column_0"]
