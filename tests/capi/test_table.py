"""Test the functions of the C interface, called from C, from C with the limited API, and from C++."""

import gc
import sys
import threading
import weakref

import native_build as build
import numpy as np
import pytest

import arrayhub as ah

F8, F4, F2, BF16, C8 = (2, 64, 1), (2, 32, 1), (2, 16, 1), (4, 16, 1), (5, 64, 1)
I8, I4, I1, U1, BOOL = (0, 64, 1), (0, 32, 1), (0, 8, 1), (1, 8, 1), (6, 8, 1)
C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, IMMUTABLE, WHOLE, PACKED, COPIED = 1, 2, 4, 0x1000, 0x10000, 0x2000, 0x4000
ON_HOST, ON_USM, ON_CUDA, ANYWHERE = 1, 2, 4, 15
MAY_CAST, MAY_RELAYOUT, MAY_TRANSFER, MAY_BUILD = 1, 2, 4, 8
KINDS = {
    "c": ((), build.CC, "-std=c11"),
    "limited": ((build.LIMITED,), build.CC, "-std=c11"),
    "cplusplus": (("-x", "c++"), build.CXX, "-std=c++17"),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return build.shared_folder(tmp_path_factory, "native_c")


def probe_of(folder, kind):
    options, compiler, standard = KINDS[kind]
    name = f"probe_{kind}"
    flags = (*build.STRICT, standard, f"-DNAME={name}", *options)
    return build.load(build.compiled(folder, name, [build.SOURCES / "probe.c"], *flags, compiler=compiler))


@pytest.fixture(scope="session", params=KINDS)
def probe(request, folder):
    return probe_of(folder, request.param)


@pytest.fixture(scope="session")
def c(folder):
    return probe_of(folder, "c")


@pytest.fixture(scope="session")
def queue():
    dpctl = pytest.importorskip("dpctl")
    if not dpctl.get_num_devices():
        pytest.skip("no SYCL device")
    return dpctl.SyclQueue("cpu")


# ------------------------------------------------------------------------------------------------ import of any object


def test_c_import_equals_asarray(probe):
    torch = pytest.importorskip("torch")
    for x in (np.arange(6.0).reshape(2, 3)[::-1], torch.arange(3), b"abc", memoryview(b"abc")):
        a, b = probe.from_object(x), ah.asarray(x)
        assert type(a) is ah.USMArray
        for name in ("ptr", "shape", "byte_strides", "dtype", "access"):
            assert getattr(a, name) == getattr(b, name), name
    a = ah.asarray(np.arange(3))
    assert probe.from_object(a) is a
    assert probe.request(a) is a
    assert probe.check(a) and not probe.check(np.arange(3))
    assert probe.from_object([1.0, 2.0]).is_copy


REFUSED = {
    "None": lambda: None,
    "object": object,
    "objects": lambda: np.array([None]),
    "mask": lambda: np.ma.masked_array([1.0], [True]),
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "an invalid shape": lambda: type(
        "Liar", (), {"__array_interface__": {"shape": (-1,), "typestr": "<f8", "data": (1, False)}}
    )(),
    "gradient": lambda: pytest.importorskip("torch").ones(2, requires_grad=True),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_c_import_raises_the_error_of_asarray(probe, make):
    x = make()
    with pytest.raises(Exception) as python:
        ah.asarray(x)
    with pytest.raises(type(python.value)) as bare:
        probe.from_object(x)
    assert str(bare.value) == str(python.value)
    with pytest.raises(type(python.value)) as named:
        probe.request(x, name="f: x")
    assert str(named.value) == f"f: x: {python.value}"
    assert probe.explain(x, name="f: x") == f"f: x: {python.value}"


def test_struct_fields_describe_the_array(probe):
    x = np.arange(6.0).reshape(2, 3)
    a = ah.asarray(x)
    found = probe.fields(a)
    flags = found.pop("flags")
    assert found == dict(nd=2, data=x.ctypes.data, itemsize=8, dl_dtype=F8, device=(1, 0), usm_type=0)
    assert probe.fields(ah.asarray([1.0]))["flags"] & COPIED
    assert not flags & COPIED


# ------------------------------------------------------------------------------------------------------------ requests


BASE = np.arange(24.0).reshape(2, 3, 4)
INT = np.arange(3)
READ_ONLY = np.frombuffer(bytes(16))
UNALIGNED = np.frombuffer(bytearray(25), "u1")[1:].view("f8")
PACKED_FIELD = np.zeros(3, [("a", "i1"), ("b", "<f8")])["b"]

# For each request: an array that meets it, an array that does not, the request, and the error.
CONDITIONS = {
    "type": (BASE, BASE.astype("f4"), dict(dtypes=(F8,)), TypeError, r"float32; accepted: float64\. Call .*'float64'"),
    "types": (BASE, BASE.astype("i2"), dict(dtypes=(F4, F8)), TypeError, "int16; accepted: float32 or float64"),
    "complex for real": (BASE, np.array([1j]), dict(dtypes=(F8,)), TypeError, "accepted: float64$"),
    "text for real": (BASE, np.array(["a"]), dict(dtypes=(F8,)), TypeError, "accepted: float64$"),
    "times for real": (BASE, np.array(["2020"], "M8[s]"), dict(dtypes=(F8,)), TypeError, "accepted: float64$"),
    "records for real": (BASE, np.zeros(2, "f4,i4"), dict(dtypes=(F8,)), TypeError, "accepted: float64$"),
    "a cast to integers": (INT, np.array([1.5]), dict(dtypes=(I8,), may=MAY_CAST), TypeError, "accepted: int64"),
    "a cast of text": (INT, np.array(["1"]), dict(dtypes=(I8,), may=MAY_CAST), TypeError, "accepted: int64"),
    "fractions as integers": (INT, [1.5], dict(dtypes=(I8,), may=MAY_CAST | MAY_BUILD), TypeError, "accepted: int64"),
    "byte order": (BASE, BASE.astype(">f8"), {}, TypeError, r"other byte order.*native\(\)"),
    "min_nd": (BASE, BASE[0, 0], dict(min_nd=2), ValueError, r"has 1 dimension, shape \(4,\); accepted: 2 or more"),
    "max_nd": (BASE[0], BASE, dict(max_nd=2), ValueError, r"has 3 dimensions, .*accepted: 0 to 2"),
    "exact number of dimensions": (BASE[0], BASE, dict(min_nd=2, max_nd=2), ValueError, "accepted: 2$"),
    "no dimension": (np.array(1.0), BASE, dict(shape=()), ValueError, "accepted: 0$"),
    "shape": (BASE, BASE[:, 1:], dict(max_nd=3, shape=(-1, 3, 4)), ValueError, r"\(2, 2, 4\); accepted: \(any, 3, 4\)"),
    "writable": (BASE, READ_ONLY, dict(flags=WRITEABLE), ValueError, "read-only"),
    "writable bytes": (BASE, bytes(16), dict(flags=WRITEABLE), ValueError, r"writable memory, such as .*\.copy\(\)$"),
    "C order": (BASE, BASE.T, dict(flags=C_CONTIGUOUS), BufferError, r"not C-contiguous.*copy\(\)"),
    "F order": (BASE.T, BASE, dict(flags=F_CONTIGUOUS), BufferError, r"not F-contiguous.*copy\(order='F'\)"),
    "both orders": (BASE[0, 0], BASE, dict(flags=C_CONTIGUOUS | F_CONTIGUOUS), BufferError, "in both orders"),
    "strides in elements": (BASE, PACKED_FIELD, dict(flags=WHOLE, as_is=1), BufferError, r"has byte strides \(9,\)"),
    "alignment": (BASE, UNALIGNED, {}, BufferError, r"unaligned elements; accepted: .*copy\(\)"),
    "USM": (BASE, BASE, dict(where=ON_USM), BufferError, r"is on cpu.*accepted: SYCL USM\. Call .*device='oneapi:0'"),
    "not a list": (BASE, [1.0, 2.0], {}, TypeError, "this list is not an array; accepted: an array"),
    "not a list of floats": (BASE, [1, 2], dict(dtypes=(F8,)), TypeError, r"arrayhub\.asarray\(x, dtype='float64'\)"),
    "not a tuple": (BASE, (1.0, 2.0), {}, TypeError, "this tuple is not an array"),
    "not a number": (BASE, 1.5, {}, TypeError, "this float is not an array"),
    "not a scalar": (BASE, np.float64(1.5), {}, TypeError, r"this numpy\.float64 is not an array"),
    "writable list": (BASE, [1.0, 2.0], dict(flags=WRITEABLE, may=MAY_BUILD), TypeError, "writes would be lost"),
}  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_error_describes_the_condition_that_is_not_met(probe, condition):
    good, bad, wanted, kind, words = CONDITIONS[condition]
    if condition != "USM":
        a = probe.request(good, name="f: x", **wanted)
        assert a.ptr == good.ctypes.data
        assert probe.match(a, **wanted)
        assert probe.explain(good, **wanted) == ""
    with pytest.raises(kind, match=words) as refusal:
        probe.request(bad, name="f: x", **wanted)
    assert isinstance(refusal.value, kind)
    assert isinstance(refusal.value, ah.Refusal)
    assert str(refusal.value).startswith("f: x: this ")
    if refusal.value.call and condition != "USM":
        assert probe.match(eval(refusal.value.call, {"arrayhub": ah, "x": bad}), **wanted)
    assert probe.explain(bad, name="f: x", **wanted) == str(refusal.value)
    assert not probe.match(bad, **wanted)
    if not isinstance(bad, list | tuple | float):
        assert not probe.match(ah.asarray(bad), **wanted)


# For each case, an object, a request that the object does not meet, and the permission that the request needs.
REMEDIES = {
    "cast": (BASE.astype("f4"), dict(dtypes=(F8,)), MAY_CAST),
    "cast to a smaller type": (BASE, dict(dtypes=(F4,)), MAY_CAST),
    "cast in F order": (BASE.astype("f4").T, dict(dtypes=(F8,), flags=F_CONTIGUOUS), MAY_CAST),
    "cast to F order": (BASE.astype("f4"), dict(dtypes=(F8,), flags=F_CONTIGUOUS), MAY_CAST),
    "cast to a type for all values": (BASE.astype("i4"), dict(dtypes=(F4, F8)), MAY_CAST),
    "C order": (BASE.T, dict(flags=C_CONTIGUOUS), MAY_RELAYOUT),
    "F order": (BASE, dict(flags=F_CONTIGUOUS), MAY_RELAYOUT),
    "alignment": (UNALIGNED, {}, MAY_RELAYOUT),
    "byte order": (BASE.astype(">f8"), dict(dtypes=(F8,)), MAY_RELAYOUT),
    "byte order by cast": (BASE.astype(">f4"), dict(dtypes=(F8,)), MAY_CAST),
    "odd strides": (PACKED_FIELD, dict(flags=WHOLE, as_is=1), MAY_RELAYOUT),
    "list": ([[1.0, 2.0]], dict(dtypes=(F8,)), MAY_BUILD),
    "list of another type": ([1, 2], dict(dtypes=(F8,)), MAY_BUILD),
    "list in F order": ([[1.0, 2.0], [3.0, 4.0]], dict(dtypes=(F8,), flags=F_CONTIGUOUS), MAY_BUILD),
    "number": (2, dict(dtypes=(F8,)), MAY_BUILD),
    "cast and byte order": (BASE.astype(">i4").T, dict(dtypes=(F8,), flags=C_CONTIGUOUS), MAY_CAST | MAY_RELAYOUT),
}


@pytest.mark.parametrize("remedy", REMEDIES)
def test_request_applies_only_allowed_conversions(probe, remedy):
    x, wanted, may = REMEDIES[remedy]
    # Both a cast and a relayout convert the byte order.
    either = MAY_CAST | MAY_RELAYOUT if remedy.startswith("byte order") else may
    with pytest.raises((TypeError, BufferError)):
        probe.request(x, **wanted, may=15 & ~either)
    assert probe.explain(x, **wanted, may=may) == ""
    a = probe.request(x, **wanted, may=may)
    assert a.is_copy and probe.match(a, **wanted)
    assert np.array_equal(ah.as_numpy(a), np.asarray(x))
    if wanted.get("dtypes") == (F4, F8):
        assert a.dtype == "f8"  # the first accepted type that represents all values
    before = probe.request(a, **wanted, may=may)
    assert before is a  # an array that meets the request is not copied


# For each case: Python numbers, the accepted types, and the resulting type or the error.
BUILT = {
    "unsigned": ([1, 2], (U1,), "u1"),
    "the range of int8": ([-128, 127], (I1,), "i1"),
    "ones and zeros as bool": ([1, 0], (BOOL,), "?"),
    "empty list": ([], (I8,), "i8"),
    "nested empty lists": ([[], []], (U1,), "u1"),
    "second accepted type": ([300], (I1, I4), "i4"),
    "large numbers for uint64": ([0, 1, 2**40, 2**63], ((1, 64, 1),), "u8"),
    "small numbers for uint64": ([0, 5], ((1, 64, 1),), "u8"),
    "the range of uint32": ([0, 1, 2**32 - 1], ((1, 32, 1),), "u4"),
    "the range of int32": ([-(2**31), 2**31 - 1], (I4,), "i4"),
    "a number": (7, (U1,), "u1"),
    "a scalar": (np.int64(7), (I1,), "i1"),
    "bool as integer": ([True], (I1,), "i1"),
    "integers as floats": ([1], (F4,), "f4"),
    "floats as complex": ([1.5], (C8,), "c8"),
    "infinity": ([np.inf, np.nan], (F4,), "f4"),
    "too large": ([300], (I1,), "300, out of the range of int8; accepted: numbers in the range of int8"),
    "too small": ([-1, 5], (U1,), "-1, out of the range of uint8"),
    "a large scalar": (np.int64(300), (I1,), "300, out of the range of int8"),
    "a large number": (5 * 10**9, (I4,), "5000000000, out of the range of int32"),
    "past the range of int64": ([2**63], (I8,), "9223372036854775808, out of the range of int64"),
    "past the range of each accepted type": ([300], (I1, U1), "300, .*numbers in the range of int8 or uint8"),
    "an integer for bool": ([2], (BOOL,), "2, out of the range of bool"),
    "past 32 bits": ([1, 2**32], ((1, 32, 1),), "4294967296, out of the range of uint32"),
    "a negative integer for uint64": ([-1], ((1, 64, 1),), "-1, out of the range of uint64"),
    "a large float": ([1e300], (F4,), r"1e\+300, out of the range of float32"),
    "a large integer for float16": ([70000], (F2,), "70000, out of the range of float16"),
}


@pytest.mark.parametrize("built", BUILT)
def test_python_numbers_are_converted_to_an_accepted_type_or_rejected(probe, built):
    x, dtypes, outcome = BUILT[built]
    if len(outcome) > 2:
        with pytest.raises(OverflowError, match="^f: x: this .*holds " + outcome):
            probe.request(x, name="f: x", dtypes=dtypes, may=MAY_BUILD)
        return
    for may in (MAY_BUILD, MAY_BUILD | MAY_CAST):
        a = probe.request(x, dtypes=dtypes, may=may)
        assert a.dtype == outcome and np.array_equal(ah.as_numpy(a), np.array(x, outcome), equal_nan=True)


# --------------------------------------------------------------------------------------- the same requests from Python


NAMES = {F8: "float64", F4: "float32", F2: "float16", C8: "complex64", BOOL: "bool"}
NAMES |= {I8: "int64", I4: "int32", I1: "int8", U1: "uint8", (1, 32, 1): "uint32", (1, 64, 1): "uint64"}
PERMISSIONS = {MAY_CAST: "cast", MAY_RELAYOUT: "relayout", MAY_TRANSFER: "transfer", MAY_BUILD: "build"}


def python_request(*, dtypes=(), min_nd=0, max_nd=0, shape=None, flags=0, where=ON_HOST, may=0):
    """Return the `Request` that equals a C request. The C request must not set `as_is` or require both orders."""
    text = f"{{{', '.join(NAMES[dtype] for dtype in dtypes or NAMES)}}}"
    if shape is not None:
        text = "".join("strided * " if length == -1 else f"{length} * " for length in shape) + text
    ndim = None if shape else (min_nd, max_nd or (0 if shape == () else 64))
    return ah.Request(
        text if dtypes or shape else None,
        ndim=None if ndim == (0, 64) else ndim,
        order={C_CONTIGUOUS: "C", F_CONTIGUOUS: "F", 0: None}[flags & (C_CONTIGUOUS | F_CONTIGUOUS)],
        writable=bool(flags & WRITEABLE),
        where={ON_HOST: "host", ON_USM: "usm"}[where],
        may=tuple(word for bit, word in PERMISSIONS.items() if may & bit),
    )


def both_requests():
    """Yield each object of CONDITIONS, REMEDIES and BUILT with each of its requests."""
    for good, bad, wanted, *_ in CONDITIONS.values():
        yield from ((x, wanted) for x in (good, bad))
    for x, wanted, may in REMEDIES.values():
        yield from ((x, {**wanted, "may": permitted}) for permitted in (0, may, 15 & ~may))
    for x, dtypes, _ in BUILT.values():
        yield from ((x, dict(dtypes=dtypes, may=may)) for may in (0, MAY_BUILD, MAY_BUILD | MAY_CAST))


EXPRESSIBLE = [
    (x, wanted)
    for x, wanted in both_requests()
    if not wanted.get("as_is") and wanted.get("flags", 0) & 3 != C_CONTIGUOUS | F_CONTIGUOUS
]


def outcome(request, x):
    """Return the type and text of the error, or the properties of the array. The address of a copy is omitted."""
    try:
        a = request(x)
    except Exception as error:
        return type(error), str(error)
    return a.shape, a.byte_strides, a.dtype, a.access, a.is_copy, None if a.is_copy else a.ptr


@pytest.mark.parametrize("number", range(len(EXPRESSIBLE)))
def test_python_requests_have_the_results_and_errors_of_c_requests(c, number):
    x, wanted = EXPRESSIBLE[number]
    request = python_request(**wanted)
    from_c = outcome(lambda x: c.request(x, name="f: x", **wanted), x)
    assert outcome(lambda x: request.asarray(x, name="f: x"), x) == from_c
    assert request.explain(x) == c.explain(x, **wanted)
    if not isinstance(x, (list, tuple, float, int, np.generic)) and len(from_c) > 2:
        assert request.matches(x) == bool(c.match(ah.asarray(x), **wanted))


def test_python_numbers_are_converted_to_ml_dtypes(probe):
    pytest.importorskip("ml_dtypes")
    assert ah.as_numpy(probe.request([1.5, 2], dtypes=(BF16,), may=MAY_BUILD)).tolist() == [1.5, 2]
    with pytest.raises(OverflowError, match="holds 1000000, out of the range of float8_e4m3fn"):
        probe.request([10**6], dtypes=((10, 8, 1),), may=MAY_BUILD)
    with pytest.raises(OverflowError, match="holds 8, out of the range of int4"):
        probe.request([8], dtypes=((0, 4, 1),), may=MAY_BUILD)
    for infinite in ([np.inf], [np.nan, -np.inf]):
        with pytest.raises(OverflowError, match="inf, out of the range of float8_e4m3fn"):
            probe.request(infinite, dtypes=((10, 8, 1),), may=MAY_BUILD)
    with pytest.raises(TypeError, match="int4") as caught:
        probe.request([1.5], dtypes=((0, 4, 1),), may=MAY_BUILD)
    assert "dtype=" not in str(caught.value)  # asarray(x, dtype="int4") would drop the fraction


def test_writable_request_does_not_copy(probe):
    for x in (BASE.astype("f4"), BASE.T.astype(">f8"), [1.0], READ_ONLY):
        with pytest.raises((TypeError, ValueError, BufferError)):
            probe.request(x, dtypes=(F8,), flags=WRITEABLE | C_CONTIGUOUS, may=15)
    mine = ah.asarray([1.0, 2.0])
    assert probe.request(mine, flags=WRITEABLE) is mine  # a USMArray that is a copy is accepted


def test_copy_made_by_a_producer_is_not_writable(probe):
    from dlpack_by_hand import IS_COPIED, Handmade

    assert probe.request(Handmade(flags=IS_COPIED)).is_copy
    with pytest.raises(TypeError, match="can only be imported as a copy"):
        probe.request(Handmade(flags=IS_COPIED), flags=WRITEABLE)


NONSENSE = {
    "dtypes": dict(ndtypes=2),
    "ndtypes": dict(dtypes=(F8,), ndtypes=-1),
    "min_nd": dict(min_nd=-1),
    "order": dict(min_nd=3, max_nd=2),
    "max_nd": dict(max_nd=65),
    "min_nd above 64": dict(min_nd=65),
    "min_nd beside shape": dict(min_nd=3, shape=()),
    "lengths": dict(max_nd=2, shape=(-2, 1)),
    "negative shape": dict(max_nd=-1, shape=(1,)),
    "flags": dict(flags=1 << 25),
    "where": dict(where=64),
    "may": dict(may=-1),
    "size 0": dict(struct_size=0),
    "negative size": dict(struct_size=-8),
    "huge size": dict(struct_size=1 << 40),
}


@pytest.mark.parametrize("wanted", NONSENSE.values(), ids=NONSENSE.keys())
def test_invalid_request_raises(probe, wanted):
    for ask in (probe.request, probe.explain):
        with pytest.raises(ValueError, match="PyUSMArrayRequest.*accepted"):
            ask(BASE, **wanted)
    assert not probe.match(ah.asarray(BASE), **wanted)
    with pytest.raises(ValueError, match="request is NULL"):
        probe.request_null(BASE)


# Requests that require a copy. `explain` must try the copy to decide whether the request succeeds.
UNSURE = {
    "both orders": (BASE, dict(flags=C_CONTIGUOUS | F_CONTIGUOUS, may=MAY_RELAYOUT)),
    "cast and layout": (BASE.T, dict(dtypes=(F4,), flags=C_CONTIGUOUS, may=MAY_CAST)),
    "cast and byte order": (BASE.astype(">f8"), dict(dtypes=(F4,), may=MAY_CAST)),
    "cast and alignment": (UNALIGNED, dict(dtypes=(F4,), may=MAY_CAST)),
    "cast, both orders": (BASE.astype("f4").T, dict(dtypes=(F8,), flags=F_CONTIGUOUS | C_CONTIGUOUS, may=MAY_CAST)),
    "invalid stream": (BASE, dict(stream="no stream")),
    "to a device": (BASE, dict(where=ON_CUDA, may=MAY_TRANSFER)),
}


@pytest.mark.parametrize("unsure", UNSURE)
def test_explain_returns_the_error_of_the_request(probe, unsure):
    x, wanted = UNSURE[unsure]
    try:
        probe.request(x, **wanted)
        said = ""
    except Exception as error:
        said = str(error)
    assert probe.explain(x, **wanted) == said


TAKE_OBJECTS = (
    "PyUSMArray_FromObject", "PyUSMArray_Request", "PyUSMArray_Explain", "PyUSMArray_ToHost", "PyUSMArray_Convert",
    "PyUSMArray_Like", "PyUSMArray_Like, model", "PyUSMArray_HostReady", "PyUSMArray_Device",
    "PyUSMArray_QueueRef", "PyUSMArray_TypeOfObject",
)  # fmt: skip


@pytest.mark.parametrize("call", TAKE_OBJECTS)
def test_null_object_raises_or_propagates_a_pending_exception(probe, call):
    with pytest.raises(SystemError, match=f"^{call.partition(',')[0]}: the object is NULL"):
        probe.of_null(call, False)
    with pytest.raises(KeyError, match="raised before the call"):
        probe.of_null(call, True)
    assert probe.of_null("PyUSMArray_Match", False) == 0


def test_shorter_and_longer_request_structs_are_accepted(probe):
    """Missing members of a shorter struct are zero. Unknown members of a longer struct must be zero."""
    a = ah.asarray(BASE)
    assert probe.request(a, dtypes=(F8,), flags=C_CONTIGUOUS, struct_size=8 * 4) is a
    assert probe.request_longer(a, 0) is a
    with pytest.raises(ValueError, match=r"struct_size is \d+; accepted: PyUSMArrayRequest_HEAD, .* upgrade arrayhub"):
        probe.request_longer(a, 1)


def test_where_determines_whether_sycl_memory_is_accepted(probe, queue):
    shared, device = (
        ah.USMArray(4, "f8", buffer=kind, buffer_ctor_kwargs={"queue": queue}) for kind in ("shared", "device")
    )
    assert probe.request(shared) is shared
    assert probe.request(device, where=ON_USM) is device
    assert probe.request(device, where=ANYWHERE) is device
    assert probe.request(device, where=ON_HOST | ON_USM) is device
    with pytest.raises(
        BufferError, match=r"f: x: this arrayhub\.USMArray is on oneapi:0.*Call arrayhub\.asarray\(x, device='cpu'\)"
    ):
        probe.request(device, name="f: x")
    cast = dict(dtypes=(F8,), may=MAY_CAST)
    for x, wanted in ((BASE.T, dict(flags=C_CONTIGUOUS)), (BASE.astype("?"), cast), (BASE.astype(">f8"), {})):
        with pytest.raises(ah.Refusal) as raised:
            probe.request(x, where=ON_USM, **wanted)
        assert probe.match(eval(raised.value.call, {"arrayhub": ah, "x": x}), where=ON_USM, **wanted)
    host = probe.request(device, may=MAY_TRANSFER)
    assert host.device.type == "cpu" and host.is_copy
    there = probe.request(np.arange(3.0), where=ON_USM, may=MAY_TRANSFER)
    assert there.usm_type == "device" and ah.to_host(there).shape == (3,)
    with pytest.raises((TypeError, BufferError)):
        probe.request(device, flags=WRITEABLE, may=MAY_TRANSFER)
    assert probe.request(shared, stream=queue).ptr == shared.ptr
    with pytest.raises(TypeError, match="f: x: stream is "):
        probe.request(BASE, name="f: x", stream="no stream")


def syclobj(a):
    return a.__sycl_usm_array_interface__["syclobj"]


def test_transfer_uses_the_context_of_the_requested_queue(probe, queue):
    dpctl = pytest.importorskip("dpctl")
    device = dpctl.SyclDevice("cpu")
    own = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    a = probe.request(np.arange(4.0), where=ON_USM, may=MAY_TRANSFER, stream=own)
    assert syclobj(a).sycl_context == own.sycl_context
    assert own.sycl_context != queue.sycl_context
    assert np.array_equal(ah.as_numpy(ah.to_host(a)), np.arange(4.0))


@pytest.mark.parametrize("kind", ["shared", "host"])
def test_cast_keeps_the_usm_type_and_context(probe, kind):
    dpctl = pytest.importorskip("dpctl")
    device = dpctl.SyclDevice("cpu")
    own = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    x = ah.USMArray(4, "f4", buffer=kind, buffer_ctor_kwargs={"queue": own})
    ah.as_numpy(x)[:] = np.arange(4)
    b = probe.request(x, where=ON_USM, may=MAY_CAST, dtypes=(F8,))
    assert b.usm_type == kind and b.dtype == "f8" and b.is_copy
    assert syclobj(b).sycl_context == own.sycl_context
    assert np.array_equal(ah.as_numpy(b), np.arange(4.0))


def test_memory_of_other_devices_is_rejected_as_host_memory(probe):
    with pytest.raises(ah.Refusal, match="is on rocm:0; accepted: memory that the host can read$") as raised:
        probe.request(probe.make(4096, (3,), owner=None, device=(10, 0)), may=MAY_CAST)
    assert raised.value.call == ""  # nothing can copy this memory
    keys = {"shape": (3,), "typestr": "<f8", "data": (4096, False), "version": 3, "strides": None}
    Cuda = type("Cuda", (), {"__cuda_array_interface__": keys})
    try:
        a = probe.request(Cuda(), where=ON_CUDA)
    except ah.InterfaceError:
        pytest.skip("the CUDA driver rejects this address, which is not allocated")
    assert a.ptr == 4096
    with pytest.raises(BufferError, match="is on cuda:0; accepted: memory that the host can read"):
        probe.request(Cuda())


# ---------------------------------------------------------------------------------------------- arrays of given memory


def test_memory_from_malloc_is_freed_once(probe):
    a = probe.make(None, (2, 3), access=WRITEABLE)
    assert (a.shape, a.dtype, a.access) == ((2, 3), np.dtype("f8"), "readwrite")
    assert a.memory.release_function == "PyUSMArraySpec.release"
    view = ah.as_numpy(a)[1:]
    assert view.sum() == 3
    del a
    assert probe.take_released() == 0
    del view
    assert probe.take_released() == 1


def test_array_over_memory_keeps_its_owner_alive(probe):
    x = np.arange(6.0)
    long = x.astype("g")  # a type without a code of DLPack
    assert ah.as_numpy(probe.make(long.ctypes.data, (6,), typenum=long.dtype.num, owner=long)).tolist() == x.tolist()
    a = probe.make(x.ctypes.data, (3,), byte_strides=(16,), owner=x)
    assert a.base is x and a.access == "readonly" and not a.is_copy
    assert ah.as_numpy(a).tolist() == [0, 2, 4]
    owner = type("Owner", (), {})()
    gone = weakref.ref(owner)
    a = probe.make(x.ctypes.data, (3,), owner=owner, access=IMMUTABLE)
    del owner
    assert gone() is not None and a.access == "immutable"
    del a
    assert gone() is None


def test_release_callback_runs_without_a_pending_exception(probe, monkeypatch):
    arrays = [probe.make(None, (2,), raises=True)]
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(str(unraisable.exc_value)))

    def fail():
        try:
            raise ZeroDivisionError
        finally:
            arrays.clear()

    with pytest.raises(ZeroDivisionError):
        fail()
    probe.make(None, (1,), raises=False)
    assert seen == ["raised by the release function"]
    assert probe.take_released() == 2


def test_release_callback_can_run_in_another_thread(probe):
    arrays = [probe.make(None, (2,)) for _ in range(50)]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert probe.take_released() == 50


SPECS = {
    "null pointer": (0, dict(shape=(3,)), "data is 0"),
    "negative length": (64, dict(shape=(-1,)), r"shape\[0\] is -1"),
    "length overflow": (64, dict(shape=(2**62, 8)), "shape"),
    "strides overflow": (64, dict(shape=(3,), byte_strides=(2**62,)), "strides"),
    "address below zero": (64, dict(shape=(3,), byte_strides=(-64,)), "data"),
    "address overflow": (-64, dict(shape=(3,)), "data"),
    "65 dimensions": (64, dict(shape=(3,), nd=65), "nd is 65"),
    "negative nd": (64, dict(shape=(3,), nd=-1), "nd is -1"),
    "missing shape": (64, dict(shape=None, nd=1), "shape is None"),
    "unknown type code": (64, dict(shape=(3,), dtype=(99, 64, 1)), r"dtype is \(99, 64, 1\)"),
    "several lanes": (64, dict(shape=(3,), dtype=(2, 32, 4)), "dtype is"),
    "unknown typenum": (64, dict(shape=(3,), typenum=999), "typenum is 999"),
    "typenum of strings": (64, dict(shape=(3,), typenum=18), "typenum is 18"),
    "missing type": (64, dict(shape=(3,), dtype=(0, 0, 0)), "dtype is .*USM_ARRAY_BOOL"),
    "lanes without type code": (64, dict(shape=(3,), dtype=(0, 0, 1)), r"dtype is \(0, 0, 1\)"),
    "host device with ordinal 99": (64, dict(shape=(3,), device=(1, 99)), r"device is \(1, 99\)"),
    "device type 0 with ordinal 99": (64, dict(shape=(3,), device=(0, 99)), r"device is \(0, 99\)"),
    "queue, host device": (64, dict(shape=(3,), device=(1, 0), queue=object()), r"device is \(1, 0\).*14"),
    "queue_ref, host device": (64, dict(shape=(3,), device=(1, 0), queue_ref=64), r"device is \(1, 0\).*14"),
    "unknown access flag": (64, dict(shape=(3,), access=2), "access is 2"),
    "packed elements of whole bytes": (
        64,
        dict(shape=(3,), access=PACKED),
        "access is .*PACKED only if elements are smaller than a byte",
    ),
    "packed elements with strides": (
        64,
        dict(shape=(3,), dtype=(0, 4, 1), byte_strides=(1,), access=PACKED),
        "byte_strides is 'given'",
    ),
    "packed length overflow": (64, dict(shape=(2**62, 4), dtype=(0, 4, 1), access=PACKED), "shape"),
    "packed with unknown access flag": (64, dict(shape=(3,), dtype=(0, 4, 1), access=PACKED | 2), "access is 2"),
    "queue of another type": (64, dict(shape=(3,), queue=3), "PyUSMArray_New: queue is 3; accepted: a dpctl.SyclQueue"),
    "queue that is a string": (64, dict(shape=(3,), queue="no device"), "PyUSMArray_New: queue is 'no device'"),
    "unknown device type": (64, dict(shape=(3,), device=(99, 0)), r"device is \(99, 0\)"),
    "negative ordinal": (64, dict(shape=(3,), device=(2, -1)), r"device is \(2, -1\)"),
    "stream on the host": (64, dict(shape=(3,), stream=1), "stream is 1"),
    "negative struct size": (64, dict(shape=(3,), struct_size=-1), "struct_size is -1"),
}


@pytest.mark.parametrize("name", SPECS)
def test_invalid_spec_does_not_take_ownership(probe, name):
    data, given, words = SPECS[name]
    if name in ("queue of another type", "queue that is a string"):
        pytest.importorskip("dpctl")
    spec = dict(given)
    owner = type("Owner", (), {})()
    count = sys.getrefcount(owner)
    with pytest.raises(ValueError, match=words):
        probe.make(data % 2**64, spec.pop("shape"), owner=owner, **spec)
    assert sys.getrefcount(owner) == count
    assert probe.take_released() == 0


def test_elements_smaller_than_a_byte_can_be_packed_or_padded(probe):
    memory = bytearray([0x21, 0x43])
    data = np.frombuffer(memory, "u1").ctypes.data
    packed = probe.make(data, (2, 2), dtype=(0, 4, 1), access=WRITEABLE | PACKED, owner=memory)
    assert packed.nbytes == 2 and probe.fields(packed)["flags"] & PACKED and packed.access == "readwrite"
    assert ah.from_dlpack(packed.__dlpack__(max_version=(1, 1))).nbytes == 2
    single = probe.make(data, (), dtype=(0, 4, 1), access=PACKED, owner=memory)
    assert single.nbytes == 1 and single.access == "readonly"
    padded = probe.make(data, (2,), dtype=(0, 4, 1), owner=memory)
    assert padded.nbytes == 2 and not probe.fields(padded)["flags"] & PACKED


def test_spec_requires_either_owner_or_release(probe):
    with pytest.raises(ValueError, match="owner is NULL, and so is release"):
        probe.make(64, (3,))
    with pytest.raises(ValueError, match="owner is given, and so is release"):
        probe.make(64, (3,), owner=None, both=True)
    with pytest.raises(ValueError, match="spec is NULL"):
        probe.make_null()
    assert probe.make(0, (0,), owner=None).shape == (0,)
    assert probe.take_released() == 0


def test_arrays_over_sycl_memory_are_created_from_c(probe, queue):
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(64, queue=queue)
    address = memory._pointer
    ref = probe.queue_ref(ah.asarray(memory))
    for more in (dict(queue=queue), dict(queue_ref=ref), dict(queue=queue, device=(14, 0)), dict(device=(14, 0))):
        a = probe.make(address, (2, 4), owner=memory, access=WRITEABLE, **more)
        assert (a.usm_type, a.device.type) == ("shared", "oneapi")
        ah.as_numpy(a)[:] = 3
        other = ah.as_dpnp(a)
        assert other.sum() == 24
        assert a.base.sycl_queue.sycl_context == queue.sycl_context
    x = np.zeros(8)
    for pointer, shape in ((x.ctypes.data, (8,)), (address, (1 << 20,))):
        with pytest.raises(ValueError, match="USM of the queue's context"):
            probe.make(pointer, shape, owner=memory, queue=queue)
    with pytest.raises(ValueError, match="PyUSMArray_New: queue is"):
        probe.make(address, (8,), owner=memory, queue=object())
    with pytest.raises(BufferError, match="not a SYCL device"):
        probe.make(address, (8,), owner=memory, device=(14, 77))
    with pytest.raises(ValueError, match="14 with a queue"):
        probe.make(address, (8,), owner=memory, queue=queue, device=(2, 0))


# ------------------------------------------------------------------------------------------------------------ look-ups


def test_device_and_queue_of_an_array_are_returned(probe, queue):
    assert probe.device(ah.asarray(BASE)) == (1, 0)
    a = ah.USMArray(4, "f8", buffer="device", buffer_ctor_kwargs={"queue": queue})
    assert probe.device(a) == a.device.dlpack
    assert probe.queue_ref(a) == probe.queue_ref(a) != 0
    assert probe.host_ready(a) is None and probe.host_ready(ah.asarray(BASE)) is None
    assert probe.to_host(a).device.type == "cpu" and probe.to_host(BASE).ptr == BASE.ctypes.data
    with pytest.raises(BufferError, match="not SYCL USM"):
        probe.queue_ref(ah.asarray(BASE))
    for call in (probe.device, probe.queue_ref, probe.host_ready):
        with pytest.raises(TypeError, match="is not a USMArray"):
            call(BASE)


def test_element_types_are_found_by_object_number_and_dlpack_type(probe):
    torch = pytest.importorskip("torch")
    double = ("float64", F8, 12, 8, 8)
    spellings = ("f8", "float64", float, np.dtype("f8"), np.float64, torch.float64)
    assert all(probe.type_of_object(spelling) == double for spelling in spellings)
    assert probe.type_of_number(12) == probe.type_of_dlpack(*F8) == double
    assert (
        probe.type_of_object(torch.bfloat16) == probe.type_of_object("bfloat16") == ("bfloat16", (4, 16, 1), 4096, 2, 2)
    )
    names = {probe.type_of_number(number)[0] for number in (np.dtype("l").num, np.dtype("q").num)}
    assert names == {"int64"}
    assert probe.type_of_number(np.dtype("g").num)[1][0] == 255
    for call, args in (
        (probe.type_of_number, (99,)),
        (probe.type_of_dlpack, (2, 64, 2)),
        (probe.type_of_dlpack, (99, 8, 1)),
    ):
        with pytest.raises(ValueError, match="accepted"):
            call(*args)
    for what in ("no type", object(), ">f8", [("a", ">f8")], "O", None, "torch.float3"):
        with pytest.raises(TypeError, match="^PyUSMArray_TypeOfObject: "):
            probe.type_of_object(what)
    for what in ("M8[s]", "M8[25us]", "m8[D]", "S3", "U2", "f4,i4", "S", "longdouble"):
        name, dlpack, _, itemsize, alignment = probe.type_of_object(what)
        dtype = np.dtype(what)
        assert (name, dlpack[0], itemsize, alignment) == (dtype.name, 255, dtype.itemsize, dtype.alignment)


def test_convert_and_like_return_arrays_of_libraries(probe):
    torch = pytest.importorskip("torch")
    a = probe.make(None, (3,), access=WRITEABLE)
    assert isinstance(probe.convert(a, "numpy"), np.ndarray)
    t = probe.convert(a, "torch")
    assert t.data_ptr() == a.ptr
    for library in ("no library", None):
        with pytest.raises(ValueError, match="accepted: (numpy|the name of a library)"):
            probe.convert(a, library)
    assert type(probe.like(a, torch.zeros(1))) is torch.Tensor
    assert type(probe.like(a, torch.nn.Parameter(torch.zeros(1)))) is torch.Tensor
    assert type(probe.like(a, [1.0])) is np.ndarray
    assert probe.like(a, ah.asarray(BASE)) is a
    read_only = probe.make(None, (3,))
    with pytest.raises(BufferError):
        probe.like(read_only, t)
    assert probe.like(read_only, t, True).tolist() == [1, 1, 1]
    for model in (object(), None):
        with pytest.raises(TypeError, match="the model .*accepted: an array of numpy, torch"):
            probe.like(a, model)


# ------------------------------------------------------------------------------------- no references or memory are lost


MODELS = {
    "polars": lambda pl: pl.Series([1.0]),
    "pyarrow": lambda pa: pa.array([1.0]),
    "pandas": lambda pd: pd.Series([1.0]),
    "awkward": lambda ak: ak.Array([1.0]),
    "jax": lambda jax: jax.numpy.zeros(2),
    "xarray": lambda xr: xr.DataArray(np.zeros(2)),
    "dpnp": lambda dpnp: dpnp.zeros(2),
}


@pytest.mark.parametrize("library", MODELS)
def test_like_accepts_models_of_each_library(c, library):
    model = MODELS[library](pytest.importorskip(library))
    result = c.like(ah.asarray(np.arange(3, dtype="f4")), model, True)
    assert isinstance(result, type(model).__base__ if library == "pyarrow" else type(model))
    assert ah.to_host(result).tolist() == [0, 1, 2]


@pytest.mark.slow
def test_repeated_calls_do_not_leak_references_or_memory(c):
    x = np.arange(3.0)
    bad = x.astype("f4")

    def all_of_it():
        c.request(x, dtypes=(F8,))
        c.request(bad, dtypes=(F8,), may=MAY_CAST)
        c.explain(bad, name="f: x", dtypes=(F8,))
        c.make(None, (3,), access=WRITEABLE)
        c.type_of_object("f8")
        c.like(x, x)
        for call in (lambda: c.request(bad, name="f", dtypes=(F8,)), lambda: c.make(0, (3,), owner=x)):
            try:
                call()
            except (TypeError, ValueError):
                pass
            else:
                raise AssertionError

    c.take_released()
    for _ in range(20):
        all_of_it()
    gc.collect()
    references, blocks = sys.getrefcount(x), sys.getallocatedblocks()
    for _ in range(500):
        all_of_it()
    gc.collect()
    assert sys.getrefcount(x) == references
    assert sys.getallocatedblocks() - blocks < 300  # less than one block per call of all_of_it
    assert c.take_released() == 520


# -------------------------------------------------------------------------------- extensions of older and newer headers


@pytest.fixture(scope="session")
def old(folder):
    """Return an extension that is compiled against the header of version 1."""
    (folder / "v1").mkdir(exist_ok=True)
    (folder / "v1" / "arrayhub.h").write_text((build.SOURCES / "arrayhub_v1.h").read_text())
    source = build.SOURCES / "old.c"
    return build.load(build.compiled(folder, "old", [source], "-std=c11", *build.STRICT, includes=(folder / "v1",)))


def test_extension_of_header_version_1_runs(old):
    assert old.address(ah.asarray(BASE)) == BASE.ctypes.data
    with pytest.raises(TypeError, match="no USMArray"):
        old.address(BASE)


def test_new_arrays_get_memory_of_the_models_library(probe):
    for model in (np.zeros(3, "f4"), ah.zeros(3)):
        x = probe.make(0, (4, 5), model=model)
        assert (x.shape, x.dtype, x.device, x.access) == ((4, 5), "f8", "cpu", "readwrite")
        assert isinstance(x.base, np.ndarray)
    assert probe.make(0, (), dtype=(1, 8, 1), model=np.zeros(3)).dtype == "u1"
    with pytest.raises(TypeError, match="asarray"):
        probe.make(0, (3,), model=object())


def test_new_usm_is_on_the_queue_of_the_model(probe, dpctl):
    device = dpctl.SyclDevice()
    queue = dpctl.SyclQueue(dpctl.SyclContext(device), device)
    model = ah.empty(3, memory="usm_shared", device=queue)
    x = probe.make(0, (4,), model=model)
    assert x.usm_type == "shared" and x.base.sycl_queue == queue


@pytest.mark.parametrize(
    "options",
    [
        dict(data=4096), dict(owner=1), dict(byte_strides=(8,)), dict(device=(2, 0)), dict(stream=1),
        dict(access=IMMUTABLE), dict(nd=65),
    ],
    ids=str,
)  # fmt: skip
def test_spec_with_a_model_rejects_members_that_describe_memory(probe, options):
    with pytest.raises(ah.InterfaceError, match=f"PyUSMArray_New: {next(iter(options))} "):
        probe.make(shape=(3,), model=np.zeros(3), **{"data": 0, **options})


def newer_header():
    """Return the header of a future version, in which four structs have additional members at their ends."""
    text = (build.Path(build.INCLUDE) / "arrayhub.h").read_text()
    newer = text.replace("#define ARRAYHUB_C_VERSION 3", "#define ARRAYHUB_C_VERSION 4")
    newer = newer.replace("} PyUSMArrayAPI;", "    int (*not_yet)(void);\n} PyUSMArrayAPI;")
    for struct in ("PyUSMArrayRequest", "PyUSMArraySpec", "PyUSMArrayElement"):
        newer = newer.replace(f"}} {struct};", f"    Py_ssize_t not_yet[2];\n}} {struct};")
    assert newer.count("not_yet") == 4
    return newer


@pytest.fixture(scope="session")
def newer(folder):
    (folder / "v3").mkdir(exist_ok=True)
    (folder / "v3" / "arrayhub.h").write_text(newer_header())
    return folder / "v3"


def test_extension_of_a_newer_header_without_new_functions_runs(folder, newer):
    path = build.compiled(folder, "probe_newer", [build.SOURCES / "probe.c"], "-DNAME=probe_newer", includes=(newer,))
    module = build.load(path)
    assert module.request(BASE, dtypes=(F8,)).ptr == BASE.ctypes.data
    assert module.make(None, (2,)).shape == (2,)
    assert module.type_of_object("f8") == ("float64", F8, 12, 8, 8)


LANGUAGES = {
    "C": (build.CC, "-std=c11"),
    "C++11": (build.CXX, "-x", "c++", "-std=c++11", "-O0"),
    "C++14": (build.CXX, "-x", "c++", "-std=c++14", "-O0"),
    "C++17": (build.CXX, "-x", "c++", "-std=c++17", "-O0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("limited", [(), (build.LIMITED,)], ids=["whole API", "limited"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_source_file_of_an_extension_imports_the_api(folder, language, limited):
    """The first call in each source file sets the pointer to the function table.

    In C++17, the files share one inline variable. Otherwise, each file has a static pointer. The calls run in new
    processes, because a pointer is NULL only until the first call. Without optimization, the linker keeps only one of
    the two files' copies of an inline function.
    """
    compiler, *standard = LANGUAGES[language]
    sources = [build.SOURCES / "two_files_a.c", build.SOURCES / "two_files_b.c"]
    there = folder / f"two_{language}_{len(limited)}"
    there.mkdir(exist_ok=True)
    path = build.compiled(there, "two_files", sources, *build.STRICT, *standard, *limited, compiler=compiler)
    program = "import sys, numpy; sys.path.insert(0, sys.argv[1]); import two_files; print(two_files.nd({}))"
    done = build.python(program.format("[[1]]"), str(path.parent))
    assert (done.returncode, done.stdout) == (1, "") and "not an array" in done.stderr
    done = build.python(program.format("numpy.eye(2)"), str(path.parent))
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_extension_that_requires_a_newer_arrayhub_raises(folder, newer):
    flags = ("-DNAME=probe_newest", "-DARRAYHUB_TARGET_VERSION=4")
    module = build.load(build.compiled(folder, "probe_newest", [build.SOURCES / "probe.c"], *flags, includes=(newer,)))
    for call in (module.from_object, module.request, module.to_host, module.device):
        with pytest.raises(ImportError, match=r"compiled for version 4 .*upgrade arrayhub"):
            call(BASE)


TABLE = """
import ctypes, sys, types
sys.path.insert(0, sys.argv[1])
size = int(sys.argv[2])
import probe_c
# Simulate an arrayhub whose function table has `size` bytes and only NULL pointers.
words = (ctypes.c_ssize_t * 64)()
words[0], words[1], words[3], words[4] = 2, 4096, size, 16
ctypes.cast(words, ctypes.POINTER(ctypes.py_object))[2] = object
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
name = b"arrayhub._core.descriptor._C_API"
for part in ("arrayhub", "arrayhub._core", "arrayhub._core.descriptor"):
    sys.modules[part] = types.ModuleType(part)
sys.modules["arrayhub"]._core = sys.modules["arrayhub._core"]
sys.modules["arrayhub._core"].descriptor = sys.modules["arrayhub._core.descriptor"]
sys.modules["arrayhub._core.descriptor"]._C_API = new(ctypes.addressof(words), name, None)
for call in (probe_c.from_object, probe_c.request, probe_c.device, probe_c.convert):
    try:
        call(*([], "numpy")[: 2 if call is probe_c.convert else 1])
    except ImportError as error:
        assert "upgrade arrayhub" in str(error), error
    else:
        raise SystemExit("no ImportError")
assert not probe_c.check([])
"""


@pytest.mark.parametrize("size", [0, 40, 100, 4096])
def test_short_or_empty_function_table_raises_import_error(folder, c, size):
    done = build.python(TABLE, folder, size)
    assert done.returncode == 0, done.stderr


# Programs that import the module `probe_c` and must exit normally.
PROGRAMS = {
    "arrayhub is not imported first": """
assert "arrayhub" not in sys.modules
import array
assert probe_c.from_object(array.array("d", [1.0])).shape == (1,)
assert "arrayhub" in sys.modules
""",
    "arrayhub is missing": """
sys.modules["arrayhub"] = None
try:
    probe_c.from_object(b"")
except ImportError:
    pass
else:
    raise SystemExit(1)
""",
    "arrays are alive at the end of the process": """
kept = probe_c.make(None, (3,))
import arrayhub
view = arrayhub.as_numpy(kept)
loop = [kept]
loop.append(loop)
sys.kept = loop
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs_that_use_the_c_interface_exit_normally(folder, c, program):
    done = build.python("import sys; sys.path.insert(0, sys.argv[1]); import probe_c\n" + program, folder)
    assert done.returncode == 0, done.stderr
