"""arrayhub imports its modules lazily: a module for a library is imported by the first call that needs it."""

import sys
import textwrap
import types

import numpy as np
import pytest
from children import python

import arrayhub as ah
from arrayhub.array import casting

OF_LIBRARIES = ("torch", "jax", "cupy", "dpctl", "pyarrow")
OTHERS = (
    "inspection",
    "nested",
    "storage",
    "testing",
    "transfer.cuda",
    "transfer.cuda_copies",
    "transfer.host",
    "transfer.sycl",
    "transport.pickles",
)
COUNT = f"""
import sys

def loaded():
    return sorted(
        name for name in {OF_LIBRARIES!r} if f"arrayhub.libraries.{{name}}" in sys.modules
    ) + sorted(name for name in {OTHERS!r} if f"arrayhub.{{name}}" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "modules"),
    [
        ("None", []),
        ("arrayhub.as_numpy(numpy.arange(6.0))", []),
        ("hasattr(arrayhub.asarray(numpy.arange(6.0)), '__usm_ndarray__')", []),
        ("arrayhub.asarray(bytearray(8)).tolist()", []),
        ("arrayhub.asarray(__import__('torch').ones(3))", ["torch"]),
        ("arrayhub.as_torch(numpy.arange(6.0))", ["torch"]),
        ("arrayhub.convert(numpy.arange(6.0), 'torch', copy=True)", ["torch"]),
        ("arrayhub.asarray(numpy.arange(6.0)).copy()", ["transfer.host"]),
        ("arrayhub.asarray(__import__('pyarrow').array([1, 2]))", []),
        ("arrayhub.as_jax(numpy.arange(6), copy=True)", ["jax", "transfer.host"]),
        ("arrayhub.testing.check_producer", ["inspection", "testing"]),
    ],
)
def test_call_imports_only_the_modules_that_it_needs(call, modules):
    if "jax" in modules:
        pytest.importorskip("jax")
        call = f"__import__('jax').config.update('jax_enable_x64', True) or {call}"
    printed = python(f"{COUNT}\nimport numpy, arrayhub\n{call}\nprint(loaded())")
    assert printed.strip() == repr(modules)


# Programs that import no array library.
PROGRAMS = {
    "asarray": """
        import array, numpy
        class Producer:
            def __dlpack__(self, **options): return numpy.arange(3).__dlpack__(**options)
            def __dlpack_device__(self): return (1, 0)
        for x in (numpy.arange(3), array.array("d", [1]), [1, 2], Producer()):
            arrayhub.asarray(x)
    """,
    "explain": "arrayhub.explain(bytearray(64), to='numpy'), arrayhub.datashape.of(b'')",
    "Device": "arrayhub.Device('cuda:0')",
}
FOREIGN = ("torch", "jax", "cupy", "dpctl", "dpnp", "numba", "ml_dtypes", "pyarrow", "xarray", "tvm_ffi", "dask",
           "distributed", "ray", "joblib", "mpi4py", "cloudpickle", "multiprocessing")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_library_is_imported_for_objects_of_others(program):
    said = python(f"""
import sys
before = set(sys.modules)
import arrayhub
{textwrap.dedent(PROGRAMS[program])}
print([name for name in {FOREIGN} if name in sys.modules and name not in before])
""")
    assert said == "[]\n"


LIBRARIES = ("awkward", "ml_dtypes", "pandas", "pandas.api.extensions", "polars", "pyarrow", "torch", "xarray")
CALLS = {
    "asnested": lambda: ah.asnested(["a", None]).to_list() == ["a", None],
    "asnested of strings": lambda: ah.asnested(np.array(["a", "b"])).to_list() == ["a", "b"],
    "asnested of an array": lambda: ah.asnested(np.ones(2)).to_list() == [1, 1],
    "fill_null": lambda: ah.asnested([1, None]).fill_null(0).tolist() == [1, 0],
    "as_numpy": lambda: ah.as_numpy([[1, None]], missing=0).tolist() == [[1, 0]],
    "asnested of a buffer": lambda: ah.asnested(bytearray(2)).to_list() == [0, 0],
    "assignment": lambda: ah.zeros(2, "float32").__setitem__(..., [1e9, 2.0]) is None,
    "explain": lambda: ah.explain(["a", None], to="numpy").verdicts != (),
    "check": lambda: ah.check(bytearray(2)) == [],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_calls_succeed_while_another_thread_imports_a_library(call, library, monkeypatch):
    for function in vars(casting).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
    monkeypatch.setitem(sys.modules, library, types.ModuleType(library))  # the import has not defined a name yet
    assert call()
