"""Test the C exchange table of DLPack: arrayhub's own table, called as from C code, and tables of other libraries."""

import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from dlpack_by_hand import (
    FROM_PY_OBJECT,
    IS_COPIED,
    PADDED,
    READ_ONLY,
    ExchangeTable,
    Handmade,
    Tensor,
    VersionedTensor,
    delete,
    new_capsule,
)
from exchange_table import NAME, SET_ERROR, TABLE, function, pointer, prototype
from producers import lives

import arrayhub
from arrayhub import USMArray
from arrayhub.convert.functions import import_unadvised


def from_py_object(obj):
    out = pointer()
    assert function("from_py_object", ctypes.py_object, pointer)(obj, ctypes.addressof(out)) == 0
    return VersionedTensor.from_address(out.value)


def to_py_object(managed):
    out = pointer()
    address = 0 if managed is None else ctypes.addressof(managed)
    assert function("to_py_object", pointer, pointer)(address, ctypes.addressof(out)) == 0
    obj = ctypes.cast(out, ctypes.py_object).value  # `value` is a new reference
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(obj))  # release the reference from `to_py_object`
    return obj


def borrow(obj):
    out = Tensor()
    assert function("borrow", ctypes.py_object, pointer)(obj, ctypes.addressof(out)) == 0
    return out


def allocate(prototype, *, with_gil=True):
    """Call the allocator. Return its result, the managed tensor or None, and the errors passed to SetError."""
    errors = []
    set_error = SET_ERROR(lambda context, kind, message: errors.append((context, kind.decode(), message.decode())))
    out = pointer(1)
    call = function("allocator", pointer, pointer, pointer, SET_ERROR, with_gil=with_gil)
    code = call(ctypes.addressof(prototype), ctypes.addressof(out), 0xC0FFEE, set_error)
    return code, VersionedTensor.from_address(out.value) if out.value else None, errors


def refcount(obj):
    gc.collect()
    return sys.getrefcount(obj)


# ---- arrayhub's table ----------------------------------------------------------------


def test_table_has_the_dlpack_version():
    assert (TABLE.version.major, TABLE.version.minor, TABLE.prev_api) == (1, 3, None)
    for field in ("allocator", "from_py_object", "to_py_object", "borrow", "current_work_stream"):
        assert getattr(TABLE, field)


def test_array_is_exported_as_a_managed_tensor():
    owner = np.zeros((2, 3))
    alive = weakref.ref(owner)
    a = arrayhub.asarray(owner[::-1])
    managed = from_py_object(a)
    tensor = managed.dl_tensor
    assert (managed.version.major, managed.version.minor, managed.flags) == (1, 3, 0)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([2, 3], [-3, 1])
    assert tensor.data + tensor.byte_offset == a.ptr
    del owner, a
    assert lives(alive)
    delete(managed)
    assert alive() is None


def test_managed_tensor_has_the_flags_of_the_array():
    managed = from_py_object(arrayhub.asarray(b"abc"))
    assert managed.flags == READ_ONLY
    delete(managed)
    managed = from_py_object(arrayhub.asarray(np.zeros(3)).copy())
    assert not managed.flags & IS_COPIED
    delete(managed)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    managed = from_py_object(arrayhub.asarray(np.zeros(3, ml_dtypes.int4)))
    assert managed.flags == PADDED
    delete(managed)


@pytest.mark.parametrize("stranger", [object(), 5.5, np.zeros(3), USMArray])
def test_objects_of_other_types_raise_type_error(stranger):
    before = refcount(stranger)
    for call in (from_py_object, borrow):
        with pytest.raises(TypeError):
            call(stranger)
    assert refcount(stranger) == before


def test_types_without_a_dlpack_code_raise_buffer_error():
    for array in (np.zeros(3, ">f8"), np.zeros(3, "M8[s]"), np.zeros(3, "f4,i2")):
        for call in (from_py_object, borrow):
            with pytest.raises(BufferError, match="DLPack"):
                call(arrayhub.asarray(array))


