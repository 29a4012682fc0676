"""Whether values stay what they are among elements of another type; nothing is rounded away, cut, wrapped or parsed.

What NumPy makes of values of several kinds at once has lost something already (large integers are floats, numbers among
text are text, the finest unit of several times wraps), so that they are looked at kind by kind.
"""

import collections
import datetime
import functools
import itertools
import sys

import numpy as np

from arrayhub._core.dtypes import FIRST_USER_TYPENUM
from arrayhub._core.errors import show

# Booleans, integers, real and complex numbers by the widest types of each: the kinds of ml_dtypes' types do not tell.
_NUMBERS = (("?",), ("i8", "u8"), ("g",), ("G",))
_INTEGERS = 1
_WIDEST = tuple([tuple([np.dtype(name) for name in names]) for names in _NUMBERS])
_WHOLE = (int, np.integer, np.bool_)  # and no np.timedelta64, which is one of NumPy's integers
_WHOLE_NUMBERS = np.dtype(np.int64)  # the kind of objects that are all of these
_EXACT = 2.0**53  # floats are all integers below
_EPOCH = datetime.date(1970, 1, 1).toordinal()


# ------------------------------------------------------------------------------------------------------ Python's values


def checked(value, own, call):
    """Return a number, text, a time, or a sequence of them, of which nothing is lost as elements of the dtype `own`.

    It comes as the ndarray that NumPy makes of it where that says as much, else as it is; `converted` takes either.

    Raises
    ------
    TypeError, OverflowError, ValueError
        As `check_fit`.
    """
    if type(value) is float and own.char in "dgDG":
        return value
    if own.names:
        _check_fields(value, own, call)
        return value
    given = exact(value)
    kind = given.dtype.kind
    if kind in "SU":
        _check_text(value, call)
    if given.dtype.char == "b" and any(isinstance(leaf, bytes) for leaf in _leaves(value)):
        raise TypeError(f"{call}: {show(value)} holds text, of whose class NumPy makes numbers; take bytes(value)")
    if kind in "mM" or (kind == "O" and not _is_whole(given)):
        for alike in _by_kind(_leaves(value), call):
            check_fit(alike, own, call)
        return value
    check_fit(given, own, call)
    if own.char in "gG":  # wider than what NumPy makes of integers and floats together
        return value
    return given.astype("g") if kind == "O" and not _is_numpys(own) else given


def converted(given, own):
    """Return what `checked` has returned as an ndarray that can be assigned to elements of the dtype `own`."""
    return given if isinstance(given, np.ndarray) else np.array(given, own)


def exact(value):
    """Return what NumPy makes of a value, or of a sequence; of whole numbers that no integer type holds together, of
    which NumPy would make floats, an ndarray of objects."""
    try:
        given = np.asarray(value)
    except OverflowError:  # of durations that no unit holds together, which NumPy before 2.5 wraps
        given = np.array(value, object)
    if given.dtype.kind in "fcO" and given.size and all(map(is_integer, _leaves(value))):
        return np.array(value, object)
    return given


def common(value, call):
    """Return what NumPy makes of a sequence, of which nothing is lost; see `check_common` for the errors."""
    try:
        given = np.array(value)
    except OverflowError as error:
        raise no_type_error(value, error, call) from error
    check_common(value, given, call)
    return given


def no_type_error(value, error, call):
    """Return the ValueError for what NumPy finds too large, as durations that no unit holds together from 2.5 on."""
    return ValueError(f"{call}: no type holds all of {show(value)} ({error}); convert them to one first")


def check_common(value, given, call):
    """Refuse a sequence of which NumPy's common type, that of the ndarray `given`, has lost something.

    Raises
    ------
    TypeError
        Text, and values that are none.
    OverflowError
        An integer that no float is, among floats.
    ValueError
        Text that ends in NUL, which NumPy cuts; times between two of the common unit's, or beyond its 64 bits.
    """
    kind = given.dtype.kind
    if kind in "SU":
        _check_text(value, call)
    elif kind in "mM":
        leaves = _leaves(value)
        if {getattr(leaf, "dtype", None) for leaf in leaves} != {given.dtype}:
            for alike in _by_kind(leaves, call):
                check_fit(alike, given.dtype, call)
    elif kind in "fc" and (np.abs(given) >= _EXACT).any():
        _check_integers(value, given.dtype, call)


