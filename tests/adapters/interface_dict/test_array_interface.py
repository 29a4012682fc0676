"""Test ``__array_interface__`` and ``__array_struct__``: comparison with NumPy, and invalid producers."""

import ctypes
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from children import python
from exporters import PyArrayInterface, Shows, StructProducer, read_struct
from numpy_release import NUMPY
from producers import lives

import arrayhub
from arrayhub._core.errors import InterfaceError


def says(**keys):
    """Return a producer whose ``__array_interface__`` has the given keys."""
    return Shows(__array_interface__=keys)


def part(array, name="__array_interface__"):
    """Return a producer whose only protocol is the attribute `name` of `array`."""
    return Shows(**{name: getattr(array, name)}, keeps=array)


class Both:
    """A producer with ``__array_interface__`` and ``__array_struct__``. It owns the array."""

    def __init__(self, array):
        self.array = array

    __array_struct__ = property(lambda self: self.array.__array_struct__)
    __array_interface__ = property(lambda self: self.array.__array_interface__)


class Buffered(bytearray):
    """A buffer exporter whose ``__array_interface__`` can omit ``data``."""


def dict_in(obj):
    return arrayhub.asarray(obj, via="array_interface")


def struct_in(obj):
    return arrayhub.asarray(obj, via="array_struct")


def address(array):
    return array.__array_interface__["data"][0]


MEMORY = np.arange(64, dtype="u1")  # valid memory, whose address the producers in this file export
AT = address(MEMORY)


def record(names, formats, offsets, itemsize):
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})


NUMBERS = [np.dtype(code) for code in "?bBhHiIlLqQefdgFDG"]
SWAPPED = [np.dtype(code).newbyteorder() for code in "hHiIqQefdgFDG"]
TEXT = [np.dtype(code) for code in ("S1", "S5", "U1", "U7", ">U3")]
TIMES = [np.dtype(code) for code in ("M8[ns]", "m8[us]", "M8[25s]", "m8[D]", "M8", ">M8[ms]")]
VOID = [np.dtype("V6"), np.dtype("V1")]
RECORDS = [
    np.dtype([("a", "i1"), ("b", "<i4")]),
    np.dtype([("a", "i1"), ("b", "<i4")], align=True),
    np.dtype([("a", ">f8", (2, 3)), ("s", "U4"), ("n", [("x", "S3"), ("t", "M8[s]")])]),
    np.dtype([("a", "i4"), ("b", "V3"), ("c", "?")]),
    np.dtype([("a", "i1"), ("t", "M8[s]")], align=True),
    np.dtype([("a:b", "i4")]),
    record(["a"], ["i4"], [4], 16),
]
UNSORTED = [record(["a", "b"], ["i4", "i2"], [0, 2], 8), record(["b", "a"], ["i4", "i2"], [4, 0], 8)]
EVERY = NUMBERS + SWAPPED + TEXT + TIMES + VOID + RECORDS + UNSORTED


def sample(dtype):
    """Return a (4, 6) array of valid values."""
    if dtype.kind == "V":
        raw = np.arange(24 * dtype.itemsize) % 2
        return raw.astype("u1").view(dtype).reshape(4, 6) if "U" not in str(dtype) else np.zeros((4, 6), dtype)
    if dtype.kind in "SU":
        return np.array([chr(97 + k) for k in range(24)]).astype(dtype).reshape(4, 6)
    return np.arange(24).astype(dtype.newbyteorder("=")).astype(dtype).reshape(4, 6)


