"""Test that strings and records of any array are imported like those of NumPy."""

import ctypes

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah


class Named(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("s", ctypes.c_char * 3))


STRINGS = {
    "array": (np.array([b"ab", b"c"]), [b"ab", b"c"]),
    "USMArray of bytes": (ah.asarray(np.array([b"ab", b"c"])), [b"ab", b"c"]),
    "USMArray of text": (ah.asarray(np.array(["ab", "c"])), ["ab", "c"]),
    "ctypes": ((ctypes.c_char * 2)(b"a", b"b"), [b"a", b"b"]),
    "memoryview": (memoryview(b"ab").cast("c"), [b"a", b"b"]),
    "matrix": (np.array([["ab", "c"], ["d", "e"]])[:, ::-1], [["c", "ab"], ["e", "d"]]),
    "matrix of bytes": (ah.asarray(np.array([[b"ab"], [b"c"]])), [[b"ab"], [b"c"]]),
    "three dimensions": (np.full((1, 2, 2), "x"), [[["x", "x"], ["x", "x"]]]),
    "no rows": (np.zeros((0, 2), "U3"), []),
    "no columns": (np.zeros((2, 0), "U3"), [[], []]),
}


@pytest.mark.parametrize("name", STRINGS)
def test_strings_of_any_array_are_encoded(name):
    source, expected = STRINGS[name]
    assert ah.asnested(source).to_list() == expected
    assert ah.as_arrow(source).to_pylist() == ah.as_awkward(source).to_list() == expected
    assert ah.as_arrow(source, copy=True).to_pylist() == expected
    if name != "no columns":
        assert ah.as_polars(source).to_list() == expected
    assert len(ah.as_pandas(source)) == len(expected)


def test_records_of_any_array_are_records():
    records = (Named * 2)(Named(1, b"ab"), Named(2, b""))
    for source in (records, ah.asarray(records)):
        x = ah.asnested(source)
        assert (x.kind, x.field_names) == ("record", ("a", "s"))
        assert x["a"].ptr == ctypes.addressof(records)
        assert ah.as_pandas(source)["a"].tolist() == [1, 2]
    x = ah.asnested(np.ones(2, [("a", "i4"), ("b", "?")]))
    assert ah.asnested(ah.asarray(np.ones(2, [("a", "i4"), ("b", "?")]))).to_list() == x.to_list()


# Matrices whose elements `asarray` refuses, and their rows, by description.
MATRICES = {
    "objects": (np.array([[1, 2.5], [3, True]], object), [[1, 2.5], [3, 1]]),
    "masked": (np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), [[1, None], [3, 4]]),
    "mask without masked elements": (np.ma.array([[1, 2], [3, 4]], mask=np.zeros((2, 2))), [[1, 2], [3, 4]]),
    "numpy.matrix": (np.asmatrix([["a", "b"], ["c", "d"]]), [["a", "b"], ["c", "d"]]),
    "objects with text": (np.array([["a", "b"], ["c", None]], object), [["a", "b"], ["c", None]]),
}


@pytest.mark.parametrize("copy", [False, None, True])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_have_rows_of_a_fixed_length_and_columns(name, copy):
    matrix, rows = MATRICES[name]
    columns = [list(column) for column in zip(*rows, strict=True)]
    x = ah.asnested(matrix, copy=copy)
    assert str(x.type).startswith("2 * 2 * ") and x.to_list() == rows
    assert ah.as_arrow(matrix, copy=copy).type.list_size == 2
    assert ah.as_polars(matrix, copy=copy).shape == (2,)
    for frame in (ah.as_pandas(matrix, copy=copy), ah.convert(matrix, pd.DataFrame, copy=copy)):
        assert [[None if value is pd.NA else value for value in frame[k]] for k in frame] == columns
    assert list(ah.convert(matrix, pl.DataFrame, copy=copy).to_dict(as_series=False).values()) == columns
    assert list(ah.convert(matrix, pa.Table, copy=copy).to_pydict().values()) == columns


def test_matrix_of_numbers_and_text_becomes_a_frame():
    matrix = np.array([[1, "a"], [2, None]], object)  # what DataFrame.to_numpy() returns
    frame = ah.as_pandas(matrix)
    assert frame[0].dtype == "int64" and frame[0].tolist() == [1, 2] and frame[1].isna().tolist() == [False, True]
    assert ah.explain(matrix, to="pandas").call == "arrayhub.as_pandas(x)"
    assert ah.as_torch(ah.asnested(np.array([[1, 2.5], [3, True]], object))).shape == (2, 2)


def test_dok_array_is_not_a_dict_of_columns():
    sparse = pytest.importorskip("scipy.sparse").dok_array((2, 2))
    for convert in (ah.asnested, ah.as_arrow, ah.as_polars, ah.as_pandas, ah.as_awkward):
        with pytest.raises((BufferError, TypeError), match="tocoo"):
            convert(sparse)
