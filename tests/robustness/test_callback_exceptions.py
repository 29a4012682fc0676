"""Exceptions that a producer's callback leaves set are reported, and arrayhub's callbacks return ENOMEM."""

import ctypes
import errno
import gc
import sys

import arrow_by_hand as by_hand
import numpy as np
import pytest
from children import python
from dlpack_by_hand import Handmade

import arrayhub as ah

pytestmark = pytest.mark.slow

# A callback that does nothing, returns 0 and leaves a MemoryError set.
LEAVES = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value


@pytest.fixture
def reported(monkeypatch):
    """Return a list of the types of the exceptions that are passed to `sys.unraisablehook`."""
    kinds = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: kinds.append(report.exc_type))
    return kinds


@pytest.mark.parametrize("versioned", [True, False])
def test_exception_left_by_a_dlpack_deleter_is_reported(versioned, reported):
    producer = Handmade(versioned=versioned)
    producer.managed.deleter = LEAVES
    x = ah.asarray(producer)
    assert reported == []
    del x
    gc.collect()
    assert reported == [MemoryError]


@pytest.mark.parametrize("field", ["schema_release", "array_release"])
def test_exception_left_by_an_arrow_release_is_reported(field, reported):
    kind = by_hand.RELEASE_SCHEMA if field == "schema_release" else by_hand.RELEASE_ARRAY
    producer = by_hand.Producer(b"l", [None, np.arange(3).ctypes.data_as(ctypes.c_void_p)], **{field: kind(LEAVES)})
    producer.keep.append(values := np.arange(3))
    producer.pointers[1] = values.ctypes.data
    x = ah.asarray(producer)
    assert ah.as_numpy(x).tolist() == [0, 1, 2]
    del x
    gc.collect()
    assert reported == [MemoryError]


@pytest.mark.parametrize("field", ["release", "get_schema"])
def test_exception_left_by_a_stream_callback_is_reported(field, reported):
    stream = by_hand.Streamed(by_hand.Producer(b"l", [None, by_hand.int64(1, 2, 3)]))
    if field == "release":
        stream.struct.release = type(stream.struct.release)(LEAVES)
        assert ah.asnested(stream).to_list() == [1, 2, 3]
    else:  # the callback does not set a schema, so the import raises
        stream.struct.get_schema = type(stream.struct.get_schema)(LEAVES)
        with pytest.raises(ah.InterfaceError, match="ArrowSchema.release"):
            ah.asnested(stream)
    assert reported == [MemoryError]


def test_stream_returns_enomem_without_memory():
    """Each allocation of `get_schema` fails in turn. Each failure returns ENOMEM and an error message."""
    assert (
        python("""
        import ctypes, _testcapi
        import arrow_by_hand as by_hand, numpy as np
        import arrayhub as ah

        capsule = ah.asarray(np.arange(3)).__arrow_c_stream__()
        stream = by_hand.struct_in(capsule, by_hand.Stream)
        address = lambda field: ctypes.cast(getattr(stream, field), ctypes.c_void_p).value
        get_schema = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address("get_schema"))
        last_error = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(address("get_last_error"))
        where, schema = ctypes.addressof(stream), by_hand.Schema()
        into = ctypes.addressof(schema)

        def call(start):  # only `get_schema` allocates while allocations fail
            stop, code = _testcapi.remove_mem_hooks, None
            _testcapi.set_nomemory(start, start + 100)
            try:
                code = get_schema(where, into)
            except BaseException:
                pass
            stop()
            return code

        seen = set()
        for start in range(40):
            code = call(start)
            if code:
                seen.add((code, last_error(where)))
                assert not schema.release
            elif code == 0:
                assert schema.release
                schema.release(schema)
        print(sorted(seen))
    """)
        == f"{[(errno.ENOMEM, b'MemoryError: not enough memory for the export')]}\n"
    )


class Owner:
    """Owner of memory that keeps a capsule, whose destructor is a foreign function that runs Python code."""

    def __init__(self, destructor):
        self.values = np.arange(3.0)
        self.__array_interface__ = self.values.__array_interface__
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule = new(self.values.ctypes.data, None, ctypes.cast(destructor, ctypes.c_void_p))


EXPORTS = {
    "__array_struct__": lambda x: x.__array_struct__,
    "imported __array_struct__": lambda x: ah.asarray(x, via="array_struct").__array_struct__,
    "__dlpack__": lambda x: x.__dlpack__(max_version=(1, 0)),
    "legacy __dlpack__": lambda x: x.__dlpack__(),
    "__arrow_c_array__": lambda x: x.__arrow_c_array__()[1],
    "__arrow_c_stream__": lambda x: ah.asnested(x).__arrow_c_stream__(),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_pending_exception_survives_the_release_of_an_export(export, reported):
    """The interpreter frees temporary objects of an expression while the exception of the expression is pending."""
    freed = []
    destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda capsule: freed.append(1))
    with pytest.raises(ZeroDivisionError):
        (export(ah.asarray(Owner(destructor))), 1 / 0)
    gc.collect()
    assert freed == [1] and reported == []
