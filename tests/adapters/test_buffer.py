"""Test PEP 3118: requests with every combination of flags, exporters of the standard library, and invalid exporters."""

import array
import ctypes
import io
import pickle
import sys
from multiprocessing import shared_memory

import exporters
import ml_dtypes
import numpy as np
import pytest
from children import python
from exporters import PyBuffer, get_buffer, release_buffer

import arrayhub
from arrayhub._core.errors import InterfaceError

_testbuffer = pytest.importorskip("_testbuffer", reason="CPython was built without its test modules")

SIMPLE, WRITABLE, FORMAT, ND, STRIDES, INDIRECT = 0, 0x1, 0x4, 0x8, 0x18, 0x118
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS = 0x38, 0x58, 0x98
FULL_RO = INDIRECT | FORMAT
REQUESTS = [
    shape | form | access
    for shape in (SIMPLE, ND, STRIDES, INDIRECT, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS)
    for form in (0, FORMAT)
    for access in (0, WRITABLE)
]


def take(obj):
    return arrayhub.asarray(obj, via="buffer")


# ---- Export: requests ----

# Shape, byte strides and byte offset of views of twelve 4-byte integers.
LAYOUTS = {
    "C": ((3, 4), (16, 4), 0), "F": ((3, 4), (4, 12), 0), "sliced": ((3, 2), (16, 8), 0),
    "negative": ((3, 4), (-16, -4), 44), "broadcast": ((3, 4), (0, 4), 0), "length 1": ((1, 1), (4, 4), 0),
    "1-d": ((5,), (4,), 0), "1-d, sliced": ((5,), (8,), 0), "0-d": ((), (), 0), "empty": ((0, 3), (12, 4), 0),
}  # fmt: skip


def laid_out(layout, writable=True):
    shape, strides, offset = LAYOUTS[layout]
    x = np.ndarray(shape, "i4", np.arange(12, dtype="i4"), offset, strides)
    x.flags.writeable = writable
    return x


def seen_through(exporter, request):
    """Return the Py_buffer fields that `exporter` returns for `request`, or "BufferError" if it raises one."""
    try:
        view = _testbuffer.ndarray(exporter, getbuf=request)
    except BufferError:
        return "BufferError"
    return {
        name: getattr(view, name) for name in ("readonly", "ndim", "shape", "strides", "format", "itemsize", "nbytes")
    }


def judge(layout, writable):
    """Return an array of CPython's `_testbuffer` with the layout, or a memoryview if the layout is empty."""
    shape, strides, offset = LAYOUTS[layout]
    if 0 in shape:
        return memoryview(laid_out(layout, writable))
    flags = _testbuffer.ND_WRITABLE if writable else 0
    if shape == ():
        return _testbuffer.ndarray(0, shape=[], format="i", flags=flags)
    return _testbuffer.ndarray(list(range(12)), shape=shape, strides=strides, offset=offset, format="i", flags=flags)


