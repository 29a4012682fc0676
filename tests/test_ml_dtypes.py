"""bfloat16, float8 and their like between numpy (ml_dtypes), torch and jax, without a copy."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

import arrayhub as ah

SHARED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
OTHERS = [
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4",
    "uint4",
]  # fmt: skip
VALUES = [[1, 2, 4], [0.5, 1, 2]]


def aligned(dtype):
    """A NumPy array on a 64-byte boundary, from which jax takes memory without a copy."""
    a = ah.USMArray((2, 3), dtype, buffer="cpu")
    out = np.asarray(a)
    out[...] = np.array(VALUES, "f4").astype(dtype)
    return out


@pytest.mark.parametrize("name", SHARED)
def test_numpy_to_torch_and_back(name):
    x = aligned(getattr(ml_dtypes, name))
    tensor = ah.as_torch(x)
    assert (tensor.dtype, tensor.data_ptr()) == (getattr(torch, name), x.ctypes.data)
    assert np.array_equal(tensor.to(torch.float32).numpy(), x.astype("f4"))
    back = ah.as_numpy(tensor)
    assert (back.dtype, back.ctypes.data) == (x.dtype, x.ctypes.data)
    back[0, 0] = 0.25
    assert float(x[0, 0]) == float(tensor[0, 0]) == 0.25


@pytest.mark.parametrize("name", SHARED)
def test_numpy_to_jax_and_out_again(name):
    x = aligned(getattr(ml_dtypes, name))
    out = ah.as_jax(x)
    assert (out.dtype, out.unsafe_buffer_pointer()) == (x.dtype, x.ctypes.data)
    back, a = ah.as_numpy(out), ah.asarray(out)
    assert (back.dtype, back.ctypes.data, back.flags.writeable) == (x.dtype, x.ctypes.data, False)
    assert (a.access, a.protocol) == ("immutable", "dlpack")
    with pytest.raises(BufferError, match="allow_readonly=True"):
        ah.as_torch(out)
    tensor = ah.as_torch(out, allow_readonly=True)
    assert (tensor.dtype, tensor.data_ptr()) == (getattr(torch, name), x.ctypes.data)
    assert np.array_equal(tensor.to(torch.float32).numpy(), np.array(VALUES, "f4").astype(x.dtype).astype("f4"))


@pytest.mark.parametrize("name", SHARED)
def test_torch_to_jax(name):
    memory = aligned(getattr(ml_dtypes, name))
    tensor = ah.as_torch(memory)
    out = ah.as_jax(tensor)
    assert out.unsafe_buffer_pointer() == tensor.data_ptr()
    assert np.array_equal(np.asarray(out).astype("f4"), tensor.to(torch.float32).numpy())


@pytest.mark.parametrize("name", [*SHARED, *OTHERS])
def test_numpy_to_numpy(name):
    x = aligned(getattr(ml_dtypes, name))
    for a in (ah.asarray(x), ah.asarray(x)[:, ::-1]):
        out = np.asarray(a)
        assert out.dtype == x.dtype
        assert out.ctypes.data == a.ptr
    assert ah.as_numpy(x).ctypes.data == x.ctypes.data
    assert np.array_equal(ah.as_numpy(x, copy=True).astype("f4"), x.astype("f4"))


@pytest.mark.parametrize("name", ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float6_e2m3fn", "int4"])
def test_types_that_torch_lacks(name):
    with pytest.raises(BufferError, match="torch"):
        ah.as_torch(np.zeros(3, getattr(ml_dtypes, name)))


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[:, ::2], lambda x: x[1], lambda x: x[1:2, 2:].reshape(()), lambda x: x[:0]]
)
def test_layouts_of_bfloat16(view):
    x = view(aligned(ml_dtypes.bfloat16))
    tensor = ah.as_torch(x)
    assert np.array_equal(tensor.to(torch.float32).numpy(), x.astype("f4"))
    if x.size:
        assert tensor.data_ptr() == x.ctypes.data
    assert np.array_equal(np.asarray(ah.as_jax(x, copy=True)).astype("f4"), x.astype("f4"))


def test_jax_arrays_of_their_own():
    x = jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3)
    a = ah.asarray(x)
    assert (a.shape, a.dtype, a.access, a.ptr) == (
        (2, 3),
        np.dtype(ml_dtypes.bfloat16),
        "immutable",
        x.unsafe_buffer_pointer(),
    )
    assert ah.as_torch(x, allow_readonly=True).data_ptr() == x.unsafe_buffer_pointer()
    assert ah.as_torch(x, copy=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.asarray(a).dtype == a.dtype
