"""Test that verdicts of `explain` agree with the as_* functions, and that it does not copy elements or raise."""

import contextlib
import ctypes
import html
import re
import resource
import sys
import types
import weakref
from unittest import mock

import numpy as np
import pytest
from children import python, without
from dlpack_by_hand import packed_int4
from exporters import StructProducer, exporter
from matrix.elements import ELEMENTS
from matrix.layouts import LAYOUTS
from matrix.producers import PRODUCERS, installed
from numpy_release import HAS_DLPACK_1
from producers import lives, producer, raising

import arrayhub as ah

CONSUMERS = ("numpy", "torch", "jax", "cupy", "dpnp", "numba")
WORDS = ("zero-copy", "copy=True", "cannot")


def outcome(obj, consumer):
    """Call the as_* function of the consumer, and return the verdict that `explain` should give."""
    function = getattr(ah, f"as_{consumer}")
    for word, options in (("zero-copy", {}), ("copy=True", {"copy": True})):
        with contextlib.suppress(Exception):
            function(obj, **options)
            return word
    return "cannot"


def aligned(values):
    """Return a copy of the values in memory that is aligned to 64 bytes, as jax requires."""
    memory = np.zeros(values.nbytes + 64, "u1")
    start = -memory.ctypes.data % 64
    array = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


class Wicked(BaseException):
    pass


def with_method(name, method, bases=(), **others):
    return producer(*bases, **{name: method, **others})


# ----------------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.slow
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda producer: producer.name)
def test_verdicts_equal_conversions(producer):
    if not installed(producer):
        pytest.skip(f"{producer.library} is not installed")
    wrong, met = [], set()
    for element, layout in producer.pairs():
        made = producer.make(ELEMENTS[element], LAYOUTS[layout])
        close = made.close
        explained = ah.explain(made.obj)
        assert tuple(verdict.consumer for verdict in explained.verdicts) == CONSUMERS
        obj = ah.asarray(made.obj, copy=None)  # would fail if explain had consumed a capsule
        if "capsule" not in producer.name:
            obj = made.obj
        for verdict in explained.verdicts:
            if (producer.name, verdict.consumer) == ("PIL.Image", "jax"):
                continue  # the image creates new bytes on each access, whose alignment varies
            met.add(verdict.verdict)
            said, does = verdict.verdict, outcome(obj, verdict.consumer)
            if said != does:
                wrong.append(f"{element} {layout} to {verdict.consumer}: {said} ({verdict.reason}), expected {does}")
            assert (verdict.reason == "") == (said == "zero-copy")
        assert explained.taken == ah.asarray(obj).protocol
        del obj, made
        with contextlib.suppress(BufferError):
            close()
    assert not wrong, "\n" + "\n".join(wrong)
    if producer.name == "numpy":
        assert met == set(WORDS)


class Cuda:
    """An object with a CUDA interface dict that contains a fake address. Inspection does not require a driver."""

    def __init__(self, **keys):
        said = {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 2, "strides": None}
        self.__cuda_array_interface__ = {**said, **keys}


@pytest.mark.parametrize(
    "obj",
    [
        Cuda(), Cuda(typestr=">i4"), exporter(), exporter(readonly=1), exporter(strides=[8], len=24),
        StructProducer(), ctypes.c_int(3), aligned(np.zeros(3, "f4")), aligned(np.zeros(3, "f8")),
        np.zeros(3).view([("x", "f8")]), types.SimpleNamespace(data=np.zeros(3)), packed_int4(),
    ],
    ids=lambda obj: type(obj).__name__,
)  # fmt: skip
def test_verdicts_for_other_producers_equal_conversions(obj):
    for verdict in ah.explain(obj).verdicts:
        assert verdict.verdict == outcome(obj, verdict.consumer), verdict


def test_verdict_for_jax_depends_on_jax_enable_x64():
    jax = pytest.importorskip("jax")
    a = aligned(np.zeros(3, "f8"))
    with jax.enable_x64(False):
        (verdict,) = ah.explain(a, to="jax").verdicts
    assert verdict.verdict == "cannot" and "float64 requires jax_enable_x64" in verdict.reason
    with jax.enable_x64(True):
        assert ah.explain(a, to="jax").verdicts[0].verdict == "zero-copy"


