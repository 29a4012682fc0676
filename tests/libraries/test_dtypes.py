"""``dtype=`` accepts element types of torch, JAX, pyarrow, polars and pandas, and DLPack's data types."""

import numpy as np
import pytest

import arrayhub as ah


def libraries(*names):
    return [pytest.importorskip(name) for name in names]


def check(dtype, expected):
    x = np.zeros(2, "M8[s]") if np.dtype(expected).kind == "M" else np.zeros(2)
    if np.dtype(expected).kind == "m":
        x = np.zeros(2, "m8[s]")
    assert ah.asarray(x, dtype=dtype).dtype == expected
    assert ah.zeros(2, dtype=dtype).dtype == expected
    assert ah.asarray(x).astype(dtype).dtype == expected
    assert ah.asarray(x).to_numpy(dtype=dtype).dtype == expected


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "int64", "uint8", "bool", "complex64", "float16"])
def test_torch_dtypes_are_accepted(name):
    (torch,) = libraries("torch")
    check(getattr(torch, name), name)


def test_torch_dtypes_of_ml_dtypes_are_accepted():
    torch, ml_dtypes = libraries("torch", "ml_dtypes")
    check(torch.bfloat16, ml_dtypes.bfloat16)
    check(torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn)


def test_jax_dtypes_are_accepted():
    jax, ml_dtypes = libraries("jax", "ml_dtypes")
    check(jax.numpy.float32, "f4")
    check(jax.numpy.bfloat16, ml_dtypes.bfloat16)
    check(jax.numpy.zeros(1, "int16").dtype, "i2")


def test_pyarrow_types_are_accepted():
    (pa,) = libraries("pyarrow")
    for name in ("int8", "uint64", "float16", "float32", "float64"):
        check(getattr(pa, name)(), name)
    check(pa.bool_(), "?")
    check(pa.date32(), "M8[D]")
    check(pa.timestamp("us"), "M8[us]")
    check(pa.duration("ms"), "m8[ms]")


def test_polars_types_are_accepted():
    (pl,) = libraries("polars")
    for cls, name in ((pl.Float32, "f4"), (pl.Int8, "i1"), (pl.UInt64, "u8"), (pl.Boolean, "?")):
        check(cls, name)
        check(cls(), name)
    check(pl.Date, "M8[D]")
    check(pl.Datetime("ms"), "M8[ms]")
    check(pl.Duration("ns"), "m8[ns]")


def test_pandas_dtypes_are_accepted():
    (pd,) = libraries("pandas")
    check(pd.Int64Dtype(), "i8")
    check(pd.Series([1.0], dtype="Float32").dtype, "f4")


def test_objects_with_dlpack_data_type_are_accepted():
    class Element:
        def __init__(self, *code):
            self.code = code

        def __dlpack_data_type__(self):
            return self.code

    check(Element(2, 32, 1), "f4")
    check(Element(0, 16, 1), "i2")
    for code in ((2, 32, 4), (99, 8, 1)):
        with pytest.raises(TypeError, match="is not a data type"):
            ah.asarray(np.zeros(2), dtype=Element(*code))


def test_types_without_a_fixed_size_are_rejected():
    pa, pl, torch = libraries("pyarrow", "polars", "torch")
    for dtype in (
        pa.string(),
        pa.list_(pa.int8()),
        pa.timestamp("us", "UTC"),
        pl.String,
        pl.List(pl.Int8),
        torch.Tensor,
    ):
        with pytest.raises(TypeError):
            ah.asarray(np.zeros(2), dtype=dtype)
