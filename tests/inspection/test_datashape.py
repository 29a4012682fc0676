"""Test the datashape language: `datashape`, `datashape.parse`, round trips, and errors."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import arrayhub as ah
from arrayhub._core.dtypes import element_types

SPELLINGS = [
    ("?", "bool"), ("i1", "int8"), ("u8", "uint64"), ("q", "int64"), ("l", f"int{np.dtype('l').itemsize * 8}"),
    ("f2", "float16"), ("f8", "float64"), ("g", "longdouble"),
    ("c8", "complex[float32]"), ("c16", "complex[float64]"), ("G", "complex[longdouble]"),
    (">i4", "byteswap[int32]"), (">c16", "byteswap[complex[float64]]"), (">U7", "byteswap[string[7,'utf32']]"),
    ("S3", "fixed_bytes[3,1]"), ("U7", "string[7,'utf32']"), ("V6", "void[6]"),
    ("M8[ns]", "datetime64[ns]"), ("m8[3s]", "timedelta64[3s]"), ("M8", "datetime64"),
    (">M8[us]", "byteswap[datetime64[us]]"),
    (ml_dtypes.bfloat16, "bfloat16"), (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"), (ml_dtypes.int4, "int4"),
    ([("x", "i4"), ("y", "f8", 3)], "{x: int32, y: 3 * float64}"),
    ([("x", ">i4"), ("in", [("a b", "S2", (2, 3))])], '{x: byteswap[int32], in: {"a b": 2 * 3 * fixed_bytes[2,1]}}'),
    ([("größe", "i1"), ('"', "i1")], '{"gr\\u00f6\\u00dfe": int8, "\\"": int8}'),
    ({"names": ["w", ""], "formats": [ml_dtypes.bfloat16, "S0"]}, '{w: bfloat16, "": fixed_bytes[0,1]}'),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "text"), SPELLINGS, ids=[text for _, text in SPELLINGS])
def test_element_types_round_trip(dtype, text):
    x = np.zeros((2, 3), dtype)
    assert ah.datashape.of(x) == f"2 * 3 * {text}"
    assert ah.datashape.of(x, symbolic=True) == f"strided * strided * {text}"
    assert ah.datashape.of(x[0, 0:1].reshape(())) == text
    t = ah.datashape.parse(f"2 * 3 * {text}")
    assert (str(t), t.shape, t.dtype) == (f"2 * 3 * {text}", (2, 3), x.dtype)


def test_unaligned_is_the_outer_type_of_byteswap():
    memory = np.zeros(9, "i1")
    assert ah.datashape.of(memory[1:].view("i4")) == "2 * unaligned[int32]"
    assert ah.datashape.of(memory[1:].view(">i4"), symbolic=True) == "strided * unaligned[byteswap[int32]]"
    record = np.dtype([("x", "i4"), ("y", "f8")], align=True)
    assert ah.datashape.of(np.zeros(17, "i1")[1:].view(record)) == "1 * unaligned[{x: int32, y: float64}]"
    assert ah.datashape.parse("unaligned[byteswap[int32]]").dtype == np.dtype(">i4")


def test_fields_keep_the_dimensions_of_an_extension_type():
    assert ah.datashape.parse("{x: extension[mine, 3 * int8]}").dtype == np.dtype([("x", "i1", 3)])


def test_complex_float16_has_a_datashape():
    torch = pytest.importorskip("torch")
    assert ah.datashape.of(torch.zeros(2, dtype=torch.complex32)) == "2 * complex[float16]"
    if hasattr(ml_dtypes, "complex32"):
        assert ah.datashape.of(np.zeros(2, [("a", ml_dtypes.complex32)])) == "2 * {a: complex[float16]}"


def test_all_plain_element_types_round_trip():
    """Test each element type that does not have a length, a unit or fields."""
    for row in element_types():
        if row["kind"] in "SUVMm":
            continue
        bits = row["bits"] // 2 if row["kind"] == "c" else row["bits"]
        name = {"i": f"int{bits}", "u": f"uint{bits}", "f": f"float{bits}", "c": f"complex[float{bits}]"}
        text = {
            "longdouble": "longdouble",
            "clongdouble": "complex[longdouble]",
            "complex32": "complex[float16]",
            "bcomplex32": "complex[bfloat16]",
        }.get(row["name"], name.get(row["kind"], row["name"]))
        assert str(ah.datashape.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "int32", "0 * int8", "3 * strided * var * float64", "var * string", "?int32", "5 * ?{a: var * ?string}", "{}",
        "string[7,'ascii']", "fixed_bytes[16,8]", "unaligned[{x: int32}]", "datetime64[10ms]",
        f"{2**63 - 1} * bool", "64 * " * 64 + "int8",
    ],
)  # fmt: skip
def test_canonical_datashapes_round_trip(text):
    t = ah.datashape.parse(text)
    assert str(t) == text
    assert isinstance(t, ah.datashape.Type)
    assert t == ah.datashape.parse(text) and hash(t) == hash(ah.datashape.parse(text))
    assert pickle.loads(pickle.dumps(t)) == t
    assert eval(repr(t), {"datashape": ah.datashape}) == t


@pytest.mark.parametrize(
    ("text", "usual"), [('{"c": int8}', "{c: int8}"), ("option[int8]", "?int8"), ("007 * int8", "7 * int8"),
    (" 2*3 * { x :int32,'y':  bool}\n", "2 * 3 * {x: int32, y: bool}")]
)  # fmt: skip
def test_str_returns_the_canonical_form(text, usual):
    assert str(ah.datashape.parse(text)) == usual
    assert ah.datashape.parse(usual) == ah.datashape.parse(text)


@pytest.mark.parametrize("values", [[[1], [2, 3]], ["a", None], [1, None], [{"a": 1}, {"a": 2}], ([1], [])], ids=str)
def test_datashape_accepts_nested_lists(values):
    assert ah.datashape.of(values) == str(ah.asnested(values).type)
    assert ah.datashape.of(values, symbolic=True).startswith("strided * ")


def test_types_are_immutable():
    t = ah.datashape.parse("2 * int32")
    with pytest.raises(AttributeError):
        t.length = 3


def test_different_types_are_not_equal():
    texts = ["int32", "unaligned[int32]", "byteswap[int32]", "?int32", "1 * int32", "{x: int32}", "{y: int32}"]
    assert len({ah.datashape.parse(text) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        *("var * int32", "string", "?int32", "{x: ?bool}", "string[3,'utf8']", "fixed_bytes[8,8]", "3 * {x: string}"),
        *("{x: strided * int8}", "{x: 9999999999 * int8}", "{x: 2000000000 * int64}", "{x: {y: strided * int8}}"),
        *("{x: 99999 * 99999 * int8}", "string[1999999999,'utf32']", "string[9999999999,'utf32']"),
        *("fixed_bytes[9999999999,1]", "void[9999999999]"),
    ],
)
def test_dtype_raises_for_types_without_a_numpy_dtype(text):
    with pytest.raises(TypeError, match="NumPy does not have a dtype for"):
        _ = ah.datashape.parse(text).dtype


@pytest.mark.parametrize(
    ("text", "position", "accepted"),
    [
        ("", 0, "a dimension"),
        ("2 * ", 4, "an element type such as int32"),
        ("imt32", 0, "bool, int8, uint8"),
        ("complex64", 0, r"complex\[float64\]"),
        ("2 * 3", 5, r"'\*'"),
        ("int32 int32", 6, "the end of the type"),
        ("int32[", 5, "the end of the type"),
        ("byteswap[unaligned[int32]]", 9, r"Write unaligned\[byteswap\[T\]\]"),
        ("byteswap[{x: int32}]", 9, "a number, string, datetime64 or timedelta64"),
        ("unaligned[2 * int32]", 10, "an element type"),
        ("unaligned[?int32]", 10, r"a number, string, datetime64 or timedelta64, a record or byteswap\[T\]"),
        ("complex[int32]", 8, "float32, float64, longdouble"),
        ("{x int32}", 3, "':'"),
        ("{x: int32 y: int8}", 10, "','"),
        ("{x: int32, x: int8}", 11, "a name other than 'x'"),
        ("{x: int32,", 10, "a field"),
        ("{2: int8}", 1, "a field"),
        ('{"a: int8}', 1, "quoted names"),
        ("fixed_bytes[3,3]", 14, "a power of two"),
        ("fixed_bytes[3]", 13, "','"),
        ("string[7,'utf9']", 9, "'ascii', 'utf8', 'utf16', 'utf32'"),
        ("datetime64[0s]", 11, "a unit"),
        ("timedelta64[9999999999s]", 12, "a unit"),
        ("??int8", 1, r"a single '\?'"),
        ("-3 * int8", 0, "names, numbers"),
        ("9223372036854775808 * int8", 0, r"2\*\*63 - 1"),
        ("9" * 5000 + " * int8", 0, r"2\*\*63 - 1"),
        ("3 * " * 1000 + "int8", 514, "at most 128"),
        ("?" * 100_000 + "int8", 128, "at most 128"),
        ("{x: " * 1000, 512, "at most 128"),
        ("3 * int32\N{SUPERSCRIPT TWO}", 9, "names, numbers"),
        ("\N{ARABIC-INDIC DIGIT THREE} * int8", 0, "names, numbers"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else value,
)
def test_errors_contain_the_position_and_accepted_tokens(text, position, accepted):
    with pytest.raises(ValueError, match=accepted) as raised:
        ah.datashape.parse(text)
    message = str(raised.value)
    assert message.startswith("datashape.parse: ")
    assert f", at position {position}: " in message
    assert len(message) < 700


@pytest.mark.parametrize("wrong", [None, 3, b"int32", ["int32"], np.dtype("i4")])
def test_parse_type_rejects_other_types(wrong):
    with pytest.raises(TypeError, match="accepted: a str"):
        ah.datashape.parse(wrong)


# --------------------------------------------------------------------------------------------------------- hypothesis

NAMES = [row["name"] for row in element_types() if row["kind"] == "E" and "complex" not in row["name"]]
NUMBERS = st.sampled_from(["bool", "int8", "uint16", "int32", "int64", "float16", "float64", "longdouble", *NAMES])
COMPLEX = st.sampled_from(["float16", "float32", "float64", "longdouble"]).map("complex[{}]".format)
STRINGS = st.builds("string[{},'{}']".format, st.integers(0, 99), st.sampled_from(["ascii", "utf8", "utf16", "utf32"]))
TIMES = st.sampled_from(["datetime64", "datetime64[ns]", "timedelta64[25s]", "datetime64[2Y]"])
SWAPPABLE = NUMBERS | COMPLEX | STRINGS | TIMES
PLAIN = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


def records(inner):
    fields = st.dictionaries(PLAIN, inner, max_size=3)
    return fields.map(lambda d: "{" + ", ".join(f"{name}: {text}" for name, text in d.items()) + "}")


def with_dimensions(element):
    lengths = st.lists(st.integers(0, 9).map(str) | st.sampled_from(["strided", "var"]), max_size=3)
    return st.builds(lambda ls, e: "".join(f"{length} * " for length in ls) + e, lengths, element)


SWAPPED = SWAPPABLE.map("byteswap[{}]".format)
LEAVES = SWAPPABLE | SWAPPED | (SWAPPABLE | SWAPPED).map("unaligned[{}]".format) | st.sampled_from(
    ["string", "fixed_bytes[3,1]", "fixed_bytes[0,16]", "void[6]"]
)  # fmt: skip
ELEMENTS = st.recursive(LEAVES | LEAVES.map("?{}".format), lambda inner: records(with_dimensions(inner)), max_leaves=6)


@given(with_dimensions(ELEMENTS))
def test_random_datashapes_round_trip(text):
    assert str(ah.datashape.parse(text)) == text


@given(
    nps.array_dtypes(subtype_strategy=nps.scalar_dtypes()) | nps.nested_dtypes(),
    st.lists(st.integers(0, 3), max_size=3),
)
def test_random_dtypes_round_trip(dtype, shape):
    x = np.empty(shape, dtype)
    text = ah.datashape.of(x)
    t = ah.datashape.parse(text)
    assert str(t) == text
    assert t.shape == x.shape
    assert t.dtype == _packed(x.dtype)


def _packed(dtype):
    """Return the dtype with packed fields, because a datashape does not contain offsets."""
    if dtype.subdtype is not None:
        return np.dtype((_packed(dtype.base), dtype.shape))
    if dtype.names is None:
        return dtype
    return np.dtype([(name, _packed(dtype.fields[name][0])) for name in dtype.names])


@given(st.text(alphabet="{}[]*:,?'\" 3abint8var_strided\\\n", max_size=40) | st.text(max_size=20))
def test_random_text_is_parsed_or_raises_value_error(text):
    try:
        t = ah.datashape.parse(text)
    except ValueError as error:
        if not str(error).startswith("datashape.parse: "):
            raise
    else:
        assert str(ah.datashape.parse(str(t))) == str(t)


# ---------------------------------------------------------------------------------------------- comparison with awkward

FIELD_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
AGREED = st.recursive(
    st.sampled_from(
        ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
    ),
    lambda inner: st.lists(
        st.tuples(FIELD_NAMES, inner, st.lists(st.integers(1, 3), max_size=2)),
        min_size=1, max_size=3, unique_by=lambda field: field[0],
    ),
    max_leaves=5,
)  # fmt: skip


@given(AGREED, st.lists(st.integers(1, 3), max_size=2))
def test_awkward_parses_datashapes(spec, shape):
    from_datashape = pytest.importorskip("awkward").types.from_datashape
    dtype = np.dtype(_fields(spec))
    text = ah.datashape.of(np.zeros(shape, dtype))
    theirs = from_datashape(text, highlevel=False)
    for length in shape:
        assert theirs.size == length
        theirs = theirs.content
    _assert_same(theirs, dtype)


def _fields(spec):
    if isinstance(spec, str):
        return spec
    return [(name, _fields(inner), tuple(shape)) for name, inner, shape in spec]


def _assert_same(theirs, dtype):
    for length in dtype.shape:
        assert theirs.size == length
        theirs = theirs.content
    dtype = dtype.base
    if dtype.names is None:
        assert np.dtype(theirs.primitive) == dtype
    else:
        assert tuple(theirs.fields) == dtype.names
        for content, name in zip(theirs.contents, dtype.names, strict=True):
            _assert_same(content, dtype.fields[name][0])


@pytest.mark.parametrize("text", ["var * int32", "string", "3 * ?float64", "datetime64[ns]", "?{x: var * string}"])
def test_awkward_parses_nested_datashapes(text):
    """awkward parses datashapes of ragged rows, strings and missing values, and prints the same text."""
    from_datashape = pytest.importorskip("awkward").types.from_datashape
    assert str(from_datashape(text, highlevel=False)) == str(ah.datashape.parse(text)) == text


def test_deeply_nested_dtypes_are_rejected():
    dtype = np.dtype("i1")
    for _ in range(64):
        dtype = np.dtype([("x", dtype)])
    assert ah.datashape.parse(ah.datashape.of(np.zeros((1,) * 60, dtype))).dtype == dtype
    with pytest.raises(ValueError, match="records are nested 65 levels deep; accepted: at most 64"):
        ah.datashape.of(np.zeros(2, [("x", dtype)]))


def test_lengths_of_empty_arrays_are_kept():
    assert ah.datashape.parse(ah.datashape.of(np.zeros((4, 0, 5), "f4"))).shape == (4, 0, 5)
