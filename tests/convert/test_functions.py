"""Test `asarray`, `from_dlpack`, `convert` and the as_* functions with producers of several protocols."""

import array
import inspect
import re
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from children import python
from numpy_release import HAS_DLPACK_1
from producers import lending, lives, producer, raising

import arrayhub as ah

VIA = ("array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack")


class Speaks:
    """A producer with the given protocol attributes of an ndarray."""

    def __init__(self, *protocols, of=None):
        self.array = np.arange(6.0).reshape(2, 3) if of is None else of
        for name in protocols:
            setattr(self, name, getattr(self.array, name))


# ------------------------------------------------------------------------------------------- values without memory


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (True, "bool", ()),
        (7, "int64", ()),
        (2.5, "float64", ()),
        (1j, "complex128", ()),
        ([], "float64", (0,)),
        (range(1, 7, 2), "int64", (3,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        (((1.5, 2), (3, 4)), "float64", (2, 2)),
        ([np.arange(2), np.arange(2)], "int64", (2, 2)),
        (np.float32(3), "float32", ()),
        (np.bool_(True), "bool", ()),
        (np.datetime64("2020-01-02", "D"), "datetime64[D]", ()),
        (np.timedelta64(3, "s"), "timedelta64[s]", ()),
        (np.str_("ab"), "<U2", ()),
        (np.bytes_(b"ab"), "S2", ()),
        (np.array([(1, 2.5)], "i4,f8")[0], np.dtype("i4,f8"), ()),
        (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16, ()),
    ],
)
def test_numbers_and_sequences_are_converted_as_in_numpy(value, dtype, shape):
    x = ah.asarray(value)
    assert (x.dtype, x.shape) == (np.dtype(dtype), shape)
    np.testing.assert_array_equal(np.asarray(x), np.asarray(value))


@pytest.mark.parametrize("value", [[1, [2]], [[1, 2], [3]], [object()], [None, 1], (1, "a", object()), [{}], [[[]], 1]])
def test_ragged_lists_and_lists_of_objects_raise_type_error(value):
    with pytest.raises(TypeError, match=r"asarray.*(regular|Python objects)"):
        ah.asarray(value)


def test_object_dtype_error_names_the_type_of_the_array():
    with pytest.raises(TypeError, match=r"^numpy\.ndarray: dtype is dtype\('O'\)"):
        ah.asarray(np.array([None]))


class Refuses:
    def __init__(self, **words):
        self.words = words

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        error = self.words["dlpack"]
        raise error if isinstance(error, BufferError) else BufferError(error)


class RefusesTwice(Refuses):
    def __arrow_c_array__(self, requested_schema=None):
        raise ah.Refusal("Arrow", "it has columns")


def test_error_of_a_producer_has_one_prefix():
    with pytest.raises(BufferError, match=r"^DLPack: tests\.Refuses refuses: not now$"):
        ah.asarray(Refuses(dlpack="not now"))
    with pytest.raises(BufferError, match="^DLPack: the strides$"):
        ah.asarray(Refuses(dlpack=ah.Refusal("DLPack", "the strides")))
    words = r"^asarray: all protocols of tests\.RefusesTwice failed \(DLPack: no; Arrow: it has columns\)$"
    with pytest.raises(BufferError, match=words):
        ah.asarray(RefusesTwice(dlpack="no"))


def test_error_contains_the_type_with_its_library():
    polars = pytest.importorskip("polars")
    with pytest.raises(BufferError, match=r"^Arrow: polars\.Series has 1 missing.* Call arrayhub\.asnested\(x\)"):
        ah.asarray(polars.Series([1, None]))


@pytest.mark.parametrize("value", [object(), None, {"a": 1}, {1, 2}, len, int, ..., (x for x in ())])
def test_error_for_an_object_that_is_not_an_array_is_short(value):
    with pytest.raises(TypeError, match=r"does not support an array protocol.*; accepted: arrays, ") as raised:
        ah.asarray(value)
    assert "__" not in str(raised.value) and len(str(raised.value)) < 250


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.array([(1, None)], dtype=[("a", "i4"), ("b", "O")]),
        np.array(["a"], dtype=np.dtypes.StringDType()),
        np.empty(0, object),
    ],
    ids=["object", "record with an object", "StringDType", "empty object"],
)
@pytest.mark.parametrize("via", [None, "array_interface"])
def test_arrays_of_python_objects_and_variable_length_strings_raise(value, via):
    with pytest.raises((TypeError, ValueError), match="dtype|typestr|descr|object"):
        ah.asarray(value, via=via)