def unaligned(x):
    y = np.zeros(x.nbytes + 1, "u1")[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def read_only(x):
    y = x.copy()
    y.flags.writeable = False
    return y


LAYOUTS = {
    "C": lambda x: x, "F": np.asfortranarray, "sliced": lambda x: x[::2, 1:5:3], "negative": lambda x: x[::-1, ::-2],
    "0-d": lambda x: x[1, 2, ...], "empty": lambda x: x[:0], "broadcast": lambda x: np.broadcast_to(x[0], (3, 6)),
    "length 1": lambda x: x[2:3, 3:4], "unaligned": unaligned, "read-only": read_only,
}  # fmt: skip


def assert_same(seen, x):
    assert seen.dtype == x.dtype
    assert seen.shape == x.shape
    assert address(seen) == address(x)
    assert seen.flags.writeable == x.flags.writeable
    assert x.size < 2 or seen.strides == x.strides
    assert (seen == x).all()


# ---- Import from NumPy and export to NumPy ----


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_arrays_round_trip_through_numpy(dtype, layout):
    """NumPy reads the correct values, through whichever protocol it selects."""
    x = LAYOUTS[layout](sample(dtype))
    assert_same(np.asarray(arrayhub.asarray(x)), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NUMBERS + SWAPPED + TEXT + TIMES + VOID + RECORDS[:1], ids=str)
def test_arrays_round_trip_through_the_dict_alone(dtype, layout):
    """Test each type whose dict NumPy reads correctly."""
    x = LAYOUTS[layout](sample(dtype))
    u = dict_in(part(x))
    assert (u.protocol, str(u.device), u.ptr) == ("array_interface", "cpu", address(x))
    assert u.access == ("readwrite" if x.flags.writeable else "readonly")
    assert_same(np.asarray(part(u)), x)


@pytest.mark.parametrize("dtype", RECORDS, ids=str)
def test_records_are_imported_from_the_dict(dtype):
    x = sample(dtype)
    u = dict_in(part(x))
    assert u.dtype == dtype
    assert_same(arrayhub.as_numpy(u), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NUMBERS + SWAPPED + TEXT + VOID, ids=str)
def test_arrays_round_trip_through_the_struct_alone(dtype, layout):
    x = LAYOUTS[layout](sample(dtype))
    u = struct_in(part(x, "__array_struct__"))
    assert (u.protocol, u.ptr, u.shape, u.dtype) == ("array_struct", address(x), x.shape, dtype)
    assert u.access == ("readwrite" if x.flags.writeable else "readonly")
    assert (arrayhub.as_numpy(u) == x).all()
    if dtype.kind in "UV":
        assert not hasattr(u, "__array_struct__")
    else:
        assert_same(np.asarray(part(u, "__array_struct__")), x)


@pytest.mark.parametrize("dtype", [*TIMES, *RECORDS[:2], np.dtype(("i4", [("lo", "i2"), ("hi", "i2")]))], ids=str)
def test_dict_is_used_if_numpys_struct_lacks_time_units_or_fields(dtype):
    x = sample(dtype)
    u = struct_in(Both(x))
    assert u.protocol == "array_interface"
    assert_same(arrayhub.as_numpy(u), x)


def test_struct_time_units_are_read_from_descr():
    said = StructProducer(typekind=b"M", itemsize=8, strides=[8], flags=0xE00, descr=[("", "<M8[ns]")])
    assert struct_in(said).dtype == np.dtype("M8[ns]")
    with pytest.raises(InterfaceError, match="need a unit: use __array_interface__"):
        struct_in(StructProducer(typekind=b"M", itemsize=8, strides=[8]))


# Where an element type of ml_dtypes occurs in a dtype.
PLACES = {
    "alone": lambda number: number,
    "a field": lambda number: [("a", number), ("b", "i4")],
    "a sub-array": lambda number: [("a", number, (2,)), ("b", "i4")],
    "a record within": lambda number: [("q", [("a", number)], 2), ("b", "i4")],
    "behind padding": lambda number: np.dtype([("b", "i1"), ("c", "f8"), ("a", number)], align=True),
}


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "float4_e2m1fn", "float6_e2m3fn"])
@pytest.mark.parametrize("place", PLACES)
def test_types_of_ml_dtypes_are_kept_through_numpy(name, place):
    """NumPy calls ``__array__``, because neither the dict nor the struct can represent these types."""
    x = np.ones(3, PLACES[place](np.dtype(getattr(ml_dtypes, name))))
    u = arrayhub.asarray(x)
    for attribute in ("__array_interface__", "__array_struct__"):
        with pytest.raises(AttributeError, match=f"{attribute}: the protocol cannot represent .*as_numpy"):
            getattr(u, attribute)
    seen = np.asarray(u)
    assert seen.dtype == x.dtype and seen.ctypes.data == x.ctypes.data
    for via in ("array_interface", "array_struct") if x.dtype.names else ():
        assert arrayhub.asarray(x, via=via).dtype == x.dtype


