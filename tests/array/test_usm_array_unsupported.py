"""Test that operators return the result of the other operand or raise a TypeError, and that hashing raises."""

import collections.abc
import operator

import numpy as np
import pytest

import arrayhub as ah

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "divmod": divmod, "@": operator.matmul, "<<": operator.lshift,
    ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
COMPARED = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
UNARY = {"-x": operator.neg, "+x": operator.pos, "abs": abs, "~": operator.invert}
# Operators that str implements: formatting, concatenation and repetition.
SEQUENCES = {
    *(("%", str, ah.USMArray), ("+", str, ah.USMArray), ("+", ah.USMArray, str)),
    *(("*", str, ah.USMArray), ("*", ah.USMArray, str)),
}
A, B = np.array([4, 5, 6]), np.array([2, 2, 1])


@pytest.mark.parametrize("symbol", BINARY | COMPARED)
@pytest.mark.parametrize("other", [1, 2.5, "a", None, object(), ah.asarray(A)], ids=lambda value: type(value).__name__)
def test_binary_operators_with_other_operands_raise(symbol, other):
    x = ah.asarray(A)
    for left, right in ((x, other), (other, x)):
        if (symbol, type(left), type(right)) in SEQUENCES:
            continue
        refused = r"^[=!]=: .*as_numpy\(x\)" if symbol in ("==", "!=") else "USMArray'|USMArray\""
        with pytest.raises(TypeError, match=refused):
            (BINARY | COMPARED)[symbol](left, right)


@pytest.mark.parametrize("symbol", UNARY)
def test_unary_operators_raise(symbol):
    with pytest.raises(TypeError, match=r"USMArray"):
        UNARY[symbol](ah.asarray(A))


@pytest.mark.parametrize("symbol", BINARY | COMPARED)
def test_numpy_operands_compute_the_result(symbol):
    function = (BINARY | COMPARED)[symbol]
    for left, right in (
        (ah.asarray(A), B),
        (B, ah.asarray(A)),
        (ah.asarray(A), np.int64(3)),
        (np.int64(3), ah.asarray(A)),
    ):
        if symbol == "@" and not (np.ndim(left) and np.ndim(right)):
            continue
        expected = function(np.asarray(left) if np.ndim(left) else left, np.asarray(right) if np.ndim(right) else right)
        np.testing.assert_array_equal(function(left, right), expected)


def test_pandas_operands_compute_the_result():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(A)
    assert (series + ah.asarray(B)).tolist() == (ah.asarray(B) + series).tolist() == [6, 7, 7]
    assert (series == ah.asarray(B)).tolist() == (ah.asarray(B) == series).tolist() == [False] * 3


def test_sequences_accept_0d_integers_and_iterables():
    n = ah.asarray(np.array(2))
    assert "ab" * n == "abab" and n * (1,) == (1, 1)
    values = [0.0]
    values += ah.asarray(np.array([1.0, 2.0]))
    assert values == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="concatenate list"):
        [0] + ah.asarray(A)  # noqa: RUF005


def test_reflected_operator_is_called_once():
    class Answers:
        asked = 0

        def __radd__(self, other):
            Answers.asked += 1
            return "mine"

        def __gt__(self, other):
            return "greater"

        def __rpow__(self, other, modulus=None):
            raise KeyError("its own error")

    x = ah.asarray(A)
    assert (x + Answers(), Answers.asked) == ("mine", 1)
    assert (x < Answers()) == "greater"
    with pytest.raises(KeyError, match="its own error"):
        x ** Answers()


IN_PLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "<<": operator.ilshift, ">>": operator.irshift,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor,
}  # fmt: skip


@pytest.mark.parametrize("other", [1, np.float64(3), B, ah.asarray(B)], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("symbol", IN_PLACE)
def test_in_place_operators_raise(symbol, other):
    """Python would otherwise bind the name to NumPy's result, and the memory would not change."""
    a = A.copy()
    x = ah.asarray(a)
    with pytest.raises(TypeError, match=r"use x\[\.\.\.\] = arrayhub\.as_numpy\(x\) \+ y"):
        IN_PLACE[symbol](x, other)
    assert a.tolist() == A.tolist()
    x[...] = ah.as_numpy(x) + B
    assert a.tolist() == (A + B).tolist()


def test_pow_with_modulo_raises():
    with pytest.raises(TypeError, match="unsupported operand"):
        pow(ah.asarray(A), 2, 3)


@pytest.mark.parametrize("look", [lambda x: x[0] in [1, 2], lambda x: [1, 2].index(x), lambda x: {1: 2}.get(x)])
def test_membership_tests_and_searches_raise(look):
    with pytest.raises(TypeError, match="USMArray"):
        look(ah.asarray(A))


def test_hash_raises():
    x = ah.asarray(A)
    for use in (hash, lambda x: {x}, lambda x: {x: 1}):
        with pytest.raises(TypeError, match=r"unhashable type: .*USMArray"):
            use(x)
    assert not isinstance(x, collections.abc.Hashable)
    assert x.__hash__ is None


def test_operator_methods_are_missing():
    names = {"__add__", "__radd__", "__iadd__", "__mul__", "__matmul__", "__neg__", "__pow__", "__abs__"}
    assert not names & set(dir(ah.USMArray))
    assert not any(hasattr(ah.asarray(A), name) for name in names)


def test_error_of_assert_equal_suggests_as_numpy():
    with pytest.raises(TypeError, match=r"as_numpy\(x\)"):
        np.testing.assert_equal(ah.asarray(A), ah.asarray(A))
    np.testing.assert_array_equal(ah.asarray(A), ah.asarray(A))
