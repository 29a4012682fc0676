"""A hub between array protocols: any foreign array in, one descriptor that every consumer understands out."""

from arrayhub import _clone, sycl_runtime

__path__[:] = _clone.compiled_path(__path__)
sycl_runtime.configure()  # before anybody imports dpctl, whose loader reads the environment once

from arrayhub._core.device import Device  # noqa: E402
from arrayhub._core.errors import InterfaceError  # noqa: E402
from arrayhub._core.include import get_include  # noqa: E402
from arrayhub.adapters.dimensions import get_dims, get_origin  # noqa: E402
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
from arrayhub.inspect.check import check  # noqa: E402
from arrayhub.storage import layouts  # noqa: E402
from arrayhub.storage.allocation import empty, zeros  # noqa: E402
from arrayhub.storage.creation import (  # noqa: E402
    empty_like,
    from_array,
    full,
    full_like,
    ones,
    ones_like,
    zeros_like,
)
from arrayhub.storage.layouts import layout_for  # noqa: E402
from arrayhub.storage.planning import Plan, plan  # noqa: E402
from arrayhub.usm_array import USMArray  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "Device",
    "InterfaceError",
    "Plan",
    "USMArray",
    "as_cupy",
    "as_dpnp",
    "as_jax",
    "as_numba",
    "as_numpy",
    "as_torch",
    "asarray",
    "check",
    "convert",
    "empty",
    "empty_like",
    "from_array",
    "from_dlpack",
    "full",
    "full_like",
    "get_dims",
    "get_include",
    "get_origin",
    "layout_for",
    "layouts",
    "ones",
    "ones_like",
    "plan",
    "to_device",
    "to_host",
    "zeros",
    "zeros_like",
]
