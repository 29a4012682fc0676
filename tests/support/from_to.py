"""The page "From one library to another": for each pair of libraries, the first of `CALLS` that works.

    PYTHONPATH=.:tests/support python -m from_to

writes docs/howto/from_to.md, and `tests/docs/test_from_to.py` tests each call.
"""

import importlib
import pathlib
import re
from typing import NamedTuple

import arrayhub
from arrayhub._core.errors import root_of

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/howto/from_to.md"
HEAD = """# From one library to another

This page lists the shortest call that works for each pair of libraries. For any other object,
`arrayhub.explain(x, to="torch").call` contains the call, or "" if no call is known. Without a keyword, the memory is
shared, or an error is raised: see [The argument `copy=`](../memory.md#the-argument-copy).

- JAX supports float64 and int64 only with `jax_enable_x64`, so the calls for JAX pass `dtype='float32'` for float64
  arrays and columns. `copy=None` shares memory that is aligned to 64 bytes, and copies other memory, also of float32.
- To copy to a CUDA device, pass `device='cuda:0'` to `as_torch` or `as_cupy`.
- `missing=0` in place of `missing='nan'` replaces the missing values with 0.
"""


class Source(NamedTuple):
    """An object to be converted. The expression `code` creates it from the module `m`. The page shows `shown`.

    `is_dense` states whether `asarray` imports the object.
    """

    title: str
    module: str
    code: str
    shown: str
    is_dense: bool = True


SOURCES = (
    Source("a list", "builtins", "[1.5, 2.5]", "x = [1.5, 2.5]"),
    Source("NumPy", "numpy", "m.ones(3, 'f4')", "x = numpy.ones(3, 'f4')"),
    Source("torch", "torch", "m.ones(3)", "x = torch.ones(3)"),
    Source("JAX", "jax.numpy", "m.ones(3)", "x = jax.numpy.ones(3)"),
    Source("pyarrow", "pyarrow", "m.array([1.5, 2.5])", "x = pyarrow.array([1.5, 2.5])"),
    Source("pandas", "pandas", "m.Series([1.5, 2.5])", "x = pandas.Series([1.5, 2.5])"),
    Source("polars", "polars", "m.Series([1.5, 2.5])", "x = polars.Series([1.5, 2.5])"),
    Source("awkward", "awkward", "m.Array([[1.5], [2.5, 3.5]])", "x = awkward.Array([[1.5], [2.5, 3.5]])", False),
    Source("xarray", "xarray", "m.DataArray([1.5, 2.5], dims='t')", "x = xarray.DataArray([1.5, 2.5], dims='t')"),
    Source("dpnp", "dpnp", "m.ones(3, dtype='f4')", "x = dpnp.ones(3, dtype='f4')"),
    Source(
        "a column with missing values",
        "pandas",
        "m.Series([1, None], dtype='Int64')",
        "x = pandas.Series([1, None], dtype='Int64')",
        False,
    ),
    Source(
        "a table of numbers",
        "pandas",
        "m.DataFrame({'a': [1.5, 2.5], 'b': [1, 2]})",
        "x = pandas.DataFrame({'a': [1.5, 2.5], 'b': [1, 2]})",
        False,
    ),
)
TARGETS = {
    "numpy": "NumPy",
    "torch": "torch",
    "jax": "JAX",
    "dpnp": "dpnp",
    "numba": "numba",
    "arrow": "pyarrow",
    "pandas": "pandas",
    "polars": "polars",
    "awkward": "awkward",
    "xarray": "xarray",
}
# The calls with their results, shortest first. `row` stands for a call for each row. Whether `as_jax(x)` works depends
# on the address of the memory.
CALLS = (
    ("(x)", "the same memory"),
    ("(x, device='cpu')", "a copy"),
    ("(x, copy=True)", "a copy"),
    ("(x, missing='nan')", "a copy, with NaN for missing values"),
    ("(x, missing='nan', copy=True)", "a copy, with NaN for missing values"),
    ("(row)", "one array for each row: the same memory"),
    ("(row, copy=True)", "one array for each row: a copy"),
)
CALLS_FOR_JAX = (
    ("(x, copy=None)", "the same memory, or a copy"),
    ("(x, dtype='float32')", "a copy"),
    ("(x, device='cpu')", "a copy"),
    ("(x, missing='nan', dtype='float32')", "a copy, with NaN for missing values"),
    ("(row, dtype='float32')", "one array for each row: a copy"),
)
CALLS_FOR_MISSING = {
    "numpy": ("(x, missing='mask')", "a masked array: the same memory"),
    "numba": ("(x, missing='mask')", "values and a mask: the same memory"),
}


def create(source):
    """Create the object of a source."""
    return eval(source.code, {"m": importlib.import_module(source.module)})


def evaluate(call, x):
    """Return the result of a call on the page."""
    return eval(call, {"arrayhub": arrayhub, "x": x})


def first_call(x, target):
    """Return the first call that converts `x`, and the description of its result."""
    listed = CALLS_FOR_JAX if target == "jax" and not isinstance(x, list) else CALLS
    for arguments, result in (*listed[:3], *filter(None, [CALLS_FOR_MISSING.get(target)]), *listed[3:]):
        if "device=" in arguments and root_of(type(x)) not in ("dpnp", "cupy"):  # the memory is on the host
            continue
        call = f"arrayhub.as_{target}{arguments}"
        if target == "xarray":
            call = re.sub(r"^\((\w+)", r"arrayhub.convert(\1, 'xarray'", arguments)
        if arguments.startswith("(row"):
            call = f"[{call} for row in arrayhub.asnested(x)]"
        try:
            evaluate(call, x)
        except (BufferError, TypeError, ValueError):
            continue
        if hasattr(x, "columns") and target in ("numpy", "torch", "jax", "dpnp", "numba", "xarray"):
            result += ", as a matrix of shape (rows, columns)"
        return call, "a copy" if isinstance(x, list) else result
    raise ValueError(f"no call converts {type(x)} to {target}")


def page():
    """Return the text of the page."""
    text = [HEAD.rstrip("\n")]
    for source in SOURCES:
        text += ["", f"## From {source.title}", "", f"`{source.shown}`", "", "| to | call | result |", "|---|---|---|"]
        for target, title in TARGETS.items():
            if not source.module.startswith({"arrow": "pyarrow"}.get(target, target)):
                call, result = first_call(create(source), target)
                text.append(f"| {title} | `{call}` | {result} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