def test_managed_tensor_is_imported_as_an_array():
    made = Handmade(flags=READ_ONLY)
    a = to_py_object(made.managed)
    assert type(a) is USMArray
    assert (a.ptr, a.shape, a.access) == (made.memory.ctypes.data, (4,), "readonly")
    unshared = object()
    assert sys.getrefcount(a) == sys.getrefcount(unshared)
    assert made.deleted == 0
    del a
    assert made.deleted == 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"ndim": -1}, ValueError), ({"version": (2, 0)}, BufferError), ({"dtype": (2, 64, 2)}, BufferError)],
)
@pytest.mark.parametrize(
    "take",
    [lambda made: to_py_object(made.managed), lambda made: import_unadvised(table_type()[0](made))],
    ids=["our table", "another type's"],
)
def test_rejected_managed_tensor_is_released(take, fields, error):
    made = Handmade(**fields)
    with pytest.raises(error, match="DLPack"):
        take(made)
    gc.collect()
    assert made.deleted == 1


def test_null_managed_tensor_raises():
    with pytest.raises(ValueError, match="NULL"):
        to_py_object(None)


def test_array_round_trips_through_the_table():
    a = arrayhub.asarray(np.arange(4.0))
    before = refcount(a)
    b = to_py_object(from_py_object(a))
    assert (b.ptr, b.shape) == (a.ptr, a.shape)
    assert refcount(a) == before + 1
    del b
    assert refcount(a) == before


def test_borrowed_tensor_does_not_add_a_reference():
    a = arrayhub.asarray(np.arange(6.0).reshape(2, 3)[:, ::-1])
    before = refcount(a)
    tensor = borrow(a)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([2, 3], [3, -1])
    assert tensor.data + tensor.byte_offset == a.ptr
    assert refcount(a) == before


def test_table_waits_for_the_queue_of_sycl_memory(dpctl):
    dpnp = pytest.importorskip("dpnp")
    x = dpnp.matmul(*[dpnp.ones((1000, 1000))] * 2)
    pending = x.sycl_queue.submit_barrier()
    borrow(arrayhub.asarray(x))
    assert pending.execution_status == dpctl.event_status_type.complete


def test_arrays_that_require_flags_cannot_be_borrowed():
    with pytest.raises(BufferError, match=r"read-only.*managed_tensor_from_py_object_no_sync"):
        borrow(arrayhub.asarray(b"abc"))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(BufferError, match=r"padded.*managed_tensor_from_py_object_no_sync"):
        borrow(arrayhub.asarray(np.zeros(3, ml_dtypes.int4)))


@pytest.mark.parametrize("with_gil", [True, False])
def test_current_work_stream_is_null(with_gil):
    out = pointer(1)
    call = function("current_work_stream", ctypes.c_int, ctypes.c_int32, pointer, with_gil=with_gil)
    for device in (1, 2, 14, -1, 1000):
        assert call(device, 0, ctypes.addressof(out)) == 0
        assert out.value is None


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (1,) * 64])
def test_allocator_returns_new_memory(shape):
    code, managed, errors = allocate(prototype(shape=shape))
    assert (code, errors, managed.flags) == (0, [], 0)
    a = to_py_object(managed)
    assert (a.shape, a.dtype, a.access, a.protocol) == (shape, np.dtype("f8"), "readwrite", "dlpack")
    assert a.flags.c_contiguous
    assert a.ptr % 64 == 0
    view = np.asarray(a)
    view[...] = 1
    assert view.sum() == a.size


def test_allocator_packs_elements_smaller_than_a_byte():
    code, managed, errors = allocate(prototype(shape=(5,), dtype=(17, 4, 1)))
    assert (code, errors, managed.flags) == (0, [], 0)
    assert to_py_object(managed).nbytes == 3


