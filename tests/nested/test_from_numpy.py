"""Test that strings and records of any array are imported like those of NumPy."""

import ctypes

import numpy as np
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
