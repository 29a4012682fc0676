"""Program of ``python -m arrayhub demo``: convert arrays of all installed libraries to each other.

Each conversion requests the same memory, and a copy if the library refuses that. A conversion fails if the result has
different values, or is at a different address although it should share memory. A library that refuses every array, also
with a copy, is a failure, too. ``python -m arrayhub doctor`` lists the libraries and devices.
"""

import array
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import arrayhub
from arrayhub import USMArray, sycl_runtime
from arrayhub.runtimes.cuda import has_device

CONSUMERS = ("numpy", "torch", "jax", "numba", "dpnp", "cupy", "pyarrow", "polars", "pandas", "awkward")

# The elements of all arrays of the demo, at an address that jax shares.
VALUES = arrayhub.as_numpy(arrayhub.from_array(np.arange(12, dtype="f4").reshape(3, 4)))


def is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def find_sycl_devices() -> list[str]:
    """Return the names of the SYCL devices. The list is empty without dpctl, a runtime or a driver."""
    if not is_installed("dpctl"):
        return []
    sycl_runtime.configure()
    return [device.name for device in importlib.import_module("dpctl").get_devices()]


# ------------------------------------------------------------------------------------------------------ producers


def make_tensors(torch: Any) -> dict[str, Any]:
    tensors = {"torch tensor": torch.arange(12, dtype=torch.float32).reshape(3, 4)}
    if torch.cuda.is_available():
        tensors["torch tensor on a GPU"] = tensors["torch tensor"].cuda()
    return tensors


def make_usm(dpctl: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for kind in ("Host", "Shared", "Device") if find_sycl_devices() else ():
        block = getattr(importlib.import_module("dpctl.memory"), f"MemoryUSM{kind}")(12)
        block.copy_from_host(bytes(range(12)))
        arrays[f"dpctl MemoryUSM{kind}"] = block
    return arrays


PRODUCERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "ml_dtypes": lambda ml_dtypes: {"numpy array of bfloat16": VALUES.astype(ml_dtypes.bfloat16)},
    "torch": make_tensors,
    "jax": lambda jax: {"jax array": jax.device_put(VALUES, jax.devices("cpu")[0])},
    "pyarrow": lambda pyarrow: {"pyarrow array": pyarrow.array(range(12), pyarrow.float32())},
    "polars": lambda polars: {"polars Series": polars.Series(range(12), dtype=polars.Float32)},
    "pandas": lambda pandas: {"pandas Series": pandas.Series(range(12), dtype="float32")},
    "awkward": lambda awkward: {"awkward array": awkward.Array(VALUES)},
    "xarray": lambda xarray: {"xarray DataArray": xarray.DataArray(VALUES, dims=("y", "x"))},
    "dpctl": make_usm,
    "dpnp": lambda dpnp: {"dpnp array": dpnp.arange(12, dtype="f4")} if find_sycl_devices() else {},
    "cupy": lambda cupy: {"cupy array": cupy.arange(12, dtype="f4")} if cupy.is_available() else {},
}


def make_producers() -> Iterator[tuple[str, Any]]:
    """Yield example arrays of Python, NumPy and each installed library, in host memory and on the available devices."""
    yield "numpy array", VALUES
    yield "numpy a[::-1]", np.arange(11, -1, -1, dtype="f4")[::-1]
    yield "bytes", bytes(range(12))
    yield "bytearray", bytearray(range(12))
    yield "array.array", array.array("f", range(12))
    for library, make in PRODUCERS.items():
        if is_installed(library):
            yield from make(importlib.import_module(library)).items()


# ------------------------------------------------------------------------------------------------------ the demo


def run() -> int:
    """Convert every producer's array to every consumer, print the results, and return the exit status."""
    devices = find_sycl_devices()
    unusable = {library for library, usable in (("dpnp", devices), ("cupy", has_device())) if not usable}
    consumers = [library for library in CONSUMERS if is_installed(library) and library not in unusable]
    columns = ("from", "protocol", "device", "shape", "strides", "shared with", "copied to, on request")
    rows: list[tuple[str, ...]] = [columns]
    results: dict[str, list[str]] = {"shared": [], "copied": [], "refused": [], "failed": []}
    for name, produced in make_producers():
        try:
            x = arrayhub.asarray(produced)
            outcomes = {consumer: convert(x, consumer) for consumer in consumers}
        except Exception as error:  # report every error, and continue with the next producer
            results["failed"].append(f"{name}: {type(error).__name__}: {error}")
            continue
        for consumer, outcome in outcomes.items():
            kind = outcome if outcome in results else "failed"
            results[kind].append(f"{name}: {consumer} {outcome}" if kind == "failed" else consumer)
        lists = [" ".join(each for each in outcomes if outcomes[each] == kind) for kind in ("shared", "copied")]
        rows.append((name, x.protocol, str(x.device), str(x.shape), str(x.strides), *lists))
    print_table(rows)
    failures = results["failed"]
    failures += [f"{c}: every array is refused" for c in consumers if c not in results["shared"] + results["copied"]]
    if is_installed("dpctl") and not devices:
        failures.append(f"SYCL: dpctl finds no device; {sycl_runtime.status()['reason']}")
    shared, copied = len(results["shared"]), len(results["copied"])
    print(f"\n{shared} conversions without a copy, {copied} requested copies, {len(failures)} failures.")
    for text in failures:
        print(f"FAILED  {text}")
    return 1 if failures else 0


def convert(x: USMArray, consumer: str) -> str:
    """Convert `x` to a library. Return "shared", "copied", "refused", or a text that says what is wrong."""
    try:
        kind, result = "shared", arrayhub.convert(x, consumer)
    except (BufferError, TypeError):
        try:
            kind, result = "copied", arrayhub.convert(x, consumer, copy=True)
        except (BufferError, TypeError):
            return "refused"
    found = arrayhub.asarray(result)
    if kind == "shared" and found.ptr != x.ptr:
        return "has the array at a different address"
    values = np.asarray(arrayhub.to_host(found)).astype("f8")
    return kind if np.array_equal(values.ravel(), VALUES.ravel()) else "has different values"


def print_table(table: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in (table[0], tuple("-" * width for width in widths), *table[1:]):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
