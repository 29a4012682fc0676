"""Random numbers, strings, times and sequences of built-in types, of their subclasses, and of similar types.

If arrayhub accepts a value, its result must equal NumPy's conversion of the value.
"""

import datetime
import decimal
import enum
import fractions
import http
import warnings
from typing import Any, NamedTuple

import numpy as np

import arrayhub as ah

from . import chance

TYPES = ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "S2", "U2", "M8[s]", "m8[ms]", ">i4"]


class Point(NamedTuple):
    x: Any
    y: Any


class Inherits(enum.IntFlag):
    ONE = 1


def with_a_dict(base):
    return type(f"{base.__name__}_with_a_dict", (base,), {})


def without(base):
    return type(f"{base.__name__}_without", (base,), {"__slots__": ()} if base not in (bytes, tuple, int) else {})


PLAIN = [True, 0, -1, 3, 300, 2**31, 2**63, 2**64, 1.5, 1e300, float("nan"), 1j, "a", "abc", "12", b"a", b"abc", b"12"]
DERIVED = [make(base) for make in (with_a_dict, without) for base in (int, float, complex, str, bytes)]
SEQUENCES = [list, tuple, with_a_dict(list), with_a_dict(tuple), lambda items: Point(*[*items, 0, 0][:2]), range]


class Floats:
    def __float__(self):
        return 2.5


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(2.0)


class Shows:
    @property
    def __array_interface__(self):
        return {**np.arange(2.0).__array_interface__, "data": bytes(16)}


def element(r):
    kind = r.random()
    if kind < 0.5:
        return r.choice(PLAIN)
    if kind < 0.6:
        make = r.choice([*DERIVED, decimal.Decimal, fractions.Fraction])
        return make(b"3" if issubclass(make, bytes) else r.choice([0, 1, 7]))
    if kind < 0.75:
        return np.dtype(r.choice(TYPES[:13])).type(r.choice([0, 1, 7]))
    zone = r.choice([None, datetime.UTC])
    return r.choice(
        [
            None, http.HTTPStatus.OK, Inherits.ONE, datetime.datetime(2020, 1, 2, 3, tzinfo=zone),
            datetime.date(2020, 1, 2), datetime.timedelta(days=1, microseconds=7), np.datetime64("2020-01-02T03", "s"),
            np.timedelta64(1500, "us"), np.array(300), np.arange(3), np.ma.masked, np.ma.masked_array([1, 2], [0, 1]),
            memoryview(b"ab"), bytearray(b"12"), ah.asarray(np.arange(2.0)), Floats(),
            HasArray(), Shows(), {"a": 1}, {1, 2}, chance.strange(r),
        ]
    )  # fmt: skip


def value(r, depth=0):
    """Draw an element or a sequence. Most items of a sequence are the same object."""
    if depth == 3 or r.random() < 0.35:
        return element(r)
    make, length = r.choice(SEQUENCES), r.randint(0, 3)
    if make is range:
        return range(r.randint(-2, 4))
    one = value(r, depth + 1)
    items = [one if r.random() < 0.7 else value(r, depth + 1) for _ in range(length)]
    made = make(items)
    if r.random() < 0.01 and isinstance(made, list):
        made.append(made)
    return made


def same(given, expected):
    """Return whether two ndarrays have equal types, shapes and bytes."""
    return given.dtype == expected.dtype and given.shape == expected.shape and given.tobytes() == expected.tobytes()


def draw(r):
    drawn, dtype, what = value(r), r.choice(TYPES), r.choice(["asarray", "dtype", "set", "full", "nested"])
    into = np.zeros(r.choice([(), (1,), (2,), (3,), (2, 2)]), dtype)

    def numpys():
        if what == "asarray":
            return np.array(drawn)
        if what == "dtype":
            return np.array(drawn, dtype)
        if what == "full":
            return np.full(into.shape, np.array(drawn, dtype), dtype)  # NumPy rejects full(1, 2**63, bool)
        try:
            into[...] = drawn
        except ValueError:  # NumPy drops leading dimensions of length 1 only from arrays
            into[...] = np.array(drawn)
        return into

    def ours():
        if what == "asarray":
            return ah.asarray(drawn)
        if what == "dtype":
            return ah.asarray(drawn, dtype=dtype)
        if what == "full":
            return ah.full(into.shape, drawn, dtype)
        x = ah.zeros(into.shape, dtype)
        x[...] = drawn
        return x

    def call():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if what == "nested":
                ah.asnested(drawn).to_list()
                return
            try:
                x = ours()
            except OverflowError:  # for numbers that are out of range, as in NumPy
                return
            if isinstance(drawn, bytes | range):  # bytes are imported as a buffer, and a range as an array
                return
            try:
                expected = numpys()
            except Exception as error:
                raise AssertionError(
                    f"NumPy rejects a value that arrayhub accepts ({type(error).__name__}: {error}): {x}"
                ) from None
            assert same(np.array(ah.as_numpy(x)), expected), f"{ah.as_numpy(x)!r} instead of {expected!r}"

    return f"{what} {dtype} {into.shape} {drawn!r:.300}", call
