"""The report of ``python -m arrayhub doctor``: installed libraries, devices, and problems with their remedies.

Each library, plug-in and kind of device is examined in a process of its own, because a broken library may end the
process that imports it. The process prints one line of JSON after a marker, because libraries may print, too.
"""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from arrayhub import asarray, sycl_runtime
from arrayhub.adapters.table import PROTOCOLS
from arrayhub.inspection.texts import align_columns
from arrayhub.libraries import known, wrappers
from arrayhub.libraries.plugins import emitter, entry_points, load_library, words_of
from arrayhub.runtimes import CUDA_FILE

_PATIENCE = 60  # maximum seconds for the import of one library
_ANSWER = "arrayhub probe: "  # marker before the JSON

# Libraries that can be installed by a command. arrayhub requires only numpy.
LIBRARIES = {row.name: row for row in known.LIBRARIES if row.install is not None}
_ENVIRON = {name: value for row in known.LIBRARIES for name, value in row.environment.items()}


def examine() -> dict[str, Any]:
    """Examine Python, the libraries and the devices.

    Each library is imported in a separate process, so that a crash of a library is reported as a problem.

    Returns
    -------
    dict
        Report that can be serialized to JSON, with these keys:

        ``arrayhub``, ``python``
            Versions and locations.
        ``libraries``
            By name: ``status`` (``"works"``, ``"missing"`` or ``"broken"``), ``version``, ``protocols``, ``asarray``
            (the protocol that `asarray` uses), ``error`` and ``fix`` (None if no command helps).
        ``plugins``
            Libraries that are registered by an entry point of the group ``arrayhub.libraries``. By name:
            ``entry_point``, ``types``, ``emits`` (whether `convert` can create arrays of the library) and ``error``.
        ``sycl``
            ``platforms`` with their ``devices``, ``runtime`` and ``error``.
        ``cuda``
            ``driver``, ``devices`` and ``error``.
        ``problems``
            List of dicts with ``what`` (description) and ``fix`` (a command or an instruction).
    """
    installed = [name for name in LIBRARIES if importlib.util.find_spec(name) is not None]
    probes = [*installed, "cuda", *(["sycl"] if "dpctl" in installed else [])]
    with ThreadPoolExecutor(min(len(probes), os.cpu_count() or 1)) as pool:
        found = dict(zip(probes, pool.map(probe, probes), strict=True))
    driver = found["cuda"].get("driver")
    package = importlib.import_module("arrayhub")
    report: dict[str, Any] = {
        # The version of the imported package, because its metadata may be missing or belong to another copy.
        "arrayhub": {"version": package.__version__, "location": os.path.dirname(package.__file__ or "")},
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "platform": platform.platform(),
        },
        "libraries": {name: verdict(name, found.get(name), row.install_for(driver)) for name, row in LIBRARIES.items()},
        "plugins": plugins(),
        "sycl": {"platforms": [], "runtime": None, "error": None, **found.get("sycl", {})},
        "cuda": {"driver": None, "devices": [], "error": None, **found["cuda"]},
    }
    report["problems"] = list(_problems(report))
    return report


def plugins() -> dict[str, dict[str, Any]]:
    """Examine the libraries that entry points register, each in a separate process. Return the results by name."""
    empty: dict[str, Any] = {"types": [], "emits": False, "error": None}
    return {
        root: {"entry_point": " and ".join(map(words_of, points)), **empty, **probe(f"plugin:{root}")}
        for root, points in entry_points().items()
    }


def run(as_json: bool) -> int:
    """Print the report. Return the exit status: 1 if there is a problem, else 0."""
    report = examine()
    print(json.dumps(report, indent=2) if as_json else "\n".join(_lines(report)))
    return 1 if report["problems"] else 0


