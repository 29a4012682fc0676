"""Test that ``x[...] = value``, `full` and `asarray` convert values without loss or raise an error."""

import datetime
import decimal
import fractions
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import arrayhub as ah

D, T = np.datetime64, np.timedelta64
RECORD = np.dtype([("a", "i4"), ("s", "U3")])
NESTED = np.dtype([("r", RECORD), ("x", "i8", 2)])
NOON = np.array(["2024-01-01T12"], "M8[ns]")
REFUSED, WORDS = (TypeError, ValueError, OverflowError), "value|asarray|encode"


def put(own, value, shape):
    x = np.zeros(shape, own)
    ah.asarray(x)[...] = value
    return x


KEPT = {  # values that NumPy's assignment converts without loss
    "a duration and an integer": ("m8[s]", [T(1, "D"), 5]),
    "a date and a time": ("M8[s]", [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3)]),
    "a date alone": ("M8[D]", datetime.date(2020, 1, 2)),
    "a duration alone": ("m8[ms]", datetime.timedelta(milliseconds=7)),
    "the largest uint64 and a small integer": ("g", [2**64 - 1, 1]),
    "2**63 and a small integer": ("u8", [2**63, 1]),
    "an integer past 64 bits": ("f8", 2**70),
    "integers past 64 bits": ("f4", [2**70, -(2**70)]),
    "an integer past 64 bits, complex": ("c16", [2**65]),
    "bytes": ("V3", b"abc"),
    "bytes in a list": ("V3", [b"abc", b"a"]),
    "shorter bytes": ("V4", b"abc"),
    "a tuple for a record": (RECORD, (7, "abc")),
    "tuples for records": (RECORD, [(7, "abc"), (-1, "")]),
    "a tuple for a record of records": (NESTED, ((7, "abc"), [1, 2])),
    "a number for all fields": (np.dtype([("a", "i4"), ("b", "f8")]), 3),
    "a record": (RECORD, np.array((5, "ab"), [("a", "i8"), ("s", "U9")])[()]),
    "one number for an array in a field": ([("x", "i8", 2)], np.array((3,), [("x", "i4")])),
    "infinities": ("f4", [np.inf, -np.inf, np.nan, 1.5]),
    "an infinite part": ("c8", [complex(np.inf, 1.0), complex(1.0, np.nan)]),
    "narrower, values in range": ("i1", np.array([-128, 127])),
    "integers for uint8": ("u1", np.array([0, 255])),
    "the largest floats": ("f4", np.array([3.4028235e38, -3.4028235e38])),
    "infinite": ("f4", np.array([np.inf, np.nan])),
    "dates for seconds": ("M8[s]", np.array(["2024-01-01", "NaT"], "M8[D]")),
    "midnight for days": ("M8[D]", NOON - np.timedelta64(12, "h")),
    "dates": ("M8[D]", [datetime.date(2024, 1, 1)]),
    "timedeltas": ("m8[s]", [datetime.timedelta(1)]),
    "text": ("U5", np.array(["abc", ""])),
    "bytes for text": ("S3", b"ab"),
    "ASCII text for bytes": ("S3", "ab"),
    "the range of int4": (ml_dtypes.int4, np.array([-8, 7])),
    "int4 for int32": ("i4", np.array([3], ml_dtypes.int4)),
    "fields": ("i1,f4", np.array([(30, 1.5)], "i4,f8")),
    "none": ("i4", []),
    "0 and 1 for booleans": ("?", np.array([1, 0])),
    "1 for a boolean": ("?", 1),
    "bfloat16": (ml_dtypes.bfloat16, np.array([1e38])),
    "a datetime64": ("M8[D]", D("2024-01-01")),
    "a tuple of numbers": ("i4,f8", (1, 2.5)),
    "a number for bfloat16": (ml_dtypes.bfloat16, 1.5),
    "numbers for bfloat16": (ml_dtypes.bfloat16, np.array([1.5, 2.5])),
    "non-native byte order": (">f4", 1.5),
}


@pytest.mark.parametrize("case", KEPT)
def test_lossless_values_are_stored_as_in_numpy(case):
    own, value = KEPT[case]
    expected = np.zeros(np.shape(np.array(value, own)), own)
    expected[...] = value
    made = put(own, value, expected.shape)
    if own == "g":  # six of its sixteen bytes are undefined
        assert (made == expected).all()
        return
    assert made.tobytes() == expected.tobytes()
    if expected.shape == ():
        assert ah.as_numpy(ah.full(2, value, own)).tobytes() == expected.tobytes() * 2


