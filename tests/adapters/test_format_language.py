"""Test PEP 3118 formats: syntax, comparison with NumPy, deviations of ctypes, and invalid formats."""

import ctypes
import struct
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy._core._internal import _dtype_from_pep3118 as numpy_reads

from arrayhub._core.errors import InterfaceError
from arrayhub.adapters.format_language import parse_format, write_format

LITTLE = sys.byteorder == "little"
FOREIGN = ">" if LITTLE else "<"


def flat(dtype):
    """Return the shape and the element type of a sub-array whose base may be another sub-array."""
    if dtype.subdtype is None:
        return (), dtype
    base, shape = dtype.subdtype
    inner, element = flat(base)
    return shape + inner, element


def same(left, right):
    """Return whether two dtypes have the same fields, offsets and element types. NumPy's ``==`` does not ensure it."""
    if left.subdtype is not None or right.subdtype is not None:
        (left_shape, left), (right_shape, right) = flat(left), flat(right)
        return left_shape == right_shape and same(left, right)
    if left.names != right.names or left.itemsize != right.itemsize:
        return False
    if left.names is None:
        return left == right
    return all(
        left.fields[n][1] == right.fields[n][1] and same(left.fields[n][0], right.fields[n][0]) for n in left.names
    )


def record(names, formats, offsets, itemsize):
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})


# ---- Parsing: codes, sub-arrays and records ----


@pytest.mark.parametrize("code", "?bBhHiIlLqQefd")
@pytest.mark.parametrize("prefix", ["", *"@=<>!"])
def test_sizes_and_byte_orders_equal_those_of_struct(prefix, code):
    size = struct.calcsize(prefix + code)
    dtype = parse_format(prefix + code, size)
    packed = struct.pack(prefix + code, 1)
    assert np.frombuffer(packed, dtype)[0] == 1
    assert dtype.isnative == (size == 1 or prefix in ("", "@", "=") or (prefix == "<") == LITTLE)


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("c", "S1"), ("5s", "S5"), ("s", "S1"), ("0s", "S0"), ("7w", "U7"), (">7w", ">U7"), ("Zf", "c8"),
        ("Zd", "c16"), (">Zd", ">c16"), ("F", "c8"), ("<D", "<c16"), (">F", ">c8"), ("g", "longdouble"),
        ("^g", "longdouble"), ("Zg", "clongdouble"), ("^G", "clongdouble"), ("n", "intp"), ("N", "uintp"),
        ("P", "uintp"), ("l", "long"), ("q", "longlong"), ("x", "V1"), ("6x", "V6"), (" 6x\n", "V6"), ("1i", "i4"),
    ],
)  # fmt: skip
def test_formats_of_single_elements_are_parsed(format, expected):
    expected = np.dtype(expected)
    assert parse_format(format, expected.itemsize) == expected


@pytest.mark.parametrize("code", ["g", "Zg", "G", "n", "N", "P"])
def test_codes_without_a_standard_size_require_native_byte_order(code):
    native = parse_format(code, parse_size(code))
    for prefix in ("=", "<" if LITTLE else ">"):
        assert parse_format(prefix + code, native.itemsize) == native
    with pytest.raises(InterfaceError, match="does not have a standard size"):
        parse_format(FOREIGN + code, native.itemsize)


def parse_size(code):
    return np.dtype({"g": "g", "Zg": "G", "G": "G", "n": "p", "N": "P", "P": "P"}[code]).itemsize


def test_half_complex_is_parsed_as_ml_dtypes_complex32():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, "complex32"):
        pytest.skip("this ml_dtypes lacks complex32")
    dtype = np.dtype(ml_dtypes.complex32)
    assert parse_format("Ze", 4) == dtype
    assert parse_format("=Ze", 4) == dtype
    with pytest.raises(BufferError, match="complex32"):  # NumPy reads `Ze` as a half float
        write_format(dtype)
    with pytest.raises(InterfaceError):
        parse_format(FOREIGN + "Ze", 4)