REFUSED = {
    "ndim -1": ({"ndim": -1}, "InterfaceError", "ndim is -1"),
    "ndim 1000": ({"ndim": 1000}, "InterfaceError", "ndim is 1000"),
    "negative": ({"shape": (-1,)}, "InterfaceError", "shape"),
    "too many elements": ({"shape": (2**62, 4)}, "InterfaceError", "below 2**63"),
    "more than the memory of the machine": ({"shape": (2**59,)}, "MemoryError", "bytes"),
    "unknown type": ({"dtype": (99, 1, 1)}, "InterfaceError", "(99, 1)"),
    "lanes": ({"dtype": (2, 32, 4)}, "BufferError", "lanes is 4"),
    "no such device": ({"device": (99, 0)}, "InterfaceError", "device_type is 99"),
    "no runtime": ({"device": (16, 0)}, "BufferError", "hexagon"),
}


@pytest.mark.parametrize("with_gil", [True, False])
@pytest.mark.parametrize("case", REFUSED)
def test_allocator_reports_errors_only_through_set_error(case, with_gil):
    fields, kind, text = REFUSED[case]
    code, managed, errors = allocate(prototype(**fields), with_gil=with_gil)
    assert (code, managed) == (-1, None)
    [(context, got, message)] = errors
    assert (context, got) == (0xC0FFEE, kind)
    assert text in message


def test_exception_set_by_set_error_stays_pending():
    """The SetError callback may set a Python exception, as C++ callers do."""
    set_error = SET_ERROR(ctypes.cast(ctypes.pythonapi.PyErr_SetString, pointer).value)
    out = pointer()
    call = function("allocator", pointer, pointer, ctypes.py_object, SET_ERROR)

    # SetError(context, kind, message) is PyErr_SetString(type, message) here, so `kind` becomes the message.
    with pytest.raises(KeyError, match="InterfaceError"):
        call(ctypes.addressof(prototype(ndim=-1)), ctypes.addressof(out), KeyError, set_error)


def test_allocator_accepts_a_null_set_error():
    out = pointer(1)
    call = function("allocator", pointer, pointer, pointer, pointer)
    assert call(ctypes.addressof(prototype(ndim=-1)), ctypes.addressof(out), None, None) == -1
    assert out.value is None


def test_table_functions_can_be_called_without_the_gil():
    a = arrayhub.asarray(np.arange(4.0))
    before = refcount(a)
    done = []

    def work():
        out = pointer()
        for _ in range(200):
            assert function("from_py_object", pointer, pointer, with_gil=False)(id(a), ctypes.addressof(out)) == 0
            delete(VersionedTensor.from_address(out.value))
            assert function("borrow", pointer, pointer, with_gil=False)(id(a), ctypes.addressof(Tensor())) == 0
            code, managed, _errors = allocate(prototype_, with_gil=False)
            assert code == 0
            delete(managed)
        done.append(1)

    prototype_ = prototype(shape=(3,))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [1, 1, 1]
    assert refcount(a) == before


def test_tvm_ffi_uses_the_table():
    """A tvm_ffi call imports its arguments through the table, and returns arrays of the arguments' type."""
    tvm_ffi = pytest.importorskip("tvm_ffi")
    seen = []

    def record(x):
        seen.append((type(x), tuple(x.shape), tuple(x.strides), np.from_dlpack(x).ctypes.data))
        return x

    a = arrayhub.asarray(np.arange(6.0).reshape(2, 3)[::-1])
    before = refcount(a)
    back = tvm_ffi.convert(record)(a)
    assert seen == [(tvm_ffi.Tensor, (2, 3), (-3, 1), a.ptr)]
    assert type(back) is USMArray
    assert back.ptr == a.ptr
    del back
    assert refcount(a) == before
    with pytest.raises(BufferError, match="native byte order"):
        tvm_ffi.convert(record)(arrayhub.asarray(np.zeros(3, ">f4")))


# ---- other libraries' tables ----------------------------------------------------------------