LOST = {
    "a duration past 64 bits": ("m8[us]", [datetime.timedelta.max], OverflowError, "exceeds 64 bits"),
    "a date out of the range of the unit": (
        "M8[ns]", [D("2000-01-01T00:00:00.000000001"), D("9999-01-01")], ValueError, "not a multiple of the unit",
    ),
    "hours for a unit of days": ("M8[D]", [datetime.datetime(2020, 1, 2, 3)], ValueError, "not a multiple of the unit"),
    "numbers among text": ("U8", ["a", 1.25, True], TypeError, "mixes text with other values"),
    "a date for a float": ("f8", [D("2000-01-01")], TypeError, "same_kind"),
    "an integer past 64 bits": ("u8", 2**64, OverflowError, "18446744073709551616 is out of the range"),
    "a negative integer past 64 bits": ("i8", -(2**63) - 1, OverflowError, "-9223372036854775809 is out of the range"),
    "an integer past the range of float16": ("f2", [2**70], OverflowError, "out of the range"),
    "a float for an integer's field": (RECORD, (1.5, "abc"), TypeError, "same_kind"),
    "long text for a field": (RECORD, (1, "abcdef"), ValueError, "truncated"),
    "text for a number's field": (RECORD, ("7", "ab"), TypeError, "same_kind"),
    "a large number for a field": (RECORD, [(2**40, "ab")], OverflowError, "out of the range"),
    "a float in a nested record": (NESTED, ((1.5, "abc"), [1, 2]), TypeError, "same_kind"),
    "a large number in a record": (
        RECORD, np.array((2**40, "ab"), [("a", "i8"), ("s", "U9")]), OverflowError, "out of the range",
    ),
    "more elements than a field": ([("x", "i8", 2)], np.array(([1, 2, 3],), [("x", "i8", 3)]), TypeError, "has shape"),
    "fewer elements than a field": ([("x", "i8", 3)], np.array(([1, 2],), [("x", "i8", 2)]), TypeError, "has shape"),
    "an instance of a bytes subclass": ("M8[s]", [type("Own", (bytes,), {})(b"3")], TypeError, "converts to numbers"),
    "long bytes": ("V2", b"abc", TypeError, "same_kind"),
    "numbers as bytes": ("V3", np.array([1, 2], "u1"), TypeError, "same_kind"),
    "a large integer for float4": (ml_dtypes.float4_e2m1fn, np.array([15, -6], "i1"), OverflowError, "15 is out"),
    "a large integer for float8": (ml_dtypes.float8_e4m3fnuz, np.array([255], "u1"), OverflowError, "255 is out"),
    "zero for float8_e8m0fnu": (ml_dtypes.float8_e8m0fnu, [0.0, 1.0], OverflowError, "out of the range"),
    "a negative number for float8_e8m0fnu": (ml_dtypes.float8_e8m0fnu, np.array([-1]), OverflowError, "-1 is out"),
    "infinity for a type without infinity": (ml_dtypes.float8_e4m3fn, float("inf"), OverflowError, "inf is out"),
    "NaN for a type without NaN": (ml_dtypes.float4_e2m1fn, [1.0, float("nan")], OverflowError, "nan is out"),
    "the integer that represents NaT": ("m8[s]", [5, -(2**63)], OverflowError, "-9223372036854775808 is out"),
    "text that ends in NUL": ("S3", b"a\0", ValueError, "ends in NUL"),
    "a large int4": (ml_dtypes.int2, np.array([7], ml_dtypes.int4), OverflowError, "7 is out"),
    "an infinite part and a part out of range": ("c8", [complex(1e300, np.inf)], OverflowError, "out of the range"),
    "an integer that wraps": ("i1", np.int64(300), REFUSED, WORDS),
    "an array of integers that wrap": ("i2", np.array([1, 70000]), REFUSED, WORDS),
    "unsigned integers": ("u1", np.array([256], "u8"), REFUSED, WORDS),
    "negative integers": ("u1", np.array([-1]), REFUSED, WORDS),
    "one negative integer": ("u8", np.array([-1, 1], "i1"), REFUSED, WORDS),
    "fractions of bfloat16": ("i4", np.array([1.5], ml_dtypes.bfloat16), REFUSED, WORDS),
    "fraction of a bfloat16 scalar": ("i4", ml_dtypes.bfloat16(1.5), REFUSED, WORDS),
    "complex": (ml_dtypes.bfloat16, np.array([1j]), REFUSED, WORDS),
    "complex scalar": (ml_dtypes.bfloat16, 1j, REFUSED, WORDS),
    "300 for int4": (ml_dtypes.int4, 300, REFUSED, WORDS),
    "a fraction for int4": (ml_dtypes.int4, 1.5, REFUSED, WORDS),
    "8 for int4": (ml_dtypes.int4, 8, REFUSED, WORDS),
    "decimals": ("f8", [decimal.Decimal("1.1")], REFUSED, WORDS),
    "fractions": ("i4", [fractions.Fraction(1, 3)], REFUSED, WORDS),
    "None": ("f8", [None, 1], REFUSED, WORDS),
    "hours for days": ("M8[D]", NOON, REFUSED, WORDS),
    "hours for days, scalar": ("M8[D]", NOON[0], REFUSED, WORDS),
    "a date out of range": ("M8[ns]", np.array(["9999-01-01"], "M8[s]"), REFUSED, WORDS),
    "not ASCII": ("S3", "é", REFUSED, WORDS),
    "minutes for hours": ("m8[h]", np.array([90], "m8[m]"), REFUSED, WORDS),
    "times for integers": ("i8", NOON, REFUSED, WORDS),
    "text for a date": ("M8[D]", "2024-01-01", REFUSED, WORDS),
    "cut text": ("S2", "abcdef", REFUSED, WORDS),
    "cut text in arrays": ("U2", np.array(["ab", "abc"]), REFUSED, WORDS),
    "cut bytes": ("S2", b"abc", REFUSED, WORDS),
    "text for a float": ("f8", "5", REFUSED, WORDS),
    "an array of text for integers": ("i4", np.array(["5"]), REFUSED, WORDS),
    "a list of text for integers": ("i4", ["5"], REFUSED, WORDS),
    "bytes for integers": ("i4", [b"51"], REFUSED, WORDS),
    "a number for text": ("U3", 5, REFUSED, WORDS),
    "large floats": ("f4", 1e300, REFUSED, WORDS),
    "an array of large floats": ("f2", np.array([1.0, -70000.0], "f4"), REFUSED, WORDS),
    "large integers": ("f2", 100_000, REFUSED, WORDS),
    "a large imaginary part": ("c8", np.array([1e300j]), REFUSED, WORDS),
    "a type without infinity": (ml_dtypes.float4_e2m1fn, 100.0, REFUSED, WORDS),
    "raw bytes that are too long": ("V2", np.array([b"abc"], "V3"), REFUSED, WORDS),
    "fields": ("i1,f4", np.array([(300, 1.5)], "i4,f4"), REFUSED, WORDS),
    "a bool that is 2": ("?", 2, REFUSED, WORDS),
    "a letter for integers": ("i4", "a", REFUSED, WORDS),
    "complex for float": ("f4", 1j, REFUSED, WORDS),
    "fractions in a list": ("i4", [1.5], REFUSED, WORDS),
    "a negative number": ("u1", -1, REFUSED, WORDS),
}  # fmt: skip


