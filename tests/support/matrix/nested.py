"""Nested arrays: tables of producers, kinds of arrays, consumers and refusals. test_nested_matrix.py uses them."""

import itertools
import weakref
from typing import NamedTuple

import arrayhub as ah

from .memory import called

LONG = "a string of more than twelve bytes"


class Kind(NamedTuple):
    """A kind of array: its values, a function that returns its pyarrow type, and the NestedArray's datashape."""

    values: list
    type_of: object
    datashape: str


KINDS = {
    "missing numbers": Kind([1, None, 3], lambda pa: pa.int64(), "3 * ?int64"),
    "truth values": Kind([True, None, False], lambda pa: pa.bool_(), "3 * ?bool"),
    "lists": Kind([[1.0], [2.0, 3.0, 4.0], [], [5.0, 6.0]], lambda pa: pa.list_(pa.float64()), "4 * var * float64"),
    "missing lists": Kind([[1], None, [2, 3]], lambda pa: pa.list_(pa.int32()), "3 * option[var * int32]"),
    "lists of lists": Kind(
        [[[1], []], [], [[2, 3]]], lambda pa: pa.list_(pa.list_(pa.int64())), "3 * var * var * int64"
    ),
    "strings": Kind(["This", LONG, None, "é"], lambda pa: pa.string(), "4 * ?string"),
    "bytes": Kind([b"\xff", LONG.encode()], lambda pa: pa.binary(), "2 * bytes"),
    "lists of strings": Kind([["a"], [LONG, None]], lambda pa: pa.list_(pa.string()), "2 * var * ?string"),
    "records": Kind(
        [{"x": 1, "y": 1.5}, {"x": 2, "y": 2.5}],
        lambda pa: pa.struct([("x", pa.int64()), ("y", pa.float64())]),
        "2 * {x: int64, y: float64}",
    ),
    "records with lists": Kind(
        [{"x": 1, "y": [1.5]}, {"x": 2, "y": []}],
        lambda pa: pa.struct([("x", pa.int64()), ("y", pa.list_(pa.float64()))]),
        "2 * {x: int64, y: var * float64}",
    ),
    "categories": Kind(
        ["a", LONG, "a"], lambda pa: pa.dictionary(pa.int32(), pa.string()), "3 * categorical[type=string]"
    ),
}
RECORDS = ("records", "records with lists")
JAGGED = ("lists",)


class Made(NamedTuple):
    """Result of a producer: the object, the address of its values or None, and a test whether they were freed."""

    obj: object
    address: int | None
    freed: object


class Producer(NamedTuple):
    """A producer: ``make(kind)`` returns a `Made`. `kinds` names the kinds that the producer supports."""

    name: str
    library: str
    make: object
    kinds: tuple = tuple(KINDS)


def last_buffer(array):
    """Return the address of the last buffer of a pyarrow array, which contains numbers or characters."""
    if hasattr(array, "dictionary"):
        return last_buffer(array.dictionary)
    return array.buffers()[-1].address


def _arrow(make, alike=lambda kind: True):
    def made(kind):
        import pyarrow as pa

        before = pa.total_allocated_bytes()
        source = pa.array(kind.values, kind.type_of(pa))
        address = last_buffer(source)
        return Made(make(pa, source), address if alike(kind) else None, lambda: pa.total_allocated_bytes() <= before)

    return made


def _table(pa, source):
    return pa.Table.from_struct_array(source)


def _pandas(pa, source):
    import pandas as pd

    return pd.Series(source, dtype=pd.ArrowDtype(source.type))


def _frame(pa, source):
    import pandas as pd

    return pd.DataFrame({name: _pandas(pa, column) for name, column in zip("xy", source.flatten(), strict=True)})


def _of_polars(kind):
    import polars as pl
    import pyarrow as pa

    series = pl.Series(pa.array(kind.values, kind.type_of(pa)))
    return Made(series, None, lambda: True)


def _of_polars_frame(kind):
    made = _of_polars(kind)
    return made._replace(obj=made.obj.struct.unnest())


def _of_duckdb(kind):
    import duckdb
    import pyarrow as pa

    source = pa.Table.from_struct_array(pa.array(kind.values, kind.type_of(pa)))
    return Made(duckdb.from_arrow(source), None, lambda: True)


def _of_awkward(kind):
    import awkward as ak
    import pyarrow as pa

    if "categorical" in kind.datashape:
        return Made(ak.from_arrow(pa.array(kind.values, kind.type_of(pa))), None, lambda: True)
    source = ak.from_iter(kind.values)
    # awkward represents missing values by an index, so the address is not compared.
    if "?" in kind.datashape or "option" in kind.datashape:
        return Made(ak.values_astype(source, "int32") if "int32" in kind.datashape else source, None, lambda: True)
    leaf = leaf_of_awkward(source.layout)
    gone = weakref.ref(leaf)
    return Made(source, leaf.ctypes.data, lambda: gone() is None)