@pytest.mark.parametrize("writable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("request_", REQUESTS, ids=hex)
def test_buffer_requests_return_the_same_fields_as_cpythons_exporter(request_, layout, writable):
    u = arrayhub.asarray(laid_out(layout, writable))
    assert seen_through(u, request_) == seen_through(judge(layout, writable), request_)


@pytest.mark.parametrize(
    ("request_", "layout", "words"),
    [
        (WRITABLE, "C", "writable buffer of a read-only array was requested; call x.copy()"),
        (ND, "sliced", "a buffer without strides"),
        (C_CONTIGUOUS, "F", "a C-contiguous buffer"),
        (F_CONTIGUOUS, "C", "a Fortran-contiguous buffer"),
        (ANY_CONTIGUOUS, "sliced", "a contiguous buffer"),
        (FORMAT, "C", "PyBUF_FORMAT was requested without PyBUF_ND"),
    ],
)
def test_buffer_errors_name_the_unsupported_request(request_, layout, words):
    with pytest.raises(BufferError, match=words):
        _testbuffer.ndarray(arrayhub.asarray(laid_out(layout, writable=request_ != WRITABLE)), getbuf=request_)


def test_py_buffer_has_correct_fields_and_references():
    """The fields and references of the Py_buffer are correct while the view exists and after its release."""
    x = np.arange(12, dtype="i4").reshape(3, 4)[::-1]
    u, view = arrayhub.asarray(x), PyBuffer()
    count = sys.getrefcount(u)
    assert get_buffer(u, view, FULL_RO) == 0
    assert (view.buf, view.obj, view.len, view.itemsize) == (u.ptr, id(u), 48, 4)
    assert (view.ndim, view.readonly, view.format) == (2, 0, b"i")
    assert (view.shape[:2], view.strides[:2], bool(view.suboffsets)) == ([3, 4], [-16, 4], False)
    assert sys.getrefcount(u) == count + 1
    release_buffer(view)
    assert sys.getrefcount(u) == count
    assert get_buffer(u, view, STRIDES) == 0
    assert view.format is None
    release_buffer(view)


@pytest.mark.parametrize("dtype", ["i4", [("a", "i1"), ("b", ">f8")]], ids=str)
def test_views_can_be_released_in_any_order(dtype):
    """Test a common format string, and an unusual one, which each view copies."""
    u = arrayhub.asarray(np.zeros(3, dtype))
    count = sys.getrefcount(u)
    views = [memoryview(u) for _ in range(10)]
    assert len({view.format for view in views}) == 1
    while views:
        views.pop(len(views) // 2).release()
    assert sys.getrefcount(u) == count


def test_read_only_stays_read_only():
    u = arrayhub.asarray(bytearray(4))
    u.flags.writeable = False
    assert memoryview(u).readonly
    with pytest.raises(TypeError, match="not writable"):
        (ctypes.c_char * 4).from_buffer(u)
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(b"abcd").readinto(u)


def test_functions_that_read_bytes_accept_contiguous_arrays():
    u = arrayhub.asarray(np.arange(3, dtype="<u2"))
    assert bytes(u) == bytearray(u) == b"\0\0\1\0\2\0"
    assert io.BytesIO(b"\5\0\6\0\7\0").readinto(u) == 6
    assert memoryview(u).tolist() == [5, 6, 7]
    assert b"".join([u, u]) == b"\5\0\6\0\7\0" * 2
    with pytest.raises(BufferError):
        io.BytesIO().write(arrayhub.asarray(laid_out("sliced")))


def test_empty_export_has_a_non_null_pointer():
    for source in (np.zeros((0, 3)), b"", np.zeros((3, 0), "S5")):
        view = PyBuffer()
        assert get_buffer(arrayhub.asarray(source), view, FULL_RO) == 0
        assert view.buf
        assert view.len == 0
        release_buffer(view)


def unaligned(dtype):
    return np.zeros(2 * np.dtype(dtype).itemsize + 1, "u1")[1:].view(dtype)


@pytest.mark.parametrize(
    ("dtype", "aligned", "packed"),
    [("?", "?", "?"), ("i2", "h", "=h"), ("i4", "i", "=i"), ("i8", "l", "=q"), ("u8", "L", "=Q"), ("f8", "d", "=d"),
     ("c8", "Zf", "=Zf"), ("g", "g", "^g"), (">i4", ">i", ">i"), (">f8", ">d", ">d"), ("S5", "5s", "5s"), ("U7",
      "7w", "=7w")],
)  # fmt: skip
def test_exported_format_depends_on_the_alignment(dtype, aligned, packed):
    assert memoryview(arrayhub.asarray(np.zeros(2, dtype))).format == aligned
    u = arrayhub.asarray(unaligned(dtype))
    assert memoryview(u).format == packed
    assert np.asarray(memoryview(u)).dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[s]", ">g", "V6", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn], ids=str)
def test_types_without_a_format_are_exported_only_as_bytes(dtype):
    x = np.zeros(3, dtype)
    u = arrayhub.asarray(x)
    with pytest.raises(BufferError):
        memoryview(u)
    assert b"".join([u]) == x.tobytes()
    assert np.asarray(u).dtype == x.dtype
    assert np.shares_memory(np.asarray(u), x)


# ---- Import: the exporters of the standard library ----


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what Python 3.16 removes
@pytest.mark.parametrize("typecode", array.typecodes)
def test_array_array_is_imported(typecode):
    source = array.array(typecode, "abc" if typecode in "uw" else [1, 2, 3])
    u = take(source)
    assert (u.itemsize, u.shape, u.access, u.base) == (source.itemsize, (3,), "readwrite", source)
    assert u.ptr == source.buffer_info()[0]
    assert arrayhub.as_numpy(u).tolist() == source.tolist()
    if typecode not in "uw":
        assert u.dtype == np.dtype({"Zf": "F", "Zd": "D"}.get(typecode, typecode))  # new in CPython 3.15


@pytest.mark.parametrize("format", "?bBhHiIlLqQnNfdPc")
def test_cast_memoryviews_are_imported(format):
    u = take(memoryview(bytearray(16)).cast(format))
    assert u.dtype == np.dtype({"n": "p", "N": "P", "c": "S1"}.get(format, format))
    assert u.nbytes == 16


def test_memoryviews_of_several_layouts_are_imported():
    source = bytearray(range(24))
    u = take(memoryview(source).cast("B", (4, 6)))
    assert (u.shape, u.byte_strides) == ((4, 6), (6, 1))
    u = take(memoryview(source)[20::-3])
    assert (u.byte_strides, arrayhub.as_numpy(u).tolist()) == ((-3,), list(range(20, -1, -3)))
    assert (u.memory.kind, u.memory.nbytes) == ("buffer", 19)
    released = memoryview(source)
    released.release()
    with pytest.raises(BufferError, match="memoryview: .*released"):
        take(released)


@pytest.mark.parametrize(
    ("make", "access"),
    [
        (lambda: memoryview(memoryview(b"abcd")[::2]), "immutable"),
        (lambda: memoryview(bytearray(4)).toreadonly(), "readonly"),
        (lambda: pickle.PickleBuffer(bytearray(4)), "readwrite"),
        (lambda: io.BytesIO(b"abcd").getbuffer(), "readwrite"),
    ],
)
def test_access_follows_the_exporter(make, access):
    u = take(make())
    assert (u.access, str(u.device), u.protocol) == (access, "cpu", "buffer")
    assert memoryview(u).readonly == (access != "readwrite")


def test_released_shared_memory_is_rejected():
    shared = shared_memory.SharedMemory(create=True, size=64)
    shared.close()
    shared.unlink()
    with pytest.raises(BufferError, match=r"\.SharedMemory: buf is None, so the memory was released"):
        arrayhub.asarray(shared)


def test_a_bytearray_cannot_be_resized_while_a_view_lives():
    source = bytearray(8)
    u = take(source)
    view = u[2:]
    del u
    with pytest.raises(BufferError):
        source.extend(b"x")
    del view
    source.extend(b"x")


class Padded(ctypes.Structure):
    _fields_ = [("a", ctypes.c_byte), ("b", ctypes.c_int), ("c", ctypes.c_byte)]


class Packed(ctypes.Structure):
    _pack_, _layout_ = 1, "ms"  # the layout that Python 3.14 wants to be named
    _fields_ = [("a", ctypes.c_byte), ("b", ctypes.c_double)]


class Foreign(ctypes.BigEndianStructure if sys.byteorder == "little" else ctypes.LittleEndianStructure):
    _fields_ = (("a", ctypes.c_uint16), ("b", ctypes.c_int))


class Either(ctypes.Union):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]


class Nested(ctypes.Structure):
    _fields_ = [("one", Padded), ("two", Packed), ("many", ctypes.c_short * 3)]


class Bits(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int, 3), ("b", ctypes.c_int, 5)]


