"""A peer that must be compiled: a nanobind extension. It is built on first use, and kept in the user's cache."""

import importlib.util
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

NAME = "nanobind_peer"
SOURCE = Path(__file__).with_name("peer.cpp")
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing")


def load():
    """Import the extension, after building it if necessary.

    Raises
    ------
    ImportError
        nanobind is not installed.
    RuntimeError
        A compiler is missing or fails. The environment variable CXX selects a compiler other than ``c++``.
    """
    import nanobind

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arrayhub-benchmarks"
    built = cache / f"nanobind-{nanobind.__version__}-{SOURCE.stat().st_mtime_ns}" / suffixed(NAME)
    if not built.exists():
        build(Path(nanobind.include_dir()), Path(nanobind.source_dir()), built)
    return load_from(built)


def load_from(path):
    """Import an extension module from its path."""
    spec = importlib.util.spec_from_file_location(path.name.partition(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def suffixed(name):
    return name + sysconfig.get_config_var("EXT_SUFFIX")


def build(include, source, built):
    """Compile the extension and nanobind's own source, as nanobind's documentation describes for custom builds."""
    built.parent.mkdir(parents=True, exist_ok=True)
    folders = (include, include.parent / "ext" / "robin_map" / "include", sysconfig.get_path("include"))
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        made = Path(folder) / built.name
        command = [os.environ.get("CXX", "c++"), *FLAGS, *(f"-I{folder}" for folder in folders)]
        try:
            done = subprocess.run(
                [*command, SOURCE, source / "nb_combined.cpp", "-o", made], capture_output=True, text=True
            )
        except FileNotFoundError as error:
            raise RuntimeError(f"the compiler {command[0]!r} is not installed") from error
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise RuntimeError(errors[0] if errors else "the compilation failed")
        made.replace(built)  # atomic, because another process may build the same file