@pytest.mark.parametrize("case", LOST)
def test_lossy_values_raise(case):
    own, value, error, words = LOST[case]
    x = np.zeros(np.shape(value) if own is not RECORD and own is not NESTED else (), own)
    before = x.tobytes()
    with pytest.raises(error, match=words):
        ah.asarray(x)[...] = value
    assert x.tobytes() == before
    if np.shape(value) == () and own is not RECORD and error is not REFUSED:
        with pytest.raises(ValueError, match="fill_value"):
            ah.full(1, value, own)


def test_pandas_times_are_not_truncated_to_microseconds():
    """Times of pandas raise, because NumPy would convert them like those of datetime, without nanoseconds."""
    pandas = pytest.importorskip("pandas")
    when = pandas.Timestamp("2020-01-02T03:04:05.000000007")
    for value in (when, [when], [pandas.NaT], [datetime.datetime(2020, 1, 2), when]):
        with pytest.raises(TypeError, match="Timestamp|NaT"):
            put("M8[ns]", value, np.shape(value))
    for value in (pandas.Timedelta(7), [pandas.Timedelta(7)]):
        with pytest.raises(TypeError, match="Timedelta"):
            put("m8[ns]", value, np.shape(value))
    assert put("M8[ns]", [when.to_datetime64()], 1)[0] == when.to_datetime64()


