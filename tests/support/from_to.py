"""The page "From one library to another": for each pair of libraries, the shortest call that works.

    PYTHONPATH=.:tests/support python -m from_to

writes docs/howto/from_to.md. `explain` names each call, and `tests/docs/test_from_to.py` tests each call.
"""

import importlib
import pathlib
import re
from typing import NamedTuple

import arrayhub

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/howto/from_to.md"


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
}


_AS_JAX = r"arrayhub\.as_jax\(x(, copy=True)?\)"  # copy=True is needed only if `x` is not aligned


def made(source):
    """Create the object of a source."""
    return eval(source.code, {"m": importlib.import_module(source.module)})


def rows(source, x):
    """Yield the name of each other library, the call that converts `x` to it, and a description of the result."""
    for target, title in TARGETS.items():
        if source.module.startswith({"arrow": "pyarrow"}.get(target, target)):
            continue
        explained = arrayhub.explain(x, to=target)
        (verdict,) = explained.verdicts
        if target == "jax" and source.module != "dpnp" and re.fullmatch(_AS_JAX, explained.call):
            yield title, "arrayhub.as_jax(x, copy=None)", "a view if aligned to 64 bytes, else a copy"
        elif explained.call:
            result = result_of(explained.call, verdict.verdict)
            is_matrix = hasattr(x, "columns") and "copy" in explained.call
            yield title, explained.call, f"{result}, as a matrix of shape (rows, columns)" if is_matrix else result
        else:
            yield title, "", "not possible: lists of different lengths are not a dense array"


def result_of(call, verdict):
    """Describe the result of a call that `explain` names."""
    if "dtype=" in call:
        result = "a copy in float32"
    elif "copy=" in call or verdict == "copy=True":
        result = "a copy"
    else:
        result = "the same memory"
    if "for row in" in call:
        return f"one array for each row: {result}"
    if "missing='nan'" in call:
        return f"{result}, with NaN for missing values"
    if "missing='mask'" in call:
        return f"{'a masked array' if 'as_numpy' in call else 'values and a mask'}: {result}"
    return result


def page():
    """Return the text of the page."""
    text = [
        __doc__.splitlines()[0]
        .replace('The page "', "# ")
        .replace('": for each pair of libraries, the shortest call that works.', "")
    ]
    text += [
        "",
        "This page lists the shortest call that works for each pair of libraries. For any other object,",
        '`arrayhub.explain(x, to="torch").call` contains the call. `copy=True` is passed only if the call raises an',
        "error without it. JAX supports float64 and int64 only with `jax_enable_x64`, so the calls for JAX convert",
        "these types. To copy host memory to a CUDA device, call `as_cupy(x, copy=True)`.",
        "`PYTHONPATH=.:tests/support python -m from_to` writes this page, and a test makes every call.",
    ]
    for source in SOURCES:
        text += ["", f"## From {source.title}", "", f"`{source.shown}`", "", "| to | call | result |", "|---|---|---|"]
        for title, call, result in rows(source, made(source)):
            text.append(f"| {title} | {f'`{call}`' if call else ''} | {result} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
