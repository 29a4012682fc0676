"""Run the calls in the tables of docs/howto/data_frames.md, and compare the results with the expected values."""

import re
from pathlib import Path

import pytest

import arrayhub

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/data_frames.md"
TABLES = re.findall(
    r"^### (.*)\n\n\| `x` \| (.*) \|\n[|-]+\n((?:\|.*\n)+)",
    re.search(r"^## By pair of libraries\n.*?(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0],
    re.MULTILINE,
)
MODULES = ("numpy", "torch", "jax", "pandas", "polars", "pyarrow", "duckdb", "awkward")
FRAMES = {"pandas", "polars", "pyarrow", "duckdb", "awkward", "a list"}
TENSORS = {"numpy", "torch", "jax"}
RECORDS = [{"a": 1.5, "b": 3.0}, {"a": 2.5, "b": 4.0}]
EXPECTED = {
    "A table of numbers, as a matrix": (FRAMES, [[1.5, 3.0], [2.5, 4.0]]),
    "A column of numbers": (FRAMES, [1.5, 2.5]),
    "A column with missing values": (FRAMES, [1.5, None, 3.0]),
    "A column of lists of different lengths": (FRAMES, [[1.5], [2.5, 3.5]]),
    "A column of strings": (FRAMES, ["a", "bc", "a"]),
    "An array of one dimension, as a column": (TENSORS, [1.5, 2.5]),
    "A matrix, as a table": (TENSORS, RECORDS),
    "Values and a mask, as a column with missing values": (TENSORS, [1.5, None, 3.0]),
    "Arrays of different lengths, as a column of lists": (TENSORS, [[1.5], [2.5, 3.5]]),
    "Strings, or their codes, as a column": (TENSORS, ["a", "bc", "a"]),
}
ROWS = [
    pytest.param(title, dict(zip(libraries.split(" | "), cells, strict=True)), source, id=f"{title}: {source}")
    for title, libraries, lines in TABLES
    for source, *cells in (line.strip("| ").split(" | ") for line in lines.splitlines())
]


def listed(x):
    """Convert an array or table of any library to lists, with None for missing values and NaN."""
    if isinstance(x, list):
        return [listed(value) for value in x]
    if isinstance(x, dict):
        return {name: listed(value) for name, value in x.items()}
    if type(x).__name__ == "NestedTensor":
        return [row.tolist() for row in x.unbind()]
    if type(x).__name__ == "DataFrame":
        return x.to_dict("records") if type(x).__module__.startswith("pandas") else x.rows(named=True)
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(x, method):
            return listed(getattr(x, method)())
    return None if x is None or type(x).__name__ == "NAType" or x != x else x


def test_tables_list_each_pair_of_libraries():
    assert [title for title, _, _ in TABLES] == list(EXPECTED)
    for title, libraries, lines in TABLES:
        sources, _ = EXPECTED[title]
        named = [re.match(r"\| `[\[(]*([a-z]+)\.", line) for line in lines.splitlines()]
        assert {match[1] if match else "a list" for match in named} == sources, title
        assert libraries == ("NumPy | torch | JAX" if sources is FRAMES else "pandas | polars | pyarrow | awkward")


@pytest.mark.parametrize(("title", "cells", "source"), ROWS)
def test_calls_in_each_row_return_the_expected_values(title, cells, source):
    names = {name: getattr(arrayhub, name) for name in arrayhub.__all__}
    names |= {name: pytest.importorskip(name) for name in MODULES}
    _, values = EXPECTED[title]
    for library, cell in cells.items():
        x = eval(source.strip("`"), names)
        part, call = re.fullmatch(r"(?:not supported; (\w+) only: )?`(.*)`", cell).groups()
        expected = values
        if part:
            with pytest.raises((BufferError, TypeError, ValueError)):
                arrayhub.convert(x, library.lower(), copy=True)
            expected = {"codes": [0, 1, 0], "values": [1.5, 2.5, 3.5]}[part]
        made = eval(call, names | {"x": x})
        assert type(made).__module__.split(".")[0] == {"JAX": "jaxlib"}.get(library, library.lower()), call
        assert listed(made) == expected, call
        if ".content" in call:
            assert listed(eval(call.replace(".content", ".offsets"), names | {"x": x})) == [0, 1, 3], call
        if "missing='nan'" in call:
            filled = eval(call.replace("'nan'", "0.0"), names | {"x": x})
            assert listed(filled) == [value or 0.0 for value in values], call