def test_typestr_is_used_as_given():
    """'<V2' and '<f1' are not imported as ml_dtypes, although NumPy's dicts describe ml_dtypes by these types."""
    x = np.arange(3).astype(ml_dtypes.bfloat16)
    assert dict_in(part(x)).dtype == np.dtype("V2")
    with pytest.raises(InterfaceError, match="typestr is '<f1'"):
        dict_in(says(shape=(3,), typestr="<f1", data=(AT, False)))


# ---- Contents of the exported dict ----


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_emitted_dict_equals_numpys_dict(dtype):
    x = sample(dtype)
    for view in (x, x.T, x[::2], read_only(x)):
        u = arrayhub.asarray(view)
        if hasattr(u, "__array_interface__"):
            assert u.__array_interface__ == view.__array_interface__
        else:
            assert dtype in [*UNSORTED, RECORDS[4]]


@pytest.mark.parametrize("order", ["<", "|", "=", ""])
def test_byte_order_characters_for_native_order_are_accepted(order):
    if order == "<" and sys.byteorder == "big":
        order = ">"
    u = dict_in(says(shape=(4,), typestr=f"{order}i8", data=(AT, True)))
    assert u.dtype == np.dtype("i8")
    assert u.dtype.isnative


@pytest.mark.parametrize("version", [{}, {"version": 3}, {"version": 2}, {"version": 4}, {"version": np.int8(3)}])
def test_versions_are_accepted_as_in_numpy(version):
    assert dict_in(says(shape=(), typestr="|u1", data=(AT, False), **version)).shape == ()


def test_later_changes_of_the_dict_have_no_effect():
    said = says(shape=(3,), typestr="|u1", data=(AT, False))
    u = dict_in(said)
    said.__array_interface__.clear()
    assert (u.shape, u.ptr) == ((3,), AT)


def test_padding_in_descr_is_skipped():
    dtype = np.dtype([("a", "i1"), ("b", "<i4")], align=True)
    descr = [("a", "|i1"), ("", "|V3"), ("b", "<i4")]
    assert dict_in(says(shape=(2,), typestr="|V8", descr=descr, data=(AT, False))).dtype == dtype
    assert dict_in(says(shape=(2,), typestr="|V8", descr=[("", "|V8")], data=(AT, False))).dtype == np.dtype("V8")
    assert dict_in(says(shape=(2,), typestr="|V8", data=(AT, False))).dtype == np.dtype("V8")


def test_descr_is_read_again_on_each_import():
    descr = [("a", [("x", "<i4")]), ("b", "<f4")]
    for name in ("x", "y"):
        descr[0][1][0] = (name, "<i4")
        u = dict_in(says(shape=(1,), typestr="|V8", descr=descr, data=(AT, False)))
        assert u.dtype == np.dtype([("a", [(name, "<i4")]), ("b", "<f4")])


def test_descr_is_not_read_for_number_types():
    assert dict_in(says(shape=(2,), typestr="<i4", descr="nonsense", data=(AT, False))).dtype == np.dtype("<i4")


# ---- Data that is a buffer ----


def test_array_keeps_the_buffer_of_data_alive():
    data = bytearray(range(12))
    u = dict_in(says(shape=(2, 2), typestr="<u2", data=data, offset=4))
    assert arrayhub.as_numpy(u).tolist() == [[0x0504, 0x0706], [0x0908, 0x0B0A]]
    assert (u.access, u.memory.kind, u.memory.nbytes, u.offset, u.base) == ("readwrite", "buffer", 12, 2, data)
    with pytest.raises(BufferError):
        data.extend(b"more")
    arrayhub.as_numpy(u)[0, 0] = 0
    del u
    data.extend(b"more")
    assert data[4:6] == b"\0\0"


