"""Test types of ml_dtypes in cases that the matrix does not contain, such as copies and jax arrays in torch."""

import jax
import ml_dtypes
import numpy as np
import pytest
import torch
from dlpack_by_hand import tensor_of

import arrayhub as ah

pytestmark = pytest.mark.slow

SHARED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
OTHERS = [
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4",
    "uint4",
]  # fmt: skip
OTHERS += ["float8_e5m3fnu"] if hasattr(ml_dtypes, "float8_e5m3fnu") else []  # ml_dtypes 0.7, without a code of DLPack
VALUES = [[1, 2, 4], [0.5, 1, 2]]
VIEWS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[:, ::2],
    lambda x: x[1],
    lambda x: x[1:2, 2:].reshape(()),
    lambda x: x[:0],
]


@pytest.mark.parametrize("name", [*SHARED, *OTHERS])
@pytest.mark.parametrize("view", VIEWS)
def test_copies_keep_the_values(name, view):
    x = view(np.array(VALUES, "f4").astype(getattr(ml_dtypes, name)))
    copies = [ah.as_numpy(x, copy=True)]
    if name in SHARED:
        copies += [np.asarray(ah.as_jax(x, copy=True)), ah.as_torch(x, copy=True).to(torch.float32).numpy()]
    for copied in copies:
        assert np.array_equal(copied.astype("f4"), x.astype("f4"))


def test_bcomplex32_is_exported_through_dlpack():
    """ml_dtypes' bcomplex32 is exported as DLPack's kDLBcomplex, code 18 (dmlc/dlpack#187)."""
    if not hasattr(ml_dtypes, "bcomplex32"):
        pytest.skip("this version of ml_dtypes does not define bcomplex32")
    values = np.array([1 + 2j, -3.5j]).astype(ml_dtypes.bcomplex32)
    x = ah.asarray(values)
    capsule = x.__dlpack__(max_version=(1, 3))
    kind = tensor_of(capsule).dl_tensor.dtype
    assert (kind.code, kind.bits, kind.lanes) == (18, 32, 1)
    back = ah.from_dlpack(capsule)
    assert (back.dtype, back.ptr) == (values.dtype, values.ctypes.data)
    assert ah.as_numpy(back).astype("c8").tolist() == [1 + 2j, -3.5j]
    assert np.asarray(x).dtype == values.dtype and x.copy().dtype == values.dtype
    assert ah.datashape.of(x) == "2 * complex[bfloat16]"


@pytest.mark.parametrize("name", SHARED)
def test_torch_views_jax_arrays(name):
    x = jax.device_put(np.array(VALUES, name), jax.devices("cpu")[0])
    a, at = ah.asarray(x), x.unsafe_buffer_pointer()
    assert (a.shape, a.dtype, a.access, a.protocol, a.ptr) == ((2, 3), np.dtype(name), "immutable", "dlpack", at)
    with pytest.raises(BufferError, match="allow_readonly=True"):
        ah.as_torch(x)
    tensor = ah.as_torch(x, allow_readonly=True)
    assert (tensor.dtype, tensor.data_ptr()) == (getattr(torch, name), at)
    for taken in (tensor, ah.as_torch(x, copy=True)):
        assert np.array_equal(taken.to(torch.float32).numpy(), np.array(VALUES, "f4"))
