"""The examples in the docstrings of public names print the output that they contain."""

import doctest
import re

import numpy as np
import pytest
from children import python

import arrayhub

TEXTS = {name: text for name in arrayhub.__all__ if ">>>" in (text := getattr(arrayhub, name).__doc__ or "")}
NEEDED = {
    *("USMArray", "as_arrow", "as_awkward", "as_jax", "as_numba", "as_numpy", "as_pandas", "as_polars", "as_torch"),
    *("IpcHandle", "NestedArray", "asarray", "asnested", "to_host"),
}


def test_the_calls_of_the_first_hour_have_examples():
    assert NEEDED - set(TEXTS) == set()


def test_a_library_is_registered_in_a_process_of_its_own():
    """The example runs in another process, because a registered library stays in the table of libraries."""
    python("""
        import doctest, arrayhub
        text = arrayhub.register_library.__doc__
        test = doctest.DocTestParser().get_doctest(text, {}, "register_library", None, 0)
        results = doctest.DocTestRunner().run(test)
        assert results.attempted and not results.failed, results
    """)


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "register_library"])
def test_examples_of_docstrings(name):
    for library in re.findall(r">>> import (\w+)", TEXTS[name]):
        pytest.importorskip(library)
    if name == "as_pydata_sparse":
        pytest.importorskip("sparse")
    if name == "as_mpi":
        pytest.importorskip("mpi4py.MPI", exc_type=(ImportError, RuntimeError))
    globals_ = {public: getattr(arrayhub, public) for public in arrayhub.__all__} | {
        "arrayhub": arrayhub,
        "np": np,
        "numpy": np,
    }
    test = doctest.DocTestParser().get_doctest(TEXTS[name], globals_, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    results = runner.run(test, out=said.append)
    assert results.attempted > 0 or "+SKIP" in TEXTS[name]  # GPU only
    assert results.failed == 0, "".join(said)