def test_dict_without_data_describes_the_buffer_of_the_object():
    obj = Buffered(range(8))
    obj.__array_interface__ = {"shape": (3,), "typestr": "|u1", "offset": 7, "strides": (-2,)}
    u = dict_in(obj)
    assert arrayhub.as_numpy(u).tolist() == [7, 5, 3]
    assert u.base is obj


def test_access_follows_the_buffer_of_data():
    said = {"shape": (2,), "typestr": "|u1"}
    assert dict_in(says(data=b"ab", **said)).access == "immutable"
    assert dict_in(says(data=memoryview(b"ab"), **said)).access == "immutable"
    assert dict_in(says(data=memoryview(bytearray(2)).toreadonly(), **said)).access == "readonly"
    assert dict_in(says(data=memoryview(bytearray(2)), **said)).access == "readwrite"


@pytest.mark.parametrize(
    "keys",
    [
        {"shape": (5,)}, {"shape": (4,), "offset": 1}, {"shape": (2,), "strides": (5,)},
        {"shape": (2,), "strides": (-1,)}, {"shape": (2,), "strides": (-3,), "offset": 2},
        {"shape": (1,), "offset": 5}, {"shape": (1,), "offset": -1}, {"shape": (0,), "offset": 5},
        {"shape": (2**62,), "strides": (1,)}, {"shape": (2,), "strides": (2**62,)}, {"shape": (1,), "offset": 2**63},
        {"shape": (1,), "offset": 1.0}, {"shape": (1,), "offset": True},
    ],
    ids=str,
)  # fmt: skip
def test_buffer_that_is_too_short_raises(keys):
    with pytest.raises(InterfaceError):
        dict_in(says(typestr="|u1", data=bytearray(4), **keys))


def test_shape_without_elements_whose_strides_would_overflow_raises():
    with pytest.raises(InterfaceError, match=r"fewer than 2\*\*63 bytes, where lengths of 0 count as 1"):
        dict_in(says(shape=(0, 2**62, 8), typestr="<f8", data=(0, False)))


@pytest.mark.parametrize(
    "data", ["text", 3, 3.0, pytest.param([AT, False], id="list"), object(), memoryview(bytearray(8))[::2]]
)
def test_data_without_buffer_raises(data):
    with pytest.raises((InterfaceError, BufferError)):
        dict_in(says(shape=(1,), typestr="|u1", data=data))


# ---- Invalid input ----


ENDLESS = [("a", "<i4")]
ENDLESS[0] = ("a", ENDLESS)


@pytest.mark.parametrize(
    "descr",
    [
        "i4,i4", (("a", "<i4"),), [("a", "<i4")], [("a", "<i4"), ("b", "<i8")], [("a", "<i9"), ("b", "<i4")], [("a",)],
        [("a", "<i4"), ("a", "<i4")], ["ab", "cd"], [3], [None], [("a", "<i4", (2.5,))], [("a", "<i4", (-2,))],
        [("a", [("b", [("c", "<i4")])])], [], [(3, "<i8")], [("a", "StringDType()")], {}, 8,
        ENDLESS,
    ],
)  # fmt: skip
def test_invalid_descr_raises(descr):
    with pytest.raises(InterfaceError, match="descr"):
        dict_in(says(shape=(1,), typestr="|V8", descr=descr, data=(AT, False)))


@pytest.mark.parametrize("descr", [[("a", "O")], [("a", "<i4"), ("b", [("c", "|O", (2,))])]])
def test_record_with_object_fields_raises(descr):
    size = np.dtype(descr).itemsize
    with pytest.raises(InterfaceError, match=r"descr, type of a field is '.?O'"):
        dict_in(says(shape=(1,), typestr=f"|V{size}", descr=descr, data=(AT, False)))


def test_stringdtype_is_rejected():
    """NumPy's StringDType is rejected, although the dict has a valid pointer and a type string that NumPy accepts."""
    x = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    with pytest.raises(InterfaceError, match=r"typestr is '(StringDType|\|T16)"):
        dict_in(part(x))


