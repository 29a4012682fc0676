"""The two casts of elements: `cast` casts as NumPy does, and `cast_checked` raises an error for values that do not fit.

Values keep their kind and magnitude, and are not truncated, wrapped or parsed.

NumPy's common type for values of several kinds may already lose information: large integers are rounded to floats,
numbers among text become text, and times overflow in the finest unit. Therefore each kind is checked separately.
"""

import collections
import datetime
import functools
import itertools
import sys

import numpy as np

from arrayhub import transfer
from arrayhub._core.dtypes import FIRST_USER_TYPENUM
from arrayhub._core.errors import RangeRefusal, TypeRefusal, ValueRefusal, show
from arrayhub.libraries.numpy import ndarray

# The widest types of booleans, integers, real and complex numbers. `rank` calls numpy.can_cast with these types,
# because the kind of most types of ml_dtypes is V.
_NUMBERS = (("?",), ("i8", "u8"), ("g",), ("G",))
_INTEGERS = 1
_WIDEST = tuple([tuple([np.dtype(name) for name in names]) for names in _NUMBERS])
_INTEGER_TYPES = (int, np.integer, np.bool_)  # `is_integer` excludes np.timedelta64, a subclass of np.integer
_INT64 = np.dtype(np.int64)  # represents an object array of integers in `is_of_kind`
_EXACT = 2.0**53  # float64 represents all integers up to this magnitude
_EPOCH = datetime.date(1970, 1, 1).toordinal()


# -------------------------------------------------------------------------------------------------------------- arrays


def cast(array, dtype):
    """Return a copy of a USMArray on its device, cast to `dtype` as by ``numpy.ndarray.astype``, for ``dtype=``."""
    return transfer.astype(array, dtype)


def cast_checked(array, dtype, subject):
    """Return a copy of a USMArray like `cast`. Raise the errors of `check_fit` for values that `dtype` does not fit.

    Every cast that the argument ``dtype=`` does not request calls this function. `subject` is the start of messages.
    """
    check_fit(ndarray(transfer.to_host(array)), dtype, subject)
    return cast(array, dtype)


# ------------------------------------------------------------------------------------------------------ Python values


def validate_value(value, own, call):
    """Check that the dtype `own` can represent a number, text, a time, or a sequence of these.

    Return the value itself, or an ndarray that represents it exactly. `as_ndarray` accepts both. Raise the errors of
    `check_fit` for values that the dtype `own` cannot represent.
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
        raise TypeRefusal(call, f"{show(value)} has text of a type that NumPy converts to numbers; use bytes(value)")
    if kind in "mM" or (kind == "O" and not _is_integer(given)):
        for alike in _by_kind(_leaves(value), call):
            check_fit(alike, own, call)
        return value
    check_fit(given, own, call)
    if own.char in "gG":  # wider than NumPy's common type of integers and floats
        return value
    return given.astype("g") if kind == "O" and not _is_numpys(own) else given


def as_ndarray(given, own):
    """Convert a result of `validate_value` to an ndarray that can be assigned to elements of the dtype `own`."""
    return given if isinstance(given, np.ndarray) else np.array(given, own)


def exact(value):
    """Convert a value or sequence to an ndarray without rounding.

    If no integer type can represent all integers, return an ndarray of objects. NumPy would round the integers to
    floats.
    """
    try:
        given = np.asarray(value)
    except OverflowError:  # durations without a common unit; NumPy before 2.5 wraps them
        given = np.array(value, object)
    if given.dtype.kind in "fcO" and given.size and all(map(is_integer, _leaves(value))):
        return np.array(value, object)
    return given


def common(value, call):
    """Convert a sequence to an ndarray of NumPy's common type, and check the values with `check_common`."""
    try:
        given = np.array(value)
    except OverflowError as error:
        raise no_type_error(value, error, call) from error
    check_common(value, given, call)
    return given


def no_type_error(value, error, call):
    """Return the ValueError for values without a common type, such as durations without a common unit (NumPy 2.5)."""
    return ValueRefusal(call, f"no type can represent all of {show(value)} ({error}); convert them to one type first")