# ---------------------------------------------------------------------------------------------------------- NumPy's own


def test_memmap_is_shared_with_its_access(tmp_path):
    mapped = np.memmap(tmp_path / "m", dtype="i4", mode="w+", shape=(5,))
    u = ah.asarray(mapped)
    np.asarray(u)[0] = 7
    assert mapped[0] == 7
    readonly = np.memmap(tmp_path / "m", dtype="i4", mode="r", shape=(5,))
    assert ah.asarray(readonly).access == "readonly"


# ------------------------------------------------------------------------------------------------------------- wrappers


def test_usm_array_is_returned_as_itself():
    x = ah.asarray(np.arange(3))
    assert ah.asarray(x) is x
    assert ah.asarray(x, copy=False) is x
    assert ah.asarray(x, dtype="int64") is x
    assert ah.asarray(x, device="cpu") is x
    assert ah.asarray(x, copy=True) is not x


@pytest.mark.slow
def test_infinitely_nested_wrappers_raise():
    """Wrappers whose `values` is another wrapper without end raise an error. They do not overflow the C stack."""
    out = python(
        """
        import arrayhub as ah, numpy as np, pandas as pd
        class Endless(pd.Series):
            values = property(lambda self: Endless([1.0]))
        class Loop(pd.Series):
            values = property(lambda self: self.attrs["other"])
        a, b = Loop([1.0]), Loop([1.0])
        a.attrs["other"], b.attrs["other"] = b, a
        for x in (Endless([1.0]), a):
            try:
                ah.asarray(x)
            except (TypeError, RecursionError) as error:
                print(type(error).__name__)
        """
    )
    assert len(out.split()) == 2


# ------------------------------------------------------------------------------------------------------ hostile objects


def test_getattr_that_raises_does_not_crash():
    with pytest.raises((TypeError, RuntimeError, BufferError)):
        ah.asarray(producer(__getattr__=raising(RuntimeError("no attribute here"))))


@pytest.mark.parametrize("error", [ValueError, KeyError, OSError, RuntimeError, AttributeError, ZeroDivisionError])
@pytest.mark.parametrize(
    "name",
    ["__array_interface__", "__array_struct__", "__cuda_array_interface__", "__sycl_usm_array_interface__",
     "__dlpack__", "ndarray", "values"],
)  # fmt: skip
def test_protocol_properties_that_raise(name, error):
    with pytest.raises((TypeError, BufferError, error)):
        ah.asarray(producer(**{name: property(raising(error("on purpose")))}))


def test_protocol_property_is_read_once():
    reads, array = [], np.arange(3)
    ah.asarray(producer(__array_interface__=property(lambda self: reads.append(1) or array.__array_interface__)))
    assert reads == [1]


def test_keyboard_interrupt_propagates():
    with pytest.raises(KeyboardInterrupt):
        ah.asarray(producer(__dlpack__=raising(KeyboardInterrupt())))


# ----------------------------------------------------------------------------------------------- choice of the protocol


def test_error_contains_the_message_of_the_failed_protocol():
    none = property(raising(AttributeError("reason two")))
    with pytest.raises(BufferError, match="reason one"):
        ah.asarray(producer(__dlpack__=raising(BufferError("reason one")), __array_interface__=none))


def test_next_protocol_is_not_tried_after_an_invalid_description():
    said = {"shape": (-3,), "typestr": "<i8", "data": (1, False), "version": 1}
    lies = producer(__sycl_usm_array_interface__=said, __dlpack__=lending(np.arange(3)))
    with pytest.raises(ah.InterfaceError, match="shape"):
        ah.asarray(lies)
    assert ah.asarray(lies, via="dlpack").shape == (3,)


@pytest.mark.parametrize("via", ["array_interface", "array_struct", "buffer", "dlpack"])
def test_via_selects_the_protocol(via):
    x = np.arange(6, dtype="i4").reshape(2, 3)[:, ::2]
    for source in (x, ah.asarray(x)):
        u = ah.asarray(source, via=via)
        assert (u.protocol, u.ptr, u.shape, u.byte_strides) == (via, x.ctypes.data, x.shape, x.strides)
    cannot_say = via == "dlpack" and not HAS_DLPACK_1
    assert ah.asarray(x, via=via).access == ("readonly" if cannot_say else "readwrite")


