"""A hub between array protocols: any foreign array in, one descriptor that every consumer understands out."""

from arrayhub import _clone, sycl_runtime

__path__[:] = _clone.compiled_path(__path__)
sycl_runtime.configure()  # before anybody imports dpctl, whose loader reads the environment once

from arrayhub._core.device import Device  # noqa: E402
from arrayhub._core.errors import InterfaceError  # noqa: E402
from arrayhub._core.include import get_include  # noqa: E402
from arrayhub.conversion import (  # noqa: E402
    as_cupy,
    as_dpnp,
    as_jax,
    as_numba,
    as_numpy,
    as_torch,
    asarray,
    convert,
    from_dlpack,
    to_device,
    to_host,
)
from arrayhub.inspection.layout import layout  # noqa: E402
from arrayhub.usm_array import USMArray  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "Device",
    "InterfaceError",
    "USMArray",
    "as_cupy",
    "as_dpnp",
    "as_jax",
    "as_numba",
    "as_numpy",
    "as_torch",
    "asarray",
    "convert",
    "from_dlpack",
    "get_include",
    "layout",
    "to_device",
    "to_host",
]