def leaf_of_awkward(layout):
    """Return the ndarray of the innermost layout: the numbers or characters of the last field."""
    while not hasattr(layout, "data"):
        layout = layout.contents[-1] if hasattr(layout, "contents") else layout.content
    return layout.data


def _of_torch(kind):
    import torch

    values = torch.tensor([number for row in kind.values for number in row], dtype=torch.float64)
    offsets = torch.tensor([0, *itertools.accumulate(map(len, kind.values))])
    gone = weakref.ref(values)
    source = torch.nested.nested_tensor_from_jagged(values, offsets)
    return Made(source, values.data_ptr(), lambda: gone() is None)


def _in_usm(memory):
    def made(kind):
        import dpnp
        import pyarrow as pa

        from arrayhub.nested.to_device import compact, map_arrays

        def there(array):
            return ah.asarray(dpnp.asarray(ah.as_numpy(array), usm_type=memory))

        source = map_arrays(compact(ah.asnested(pa.array(kind.values, kind.type_of(pa)))), there)
        return Made(source, None, lambda: True)

    return made


ARRO3 = called("arro3.core", "Array.from_arrow")
PRODUCERS = [
    Producer("pyarrow.Array", "pyarrow", _arrow(lambda pa, source: source)),
    Producer("pyarrow.ChunkedArray", "pyarrow", _arrow(lambda pa, source: pa.chunked_array([source]))),
    Producer("pyarrow.Table", "pyarrow", _arrow(_table), RECORDS),
    Producer("polars.Series", "polars", _of_polars),
    Producer("polars.DataFrame", "polars", _of_polars_frame, RECORDS),
    Producer("pandas.Series", "pandas", _arrow(_pandas, lambda kind: kind.values[0] != "This")),
    Producer("pandas.DataFrame", "pandas", _arrow(_frame), RECORDS),
    Producer("nanoarrow.Array", "nanoarrow", _arrow(lambda pa, source: called("nanoarrow", "Array")(source))),
    Producer("arro3.core.Array", "arro3", _arrow(lambda pa, source: ARRO3(source))),
    Producer("duckdb", "duckdb", _of_duckdb, RECORDS),
    Producer("awkward.Array", "awkward", _of_awkward),
    Producer("torch (jagged)", "torch", _of_torch, JAGGED),
    Producer("USM, shared", "dpnp", _in_usm("shared")),
    Producer("USM, device", "dpnp", _in_usm("device")),
]


class Consumer(NamedTuple):
    """A consumer: `take` converts a NestedArray, and `values` returns the values of the result.

    `address` returns the address of the result's last buffer. If `address` is None, addresses are not compared.
    """

    name: str
    library: str
    take: object
    values: object
    address: object = None
    kinds: tuple = tuple(KINDS)


def _take_nanoarrow(x):
    import nanoarrow
    import nanoarrow.device

    return nanoarrow.c_array(x) if hasattr(x, "__arrow_c_array__") else nanoarrow.device.c_device_array(x)


def _values_of_nanoarrow(array):
    import nanoarrow

    if getattr(array, "device_type_id", 1) != 1:  # not the host's
        return ah.asnested(array).to_host().to_list()
    return nanoarrow.Array(array).to_pylist()


def _address_in_nanoarrow(array):
    array = getattr(array, "array", array)
    if array.dictionary is not None:
        return _address_in_nanoarrow(array.dictionary)
    return _address_in_nanoarrow(array.child(array.n_children - 1)) if array.n_children else array.buffers[-1]


def _values_of_arro3(array):
    """Return the values through pyarrow, because arro3's to_pylist panics for list views."""
    import pyarrow as pa

    return pa.array(array).to_pylist()


def _through_pyarrow(array):
    import pyarrow as pa

    return last_buffer(pa.array(array))


def _take_duckdb(x):
    import duckdb

    return duckdb.sql("select * from x").fetchall()


def _values_of_pandas(series):
    if series.ndim == 2:
        return [dict(zip(series.columns, row, strict=True)) for row in zip(*map(_values_of_pandas, _columns(series)),
                                                                          strict=True)]  # fmt: skip
    return series.array._pa_array.to_pylist()


def _columns(frame):
    return [frame[name] for name in frame.columns]


def _address_in_pandas(series):
    series = _columns(series)[-1] if series.ndim == 2 else series
    return last_buffer(series.array._pa_array.chunk(0))


def _values_of_polars(series):
    return series.to_dicts() if hasattr(series, "to_dicts") else series.to_list()


def _address_in_polars(series):
    import polars as pl

    series = series.get_columns()[-1] if hasattr(series, "get_columns") else series
    return last_buffer(series.to_arrow(compat_level=pl.CompatLevel.newest()))