def _check_text(value, call):
    leaves = _leaves(value)
    kinds = set(map(type, leaves))
    if kinds == {str} and "\0" not in "".join(leaves):  # as most are
        return
    if not kinds <= {str, bytes, np.str_, np.bytes_} and not all(map(_is_text, leaves)):
        raise TypeError(f"{call}: {show(value)} holds text and values that are none; convert them first")
    cut = next((leaf for leaf in leaves if isinstance(leaf, (str, bytes)) and leaf[-1:] in ("\0", b"\0")), None)
    if cut is not None:
        raise ValueError(f"{call}: {show(cut)} ends in NUL, which elements of text do not keep; convert it first")


def _check_integers(value, own, call):
    for leaf in _leaves(value):
        whole = np.asarray(leaf)
        if whole.dtype.kind not in "iuO":
            continue
        lost = whole.astype(object) != whole.astype(own).astype(object)  # Python compares them exactly
        if np.any(lost):
            raise OverflowError(
                f"{call}: {whole.ravel()[np.argmax(lost)]} among floats would be rounded; make all of them one kind, as"
                " in [float(value) for value in x]"
            )


def need_a_type(value):
    """Whether values are integers or times of Python's, of which NumPy makes objects unless it is told their type."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):  # no regular sequence
        return False
    known = int, datetime.date, datetime.timedelta
    return given.dtype == object and all(isinstance(leaf, known) for leaf in _leaves(value))


def _check_fields(value, own, call, seen=None):
    """`seen` has the lists that were visited, which may be shared or contain themselves."""
    if isinstance(value, list):
        seen = {} if seen is None else seen
        if id(value) in seen:
            return
        seen[id(value)] = value
        for item in value:
            _check_fields(item, own, call, seen)
    elif getattr(getattr(value, "dtype", None), "names", None):
        check_fit(np.asarray(value), own, call)
    else:  # a tuple has a value for each field, any other value is that of all
        items = value if isinstance(value, tuple) else [value] * len(own.names)
        for item, name in zip(items, own.names, strict=False):
            checked(item, own[name].base, call)


def _leaves(value):
    """The values in a sequence of sequences, or the only one: a sequence without any in it is returned as it is."""
    if not isinstance(value, (list, tuple)):
        return (value,)
    if not any(issubclass(cls, (list, tuple)) for cls in set(map(type, value))):
        return value
    return list(itertools.chain.from_iterable(map(_leaves, value)))


def _is_text(leaf):
    return isinstance(leaf, (str, bytes)) or getattr(getattr(leaf, "dtype", None), "kind", None) in ("S", "U", "T")


def _by_kind(leaves, call):
    """Yield times and durations by their units, and everything else by its type."""
    groups = collections.defaultdict(list)
    for leaf in leaves:
        groups[getattr(leaf, "dtype", type(leaf))].append(leaf)
    for kind, some in groups.items():
        if not isinstance(kind, type):
            yield np.array(some)
        elif issubclass(kind, (datetime.datetime, datetime.timedelta)):
            times = [value for value in some if value == value]  # pandas' NaT is a datetime, too
            if times:
                yield ticks(times, "M8" if issubclass(kind, datetime.datetime) else "m8", call)
        else:
            yield np.array(some, "M8[D]" if issubclass(kind, datetime.date) else None)


def ticks(values, kind, call):
    """Return times ("M8") or durations ("m8") of Python's in microseconds, in nanoseconds if one of pandas' has some.

    Raises
    ------
    OverflowError
        They have more than 64 bits.
    """
    fine = [getattr(value, "nanosecond", getattr(value, "nanoseconds", 0)) for value in values]
    exact = [microseconds(value) for value in values]
    unit = "us"
    if any(fine):
        unit, exact = "ns", [1000 * whole + rest for whole, rest in zip(exact, fine, strict=True)]
    least, most = min(exact), max(exact)
    if least <= -(2**63) or most >= 2**63:  # the smallest is NumPy's NaT
        odd = values[exact.index(most if most >= 2**63 else least)]
        raise OverflowError(f"{call}: {show(odd)} in {unit} has more than 64 bits; accepted: times within 2**63 {unit}")
    return np.array(exact, np.int64).astype(f"{kind}[{unit}]")


def microseconds(value):
    """Return those of a duration, or since 1970 of a point in time, without what pandas has below them."""
    if isinstance(value, datetime.timedelta):
        return (value.days * 86400 + value.seconds) * 1_000_000 + value.microseconds
    seconds = (value.toordinal() - _EPOCH) * 86400 + value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1_000_000 + int(value.microsecond)


# ------------------------------------------------------------------------------------------------------------- ndarrays


def check_fit(given, own, call):
    """Refuse what the values of the ndarray `given` would lose as elements of the dtype `own`; `call` is for messages.

    Raises
    ------
    TypeError
        Values of another kind: floats among integers, text among numbers, objects.
    OverflowError
        Numbers that are too large, and those that the type does not have: an infinity, no number.
    ValueError
        Text that is too long, times between two of the unit's.
    """
    kind = given.dtype
    if kind == own or not given.size:
        return
    if kind.names and own.names and len(kind.names) == len(own.names):
        for name, target in zip(kind.names, own.names, strict=True):
            if kind[name].shape and kind[name].shape != own[target].shape:
                raise TypeError(
                    f"{call}: field {name!r} has elements of shape {kind[name].shape}, and {target!r} of"
                    f" {own[target].shape}; convert it first"
                )
            check_fit(given[name], own[target].base, call)
        return
    if not is_of_kind(given, own):
        raise TypeError(
            f"{call}: {kind!r} among elements of {own!r} would lose what it is, and is no same_kind of it;"
            " convert it first"
        )
    if own.kind in "SU":
        _check_lengths(given, own, call)
    elif own.kind in "mM" and kind.kind == own.kind:
        _check_times(given, own, call)
    else:
        number = out_of_range(given, own)
        if number is not None:
            raise OverflowError(
                f"{call}: {number} is out of the range of elements of {own!r}; convert it first, by"
                " value.astype(dtype) of NumPy's, to have what that makes of it"
            )


def is_of_kind(given, own):
    """Whether the values of the ndarray `given` keep their meaning as elements of the dtype `own`, if it holds them."""
    return keeps_kind(_WHOLE_NUMBERS if _is_whole(given) else given.dtype, own)


def keeps_kind(kind, own):
    """Whether elements of the dtype `kind` keep their meaning as elements of the dtype `own`, if it holds them."""
    if own.kind in "SU":  # NumPy would write numbers as text, and read them out of it
        return kind.kind in "SU"
    if own.kind == "V" and rank(own) is None:
        return kind.kind in "SV" and np.can_cast(kind, own, "safe")
    before, after = rank(kind), rank(own)
    if before is None or after is None:
        counts = before == _INTEGERS and own.kind in "mM"  # of its unit
        return counts or (kind.kind not in "SUO" and np.can_cast(kind, own, "same_kind"))
    return before <= after


@functools.lru_cache(512)
def rank(dtype):
    """Return 0 for booleans, 1 for integers, 2 for real and 3 for complex numbers, else None."""
    if dtype.kind in "mMSUO" or dtype.names:
        return None
    return next((rank for rank, tops in enumerate(_WIDEST) if any(np.can_cast(dtype, top) for top in tops)), None)


def out_of_range(given, own):
    """Return a number of the ndarray `given` that the dtype `own`, of its kind or a wider one, lacks; or None."""
    kind, wide = given.dtype, rank(own)
    if own.kind in "mM":  # integers count its unit, and the least one is NaT
        return _outside(given, 1 - 2**63, 2**63 - 1) if given.size else None
    if not given.size or (_is_numpys(kind) and _is_numpys(own) and np.can_cast(kind, own, "safe")):
        return None
    if wide is None:
        return None
    if not _is_numpys(kind):
        given = given.astype("i1" if rank(kind) == _INTEGERS else "f4")
    if wide <= _INTEGERS:
        limits = _limits(own, "iinfo") if wide else None
        return _outside(given, int(limits.min) if limits else 0, int(limits.max) if limits else 1)
    numbers = _numbers(own)
    for part in _parts(given) if kind.kind == "c" else (given,):
        odd = numbers.odd(part)
        if odd is not None:
            return odd
    return None


def _parts(given):
    """Complex numbers as real ones, at once where they lie in one run."""
    if given.ndim and given.flags.c_contiguous:
        return (given.view(given.real.dtype),)
    return given.real, given.imag


def _is_numpys(dtype):
    """Whether NumPy knows what an element type holds, which for those of ml_dtypes it does not."""
    return dtype.num < FIRST_USER_TYPENUM or dtype.kind == "T"


def _is_whole(given):
    return given.dtype == object and all(
        map(is_integer, given.ravel())
    )  # NumPy iterates flat over 32 dimensions at most


def is_integer(value):
    """Whether a value is an integer or a truth value, of Python's or NumPy's."""
    return isinstance(value, _WHOLE) and not isinstance(value, np.timedelta64)


@functools.lru_cache(512)
def _limits(own, name):
    """What is said of a dtype by ml_dtypes, which knows its own and NumPy's, or where that is not loaded, by NumPy."""
    ml_dtypes = sys.modules.get("ml_dtypes")
    return getattr(np if ml_dtypes is None else ml_dtypes, name)(own)


