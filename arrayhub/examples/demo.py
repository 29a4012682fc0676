"""Program of ``python -m arrayhub demo``: convert arrays between all installed libraries, and print the results.

The array of every producer is imported by ``asarray``, and exported to every consumer. A producer and a consumer
pass in these cases:

- The consumer shares the array, with the same values at the same address.
- The consumer rejects the array because of a trait in `Consumer.refuses`, and a requested copy has the same values.
- The consumer rejects the array because of a trait in `Consumer.lacks`. No copy is requested.

Every other result is a failure.
"""

import array
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import arrayhub
from arrayhub import USMArray, sycl_runtime
from arrayhub.libraries import known
from arrayhub.runtimes.cuda import has_device

LIBRARIES = tuple(row.name for row in known.LIBRARIES if row.install is not None)

# Properties of a producer's array that can prevent a consumer from sharing its memory.
READ_ONLY = "read-only"
NEGATIVE = "negative strides"
ANY_ADDRESS = "not aligned to 64 bytes"
NOT_IN_NUMPY = "a type that NumPy lacks"
HOST, USM, USM_DEVICE, CUDA = "host memory", "host-readable USM", "USM device memory", "CUDA memory"


class Producer(NamedTuple):
    name: str
    array: Any
    values: Any  # expected values, as an ndarray
    traits: set[str]


class Consumer(NamedTuple):
    name: str
    refuses: set[str]  # traits for which the consumer may require a copy
    lacks: set[str]  # traits that the consumer does not support, even with a copy
    share: Callable[[USMArray], Any]
    copy: Callable[[USMArray], Any]
    address: Callable[[Any], int]
    values: Callable[[Any], Any]


@dataclass
class Row:
    producer: Producer
    x: USMArray | None = None
    shared: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _sycl_devices() -> list[str]:
    """Return the names of the SYCL devices. The list is empty without dpctl, a runtime or a driver."""
    if not is_installed("dpctl"):
        return []
    sycl_runtime.configure()
    return [device.name for device in importlib.import_module("dpctl").get_devices()]


# ------------------------------------------------------------------------------------------------------ producers


def producers() -> Iterator[Producer]:
    """Yield example arrays of Python, NumPy and each installed library, in host memory and on the available devices."""
    yield from _python_producers()
    for library, make in _PRODUCERS_OF.items():
        if is_installed(library):
            yield from make(importlib.import_module(library))


def _python_producers() -> Iterator[Producer]:
    a = _copy_aligned(np.arange(12, dtype="f4").reshape(3, 4))
    yield Producer("numpy array", a, a, {HOST})
    yield Producer("numpy a[:, ::-1]", a[:, ::-1], a[:, ::-1], {HOST, NEGATIVE, ANY_ADDRESS})
    text = b"any bytes at all"
    yield Producer("bytes", text, np.frombuffer(text, "u1"), {HOST, READ_ONLY, ANY_ADDRESS})
    yield Producer("bytearray", bytearray(text), np.frombuffer(text, "u1"), {HOST, ANY_ADDRESS})
    numbers = array.array("f", [1.5, 2.5, 3.5])
    yield Producer("array.array", numbers, np.array(numbers), {HOST, ANY_ADDRESS})


def _ml_dtypes_producers(ml_dtypes: Any) -> Iterator[Producer]:
    a = _copy_aligned(np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16))
    yield Producer("numpy array of bfloat16", a, a, {HOST, NOT_IN_NUMPY})


def _torch_producers(torch: Any) -> Iterator[Producer]:
    t = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    yield Producer("torch tensor", t, t.numpy(), {HOST, ANY_ADDRESS})
    if torch.cuda.is_available():
        yield Producer("torch tensor on a GPU", t.cuda(), t.numpy(), {CUDA})


def _jax_producers(jax: Any) -> Iterator[Producer]:
    a = jax.device_put(np.arange(12, dtype="f4").reshape(3, 4), jax.devices("cpu")[0])
    yield Producer("jax array", a, np.asarray(a), {HOST, READ_ONLY})


def _pyarrow_producers(pyarrow: Any) -> Iterator[Producer]:
    a = pyarrow.array([1.5, 2.5, 3.5], pyarrow.float32())
    yield Producer("pyarrow array", a, np.asarray(a), {HOST, READ_ONLY, ANY_ADDRESS})


def _polars_producers(polars: Any) -> Iterator[Producer]:
    s = polars.Series([1.5, 2.5, 3.5], dtype=polars.Float32)
    yield Producer("polars Series", s, s.to_numpy(), {HOST, READ_ONLY, ANY_ADDRESS})


def _pandas_producers(pandas: Any) -> Iterator[Producer]:
    s = pandas.Series([1.5, 2.5, 3.5], dtype="float32")
    yield Producer("pandas Series", s, s.to_numpy(), {HOST, READ_ONLY, ANY_ADDRESS})


