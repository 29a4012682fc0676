"""Imports with ARRAYHUB_DISABLE_FAST_PATHS=1 use only protocols, with the same results.

Facts that a protocol does not provide (a mask, a tensor's state, a dtype without a type string) are still read from the
library. Therefore the whole suite has to pass in this mode. This file runs the tests that import arrays of libraries,
each test file in a separate process. CONTRIBUTING.md has the command that runs the other tests.
"""

import importlib.util
import re
import sys

import pytest
from children import ROOT, finished, python
from exporters import FAST_PATHS_OFF

pytestmark = pytest.mark.slow

TESTS = ROOT / "tests"
SWITCH = "ARRAYHUB_DISABLE_FAST_PATHS"
# Test files that are not run here, with the reason. They take two thirds of the time of the whole suite.
ELSEWHERE = {
    "adapters/interface_dict/test_cuda_array.py": "producers defined in the test",
    "adapters/test_dlpack.py": "producers defined in the test",
    "adapters/test_format_language.py": "format strings without arrays",
    "adapters/interface_dict/test_sycl_usm.py": "producers defined in the test",
    "capi/test_table.py": "compiles consumers",
    "docs": "documentation pages",
    "interop/test_fast_paths_off.py": "this file",
    "interop/test_private_names.py": "removes names that the fast paths use",
    "project": "sources, builds and tools",
    "robustness/test_callback_exceptions.py": "producers defined in the test",
    "robustness/test_failing_allocations.py": "as test_growth.py",
    "robustness/test_fuzz.py": "producers defined in the test",
    "robustness/test_growth.py": "repeats all imports, including those through protocols",
    "robustness/test_interrupts.py": "as test_growth.py",
    "robustness/test_invalid_arguments.py": "calls without arrays",
    "robustness/test_threads.py": "as test_growth.py",
    "test_sycl_runtime.py": "the environment",
    "transport/test_dask.py": "messages between processes",
    "transport/test_mpi.py": "as test_dask.py",
    "transport/test_shared_memory.py": "as test_dask.py",
}
EACH = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))
FILES = ["gpu", *(name for name in EACH if not name.startswith(("gpu/", *ELSEWHERE)))]
MINUTES = 20  # timeout for a test that hangs
NO_TESTS = 5  # pytest's exit status for a file without tests, or whose import is skipped
FEWEST = 4000  # minimum number of tests in FILES


def pytest_run(*arguments):
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return finished(*command, cwd=ROOT, **{SWITCH: "1"})


def test_most_tests_run_without_fast_paths():
    assert all((TESTS / name).exists() for name in ELSEWHERE)
    done = pytest_run("--collect-only", *(TESTS / file for file in FILES if file != "gpu"))
    assert done.returncode == 0, done.stdout[-20_000:]
    assert int(re.search(r"(\d+) tests collected", done.stdout)[1]) > FEWEST


@pytest.mark.skipif(FAST_PATHS_OFF, reason="this run has the fast paths disabled already")
@pytest.mark.timeout(60 * MINUTES)
@pytest.mark.parametrize("file", FILES)
def test_file_passes_without_fast_paths(file):
    done = pytest_run("--tb=short", TESTS / file)
    assert done.returncode in (0, NO_TESTS), done.stdout[-20_000:]
    assert "passed" in done.stdout or "skipped" in done.stdout


# Classes of NumPy, torch and dpnp that record accesses to their protocols.
ASKED = """
import sys
import arrayhub as ah
import numpy as np

def watched(cls, name):
    theirs = getattr(cls, name)
    def ask(self):
        asked.add(name)
        return theirs.__get__(self)
    return property(ask)

asked = set()
array = type("Watched", (np.ndarray,), {"__array_interface__": watched(np.ndarray, "__array_interface__")})
ah.asarray(np.zeros(3).view(array))
try:
    import torch
except ImportError:
    pass
else:
    torch.Tensor.__dlpack__ = watched(torch.Tensor, "__dlpack__")
    ah.asarray(torch.zeros(3))
try:
    import dpnp
except ImportError:
    pass
else:
    name = "__sycl_usm_array_interface__"
    setattr(dpnp.ndarray, name, watched(dpnp.ndarray, name))
    ah.asarray(dpnp.zeros(3))
print(*sorted(asked))
"""


def test_disabled_fast_path_uses_the_protocol():
    assert python(ASKED, **{SWITCH: "0"}).split() == []
    names = python(ASKED, **{SWITCH: "1"}).split()
    assert "__array_interface__" in names
    for library, name in (("torch", "__dlpack__"), ("dpnp", "__sycl_usm_array_interface__")):
        assert (name in names) == (importlib.util.find_spec(library) is not None)


# A program that prints the properties of arrays of all producers, for eight element types.
REPORT = """
import arrayhub as ah
from matrix.elements import ELEMENTS
from matrix.layouts import LAYOUTS
from matrix.producers import PRODUCERS, installed
for producer in PRODUCERS:
    if not installed(producer):
        continue
    for element, layout in producer.pairs():
        if element not in ("float32", "uint8", "bool", "complex128", "bfloat16", "record", ">i4", "datetime64[ns]"):
            continue
        made = producer.make(ELEMENTS[element], LAYOUTS[layout])
        x = ah.asarray(made.obj)
        assert made.address in (None, x.ptr) or not made.values, (producer.name, element, layout)
        data = bytes(x.to_host().copy().reshape(-1)) if x.dtype.kind in "biufc" else None
        assert data in (None, made.values), (producer.name, element, layout)
        print(producer.name, element, layout, x.shape, x.strides, x.byte_strides, x.offset, x.dtype, x.access, x.device,
              x.usm_type, x.protocol, x.memory.nbytes, x.flags.c_contiguous, x.flags.f_contiguous, x.flags.aligned)
"""


def test_array_properties_are_equal_without_fast_paths():
    fast, plain = (python(REPORT, **{SWITCH: value}) for value in "01")
    assert fast.count("\n") > 400
    assert plain == fast
