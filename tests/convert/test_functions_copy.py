"""Test `is_copy`, and the argument `copy` of each function that accepts it."""

import re

import numpy as np
import pytest
from dlpack_by_hand import IS_COPIED, Handmade

import arrayhub as ah

AS = (ah.as_numpy, ah.as_torch, ah.as_jax, ah.as_numba)
COPIES = {
    "a list": lambda x: ah.asarray([1.0, 2.0]),
    "a tuple": lambda x: ah.asarray((1.0, 2.0)),
    "a number": lambda x: ah.asarray(3),
    "a NumPy scalar": lambda x: ah.asarray(np.float32(3)),
    "copy=True": lambda x: ah.asarray(x, copy=True),
    "copy=True of a list": lambda x: ah.asarray([1.0], copy=True),
    "another type": lambda x: ah.asarray(x, dtype="f4"),
    "copy()": lambda x: ah.asarray(x).copy(),
    "to_host": lambda x: ah.to_host(x, copy=True),
    "to_device": lambda x: ah.to_device(x, "cpu", copy=True),
    "native": lambda x: ah.asarray(x.astype(">f8")).native(),
    "from_array": lambda x: ah.from_array(x),
    "from_dlpack": lambda x: ah.from_dlpack(x, copy=True),
    "a copy made by the producer": lambda x: ah.asarray(Handmade(flags=IS_COPIED), copy=None),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES.keys())
def test_is_copy_is_true_for_copies_and_their_views(make):
    a = make(np.arange(4.0))
    assert a.is_copy
    assert a[...].is_copy and a.T.is_copy and a.reshape(-1).is_copy
    assert ah.asarray(a) is a
    assert ah.asarray(a, copy=False) is a  # is_copy does not mean that this call copies


def test_copies_are_imported_with_a_stream():
    """With `stream`, the result is a new USMArray of the same memory."""
    dpctl = pytest.importorskip("dpctl")
    x = ah.to_device(np.arange(3.0), dpctl.SyclQueue())
    assert x.is_copy
    for call in (ah.asarray, ah.from_dlpack, lambda x, **named: ah.asarray(x, dtype="f8", device=x.device, **named)):
        assert call(x, stream=dpctl.SyclQueue(), copy=False).ptr == x.ptr


@pytest.mark.parametrize(
    "make",
    [
        ah.asarray,
        ah.to_host,
        ah.from_dlpack,
        memoryview,
        lambda x: ah.asarray(x, dtype="f8"),
        lambda x: ah.asarray(x, device="cpu"),
        lambda x: ah.asarray(x)[1:],
        lambda x: ah.asarray(x).T,
        lambda x: ah.asarray(x).native(),
        lambda x: ah.USMArray(3, buffer="cpu"),
        lambda x: ah.zeros((2, 3), "f8"),
        lambda x: ah.as_numpy(ah.asarray([1.0, 2.0])),  # `asarray` views the ndarray that `as_numpy` returns
    ],
)
def test_is_copy_is_false_for_views_of_other_arrays(make):
    assert not ah.asarray(make(np.arange(4.0))).is_copy


@pytest.mark.parametrize("library", ["torch", "jax", "dpnp", "numba", "arrow", "polars", "awkward", "array_api_strict"])
@pytest.mark.parametrize(
    "make", [lambda: np.arange(3, dtype=">f4"), lambda: ah.asarray(np.arange(6, dtype=">i2"))[::2]]
)
def test_copies_for_other_libraries_have_native_byte_order(library, make):
    pytest.importorskip({"arrow": "pyarrow"}.get(library, library))
    x = make()
    with pytest.raises(BufferError):
        ah.convert(x, library)
    for copy in (True, None) if library != "dpnp" else (True,):  # only True moves the memory to a device
        made = ah.asarray(ah.convert(x, library, copy=copy))
        assert made.dtype.isnative and made.to_host().tolist() == x.tolist()


def test_copies_for_numpy_keep_the_byte_order():
    x = np.arange(3, dtype=">i4")
    assert ah.as_numpy(x, copy=True).dtype == ah.asarray(x, copy=True).dtype == ">i4"
    with pytest.raises(BufferError, match=r"Call arrayhub\.asarray\(x\)\.native\(\)$"):
        ah.asarray(x).__dlpack__()
    assert np.from_dlpack(ah.asarray(x), copy=True).tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [(4, 3), (1, 1)])