@pytest.mark.parametrize(
    ("format", "base", "shape"),
    [
        ("(2,3)f", "f4", (2, 3)), ("( 2 , 3 )f", "f4", (2, 3)), ("3i", "i4", (3,)), ("3c", "S1", (3,)),
        ("(2,3)4i", "i4", (2, 3, 4)), ("(2)>i", ">i4", (2,)), (">(2)i", ">i4", (2,)), ("(1)i", "i4", (1,)),
        ("0i", "i4", (0,)), ("(2)5s", "S5", (2,)), ("(2,2)6x", "V6", (2, 2)),
    ],
)  # fmt: skip
def test_sub_arrays_are_parsed(format, base, shape):
    expected = np.dtype((base, shape))
    found = parse_format(format, expected.itemsize)
    assert same(found, expected)
    assert found.base.str == np.dtype(base).str


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("T{b:a:i:b:}", record(["a", "b"], ["i1", "i4"], [0, 4], 8)),
        ("T{b:a:=i:b:}", record(["a", "b"], ["i1", "i4"], [0, 1], 5)),
        ("^T{b:a:i:b:}", record(["a", "b"], ["i1", "i4"], [0, 1], 5)),
        ("T{i:a:b:b:}", record(["a", "b"], ["i4", "i1"], [0, 4], 8)),
        ("i:a:b:b:", record(["a", "b"], ["i4", "i1"], [0, 4], 8)),
        ("i:a:", record(["a"], ["i4"], [0], 4)),
        ("i::", record([""], ["i4"], [0], 4)),
        ("T{i}", record(["f0"], ["i4"], [0], 4)),
        ("iiH", record(["f0", "f1", "f2"], ["i4", "i4", "u2"], [0, 4, 8], 12)),
        ("ii:f0:i", record(["f1", "f0", "f2"], ["i4", "i4", "i4"], [0, 4, 8], 12)),
        ("T{3xb:a:2x}", record(["a"], ["i1"], [3], 6)),
        ("T{3x:a:b:b:}", record(["a", "b"], ["V3", "i1"], [0, 3], 4)),
        ("T{6x}", record([], [], [], 6)),
        ("T{}", record([], [], [], 0)),
        ("", record([], [], [], 0)),
        ("T{<i:a:>i:b:i:c:}", record(["a", "b", "c"], ["<i4", ">i4", ">i4"], [0, 4, 8], 12)),
        ("T{=b:a:i:b:@h:c:}", record(["a", "b", "c"], ["i1", "i4", "i2"], [0, 1, 6], 8)),
        ("T{>T{h:x:}:a:h:b:}", record(["a", "b"], [[("x", ">i2")], ">i2"], [0, 2], 4)),
        ("T{b:a:T{d:x:b:y:}:n:}", record(["a", "n"], ["i1", record(["x", "y"], ["f8", "i1"], [0, 8], 16)], [0, 8], 24)),
        (
            "T{b:a:(2)T{h:x:b:y:}:n:}",
            record(["a", "n"], ["i1", (record(["x", "y"], ["i2", "i1"], [0, 2], 4), 2)], [0, 2], 10),
        ),
        ("T{b:a:0i:b:}", record(["a", "b"], ["i1", ("i4", (0,))], [0, 4], 4)),
        ("T{i:\u00e9t\u00e9:}", record(["\u00e9t\u00e9"], ["i4"], [0], 4)),
        ("T{i:a}{:}", record(["a}{"], ["i4"], [0], 4)),
        ("T{b:a:xi:b:}", record(["a", "b"], ["i1", "i4"], [0, 4], 8)),
    ],
)
def test_records_are_parsed(format, expected):
    assert same(parse_format(format, expected.itemsize), expected)


def test_example_of_pep_3118_is_parsed():
    """The example contains white space, a nested record and a sub-array."""
    format = """
        i:ival:
        T{
           H:sval:
           B:bval:
           B:cval:
        }:sub:
        (16,4)d:data:
    """
    sub = np.dtype([("sval", "u2"), ("bval", "u1"), ("cval", "u1")])
    expected = np.dtype([("ival", "i4"), ("sub", sub), ("data", "f8", (16, 4))])
    assert same(parse_format(format, expected.itemsize), expected)


def test_format_of_one_record_is_not_wrapped_in_another_record():
    assert parse_format("T{i:a:}", 4).names == ("a",)
    assert parse_format("T{i:a:}:outer:", 4).names == ("outer",)
    assert parse_format("2T{i:a:}", 8).shape == (2,)


# ---- The item size ----