class Foreign:
    """A wrapper of a Handmade object. Its subclasses have a hand-made exchange table."""

    def __init__(self, made):
        self.made = made


_kept = []


def table_type(*, version=(1, 0), previous=None, answer=0, functions=True, name="Foreign"):
    """Return a new type with an exchange table, the list of objects that were exported, and the table.

    The table exports the managed tensor of the Handmade object that an instance wraps.
    """
    asked = []

    def hand_over(address, out):
        obj = ctypes.cast(address, ctypes.py_object).value
        asked.append(obj)
        out[0] = ctypes.addressof(obj.made.managed) if answer == 0 else None
        return answer

    callback = FROM_PY_OBJECT(hand_over)
    table = ExchangeTable()
    table.version.major, table.version.minor = version
    table.prev_api = previous
    if functions:
        table.from_py_object = ctypes.cast(callback, pointer)  # the table's function for borrowing may be NULL
    _kept.extend([callback, table])
    capsule = new_capsule(ctypes.addressof(table), NAME, None)
    return type(name, (Foreign,), {"__dlpack_c_exchange_api__": capsule}), asked, table


def test_exchange_table_of_another_type_is_used():
    cls, asked, _table = table_type()
    made = Handmade(flags=READ_ONLY)
    obj = cls(made)
    a = arrayhub.asarray(obj)
    assert asked == [obj]
    assert (a.ptr, a.access, a.protocol, a.base) == (made.memory.ctypes.data, "readonly", "dlpack", obj)
    del a, asked[:]
    gc.collect()
    assert made.deleted == 1


def test_supported_table_is_found_behind_newer_tables():
    _cls, asked, old = table_type()
    newest = old
    for major in (2, 3, 4):
        cls, unused, newest = table_type(version=(major, 0), previous=ctypes.addressof(newest))
    made = Handmade()
    a = arrayhub.asarray(cls(made))
    assert (len(asked), unused, a.size) == (1, [], 4)


def unusable():
    newer, _asked, _table = table_type(version=(2, 0))
    ring, _asked, table = table_type(version=(2, 0))
    table.prev_api = ctypes.addressof(table)
    empty, _asked, _table = table_type(functions=False)
    named = type(
        "Named", (Foreign,), {"__dlpack_c_exchange_api__": new_capsule(ctypes.addressof(table), b"other", None)}
    )
    number = type("Number", (Foreign,), {"__dlpack_c_exchange_api__": ctypes.addressof(table)})
    base, _asked, _table = table_type()
    heir = type("Heir", (base,), {})
    return {
        "newer version only": newer, "prev_api is the table itself": ring, "no functions": empty, "another name": named,
        "a number": number, "inherited": heir,
    }  # fmt: skip


@pytest.mark.parametrize("case", unusable())
def test_unusable_table_is_ignored(case):
    cls = unusable()[case]
    with pytest.raises(TypeError):
        arrayhub.asarray(cls(Handmade()))
    cls.__dlpack__ = lambda self, **_: self.made.capsule()
    cls.__dlpack_device__ = lambda self: (1, 0)
    again = type(cls.__name__, (cls,), {})
    assert arrayhub.asarray(again(Handmade())).size == 4


def test_failure_of_a_table_without_an_exception_raises():
    cls, _asked, _table = table_type(answer=-1)
    with pytest.raises(BufferError, match="failed without an exception"):
        arrayhub.asarray(cls(Handmade()))


def test_tensor_subclasses_do_not_use_the_table():
    """Import a tensor subclass through its ``__dlpack__``, because torch's table would ignore its override."""
    torch = pytest.importorskip("torch")

    class Negated(torch.Tensor):
        def __dlpack__(self, **keywords):
            return (-self.as_subclass(torch.Tensor)).__dlpack__(**keywords)

    a = arrayhub.asarray(torch.arange(1.0, 3.0).as_subclass(Negated))
    assert np.asarray(a).tolist() == [-1, -2]
