"""The sequence protocol: len, iter, in and truth behave as NumPy's or raise."""

import numpy as np
import pytest

import arrayhub as ah


def test_iteration_gives_views_of_the_first_dimension():
    x = np.arange(6.0).reshape(3, 2)
    rows = list(ah.asarray(x))
    assert [row.ptr for row in rows] == [x[k].ctypes.data for k in range(3)]
    assert [row.shape for row in rows] == [(2,)] * 3
    assert list(ah.asarray(np.zeros((0, 2)))) == []
    assert [int(ah.as_numpy(one)) for one in reversed(ah.asarray(np.arange(3)))] == [2, 1, 0]


def test_backwards_are_the_same_elements_and_views():
    x = ah.asarray(np.array([1, 2, 2], "i2"))
    assert [type(value) for value in reversed(x)] == [np.int16] * 3
    assert list(reversed(x)) == [2, 2, 1]
    a = np.arange(6).reshape(3, 2)
    rows = list(reversed(ah.asarray(a).with_dims("IJ")))
    assert [row.tolist() for row in rows] == a[::-1].tolist()
    assert [row.dims for row in rows] == [("J",)] * 3 and rows[0].ptr == a[2].ctypes.data
    with pytest.raises(TypeError, match="without dimensions"):
        reversed(ah.asarray(np.array(3)))


def test_without_dimensions_there_is_nothing_to_iterate_over():
    x = ah.asarray(np.array(3))
    with pytest.raises(TypeError, match="without dimensions"):
        iter(x)
    with pytest.raises(TypeError, match=r"without dimensions; x\.item\(\)"):
        len(x)
    with pytest.raises(TypeError, match="without dimensions"):
        list(x)


@pytest.mark.parametrize("value", [3, 3.0, None, "a"])
def test_nothing_is_looked_for_in_an_array(value):
    with pytest.raises(TypeError, match=r"as_numpy\(x\)"):
        value in ah.asarray(np.arange(5))  # noqa: B015


@pytest.mark.parametrize("value", [0, 1, 0.0, 2.5, True, False, 1j, np.float32(0)])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_the_truth_of_one_element(value, shape):
    x = np.full(shape, value)
    assert bool(ah.asarray(x)) is bool(x)


@pytest.mark.parametrize("shape", [(0,), (2,), (3, 0), (2, 2)])
def test_no_element_and_several_are_neither_true_nor_false(shape):
    with pytest.raises(ValueError, match=r"as_numpy\(x\)\.any"):
        bool(ah.asarray(np.ones(shape)))