class AfterBits(Bits):
    _fields_ = [("c", ctypes.c_int)]


class Pointers(ctypes.Structure):
    _fields_ = [("a", ctypes.POINTER(ctypes.c_int))]


@pytest.mark.parametrize("structure", [Padded, Packed, Foreign, Either, Nested], ids=lambda s: s.__name__)
def test_dtype_of_ctypes_structures_comes_from_the_ctypes_type(structure):
    """The buffer format of a structure can omit trailing padding, or be 'B' for an item size of nine bytes."""
    for source, shape in ((structure(), ()), ((structure * 2)(), (2,)), (((structure * 2) * 3)(), (3, 2))):
        for exporter in (source, memoryview(source)):
            u = take(exporter)
            assert (u.dtype, u.shape) == (np.dtype(structure), shape)
            assert u.nbytes == ctypes.sizeof(source)
            assert u.ptr == ctypes.addressof(source)


class Derived(Padded):
    """For Derived and Flush, ``numpy.dtype`` omits the fields of the base class, and moves the others to the start."""

    _fields_ = [("d", ctypes.c_double), ("e", ctypes.c_byte)]


class Flag(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint8)]


class Flush(Flag):
    """The fields after the base class have the same size as the structure if they are moved to its start."""

    _fields_ = [("b", ctypes.c_uint8), ("c", ctypes.c_uint16)]