@pytest.mark.parametrize("dtype", ["M8[D]", ml_dtypes.bfloat16, "S2", [("a", "i4"), ("b", "f8")]])
def test_lists_may_contain_elements_of_usm_arrays(dtype):
    source = np.ones(2, "i4").astype(dtype)
    x = ah.asarray(source)
    assert put(dtype, [x[0], x[1]], 2).tobytes() == source.tobytes()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([20, -9], ml_dtypes.int4), ([3, -3], ml_dtypes.int2), (-1, ml_dtypes.uint4), ([300], "u1"),
        ([True], ml_dtypes.int1), ([np.int64(-1)], "u4"), ([np.int8(-1), 5], "u2"), (np.int64(300), "i1"),
        ([np.array([300])], "i1"), ([70000], "f2"), ([70000], ml_dtypes.float8_e4m3fn), ([-(2**63)], "m8[s]"),
        ([np.int8(0)], ml_dtypes.float8_e8m0fnu), (300, "i1"), ((1, 300), "i1"), (range(301), "i1"), ([[-129]], "i1"),
    ],
    ids=repr,
)  # fmt: skip
def test_integers_out_of_the_range_of_dtype_raise(value, dtype):
    for call in (ah.asarray, ah.from_array):
        with pytest.raises(OverflowError, match="dtype is") as caught:
            call(value, dtype=dtype)
        assert isinstance(caught.value, ah.Refusal) and caught.value.subject


MIXED = {  # sequences of several types, whose values would change if converted to NumPy's common type
    "text and numbers": ([(1, "a"), (2.5, "b")], TypeError, "mixes text with other values"),
    "an integer between floats": ([2**60 + 1, 0.5], OverflowError, "1152921504606846977 among floats"),
    "an integer in an array": ([np.array([2**60 + 1]), [0.5]], OverflowError, "1152921504606846977 among floats"),
    "an integer and a complex": ([2**60 + 1, 1j], OverflowError, "1152921504606846977 among floats"),
    "no common integer type": ([np.uint64(2**53 + 1), np.int64(-1)], OverflowError, "9007199254740993 among floats"),
    "dates without a common unit": ([D("1500-01-01"), D(1, "ns")], ValueError, "not a multiple of the unit"),
    "durations without a common unit": (
        [T(400000, "D"), T(1, "ns")],
        ValueError,
        "not a multiple of the unit|no type can represent",
    ),
    "text that ends in NUL": ([b"a\0", b"b"], ValueError, "ends in NUL"),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed_list_is_rejected_if_its_common_type_is_lossy(case):
    values, error, words = MIXED[case]
    for call in (ah.asarray, ah.as_numpy):
        with pytest.raises(error, match=words) as caught:
            call(values)
        assert isinstance(caught.value, ah.Refusal) and caught.value.subject == "asarray"
    if "text" not in case and "array" not in case and case != "no common integer type":
        for nested in (values, [{"t": value} for value in values], [values, [*values, values[0]]]):
            with pytest.raises(error, match=words):
                ah.asnested(nested)


@pytest.mark.parametrize(
    "values", [[1.0, np.inf, np.nan, 3], [1e300, 5], [2**53, 0.5], [D("2020-01-01"), D(1, "ns")], [True, 2, 0.5]]
)
def test_mixed_list_is_accepted_if_lossless(values):
    assert ah.as_numpy(values).tobytes() == np.array(values).tobytes()


def test_dtype_allows_lists_without_a_lossless_common_type():
    record = [("a", "i4"), ("b", "U1")]
    assert ah.asarray([(1, "a")], dtype=record).tolist() == [(1, "a")]
    assert ah.asarray([2**60 + 1, 0.5], dtype="f8").tolist() == [float(2**60), 0.5]
    assert ah.from_array([2**70], dtype="f8").tolist() == [float(2**70)]


@pytest.mark.parametrize(
    "values", [[D("1500-01-01"), D("2000-01-01", "ns")], [T(400000, "D"), T(10**9, "ns")]], ids=repr
)
def test_mixed_time_units_are_cast_to_the_dtype(values):
    """Cast each value directly to `dtype`. The range of the finest unit does not include all values."""
    wanted = [int(value.astype("M8[s]" if value.dtype.kind == "M" else "m8[s]").view("i8")) for value in values]
    dtype = values[0].dtype.kind + "8[s]"
    assert ah.as_numpy(ah.asarray(values, dtype=dtype)).view("i8").tolist() == wanted
    assert put(dtype, values, 2).view("i8").tolist() == wanted


def test_durations_are_not_cast_to_numbers():
    """Durations raise, although NumPy's timedelta64 is a subclass of signedinteger."""
    with pytest.raises(ValueError, match="fill_value"):
        ah.full(1, T(14, "s"), dtype="?")
    values = np.empty(2, object)
    values[:] = [T(5, "s"), 1]
    for own in ("f8", "i8"):
        with pytest.raises(TypeError, match=r"x\[\.\.\.\] = value"):
            put(own, [values], (1, 2))


def test_ones_rejects_a_type_that_cannot_represent_one():
    with pytest.raises(ValueError, match="int1"):
        ah.ones(1, dtype=ml_dtypes.int1)
    assert ah.ones(2, dtype=ml_dtypes.int4).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("own", "value"), [("f8", []), ([("a", "i4"), ("b", "i4")], [(1,)] * 2), ("S2", ["\xe9", "b"])], ids=repr
)
def test_errors_raised_by_numpy_name_the_call(own, value):
    with pytest.raises(ValueError, match=r"^x\[\.\.\.\] = value: "):
        put(own, value, 2)