@pytest.mark.parametrize(
    ("format", "itemsize", "offsets"),
    [
        ("iB", 5, [0, 4]),  # struct: native records do not have trailing padding
        ("iB", 8, [0, 4]),  # NumPy: native records have trailing padding
        ("<i:a:<b:b:", 8, [0, 4]),  # ctypes before 3.12, and NumPy, omit trailing padding in other orders, too
        ("T{b:a:xxx=i:b:b:c:}", 12, [0, 4, 8]),
        ("T{>q:a:>h:b:}", 16, [0, 8]),
    ],
)
def test_trailing_padding_is_optional(format, itemsize, offsets):
    dtype = parse_format(format, itemsize)
    assert dtype.itemsize == itemsize
    assert [dtype.fields[n][1] for n in dtype.names] == offsets


@pytest.mark.parametrize(
    ("format", "itemsize"),
    [
        ("i", 8),
        ("i", 0),
        ("i", -4),
        ("i", 2**70),
        ("B", 9),  # the format and the size of a packed structure of ctypes
        ("(2,3)f", 4),
        ("T{i:a:b:b:}", 6),
        ("T{=i:a:b:b:}", 12),
        ("T{b:a:=i:b:}", 8),  # ambiguous: packed with three bytes at the end, or aligned with three between
        ("T{<q:a:T{<h:b:<b:c:}:d:<b:e:}", 16),  # ambiguous in the nested record
        ("(2)T{<i:a:<b:b:}", 16),
        ("T{}", 6),
        ("", 1),
        ("6x", 7),
    ],
)
def test_itemsize_that_contradicts_the_format_raises(format, itemsize):
    with pytest.raises(InterfaceError, match=r"PEP 3118 format .*itemsize"):
        parse_format(format, itemsize)


# ---- Invalid and unsupported formats ----


INVALID = [
    "k", "T{i:a:k:b:}", "O", "3u", "&i", "X{}", "t", "<z", "Z", "Zi", "5p", "i}", "T{", "T{T{i}", "Ti", "i:a", "i:",
    "=", "i:a:b:a:", "T{T{i:a:}:b:T{i:a:i:a:}:c:}", "i=", "3", "(2", "(2,)i", "()i", "(-1)i", "(2.5)i", "(2)", "-1i",
    "+1i", "2147483648i", "(1,99999999999)i", "9" * 5000 + "s", "1000000000w", "\u00b2i", "\u0663i", "\u00e9", "i\0",
    "i:a\0b:", "i:\udcff:", f"{FOREIGN}g",
]  # fmt: skip


@pytest.mark.parametrize("format", INVALID)
def test_errors_contain_the_format_and_what_is_accepted(format):
    with pytest.raises(InterfaceError, match="^PEP 3118 format .*accepted: ") as caught:
        parse_format(format, 4)
    message = str(caught.value)
    assert len(message) < 1000 and (repr(format) in message or len(format) > 150)


@pytest.mark.parametrize(
    "format",
    [
        "T{" * 5000 + "i" + "}" * 5000, "T{" * 100_000, "(" * 10_000, ":" * 10_000, "2147483647s2147483647s",
        "2147483647x2147483647x", "(2147483647)i", "(65536,65536,65536,65536)B", "(1" + ",1" * 100 + ")i",
        "T{2000000000x:a:}2000000000x", "2147483647T{2147483647T{d}}", "(3)0s", "2147483647xi",
    ],
)  # fmt: skip
def test_extreme_formats_raise_interface_errors(format):
    for itemsize in (0, 4, 2**31 - 1, 2**62):
        with pytest.raises(InterfaceError):
            parse_format(format, itemsize)


def test_records_of_up_to_32_levels_are_written_and_parsed():
    deepest = np.dtype("i4")
    for _ in range(32):
        deepest = np.dtype([("a", deepest)])
    assert same(parse_format(write_format(deepest), 4), deepest)
    too_deep = np.dtype([("a", deepest)])
    with pytest.raises(BufferError, match="levels"):
        write_format(too_deep)
    for _ in range(3000):
        too_deep = np.dtype([("a", too_deep)])
    with pytest.raises(BufferError, match="levels"):
        write_format(too_deep)


# ---- Comparison with NumPy ----

CODES = ["?", "c", "b", "B", "h", "i", "l", "q", "Q", "e", "f", "d", "Zf", "Zd", "3s", "2w", "x", "3x"]


@st.composite
def items(draw, element):
    shape = draw(st.sampled_from(["", "", "", "(2)", "(2,3)"]))
    order = draw(st.sampled_from(["", "", "", "@", "=", "<", ">", "!", "^"]))
    return shape + order + draw(element) + ":{}:" * draw(st.booleans())


