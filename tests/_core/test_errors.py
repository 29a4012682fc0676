"""Test which exceptions of a producer propagate, and which make `asarray` treat the protocol as missing."""

import array
import pathlib
import sys

import numpy as np
import pytest
from exporters import FAST_PATHS_OFF
from producers import lending, producer, raising

import arrayhub

PACKAGE = pathlib.Path(arrayhub.__file__).parent

# Exceptions that every part of arrayhub must propagate.
PASSING = [KeyboardInterrupt, SystemExit, GeneratorExit]

ATTRIBUTES = [
    "__sycl_usm_array_interface__",
    "__cuda_array_interface__",
    "__array_interface__",
    "__array_struct__",
    "__gt_dims__",
    "__gt_origin__",
    "dims",
]


def producer_with(attributes, exception):
    """Return an object whose properties `attributes` raise `exception`."""
    return producer(**{name: property(raising(exception)) for name in attributes})


def asking(name, exception):
    """Return an object whose ``__getattr__`` raises `exception` for the attribute `name`."""

    class Asked:
        def __getattr__(self, asked):
            if asked == name:
                raise exception
            raise AttributeError(asked)

    return Asked()


def labelled(name, exception):
    """Return an instance of an ndarray subclass whose property `name` raises `exception`."""
    return np.arange(3).view(type("Labelled", (np.ndarray,), {name: property(raising(exception))}))


def legacy(exception):
    """Return a CUDA producer that predates DLPack 1.0. Its ``__dlpack__`` raises `exception`."""

    def export(self, *, stream=None, **keywords):
        raise TypeError if keywords else exception

    return producer(__dlpack__=export, __dlpack_device__=lambda self: (2, 0))


def asking_index(exception):
    return producer(__index__=raising(exception))


PROTOCOLS, LABELS = ATTRIBUTES[:4], ATTRIBUTES[4:]
MEMORY = np.zeros(8)
ENTRIES = {"version": 3, "typestr": "<f8", "data": (MEMORY.ctypes.data, False), "shape": (8,), "strides": (8,)}
# Each function takes an exception and returns an object that raises the exception during `asarray`.
ASKED = {
    **{f"property {name}": lambda error, name=name: producer_with([name], error) for name in PROTOCOLS},
    **{f"getattr {name}": lambda error, name=name: asking(name, error) for name in PROTOCOLS},
    **{f"label {name}": lambda error, name=name: labelled(name, error) for name in LABELS},
    **{
        name: lambda error, name=name: producer(**{"__dlpack__": lending(np.zeros(3)), name: raising(error)})
        for name in ("__dlpack__", "__dlpack_device__")
    },
    "`stream` of a legacy producer": legacy,
    **{
        f"{key} of a dict": lambda error, key=key: producer(
            __array_interface__={**ENTRIES, key: (asking_index(error),)}
        )
        for key in ("shape", "strides")
    },
}
if sys.version_info >= (3, 12):  # PEP 688: a Python class can export a buffer
    ASKED["buffer"] = lambda error: producer(__buffer__=raising(error))
CALLS = {
    **{name: lambda error, make=make: arrayhub.asarray(make(error)) for name, make in ASKED.items()},
    **{
        f"{name} via dlpack": lambda error, name=name: arrayhub.asarray(ASKED[name](error), via="dlpack")
        for name in ("__dlpack__", "__dlpack_device__")
    },
    "reshape": lambda error: arrayhub.asarray(np.zeros(4)).reshape(asking_index(error), 2),
    "index": lambda error: arrayhub.asarray(np.zeros(4))[asking_index(error)],
    "transpose": lambda error: arrayhub.asarray(np.zeros((2, 2))).transpose(asking_index(error), 0),
    "USMArray": lambda error: arrayhub.USMArray(asking_index(error), buffer="cpu"),
    "picture": lambda error: arrayhub.picture(asking_index(error)),
}


@pytest.mark.parametrize("exception", PASSING)
@pytest.mark.parametrize("call", CALLS)
def test_interrupts_propagate(call, exception):
    with pytest.raises(exception):
        CALLS[call](exception("passing"))


@pytest.mark.parametrize("exception", PASSING)
@pytest.mark.parametrize("name", ["__dlpack__", "requires_grad", "is_conj"])
def test_interrupts_of_a_tensor_subclass_propagate(name, exception):
    torch = pytest.importorskip("torch")

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), keywords=None):
            asked = getattr(function, "__name__", "")
            owner = getattr(getattr(function, "__self__", None), "__name__", "")
            if name in (asked, owner):
                raise exception("passing")
            return super().__torch_function__(function, types, arguments, keywords or {})

    with pytest.raises(exception):
        arrayhub.asarray(torch.zeros(3).as_subclass(Tensor))


# -------------------------------------------------------------------------------- an interrupt in each call of Python


def interrupted_everywhere(call):
    """Run `call` until it ends without an interrupt, and return the number of interrupted runs.

    Run k raises KeyboardInterrupt in the k-th call of a Python function.
    """
    for place in range(10_000):
        left = [place]

        def interrupt(frame, event, argument, left=left):
            if event == "call":
                left[0] -= 1
                if left[0] < 0:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            call()
        except KeyboardInterrupt:
            assert left[0] < 0
        else:
            assert left[0] >= 0, f"the interrupt in call {place} did not propagate"
            return place
        finally:
            sys.setprofile(None)
    raise AssertionError("no end")


class Polite:
    """A producer with a Python ``__getattr__``, like proxies and mocks."""

    def __init__(self):
        self.__dict__["source"] = np.arange(6.0).reshape(2, 3)

    def __getattr__(self, name):
        if name == "__array_interface__":
            return self.source.__array_interface__
        raise AttributeError(name)


SOURCE = np.arange(48.0).reshape(6, 8)
RECORD = np.zeros(4, "i4,f8,S3")


@pytest.mark.parametrize(
    "call",
    [
        lambda: arrayhub.asarray(Polite()),
        lambda: arrayhub.asarray(producer(__dlpack__=lending(np.arange(6.0)))),
        lambda: arrayhub.asarray(Polite(), via="array_interface"),
        lambda: arrayhub.asarray(SOURCE).copy(),
        lambda: arrayhub.asarray(SOURCE[::2, ::3]).copy("F"),
        lambda: arrayhub.asarray(RECORD).copy(),
        lambda: arrayhub.as_numpy(SOURCE, copy=True),
        lambda: arrayhub.to_host(SOURCE, out=np.empty((6, 8))),
        lambda: arrayhub.asarray(SOURCE, dtype="i4"),
        lambda: arrayhub.asarray(array.array("d", [1.0, 2.0])).copy(),
        lambda: arrayhub.zeros((3, 4), dtype="f4"),
    ],
    ids=["getattr", "dlpack", "via", "copy", "strides", "record", "as_numpy", "out", "dtype", "buffer", "zeros"],
)
def test_interrupt_in_each_python_call_propagates(call, request):
    if FAST_PATHS_OFF and "record" in request.node.callspec.id:
        pytest.skip("NumPy's __array_interface__ of a record array ignores the interrupt")
    call()  # the first call imports modules and fills caches
    interrupted_everywhere(call)


def test_cython_code_does_not_call_pyerr_clear():
    for path in PACKAGE.rglob("*.p[yx]*"):
        if path.suffix in (".pyx", ".pxd", ".pxi"):
            assert "PyErr_Clear" not in path.read_text(), path
