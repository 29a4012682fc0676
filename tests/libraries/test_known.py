"""arrayhub imports its modules lazily: a module for a library is imported by the first call that needs it."""

import pytest
from children import python

OF_LIBRARIES = ("torch", "jax", "cupy", "dpctl", "pyarrow")
OTHERS = (
    "capi.python_request",
    "inspection",
    "nested",
    "storage",
    "transfer.cuda",
    "libraries.devices",
    "libraries.dtypes",
    "transfer.cuda_copies",
    "transfer.host",
    "transfer.sycl",
    "transport.pickling",
)
COUNT = f"""
import sys

def loaded():
    return sorted(
        name for name in {OF_LIBRARIES!r} if f"arrayhub.libraries.{{name}}" in sys.modules
    ) + sorted(name for name in {OTHERS!r} if f"arrayhub.{{name}}" in sys.modules)
"""


@pytest.mark.parametrize(
    ("call", "modules"),
    [
        ("None", []),
        ("arrayhub.as_numpy(numpy.arange(6.0))", []),
        ("hasattr(arrayhub.asarray(numpy.arange(6.0)), '__usm_ndarray__')", []),
        ("arrayhub.asarray(bytearray(8)).tolist()", []),
        ("arrayhub.asarray(__import__('torch').ones(3))", ["torch"]),
        ("arrayhub.as_torch(numpy.arange(6.0))", ["torch"]),
        ("arrayhub.convert(numpy.arange(6.0), 'torch', copy=True)", ["torch", "transfer.host"]),
        ("arrayhub.asarray(numpy.arange(6.0)).copy()", ["transfer.host"]),
        ("arrayhub.asarray([1], dtype=__import__('torch').float32)", ["libraries.dtypes"]),
        ("arrayhub.Device(__import__('torch').device('cpu'))", ["libraries.devices"]),
        ("arrayhub.asarray(__import__('pyarrow').array([1, 2]))", ["pyarrow"]),
        ("arrayhub.as_jax(numpy.arange(6), copy=True)", ["jax", "transfer.host"]),
    ],
)
def test_call_imports_only_the_modules_that_it_needs(call, modules):
    if "jax" in modules:
        pytest.importorskip("jax")
        call = f"__import__('jax').config.update('jax_enable_x64', True) or {call}"
    printed = python(f"{COUNT}\nimport numpy, arrayhub\n{call}\nprint(loaded())")
    assert printed.strip() == repr(modules)