def braces(element):
    return st.lists(items(element), min_size=1, max_size=4).map(lambda parts: "T{{" + "".join(parts) + "}}")


@given(st.lists(items(st.recursive(st.sampled_from(CODES), braces, max_leaves=8)), min_size=1, max_size=4))
def test_formats_that_numpy_parses_give_equal_dtypes(parts):
    skeleton = "".join(parts)
    format = skeleton.format(*(f"n{k}" for k in range(skeleton.count("{}"))))
    expected = numpy_reads(format)
    found = parse_format(format, expected.itemsize)
    if found.base.kind == "V" and found.base.names is None:
        return  # a format of padding only, which NumPy parses as a record without fields
    assert same(found, expected)


NUMBERS = ["?", "i1", "u1", "i2", ">u2", "i4", "<u4", "l", "q", ">i8", "f2", "f4", ">f8", "g", "c8", ">c16", "G"]
LEAVES = st.sampled_from([*NUMBERS, "S1", "S5", "U3", ">U2", "V3"])


@st.composite
def records(draw, leaves):
    """Draw a record dtype: aligned as in C, packed, or with gaps between fields."""
    formats = draw(st.lists(st.tuples(leaves, st.sampled_from([(), (), (2,), (2, 3)])), min_size=1, max_size=4))
    formats = [np.dtype((base, shape)) if shape else np.dtype(base) for base, shape in formats]
    names = [f"n{k}" for k in range(len(formats))]
    layout = draw(st.sampled_from(["aligned", "packed", "gaps"]))
    if layout != "gaps":
        return np.dtype({"names": names, "formats": formats}, align=layout == "aligned")
    offsets, end = [], 0
    for dtype in formats:
        offsets.append(end + draw(st.integers(0, 9)))
        end = offsets[-1] + dtype.itemsize
    return record(names, formats, offsets, end + draw(st.integers(0, 9)))


ELEMENTS = st.one_of(LEAVES.map(np.dtype), st.recursive(LEAVES, records, max_leaves=6).map(np.dtype))


@given(ELEMENTS, st.booleans())
def test_written_formats_are_parsed_by_numpy_and_arrayhub(dtype, aligned):
    format = write_format(dtype, aligned)
    assert same(parse_format(format, dtype.itemsize), dtype)
    if dtype.kind != "V" or dtype.names is not None:
        assert same(numpy_reads(format), dtype)


@given(ELEMENTS, st.booleans())
def test_formats_of_numpy_arrays_are_parsed_as_in_numpy(dtype, aligned):
    memory = np.zeros(dtype.itemsize + 1, "u1")
    view = memoryview(np.ndarray((), dtype, memory, offset=0 if aligned else 1))
    if dtype.kind == "V" and dtype.names is None:
        assert parse_format(view.format, view.itemsize) == dtype
    elif (expected := numpy_reads(view.format)).itemsize == view.itemsize:
        assert same(parse_format(view.format, view.itemsize), expected)


# ---- ctypes ----


class Whole(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_short), ("c", ctypes.c_ushort))


class Trailing(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double), ("b", ctypes.c_int), ("c", ctypes.c_byte))


class Nested(ctypes.Structure):
    _fields_ = (("n", Whole), ("m", Whole * 3), ("x", ctypes.c_float * 2 * 3), ("y", ctypes.c_long))


class Big(ctypes.BigEndianStructure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_short), ("c", ctypes.c_ubyte))


@pytest.mark.parametrize("ctype", [Whole, Trailing, Nested, Big, Whole * 2])
def test_ctypes_formats_of_structures_are_parsed(ctype):
    view = memoryview(ctype())
    element = ctype._type_ if issubclass(ctype, ctypes.Array) else ctype
    assert same(parse_format(view.format, view.itemsize), np.dtype(element))


INTEGERS = ["byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong"]


@pytest.mark.parametrize("name", [*INTEGERS, "bool", "float", "double", "longdouble", "char", "void_p"])
def test_ctypes_formats_of_simple_types_are_parsed(name):
    ctype = getattr(ctypes, f"c_{name}")
    view = memoryview(ctype())
    dtype = parse_format(view.format, view.itemsize)
    assert dtype.itemsize == ctypes.sizeof(ctype)
    assert dtype.isnative


# ---- Writing, rule by rule ----