def _values_of_numpy(array):
    if array.dtype.names is None:
        return array.tolist()
    return [dict(zip(array.dtype.names, row, strict=True)) for row in array.tolist()]


CONSUMERS = [
    Consumer("to_list", "numpy", lambda x: x, lambda x: x.to_list()),
    Consumer("pyarrow", "pyarrow", ah.as_arrow, lambda array: array.to_pylist(), last_buffer),
    Consumer("polars", "polars", ah.as_polars, _values_of_polars, _address_in_polars),
    Consumer("pandas", "pandas", ah.as_pandas, _values_of_pandas, _address_in_pandas),
    Consumer(
        "awkward", "awkward", ah.as_awkward, lambda a: a.to_list(), lambda a: leaf_of_awkward(a.layout).ctypes.data
    ),
    Consumer("nanoarrow", "nanoarrow", _take_nanoarrow, _values_of_nanoarrow, _address_in_nanoarrow),
    Consumer("arro3", "arro3", ARRO3, _values_of_arro3, _through_pyarrow),
    Consumer(
        "duckdb",
        "duckdb",
        _take_duckdb,
        lambda rows: [dict(zip("xy", row, strict=True)) for row in rows],
        kinds=RECORDS,
    ),
    Consumer(
        "torch",
        "torch",
        lambda x: ah.as_torch(x, allow_readonly=True),
        lambda t: [row.tolist() for row in t.unbind()],
        lambda t: t.values().data_ptr(),
    ),
    Consumer("numpy (copy)", "numpy", lambda x: ah.as_numpy(x, copy=True), _values_of_numpy),
]


def is_run(obj, consumer):
    """Return whether a conversion can be run. nanoarrow 0.9 corrupts memory if it exports views."""
    return consumer != "nanoarrow" or "view" not in str(ah.as_arrow(ah.asnested(obj), copy=None, device="cpu").type)


class Refusal(NamedTuple):
    """Arrays that a consumer rejects, with the error and the reason. The first matching row applies."""

    consumers: tuple
    kinds: tuple
    producers: tuple
    error: type
    message: str
    reason: str


ALL = None  # stands for every consumer, kind or producer

_NOT_JAGGED = tuple(name for name in KINDS if name not in JAGGED)
_MISSING = ("missing numbers", "truth values", "missing lists")
REFUSALS = [
    Refusal(
        ("to_list",), ALL, ("USM, device",), BufferError, r"to_host\(",
        "the host cannot read device USM",
    ),
    Refusal(
        ("awkward",), ALL, ("USM, device",), BufferError, r"cannot read.*(device='cpu'|copy=True)",
        "the host cannot read device USM",
    ),
    Refusal(
        ("pyarrow", "pandas", "polars"), ALL, ("USM, device",), BufferError, r"cannot read.*(device='cpu'|copy=True)",
        "pyarrow and polars do not support SYCL devices",
    ),
    Refusal(("arro3",), ALL, ("USM, device",), ValueError, "__arrow_c_array__", "arro3 does not support devices"),
    Refusal(
        ("duckdb",), ALL, ("USM, device",), Exception, "", "duckdb imports only streams of host memory"
    ),
    Refusal(
        ("torch",), JAGGED, ("USM, shared", "USM, device"), BufferError, "cannot read",
        "torch tensors cannot use memory of SYCL devices",
    ),
    Refusal(
        ("torch",), _NOT_JAGGED, ALL, BufferError,
        "the type is .*; accepted: n . var . number|cannot read|strings are not supported|the elements are categories",
        "jagged tensors of torch are lists of numbers without missing values",
    ),
    Refusal(
        ("numpy (copy)",), _MISSING, ALL, BufferError, "elements of x (is|are) missing",
        "NumPy does not have missing numbers",
    ),
    Refusal(
        ("numpy (copy)",), ("lists", "lists of lists", "lists of strings", "records with lists"), ALL, ValueError,
        "equal lengths", "NumPy does not have lists of different lengths",
    ),
    Refusal(
        ("numpy (copy)",), ("bytes", "categories"), ALL, BufferError,
        "the elements are byte strings|the elements are categories",
        "NumPy does not have categories or byte strings of variable length",
    ),
]  # fmt: skip

# Consumers and kinds for which the numbers or characters are copied, and the reason.
COPIES = {
    ("awkward", "truth values"): "awkward stores one byte per value",
    ("polars", "categories"): "polars uses its own categories",
}


def refusal_of(producer, kind, consumer):
    """Return the first row of REFUSALS that applies to a conversion, or None if the conversion must pass."""
    for row in REFUSALS:
        if (
            (row.consumers is ALL or consumer in row.consumers)
            and (row.kinds is ALL or kind in row.kinds)
            and (row.producers is ALL or producer in row.producers)
        ):
            return row
    return None
