"""Whether values stay what they are among elements of another type; nothing is rounded away, cut, wrapped or parsed."""

import datetime
import sys

import numpy as np

# What NumPy makes objects of, although its elements can be them.
_TIMES = (("M8", datetime.date), ("m8", datetime.timedelta))

# Booleans, integers, real and complex numbers by the widest types of each: the kinds of ml_dtypes' types do not tell.
_NUMBERS = (("?",), ("i8", "u8"), ("g",), ("G",))
_INTEGERS = 1
_WIDEST = tuple([tuple([np.dtype(name) for name in names]) for names in _NUMBERS])


def values_of(value):
    """Return a value, or a sequence of them, as an ndarray of the type that says what they are."""
    given = np.asarray(value)
    for kind, cls in _TIMES:
        if given.dtype == object and all(isinstance(item, cls) for item in given.flat):
            return given.astype(kind)
    return given


def check_fit(given, own, call):
    """Refuse what the values of the ndarray `given` would lose as elements of the dtype `own`; `call` is for messages.

    Raises
    ------
    TypeError
        Values of another kind: floats among integers, text among numbers, objects.
    OverflowError
        Numbers that are too large.
    ValueError
        Text that is too long, times between two of the unit's.
    """
    kind = given.dtype
    if kind == own or not given.size:
        return
    if kind.names and own.names and len(kind.names) == len(own.names):
        for name, target in zip(kind.names, own.names, strict=True):
            check_fit(given[name], own[target].base, call)
        return
    if not _is_allowed(kind, own):
        raise TypeError(
            f"{call}: {kind!r} among elements of {own!r} would lose what it is, and is no same_kind of it;"
            " convert it first"
        )
    if own.kind in "mM" or not np.can_cast(kind, own, "safe"):  # which says nothing of how far units reach
        _check_values(given, own, call)


def _is_allowed(kind, own):
    if kind.kind in "SU" or own.kind in "SU":  # NumPy would read numbers out of text, and write them as text
        return kind.kind in "SU" and own.kind in "SU"
    before, after = _rank(kind), _rank(own)
    if before is not None and after is not None:
        return before <= after
    return np.can_cast(kind, own, "safe" if own.kind == "V" else "same_kind")


def _rank(dtype):
    return next((rank for rank, tops in enumerate(_WIDEST) if any(np.can_cast(dtype, top) for top in tops)), None)


def _check_values(given, own, call):
    kind = given.dtype.kind
    if own.kind in "SU":
        _check_lengths(given, own, call)
    elif own.kind in "mM" and own.kind == kind:
        _check_times(given, own, call)
    elif own.kind in "mM":  # integers count its unit, and the least one is NaT
        _check_range(given, own, call, 1 - 2**63, 2**63 - 1)
    elif _rank(own) == _INTEGERS:
        _check_range(given, own, call, int(_limits(own, "iinfo").min), int(_limits(own, "iinfo").max))
    elif _rank(own) is not None:
        limits = _limits(own, "finfo")
        most = np.longdouble(limits.max) * (
            1 + np.longdouble(2) ** -(int(limits.nmant) + 2)
        )  # from there on it rounds up
        for part in (given.real, given.imag) if given.dtype.kind == "c" else (given,):
            _check_range(part, own, call, -most, most)


def _limits(own, name):
    """What is said of a dtype by ml_dtypes, which knows its own and NumPy's, or where that is not loaded, by NumPy."""
    ml_dtypes = sys.modules.get("ml_dtypes")
    return getattr(np if ml_dtypes is None else ml_dtypes, name)(own)


def _check_range(given, own, call, least, most):
    values = given if given.dtype.kind in "biu" else given.astype("g")
    finite = np.isfinite(values)
    low = values.min(where=finite, initial=0)
    high = values.max(where=finite, initial=0)
    if low < least or high > most:
        raise OverflowError(
            f"{call}: {low if low < least else high} is out of the range of elements of {own!r}; convert it"
            " first, by value.astype(dtype) of NumPy's, to have what that makes of it"
        )


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