@pytest.mark.parametrize("via", ["sycl", "cuda"])
def test_via_with_an_unsupported_protocol_raises(via):
    with pytest.raises(TypeError, match=f"does not support the protocol '{via}'"):
        ah.asarray(np.arange(3), via=via)


@pytest.mark.parametrize("via", ["numpy", "DLPACK", "", 3, b"dlpack", object(), "exchange", []])
def test_unknown_via_raises(via):
    with pytest.raises((ValueError, TypeError), match=f"unhashable.*'list'|accepted: {', '.join(VIA)}"):
        ah.asarray(np.arange(3), via=via)


# ------------------------------------------------------------------------------------------------------- copy and dtype


@pytest.mark.parametrize(
    "make", [lambda: np.arange(3.0), lambda: bytearray(24), lambda: array.array("d", [1, 2, 3]), lambda: b"abc"]
)
def test_copy_determines_whether_memory_is_shared(make):
    x = make()
    address = ah.asarray(x).ptr
    assert ah.asarray(x, copy=None).ptr == address
    assert ah.asarray(x, copy=False).ptr == address
    copied = ah.asarray(x, copy=True)
    assert copied.ptr != address
    assert copied.access == "readwrite"
    assert bytes(copied) == bytes(memoryview(x))
    np.asarray(copied).view("u1")[0] ^= 0xFF
    assert bytes(copied) != bytes(memoryview(x))


def test_dtype_copies_only_if_it_differs():
    for x, other in ((np.arange(3.0), "f4"), (np.arange(3, dtype=">i4"), "<i4")):
        for dtype in (None, x.dtype, x.dtype.str):
            same = ah.asarray(x, dtype=dtype, copy=False)
            assert same.ptr == x.ctypes.data and same.dtype == x.dtype
        u = ah.asarray(x, dtype=other)
        assert u.dtype == np.dtype(other) and np.asarray(u).tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        ah.asarray(x, dtype="no such type")


@pytest.mark.parametrize("device", ["cpu", (1, 0), ah.Device("cpu")])
def test_device_cpu_does_not_copy_host_memory(device):
    x = np.arange(3)
    assert ah.asarray(x, device=device).ptr == x.ctypes.data
    assert ah.asarray(x, device=device, copy=True).ptr != x.ctypes.data


@pytest.mark.parametrize("device", ["gpu??", (99, 0), ("cpu", 0), (1, None), (1,), object(), 3.5])
def test_unknown_device_raises(device):
    with pytest.raises((ValueError, TypeError), match="^device: "):
        ah.asarray(np.arange(3), device=device)


@pytest.mark.slow
def test_unknown_device_error_without_dpctl_suggests_the_extra():
    """The error lists the accepted devices and the command that installs dpctl."""
    python(
        """
        import sys
        sys.modules["dpctl"] = None
        import arrayhub as ah
        try:
            ah.asarray(b"abc", device="gpu??")
        except ValueError as error:
            assert "'gpu??' is not a device; accepted: 'cpu'" in str(error) and "arrayhub[sycl]" in str(error), error
        else:
            raise SystemExit("no error")
        """
    )


# ---------------------------------------------------------------------------------------------------------- from_dlpack


def test_from_dlpack_accepts_producers_and_capsules():
    x = np.arange(3)
    assert (ah.from_dlpack(x).protocol, ah.from_dlpack(x, device="cpu").ptr) == ("dlpack", x.ctypes.data)
    with pytest.raises(TypeError, match="dlpack"):
        ah.from_dlpack(bytearray(3))
    if HAS_DLPACK_1:
        assert ah.from_dlpack(x.__dlpack__(max_version=(1, 0))).access == "readwrite"
    assert ah.from_dlpack(x.__dlpack__()).access == "readonly"  # a legacy capsule cannot represent read-only memory
    capsule = x.__dlpack__()
    ah.from_dlpack(capsule)
    with pytest.raises(ah.InterfaceError, match="once"):
        ah.from_dlpack(capsule)


# --------------------------------------------------------------------------------------------------- the cache of types