class Alias(Flush):
    pass


@pytest.mark.parametrize("structure", [Derived, Flush, Alias], ids=lambda s: s.__name__)
def test_ctypes_structures_have_the_fields_of_their_base_classes(structure):
    names = [name for cls in reversed(structure.__mro__) for name, _ in vars(cls).get("_fields_", ())]
    source = (structure * 2)(tuple(range(1, 1 + len(names))), tuple(range(11, 11 + len(names))))
    n = arrayhub.as_numpy(take(source))
    assert n.dtype.names == tuple(names)
    for name in names:
        assert n[name].tolist() == [getattr(item, name) for item in source]
    n[names[-1]] = 7
    assert getattr(source[1], names[-1]) == 7


def test_ctypes_structure_fields_have_their_values():
    source = (Foreign * 2)(Foreign(1, 2), Foreign(3, 4))
    assert arrayhub.as_numpy(take(source)).tolist() == [(1, 2), (3, 4)]
    arrayhub.as_numpy(take(source))["b"][1] = 5
    assert source[1].b == 5


@pytest.mark.parametrize(
    ("source", "dtype", "shape"),
    [
        (ctypes.c_int(3), "i4", ()),
        ((ctypes.c_double * 0)(), "f8", (0,)),
        (((ctypes.c_double * 2) * 3)(), "f8", (3, 2)),
        ((ctypes.c_char * 4)(), "S1", (4,)),
        (ctypes.c_longdouble(1), "g", ()),
        (ctypes.c_bool(True), "?", ()),
        ((ctypes.c_void_p * 2)(3), "P", (2,)),
        ((ctypes.c_int.__ctype_be__ * 2)(), ">i4", (2,)),
        (memoryview((ctypes.c_ubyte * 4)()).cast("B").cast("c"), "S1", (4,)),
        *(
            ((getattr(ctypes, name) * 3)(), code, (3,))
            for name, code in (("c_float_complex", "F"), ("c_double_complex", "D"), ("c_longdouble_complex", "G"))
            if hasattr(ctypes, name)  # CPython 3.14, where the C library has complex numbers
        ),
        (memoryview((Packed * 2)()).cast("B"), "u1", (18,)),
    ],
)
def test_ctypes_simple_types_are_imported(source, dtype, shape):
    u = take(source)
    assert (u.dtype, u.shape) == (np.dtype(dtype), shape)


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_wchar) != 4, reason="wide characters have two bytes here")
def test_ctypes_wide_characters_are_imported():
    source = ctypes.create_unicode_buffer("añ€", 4)
    assert arrayhub.as_numpy(take(source)).tolist() == ["a", "ñ", "€", ""]
    structure = type("Texts", (ctypes.Structure,), {"_fields_": [("n", ctypes.c_byte), ("text", ctypes.c_wchar * 3)]})
    assert arrayhub.as_numpy(take((structure * 2)((1, "añ"), (2, "€"))))["text"].tolist() == [
        ["a", "ñ", ""],
        ["€", "", ""],
    ]


