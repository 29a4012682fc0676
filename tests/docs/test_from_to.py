"""Test that each call on the page "From one library to another" returns the documented result."""

import re

import from_to
import numpy as np
import pytest

import arrayhub

TEXT = from_to.PAGE.read_text()


@pytest.mark.parametrize("source", from_to.SOURCES, ids=lambda source: source.title)
def test_calls_of_the_page_return_the_documented_results(source):
    for library in (source.module, "torch", "jax", "dpnp", "numba", "pyarrow", "pandas", "polars", "awkward", "xarray"):
        pytest.importorskip(library)
    section = re.search(rf"^## From {source.title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]
    calls = re.findall(r"^\| ([\w ]+) \| `(.*?)` \| (.*) \|$", section, re.MULTILINE)
    assert len(calls) >= 7
    x = from_to.create(source)
    for title, call, result in calls:
        converted = from_to.evaluate(call, x)
        (first, *_) = converted if isinstance(converted, (list, tuple)) else (converted,)
        assert type(first).__module__.split(".")[0] in (title.lower(), "jaxlib", "numpy", "arrayhub"), call
        shorter = re.sub(r", copy=True|device='cpu'", "", call)
        if shorter != call:
            with pytest.raises((BufferError, TypeError)):
                from_to.evaluate(shorter, x)
        if not source.is_dense:
            continue
        if result == "the same memory":
            assert arrayhub.asarray(converted).ptr == arrayhub.asarray(x).ptr, call
        values = arrayhub.as_numpy(converted, device="cpu")
        np.testing.assert_array_equal(values, arrayhub.as_numpy(x, device="cpu"))


def test_generated_page_equals_the_stored_page():
    for library in ("torch", "jax", "dpnp", "numba", "pyarrow", "pandas", "polars", "awkward", "xarray"):
        pytest.importorskip(library)
    assert from_to.page() == TEXT