def test_record_scalar_is_copied():
    """`numpy.asarray` would return a view of the record."""
    records = np.zeros(2, RECORD)
    for copy in (False, True):
        taken = ah.asarray(records[0], copy=copy)
        assert taken.is_copy
        ah.as_numpy(taken)["a"] = 7
    assert (records["a"] == 0).all()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([2**70, 1], "f8"), (-(2**70), "f4"), ([datetime.date(2020, 1, 2)] * 2, "M8[D]"),
        ([[datetime.datetime(2020, 1, 2, 3)]], "M8[s]"), ((datetime.timedelta(1),), "m8[h]"),
    ],
    ids=["integers", "an integer", "dates", "times", "durations"],
)  # fmt: skip
def test_dtype_converts_python_objects(value, dtype):
    """Without `dtype`, NumPy would convert these values to an array of Python objects, and asarray raises."""
    with pytest.raises(TypeError, match="asarray"):
        ah.asarray(value)
    made, expected = ah.asarray(value, dtype=dtype), np.array(value, dtype)
    assert (made.dtype, made.shape, made.is_copy) == (expected.dtype, expected.shape, True)
    assert ah.as_numpy(made).tobytes() == expected.tobytes()
    with pytest.raises(TypeError, match="stream"):
        ah.asarray(value, dtype=dtype, stream="nonsense")


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        ([2**64], "u8", OverflowError), ([None, 1], "f8", TypeError), ([datetime.date(2020, 1, 2)], "i8", TypeError),
        ([datetime.datetime(2020, 1, 2, 3)], "M8[D]", ValueError), ([2**64, "a"], "U30", TypeError),
        ([datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)], "M8[s]", TypeError), ([2**64], object, TypeError),
        ([[1], [2, 3]], "f8", TypeError), (["a", "b"], "f8", ValueError),
    ],
)  # fmt: skip
def test_values_that_dtype_cannot_represent_raise(value, dtype, error):
    with pytest.raises(error):
        ah.asarray(value, dtype=dtype)


@pytest.mark.parametrize(("dtype", "source"), [("f4", "f8"), ("F", "D"), ("f2", "f4"), ("i4", "i8")])
def test_range_check_of_an_assignment_uses_little_memory(dtype, source):
    x, value = ah.asarray(np.zeros(1 << 20, dtype)), np.ones(1 << 20, source)
    x[...] = value
    tracemalloc.start()
    try:
        x[...] = value
        assert tracemalloc.get_traced_memory()[1] < 1 << 17
    finally:
        tracemalloc.stop()


# ----------------------------------------------------------------------------------------------- the two rules of casts


