"""Test conversion to Python objects: numbers, formatting, item, tolist, tobytes and iteration."""

import inspect
import operator

import ml_dtypes
import numpy as np
import pytest
from dlpack_by_hand import Handmade

import arrayhub as ah

NUMBERS = [
    np.array(51, "u1"),  # its byte is the character "3"
    np.array(-51, "i1"),
    np.array(-51, ">i2"),
    np.array(2**16 - 2, "u2"),
    np.array(-(2**31), "i4"),
    np.array(2**32 - 2, "u4"),
    np.array(-(2**63), "i8"),
    np.array(2**64 - 2, "u8"),
    np.array(-5, np.longlong),
    np.array(5, np.ulonglong),
    np.array(True),
    np.array(1.5, "f2"),
    np.array(-1.5, "f4"),
    np.array(-1.5, ">f8"),
    np.array(0.1),
    np.array(0.1, "g"),
    np.array(1.5, ml_dtypes.bfloat16),
    np.array(1.5, ml_dtypes.float8_e4m3fn),
    np.array(3, ml_dtypes.int4),
    np.array("7"),
    np.array(b"7"),
]
COMPLEX = [np.array(1 - 2j, "F"), np.array(1 - 2j), np.array(1 - 2j, ">c16"), np.array(1.5 - 2j, "G")]
OTHERS = [
    np.array("2024-02-29T12", "M8[h]"),
    np.array(5, "m8[ns]"),
    np.array((1, 2.5), "i4,f8"),
    np.array(b"\0\1\2", "V3"),
]
NAMED = [pytest.param(value, id=value.dtype.str.strip("|<") + value.dtype.name) for value in NUMBERS]


def scalar_forms(value):
    """Return arrays with one element, `value`: 0-d, 1-d, 2-d, and unaligned 0-d."""
    unaligned = np.zeros(value.itemsize + 1, "u1")[1:].view(value.dtype)
    unaligned[0] = value
    return value, value.reshape(1), value.reshape(1, 1), unaligned[0:1].reshape(())


@pytest.mark.parametrize("value", NAMED)
@pytest.mark.parametrize("number", [int, float])
def test_one_element_array_converts_to_a_number(value, number):
    for form in scalar_forms(value):
        answer = number(ah.asarray(form))
        assert type(answer) is number
        assert answer == number(value.item())


@pytest.mark.parametrize("value", COMPLEX + NUMBERS[:19], ids=lambda value: value.dtype.str + value.dtype.name)
def test_one_element_array_converts_to_a_complex_number(value):
    for form in scalar_forms(value):
        assert complex(ah.asarray(form)) == complex(value.item())


@pytest.mark.parametrize("value", NUMBERS[:10], ids=lambda value: value.dtype.str)
def test_0d_integer_array_is_an_index(value):
    assert operator.index(ah.asarray(value)) == operator.index(value)


def test_0d_integer_arrays_are_accepted_as_lengths_and_indices():
    n = ah.asarray(np.array(3))
    assert np.zeros(n).shape == np.random.default_rng(0).random(n).shape == (3,)
    assert np.zeros((n, n)).shape == (3, 3)
    assert list(range(n)) == [0, 1, 2]
    assert "abcd"[n] == "d" and "abcd"[:n] == "abc"
    assert [0] * n == n * [0] == [0, 0, 0]
    assert np.array([n, n]).tolist() == [3, 3]
    assert ah.asarray(np.arange(6)).reshape(2, n).shape == (2, 3)
    z = ah.asarray(np.array([51, 49], "u1"))
    assert np.array([z[0], z[1]]).tolist() == [51, 49]
    assert np.float64(z[0]) == 51.0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array(3.0), "0 dimensions and"), (np.array([3]), "1 dimension and elements of int64"),
        (np.ones((1, 1), int), "2 dimensions and"), (np.array(True), "bool"), (np.array("3"), "U1"),
    ],
)  # fmt: skip
def test_only_0d_integer_arrays_are_an_index(value, words):
    with pytest.raises(TypeError, match=rf"^index: the array has .*{words}.*as_numpy\(x\)"):
        operator.index(ah.asarray(value))