def test_explain_and_convert_list_the_same_consumers():
    with pytest.raises(ValueError, match="accepted: " + ", ".join(CONSUMERS)):
        ah.convert(np.zeros(3), to="anything else")
    assert tuple(verdict.consumer for verdict in ah.explain(b"").verdicts) == CONSUMERS


@pytest.mark.parametrize("value", [3, 2.5, True, 1j, [1, 2], ((1.5, 2), (3, 4)), [], np.float32(2), np.int8(1)])
def test_numbers_and_lists_are_reported_as_copied(value):
    explained = ah.explain(value)
    assert "asarray copies it through NumPy" in explained.why
    assert explained.summary == f"a value, which NumPy converts to {ah.asarray(value).dtype}"
    for verdict in explained.verdicts:
        does = outcome(value, verdict.consumer)  # without copy=True, the as_* functions copy lists, too
        assert verdict.verdict == ("copy=True" if does == "zero-copy" else does), verdict
    assert ah.asarray(value, copy=False).is_copy


def test_ragged_lists_can_only_be_converted_to_torch():
    verdicts = {verdict.consumer: verdict.verdict for verdict in ah.explain([[1], [1, 2]]).verdicts}
    assert verdicts["torch"] == "copy=True" and ah.as_torch([[1], [1, 2]]).is_nested
    assert {verdicts[name] for name in CONSUMERS if name != "torch"} == {"cannot"}