def probe(name: str) -> dict[str, Any]:
    """Examine one library or kind of device in a separate process. Return its report, or a dict with an ``error``."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-P", "-m", "arrayhub.inspection.doctor", name]
    environ = {**os.environ, **_ENVIRON, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, env=environ, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"the import took more than {_PATIENCE} seconds"}
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(_ANSWER):
            found: dict[str, Any] = json.loads(line[len(_ANSWER) :])
            return found
    *_, last = done.stderr.decode(errors="replace").splitlines() or [""]
    return {"error": f"the import ended the process with exit status {done.returncode}: {last}".rstrip(": ")}


def verdict(name: str, answer: dict[str, Any] | None, install: str | None) -> dict[str, Any]:
    """Return the entry of a library in the report. `answer` is None if the library is not installed."""
    entry = {"version": None, "protocols": [], "asarray": None, "error": None, "fix": None, **(answer or {})}
    if answer is None:
        return {"status": "missing", **entry, "fix": install}
    if entry["error"] is None:
        return {"status": "works", **entry}
    # Not an extra of arrayhub, such as arrayhub[torch], which would also reinstall arrayhub.
    distributions = importlib.metadata.packages_distributions().get(name, [name])
    return {"status": "broken", **entry, "fix": f"pip install --force-reinstall {distributions[0]}"}


def _problems(report: dict[str, Any]) -> Iterator[dict[str, str]]:
    for name, library in report["libraries"].items():
        if library["status"] == "broken":
            yield {"what": f"{name} cannot be used: {library['error']}", "fix": library["fix"]}
    for root, plugin in report["plugins"].items():
        if plugin["error"] is not None:
            fix = f"update or uninstall the distribution of {plugin['entry_point']}"
            yield {"what": f"the plug-in for {root} cannot be used: {plugin['error']}", "fix": fix}
    sycl, cuda = report["sycl"], report["cuda"]
    if report["libraries"]["dpctl"]["status"] == "works" and not _devices(sycl):
        reason = sycl["error"] or sycl["runtime"]["reason"]
        fix = (LIBRARIES["dpctl"].install or "") if sycl["runtime"] is None else sycl["runtime"]["fix"]
        yield {"what": f"SYCL: dpctl finds no device; {reason}", "fix": fix}
    if cuda["error"] is not None:
        yield {"what": f"CUDA: {cuda['error']}", "fix": "install or repair the GPU's driver"}
    if cuda["devices"] and report["libraries"]["cupy"]["status"] == "missing":
        yield {"what": "CUDA: the machine has a GPU, but cupy is missing", "fix": report["libraries"]["cupy"]["fix"]}


def _devices(sycl: dict[str, Any]) -> list[dict[str, Any]]:
    return [device for entry in sycl["platforms"] for device in entry["devices"]]


# ----------------------------------------------------------------------------------------------------------- as text


def _lines(report: dict[str, Any]) -> Iterator[str]:
    python = report["python"]
    yield f"arrayhub {report['arrayhub']['version']}, {report['arrayhub']['location']}"
    yield f"{python['implementation']} {python['version']}, {python['executable']}"
    yield python["platform"]
    sections: dict[str, Iterable[str]] = {
        "libraries": align_columns((name, *_cells(library)) for name, library in report["libraries"].items()),
        "plug-ins": [f"{root}  {entry['entry_point']}  {_state(entry)}" for root, entry in report["plugins"].items()],
        "SYCL": _sycl_lines(report["sycl"]),
        "CUDA": _cuda_lines(report["cuda"]),
    }
    for title, lines in sections.items():
        if lines:
            yield from ("", title, *map("  {}".format, lines))
    yield ""
    for problem in report["problems"]:
        yield f"PROBLEM  {problem['what']}"
        yield f"    fix  {problem['fix']}"
    count = len(report["problems"])
    yield f"{count or 'no'} problem{'s' * (count != 1)}"


def _state(plugin: dict[str, Any]) -> str:
    if plugin["error"] is not None:
        return "BROKEN"
    types = f"imports {', '.join(plugin['types'])}" if plugin["types"] else "imports no types"
    return f"{types}; convert makes its arrays" if plugin["emits"] else types


def _cells(library: dict[str, Any]) -> tuple[str, str]:
    if library["status"] == "missing":
        return "missing", library["fix"] or "not needed: this machine lacks a CUDA driver"
    if library["status"] == "broken":
        return "BROKEN", library["error"]
    used = f"; asarray uses {library['asarray']}" if library["asarray"] else ""
    none = "no protocol" if used else "no arrays"
    return library["version"], (", ".join(library["protocols"]) or none) + used


def _sycl_lines(sycl: dict[str, Any]) -> Iterator[str]:
    for entry in sycl["platforms"]:
        yield f"{entry['name']}, {entry['version']} ({entry['backend']})"
        yield from (f"  {device['kind']}: {device['name']}, driver {device['driver']}" for device in entry["devices"])
    runtime = sycl["runtime"] or {"reason": sycl["error"] or "dpctl is missing", "library": None}
    if not _devices(sycl):
        yield f"no device: {runtime['reason']}"
    if runtime["library"] is not None:
        yield f"runtime: {runtime['library']}"


def _cuda_lines(cuda: dict[str, Any]) -> Iterator[str]:
    if cuda["driver"] is None:
        yield cuda["error"] or f"no driver: {CUDA_FILE} is not on this machine"
        return
    yield f"driver for CUDA {cuda['driver']}"
    for device in cuda["devices"]:
        yield f"{device['name']}, {device['nbytes'] / 2**30:.0f} GiB"
    if not cuda["devices"]:
        yield "no device"


# ----------------------------------------------------------------------------------------------- in a process


def _examine_library(name: str) -> dict[str, Any]:
    """Import a library. Report its version, and the protocols of its arrays in the order of `asarray`."""
    module = importlib.import_module(name)
    make = next((row.sample for row in known.LIBRARIES if row.name == name), None)
    sample = None if make is None else make(module)
    return {
        "version": str(getattr(module, "__version__", None) or importlib.metadata.version(name)),
        "protocols": [] if sample is None else _protocols(sample),
        "asarray": None if sample is None or isinstance(sample, type) else asarray(sample).protocol,
    }


def _examine_plugin(root: str) -> dict[str, Any]:
    """Load the entry point of a library. Report the types and the emitter that the entry point registers."""
    load_library(root)
    rows = {name: row for (owner, name), row in wrappers.TYPES.items() if owner == root and row.parse is not None}
    return {"types": sorted(name or "all" for name in rows), "emits": emitter(root) is not None}


def _examine_sycl() -> dict[str, Any]:
    """Report the SYCL platforms and their devices, and the source of the runtime."""
    sycl_runtime.configure()
    dpctl = importlib.import_module("dpctl")
    platforms = [
        {
            "name": platform.name,
            "version": platform.version,
            "backend": platform.backend.name,
            "devices": [
                {"name": device.name, "kind": device.device_type.name, "driver": device.driver_version}
                for device in platform.get_devices()
            ],
        }
        for platform in dpctl.get_platforms()
    ]
    return {"platforms": platforms, "runtime": sycl_runtime.status()}


def _examine_cuda() -> dict[str, Any]:
    """Report the CUDA driver and its devices."""
    try:
        driver = ctypes.CDLL(CUDA_FILE)
    except OSError:
        return {"driver": None, "devices": []}
    number, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(number))
    if driver.cuInit(0) == 0:
        driver.cuDeviceGetCount(ctypes.byref(count))
    devices = []
    for ordinal in range(count.value):
        handle, name, nbytes = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        driver.cuDeviceGet(ctypes.byref(handle), ordinal)
        driver.cuDeviceGetName(name, len(name), handle)
        driver.cuDeviceTotalMem_v2(ctypes.byref(nbytes), handle)
        devices.append({"name": name.value.decode(errors="replace"), "nbytes": nbytes.value})
    return {"driver": f"{number.value // 1000}.{number.value % 1000 // 10}", "devices": devices}


def _protocols(sample: Any) -> list[str]:
    found = [name for row in PROTOCOLS for name in row.attributes if hasattr(sample, name)]
    try:
        memoryview(sample).release()
    except (TypeError, BufferError, ValueError):
        return found
    return ["buffer", *found]


def _answer(name: str) -> None:
    """Print the report on a library, a kind of device or ``plugin:ROOT``, or the error that prevents a report."""
    devices = {"sycl": _examine_sycl, "cuda": _examine_cuda}
    try:
        kind, _, root = name.rpartition(":")
        found = devices[name]() if name in devices else _examine_plugin(root) if kind else _examine_library(name)
    except BaseException as error:  # a broken library may raise any exception
        found = {"error": f"{type(error).__name__}: {error}".strip()}
    sys.stdout.write(f"\n{_ANSWER}{json.dumps(found)}\n")


if __name__ == "__main__":
    _answer(sys.argv[1])