@pytest.mark.parametrize(
    "source",
    [
        Bits(),
        AfterBits(),
        Pointers(),
        ctypes.py_object(1),
        ctypes.pointer(ctypes.c_int(1)),
        ctypes.c_void_p(3),
        ctypes.CFUNCTYPE(None)(),
        (ctypes.c_char_p * 2)(),
    ],
    ids=lambda source: type(source).__name__,
)
def test_ctypes_pointers_bit_fields_and_objects_are_rejected(source):
    with pytest.raises((InterfaceError, TypeError), match=r"accepted|numpy\.ctypeslib\.as_array"):
        take(source)


def test_objects_without_a_buffer_are_rejected():
    for source in (3, "text", object(), [1], None, int):
        with pytest.raises((TypeError, InterfaceError)):
            take(source)


# ---- Import: wrong descriptions, and memory that strides cannot describe ----


def test_error_for_suboffsets_suggests_a_working_call():
    """An object with suboffsets and another protocol is imported through the other protocol."""
    x = _testbuffer.ndarray(list(range(12)), shape=[3, 4], format="i", flags=_testbuffer.ND_PIL)
    call = r"numpy\.array\(memoryview\(x\)\.tolist\(\), memoryview\(x\)\.format\)"
    with pytest.raises(BufferError, match=rf"suboffsets\[0\] is 0; accepted: memory without suboffsets.*{call}"):
        take(x)
    named = np.array(memoryview(x).tolist(), memoryview(x).format)
    assert arrayhub.asarray(named).tolist() == x.tolist() and named.dtype == "i4"
    rows = exporters.exporter(suboffsets=[0])
    type(rows).__array_interface__ = named.__array_interface__
    assert arrayhub.asarray(rows).protocol == "array_interface"


def test_ctypes_characters_round_trip():
    x = arrayhub.asarray(ctypes.create_string_buffer(b"abc"))
    view = memoryview(x)
    assert (bytes(x), view.format, view.tolist()) == (b"abc\0", "c", [b"a", b"b", b"c", b"\0"])
    assert np.asarray(x).tolist() == [b"a", b"b", b"c", b""]
    assert memoryview(arrayhub.asarray(np.array([b"a"]))).format == "1s"
    record = np.zeros(2, [("a", "c"), ("b", "i1")])
    assert np.asarray(arrayhub.asarray(record)).dtype == record.dtype


@pytest.mark.parametrize("format", ["i", "<h", ">d", "=q", "3s", "x", "?", "hi", "@bq", "<bq"])
def test_formats_of_cpythons_testbuffer_are_imported(format):
    source = _filled(format)
    u = take(source)
    assert arrayhub.as_numpy(u).tobytes() == source.tobytes()
    assert u.itemsize == source.itemsize
    assert u.shape == (2,)


def _filled(format):
    item = {"3s": b"abc", "x": (), "hi": (1, 2), "@bq": (1, 2), "<bq": (1, 2)}.get(format, 1)
    return _testbuffer.ndarray([item, item], shape=[2], format=format)


