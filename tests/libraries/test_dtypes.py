"""``dtype=`` accepts element types of torch, JAX, pyarrow, polars and pandas, and DLPack's data types."""

import ml_dtypes
import numpy as np
import pytest

import arrayhub as ah

NUMBERS = ["float32", "float64", "int8", "int64", "uint8", "complex64", "float16"]


class Element:
    """A data type of a library that describes it to DLPack."""

    def __init__(self, *code):
        self.code = code

    def __dlpack_data_type__(self):
        return self.code


# For each library: functions of its module that return pairs of a type and the equal type of NumPy.
TYPES = {
    "torch": lambda torch: [
        *((getattr(torch, name), name) for name in [*NUMBERS, "bool"]),
        *((getattr(torch, name), getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn")),
    ],
    "jax": lambda jax: [
        (jax.numpy.float32, "f4"), (jax.numpy.bfloat16, ml_dtypes.bfloat16), (jax.numpy.zeros(1, "int16").dtype, "i2"),
    ],
    "pyarrow": lambda pa: [
        *((getattr(pa, name)(), name) for name in ("int8", "uint64", "float16", "float32", "float64")),
        (pa.bool_(), "?"), (pa.date32(), "M8[D]"), (pa.timestamp("us"), "M8[us]"), (pa.duration("ms"), "m8[ms]"),
    ],
    "polars": lambda pl: [
        *((cls, name) for cls, name in ((pl.Float32, "f4"), (pl.Int8, "i1"), (pl.UInt64, "u8"), (pl.Boolean, "?"))),
        (pl.Float32(), "f4"), (pl.Boolean(), "?"),
        (pl.Date, "M8[D]"), (pl.Datetime("ms"), "M8[ms]"), (pl.Duration("ns"), "m8[ns]"),
    ],
    "pandas": lambda pd: [(pd.Int64Dtype(), "i8"), (pd.Series([1.0], dtype="Float32").dtype, "f4")],
    "arrayhub": lambda ah: [(Element(2, 32, 1), "f4"), (Element(0, 16, 1), "i2")],
}  # fmt: skip


@pytest.mark.parametrize("library", TYPES)
def test_types_of_libraries_are_accepted(library):
    for dtype, expected in TYPES[library](pytest.importorskip(library)):
        x = np.zeros(2, {"M": "M8[s]", "m": "m8[s]"}.get(np.dtype(expected).kind))
        assert ah.asarray(x, dtype=dtype).dtype == expected
        assert ah.zeros(2, dtype=dtype).dtype == expected
        assert ah.asarray(x).astype(dtype).dtype == expected
        assert ah.asarray(x).to_numpy(dtype=dtype).dtype == expected


REJECTED = {
    "torch": lambda torch: [torch.Tensor],
    "pyarrow": lambda pa: [pa.string(), pa.list_(pa.int8()), pa.timestamp("us", "UTC")],
    "polars": lambda pl: [pl.String, pl.List(pl.Int8)],
    "arrayhub": lambda ah: [Element(2, 32, 4), Element(99, 8, 1)],
}


@pytest.mark.parametrize("library", REJECTED)
def test_types_without_a_fixed_size_or_of_unknown_codes_are_rejected(library):
    for dtype in REJECTED[library](pytest.importorskip(library)):
        with pytest.raises(TypeError, match="is not a data type" if library == "arrayhub" else None):
            ah.zeros(2, dtype=dtype)