def check_common(value, given, call):
    """Raise an error if the dtype of `given`, NumPy's common type, cannot represent a value of the sequence.

    Raises
    ------
    TypeError
        The sequence mixes text with other values.
    OverflowError
        An integer among floats would be rounded, or a time exceeds 64 bits in nanoseconds.
    ValueError
        Text ends in NUL, which NumPy strips, or a time is not a multiple of the common unit or exceeds its range.
    """
    kind = given.dtype.kind
    if kind in "SU":
        _check_text(value, call)
    elif kind in "mM":
        leaves = _leaves(value)
        if {getattr(leaf, "dtype", None) for leaf in leaves} != {given.dtype}:
            for alike in _by_kind(leaves, call):
                check_fit(alike, given.dtype, call)
    elif kind in "fc" and given.dtype != np.float16 and (np.abs(given) >= _EXACT).any():
        _check_integers(value, given.dtype, call)


def are_unsigned(value):
    """Return whether all values of a sequence are integers that uint64 represents."""
    return all(is_integer(leaf) and 0 <= leaf < 2**64 for leaf in _leaves(value))


def _check_text(value, call):
    leaves = _leaves(value)
    kinds = set(map(type, leaves))
    if kinds == {str} and "\0" not in "".join(leaves):  # the usual case
        return
    if not kinds <= {str, bytes, np.str_, np.bytes_} and not all(map(_is_text, leaves)):
        reason = f"{show(value)} mixes text with other values; convert them first, as in numpy.asarray(x, str)"
        raise TypeRefusal(call, reason)
    cut = next((leaf for leaf in leaves if isinstance(leaf, (str, bytes)) and leaf[-1:] in ("\0", b"\0")), None)
    if cut is not None:
        raise ValueRefusal(call, f"{show(cut)} ends in NUL, which text elements cannot store; convert it first")


def _check_integers(value, own, call):
    for leaf in _leaves(value):
        whole = np.asarray(leaf)
        if whole.dtype.kind not in "iuO":
            continue
        lost = find_rounded(whole, own)
        if lost is not None:
            raise RangeRefusal(
                call,
                f"{lost} among floats would be rounded; convert all values to one kind, for example with"
                " [float(value) for value in x]",
            )


def find_rounded(given, own):
    """Return an integer of an ndarray that the real or complex dtype `own` cannot represent exactly, or None."""
    if given.dtype.kind != "O":
        given = given[(given > int(_EXACT)) | (given < -int(_EXACT))]
    lost = given.astype(object) != given.astype(own).astype(object)  # Python compares integers and floats exactly
    return given[lost].ravel()[0] if np.any(lost) else None