LIES = [
    {"ndim": -1}, {"ndim": 65, "shape": [1] * 65, "strides": [4] * 65}, {"ndim": 2**31 - 1}, {"ndim": 2, "shape": None},
    {"shape": [-1]}, {"shape": [2**62]}, {"shape": [2**63 - 1]}, {"shape": [-(2**63)]}, {"shape": [4]},
    {"shape": [4], "strides": None},
    {"len": 8}, {"len": -1}, {"len": 0}, {"itemsize": 0}, {"itemsize": -4}, {"itemsize": 2}, {"itemsize": 8},
    {"itemsize": 2**62},
    {"strides": [2**62]}, {"strides": [2**63 - 1]}, {"strides": [-(2**63)]}, {"buf": None}, {"buf": 2**64 - 8},
    {"ndim": 2, "shape": [2**32, 2**32], "strides": [4, 4]},
    {"ndim": 3, "shape": [2**31, 2**31, 2**31], "strides": None},
    {"suboffsets": [0]}, {"suboffsets": [8]}, {"suboffsets": [2**62]},
    {"format": None}, {"format": None, "itemsize": 0}, {"format": b""}, {"format": b"@"}, {"format": b"T{"},
    {"format": b"T{i:a:"},
    {"format": b"T{}"}, {"format": b"Zq"}, {"format": b"O"}, {"format": b"z"},
    {"format": b"9999999999999999999999i"}, {"format": b"\xff"},
    {"format": b"(2"}, {"format": b"(99999999999,99999999999)i"}, {"format": b"(-1)i"}, {"format": b"T{" * 5000},
    {"format": b"&i"},
    {"format": b"i:a"}, {"format": b"ii"}, {"format": b"h"}, {"format": b"d"}, {"format": b"4"},
    {"format": b"i" * 100_000},
]  # fmt: skip


@pytest.mark.slow
def test_invalid_exporters_raise_and_their_buffer_is_released():
    """A separate process runs all cases, because the exporters describe invalid memory."""
    script = f"""
        import gc
        from exporters import exporter
        import arrayhub
        from arrayhub._core.errors import InterfaceError
        cases = {LIES!r}
        for case in cases:
            source = exporter(**case)
            try:
                print("TAKEN", case, arrayhub.asarray(source, via="buffer"))
            except (InterfaceError, TypeError, BufferError) as error:
                assert str(error), case
            assert type(source).released == 1, (case, type(source).released)
        print(len(cases))
    """
    assert python(script) == f"{len(LIES)}\n"


@pytest.mark.slow
def test_unusual_valid_exporters_are_imported():
    script = """
        import arrayhub
        from exporters import exporter
        def take(**fields):
            return arrayhub.asarray(exporter(**fields), via="buffer")
        u = take(strides=None)
        assert u.byte_strides == (4,) and arrayhub.as_numpy(u)[1] == 0x07060504
        assert take(format=None, itemsize=1, shape=[12], strides=[1]).dtype == "u1"
        assert take(suboffsets=[-1]).shape == (3,)
        u = take(ndim=0, shape=None, strides=None, len=4)
        assert u.shape == () and arrayhub.as_numpy(u) == 0x03020100
        assert take(shape=[0], len=0, buf=None).size == 0
        assert take(readonly=1).access == "readonly"
        assert take(len=64).shape == (3,)
        one = exporter()
        u = arrayhub.asarray(one, via="buffer")
        views = [u[1:], memoryview(u), u.T]
        del u
        assert type(one).released == 0
        del views
        assert type(one).released == 1
        print("well")
    """
    assert python(script) == "well\n"


def test_data_attribute_equals_numpys_data_attribute():
    a = arrayhub.asarray(np.arange(6.0).reshape(2, 3).T)
    ours, theirs = a.data, np.asarray(a).data
    assert type(ours) is memoryview
    assert (ours.shape, ours.strides, ours.format, ours.readonly) == (
        theirs.shape,
        theirs.strides,
        theirs.format,
        False,
    )
    assert ours == theirs
    with pytest.raises(AttributeError, match="data: .*bfloat16"):
        _ = arrayhub.asarray(np.zeros(3, ml_dtypes.bfloat16)).data
