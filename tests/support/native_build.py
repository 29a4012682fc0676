"""Compile the small C and C++ extensions of the tests. One of pytest's processes compiles each, once per session."""

import fcntl
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

import children
import pytest

import arrayhub

SOURCES = Path(__file__).parent / "native"
INCLUDE = arrayhub.get_include()
PACKAGE_ROOT = Path(INCLUDE).parent.parent
PYTHON_INCLUDE = sysconfig.get_path("include")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
CC = (sysconfig.get_config_var("CC") or "cc").split()
CXX = (sysconfig.get_config_var("CXX") or "c++").split()
LIMITED = "-DPy_LIMITED_API=0x030B0000"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-missing-field-initializers")
SANITIZED = [flag for flag in os.environ.get("CFLAGS", "").split() if flag.startswith("-fsanitize")]


def shared_folder(factory, name):
    """Return a folder that all processes of a run of pytest share."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    return folder


def run(*command, **options):
    """Run a command that must succeed, and return its output. LD_PRELOAD, which loads sanitizers, is not passed on."""
    options.setdefault("env", {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"})
    return children.run(*command, **options)


def once(folder, name, make):
    """Return the path ``folder/name``. If the file does not exist, ``make(path)`` creates it, in one process only."""
    path = folder / name
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            made = folder / f"{name}.part"
            make(made)
            made.rename(path)
    return path


def load(path, name=None):
    """Import an extension module from its path."""
    name = name or path.name.partition(".")[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(folder, name, sources, *options, compiler=CC, includes=(INCLUDE,)):
    """Compile an extension module from `sources`, once per session, and return its path."""
    if LIMITED in options and sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("Python.h rejects Py_LIMITED_API in a build without the GIL")

    def make(path):
        flags = ("-shared", "-fPIC", "-O1", "-fvisibility=hidden", *SANITIZED, *options)
        folders = [f"-I{include}" for include in (*includes, PYTHON_INCLUDE)]
        run(*compiler, *flags, *folders, *sources, "-o", path)

    return once(folder, name + SUFFIX, make)


def python(program, *arguments, **environment):
    """Run a Python program in a separate process, and return the completed process with its output."""
    paths = os.pathsep.join((str(PACKAGE_ROOT), *sys.path[1:]))
    return children.finished(sys.executable, "-c", program, *arguments, **{"PYTHONPATH": paths, **environment})
