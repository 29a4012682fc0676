"""The examples in the docstrings of public names print what they show."""

import doctest
import re

import numpy as np
import pytest

import arrayhub

TEXTS = {name: text for name in arrayhub.__all__ if ">>>" in (text := getattr(arrayhub, name).__doc__ or "")}
NEEDED = {
    *("USMArray", "as_arrow", "as_awkward", "as_jax", "as_numba", "as_numpy", "as_pandas", "as_polars", "as_torch"),
    *("asarray", "asnested", "to_host"),
}


def test_the_calls_of_the_first_hour_have_examples():
    assert NEEDED - set(TEXTS) == set()


@pytest.mark.parametrize("name", TEXTS)
def test_examples_of_docstrings(name):
    for library in re.findall(r">>> import (\w+)", TEXTS[name]):
        pytest.importorskip(library)
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
