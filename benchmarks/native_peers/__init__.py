"""Extensions that import and export arrays with arrayhub and with their framework. They are built once and cached."""

import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

import arrayhub

from ..nanobind_peer import load_from, suffixed

HERE = Path(__file__).parent
FLAGS = ("-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing")


def c():
    """Return the C extension, whose functions use arrayhub or NumPy's C API."""
    return built("c_peer", "cc", [HERE / "c_peer.c"], [np.get_include()], "-std=c11")


def pybind11():
    """Return the pybind11 extension, whose functions use arrayhub or ``py::array_t``."""
    import pybind11

    return built("pybind11_peer", "c++", [HERE / "pybind11_peer.cpp"], [pybind11.get_include()], "-std=c++17")


def nanobind():
    """Return the nanobind extension, whose functions use arrayhub or ``nb::ndarray``."""
    import nanobind

    include = Path(nanobind.include_dir())
    sources = [HERE / "nanobind_peer.cpp", Path(nanobind.source_dir()) / "nb_combined.cpp"]
    folders = [include, include.parent / "ext" / "robin_map" / "include"]
    return built("nanobind_native_peer", "c++", sources, folders, "-std=c++17")


def built(name, compiler, sources, folders, standard):
    """Import an extension module. Compile it first if its source or a header of arrayhub has changed."""
    headers = [path for path in Path(arrayhub.get_include()).rglob("*.h*") if path.is_file()]
    newest = max(path.stat().st_mtime_ns for path in (sources[0], *headers))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arrayhub-benchmarks"
    path = cache / f"native-{newest}" / suffixed(name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{folder}" for folder in (*folders, arrayhub.get_include(), sysconfig.get_path("include"))]
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            command = [os.environ.get("CXX" if compiler == "c++" else "CC", compiler), standard, *FLAGS, *includes]
            try:
                done = subprocess.run([*command, *sources, "-o", made], capture_output=True, text=True)
            except FileNotFoundError as error:
                raise RuntimeError(f"the compiler {command[0]!r} is not installed") from error
            if done.returncode:
                raise RuntimeError(
                    next((line for line in done.stderr.splitlines() if "error" in line), "the compilation failed")
                )
            made.replace(path)
    return load_from(path)