def _awkward_producers(awkward: Any) -> Iterator[Producer]:
    a = _copy_aligned(np.array([1.5, 2.5, 3.5], "f4"))
    yield Producer("awkward array", awkward.Array(a), a, {HOST})


def _xarray_producers(xarray: Any) -> Iterator[Producer]:
    a = _copy_aligned(np.arange(12, dtype="f4").reshape(3, 4))
    yield Producer("xarray DataArray", xarray.DataArray(a, dims=("y", "x")), a, {HOST})


def _sycl_producers(dpctl: Any) -> Iterator[Producer]:
    if not _sycl_devices():
        return
    memory = importlib.import_module("dpctl.memory")
    values = np.arange(12, dtype="i4").reshape(3, 4)
    for kind, trait in (("Host", USM), ("Shared", USM), ("Device", USM_DEVICE)):
        block = getattr(memory, f"MemoryUSM{kind}")(values.nbytes)
        block.copy_from_host(values.reshape(-1).view("u1"))
        yield Producer(f"dpctl MemoryUSM{kind}", block, values.reshape(-1).view("u1"), {trait, ANY_ADDRESS})
        yield Producer(f"a SYCL library's {kind.lower()} USM", SyclResult(block), values, {trait, ANY_ADDRESS})


def _dpnp_producers(dpnp: Any) -> Iterator[Producer]:
    if _sycl_devices():
        a = dpnp.arange(12, dtype="f4").reshape(3, 4)
        yield Producer("dpnp array", a, dpnp.asnumpy(a), {USM_DEVICE})


def _cupy_producers(cupy: Any) -> Iterator[Producer]:
    if cupy.is_available():
        a = cupy.arange(12, dtype="f4").reshape(3, 4)
        yield Producer("cupy array", a, cupy.asnumpy(a), {CUDA})


_PRODUCERS_OF: dict[str, Callable[[Any], Iterator[Producer]]] = {
    "ml_dtypes": _ml_dtypes_producers,
    "torch": _torch_producers,
    "jax": _jax_producers,
    "pyarrow": _pyarrow_producers,
    "polars": _polars_producers,
    "pandas": _pandas_producers,
    "awkward": _awkward_producers,
    "xarray": _xarray_producers,
    "dpctl": _sycl_producers,
    "dpnp": _dpnp_producers,
    "cupy": _cupy_producers,
}


