"""Random nested lists that are deep, share parts or contain themselves, and empty arrays with arbitrary strides."""

import sys

import ml_dtypes
import numpy as np

import arrayhub as ah

TYPES = ["i1", "f4", "?", "c16", ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16]
STRIDES = [-8, -1, 0, 1, 3, 8, 2**31, 2**62, -(2**62)]


def nested(r):
    """Draw a list that is deep, shares parts, or contains itself."""
    value = r.choice([1, 2.5, "a", None, [], [1, 2]])
    for _ in range(r.choice([1, 3, 30, 63, 64, 65, 200, 3000])):
        value = [value] * (2 if r.random() < 0.02 else 1)
    if r.random() < 0.2:
        inner = value
        while isinstance(inner[0], list) and inner[0] and r.random() < 0.8:
            inner = inner[0]
        inner.append(value)
    return value


def draw_lists(r):
    """Draw a list, and a call that passes it to a function that accepts lists."""
    value, what = nested(r), r.choice(["asarray", "dtype", "set", "full", "nested", "check"])

    def call():
        if what == "asarray":
            ah.asarray(value)
        elif what == "dtype":
            ah.asarray(value, dtype="f8")
        elif what == "set":
            ah.zeros(2)[...] = value
        elif what == "full":
            ah.full((2,), value)
        elif what == "check":
            ah.check(value)
        else:
            ah.asnested(value).to_list()

    return what, call


def draw_empty(r):
    """Draw an array without elements, and a call that exports it and checks that its reference count is unchanged."""
    shape = [r.choice([1, 2, 3, 7]) for _ in range(r.randint(1, 4))]
    shape[r.randrange(len(shape))] = 0
    strides = [r.choice(STRIDES) for _ in shape]
    dtype, what = np.dtype(r.choice(TYPES)), r.choice(["numpy", "dlpack", "memoryview", "arrow", "torch"])
    x = ah.asarray(np.ndarray(tuple(shape), dtype, np.zeros(64, "u1"), 0, tuple(strides)))

    def call():
        torch = sys.modules.get("torch")
        before = sys.getrefcount(x)
        try:
            if what == "numpy":
                assert ah.as_numpy(x).shape == x.shape
            elif what == "dlpack":
                assert np.from_dlpack(x).shape == x.shape
            elif what == "memoryview":
                assert memoryview(x).shape == x.shape
            elif what == "arrow":
                getattr(x, "__arrow_c_array__", str)()  # absent for types that Arrow does not have
            elif torch is not None:
                assert tuple(torch.from_dlpack(x).shape) == x.shape
        except RuntimeError as error:  # NumPy and torch raise it for types that they do not have
            raise BufferError(str(error)) from error
        finally:
            assert sys.getrefcount(x) == before, (sys.getrefcount(x), before)

    return f"{what} {dtype} {tuple(shape)} {tuple(strides)}", call