@pytest.mark.parametrize(
    ("dtype", "aligned", "unaligned"),
    [
        ("?", "?", "?"), ("i1", "b", "b"), ("u2", "H", "=H"), ("i4", "i", "=i"), ("longlong", "q", "=q"),
        ("ulonglong", "Q", "=Q"), ("f2", "e", "=e"), ("f8", "d", "=d"), ("c8", "Zf", "=Zf"), ("c16", "Zd", "=Zd"),
        ("S5", "5s", "5s"), ("S0", "0s", "0s"), ("U7", "7w", "=7w"), ("V6", "6x", "6x"),
        (FOREIGN + "i4", FOREIGN + "i", FOREIGN + "i"), (FOREIGN + "i8", FOREIGN + "q", FOREIGN + "q"),
        (FOREIGN + "c16", FOREIGN + "Zd", FOREIGN + "Zd"), (FOREIGN + "U2", FOREIGN + "2w", FOREIGN + "2w"),
        (("f4", (2, 3)), "(2,3)f", "(2,3)=f"), ((np.dtype(("f4", (3,))), (2,)), "(2,3)f", "(2,3)=f"),
        ([("a", FOREIGN + "i2", (2,))], f"T{{(2){FOREIGN}h:a:}}", f"T{{(2){FOREIGN}h:a:}}"),
        ([("a", "i4"), ("b", "i1"), ("c", "V3")], "T{i:a:b:b:3x:c:}", "T{=i:a:b:b:3x:c:}"),
        ([("a", "i1"), ("b", "i4")], "T{b:a:=i:b:}", "T{b:a:=i:b:}"),
        ([("a", "i2"), ("b", FOREIGN + "i2")], f"T{{=h:a:{FOREIGN}h:b:}}", f"T{{=h:a:{FOREIGN}h:b:}}"),
        (record(["a", "b"], ["i1", "i4"], [0, 4], 12), "T{b:a:3xi:b:4x}", "T{b:a:3x=i:b:4x}"),
        (record([], [], [], 6), "T{6x}", "T{6x}"),
        ([("a", [("x", "i2")], 2)], "T{(2)T{h:x:}:a:}", "T{(2)T{=h:x:}:a:}"),
    ],
)  # fmt: skip
def test_write_format_returns_native_and_packed_formats(dtype, aligned, unaligned):
    assert write_format(np.dtype(dtype)) == aligned
    assert write_format(np.dtype(dtype), aligned=False) == unaligned


@pytest.mark.skipif(np.dtype("longdouble").itemsize == 8, reason="longdouble is double here, and d has a standard size")
def test_longdouble_is_written_at_native_size():
    assert write_format(np.dtype("g")) == "g"
    assert write_format(np.dtype("G"), aligned=False) == "^Zg"
    assert write_format(np.dtype([("a", "i1"), ("b", "g"), ("c", "i4")])) == "T{b:a:^g:b:=i:c:}"
    with pytest.raises(BufferError, match="__array_interface__"):
        write_format(np.dtype("g").newbyteorder())


@pytest.mark.parametrize("letter", "?bBhHiIlLqQfd")
def test_native_single_values_can_be_read_by_memoryview(letter):
    dtype = np.dtype(letter)
    view = memoryview(np.ones(2, dtype).tobytes()).cast(write_format(dtype))
    assert view.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "instead"),
    [
        ("M8[ns]", "__array_interface__ .*M8.*Arrow"),
        ("m8[s]", "__array_interface__ .*m8.*Arrow"),
        ("O", "no array protocol"),
        ([("a", "i4"), ("b", "M8[D]")], "__array_interface__"),
        (record(["a", "b"], ["i4", "i4"], [4, 0], 8), "out of order"),
        (record(["a", "b"], ["i4", "i4"], [0, 2], 8), "overlap"),
        ([("a:b", "i4")], "rename"),
        ([("a\0b", "i4")], "rename"),
        ([("a\ud800", "i4")], "rename"),
        (np.dtypes.StringDType(), "astype"),
    ],
)
def test_unsupported_format_error_names_a_protocol(dtype, instead):
    with pytest.raises(BufferError, match=f"PEP 3118 format: cannot represent .*{instead}"):
        write_format(np.dtype(dtype))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_write_format_rejects_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(BufferError, match=f"{name}.*DLPack"):
        write_format(np.dtype(getattr(ml_dtypes, name)))
