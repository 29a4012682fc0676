"""convert and adapt with the type of a table."""

import numpy as np
import pytest

import arrayhub as ah

pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")

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
def test_a_matrix_becomes_columns(cls):
    torch = pytest.importorskip("torch")
    for matrix in (MATRIX, torch.from_numpy(MATRIX), ah.asarray(MATRIX)):
        made = ah.convert(matrix, cls)
        assert type(made) is cls and rows(made) == [[1, 2], [3, 4]]
    made = ah.convert(np.ascontiguousarray(MATRIX), cls, copy="if_needed")
    assert type(made) is cls and rows(made) == [[1, 2], [3, 4]]


@pytest.mark.parametrize("cls", TYPES)
def test_one_dimension_becomes_one_column(cls):
    for values in (np.array([1.0, 2.0]), pa.array([1.0, 2.0]), pl.Series([1.0, 2.0]), pd.Series([1.0, 2.0])):
        made = ah.convert(values, cls, copy="if_needed")
        assert type(made) is cls and rows(made) == [[1], [2]]


@pytest.mark.parametrize("cls", TYPES)
@pytest.mark.parametrize("name", TABLES)
def test_tables_and_records_become_tables(name, cls):
    given = TABLES[name]
    made = ah.convert(given, cls, copy="if_needed")
    assert type(made) is cls and rows(made) == [[1, 0.5], [2, 1.5]]
    names = made.column_names if isinstance(made, pa.Table) else list(getattr(made, "columns", [])) or made.schema.names
    assert (names if isinstance(names[0], str) else made.schema.names) == ["a", "b"]
    if type(given) is cls:
        assert made is given


def test_metadata_of_a_schema_is_kept():
    frame = pd.DataFrame(COLUMNS, index=pd.Index(["x", "y"], name="key"))
    table = ah.convert(frame, pa.Table)
    pd.testing.assert_frame_equal(table.to_pandas(), frame)


def test_adapted_functions_of_pyarrow_receive_tables():
    seen = []

    @ah.adapt(pa.Table, copy="if_needed")
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
    made = ah.convert(pl.DataFrame({"a": [1, None], "b": [1.5, 2.5]}), cls, copy="if_needed", missing=0)
    assert isinstance(made, cls)
    assert ah.asnested(made).to_list() == [{"a": 1, "b": 1.5}, {"a": 0, "b": 2.5}]
