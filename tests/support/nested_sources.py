"""Nested data of several libraries: `SOURCES` has a function that creates each object, by name.

The first word of a name is the library: pa, pl, pd, ak, np, torch, duckdb, or list for Python's lists.
"""

import datetime
import decimal

import awkward as ak
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch

D = decimal.Decimal

SOURCES = {
    "pa strings": lambda: pa.array(["a", "b"]),
    "pa strings missing": lambda: pa.array(["a", None]),
    "pa large strings": lambda: pa.array(["a", "b"], pa.large_string()),
    "pa string views": lambda: pa.array(["a", "b"], pa.string_view()),
    "pa binary": lambda: pa.array([b"a", b"b"]),
    "pa fixed binary": lambda: pa.array([b"ab", b"cd"], pa.binary(2)),
    "pa lists": lambda: pa.array([[1.0], [2.0, 3.0]]),
    "pa equal lists": lambda: pa.array([[1.0, 4.0], [2.0, 3.0]]),
    "pa lists missing": lambda: pa.array([[1.0], None]),
    "pa lists missing inside": lambda: pa.array([[1.0, None], [2.0]]),
    "pa list views": lambda: pa.array([[1.0], [2.0, 3.0]], pa.list_view(pa.float64())),
    "pa lists of strings": lambda: pa.array([["a"], ["b", "c"]]),
    "pa fixed lists": lambda: pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)),
    "pa fixed lists missing": lambda: pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2)),
    "pa ints missing": lambda: pa.array([1, None]),
    "pa floats missing": lambda: pa.array([1.0, None]),
    "pa bools": lambda: pa.array([True, False]),
    "pa bools missing": lambda: pa.array([True, None]),
    "pa records": lambda: pa.array([{"a": 1, "b": 2.0}]),
    "pa records missing": lambda: pa.array([{"a": 1, "b": 2.0}, None]),
    "pa records field missing": lambda: pa.array([{"a": 1, "b": None}, {"a": 1, "b": 2.0}]),
    "pa records strings": lambda: pa.array([{"a": 1, "b": "x"}]),
    "pa batch": lambda: pa.record_batch({"a": [1], "b": [2.0]}),
    "pa table": lambda: pa.table({"a": [1], "b": [2.0]}),
    "pa table strings": lambda: pa.table({"a": [1], "b": ["x"]}),
    "pa table chunks": lambda: pa.concat_tables([pa.table({"a": [1], "b": [2.0]})] * 2),
    "pa chunked ints": lambda: pa.chunked_array([[1], [2]]),
    "pa chunked ints missing": lambda: pa.chunked_array([[1], [None, 2]]),
    "pa chunked lists": lambda: pa.chunked_array([[[1]], [[2, 3]]]),
    "pa chunked strings": lambda: pa.chunked_array([["a"], ["b"]]),
    "pa dense union": lambda: pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    ),
    "pa sparse union": lambda: pa.UnionArray.from_sparse(
        pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
    "pa union of numbers": lambda: pa.UnionArray.from_sparse(
        pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array([1.0, 2.0])]
    ),
    "pa decimal": lambda: pa.array([D("1.5"), D("2.25")]),
    "pa decimal missing": lambda: pa.array([D("1.5"), None]),
    "pa interval": lambda: pa.array([pa.MonthDayNano([1, 2, 3])]),
    "pa run_end": lambda: pa.RunEndEncodedArray.from_arrays([2, 3], [1.0, 2.0]),
    "pa run_end strings": lambda: pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
    "pa dictionary": lambda: pa.array(["a", "b", "a"]).dictionary_encode(),
    "pa dictionary missing": lambda: pa.array(["a", None, "a"]).dictionary_encode(),
    "pa dictionary numbers": lambda: pa.array([5, 7, 5]).dictionary_encode(),
    "pa null": lambda: pa.nulls(2),
    "pa date32": lambda: pa.array([datetime.date(2020, 1, 1)]),
    "pa time": lambda: pa.array([datetime.time(1)]),
    "pa timestamp": lambda: pa.array([datetime.datetime(2020, 1, 1)]),
    "pa timestamp zone": lambda: pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us", "UTC")),
    "pa timestamp missing": lambda: pa.array([datetime.datetime(2020, 1, 1), None]),
    "pa uuid": lambda: pa.array([b"0" * 16], pa.uuid()),
    "pa json": lambda: pa.array(["{}"], pa.json_()),
    "pa bool8": lambda: pa.array([True, False]).cast(pa.bool8()),
    "pa tensor": lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6.0).reshape(3, 2)),
    "pa tensor missing": lambda: pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float64(), [2]), pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2))
    ),
    "pa map": lambda: pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "pa float16 missing": lambda: pa.array([1.0, None], pa.float16()),
    "pl strings": lambda: pl.Series("s", ["a", "b"]),
    "pl ints missing": lambda: pl.Series([1, None]),
    "pl lists": lambda: pl.Series([[1], [2, 3]]),
    "pl array": lambda: pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float64, 2)),
    "pl bools": lambda: pl.Series([True, False]),
    "pl bools missing": lambda: pl.Series([True, None]),
    "pl struct": lambda: pl.Series([{"a": 1}]),
    "pl frame": lambda: pl.DataFrame({"a": [1], "b": [2.0]}),
    "pl frame bools": lambda: pl.DataFrame({"a": [True], "b": [False]}),
    "pl frame missing": lambda: pl.DataFrame({"a": [1, None], "b": [2.0, 3.0]}),
    "pl frame strings": lambda: pl.DataFrame({"a": [1], "b": ["x"]}),
    "pl categorical": lambda: pl.Series(["a", "b"], dtype=pl.Categorical),
    "pl enum": lambda: pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
    "pl date": lambda: pl.Series([datetime.date(2020, 1, 1)]),
    "pl chunked": lambda: pl.concat([pl.Series([1]), pl.Series([2])], rechunk=False),
    "pl decimal": lambda: pl.Series([D("1.5")]),
    "pl null": lambda: pl.Series([None, None]),
    "pl lazy": lambda: pl.LazyFrame({"a": [1]}),
    "pd strings": lambda: pd.Series(["a", "b"]),
    "pd strings missing": lambda: pd.Series(["a", None]),
    "pd Int64": lambda: pd.Series([1, 2], dtype="Int64"),
    "pd Int64 missing": lambda: pd.Series([1, None], dtype="Int64"),
    "pd boolean missing": lambda: pd.Series([True, None], dtype="boolean"),
    "pd arrow ints": lambda: pd.Series([1, 2], dtype="int64[pyarrow]"),
    "pd arrow ints missing": lambda: pd.Series([1, None], dtype="int64[pyarrow]"),
    "pd arrow lists": lambda: pd.Series([[1], [2, 3]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "pd object lists": lambda: pd.Series([[1], [2, 3]]),
    "pd categorical": lambda: pd.Series(["a", "b"]).astype("category"),
    "pd frame": lambda: pd.DataFrame({"a": [1], "b": [2.0]}),
    "pd frame one dtype": lambda: pd.DataFrame({"a": [1.0], "b": [2.0]}),
    "pd frame strings": lambda: pd.DataFrame({"a": [1], "b": ["x"]}),
    "pd frame missing": lambda: pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [2.0, 3.0]}),
    "pd datetime": lambda: pd.Series(pd.to_datetime(["2020-01-01"])),
    "pd datetime zone": lambda: pd.Series(pd.to_datetime(["2020-01-01"])).dt.tz_localize("UTC"),
    "pd period": lambda: pd.Series(pd.period_range("2020", periods=2, freq="D")),
    "pd interval": lambda: pd.Series(pd.interval_range(0, 2)),
    "pd sparse": lambda: pd.Series(pd.arrays.SparseArray([0, 1, 0])),
    "ak lists": lambda: ak.Array([[1.0], [2.0, 3.0]]),
    "ak lists missing": lambda: ak.Array([[1.0], None]),
    "ak ints missing": lambda: ak.Array([1, None]),
    "ak strings": lambda: ak.Array(["a", "b"]),
    "ak records": lambda: ak.Array([{"a": 1, "b": 2.0}]),
    "ak lists of records": lambda: ak.Array([[{"a": 1, "b": 2.0}], []]),
    "ak union": lambda: ak.Array([1, "a"]),
    "ak regular": lambda: ak.to_regular(ak.Array([[1.0, 2.0], [3.0, 4.0]])),
    "duckdb relation": lambda: duckdb.sql("select 1 as a, 2.5 as b"),
    "duckdb relation lists": lambda: duckdb.sql("select [1,2] as a"),
    "pa reader": lambda: pa.RecordBatchReader.from_batches(
        pa.schema([("a", pa.int64())]), [pa.record_batch({"a": [1]})]
    ),
    "list lists": lambda: [[1.0], [2.0, 3.0]],
    "list lists missing": lambda: [[1.0], None],
    "list missing": lambda: [1, None],
    "list floats missing": lambda: [1.0, None],
    "list strings": lambda: ["a", "b"],
    "list strings missing": lambda: ["a", None],
    "list records": lambda: [{"a": 1, "b": 2.0}],
    "list records strings": lambda: [{"a": 1, "b": "x"}],
    "list bytes": lambda: [b"a"],
    "list equal lists missing": lambda: [[1.0, None], [2.0, 3.0]],
    "list times": lambda: [datetime.date(2020, 1, 1)],
    "np strings": lambda: np.array(["a", "b"]),
    "np StringDType": lambda: np.array(["a", "b"], np.dtypes.StringDType()),
    "np records": lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]),
    "np masked": lambda: np.ma.MaskedArray([1, 2], [False, True]),
    "np objects": lambda: np.array(["a", None], object),
    "torch jagged": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged),
}
