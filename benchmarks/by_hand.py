"""Calls that people write, compared with the same thing written by hand for the two libraries."""

import numpy as np

import arrayhub

from .rows import Row, measured

SIZES = {"": 64, " of 1,000,000": 1_000_000}  # elements

# call, statement of arrayhub, the same by hand, maximum ratio, libraries. ``{}`` stands for the suffix of the names.
CALLS = (
    ("adapt, torch", "doubled(t{})", "torch.from_numpy(double(t{}.numpy()))", 2.0, "torch"),
    ("adapt, jax", "doubled(j{})", "from_dlpack(double(np.from_dlpack(j{})))", 1.5, "jax"),
    ("adapt, pyarrow", "doubled(p{})", "pa.array(double(p{}.to_numpy()))", 2.5, "pyarrow"),
    ("adapt, polars", "doubled(s{})", "pl.Series(s{}.name, double(s{}.to_numpy()))", 2.0, "polars"),
    (
        *("adapt, pandas, labels=True", "labelled(q{})"),
        *("pd.Series(double(q{}.to_numpy()), index=q{}.index, name=q{}.name, copy=False)", 2.0, "pandas"),
    ),
    ("adapt, xarray, labels=True", "labelled(x{})", "x{}.copy(data=double(x{}.values))", 2.0, "xarray"),
    ("like(ndarray, tensor)", "arrayhub.like(a{}, t{})", "torch.from_numpy(a{})", 2.5, "torch"),
    ("as_numpy(polars Series)", "arrayhub.as_numpy(s{})", "s{}.to_numpy()", 1.2, "polars"),
    ("as_numpy(xarray)", "arrayhub.as_numpy(x{})", "x{}.values", 2.0, "xarray"),
    ("as_numpy(pandas Series)", "arrayhub.as_numpy(q{})", "q{}.to_numpy()", 2.0, "pandas"),
    ("as_numpy(pyarrow array)", "arrayhub.as_numpy(p{})", "p{}.to_numpy()", 0.92, "pyarrow"),
    (
        *("as_torch(polars Series, copy=True)", "arrayhub.as_torch(s{}, copy=True)"),
        *("torch.tensor(s{}.to_numpy())", 1.2, "polars torch"),
    ),
    ("as_arrow(ndarray)", "arrayhub.as_arrow(a{})", "pa.array(a{})", 1.2, "pyarrow"),
    ("as_polars(ndarray)", "arrayhub.as_polars(a{})", "pl.Series(a{})", 1.2, "polars"),
    ("as_pandas(ndarray)", "arrayhub.as_pandas(a{})", "pd.Series(a{}, copy=False)", 1.2, "pandas"),
    ("as_jax(ndarray), aligned", "arrayhub.as_jax(a{})", "from_dlpack(a{})", 1.1, "jax"),
)
FEW = (
    Row(
        "as_torch(frame of 8 x 100,000, copy=True)",
        "arrayhub.as_torch(frame, copy=True)",
        "frame.to_torch()",
        1.2,
        ("tables",),
        True,
    ),
    Row(
        *("as_numpy(10 chunks of 100,000, copy=None)", "arrayhub.as_numpy(chunked, copy=None)"),
        *("chunked.to_numpy()", 1.2, ("tables",), True),
    ),
    Row(
        *("as_torch(1,000,000 with missing, missing=0)", "arrayhub.as_torch(gaps, missing=0)"),
        *("torch.from_numpy(gaps.fill_null(0).to_numpy())", 0.91, ("tables",), True),
    ),
    Row("as_polars(1,000,000 lists)", "arrayhub.as_polars(lists)", "pl.from_arrow(lists)", 1.1, ("tables",), True),
    Row(
        "as_awkward(100,000 lists)",
        "arrayhub.as_awkward(short)",
        "ak.from_arrow(short)",
        0.37,
        ("tables", "awkward"),
        True,
    ),
    Row("as_arrow(lists of lists)", "arrayhub.as_arrow(values)", "pa.array(values)", 1.0, ("tables",), True),
    Row("as_arrow(list of strings)", "arrayhub.as_arrow(words)", "pa.array(words)", 1.0, ("tables",), True),
)
ROWS = (
    *(
        Row(call + size, ours.replace("{}", f"_{n}"), peer.replace("{}", f"_{n}"), at_most, tuple(libraries.split()))
        for call, ours, peer, at_most, libraries in CALLS
        for size, n in SIZES.items()
    ),
    *FEW,
)


def arrays():
    """Return one aligned ndarray of float64 for each size, as jax requires it."""
    found = {}
    for n in SIZES.values():
        memory = np.zeros(n + 8)
        start = -memory.ctypes.data % 64 // 8
        found[n] = memory[start : start + n]
        found[n][...] = np.arange(n)
    return found


ARRAYS = arrays()


def double(a):
    return a * 2


def plain():
    """Return the names that all statements use."""
    return {
        **{f"a_{n}": a for n, a in ARRAYS.items()},
        "np": np,
        "arrayhub": arrayhub,
        "double": double,
        "doubled": arrayhub.adapt("numpy")(double),
        "labelled": arrayhub.adapt("numpy", labels=True)(double),
    }


def torch():
    import torch

    return {"torch": torch, **{f"t_{n}": torch.from_numpy(a.copy()) for n, a in ARRAYS.items()}}


def jax():
    import jax

    jax.config.update("jax_enable_x64", True)  # the arrays are float64
    return {"from_dlpack": jax.dlpack.from_dlpack, **{f"j_{n}": jax.numpy.asarray(a) for n, a in ARRAYS.items()}}


def pyarrow():
    import pyarrow as pa

    return {"pa": pa, **{f"p_{n}": pa.array(a) for n, a in ARRAYS.items()}}


def polars():
    import polars as pl

    return {"pl": pl, **{f"s_{n}": pl.Series("s", a) for n, a in ARRAYS.items()}}


def pandas():
    import pandas as pd

    return {"pd": pd, **{f"q_{n}": pd.Series(a, pd.RangeIndex(n), name="q") for n, a in ARRAYS.items()}}


def xarray():
    import xarray as xr

    return {f"x_{n}": xr.DataArray(a, {"t": np.arange(n)}, ["t"]) for n, a in ARRAYS.items()}


def tables():
    """Return a frame, a column in chunks, a column with missing values, and lists."""
    import polars as pl
    import pyarrow as pa
    import torch

    floats = ARRAYS[1_000_000]
    return {
        "pa": pa,
        "pl": pl,
        "torch": torch,
        "frame": pl.DataFrame({f"c{k}": floats[:100_000] for k in range(8)}),
        "chunked": pa.chunked_array(np.split(floats, 10)),
        "gaps": pa.array(floats, mask=floats % 10 == 3),
        "lists": pa.array([[1.0]] * 1_000_000),
        "short": pa.array([[1.0]] * 100_000),
        "values": [[float(k), 1.0] for k in range(100_000)],
        "words": [f"word {k}" for k in range(100_000)],
    }


def awkward():
    import awkward as ak

    return {"ak": ak}


SAMPLES = {
    "torch": torch,
    "jax": jax,
    "pyarrow": pyarrow,
    "polars": polars,
    "pandas": pandas,
    "xarray": xarray,
    "tables": tables,
    "awkward": awkward,
}


def by_hand(options):
    """Measure conversions and adapted calls, compared with the same conversions written by hand."""
    yield from measured("by_hand", ROWS, options, plain(), SAMPLES)
