"""Compare imports and exports of arrays in extension modules by arrayhub and by the extension framework."""

import array

import numpy as np

import arrayhub

from . import native_peers
from .measure import Result, Timed, compare

# Limits of the ratio to the peer's time, by type of the argument. The columns are the peers nb::ndarray, py::array_t
# and PyArray_FROM_OTF.
LIMITS = {
    "numpy array": (0.7, 0.6, 1.05),
    "torch tensor": (0.08, 0.15, None),
    "jax array": (0.25, 0.7, None),
    "USMArray": (0.5, 0.2, None),
    "array.array": (None, None, None),
    "strided numpy array": (None, None, None),
}
OUT_AT_MOST = 1.2
LOOP_AT_MOST = 1.1


def inputs():
    """Yield the name and a float64 array of each type of argument whose library is installed."""
    a = np.arange(12.0)
    yield "numpy array", a
    yield "USMArray", arrayhub.asarray(a)
    yield "array.array", array.array("d", a)
    yield "strided numpy array", np.arange(24.0).reshape(4, 6)[:, ::2]
    try:
        import torch

        yield "torch tensor", torch.arange(12, dtype=torch.float64)
    except ImportError:
        pass
    try:
        import jax

        with jax.enable_x64(True):
            yield "jax array", jax.numpy.arange(12.0)
    except ImportError:
        pass


# One row per framework: its name, the function that builds its extension, its array type or conversion function, and
# the names of its import and export functions.
FRAMEWORKS = (
    ("nanobind", native_peers.nanobind, "nb::ndarray<const double>", "take_own", "out_own"),
    ("pybind11", native_peers.pybind11, "py::array_t<double>", "take_own", "out_own"),
    ("C", native_peers.c, "PyArray_FROM_OTF", "take_numpy", "out_numpy"),
)


def native(options):
    """Measure the functions of each framework. Yield a `Result`, or the reason why a comparison is skipped."""
    for column, (name, make, own, take, out) in enumerate(FRAMEWORKS):
        try:
            module = make()
        except (ImportError, RuntimeError) as error:
            yield "native", f"{name}: {error}"
            continue
        names = {"ours": module.take, "peer": getattr(module, take)}
        for kind, x in inputs():
            names["x"] = x
            try:
                names["peer"](x)
            except (TypeError, ValueError, RuntimeError, BufferError) as error:
                yield "native", f"{name}: {own} refuses a {kind} ({type(error).__name__})"
                continue
            yield row(f"{name}: import of {kind}", own, "ours(x)", "peer(x)", names, options, LIMITS[kind][column])
        names = {"ours": module.out, "peer": getattr(module, out)}
        yield row(f"{name}: export of a vector", own, "ours()", "peer()", names, options, OUT_AT_MOST)
        if hasattr(module, "loop"):
            names = {"ours": module.loop, "peer": module.loop_pointer, "x": arrayhub.asarray(np.arange(20000.0)[::2])}
            yield row(
                f"{name}: loop over 10000 elements",
                "a raw pointer",
                "ours(x)",
                "peer(x)",
                names,
                options,
                LOOP_AT_MOST,
            )


def row(way, peer, ours, theirs, names, options, at_most):
    times = compare(Timed(ours, names), Timed(theirs, names), options.repeat, options.sample)
    return Result("native", way, peer, at_most=at_most, **times)
