"""Test methods and attributes as in ndarray: view, ravel, astype, flatten, ctypes, flags, and assignment."""

import ctypes
import gc
import inspect
import re
import sys
import typing
import warnings

import ml_dtypes
import numpy as np
import pytest
from pickled_arrays import packed_int4

import arrayhub as ah


def outcome(function, *args, **kwargs):
    """Return the layout and values of the result of a call, or "refused" for ValueError and TypeError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a = function(*args, **kwargs)
    except (ValueError, TypeError):
        return "refused"
    a = np.asarray(a)
    steps = [step for step, length in zip(a.strides, a.shape, strict=True) if length > 1 and a.size]
    return a.dtype, a.shape, steps, a.tobytes()


BASE = np.arange(24, dtype="i2").reshape(2, 3, 4)
ONE = np.array(5, "i2")
VIEWS = [BASE, BASE.T, BASE[::-1], BASE[:, :, ::2], BASE[:, :, :1], BASE[..., :0], ONE, BASE[1:, None]]


@pytest.mark.parametrize(
    "dtype", ["u1", "i2", ">i2", "f4", "c16", "S2", "V6", "M8[s]", "i1,i1", ml_dtypes.bfloat16, "(2,)u1", "(1,2)i1"]
)
@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_view_as_another_type_equals_numpy(number, dtype):
    a = VIEWS[number]
    x = ah.asarray(a)
    assert outcome(x.view, dtype) == outcome(a.view, dtype)
    if outcome(x.view, dtype) != "refused":
        view = x.view(dtype)
        assert (view.ptr, view.memory, view.access) == (x.ptr, x.memory, x.access)
        assert view.dtype == np.dtype(dtype).base


def test_views_of_the_same_shape_keep_dims():
    x = ah.asarray(BASE).with_dims("IJK")
    assert x.view("u2").dims == x.view().dims == ("I", "J", "K")
    assert x.view("u1").dims is None
    assert x.view("(2,)u1").dims is None


@pytest.mark.parametrize("wrong", [np.ndarray, np.matrix, object, "nonsense", "O"])
def test_invalid_view_types_raise(wrong):
    with pytest.raises(TypeError):
        ah.asarray(BASE).view(wrong)


def test_errors_for_packed_elements_name_the_called_method():
    x = packed_int4()
    calls = {
        "flatten": x.flatten,
        "flatten F": lambda: x.flatten("F"),
        "ravel": x.ravel,
        "ravel F": lambda: x.ravel("F"),
        "reshape": lambda: x.reshape(5, 1),
        "reshape F": lambda: x.reshape(5, 1, order="F"),
        "align": lambda: x.with_dims("I").align("I"),
    }
    for name, call in calls.items():
        with pytest.raises(BufferError, match=f"^{name.split()[0]}: 4-bit elements packed into shared bytes cannot be"):
            call()
    for order in "CF":
        assert x.astype(x.dtype, order=order).typenum == x.typenum
        with pytest.raises(BufferError, match="^astype: elements smaller than a byte"):
            x.astype("i1", order=order)


def test_device_memory_is_viewed_as_another_type():
    pytest.importorskip("dpctl")
    x = ah.USMArray((2, 3), "f8", buffer="device")
    view = x.view("f4")
    assert (view.shape, view.strides, view.ptr, view.usm_type) == ((2, 6), (6, 1), x.ptr, "device")
    assert view.base is x.base


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("a", [BASE, BASE[0].T, BASE[:, 0, 0], BASE[..., :0], ONE, BASE[::-1, ::-1, ::-1]])
def test_flatten_copies_and_ravel_views(a, order):
    x = ah.asarray(a)
    flat = x.flatten(order)
    assert flat.tolist() == a.flatten(order).tolist()
    assert flat.is_copy and flat.shape == (a.size,)
    if (a.ndim, order) in {(3, "F"), (2, "C")} and a.size:
        with pytest.raises(BufferError, match=r"^ravel: .* cannot be viewed as one dimension; call flatten\(\), which"):
            x.ravel(order)
    else:
        assert x.ravel(order).tolist() == flat.tolist() and x.ravel(order).memory is x.memory
    with pytest.raises(ValueError, match="ravel: order is 'X'; accepted"):
        x.ravel("X")
    with pytest.raises(ValueError, match="reshape: order is 'K'; accepted: 'C', 'F' or 'A'"):
        x.reshape(-1, order="K")


def test_order_k_is_the_order_of_the_memory_as_in_numpy():
    repeated = np.broadcast_to(BASE, (2, *BASE.shape))
    for a in (BASE.transpose(2, 0, 1), BASE.transpose(1, 0, 2)[:, ::-1], BASE[::-1].T, BASE[:, ::2].T, repeated):
        assert ah.asarray(a).flatten("K").tolist() == a.flatten("K").tolist()
    assert ah.asarray(BASE.transpose(2, 0, 1)).ravel("K").ptr == BASE.ctypes.data


@pytest.mark.parametrize("shape", [(-1,), (6, 4), (4, 6), (2, 1, 12), (3, 8, 1)])
@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("a", [BASE, BASE.T, BASE[:, ::-1], BASE[0], ONE])
def test_reshape_with_an_order_equals_numpy(a, order, shape):
    x = ah.asarray(a)
    if a.size != 24:
        shape = (-1,)
    wanted = a.reshape(shape, order=order)
    if np.shares_memory(wanted, a):
        view = x.reshape(shape, order=order)
        assert view.memory is x.memory and view.tolist() == wanted.tolist()
        assert x.reshape(*shape, order=order).byte_strides == view.byte_strides
        return
    with pytest.raises(BufferError, match=r"reshape: .* call copy\(") as refusal:
        x.reshape(shape, order=order)
    named = x.copy(order="F") if "copy(order='F')" in str(refusal.value) else x.copy()
    assert named.reshape(shape, order=order).tolist() == wanted.tolist()


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("a", [BASE[0], BASE[0].T, BASE[0, ::-1], ONE])
@pytest.mark.parametrize("dtype", ["f4", "i2", ml_dtypes.bfloat16, ">u8"])
def test_astype_equals_numpy(a, order, dtype):
    x = ah.asarray(a).astype(dtype, order)
    expected = a.astype(dtype, order)
    assert x.is_copy and x.dtype == dtype and x.flags.writeable
    np.testing.assert_array_equal(np.asarray(x), expected)
    if order != "K":
        assert x.byte_strides == expected.strides


def test_astype_copies_and_casts_as_in_numpy():
    x = ah.asarray(BASE)
    assert x.astype("i2", copy=False) is x
    assert x.astype("i2").ptr != x.ptr
    with pytest.raises(TypeError, match="casting='safe' forbids"):
        x.astype("u1", casting="safe")


def test_ctypes_attribute_of_host_memory_has_the_address_and_strides():
    a = np.arange(4.0)
    x = ah.asarray(a)
    assert x.ctypes.data == a.ctypes.data
    assert tuple(x[::-2].ctypes.strides) == (-16,)
    x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[1] = 9.0
    assert a[1] == 9.0


def test_ctypes_attribute_of_device_memory_raises():
    pytest.importorskip("dpctl")
    x = ah.USMArray(3, "f8", buffer="device")
    assert not hasattr(x, "ctypes")
    for name, why in {
        "ctypes": "the memory is on oneapi:0, which the host cannot read",
        "data": "the host cannot read this memory",
    }.items():
        with pytest.raises(AttributeError, match=rf"^{name}: {why}; call arrayhub\.to_host\(x\)$"):
            getattr(x, name)
        assert hasattr(ah.to_host(x), name)


@pytest.mark.parametrize("name", ["ctypes", "data"])
def test_attributes_that_require_whole_bytes_raise_for_packed_elements(name):
    with pytest.raises(AttributeError, match=f"^{name}: elements smaller than a byte"):
        getattr(packed_int4(), name)


FLAGS = ["C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY", "FNC", "FORC", "BEHAVED", "CARRAY"]
SYNONYMS = ["C", "F", "W", "A", "X", "B", "CA", "CONTIGUOUS", "FORTRAN"]


@pytest.mark.parametrize("a", [*VIEWS, np.zeros(3), np.frombuffer(b"ab", "u1"), np.zeros(9, "u1")[1:].view("f8")])
def test_flags_equal_numpy(a):
    ours, theirs = ah.asarray(a).flags, a.flags
    for key in FLAGS + SYNONYMS:
        assert ours[key] is theirs[key], key
    for name in ("contiguous", "fortran", "fnc", "forc", "behaved", "carray", "writebackifcopy"):
        assert getattr(ours, name) is getattr(theirs, name), name
    # NumPy's farray is also True for aligned or writable arrays that are not Fortran-contiguous.
    assert ours["FARRAY"] is ours.farray is (ours.behaved and ours.fnc)
    assert ours.num == theirs.num & ~4  # OWNDATA
    assert ours["OWNDATA"] is ours["O"] is ours.owndata is False


def test_only_the_writeable_flag_can_be_cleared():
    x = ah.asarray(np.zeros(2))
    for name in ("c_contiguous", "f_contiguous", "aligned"):
        with pytest.raises(AttributeError):
            setattr(x.flags, name, not getattr(x.flags, name))
    x.flags["WRITEABLE"] = False
    assert x.access == "readonly"
    with pytest.raises(ValueError, match="copy"):
        x.flags["WRITEABLE"] = True
    with pytest.raises(ValueError, match="accepted: 'WRITEABLE'"):
        x.flags["ALIGNED"] = False
    with pytest.raises(KeyError, match="'U' is not the name of a flag"):
        x.flags["U"]


# ------------------------------------------------------------------------------------ methods of NumPy that compute


def test_class_has_its_attributes_and_nothing_else():
    """A name that only raises an error is not an attribute of the class."""
    names = [name for name in dir(ah.USMArray) if not name.startswith("_")]
    assert len(names) <= 50
    assert dir(ah.asarray(BASE)) == dir(ah.USMArray)
    absent = [name for name in names if not hasattr(ah.asarray(BASE), name)]
    assert absent == []


def test_unknown_attribute_raises_plain_error():
    x = ah.asarray(BASE)
    with pytest.raises(
        AttributeError, match=r"^'arrayhub\.array\.usm_array\.USMArray' object has no attribute 'foo'$"
    ) as info:
        x.foo  # noqa: B018
    assert (info.value.name, info.value.obj) == ("foo", x)
    assert getattr(x, "foo", 1) == 1
    for name in ("__array_namespace__", "__array_function__", "__array_ufunc__", "__jax_array__", "__torch_function__"):
        assert not hasattr(x, name)


def test_errors_of_properties_keep_their_text():
    """The AttributeErrors of properties name the reason, and lookup on the type finds the property."""
    x = ah.asarray(BASE)
    with pytest.raises(AttributeError, match=r"^__cuda_array_interface__: "):
        x.__cuda_array_interface__  # noqa: B018
    with pytest.raises(AttributeError, match=r"^__usm_ndarray__: the memory is not SYCL USM"):
        x.__usm_ndarray__  # noqa: B018
    assert hasattr(ah.USMArray, "__cuda_array_interface__") and not hasattr(x, "__cuda_array_interface__")


INSTEAD = {  # suggested replacements for attributes of ndarray
    "fill": "x[...] = value",
    "setflags": "x.flags['WRITEABLE'] = False",
    "resize": "numpy.resize(x, shape)",
    "itemset": "x[index] = value",
    "newbyteorder": "x.view(x.dtype.newbyteorder())",
    "ptp": "numpy.ptp(x)",
    "tostring": "x.tobytes()",
}


@pytest.mark.parametrize("name", sorted({name for name in dir(np.ndarray) if not name.startswith("_")} | set(INSTEAD)))
def test_each_ndarray_attribute_exists_or_its_error_suggests_a_call(name):
    x = ah.asarray(BASE.copy())
    if name in dir(x):
        assert getattr(x, name) is not None
        return
    call = INSTEAD.get(name, f"arrayhub.as_numpy(x).{name}")
    with pytest.raises(AttributeError, match=f"^{name}: .*use {re.escape(call)}(, which copies)?$"):
        getattr(x, name)
    exec(call, {"arrayhub": ah, "numpy": np, "x": x, "value": 1, "index": (0, 0, 0), "shape": (2, 2)})


LIBRARIES = ("arrow", "awkward", "cupy", "dpnp", "jax", "numba", "numpy", "pandas", "polars", "scipy", "torch")
OTHERS = {  # attributes of tensors and of SYCL arrays
    **{f"{prefix}{name}": f"arrayhub.as_{name}(x)" for name in LIBRARIES for prefix in ("", "as_")},
    "cuda": "arrayhub.to_device(x, 'cuda:0')",
    "explain": "arrayhub.explain(x)",
    "nd": "x.ndim",
    "numel": "x.size",
    "sycl_queue": "x.base.sycl_queue",
    "to_list": "x.tolist()",
    "usm_data": "x.base",
    "values": "arrayhub.as_numpy(x)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_errors_for_attributes_of_other_libraries_suggest_a_call(name):
    x = ah.asarray(BASE)
    assert not hasattr(x, name) and not hasattr(ah.USMArray, name) and name not in dir(x)
    with pytest.raises(
        AttributeError, match=f"^{name}: USMArray does not have this attribute; use {re.escape(OTHERS[name])}$"
    ) as info:
        getattr(x, name)
    assert (info.value.name, info.value.obj) == (name, x)


def test_introspection_does_not_find_absent_attributes():
    """`typing.runtime_checkable` looks attributes up by `inspect.getattr_static` from CPython 3.12 on."""

    @typing.runtime_checkable
    class Tensor(typing.Protocol):
        def numpy(self): ...

    x = ah.asarray(BASE)
    assert not isinstance(x, Tensor) and not issubclass(ah.USMArray, Tensor)
    assert inspect.getattr_static(x, "numpy", None) is None
    assert "numpy" not in dict(inspect.getmembers(ah.USMArray))
    assert not any("numpy" in vars(base) for base in ah.USMArray.__mro__)


def test_missing_attributes_and_methods_use_the_interpreters_caches():
    """CPython caches the lookup of methods only for classes with the default slot for attributes."""
    slots = {cls: ctypes.cast(id(cls), ctypes.POINTER(ctypes.c_void_p)) for cls in (object, ah.USMArray)}
    default = ctypes.cast(ctypes.pythonapi.PyObject_GenericGetAttr, ctypes.c_void_p).value
    (slot,) = (k for k in range(32) if slots[object][k] == default)
    assert slots[ah.USMArray][slot] == default


WITHOUT_A_SIZE = [
    np.array([1.5, -2.25]),
    np.arange(3),
    np.array(["a", "bcd"]),
    np.array([b"ab", b""]),
    np.array(["2020-01-01"]),
    np.array(7),
    np.array(["2020-01-01T12", "NaT"], "M8[ns]"),
    np.array([True, False]),
    np.zeros((2, 0)),
    np.array(["xy"], ">U3"),
]


@pytest.mark.parametrize("dtype", [str, bytes, "U", "S", "V", "M8", "m8"])
@pytest.mark.parametrize("a", WITHOUT_A_SIZE, ids=lambda a: str(a.dtype))
def test_astype_infers_a_missing_size_or_unit_as_numpy(a, dtype):
    """A dtype such as 'S' or 'M8' does not specify the size or the unit of the result."""
    x = ah.asarray(a)
    expected = outcome(a.astype, dtype)
    assert outcome(x.astype, dtype) == outcome(ah.asarray, a, dtype=dtype) == expected
    if expected != "refused":
        copied = a.astype(dtype, copy=False) is not a
        assert (x.astype(dtype, copy=False) is not x) == copied
        assert (ah.asarray(a, dtype=dtype).ptr != a.ctypes.data) == copied


# ------------------------------------------------------------------------------------------------------- assignment


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (..., 7), (..., np.arange(4, dtype="i2")), ((0, slice(None, None, -1)), np.arange(12).reshape(3, 4)),
        ((1, 2, 3), 300), ((slice(None), 0), [[1, 2, 3, 4]] * 2), ((..., None), np.ones((2, 3, 4, 1), "u1")),
        (slice(0, 0), 1), (0, True),
    ],
)  # fmt: skip
def test_assignment_equals_numpy(key, value):
    a, b = BASE.copy(), BASE.copy()
    a[key] = value
    ah.asarray(b)[key] = value
    np.testing.assert_array_equal(a, b)


def test_arrays_of_other_libraries_can_be_assigned():
    torch = pytest.importorskip("torch")
    a = np.zeros((2, 3))
    x = ah.asarray(a)
    x[0] = torch.arange(3)
    x[1] = ah.asarray(np.array([5.0]))
    assert a.tolist() == [[0, 1, 2], [5, 5, 5]]
    x[...] = x[::-1, ::-1]  # source and target overlap
    assert a.tolist() == [[5, 5, 5], [2, 1, 0]]


@pytest.mark.parametrize("fields", [["f0", "f2"], ["f1"], ["f2", "f3"]])
@pytest.mark.parametrize("value", [0, slice(None), slice(None, None, -1)])
def test_copies_do_not_write_other_fields_of_the_records(fields, value):
    dtype = [("f0", "u1"), ("f1", "i4"), ("f2", [("x", "i2"), ("y", "S3")]), ("f3", ">f8", (2,))]
    records = np.frombuffer(bytes(range(78)), dtype)
    expected, assigned, out, seen = records.copy(), records.copy(), records.copy(), []
    expected[fields] = given = np.broadcast_to(records[fields][value], 3)
    x = ah.asarray(assigned[fields])
    x[...] = x[value]
    ah.to_host(given, out=out[fields], progress=lambda *done: seen.append(done))
    assert assigned.tobytes() == out.tobytes() == expected.tobytes() and seen == [(given.nbytes, given.nbytes)]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_like_objects_are_assigned_as_arrays_of_bytes(kind):
    a = np.zeros(2)
    ah.asarray(a)[...] = kind(b"51")
    assert a.tolist() == [53.0, 49.0]


@pytest.mark.parametrize("shape", [(4, 3), (4,), (2, 2, 2)])
def test_views_of_one_array_are_assigned_as_in_numpy(shape):
    """A column, a row and an element are copied. The right side is a view, as in NumPy, so a swap needs a copy."""
    expected = np.arange(np.prod(shape)).reshape(shape)
    x = ah.asarray(expected.copy())
    last = (slice(None),) * (len(shape) - 1)
    for target, source in [((0,), (1,)), ((*last, 0), (*last, 1)), ((-1,), (0,))]:
        expected[target] = expected[source]
        x[target] = x[source]
        assert np.array_equal(np.asarray(x), expected)
    x[0], x[1] = x[1].copy(), x[0].copy()
    expected[[0, 1]] = expected[[1, 0]]
    assert np.array_equal(np.asarray(x), expected)


def test_assignment_to_read_only_memory_raises():
    x = ah.asarray(b"abc")
    with pytest.raises(ValueError, match=r"read-only; .*x\.copy\(\)"):
        x[0] = 1
    with pytest.raises(TypeError, match="use a slice"):
        del x[0]


def test_to_numpy_views_copies_or_casts():
    x = ah.asarray(BASE)
    assert x.to_numpy().ctypes.data == BASE.ctypes.data
    assert x.to_numpy(copy=True).ctypes.data != BASE.ctypes.data
    assert x.to_numpy("f4").dtype == "f4"


def test_strides_class_is_referenced_once_per_instance():
    """Test instances that `x.strides` creates, and instances from calls of the class and of a subclass."""
    Strides = type(ah.asarray(np.zeros((2, 3))).strides)
    assert issubclass(Strides, tuple) and Strides is not tuple

    class Further(Strides):
        pass

    counts = [sys.getrefcount(cls) for cls in (Strides, Further, tuple)]
    for nd in range(8):
        x = ah.asarray(np.zeros((1,) * nd))
        made = [x.strides for _ in range(3000)] + [cls(range(nd)) for cls in (Strides, Further) for _ in range(300)]
        assert all(isinstance(steps, Strides) and len(steps) == nd for steps in made)
        assert {hash(steps) for steps in made[:3000]} == {hash(tuple(made[0]))}  # Python 3.14 caches hashes of tuples
        del made
    gc.collect()
    assert [sys.getrefcount(cls) for cls in (Strides, Further, tuple)] == counts
    assert type(()) is tuple and type(tuple(range(2))) is tuple