@pytest.mark.parametrize("number", [int, float, complex])
@pytest.mark.parametrize("shape", [(0,), (2,), (2, 2)])
def test_number_conversion_requires_one_element(number, shape):
    with pytest.raises(TypeError, match=rf"^{number.__name__}: the array has .*as_numpy\(x\)"):
        number(ah.asarray(np.ones(shape)))


def test_format_of_one_element_arrays_equals_format_of_the_element():
    x = ah.asarray(np.array([[1.25]]))
    assert f"{x:.1f}|{x[0, 0]:6.2f}|{x}" == f"1.2|  1.25|{x!r}"
    assert "%d %5.1f" % (x, x) == "1   1.2"  # noqa: UP031
    assert f"{ah.asarray(np.array(255, 'u1')):x}" == "ff"
    with pytest.raises(TypeError, match="format '.1f': the array has 2 elements"):
        f"{ah.asarray(np.ones(2)):.1f}"


# ------------------------------------------------------------------------------------------------ item, tolist, bytes


def layouts(value):
    """Return a matrix that contains `value`, and views of the matrix."""
    matrix = np.zeros((3, 4), value.dtype)
    matrix[::2] = value
    return matrix, matrix.T, matrix[::-1, ::-2], matrix[1:1], matrix[0], matrix[0, 0:1].reshape(()), matrix[:, None]


@pytest.mark.parametrize("value", NUMBERS + COMPLEX + OTHERS, ids=lambda value: value.dtype.str + value.dtype.name)
def test_tolist_item_tobytes_and_iteration_equal_numpy(value):
    for a in layouts(value):
        x = ah.asarray(a)
        assert repr(x.tolist()) == repr(a.tolist())  # repr shows the types of the elements
        assert (x.tobytes(), x.tobytes("F"), x.tobytes("A")) == (a.tobytes(), a.tobytes("F"), a.tobytes("A"))
        assert repr(list(map(repr, iter(x)))) == repr(list(map(repr, iter(a)))) if a.ndim == 1 else True
        for k in range(-a.size, a.size):
            assert repr(x.item(k)) == repr(a.item(k))
        for where in np.ndindex(a.shape):
            assert repr(x.item(*where)) == repr(x.item(where)) == repr(a.item(where))
        if a.size == 1:
            assert repr(x.item()) == repr(a.item())


def test_item_has_a_docstring_and_a_signature():
    assert "item" in dir(ah.USMArray) and ah.USMArray.item.__doc__.lstrip().startswith(
        "Return one element as a Python value"
    )
    assert str(inspect.signature(ah.USMArray.item)) == "(self, /, *args)"
    with pytest.raises(TypeError, match="keyword"):
        ah.asarray(np.zeros(1)).item(index=0)
    with pytest.raises(TypeError, match="USMArray"):
        ah.USMArray.item(np.zeros(1))


WRONG_INDICES = [(), (6,), (-7,), (2, 0), (0, -4), (0, 0, 0), (10**30,), (0, 10**30), (0.0,), ("a",), ((0, None),)]


@pytest.mark.parametrize("where", WRONG_INDICES, ids=str)
def test_invalid_indices_of_item_raise_as_in_numpy(where):
    a = np.zeros((2, 3))
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as theirs:
        a.item(*where)
    with pytest.raises(theirs.type):
        ah.asarray(a).item(*where)


def test_tobytes_rejects_order_k():
    with pytest.raises(ValueError, match="tobytes: order is 'K'; accepted"):
        ah.asarray(np.zeros(2)).tobytes("K")


