"""Report on one library, plug-in or kind of device: ``python -m arrayhub.inspection.probe NAME``.

`doctor` runs one process for each report, because a broken library may end the process that imports it. The report is
one line of JSON after a marker, because libraries may print, too.
"""

import ctypes
import importlib
import importlib.metadata
import json
import sys
from typing import Any

from arrayhub import asarray, sycl_runtime
from arrayhub.adapters.table import PROTOCOLS
from arrayhub.libraries import plugins, wrappers
from arrayhub.libraries.known import LIBRARIES
from arrayhub.runtimes import CUDA_FILE

ANSWER = "arrayhub probe: "  # marker before the JSON

_SAMPLES = {row.name: row.sample for row in LIBRARIES}
_ATTRIBUTES = [name for row in PROTOCOLS for name in row.attributes]


def library(name: str) -> dict[str, Any]:
    """Import a library. Report its version, and the protocols of its arrays in the order of `asarray`."""
    module = importlib.import_module(name)
    make = _SAMPLES.get(name)
    sample = None if make is None else make(module)
    return {
        "version": str(getattr(module, "__version__", None) or importlib.metadata.version(name)),
        "protocols": [] if sample is None else _protocols(sample),
        "asarray": None if sample is None or isinstance(sample, type) else asarray(sample).protocol,
    }


def plugin(root: str) -> dict[str, Any]:
    """Load the entry point of a library. Report the types and the emitter that the entry point registers."""
    plugins.load_library(root)
    rows = {name: row for (owner, name), row in wrappers.TYPES.items() if owner == root and row.parse is not None}
    return {"types": sorted(name or "all" for name in rows), "emits": plugins.emitter(root) is not None}


def sycl() -> dict[str, Any]:
    """Report the SYCL platforms and their devices, and the source of the runtime."""
    sycl_runtime.configure()
    dpctl = importlib.import_module("dpctl")
    platforms = [
        {
            "name": platform.name,
            "version": platform.version,
            "backend": platform.backend.name,
            "devices": [_sycl_device(device) for device in platform.get_devices()],
        }
        for platform in dpctl.get_platforms()
    ]
    return {"platforms": platforms, "runtime": sycl_runtime.status()}


def cuda() -> dict[str, Any]:
    """Report the CUDA driver and its devices."""
    try:
        driver = ctypes.CDLL(CUDA_FILE)
    except OSError:
        return {"driver": None, "devices": []}
    number, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(number))
    if driver.cuInit(0) == 0:
        driver.cuDeviceGetCount(ctypes.byref(count))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    return {"driver": version, "devices": [_cuda_device(driver, ordinal) for ordinal in range(count.value)]}


def _protocols(sample: Any) -> list[str]:
    found = [name for name in _ATTRIBUTES if hasattr(sample, name)]
    return ["buffer", *found] if _has_buffer(sample) else found


def _has_buffer(sample: Any) -> bool:
    try:
        memoryview(sample).release()
    except (TypeError, BufferError, ValueError):
        return False
    return True


def _sycl_device(device: Any) -> dict[str, Any]:
    return {"name": device.name, "kind": device.device_type.name, "driver": device.driver_version}


def _cuda_device(driver: ctypes.CDLL, ordinal: int) -> dict[str, Any]:
    handle, name, nbytes = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(handle), ordinal)
    driver.cuDeviceGetName(name, len(name), handle)
    driver.cuDeviceTotalMem_v2(ctypes.byref(nbytes), handle)
    return {"name": name.value.decode(errors="replace"), "nbytes": nbytes.value}


_KINDS = {"sycl": sycl, "cuda": cuda}


def main(name: str) -> None:
    """Print the report on a library, a kind of device or ``plugin:ROOT``, or the error that prevents a report."""
    try:
        kind, _, root = name.rpartition(":")
        found = _KINDS[name]() if name in _KINDS else plugin(root) if kind else library(name)
    except BaseException as error:  # a broken library may raise any exception
        found = {"error": f"{type(error).__name__}: {error}".strip()}
    sys.stdout.write(f"\n{ANSWER}{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