def test_protocol_added_later_to_a_type_a_base_class_or_an_instance_is_used():
    class Base:
        pass

    class Late(Base):
        pass

    class Slotted(Base):
        __slots__ = ()

    def refused(x):
        with pytest.raises(TypeError, match="does not support an array protocol"):
            ah.asarray(x)

    array, late = np.arange(3), Late()
    for x in (late, Slotted()):
        refused(x)
    Late.__array_interface__ = property(lambda self: array.__array_interface__)
    assert ah.asarray(late).shape == (3,)
    Late.__dlpack__, Late.__dlpack_device__ = lending(array), lambda self: (1, 0)
    assert ah.asarray(late).protocol == "dlpack"
    del Late.__array_interface__, Late.__dlpack__
    refused(late)
    late.__array_interface__ = array.__array_interface__
    assert ah.asarray(late).ptr == array.ctypes.data
    Base.__dlpack__ = lending(array)
    assert ah.asarray(Slotted()).ptr == array.ctypes.data


def test_type_cache_does_not_keep_types_alive():
    class Temporary(Speaks):
        pass

    ah.asarray(Temporary("__array_interface__"))
    reference = weakref.ref(Temporary)
    del Temporary
    assert not lives(reference)


@pytest.mark.slow
def test_type_cache_keeps_results_correct_for_thousands_of_types():
    for k in range(5000):
        if k % 2:
            cls = type(f"T{k}", (Speaks,), {})
            assert ah.asarray(cls("__array_interface__")).shape == (2, 3)
        else:
            with pytest.raises(TypeError):
                ah.asarray(type(f"T{k}", (), {})())
    assert ah.asarray(np.arange(3)).shape == (3,)


# ------------------------------------------------------------------------------------------------- attributes and flags


@pytest.mark.parametrize(
    "name",
    ["shape", "strides", "byte_strides", "dtype", "ptr", "offset", "ndim", "size", "flags", "device", "base", "memory",
     "access", "protocol", "T", "dims", "origin", "halo", "aligned_index", "__gt_dims__", "__gt_origin__",
     "anything_else"],
)  # fmt: skip
def test_attributes_cannot_be_set(name):
    x = ah.empty((3,), dims="I", origin=(1,), halo=(1,), aligned_index=(1,))
    with pytest.raises(AttributeError):
        setattr(x, name, 1)
    with pytest.raises(AttributeError):
        delattr(x, name)


# -------------------------------------------------------------------------------------------------------------- exports


@pytest.mark.parametrize("export", [ah.as_torch, lambda x, **named: ah.convert(x, "torch", **named)])
def test_allow_readonly_exports_read_only_memory_to_torch(export):
    torch = pytest.importorskip("torch")
    x = np.arange(3.0)
    x.flags.writeable = False
    with pytest.raises(BufferError, match="read-only.*allow_readonly"):
        export(x)
    t = export(x, allow_readonly=True)
    assert t.data_ptr() == x.ctypes.data
    for copy in (None, True):
        assert export(x, copy=copy).data_ptr() != x.ctypes.data
    assert ah.asarray(x).access == "readonly"  # the writable export does not change the access of the source
    assert torch.equal(t, torch.arange(3.0, dtype=torch.float64))


def test_tensor_that_torch_rejects_is_released():
    """arrayhub rejects types that torch does not support, because torch's exchange table leaks such tensors."""
    pytest.importorskip("torch")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.zeros(3, ml_dtypes.float8_e3m4)
    reference = weakref.ref(x)
    with pytest.raises(BufferError, match="torch: elements of type float8_e3m4 are not supported"):
        ah.as_torch(x)
    del x
    assert reference() is None


def test_empty_read_only_arrays_stay_read_only_in_numpy():
    pyarrow = pytest.importorskip("pyarrow")
    assert not ah.as_numpy(pyarrow.array([], "int32")).flags.writeable
    assert not ah.as_numpy(b"").flags.writeable


def test_to_host_copies_to_out():
    x, out = np.arange(6).reshape(2, 3), np.zeros((2, 3), "i8")
    assert ah.to_host(x, out=out) is out
    assert (out == x).all()
    with pytest.raises(ValueError, match="out"):
        ah.to_host(x, out=np.zeros((3, 2), "i8"))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ah.to_host(x, out=out)