def _outside(numbers, least, most):
    low, high = numbers.min(), numbers.max()
    return low if low < least else high if high > most else None


@functools.lru_cache(512)
def _numbers(own):
    return _Numbers(own)


class _Numbers:
    """The numbers that a type of real or complex ones holds."""

    def __init__(self, own):
        limits = _limits(own, "finfo")
        half = 1 + np.longdouble(2) ** -(int(limits.nmant) + 2)  # from there on it rounds up
        self.least, self.most = np.longdouble(limits.min) * half, np.longdouble(limits.max) * half
        if limits.min > 0:  # of exponents alone, without a zero and negative numbers
            self.least = np.longdouble(limits.min)
        with np.errstate(all="ignore"):
            self.infinite = bool(np.isinf(np.array([np.inf]).astype(own).astype("c8"))[0])
            self.nan = bool(np.isnan(np.array([np.nan]).astype(own).astype("c8"))[0])

    def odd(self, part):
        """Return a number of an ndarray that is none of them, or None."""
        if part.dtype.kind != "f":
            return _outside(part, self.least, self.most)
        with np.errstate(invalid="ignore"):
            low, high = np.fmin.reduce(part, None), np.fmax.reduce(part, None)
            if self.least <= low and high <= self.most and (self.nan or not np.isnan(part).any()):
                return None
            fits = (part >= self.least) & (part <= self.most)
        if self.nan:
            fits |= np.isnan(part)
        if self.infinite:
            fits |= np.isinf(part)
        return None if fits.all() else part[~fits][0]


def _check_lengths(given, own, call):
    length, most = int(np.strings.str_len(given).max()), np.dtype(own).itemsize // (4 if own.kind == "U" else 1)
    if length > most:
        raise ValueError(f"{call}: text of {length} characters would be cut among elements of {own!r}")


def _check_times(given, own, call):
    try:
        kept = np.array_equal(given.astype(own).astype(given.dtype), given, equal_nan=True)
    except OverflowError:  # of NumPy 2.5; those before it wrap
        kept = False
    if not kept:
        raise ValueError(
            f"{call}: elements of {own!r} have no such time as {given.dtype!r} has here; convert it first, by"
            " value.astype(dtype) of NumPy's, which rounds"
        )