def test_packed_elements_are_not_iterable():
    memory = np.array([0x21, 0x43], "u1")
    x = ah.from_dlpack(Handmade(memory=memory, shape=(4,), dtype=(0, 4, 1)))
    assert x.tobytes() == memory.tobytes()
    for ask in (list, lambda x: x.item(1), lambda x: x.tolist()):
        with pytest.raises(BufferError, match="packed"):
            ask(x)


@pytest.fixture
def device_array():
    pytest.importorskip("dpctl")
    return ah.USMArray((2,), "f4", buffer="device")


ASKED = {
    "int": lambda x: int(x[:1]), "float": lambda x: float(x[0]), "bool": lambda x: bool(x[0]),
    "format '.1f'": lambda x: f"{x[0]:.1f}", "item": lambda x: x.item(0), "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(), "iteration": iter,
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_scalar_conversions_of_device_memory_raise(device_array, name):
    with pytest.raises(TypeError, match=rf"^{name}: the memory is on oneapi:0.*to_host\(x\)"):
        ASKED[name](device_array)


def test_rows_of_device_memory_are_views(device_array):
    rows = list(device_array.reshape(2, 1))
    assert [row.ptr - device_array.ptr for row in rows] == [0, 4]
    assert str(device_array) in f"{device_array}"


@pytest.mark.parametrize("name", ["copy", "tobytes", "tolist", "view", "to_host", "__copy__", "__dlpack__"])
def test_methods_reject_objects_of_other_classes(name):
    with pytest.raises(TypeError, match="'numpy.ndarray'"):
        getattr(ah.USMArray, name)(np.zeros(3))


# ---- the sequence protocol: len, iter, in, truth ----


def test_iteration_over_one_dimension_yields_numpy_scalars():
    x = ah.asarray(np.array([2, 1, 2], "i2"))
    assert [type(value) for value in (*x, *reversed(x))] == [np.int16] * 6
    assert list(x) == [2, 1, 2] and list(reversed(x)) == [2, 1, 2] and set(x) == {1, 2}


def test_iteration_over_several_dimensions_yields_views():
    a = np.arange(6).reshape(3, 2)
    x = ah.asarray(a).with_dims("IJ")
    for rows, expected in ((iter(x), a), (reversed(x), a[::-1])):
        assert operator.length_hint(rows) == 3
        for row, values in zip(rows, expected, strict=True):
            assert (type(row), row.ptr, row.dims) == (ah.USMArray, values.ctypes.data, ("J",))
        assert operator.length_hint(rows) == 0
    assert list(ah.asarray(np.zeros((0, 2)))) == []


@pytest.mark.parametrize("call", [iter, reversed, list, len])
def test_0d_arrays_are_not_iterable(call):
    with pytest.raises(TypeError, match="dimensions; use x|without dimensions"):
        call(ah.asarray(np.array(3)))


@pytest.mark.parametrize("value", [3, 3.0, None, "a"])
def test_membership_test_raises(value):
    with pytest.raises(TypeError, match=r"as_numpy\(x\)"):
        value in ah.asarray(np.arange(5))  # noqa: B015


@pytest.mark.parametrize("value", [0, 1, 0.0, 2.5, np.nan, True, False, 1j, np.float32(0)])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_bool_of_one_element_equals_numpy(value, shape):
    x = np.full(shape, value)
    assert bool(ah.asarray(x)) is bool(x)


@pytest.mark.parametrize("dtype", ["i4,i4", "V4", "M8[s]", "m8[s]"])
def test_bool_and_format_of_zeros_equal_those_of_numpy(dtype):
    x = np.zeros((), dtype)
    assert bool(ah.asarray(x)) is bool(x) is False
    assert format(ah.asarray(x), ">30") == format(x, ">30")


@pytest.mark.parametrize("shape", [(0,), (2,), (3, 0), (2, 2)])
def test_bool_requires_one_element(shape):
    with pytest.raises(ValueError, match=r"as_numpy\(x\)\.any"):
        bool(ah.asarray(np.ones(shape)))