@pytest.mark.slow
def test_inspection_of_a_type_may_import_objects_of_other_types():
    """While a type is inspected, its metaclass imports objects of other types, which evict the type's cache entry."""
    python(
        """
        import numpy as np, arrayhub
        met = []
        class Meta(type):
            def __getattr__(cls, name):
                for obj in others:
                    met.append(name)
                    try: arrayhub.asarray(obj)
                    except TypeError: pass
                raise AttributeError(name)
        class Array(np.ndarray, metaclass=Meta):
            __slots__ = ()
        others = [type("Other", (), {"__slots__": ()})() for _ in range(8000)]     # some evict Array from the cache
        arrayhub.asarray(np.arange(3.0).view(Array))
        assert met
        for obj in reversed(others):     # the last types are still cached
            try: print(arrayhub.asarray(obj))
            except TypeError as error: assert "does not support an array protocol" in str(error), error
        """
    )


# ---------------------------------------------------------------------------------------------------------- environment


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="references to None are not counted since 3.12")
def test_references_to_none_are_released():
    """Importers return None for a protocol that the object does not support. This reference is released."""
    producer = Speaks("__array_interface__")
    before = sys.getrefcount(None)
    for _ in range(2000):
        assert ah.asarray(producer).size == 6
    assert abs(sys.getrefcount(None) - before) < 500


def test_next_protocol_is_tried_without_a_current_exception():
    """``sys.exc_info()`` in the next protocol's property does not return the exception of the previous protocol."""
    met, array = [], np.arange(3.0)

    def interface(self):
        met.append(sys.exc_info()[1])
        return array.__array_interface__

    refusing = raising(BufferError("not now"))
    for refused in (dict(__cuda_array_interface__=property(refusing)), dict(__dlpack__=refusing)):
        u = ah.asarray(producer(**refused, __array_interface__=property(interface)))
        assert (u.protocol, u.ptr, met.pop()) == ("array_interface", array.ctypes.data, None)


@pytest.mark.slow
@pytest.mark.parametrize("via", [None, "dlpack", "cuda"])
def test_class_stays_alive_while_its_object_is_imported(via):
    """The metaclass sets ``__class__`` of the object to another class during the import."""
    out = python(
        f"""
        import gc, weakref, arrayhub as ah

        class Meta(type):
            def __getattribute__(cls, name):
                value = type.__getattribute__(cls, name)
                if box and name in ("__dlpack__", "__module__"):
                    obj = box.pop()
                    obj.__class__ = Plain
                    del obj, cls
                    gc.collect()
                    asked.append(name)
                return value

        def make():
            class Going(metaclass=Meta):
                def __dlpack__(self, **keywords):
                    raise BufferError("no")
                def __dlpack_device__(self):
                    return (1, 0)
            return Going

        class Plain:
            pass

        box, asked = [], []
        Going = make()
        obj = Going()
        going = weakref.ref(Going)
        obj.__cuda_array_interface__ = dict(shape=(0,), typestr="<f8", data=(0, False), version=3, stream=None)
        del Going
        box.append(obj)
        try:
            ah.asarray(obj, via={via!r})
        except (TypeError, AttributeError, BufferError) as error:
            print(type(error).__name__)
        del obj
        gc.collect()
        print(asked != [], going() is None)
        """,
        PYTHONMALLOC="debug",
    )
    assert out.splitlines()[-1] == "True True"


def test_class_that_changes_during_its_inspection_is_not_cached():
    """The metaclass adds a protocol to the class while arrayhub inspects the class."""

    class Meta(type):
        def __getattribute__(cls, name):
            if name == "__array_struct__" and not type.__getattribute__(cls, "changed"):
                cls.changed = True
                cls.__dlpack__, cls.__dlpack_device__ = lending(array), lambda self: (1, 0)
            return type.__getattribute__(cls, name)

    class Changing(metaclass=Meta):
        __slots__ = ()
        changed = False

    array = np.arange(4.0)
    with pytest.raises(TypeError):
        ah.asarray(Changing())
    assert ah.asarray(Changing()).ptr == array.ctypes.data


class AskedOfTheClass(type):
    """A metaclass whose classes record the names of missing attributes that are looked up on them."""

    def __getattr__(cls, name):
        cls.asked.append(name)
        raise AttributeError(name)


def counting(array):
    """Return a class that exports `array` through DLPack and records look-ups of missing attributes."""

    class Counting(metaclass=AskedOfTheClass):
        __slots__ = ()
        asked = []  # noqa: RUF012
        lent = array

        def __dlpack__(self, **keywords):
            return self.lent.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.lent.__dlpack_device__()

    return Counting


