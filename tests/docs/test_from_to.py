"""Test that each call on the page "From one library to another" returns the documented result."""

import re

import from_to
import numpy as np
import pytest

import arrayhub

TEXT = from_to.PAGE.read_text()


@pytest.mark.parametrize("source", from_to.SOURCES, ids=lambda source: source.title)
def test_calls_of_the_page_return_the_documented_results(source):
    for library in (source.module, "torch", "jax", "dpnp", "numba", "pyarrow", "pandas", "polars", "awkward"):
        pytest.importorskip(library)
    section = re.search(rf"^## From {source.title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]
    calls = re.findall(r"^\| ([\w ]+) \| `?(.*?)`? \| (.*) \|$", section, re.MULTILINE)[1:]
    assert len(calls) >= 7
    x = from_to.made(source)
    for title, call, result in calls:
        if not call:
            name = next(name for name, known in from_to.TARGETS.items() if known == title)
            with pytest.raises((BufferError, TypeError)):
                arrayhub.convert(x, name, copy=True)
            continue
        made = eval(call, {"arrayhub": arrayhub, "x": x})
        (first, *_) = made if isinstance(made, (list, tuple)) else (made,)
        assert type(first).__module__.split(".")[0] in (title.lower(), "jaxlib", "numpy", "arrayhub"), call
        if "copy=True" in call and "missing=" not in call and title != "JAX":  # without copy=True, the call fails
            with pytest.raises((BufferError, TypeError)):
                eval(call.replace(", copy=True", ""), {"arrayhub": arrayhub, "x": x})
        if not source.is_dense:
            continue
        if result == "the same memory":
            assert arrayhub.asarray(made).ptr == arrayhub.asarray(x).ptr, call
        values = arrayhub.as_numpy(made, copy=True)
        np.testing.assert_array_equal(values, arrayhub.as_numpy(x, copy=True))


def test_generated_page_equals_the_stored_page():
    for library in ("torch", "jax", "dpnp", "numba", "pyarrow", "pandas", "polars", "awkward", "xarray"):
        pytest.importorskip(library)
    assert from_to.page() == TEXT