UNSUPPORTED = {
    "a list in a list": lambda: [1, [2]],
    "object": lambda: [object()],
    "None": lambda: [None],
    "beyond 64 bits": lambda: [2**70],
    "text": lambda: "text",
    "text and a number": lambda: [1, "a"],
    "gradient": lambda: [pytest.importorskip("torch").tensor(1.0, requires_grad=True)],
    "Timestamp": lambda: [pytest.importorskip("pandas").Timestamp("2020")],
    "NA": lambda: [1, pytest.importorskip("pandas").NA],
    "Categorical": lambda: [pytest.importorskip("pandas").Categorical([3, 1])],
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_values_that_cannot_be_converted(name):
    value = UNSUPPORTED[name]()
    explained = ah.explain(value)
    assert {verdict.verdict for verdict in explained.verdicts if verdict.consumer in CONSUMERS} == {"cannot"}
    assert explained.summary in ("no array", "nested values, which are copied")
    with pytest.raises((BufferError, TypeError)):
        ah.asarray(value)


CALLS = [  # object, consumer, the shortest working call, and whether the call copies
    (np.zeros(3), None, "arrayhub.asarray(x)", None),
    (np.zeros(3), "numpy", "arrayhub.as_numpy(x)", False),
    (np.zeros(3)[::-1], "torch", "arrayhub.as_torch(x, copy=True)", True),
    (np.arange(3, dtype=">i4"), "torch", "arrayhub.as_torch(x, copy=True)", True),
    (np.arange(3, dtype=">i4"), "jax", "arrayhub.as_jax(x, copy=True)", True),
    (np.zeros(3), "jax", "arrayhub.as_jax(x, dtype='float32')", None),
    ([1, 2], None, "arrayhub.asarray(x)", None),
    ([1.5, 2.5], "numpy", "arrayhub.as_numpy(x)", True),
    (3.5, "torch", "arrayhub.as_torch(x)", True),
    (["a", "b"], "arrow", "arrayhub.as_arrow(x)", True),
    (np.ones(3, bool), "arrow", "arrayhub.as_arrow(x)", True),
    ([[1], [1, 2]], None, "arrayhub.asnested(x)", None),
    ([1, None], None, "arrayhub.asnested(x)", None),
    (ah.asnested([1, None]), "numpy", "arrayhub.as_numpy(x, missing='mask')", None),
    (ah.asnested([1, None]), "jax", "arrayhub.like(x, jax.numpy.zeros(0), missing='mask')", None),
    (ah.asnested([[1.0], [2.0, None]])[:1], "numpy", "arrayhub.as_numpy(x)", False),
    (object(), None, "", None),
    (np.array([object()]), "torch", "", None),
]


@pytest.mark.parametrize(("x", "to", "call", "copies"), CALLS, ids=lambda value: value if type(value) is str else None)
def test_explanation_begins_with_the_shortest_working_call(x, to, call, copies):
    pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    explained = ah.explain(x, to=to)
    assert explained.call == call
    assert str(explained).startswith(f"call: {call}\n") == bool(call)
    if call:
        eval(call, {"arrayhub": ah, "jax": jax, "x": x})
    if copies is not None:
        assert explained.verdicts[0].verdict == ("copy=True" if copies else "zero-copy")


# ----------------------------------------------------------------------------- what explain reads and does not change


def test_capsules_are_not_consumed():
    for asked in ({}, {"max_version": (1, 0)} if HAS_DLPACK_1 else {}):
        capsule = np.arange(3.0).__dlpack__(**asked)
        for _ in range(3):
            assert "3 * float64" in ah.explain(capsule).summary
        assert np.asarray(ah.asarray(capsule)).tolist() == [0, 1, 2]
        used = ah.explain(capsule)
        assert used.summary == "no array"
        assert "consumed only once" in used.why


def test_explain_does_not_copy():
    """The pages of the arrays are never accessed, so the resident memory grows only if an array is copied."""
    a = np.zeros(2**30 + 1, "u1")[1:].view("f4")  # unaligned, so jax would copy
    strided = np.lib.stride_tricks.as_strided(np.zeros(2**30 // 4, "f4"), (2**14, 2**14), (4, 2**16))
    ah.explain(np.zeros(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for x in (a, strided, a.view(">f4"), memoryview(a)):
        ah.explain(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    jax = {verdict.consumer: verdict for verdict in ah.explain(a).verdicts}["jax"]
    assert jax.verdict == "copy=True"


def test_explanation_does_not_keep_the_object_alive():
    a = np.arange(3)
    gone = weakref.ref(a)
    explained = ah.explain(a)
    del a
    assert not lives(gone)
    assert "3 * int" in explained.summary


def test_explanation_lists_the_protocols_of_the_object():
    explained = ah.explain(np.zeros(3, ">i4"))
    assert explained.protocols == ("buffer", "dlpack", "array_interface", "array_struct")
    assert explained.taken == "array_interface"
    assert "\n  protocols: buffer, dlpack, array_interface, array_struct\n" in str(explained)
    assert ah.explain(StructProducer()).protocols == ("array_struct",)


def test_explanation_names_the_first_protocol_that_succeeds():
    said = np.arange(3).__array_interface__
    explained = ah.explain(producer(__dlpack__=raising(BufferError("not today")), __array_interface__=said))
    assert explained.taken == "array_interface"
    assert "the first protocol of the object that succeeds" in explained.why


@pytest.mark.parametrize(
    ("error", "reason"),
    [(KeyError("shape"), "'shape'"), (SystemExit(3), "SystemExit: 3"), (Wicked, "Wicked")],
)
def test_explanation_contains_the_error_of_the_object(error, reason):
    explained = ah.explain(with_method("__array_interface__", property(raising(error))))
    assert explained.summary == "no array" and explained.why.endswith(reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "command"),
    [("torch", "pip install torch"), ("jax", "pip install jax"), ("dpctl", "pip install 'arrayhub[sycl]'")],
)
def test_missing_library_is_reported_with_its_install_command(library, command):
    pytest.importorskip(library.replace("dpctl", "dpnp"))
    said = python(
        without(library)
        + f"""
import arrayhub as ah
(verdict,) = ah.explain(bytearray(64), to={library.replace("dpctl", "dpnp")!r}).verdicts
print(verdict.verdict, verdict.reason)
"""
    )
    assert said.startswith("cannot ")
    assert said.endswith(f": {command}\n")


class Table:
    """A table whose repr has several lines, and whose only protocol is ``__array__``."""

    def __repr__(self):
        return "shape: (2,)\nx\n0\n1"

    def __array__(self, dtype=None, copy=None):
        return np.arange(2)


def test_objects_with_only_array_method_suggest_numpy_asarray():
    why = ah.explain(Table()).why
    assert why.startswith("<") and "is of type Table, which does not support an array protocol" in why
    assert "numpy.asarray(x) calls its __array__, which may copy" in why
    assert ah.explain(np.asarray(Table())).taken == "array_interface"
    assert "__array__," not in ah.explain(object()).why


def test_constructed_array_does_not_have_a_protocol():
    memory = ah.asarray(bytearray(16))
    assert ah.explain(ah.empty(2, "f8")).why == "it is a USMArray"
    assert ah.explain(memory).why == "it is a USMArray, imported through buffer"


# ---------------------------------------------------------------------------------------------------------- the text


def test_explanation_of_an_unaligned_array_has_the_documented_text():
    mem = np.zeros(9, "i1")
    text = str(ah.explain(mem[1:].view(">i4")))
    assert (
        re.sub("0x[0-9a-f]+", "0x*", "\n".join(text.split("\n")[:8]))
        == """\
call: arrayhub.asarray(x)
numpy.ndarray: 2 * unaligned[byteswap[int32]], readwrite, on cpu
  unaligned: the address is 0x*; asarray(x).aligned() copies
  byte-swapped: not in the machine's byte order; asarray(x).native() copies
in: asarray imports numpy.ndarray natively and reports the protocol as array_interface
  protocols: buffer, dlpack, array_interface, array_struct
out:
  numpy  zero-copy"""
    )
    assert "\n  torch  copy=True: dtype dtype('>i4') is not in native byte order\n" in text


@pytest.mark.parametrize(
    ("obj", "fact"),
    [
        (np.zeros((4, 4))[::2, ::-1], "non-contiguous: shape (2, 4) with byte strides (64, -8)"),
        (np.broadcast_to(np.zeros(2), (2, 2)), "read-only: other code may still write"),
        (b"abc", "immutable: the elements never change"),
        (Cuda(), "on cuda:0: the host cannot read it; to_host(x) copies"),
    ],
)
def test_facts_describe_layout_access_and_device(obj, fact):
    explained = ah.explain(obj)
    assert fact in explained.facts
    assert f"\n  {fact}\n" in str(explained)


def test_to_limits_the_explanation_to_one_consumer():
    explained = ah.explain(np.zeros(3)[::-1], to="torch")
    assert str(explained).split("\n")[-2:] == [
        "out:",
        "  torch  copy=True: negative strides are not supported",
    ]
    assert len(explained.verdicts) == 1


def test_to_accepts_the_same_names_as_convert():
    torch, pa = pytest.importorskip("torch"), pytest.importorskip("pyarrow")
    x = np.ones(3)
    expected = str(ah.explain(x, to="torch"))
    for to in ("pytorch", "Torch", torch, torch.Tensor):
        assert str(ah.explain(x, to=to)) == expected
    assert ah.explain(x, to=pa).verdicts[0].consumer == "arrow"


@pytest.mark.parametrize("to", ["xarray", "arrayhub", ah.NestedArray, ah.USMArray, np, "scipy.sparse", "sparse"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: np.ones(3), lambda: [[1.0], [2.0, 3.0]], lambda: b"ab", lambda: 3, lambda: {"a": {"b": [1, 2]}},
        lambda: [2**63, -1], lambda: [np.float64(1), np.array(2)], lambda: ah.asnested(np.arange(6.0)[::2]),
    ],
)  # fmt: skip
def test_suggested_call_for_each_target_of_convert_works(make, to):
    x = make()
    explained = ah.explain(x, to=to)
    (verdict,) = explained.verdicts
    if verdict.verdict == "cannot":
        with pytest.raises((BufferError, TypeError, ValueError, ImportError)):
            ah.convert(x, to, copy=True)
    else:
        assert eval(explained.call, {"arrayhub": ah, "x": x}) is not None


@pytest.mark.parametrize("to", ["tensorflow", "", 3, b"torch", ["torch"]])
def test_unknown_library_raises(to):
    with pytest.raises(ValueError, match=r"explain: to is .*; accepted: numpy, torch, jax, cupy, dpnp, numba"):
        ah.explain(np.zeros(3), to=to)


def test_html_is_the_escaped_text():
    cls = type("<script>alert(1)</script>", (), {"__module__": "<b>"})
    for obj in (np.zeros(3)[::-1], b"abc", object(), [1, 2], cls()):
        explained = ah.explain(obj)
        assert explained._repr_html_() == f"<pre>{html.escape(str(explained))}</pre>"


# ----------------------------------------------------------------------------------------------------- hostile objects


class Endless:
    """A wrapper whose `data` is another wrapper, without end."""

    __array_struct__ = property(lambda self: Endless())

    @property
    def data(self):
        return Endless()


class Text(str):
    """A string whose methods raise."""

    __slots__ = ()

    def __str__(self):
        raise Wicked

    partition = lstrip = __getitem__ = __len__ = __eq__ = __hash__ = __str__


class Speechless(Exception):
    def __str__(self):
        raise Wicked


class Chatty(Exception):
    def __str__(self):
        return "a\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}" + "b" * 1_000_000


class Lying(Exception):
    def __str__(self):
        return Text("text")


def odd_metaclass():
    class Meta(type):
        __module__ = property(raising(Wicked()))
        __name__ = property(raising(Wicked()))
        __mro__ = property(raising(Wicked()))
        __getattr__ = raising(Wicked())
        __instancecheck__ = __subclasscheck__ = __eq__ = raising(Wicked())
        __hash__ = type.__hash__

    return Meta("Odd", (), {})()


def dead_proxy():
    return weakref.proxy(type("Gone", (), {})())


def closed_memoryview():
    view = memoryview(b"abc")
    view.release()
    return view


def self_containing():
    one = []
    one.append(one)
    return one


ERRORS = [
    error() for error in (Wicked, SystemExit, GeneratorExit, RecursionError, MemoryError, Speechless, Chatty, Lying)
]
PROTOCOLS = [
    "__sycl_usm_array_interface__", "__cuda_array_interface__", "__array_interface__", "__array_struct__", "__dlpack__",
    "__dlpack_device__", "__dlpack_c_exchange_api__", "data",
]  # fmt: skip
HOSTILE = {
    **{
        f"{name} raises {type(error).__name__}": lambda name=name, error=error: with_method(name, raising(error))
        for name in ("__getattr__", "__getattribute__", "__repr__", "__eq__", "__bool__", "__len__", "__array__")
        for error in ERRORS
    },
    **{
        f"{name} is a property that raises {type(error).__name__}": lambda name=name, error=error: with_method(
            name, property(raising(error))
        )
        for name in ("__class__", "__dict__", "__module__", "__doc__", *PROTOCOLS)
        for error in ERRORS
    },
    **{
        f"{name} is {value!r:.30}": lambda name=name, value=value: with_method(name, value)
        for name in ("__class__", "__dict__", "__module__", "__qualname__", *PROTOCOLS)
        for value in (None, 3, "x" * 1_000_000, {}, {"shape": (3,)}, np.ndarray, list)
        if name != "__qualname__" or isinstance(value, str)
    },
    "__getattr__ returns self": lambda: with_method("__getattr__", lambda self, name: self),
    "__getattr__ returns a new object": lambda: with_method("__getattr__", lambda self, name: type(self)()),
    "__getattr__ calls itself": lambda: with_method("__getattr__", lambda self, name: getattr(self, name)),
    "__repr__ is huge": lambda: with_method("__repr__", lambda self: "x" * 50_000_000),
    "__repr__ returns an int": lambda: with_method("__repr__", lambda self: 3),
    "__class__ is a property that returns ndarray": lambda: with_method("__class__", property(lambda self: np.ndarray)),
    "infinitely nested wrappers": Endless,
    "a metaclass": odd_metaclass,
    "a mock": mock.MagicMock,
    "a mock of an array": lambda: mock.MagicMock(spec=np.ndarray),
    "a dead proxy": dead_proxy,
    "a released memoryview": closed_memoryview,
    "a list that contains itself": self_containing,
    "a list of hostile objects": lambda: [with_method("__getattr__", raising(Wicked()))],
    "a list, __len__ raises": lambda: with_method("__iter__", raising(Wicked()), (list,), __len__=raising(Wicked())),
    "a long list": lambda: [0] * 5_000_000,
    "a deep list": lambda: eval("[" * 90 + "]" * 90),
    "an int, __int__ raises": lambda: with_method("__int__", raising(Wicked()), (int,), __index__=raising(Wicked())),
    "a hostile ndarray": lambda: np.zeros(3).view(
        type("Hostile", (np.ndarray,), {"__getattribute__": raising(Wicked())})
    ),
    "a type": lambda: np.ndarray,
    "a module": lambda: sys,
    "a function": lambda: len,
    "a generator": lambda: (i for i in range(3)),
    "a record of objects": lambda: np.zeros(2, [("x", object)]),
    "None": lambda: None,
    "a null pointer": lambda: exporter(buf=0),
    "a buffer whose shape exceeds its length": lambda: exporter(shape=[2**62], len=12),
    "a struct with 40 dimensions": lambda: StructProducer(nd=40),
    "a struct with a null pointer": lambda: StructProducer(data=0),
    "a name with control characters": lambda: type("A\n\x1b[31m", (), {})(),
    "a long name": lambda: type("x" * 1_000_000, (), {})(),
}  # fmt: skip


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_explain_never_raises(make):
    obj = make()
    explained = ah.explain(obj)
    assert all(verdict.verdict in WORDS and type(verdict.verdict) is str for verdict in explained.verdicts)
    text, page = str(explained), explained._repr_html_()
    assert type(text) is str and len(text) < 8_000 and len(page) < 16_000
    assert text.replace("\n", "").isprintable()
    text.encode()
    assert len(str(ah.explain(obj, to="numpy"))) < 3_000


def test_keyboard_interrupt_propagates():
    with pytest.raises(KeyboardInterrupt):
        ah.explain(with_method("__getattr__", raising(KeyboardInterrupt())))


@pytest.mark.slow
def test_explain_does_not_access_memory():
    """The addresses in the dict are invalid, so an access would crash the process."""
    said = python(
        """
        import arrayhub as ah

        class Nowhere:
            def __init__(self, **keys):
                self.__array_interface__ = {"shape": (1000, 3), "data": (2**45, False), "version": 3, **keys}

        for typestr in ("<f4", "<f8", ">f4", "|u1", "<U3", "<M8[s]", "|b1"):
            for address in (2**45, 2**45 + 1):
                print(ah.explain(Nowhere(typestr=typestr, data=(address, False))))
        print("alive")
        """
    )
    assert said.endswith("alive\n")


def test_explain_reads_a_property_once():
    read, said = [], np.arange(3).__array_interface__
    ah.explain(producer(__array_interface__=property(lambda self: read.append(1) or said)))
    assert len(read) == 1


def test_summary_contains_the_type_and_the_chunks():
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    assert ah.explain(pyarrow.chunked_array([[1, 2], [3]])).summary == "3 * int64, immutable, on cpu, in 2 chunks"
    assert "2 * ?int64" in ah.explain(pandas.array([1, None], dtype="Int64")).summary
    # The items alone are int64 and uint64, whose common type is float64.
    assert ah.explain([np.int64(3), 2**63]).summary == "a value, which NumPy converts to uint64"


FOR_XARRAY = {
    "0 dimensions": lambda: np.zeros(()),
    "strings": lambda: np.array(["a"]),
    "records": lambda: np.array([(1, [2.0, 3.0])], [("a", "i4"), ("b", "f4", 2)]),
    "a matrix": lambda: np.eye(2),
    "NaN of pandas": lambda: pytest.importorskip("pandas").Series([1.0, np.nan]),
}


@pytest.mark.parametrize("name", FOR_XARRAY)
def test_verdict_for_xarray_agrees_with_convert(name):
    xarray = pytest.importorskip("xarray")
    x = FOR_XARRAY[name]()
    explained = ah.explain(x, to="xarray")
    assert (explained.call, explained.verdicts[0].verdict) == ("arrayhub.convert(x, 'xarray')", "zero-copy")
    made = ah.convert(x, "xarray")
    assert isinstance(made, xarray.DataArray) and repr(made.data.tolist()) == repr(x.tolist())


def test_rows_of_length_zero_are_not_suggested_to_polars():
    pytest.importorskip("polars")
    x = np.zeros((3, 0))
    explained = ah.explain(x, to="polars")
    assert explained.verdicts[0].verdict == "cannot" and "length 0" in explained.verdicts[0].reason
    assert eval(explained.call, {"arrayhub": ah, "x": x}) is not None
    assert ah.explain(np.zeros((0, 3)), to="polars").verdicts[0].verdict == "zero-copy"