def test_type_is_inspected_once():
    """After the import of the first object, attributes of its type are not looked up again."""
    cls = counting(np.arange(3.0))
    ah.asarray(cls())
    assert "__cuda_array_interface__" in cls.asked
    cls.asked.clear()
    ah.asarray(cls())
    assert cls.asked == []


def test_type_is_inspected_again_after_a_change():
    first, second = np.arange(3.0), np.arange(4.0)
    base = counting(first)

    class Derived(base):
        __slots__ = ()

    for changed in (base, Derived):
        assert ah.asarray(Derived()).ptr == ah.asarray(Derived()).ptr == first.ctypes.data
        base.asked.clear()
        changed.lent = second  # setting any attribute of the class invalidates its cache entry
        assert ah.asarray(Derived()).ptr == second.ctypes.data
        assert "__sycl_usm_array_interface__" in base.asked
        changed.lent = first


def test_type_that_has_used_up_its_version_tags_is_not_cached():
    """CPython (since 3.12) assigns at most 1000 version tags to a type. A type without a tag is not cached."""
    cls = counting(np.arange(3.0))
    with_struct = np.arange(4.0)
    for _ in range(1100):
        cls.marked = None
        assert ah.asarray(cls()).size == 3
        del cls.marked
        assert ah.asarray(cls()).size == 3
    cls.__dlpack__ = None
    cls.__array_struct__ = property(lambda self: with_struct.__array_struct__)
    assert ah.asarray(cls()).ptr == with_struct.ctypes.data
    del cls.__array_struct__
    cls.__array_interface__ = property(lambda self: cls.lent.__array_interface__)
    assert ah.asarray(cls()).ptr == cls.lent.ctypes.data


def test_convert_requires_a_library():
    with pytest.raises(TypeError, match=r"convert\(\) takes exactly 2 positional arguments"):
        ah.convert(np.zeros(3))


def test_from_dlpack_ignores_a_stream_number_for_host_memory():
    assert ah.from_dlpack(np.zeros(3), stream=1).size == 3
    with pytest.raises(TypeError, match="stream"):
        ah.from_dlpack(np.zeros(3), stream="nonsense")


MODULES = ("datashape", "storage", "sycl_runtime", "testing", "transfer", "transport")


def test_dir_shows_public_names_only():
    shown = [name for name in dir(ah) if not name.startswith("__")]
    assert set(shown) == {*ah.__all__, *MODULES}
    assert len(ah.__all__) <= 42
    assert all(hasattr(ah, name) for name in shown)
    assert "asarray(obj)" in ah.__doc__
    for module in (ah.storage.layouts, ah.sycl_runtime, ah.testing, ah.transfer):
        assert dir(module) == sorted(module.__all__)


def test_lists_of_integers_that_only_uint64_represents_are_not_rounded():
    for values in ([2**63, 1], (2**64 - 1, True), [[0], [2**63]], [np.uint64(2**63 + 1), np.int64(1)]):
        x = ah.asarray(values)
        assert (x.dtype, x.tolist()) == ("uint64", np.array(values, "u8").tolist())
    for values in ([2**63 + 1, -1], [2**63 + 1, 0.5]):
        with pytest.raises(OverflowError, match="among floats would be rounded") as raised:
            ah.asarray(values)
        assert isinstance(raised.value, ah.Refusal)