def test_interface_of_a_class_is_not_read():
    with pytest.raises((InterfaceError, TypeError)):
        dict_in(np.ndarray)
    with pytest.raises((InterfaceError, TypeError)):
        struct_in(np.ndarray)


def test_empty_array_may_have_a_null_address():
    u = dict_in(says(shape=(0, 3), typestr="<f8", data=(0, False)))
    assert (u.ptr, u.size) == (0, 0)
    assert np.asarray(u).shape == (0, 3)
    if NUMPY >= (2, 4):  # NumPy < 2.4 rejects the address 0, even for arrays without elements
        assert np.asarray(part(u)).shape == (0, 3)


# ---- The struct ----


# Fields of valid structs of the bytes 0 to 63, and the dtype, access and byte strides of the array.
VALID_STRUCTS = {
    "C order": ({"nd": 2, "shape": [2, 3], "strides": None}, "i4", "readwrite", (12, 4)),
    "Fortran order": ({"nd": 2, "shape": [2, 3], "strides": None, "flags": 0x602}, "i4", "readwrite", (4, 8)),
    "read-only": ({"flags": 0x200}, "i4", "readonly", (4,)),
    "non-native byte order": ({"flags": 0x400}, ">i4" if sys.byteorder == "little" else "<i4", "readwrite", (4,)),
    "bytes without flags": ({"flags": 0, "typekind": b"u", "itemsize": 1}, "u1", "readonly", (4,)),
    "text, whose itemsize counts bytes": (  # NumPy reads it as a number of characters
        {"typekind": b"U", "itemsize": 20, "shape": [2], "strides": [20]}, "U5", "readwrite", (20,)
    ),
    "0-d, shape and strides NULL": ({"nd": 0, "shape": None, "strides": None}, "i4", "readwrite", ()),
    **{f"wrong contiguity flags {flags:#x}": (
        {"nd": 2, "shape": [2, 2], "strides": [16, 8], "flags": 0x600 | flags}, "i4", "readwrite", (16, 8))
       for flags in (0, 1, 2, 3, 0x100)},
}  # fmt: skip


@pytest.mark.parametrize(("fields", "dtype", "access", "strides"), VALID_STRUCTS.values(), ids=VALID_STRUCTS)
def test_valid_structs_are_imported(fields, dtype, access, strides):
    u = struct_in(StructProducer(**fields))
    assert (u.dtype, u.access, u.byte_strides) == (np.dtype(dtype), access, strides)
    seen = arrayhub.as_numpy(u).flags
    assert (u.flags.c_contiguous, u.flags.f_contiguous) == (seen.c_contiguous, seen.f_contiguous)
    assert u.flags.aligned == seen.aligned


def test_struct_of_a_record_without_descr_is_read_only_bytes():
    """NumPy clears all flags of such a struct, including those for writable memory and for `descr`."""
    u = struct_in(part(np.zeros(2, RECORDS[0]), "__array_struct__"))
    assert (u.dtype, u.access) == (np.dtype("V5"), "readonly")


def test_struct_fields_are_read_from_descr():
    said = StructProducer(typekind=b"V", itemsize=8, strides=[8], flags=0xE00, descr=[("a", "<i4"), ("b", "<f4")])
    assert struct_in(said).dtype == np.dtype([("a", "<i4"), ("b", "<f4")])
    assert struct_in(StructProducer(typekind=b"V", itemsize=8, strides=[8])).dtype == np.dtype("V8")


