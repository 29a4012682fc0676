"""Every call of the page "From one library to another" works, and returns what the page says."""

import re

import from_to
import numpy as np
import pytest

import arrayhub

TEXT = from_to.PAGE.read_text()


@pytest.mark.parametrize("source", from_to.SOURCES, ids=lambda source: source.title)
def test_every_call_of_the_page(source):
    for library in (source.module, "torch", "jax", "numba", "pyarrow", "pandas", "polars", "awkward"):
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
        assert type(made).__module__.split(".")[0] in (title.lower(), "jaxlib", "numpy", "arrayhub"), call
        if result == "the same memory" and source.title != "awkward":
            assert arrayhub.asarray(made).ptr == arrayhub.asarray(x).ptr, call
        if source.title != "awkward":
            np.testing.assert_array_equal(np.asarray(arrayhub.asarray(made)), np.asarray(x, "f8"))


def test_the_page_is_up_to_date():
    for library in ("torch", "jax", "numba", "pyarrow", "pandas", "polars", "awkward", "xarray"):
        pytest.importorskip(library)
    assert from_to.page() == TEXT
