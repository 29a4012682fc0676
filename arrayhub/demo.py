"""Program of ``python -m arrayhub demo``: convert arrays of all installed libraries to each other.

Each conversion requests the same memory, and a copy if the library refuses that. A conversion fails if the result has
different values, or is at a different address although it should share memory. A library that refuses every array, also
with a copy, is a failure, too. ``python -m arrayhub doctor`` lists the libraries and devices.
"""

import array
import importlib
import importlib.util
import os
from typing import Any

import numpy as np

import arrayhub
from arrayhub import USMArray, sycl_runtime
from arrayhub.convert.functions import EXPORTERS
from arrayhub.inspection.texts import align_columns
from arrayhub.libraries.known import LIBRARIES, NESTING

COLUMNS = ("from", "protocol", "device", "shape", "strides", "shared with", "copied to, on request")


def find_libraries() -> tuple[dict[str, Any], list[str], bool]:
    """Return example arrays by name, the names of the usable consumers, and whether dpctl finds no device."""
    aligned = arrayhub.from_array(np.arange(12, dtype="f4").reshape(3, 4))  # at an address that jax shares
    producers: dict[str, Any] = {"numpy ndarray": arrayhub.as_numpy(aligned), "numpy a[::-1]": np.arange(3.0)[::-1]}
    producers |= {"bytes": b"arrayhub", "array.array": array.array("f", range(3))}
    consumers, lacks_sycl = [], False
    sycl_runtime.configure()
    for row in LIBRARIES:
        if row.install is None or importlib.util.find_spec(row.name) is None:
            continue
        os.environ.update(row.environment)
        module = importlib.import_module(row.name)
        sample = None if row.sample is None else row.sample(module)
        if isinstance(sample, type):  # the device of the library's arrays is missing
            lacks_sycl |= row.name == "dpctl"
            continue
        if sample is not None:
            producers.setdefault(f"{row.name} {type(sample).__name__}", sample)
        consumer = row.like if row.nests else row.name
        consumers += [consumer] if consumer in (*EXPORTERS, *NESTING) else []
    return producers, consumers, lacks_sycl


def run() -> int:
    """Convert every producer's array to every consumer, print the results, and return the exit status."""
    producers, consumers, lacks_sycl = find_libraries()
    rows: list[tuple[str, ...]] = [COLUMNS, tuple("-" * len(column) for column in COLUMNS)]
    accepted: dict[str, list[str]] = {"shared": [], "copied": []}
    failures = []
    for name, produced in producers.items():
        try:
            x = arrayhub.asarray(produced)
            outcomes = {consumer: convert(x, consumer) for consumer in consumers}
        except Exception as error:  # report every error, and continue with the next producer
            failures.append(f"{name}: {type(error).__name__}: {error}")
            continue
        lists = {kind: [each for each in consumers if outcomes[each] == kind] for kind in accepted}
        rows.append((name, x.protocol, str(x.device), str(x.shape), str(x.strides), *map(" ".join, lists.values())))
        accepted = {kind: accepted[kind] + lists[kind] for kind in accepted}
        failures += [f"{name}: {each} {how}" for each, how in outcomes.items() if how not in (*accepted, "refused")]
    print("\n".join(align_columns(rows)))
    shared, copied = accepted.values()
    failures += [f"{each}: every array is refused" for each in consumers if each not in shared + copied]
    if lacks_sycl:
        failures.append(f"SYCL: dpctl finds no device; {sycl_runtime.status()['reason']}")
    print(f"\n{len(shared)} conversions without a copy, {len(copied)} requested copies, {len(failures)} failures.")
    for text in failures:
        print(f"FAILED  {text}")
    return 1 if failures else 0


def convert(x: USMArray, consumer: str) -> str:
    """Convert `x` to a library. Return "shared", "copied", "refused", or a text that says what is wrong."""
    for outcome, copy in (("shared", False), ("copied", True)):
        try:
            result = arrayhub.convert(x, consumer, copy=copy)
        except (BufferError, TypeError):
            continue
        found = arrayhub.asarray(result)
        if outcome == "shared" and found.ptr != x.ptr:
            return "has the array at a different address"
        expected, values = (np.asarray(arrayhub.to_host(each)).astype("f8").ravel() for each in (x, found))
        return outcome if np.array_equal(expected, values) else "has different values"
    return "refused"
