"""Functions with which each library creates and imports arrays, for `arrayhub.testing`."""

import numpy as np


def make_numpy(array):
    return array


def read_numpy(obj):
    import numpy

    return numpy.from_dlpack(obj) if hasattr(obj, "__dlpack__") else numpy.asarray(obj)


def make_torch(array):
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("i2")).view(torch.bfloat16)
    return torch.from_numpy(array)


def read_torch(obj):
    import torch

    return torch.from_dlpack(obj) if hasattr(obj, "__dlpack__") else torch.as_tensor(obj)


def make_jax(array):
    import jax

    return jax.numpy.asarray(array)


def read_jax(obj):
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.from_dlpack(obj) if hasattr(obj, "__dlpack__") else jax.numpy.asarray(obj)


def make_dpnp(array):
    import dpnp

    made = dpnp.asarray(array, usm_type="shared", order="K")
    made.get_array().flags.writable = array.flags.writeable
    return made


def read_dpnp(obj):
    import dpnp

    return dpnp.from_dlpack(obj) if hasattr(obj, "__dlpack__") else dpnp.asarray(obj)


def make_pyarrow(array):
    import pyarrow

    return pyarrow.array(array) if array.ndim == 1 else pyarrow.Tensor.from_numpy(array)


def read_pyarrow(obj):
    import pyarrow

    return pyarrow.Tensor.from_dlpack(obj) if hasattr(obj, "__dlpack__") else pyarrow.Tensor.from_numpy(np.asarray(obj))


def make_tvm_ffi(array):
    import tvm_ffi

    return tvm_ffi.from_dlpack(array)


def read_tvm_ffi(obj):
    import tvm_ffi

    return tvm_ffi.from_dlpack(obj)


def make_array_api_strict(array):
    import array_api_strict

    return array_api_strict.asarray(array, copy=False)


def read_array_api_strict(obj):
    import array_api_strict

    return array_api_strict.from_dlpack(obj) if hasattr(obj, "__dlpack__") else array_api_strict.asarray(obj)