def need_a_type(value):
    """Return whether all values are Python integers, dates or timedeltas that NumPy stores as objects by default."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):  # not a regular sequence
        return False
    if given.dtype != object:
        return False
    return all(isinstance(leaf, (int, datetime.date, datetime.timedelta)) for leaf in _leaves(value))


def _check_fields(value, own, call, seen=None):
    """Check the fields of records. `seen` contains the visited lists, which may be shared or contain themselves."""
    if isinstance(value, list):
        seen = {} if seen is None else seen
        if id(value) in seen:
            return
        seen[id(value)] = value
        for item in value:
            _check_fields(item, own, call, seen)
    elif getattr(getattr(value, "dtype", None), "names", None):
        check_fit(np.asarray(value), own, call)
    else:  # a tuple has one value per field; any other value is assigned to all fields
        items = value if isinstance(value, tuple) else [value] * len(own.names)
        for item, name in zip(items, own.names, strict=False):
            validate_value(item, own[name].base, call)


def _leaves(value):
    """Return the items of nested sequences as a flat sequence, or a single value as a tuple."""
    if not isinstance(value, (list, tuple)):
        return (value,)
    if not any(issubclass(cls, (list, tuple)) for cls in set(map(type, value))):
        return value
    return list(itertools.chain.from_iterable(map(_leaves, value)))


def _is_text(leaf):
    return isinstance(leaf, (str, bytes)) or getattr(getattr(leaf, "dtype", None), "kind", None) in ("S", "U", "T")


def _by_kind(leaves, call):
    """Yield an ndarray for each type of the leaves, or for each dtype of NumPy scalars. Omit pandas.NaT."""
    groups = collections.defaultdict(list)
    for leaf in leaves:
        groups[getattr(leaf, "dtype", type(leaf))].append(leaf)
    for kind, some in groups.items():
        if not isinstance(kind, type):
            yield np.array(some)
        elif issubclass(kind, (datetime.datetime, datetime.timedelta)):
            times = [value for value in some if value == value]  # excludes pandas.NaT, an instance of datetime
            if times:
                yield ticks(times, "M8" if issubclass(kind, datetime.datetime) else "m8", call)
        else:
            yield np.array(some, "M8[D]" if issubclass(kind, datetime.date) else None)


def ticks(values, kind, call):
    """Convert datetimes (`kind` "M8") or timedeltas ("m8") to an ndarray.

    The unit is microseconds, or nanoseconds if a pandas value is not a multiple of a microsecond. Raise OverflowError
    for a value that exceeds 64 bits.
    """
    fine = [getattr(value, "nanosecond", getattr(value, "nanoseconds", 0)) for value in values]
    exact = [microseconds(value) for value in values]
    unit = "us"
    if any(fine):
        unit, exact = "ns", [1000 * whole + rest for whole, rest in zip(exact, fine, strict=True)]
    least, most = min(exact), max(exact)
    if least <= -(2**63) or most >= 2**63:  # -(2**63) is NumPy's NaT
        odd = values[exact.index(most if most >= 2**63 else least)]
        raise RangeRefusal(call, f"{show(odd)} in {unit} exceeds 64 bits", f"times within 2**63 {unit}")
    return np.array(exact, np.int64).astype(f"{kind}[{unit}]")


def microseconds(value):
    """Return a timedelta, or the time from 1970 to a datetime, in microseconds. Drop nanoseconds of pandas values."""
    if isinstance(value, datetime.timedelta):
        return (value.days * 86400 + value.seconds) * 1_000_000 + value.microseconds
    seconds = (value.toordinal() - _EPOCH) * 86400 + value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1_000_000 + int(value.microsecond)


# ------------------------------------------------------------------------------------------------------------- ndarrays


def check_fit(given, own, call):
    """Raise an error if the dtype `own` cannot represent a value of the ndarray `given`. Messages start with `call`.

    Raises
    ------
    TypeError
        The values are of a different kind, such as floats for integers or text for numbers.
    OverflowError
        A number is out of range, or is an infinity or NaN that `own` cannot represent.
    ValueError
        Text is too long, or a time is not a multiple of the unit or exceeds its range.
    """
    kind = given.dtype
    if kind == own or not given.size:
        return
    if kind.names and own.names and len(kind.names) == len(own.names):
        for name, target in zip(kind.names, own.names, strict=True):
            if kind[name].shape and kind[name].shape != own[target].shape:
                raise TypeRefusal(
                    call,
                    f"field {name!r} of the values has shape {kind[name].shape}, but field {target!r} of the array has"
                    f" shape {own[target].shape}; convert it first",
                )
            check_fit(given[name], own[target].base, call)
        return
    if not is_of_kind(given, own):
        reason = f"values of {kind!r} cannot be cast to {own!r} according to the rule same_kind; convert them first"
        raise TypeRefusal(call, reason)
    if own.kind in "SU":
        length, most = int(np.strings.str_len(given).max()), own.itemsize // (4 if own.kind == "U" else 1)
        if length > most:
            raise ValueRefusal(call, f"text of {length} characters would be truncated to {own!r}", f"at most {most}")
    elif own.kind in "mM" and kind.kind == own.kind:
        if not keeps_times(given, own):
            raise ValueRefusal(
                call,
                f"a time of {kind!r} is not a multiple of the unit of {own!r} or exceeds its range; convert it first,"
                " for example with NumPy's value.astype(dtype), which rounds",
            )
    else:
        number = out_of_range(given, own)
        if number is not None:
            raise RangeRefusal(
                call,
                f"{number!s} is out of the range of {own.name}; use a larger dtype, or call"
                f" numpy.asarray(value).astype({own.name!r}) first, which does not check the range",
            )


def is_of_kind(given, own):
    """Return whether `keeps_kind` holds for the values of an ndarray. Object arrays of integers count as int64."""
    return keeps_kind(_INT64 if _is_integer(given) else given.dtype, own)


def keeps_kind(kind, own):
    """Return whether values of the dtype `kind` can become `own` without changing their kind, regardless of range."""
    if own.kind in "SU":  # NumPy would format numbers as text and parse text as numbers
        return kind.kind in "SU"
    if own.kind == "V" and rank(own) is None:
        return kind.kind in "SV" and rank(kind) is None and np.can_cast(kind, own, "safe")
    before, after = rank(kind), rank(own)
    if before is None or after is None:
        counts = before == _INTEGERS and own.kind in "mM"  # integers count time units
        return counts or (kind.kind not in "SUO" and np.can_cast(kind, own, "same_kind"))
    return before <= max(after, _INTEGERS)  # booleans hold the integers 0 and 1


@functools.lru_cache(512)
def rank(dtype):
    """Return 0 for booleans, 1 for integers, 2 for real numbers, 3 for complex numbers, else None."""
    if dtype.kind in "mMSUO" or dtype.names:
        return None
    return next((rank for rank, tops in enumerate(_WIDEST) if any(np.can_cast(dtype, top) for top in tops)), None)


def out_of_range(given, own):
    """Return a number of the ndarray `given` that is outside the range of `own`, or None.

    `keeps_kind` must be true for the dtypes.
    """
    kind, wide = given.dtype, rank(own)
    if own.kind in "mM":  # integers count time units, and the smallest int64 is NaT
        return _outside(given, 1 - 2**63, 2**63 - 1) if given.size else None
    if not given.size or (_is_numpys(kind) and _is_numpys(own) and np.can_cast(kind, own, "safe")):
        return None
    if not _is_numpys(kind):
        given = given.astype("i1" if rank(kind) == _INTEGERS else "f4")
    if wide <= _INTEGERS:
        limits = _limits(own, "iinfo") if wide else None
        return _outside(given, int(limits.min) if limits else 0, int(limits.max) if limits else 1)
    for part in (given.real, given.imag) if kind.kind == "c" else (given,):
        odd = _not_representable(part, own)
        if odd is not None:
            return odd
    return None


def _is_numpys(dtype):
    """Return whether a dtype is NumPy's own. NumPy's functions do not support all dtypes of ml_dtypes."""
    return dtype.num < FIRST_USER_TYPENUM or dtype.kind == "T"


def _is_integer(given):
    return given.dtype == object and all(
        map(is_integer, given.ravel())
    )  # ravel, because NumPy's flat iterator supports at most 32 dimensions


def is_integer(value):
    """Return whether a value is an integer or boolean of Python or NumPy."""
    return isinstance(value, _INTEGER_TYPES) and not isinstance(value, np.timedelta64)


@functools.lru_cache(512)
def _limits(own, name):
    """Return iinfo or finfo of a dtype. The functions of ml_dtypes support NumPy's dtypes, too."""
    ml_dtypes = sys.modules.get("ml_dtypes")
    return getattr(ml_dtypes, name, getattr(np, name))(own)  # another thread may still be importing ml_dtypes