OUT_OF_RANGE = [("i8", 2**32 + 5, "i4"), ("i8", 300, "i1"), ("i8", -1, "u8"), ("f8", 1e300, "f4"), ("c16", 1e300, "c8")]


def request(x, dtype):
    return ah.Request(np.dtype(dtype).name, may="cast").asarray(x)


def assign(x, dtype):
    y = ah.zeros(x.shape, dtype)
    y[...] = x
    return y


CHECKED = {  # casts that the argument dtype= does not request
    "assignment": assign,
    "assignment of a list": lambda x, dtype: (
        assign(x, dtype) if x.ndim == 0 else ah.zeros(1, dtype).__setitem__(0, x[0])
    ),
    "out": lambda x, dtype: ah.to_device(x, "cpu", out=ah.zeros(x.shape, dtype)),
    "request": request,
    "built by a request": lambda x, dtype: ah.Request(np.dtype(dtype).name, may="build", name="x").asarray(x.tolist()),
    "full": lambda x, dtype: ah.full(1, x[0], dtype),
    "fill_null": lambda x, dtype: ah.asnested(np.ma.MaskedArray(np.zeros(1, dtype), [True])).fill_null(x[0].item()),
    "missing": lambda x, dtype: ah.as_numpy(np.ma.MaskedArray(np.zeros(1, dtype), [True]), missing=x[0].item()),
    "a list with a dtype": lambda x, dtype: (
        ah.asarray(x.tolist(), dtype=dtype) if x.dtype != "f8" else assign(x, dtype)
    ),
}


@pytest.mark.parametrize("case", OUT_OF_RANGE, ids=str)
@pytest.mark.parametrize("spelling", CHECKED)
def test_casts_that_nobody_requested_by_dtype_check_the_values(spelling, case):
    given, value, dtype = case
    if given == "c16" and spelling == "a list with a dtype":
        pytest.skip("NumPy builds complex lists, and warns of infinite parts")
    with pytest.raises((OverflowError, ValueError), match="range") as caught:
        CHECKED[spelling](np.array([value], given), dtype)
    assert isinstance(caught.value, ah.Refusal) and caught.value.subject and caught.value.reason


@pytest.mark.parametrize("case", OUT_OF_RANGE, ids=str)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_dtype_casts_as_numpy_does(case):
    given, value, dtype = case
    x = np.array([value, 1], given)
    for cast in (lambda: ah.asarray(x, dtype=dtype), lambda: ah.asarray(x).astype(dtype)):
        assert ah.as_numpy(cast()).tobytes() == x.astype(dtype).tobytes()


def test_error_of_a_checked_cast_names_the_argument_and_the_value():
    with pytest.raises(OverflowError, match="^f: x: this numpy.ndarray: 4294967301 is out of the range of int32"):
        ah.Request("n * int32", may="cast", name="f: x").asarray(np.array([2**32 + 5]))


ZONED = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
MISFITS = {  # casts that check the values, each with a value that does not fit
    "asarray of complex numbers": (TypeError, lambda: ah.asarray([1j], dtype="f4")),
    "asarray of text": (ValueError, lambda: ah.asarray(["x"], dtype="i4")),
    "assignment of another shape": (ValueError, lambda: ah.zeros(2, dtype="i1").__setitem__(..., [1, 2, 3])),
    "assignment to read-only memory": (ValueError, lambda: ah.asarray(b"ab").__setitem__(..., 1)),
    "like": (OverflowError, lambda: ah.like(np.array([300]), np.zeros(1, "i1"), dtype="model")),
    "assignment of another rank": (TypeError, lambda: ah.zeros(1, "V2").__setitem__(0, ml_dtypes.bfloat16(1))),
    "assignment of a time zone": (TypeError, lambda: ah.zeros(1, "M8[s]").__setitem__(0, ZONED)),
    "missing value": (TypeError, lambda: ah.zeros(1, "M8[s]").__setitem__(0, pytest.importorskip("pandas").NaT)),
    "asnested": (OverflowError, lambda: ah.asnested([[2**60 + 1, 0.5]])),
}


@pytest.mark.parametrize("case", MISFITS)
def test_value_that_does_not_fit_is_refused_with_fields(case):
    error, call = MISFITS[case]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, ah.Refusal) and caught.value.subject and caught.value.reason