@pytest.mark.parametrize("given", [([1, 2], "u1"), ([1.5], "i4"), (["1.5"], "f8"), ([[]], "i4"), (np.int64(7), "i1")])
def test_values_are_cast_to_dtype_as_in_numpy(given):
    values, dtype = given
    a, wanted = ah.asarray(values, dtype=dtype), np.asarray(values, dtype=dtype)
    assert a.is_copy and a.dtype == wanted.dtype and np.array_equal(np.asarray(a), wanted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scalar", [np.float64, np.float32, np.float16, np.longdouble, ml_dtypes.bfloat16, float])
def test_scalars_out_of_the_range_of_dtype_raise(scalar):
    for values in (scalar(300), [scalar(300)]):
        with pytest.raises(OverflowError, match=r"^asarray: dtype is dtype\('int8'\): "):
            ah.asarray(values, dtype="i1")
    with pytest.raises((ValueError, OverflowError), match=r"^asarray: dtype is dtype\('int8'\): "):
        ah.asarray(scalar("nan"), dtype="i1")  # int(bfloat16("nan")) is -2**63
    a = ah.asarray(scalar(7.5), dtype="i1")
    assert (a.shape, a.dtype, a.item()) == ((), np.dtype("i1"), 7)


@pytest.mark.parametrize("value", [1 + 2j, np.complex64(1 + 2j), np.complex128(1 + 2j)], ids=repr)
@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_complex_values_raise_for_a_real_dtype(value, dtype):
    for x in (value, [value, 3]):
        with pytest.raises(TypeError, match=r"^asarray: dtype is dtype\(.*\), but the values are complex; ") as caught:
            ah.asarray(x, dtype=dtype)
        assert "numpy.real(x)" in str(caught.value)
        assert ah.asarray(np.real(x), dtype=dtype).dtype == dtype
        assert ah.asarray(x, dtype="c8").dtype == "c8"


def test_times_in_a_list_are_not_cast_to_numbers():
    x = [np.datetime64("2020-01-01")]
    with pytest.raises(TypeError, match=r"^asarray: dtype is dtype\('int64'\): .*numpy\.asarray\(x\)\.astype\(dtype\)"):
        ah.asarray(x, dtype="i8")
    assert ah.asarray(np.asarray(x).astype("i8")).tolist() == [18262]


ELEMENTS = [
    np.array(["2020-01-01", "NaT"], "M8[D]"), np.array([1.5, 2], ml_dtypes.bfloat16), np.array([b"ab", b"c"]),
    np.array([(1, 2.5), (3, 4.5)], "i4,f8"), np.array(["x", "yz"]), np.array([51, 52], "u1"),
]  # fmt: skip


@pytest.mark.parametrize("a", ELEMENTS, ids=lambda a: str(a.dtype))
def test_lists_of_usm_arrays_are_converted(a):
    x = ah.asarray(a)
    assert ah.asarray([x[0], x[1]]).tobytes() == ah.asarray([[x[0]], (x[1],)]).tobytes() == a.tobytes()
    assert ah.asarray([x[0], x[1]]).dtype == a.dtype
    assert ah.asarray((x[0], a[1]), dtype=a.dtype).tobytes() == a.tobytes()


def test_recursive_list_of_usm_arrays_raises():
    endless = [ah.asarray(np.array(["2020-01-01"], "M8[D]"))[0]]
    endless.append(endless)
    with pytest.raises((TypeError, ValueError)):
        ah.asarray(endless)


@pytest.mark.parametrize("via", [None, "array_interface", "array_struct", "buffer"])
def test_results_of_broadcast_arrays_are_read_only(via):
    """NumPy's buffer, dict and struct describe the results of `numpy.broadcast_arrays` as read-only.

    ``flags.writeable`` is still True (NPY_ARRAY_WARN_ON_WRITE).
    """
    torch = pytest.importorskip("torch")
    repeated, _ = np.broadcast_arrays(np.arange(3.0), np.zeros((2, 3)))
    x = ah.asarray(repeated, via=via)
    assert (x.access, x.is_copy, x.ptr) == ("readonly", False, repeated.ctypes.data)
    assert ah.as_numpy(x).flags.writeable is False
    with pytest.raises(BufferError, match="copy=True"):
        ah.as_torch(x)
    assert isinstance(ah.as_torch(x, copy=True), torch.Tensor)
    repeated.flags.writeable = True  # after this assignment, NumPy exports the array as writable
    assert ah.asarray(repeated, via=via).access == "readwrite"


@pytest.mark.parametrize("text", ["x.npy", "3.5", "", type("Name", (str,), {})("a")])
def test_error_for_a_str_suggests_loading_a_file(text):
    for call in (ah.asarray, ah.as_numpy, lambda x: ah.asarray(x, dtype="U5"), lambda x: ah.asarray(x, copy=True)):
        with pytest.raises(
            TypeError, match=r"^asarray: .* numpy\.load\(x\) .*PIL\.Image\.open\(x\) .*, and \[x\] is text"
        ):
            call(text)
    assert ah.asarray(np.str_("a")).item() == "a" and ah.asarray(["a", "bc"]).shape == (2,)
    assert ah.asarray(np.array(text)).item() == text


@pytest.mark.parametrize("name", ah._ELSEWHERE)
def test_error_for_a_name_of_another_place_suggests_a_working_call(name):
    call = ah._ELSEWHERE[name]
    with pytest.raises(AttributeError, match=f"^module 'arrayhub' has no attribute '{name}'; use {re.escape(call)}$"):
        getattr(ah, name)
    assert name not in ah.__all__ and name not in dir(ah)
    library = {"as_dask": "dask.array"}.get(name, call.partition(".")[0])
    pytest.importorskip(library)
    x = np.asarray(ah.from_array(np.arange(3, dtype="f4"), alignment=64))  # as jax requires
    names = {**sys.modules, "arrayhub": ah, "numpy": np, "x": x, "arrays": [x, x]}
    assert eval(call, {**names, "dtype": "f4", "device": "cpu", "value": 3}) is not None


UNKNOWN_NAMES = {"from_torch": "asarray", "to_torch": "as_torch", "to_arrow": "as_arrow"}
UNKNOWN_NAMES |= dict.fromkeys(["nonsense", "from_nonsense", "to_nonsense"])


@pytest.mark.parametrize("name", UNKNOWN_NAMES)
def test_error_for_from_and_to_with_a_library_suggests_the_function(name):
    call = f"; use arrayhub.{UNKNOWN_NAMES[name]}(x)" if UNKNOWN_NAMES[name] else ""
    with pytest.raises(AttributeError) as raised:
        getattr(ah, name)
    assert str(raised.value) == f"module 'arrayhub' has no attribute '{name}'{call}"


MISPLACED = [
    ("f4", "dtype='f4'"),
    (np.dtype("f4"), "dtype=dtype('float32')"),
    (True, "copy=True"),
    (None, "copy=None"),
    ("cuda:0", "device='cuda:0'"),
    (ah.Device("cpu"), "device=Device('cpu')"),
]
COMPILED = ("asarray", "from_dlpack", "as_numpy", "as_torch", "as_jax", "as_cupy", "as_dpnp", "as_numba")


@pytest.mark.parametrize(("value", "keyword"), MISPLACED)
@pytest.mark.parametrize("name", COMPILED)
def test_second_positional_argument_raises_an_error_that_names_the_keyword(name, value, keyword):
    with pytest.raises(TypeError) as caught:
        getattr(ah, name)(np.ones(3), value)
    assert str(caught.value).startswith(f"{name}: ")
    assert str(caught.value).endswith(f"Use arrayhub.{name}(x, {keyword})")


@pytest.mark.parametrize("name", COMPILED)
def test_signature_shows_one_positional_argument(name):
    parameters = inspect.signature(getattr(ah, name)).parameters
    kinds = [parameter.kind.name for parameter in parameters.values()]
    assert next(iter(parameters)) == "obj" and kinds == ["POSITIONAL_ONLY", *["KEYWORD_ONLY"] * (len(kinds) - 1)]


# Requests on an array that was imported from the ndarray `a`, and whether `as_numpy` of it is `a`.
SOURCES = {
    "the whole array": (lambda a: ah.asarray(a), True),
    "a wrapper": (lambda a: pytest.importorskip("xarray").DataArray(a), True),
    "a slice": (lambda a: ah.asarray(a)[:1], False),
    "reversed": (lambda a: ah.asarray(a)[::-1], False),
    "other elements": (lambda a: ah.asarray(a).view("i8"), False),
    "another shape": (lambda a: ah.asarray(a).reshape(4), False),
    "a transpose of equal lengths": (lambda a: ah.asarray(a).T, False),
    "a copy": (lambda a: ah.asarray(a, copy=True), False),
}


@pytest.mark.parametrize("case", SOURCES)
def test_as_numpy_returns_the_ndarray_that_an_array_was_imported_from(case):
    derive, is_source = SOURCES[case]
    a = np.arange(4.0).reshape(2, 2)
    x = derive(a)
    given = ah.as_numpy(x)
    assert (given is a) == is_source
    assert given.tolist() == ah.asarray(x).tolist()
    assert ah.as_numpy(x, copy=True) is not a


def test_as_numpy_of_read_only_memory_cannot_be_made_writable():
    """NumPy permits ``flags.writeable = True`` for a read-only view of a writable ndarray."""
    a = np.arange(4.0)
    for readonly in (np.lib.stride_tricks.as_strided(a, writeable=False), a):
        x = ah.asarray(readonly)
        x.flags["WRITEABLE"] = False
        given = ah.as_numpy(x)
        assert given is not readonly
        with pytest.raises(ValueError, match="WRITEABLE"):
            given.flags.writeable = True
    assert a.flags.writeable