def _outside(numbers, least, most):
    low, high = numbers.min(), numbers.max()
    return low if low < least else high if high > most else None


@functools.lru_cache(512)
def _range_of(own):
    """Return the least and the largest number that a real or complex dtype does not round to infinity.

    Return also whether the dtype has infinities, and whether it has NaN.
    """
    limits = _limits(own, "finfo")
    # Numbers of at least limits.max * half are rounded to infinity.
    half = 1 + np.longdouble(2) ** -(int(limits.nmant) + 2)
    least, most = np.longdouble(limits.min) * half, np.longdouble(limits.max) * half
    if limits.min > 0:  # types with only exponent bits, which cannot represent zero and negative numbers
        least = np.longdouble(limits.min)
    with np.errstate(all="ignore"):
        infinity, nan = np.array([np.inf, np.nan]).astype(own).astype("c8")
    return least, most, bool(np.isinf(infinity)), bool(np.isnan(nan))


def _not_representable(part, own):
    """Return a number of an ndarray of real numbers that a real or complex dtype cannot represent, or None."""
    least, most, has_infinity, has_nan = _range_of(own)
    if part.dtype.kind != "f":
        return _outside(part, least, most)
    if least <= part.min() and part.max() <= most:  # false if `part` contains NaN
        return None
    with np.errstate(invalid="ignore"):  # a signaling NaN raises a warning
        if has_nan and least <= np.fmin.reduce(part, None) and np.fmax.reduce(part, None) <= most:
            return None
        fits = (part >= least) & (part <= most)
    if has_nan:
        fits |= np.isnan(part)
    if has_infinity:
        fits |= np.isinf(part)
    return None if fits.all() else part[~fits][0]


def keeps_times(given, own):
    """Return whether the dtype `own` represents all times of an ndarray exactly."""
    try:
        return np.array_equal(given.astype(own).astype(given.dtype), given, equal_nan=True)
    except OverflowError:  # NumPy 2.5; earlier versions wrap
        return False
