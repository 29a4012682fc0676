"""If an allocation fails, a call that makes C structs raises MemoryError or returns the correct result, without leaks.

`tests/support/allocations.py` has tables of the calls. Each table runs in a separate process. If the process crashes,
the test fails and names the call and the allocation.
"""

import importlib.util
import os
import sys
import sysconfig

import pytest
from allocations import TABLES
from children import ROOT, SUPPORT, finished

pytestmark = pytest.mark.slow

pytest.importorskip("_testcapi", reason="not every build of CPython has the functions that make allocations fail")


# `PyList_New` of free-threaded CPython 3.14 crashes the process if memory for the items cannot be allocated:
# https://github.com/python/cpython/issues/152125, https://github.com/python/cpython/pull/154019
CRASHING = ("host", "nested") if sysconfig.get_config_var("Py_GIL_DISABLED") else ()


def missing(table):
    return [name for name in TABLES[table].libraries if importlib.util.find_spec(name) is None]


@pytest.mark.parametrize("table", TABLES)
def test_call_with_a_failing_allocation_raises_or_returns(table, tmp_path):
    if table in CRASHING:
        pytest.skip("PyList_New crashes without memory: python/cpython#152125")
    if missing(table):
        pytest.skip(f"{missing(table)[0]} is not installed")
    last = tmp_path / "last"
    paths = os.pathsep.join(filter(None, [str(ROOT), str(SUPPORT), os.environ.get("PYTHONPATH")]))
    done = finished(sys.executable, "-X", "faulthandler", SUPPORT / "allocations.py", table, last, PYTHONPATH=paths)
    where = last.read_text().strip() if last.exists() else "nothing ran"
    assert done.returncode == 0, f"exit code {done.returncode} in {where}\n{done.stderr[-3000:]}"
    assert done.stdout == ""