class SyclResult:
    """Array type that a SYCL extension could define. Its attribute describes the USM that it holds."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.memory._pointer, False),
            "shape": (3, 4),
            "strides": None,
            "typestr": "|i4",
            "syclobj": self.memory.sycl_queue,
            "version": 1,
        }


def _copy_aligned(values: Any) -> Any:
    """Return a copy that is aligned to 64 bytes. jax on the CPU shares only memory with this alignment."""
    memory = np.empty(values.nbytes + 64, "u1")
    start = -memory.ctypes.data % 64
    result = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    result[...] = values
    return result


# ------------------------------------------------------------------------------------------------------ consumers


def consumers() -> Iterator[Consumer]:
    """Yield NumPy, memoryview, and the installed libraries of `_CONSUMER_OF`. dpnp and CuPy must also have a device."""
    yield Consumer(
        "numpy", {USM_DEVICE, CUDA}, set(), arrayhub.as_numpy, _copying(arrayhub.as_numpy), _numpy_address, np.asarray
    )
    yield Consumer(
        "memoryview", {USM_DEVICE, CUDA}, {NOT_IN_NUMPY}, memoryview, _copied_view, _numpy_address, np.asarray
    )
    for library, make in _CONSUMER_OF.items():
        if is_installed(library):
            yield from make(importlib.import_module(library))


def _torch_consumer(torch: Any) -> Iterator[Consumer]:
    refuses = {READ_ONLY, NEGATIVE, USM_DEVICE}
    copy = _copying(arrayhub.as_torch)
    yield Consumer("torch", refuses, set(), arrayhub.as_torch, copy, _torch_address, lambda t: t.cpu().double().numpy())


def _jax_consumer(jax: Any) -> Iterator[Consumer]:
    refuses = {NEGATIVE, ANY_ADDRESS, USM_DEVICE, CUDA}
    copy = _copying(arrayhub.as_jax)
    yield Consumer("jax", refuses, set(), arrayhub.as_jax, copy, lambda a: int(a.unsafe_buffer_pointer()), np.asarray)


def _numba_consumer(numba: Any) -> Iterator[Consumer]:
    copy = _copying(arrayhub.as_numba)
    yield Consumer("numba", {USM_DEVICE}, {NOT_IN_NUMPY}, arrayhub.as_numba, copy, _hub_address, _hub_values)


def _dpnp_consumer(dpnp: Any) -> Iterator[Consumer]:
    if _sycl_devices():
        copy = _copying(arrayhub.as_dpnp)
        yield Consumer("dpnp", {HOST, CUDA}, {NOT_IN_NUMPY}, arrayhub.as_dpnp, copy, _hub_address, dpnp.asnumpy)


def _cupy_consumer(cupy: Any) -> Iterator[Consumer]:
    if cupy.is_available():
        refuses = {HOST, READ_ONLY, USM, USM_DEVICE}
        copy = _copying(arrayhub.as_cupy)
        yield Consumer("cupy", refuses, {NOT_IN_NUMPY}, arrayhub.as_cupy, copy, lambda a: int(a.data.ptr), cupy.asnumpy)


_CONSUMER_OF: dict[str, Callable[[Any], Iterator[Consumer]]] = {
    "torch": _torch_consumer,
    "jax": _jax_consumer,
    "numba": _numba_consumer,
    "dpnp": _dpnp_consumer,
    "cupy": _cupy_consumer,
}


def _copying(share: Callable[..., Any]) -> Callable[[USMArray], Any]:
    return lambda x: share(x, copy=True)


def _copied_view(x: USMArray) -> memoryview:
    return memoryview(arrayhub.to_host(x, copy=True))


def _numpy_address(x: Any) -> int:
    return int(np.asarray(x).ctypes.data)


def _torch_address(t: Any) -> int:
    return int(t.data_ptr())


def _hub_address(x: Any) -> int:
    return arrayhub.asarray(x).ptr


def _hub_values(x: Any) -> Any:
    return np.asarray(arrayhub.to_host(x))


# ---------------------------------------------------------------------------------------------------- the demo


def run() -> int:
    """Export every producer's array to every consumer, print the results, and return the exit status."""
    _print_environment()
    targets = list(consumers())
    rows = [send(producer, targets) for producer in producers()]
    _print_table(rows)
    failures = [f"{row.producer.name}: {text}" for row in rows for text in row.failed]
    if is_installed("dpctl") and not _sycl_devices():
        failures.append(f"SYCL: dpctl finds no device; {sycl_runtime.status()['reason']}")
    shared, copied = (sum(len(getattr(row, kind)) for row in rows) for kind in ("shared", "copied"))
    print(f"\n{shared} conversions without a copy, {copied} requested copies, {len(failures)} failures.")
    for text in failures:
        print(f"FAILED  {text}")
    return 1 if failures else 0


def send(producer: Producer, targets: list[Consumer]) -> Row:
    """Import the array of one producer, and export it to every consumer."""
    row = Row(producer)
    try:
        row.x = arrayhub.asarray(producer.array)
        for consumer in targets:
            _export(row, row.x, consumer)
    except Exception as error:  # report every error, and continue with the next producer
        row.failed.append(f"{type(error).__name__}: {error}")
    return row


def _export(row: Row, x: USMArray, consumer: Consumer) -> None:
    """Export `x` to one consumer, and add the result to `row`."""
    traits = row.producer.traits
    try:
        result = consumer.share(x)
    except (BufferError, TypeError) as error:
        if traits & consumer.lacks:
            return
        if not traits & consumer.refuses:
            row.failed.append(f"{consumer.name} rejects the array: {error}")
            return
        result = consumer.copy(x)
        kept, column = True, row.copied
    else:
        kept, column = consumer.address(result) == x.ptr, row.shared
    if not kept:
        row.failed.append(f"{consumer.name} has the array at a different address")
    elif not np.array_equal(np.asarray(consumer.values(result), "f8"), np.asarray(row.producer.values, "f8")):
        row.failed.append(f"{consumer.name} has different values")
    else:
        column.append(consumer.name)


def _print_environment() -> None:
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES if is_installed(name)]
    print(f"arrayhub {arrayhub.__version__} with {', '.join(versions)}")
    missing = [name for name in LIBRARIES if not is_installed(name)]
    if missing:
        print(f"not installed: {', '.join(missing)}")
    if is_installed("dpctl"):
        print(f"SYCL devices: {', '.join(_sycl_devices()) or 'none'}")
    if is_installed("cupy") and not has_device():
        print("CUDA devices: none")
    print()


def _print_table(rows: list[Row]) -> None:
    table: list[tuple[str, ...]] = [
        ("from", "protocol", "device", "shape", "strides", "shared with", "copied to, on request")
    ]
    for row in rows:
        if row.x is not None:
            facts = (row.x.protocol, str(row.x.device), str(row.x.shape), str(row.x.strides))
            table.append((row.producer.name, *facts, " ".join(row.shared), " ".join(row.copied)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, tuple("-" * width for width in widths))
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
