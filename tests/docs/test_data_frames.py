"""Run the calls in the tables of docs/howto/data_frames.md with objects of each library, and compare the results."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

import arrayhub

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).resolve().parents[2] / "docs/howto/data_frames.md").read_text()
MODULES = ("numpy", "torch", "jax", "pandas", "polars", "pyarrow", "duckdb", "awkward")
FRAMES = ("pandas", "polars", "arrow", "awkward")
LISTS, STRINGS, GAPS = [[1.5], [2.5, 3.5]], ["a", "bc", "a"], [1.5, None, 3.0]
EQUAL, DECIMALS = [[1.5, 2.5], [3.5, 4.5]], [Decimal("1.5"), Decimal("2.5")]
MATRIX, CODES = [[1.5, 3.0], [2.5, 4.0]], [0, 1, -1, 0]
CODED = ["a", "bc", None, "a"]


CATEGORIES = [f"pandas.Series({CODED}, dtype='category')", f"polars.Series({CODED}, dtype=polars.Categorical)"]
CATEGORIES.append(f"pyarrow.array({CODED}).dictionary_encode()")


def columns(values):
    """Return expressions that create a column of each library."""
    chunks = [values[:1], values[1:]]
    text = [f"pandas.Series({values}, dtype='Float64')" if values is GAPS else f"pandas.Series({values})"]
    text += [f"polars.Series({values})", f"pyarrow.array({values})", f"pyarrow.chunked_array({chunks})"]
    return [*text, f"awkward.Array({values})", f"{values}"]


def records(first, second, values=(3, 4)):
    return [{first: 1.5, second: values[0]}, {first: 2.5, second: values[1]}]


def tables(b):
    """Return expressions that create a table of each library with the columns a and b."""
    frames = [
        f"{name}({dict(a=[1.5, 2.5], b=b)})" for name in ("pandas.DataFrame", "polars.DataFrame", "pyarrow.table")
    ]
    rows = f"(1.5e0, {b[0]}), (2.5e0, {b[1] or 'null'})"
    return [*frames, f"awkward.Array({records('a', 'b', b)})", f"duckdb.sql('from (values {rows}) t(a, b)')"]


def arrays(text):
    """Return expressions in which `text` creates arrays of each library with the function A."""
    return [text.replace("A(", f"{name}(") for name in ("numpy.array", "torch.tensor", "jax.numpy.array")]


# For each row: expressions of x, and the values of the result.
TO_ARRAYS = {
    "a column of numbers": (columns([1.5, 2.5]), [1.5, 2.5]),
    "a column with missing values": (columns(GAPS), GAPS),
    "a table of numbers": (tables([3, 4]), MATRIX),
    "a table with missing values": (tables([3, None]), [[1.5, 3.0], [2.5, None]]),
    "lists of different lengths": (columns(LISTS), LISTS),
    "decimals": (columns(DECIMALS)[:4], [1.5, 2.5]),
    "categories": (CATEGORIES, CODES),
    "strings": (columns(CODED), CODES),
}
TO_ONE = {
    "lists of different lengths, for torch": (columns(LISTS), LISTS),
    "lists of equal lengths, for torch": (columns(EQUAL), EQUAL),
    "lists of different lengths, padded": (columns(LISTS)[:4], [[1.5, 0.0], [2.5, 3.5]]),
    "lists of different lengths, selected by indices": (columns(LISTS), LISTS[::-1]),
    "strings, for NumPy": (columns(STRINGS), STRINGS),
    "a column with missing values, without a copy": (columns(GAPS)[:3], GAPS),
    "a table": (tables([3, 4]), records("a", "b")),
    "a matrix, for pandas": (arrays(f"A({MATRIX})"), records(0, 1)),
    "a matrix, for polars": (arrays(f"A({MATRIX})"), records("column_0", "column_1")),
    "a matrix, for pyarrow": (arrays(f"A({MATRIX})"), records("0", "1")),
}
TO_FRAMES = {
    "an array of one dimension": (arrays("A([1.5, 2.5])"), [1.5, 2.5]),
    "a dict of arrays": (arrays("{'a': A([1.5, 2.5]), 'b': A([3, 4])}"), records("a", "b")),
    "a list of arrays of different lengths": (arrays("[A([1.5]), A([2.5, 3.5])]"), LISTS),
    "values and a mask": (arrays("(A([1.5, 0.0, 3.0]), A([False, True, False]))"), GAPS),
    "codes of the strings `names`": (arrays(f"A({CODES})"), CODED),
}
CASES = [
    pytest.param(row, source, target, values, id=f"{row}: {source} to {target or 'the library of the call'}")
    for table, targets in ((TO_ARRAYS, ("numpy", "torch", "jax")), (TO_ONE, (None,)), (TO_FRAMES, FRAMES))
    for row, (sources, values) in table.items()
    for source in sources
    for target in targets
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


@pytest.mark.parametrize(("row", "source", "target", "values"), CASES)
def test_call_of_each_row_returns_the_expected_values(row, source, target, values):
    names = {name: getattr(arrayhub, name) for name in arrayhub.__all__} | {"names": ["a", "bc"]}
    names |= {"Decimal": Decimal} | {name: pytest.importorskip(name) for name in MODULES}
    call = re.search(rf"^\| {re.escape(row)} \| `(.*?)`", PAGE, re.MULTILINE)[1]
    if target:
        call = re.sub(r"\bas_(numpy|polars)\((?=x|numpy\.ma|pyarrow|row|as_arrow)", f"as_{target}(", call, count=1)
    made = eval(call, names | {"x": eval(source, names)})
    first = made[0] if isinstance(made, list) else made
    if target:
        module = {"arrow": "pyarrow", "jax": "jaxlib"}.get(target, target)
        assert type(first).__module__.split(".")[0] == module, call
    assert listed(made) == values, call


def test_each_row_is_tested():
    page = re.sub(r"^### From one table.*", "", PAGE.split("## Which call")[1], flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (?!`x`)([^|\n]*?) \|", page, re.MULTILINE)
    assert rows == [*TO_ARRAYS, *list(TO_ONE)[:7], *TO_FRAMES, *list(TO_ONE)[7:]]