def test_pil_images_that_pillow_does_not_share_are_imported_as_copies(size):
    pil = pytest.importorskip("PIL.Image")
    image = pil.new("1", size)
    assert ah.asarray(image, copy=None).is_copy
    assert ah.as_numpy(image, copy=None).shape == size[::-1]
    for call in (*AS, ah.asarray):
        with pytest.raises(BufferError, match="the image can only be copied; .*; accepted: copy=None"):
            call(image, copy=False)
    ah.asarray(image, copy=True)[...] = True


@pytest.mark.parametrize(
    ("look", "is_copy"),
    [
        (lambda kept: kept, False),
        (dict, False),
        (lambda kept: dict(kept, data=bytes(3)), True),
        (lambda kept: dict(kept, data=bytearray(3)), True),
        (lambda kept: dict(kept, data=memoryview(kept["data"])), False),
    ],
    ids=["one dict", "a new dict", "new bytes", "a new bytearray", "a new view"],
)
def test_new_bytes_in_a_dict_count_as_a_copy(look, is_copy):
    kept = {"shape": (3,), "typestr": "|u1", "version": 3, "data": bytearray(b"abc")}

    class Producer:
        @property
        def __array_interface__(self):
            return look(kept)

    assert ah.asarray(Producer(), copy=None).is_copy == is_copy
    assert ah.asarray(Producer(), via="array_interface", copy=None).is_copy == is_copy


class Lender:
    """A producer that holds bytes in an attribute, and creates a new interface dict on each access."""

    def __init__(self, data):
        self.data = data

    @property
    def __array_interface__(self):
        return {"shape": (len(self.data),), "typestr": "|u1", "version": 3, "data": self.data}


class Slotted:
    __slots__ = ("data",)
    __init__ = Lender.__init__
    __array_interface__ = Lender.__array_interface__


@pytest.mark.parametrize("data", [b"", b"a", b"\0", b"ab", bytearray(), bytearray(b"a"), bytearray(b"ab")], ids=repr)
@pytest.mark.parametrize("cls", [Lender, Slotted])
def test_bytes_held_by_the_producer_are_not_a_copy(cls, data):
    """CPython caches bytes objects of length 0 and 1. Such objects do not count as new bytes."""
    x = ah.asarray(cls(data), copy=False)
    assert not x.is_copy
    assert x.tobytes() == data


def test_copy_true_copies_the_array_of_a_wrapper():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(np.arange(3.0))
    assert ah.asarray(x, copy=True).ptr != x.data.ctypes.data
    inner = ah.asarray([1.0, 2.0])
    outer = xarray.NamedArray(("x",), inner)
    assert ah.asarray(outer, copy=False).ptr == inner.ptr
    assert ah.asarray(outer, copy=True).ptr != inner.ptr


@pytest.mark.parametrize("copy", ["no", "", 1, 0, np.array(True), [], "IF_NEEDED", "if_needed"])
def test_invalid_values_of_copy_raise(copy):
    x = np.arange(3.0)
    a = ah.asarray(x)
    others = [lambda x, copy: ah.convert(x, "numpy", copy=copy), lambda x, copy: ah.to_device(x, "cpu", copy=copy)]
    for call in (*AS, ah.asarray, ah.asnested, ah.from_dlpack, ah.to_host, *others):
        with pytest.raises(TypeError, match="copy is .*accepted: True, False or None"):
            call(x, copy=copy)
    methods = [a.to_host, a.native, a.aligned, a.__dlpack__, a.to_numpy, lambda copy: a.to_device("cpu", copy=copy)]
    kept = [lambda copy: ah.USMArray(3, "u1", bytearray(3), buffer_ctor_kwargs={"copy": copy})]
    for method in (*methods, *kept, lambda copy: a.astype("f4", copy=copy)):
        with pytest.raises(TypeError, match="accepted: True, False or None"):
            method(copy=copy)


