"""Test producers that change their own data during an import, and C code that fails without setting an exception."""

import ctypes

import numpy as np
import pytest
from children import python
from exporters import GETBUFFER, TP_AS_BUFFER, Index, StructProducer, ssizes

import arrayhub as ah

pytestmark = pytest.mark.slow


def test_structs_are_copied_before_validation():
    """The import uses a copy of the struct. An ``__index__`` in ``descr`` modifies the struct and frees ``descr``."""

    def change():
        producer.struct.nd, producer.struct.itemsize = 60, 1 << 20
        producer.struct.shape = ctypes.cast(ssizes([1 << 40] * 60), type(producer.struct.shape))
        producer.struct.descr, producer.descr = None, None

    producer = StructProducer(
        typekind=b"V", itemsize=4, flags=0xE00, shape=[3], strides=[4],
        descr=[("a", "|u1", (Index(2, change),)), ("b", "<i2")],
    )  # fmt: skip
    x = ah.asarray(producer, via="array_struct")
    assert (x.shape, x.byte_strides, x.itemsize, x.dtype.names) == ((3,), (4,), 4, ("a", "b"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what NumPy 2.5 deprecates
@pytest.mark.parametrize("change", ["dtype", "shape"])
def test_array_modified_by_its_mask_property_is_imported_consistently(change):
    class Changes(np.ma.MaskedArray):
        @property
        def mask(self):
            if change == "dtype":
                np.ndarray.dtype.__set__(self, "u1")
            else:
                np.ndarray.shape.__set__(self, (1, 2, 3, 1, 4))
            return np.ma.nomask

    array = np.arange(24.0).view(Changes)
    x = ah.asarray(array)
    assert (x.shape, x.dtype, x.nbytes) == (np.ndarray.shape.__get__(array), np.ndarray.dtype.__get__(array), 192)


def test_ctypes_type_that_is_its_own_element_is_rejected():
    """Runs in a subprocess, because an infinite loop in C code could not be interrupted."""
    python("""
    import ctypes, arrayhub as ah
    class Own(ctypes.Array):
        _length_ = 3
        _type_ = ctypes.c_int16
    Own._type_ = Own
    try:
        ah.asarray(Own())
    except ah.InterfaceError as error:
        assert "the ctypes type" in str(error), error
    """)


def test_descr_with_exponentially_many_fields_is_rejected():
    fields = [("a", "|u1")]
    for _ in range(30):
        fields = [("a", fields), ("b", fields)]

    class Doubles:
        __array_interface__ = {  # noqa: RUF012
            "shape": (1,), "typestr": "|V8", "data": (64, False), "version": 3, "descr": fields
        }  # fmt: skip

    with pytest.raises(ah.InterfaceError, match="descr is .* at most 4096 fields"):
        ah.asarray(Doubles(), via="array_interface")


def silent_exporter():
    """Return an object whose buffer request fails without an exception."""
    kind = type("Silent", (), {})

    @GETBUFFER
    def get(self, view, flags):
        return -1

    slots = ctypes.c_void_p.from_address(id(kind) + TP_AS_BUFFER).value
    ctypes.c_void_p.from_address(slots).value = ctypes.cast(get, ctypes.c_void_p).value
    kind.kept = get
    _alive.append(kind)
    return kind()


_alive = []


def say(x, via):
    """Return the type and text of the exception of an import, or "nothing raised"."""
    try:
        ah.asarray(x, via=via)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing raised"


SILENT = """
import test_hostile_producers as t
for via in (None, "buffer"):
    print(t.say(t.silent_exporter(), via))
class Dict:
    __array_interface__ = {"shape": (1,), "typestr": "|u1", "data": t.silent_exporter(), "version": 3}
print(t.say(Dict(), "array_interface"))
"""

CLEARING = """
import ctypes, test_hostile_producers as t
from children import python
from exporters import pythonapi
name = b"no name of ours"
memory = ctypes.create_string_buffer(64)
clear = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda capsule: pythonapi.PyErr_Clear())
new = pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
class Clears:
    def __dlpack__(self, **keywords):
        return new(ctypes.addressof(memory), name, ctypes.cast(pythonapi.PyErr_Clear, ctypes.c_void_p))
    def __dlpack_device__(self): return (1, 0)
    @property
    def __array_struct__(self): return self.__dlpack__()
for via in (None, "dlpack", "array_struct"):
    for _ in range(100): said = t.say(Clears(), via)
    print(said)
"""


@pytest.mark.parametrize(("code", "words"), [(SILENT, "without an exception"), (CLEARING, "no name of ours|a capsule")])
def test_failure_without_an_exception_raises_a_meaningful_error(code, words):
    import re

    lines = python(code, beside=__file__).splitlines()
    assert len(lines) == 3
    for line in lines:
        assert re.match("(InterfaceError|Refusal): ", line) and re.search(words, line), line


def test_error_for_a_released_memoryview_names_the_cause():
    view = memoryview(b"abc")
    view.release()
    with pytest.raises(BufferError, match="PEP 3118 buffer: memoryview: .*released"):
        ah.asarray(view)


def test_format_that_adds_the_65th_dimension_is_rejected():
    from exporters import exporter

    obj = exporter(ndim=64, shape=[1] * 64, strides=[4] * 64, format=b"(1)i")
    with pytest.raises(ah.InterfaceError, match="PEP 3118 buffer: .*65"):
        ah.asarray(obj)


TORCH = """
import numpy as np, torch, arrayhub as ah
base = np.zeros(400, "u1")
start = -base.ctypes.data % 16
for offset in (8, 4, 1):
    odd = base[start + offset :][:320].view("c16")
    try:
        ah.as_torch(odd)
    except BufferError as error:
        assert "16-byte" in str(error), error
    else:
        raise SystemExit("came out")
    ah.as_torch(odd, copy=True).fill_(1j).sum()
assert ah.as_torch(base[start:][:320].view("c16")).sum() == 0
"""

EMPTY = """
import gc, sys, ml_dtypes, numpy as np, torch, arrayhub as ah
x = ah.USMArray((0, 1 << 40, 1 << 40), ml_dtypes.float8_e5m2, "cpu", strides=(0, 0, 0))
before = sys.getrefcount(x)
for _ in range(100):
    try:
        ah.as_torch(x)
    except BufferError:
        pass
gc.collect()
assert sys.getrefcount(x) == before, (sys.getrefcount(x), before)
y = ah.as_torch(ah.asarray(np.zeros((0, 3), ml_dtypes.float8_e5m2)))
assert y.shape == (0, 3)
"""


@pytest.mark.parametrize("code", [TORCH, EMPTY], ids=["complex128", "empty float8"])
def test_arrays_that_crash_torch_are_not_exported(code):
    pytest.importorskip("torch")
    python(code)
