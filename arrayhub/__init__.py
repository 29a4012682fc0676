"""A hub between array protocols: any foreign array in, one descriptor that every consumer understands out."""

from importlib import import_module
from typing import TYPE_CHECKING

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
from arrayhub.inspection import enter_layout  # noqa: E402
from arrayhub.usm_array import USMArray  # noqa: E402

__version__ = "0.1.0"

enter_layout()  # which gives USMArray its pictures, a layer above it

if TYPE_CHECKING:
    from arrayhub.inspection.check import check
    from arrayhub.inspection.datashape import Type, parse_type, typestr
    from arrayhub.inspection.explain import explain
    from arrayhub.inspection.layout import layout
    from arrayhub.inspection.printout import debug_repr, inspect
    from arrayhub.storage import (
        Plan,
        empty,
        empty_like,
        from_array,
        full,
        full_like,
        layout_for,
        layouts,
        ones,
        ones_like,
        plan,
        zeros,
        zeros_like,
    )

# Public names whose modules are imported when they are first asked for: who only passes arrays on has no need of them.
_LAZY = {
    name: module
    for module, names in {
        "arrayhub.inspection.check": ("check",),
        "arrayhub.inspection.datashape": ("Type", "parse_type", "typestr"),
        "arrayhub.inspection.explain": ("explain",),
        "arrayhub.inspection.layout": ("layout",),
        "arrayhub.inspection.printout": ("debug_repr", "inspect"),
        "arrayhub.storage": (
            *("Plan", "plan", "layout_for", "layouts", "from_array"),
            *("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like"),
        ),
    }.items()
    for name in names
}

__all__ = [
    "Device",
    "InterfaceError",
    "Plan",
    "Type",
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
    "debug_repr",
    "empty",
    "empty_like",
    "explain",
    "from_array",
    "from_dlpack",
    "full",
    "full_like",
    "get_dims",
    "get_include",
    "get_origin",
    "inspect",
    "layout",
    "layout_for",
    "layouts",
    "ones",
    "ones_like",
    "parse_type",
    "plan",
    "to_device",
    "to_host",
    "typestr",
    "zeros",
    "zeros_like",
]


if not TYPE_CHECKING:  # which would then take any name for one of arrayhub's

    def __getattr__(name):
        if name not in _LAZY:
            raise AttributeError(f"module 'arrayhub' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