def test_copy_accepts_numpy_bools():
    x = np.arange(3.0)
    assert ah.as_numpy(x, copy=np.True_).ctypes.data != x.ctypes.data
    assert ah.asarray(x, copy=np.False_).ptr == x.ctypes.data
    assert ah.asarray(x, copy=np.True_).is_copy


# ---------------------------------------------------------------------------------------------------------------- jax


@pytest.mark.parametrize("value", [np.array([2**40 + 7]), np.array([1e300]), np.array([1e300j])], ids=str)
def test_as_jax_rejects_64_bit_types_without_enable_x64(value):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(False):
        for copy in (False, True):
            with pytest.raises(BufferError, match="jax_enable_x64") as raised:
                ah.as_jax(value, copy=copy)
            assert "copy=True" not in str(raised.value)
        assert ah.explain(value, to="jax").verdicts[0].verdict == "cannot"
    narrow = ah.as_jax(ah.asarray(np.array([7]), dtype="i4"), copy=True)
    assert narrow.tolist() == [7]


@pytest.mark.parametrize("copy", [False, True])
def test_error_for_types_missing_in_jax_does_not_suggest_a_copy(copy):
    pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    x = torch.zeros(3, dtype=torch.complex32)
    with pytest.raises(BufferError, match=r"jax: elements of type complex32 are not supported") as raised:
        ah.as_jax(x, copy=copy)
    assert raised.value.call == "arrayhub.as_jax(x, dtype='complex64')"
    assert eval(raised.value.call, {"arrayhub": ah, "x": x}).dtype == "complex64"
    backwards = np.zeros(4, "f4")[::-1]
    with pytest.raises(BufferError, match=r"as_jax\(x, copy=True\)"):
        ah.as_jax(backwards)
    assert ah.as_jax(backwards, copy=True).shape == (4,)


# -------------------------------------------------------------------------------------------------------------- numba


TYPES = ["V4", "V0", "f2,f8", "g,f8", "f2", "g", "G", ">f8", ">f8,f8", "M8[ps],f8", "bfloat16", "complex32"]


@pytest.mark.parametrize("to", ["numba", "jax", "torch", "arrow", "polars", "pandas", "awkward"])
@pytest.mark.parametrize("dtype", [*TYPES, "V4,f8", "V0,f8"])
def test_calls_suggested_by_conversion_errors_work(dtype, to):
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    x = np.zeros(3, getattr(pytest.importorskip("ml_dtypes"), dtype, dtype))
    for copy in (False, True):
        try:
            ah.convert(x, to, copy=copy)
        except BufferError as error:
            if error.call:
                made = eval(error.call, {"arrayhub": ah, "x": x})
                assert {len(column) for column in (made.values() if isinstance(made, dict) else [made])} == {3}


@pytest.mark.parametrize("to", ["numpy", "torch", "arrow", "polars", "pandas", "xarray", "arrayhub", "pyarrow.Table"])
def test_error_texts_contain_one_call(to):
    pa, torch = pytest.importorskip("pyarrow"), pytest.importorskip("torch")
    for library in {"polars", "pandas", "xarray"} & {to}:
        pytest.importorskip(library)
    made = [
        np.arange(3)[::-1], np.zeros(2, [("a", "f4"), ("b", "i8")]), np.array(["a"]), np.ma.array([1, 2], mask=[0, 1]),
        pa.chunked_array([[1], [2]]), pa.table({"a": [1, None], "b": [True, False]}), pa.array([1], pa.date32()),
        pa.array([[1], [2, 3]]), pa.array(["a", None]), pytest.importorskip("scipy.sparse").csr_array(np.eye(2)),
        torch.eye(2).to_sparse(), torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.cfloat).conj(),
    ]  # fmt: skip
    errors = []
    for x in made:
        for options in ({}, {"copy": True}, {"dtype": "f4"}, {"missing": 0}):
            try:
                ah.convert(x, pa.Table if to == "pyarrow.Table" else to, **options)
            except (BufferError, TypeError, ValueError, OverflowError) as error:
                errors.append(error)
    assert len(errors) > 3 and all(isinstance(error, ah.Refusal) for error in errors)
    advice = r"[;.] (?:call|Call|Use|use|pass|Pass) "
    assert [str(error) for error in errors if len(re.findall(advice, str(error))) > 1] == []
