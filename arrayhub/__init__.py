"""A hub between array protocols: any foreign array in, one descriptor that every consumer understands out.

In
    asarray(obj)            any array of any library, without a copy, as a USMArray
    from_dlpack(obj)        the same by DLPack alone
    asarray(obj, device=d)  there; also to_device(obj, d), to_host(obj): the explicit copies

Out
    as_numpy, as_torch, as_jax, as_cupy, as_dpnp, as_numba
                            an array of that library on the same memory; convert(obj, "torch") says it by name
    x.__dlpack__, x.__array_interface__, x.__cuda_array_interface__, x.__sycl_usm_array_interface__, memoryview(x)
                            what consumers ask a USMArray x themselves

New arrays
    empty, zeros, ones, full, from_array and their _like
                            over host, CUDA or SYCL memory, with layout, alignment, halo and named dimensions;
                            plan says where the elements would lie, layout_for which order a backend wants,
                            layouts.register what a further backend wants
    USMArray(shape, dtype)  the specification's own constructor

Questions
    explain(obj)            why it can or cannot reach a library
    trace()                 which lines of a program hand arrays over, copy and wait
    check(obj)              where its several interfaces disagree
    inspect, debug_repr, picture, datashape
                            an array taken apart, drawn, and its type in words, which parse_type reads
    Device, get_dims, get_origin

Not dense
    asnested(obj)           lists, strings, missing values and records, as a NestedArray; out by
    as_arrow, as_polars, as_pandas, as_awkward

Beyond Python and one process
    get_include()           the struct of an array for C, C++ and Cython
    pickling, as_mpi        what becomes of a device's memory in a pickle; any layout as one MPI message
    register_library        add a library that arrayhub does not know
    register_dask           arrays in dask by the way that NumPy's have
    transfer, sycl_runtime  settings of the copies and the memory that they keep; how the SYCL CPU device is found

An array computes nothing: take as_numpy(x), or another library's array, to do so. USM is SYCL's unified shared memory.
``python -m arrayhub doctor`` says what works on this machine.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from arrayhub import _clone, sycl_runtime

__path__[:] = _clone.compiled_path(__path__)
sycl_runtime.configure()  # before anybody imports dpctl, whose loader reads the environment once
_clone.check_compiled()

from arrayhub._core.device import Device  # noqa: E402
from arrayhub._core.errors import InterfaceError  # noqa: E402
from arrayhub._core.include import get_include  # noqa: E402
from arrayhub.adapters.dimensions import get_dims, get_origin  # noqa: E402
from arrayhub.array.usm_array import USMArray  # noqa: E402
from arrayhub.capi import table as _table  # noqa: E402, F401 (fills in the functions that C code calls)
from arrayhub.convert.functions import (  # noqa: E402
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
from arrayhub.transport import join_loaded_dask  # noqa: E402

__version__ = "0.1.0"

join_loaded_dask()

if TYPE_CHECKING:
    from arrayhub.capi.python_request import Request
    from arrayhub.inspection.check import check
    from arrayhub.inspection.datashape.parser import parse_type
    from arrayhub.inspection.datashape.types import Type, datashape
    from arrayhub.inspection.explain import explain
    from arrayhub.inspection.pictures.picture import picture
    from arrayhub.inspection.printout import debug_repr, inspect
    from arrayhub.inspection.tracing import trace
    from arrayhub.libraries.plugins import register_library
    from arrayhub.nested import NestedArray, as_arrow, as_awkward, as_pandas, as_polars, asnested
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
    from arrayhub.transport.dask import register_dask
    from arrayhub.transport.mpi import as_mpi
    from arrayhub.transport.pickling import _unpickle as _unpickle
    from arrayhub.transport.policy import pickling

# Public names whose modules are imported when they are first asked for: who only passes arrays on has no need of them.
_LAZY = {
    name: module
    for module, names in {
        "arrayhub.capi.python_request": ("Request",),
        "arrayhub.transport.dask": ("register_dask",),
        "arrayhub.transport.mpi": ("as_mpi",),
        "arrayhub.transport.pickling": ("_unpickle",),
        "arrayhub.transport.policy": ("pickling",),
        "arrayhub.transport.deferred_error": ("_refused",),
        "arrayhub.inspection.check": ("check",),
        "arrayhub.inspection.datashape.types": ("Type", "datashape"),
        "arrayhub.inspection.datashape.parser": ("parse_type",),
        "arrayhub.inspection.explain": ("explain",),
        "arrayhub.inspection.pictures.picture": ("picture",),
        "arrayhub.inspection.printout": ("debug_repr", "inspect"),
        "arrayhub.inspection.tracing": ("trace",),
        "arrayhub.libraries.plugins": ("register_library",),
        "arrayhub.nested": ("NestedArray", "as_arrow", "as_awkward", "as_pandas", "as_polars", "asnested"),
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
    "NestedArray",
    "Plan",
    "Request",
    "Type",
    "USMArray",
    "as_arrow",
    "as_awkward",
    "as_cupy",
    "as_dpnp",
    "as_jax",
    "as_mpi",
    "as_numba",
    "as_numpy",
    "as_pandas",
    "as_polars",
    "as_torch",
    "asarray",
    "asnested",
    "check",
    "convert",
    "datashape",
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
    "layout_for",
    "layouts",
    "ones",
    "ones_like",
    "parse_type",
    "pickling",
    "picture",
    "plan",
    "register_dask",
    "register_library",
    "to_device",
    "to_host",
    "trace",
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
        return sorted({name for name in globals() if name.startswith("__")} | {*__all__, "sycl_runtime", "transfer"})