STRUCTS = [
    {"two": 0}, {"two": 3}, {"two": -1}, {"nd": -1}, {"nd": 65}, {"nd": 2**31 - 1}, {"shape": None}, {"itemsize": -1},
    {"itemsize": -(2**31)}, {"itemsize": 3}, {"itemsize": 0}, {"itemsize": 2**31 - 1}, {"shape": [-1]},
    {"shape": [-(2**63)]},
    {"shape": [2**62]}, {"nd": 3, "shape": [2**31] * 3, "strides": [4] * 3}, {"strides": [2**62]},
    {"strides": [-(2**62)]},
    {"shape": [2**61], "strides": None}, {"data": None}, {"data": 2**63}, {"data": 2**64 - 8}, {"typekind": b"\0"},
    {"typekind": b"\xff"}, {"typekind": b"z"}, {"typekind": b"t"}, {"typekind": b"O", "itemsize": 8},
    {"typekind": b"U", "itemsize": 7},
    {"typekind": b"f", "itemsize": 1}, {"typekind": b"M", "itemsize": 8}, {"typekind": b"m", "itemsize": 8},
    {"typekind": b"b"},
    {"name": b"named"}, {"name": b""},
    {"typekind": b"V", "itemsize": 8, "flags": 0xE00, "descr": [("a", "<i4")]},
    {"typekind": b"V", "itemsize": 4, "flags": 0xE00, "descr": "nonsense"},
    {"typekind": b"V", "itemsize": 8, "flags": 0xE00, "descr": 8},
]  # fmt: skip


@pytest.mark.slow
def test_invalid_structs_raise_without_a_crash():
    """A separate process runs all cases, because an out-of-bounds read may crash it."""
    script = f"""
        import gc
        from exporters import StructProducer
        import arrayhub
        from arrayhub._core.errors import InterfaceError
        cases = {STRUCTS!r}
        for case in cases:
            said = StructProducer(**case)
            try:
                print("TAKEN", case, arrayhub.asarray(said, via="array_struct"))
            except InterfaceError as error:
                assert str(error).startswith("__array_struct__: ") and "; accepted: " in str(error), error
        gc.collect()
        print(len(cases), StructProducer.freed)
    """
    done = python(script)
    assert done == f"{len(STRUCTS)} {len(STRUCTS)}\n"


@pytest.mark.parametrize("value", [3, "capsule", object(), {}, b"", np.arange(3)])
def test_array_struct_must_be_a_capsule(value):
    class Odd:
        __array_struct__ = value

    with pytest.raises(InterfaceError, match="a capsule without a name"):
        struct_in(Odd())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_emitted_struct_equals_numpys_struct(layout):
    x = LAYOUTS[layout](np.arange(24, dtype="<f8").reshape(4, 6))
    u = arrayhub.asarray(x)
    capsule, theirs = u.__array_struct__, x.__array_struct__
    ours, numpys = read_struct(capsule), read_struct(theirs)
    for field in ("two", "nd", "typekind", "itemsize", "flags", "data"):
        assert getattr(ours, field) == getattr(numpys, field), field
    assert ours.shape[: x.ndim] == numpys.shape[: x.ndim] == list(x.shape)
    if x.size > 1:
        assert ours.strides[: x.ndim] == list(x.strides)
    assert ctypes.sizeof(PyArrayInterface) == ctypes.sizeof(ours)
    assert not ours.descr


@pytest.mark.parametrize("dtype", TIMES + VOID + RECORDS + TEXT[2:], ids=str)
def test_types_that_the_struct_cannot_describe_lack_the_attribute(dtype):
    u = arrayhub.asarray(sample(dtype))
    with pytest.raises(AttributeError, match="__array_struct__: the protocol cannot represent"):
        _ = u.__array_struct__


# ---- Lifetime ----


def test_array_holds_the_struct_capsule_until_its_last_view_dies():
    before = StructProducer.freed
    said = StructProducer()
    u = struct_in(said)
    view = u[1:]
    del u, said
    assert StructProducer.freed == before
    assert arrayhub.as_numpy(view).tolist() == [0x07060504, 0x0B0A0908]
    del view
    assert StructProducer.freed == before + 1


def test_emitted_capsule_holds_the_array():
    x = np.arange(5.0)
    watch = weakref.ref(x)
    capsule = arrayhub.asarray(x).__array_struct__
    del x
    assert lives(watch)
    assert (ctypes.c_double * 5).from_address(read_struct(capsule).data)[:] == [0, 1, 2, 3, 4]
    del capsule
    assert watch() is None
