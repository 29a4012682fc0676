"""Exchange arrays between libraries without copies: import an array of any library, export it by any protocol.

Words: ``as`` with a container imports (`asarray`), ``as_`` with a library exports (`as_torch`), ``to_`` with a place
moves (`to_host`).

Import
    asarray(obj)            import an array of any library, without a copy, as a USMArray
    asnested(obj)           import lists, strings, missing values and records as a NestedArray
    assparse(obj)           import a sparse array of SciPy, torch, jax, CuPy, pydata/sparse and others as a SparseArray
    from_dlpack(obj)        import only through DLPack

Export
    as_numpy, as_torch, as_jax, as_cupy, as_dpnp, as_numba, as_arrow, as_polars, as_pandas, as_awkward, as_scipy
                            return an array of the named library that shares the memory
    convert(obj, "torch")   return an array of the library that the second argument names
    like(obj, model)        convert `obj` to the library, device and labels of the array `model`
    x.__dlpack__, x.__array_interface__, x.__cuda_array_interface__, x.__sycl_usm_array_interface__, memoryview(x)
                            protocols through which other libraries import a USMArray x

Other places
    to_host, to_device      return an array in host memory or on a device, with a copy if necessary

New arrays
    empty, zeros, ones, full, from_array
                            allocate host, CUDA or SYCL memory with a layout, an alignment, a halo and named dimensions
    USMArray(shape, dtype)  constructor of the USM array specification

For libraries that accept the arrays of others
    adapt(to)               decorate a function written for one library, so that it accepts arrays of any library
    placement(*objs)        select the library and the device for a function of several arrays
    Request                 conditions on an array argument, as in the C interface
    register_library        add support for another library
    get_include()           return the folder of the C headers

Description
    explain(obj)            explain which libraries can import an object, and why
    check(obj)              compare the descriptions that an object gives through its protocols
    debug_repr(obj)         describe type, metadata and memory block
    picture(obj)            draw the layout of an array in memory
    trace()                 list the lines of a program that import, export or copy arrays
    Device                  device of an array, such as Device("cuda:0")

Other processes
    ipc_handle(x)           return a handle by which another process of the machine opens the memory, without a copy

Modules, imported on first use
    storage                 layouts, plans and names of dimensions
    datashape               types as text: datashape.of(x), datashape.parse(text)
    transport               settings of pickles, dask and MPI
    testing                 checks of another library's arrays against the protocols' rules
    transfer                settings of copies between devices, and of the memory that copies keep for reuse
    sycl_runtime            detection of the SYCL CPU device

`USMArray` does not implement arithmetic. Convert it first, for example with `as_numpy(x)`. USM is SYCL's unified shared
memory. ``python -m arrayhub doctor`` reports what works on a machine.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if os.path.exists(os.path.join(__path__[0], "meson.build")):  # a source tree, which wheels do not contain
    from arrayhub import _clone

    _clone.find_compiled(__path__)

from arrayhub._core.descriptor import Device
from arrayhub._core.errors import InterfaceError, Refusal
from arrayhub.array.usm_array import USMArray
from arrayhub.capi import table as _table  # noqa: F401 (fills in the function table of the C interface)
from arrayhub.convert.functions import (
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

__version__ = "0.1.0"

if TYPE_CHECKING:
    from arrayhub import datashape as datashape
    from arrayhub import storage as storage
    from arrayhub import sycl_runtime as sycl_runtime
    from arrayhub import testing as testing
    from arrayhub import transfer as transfer
    from arrayhub import transport as transport
    from arrayhub.capi import get_include
    from arrayhub.capi.table import Request
    from arrayhub.convert.adapt import adapt
    from arrayhub.convert.like import like
    from arrayhub.convert.placement import placement
    from arrayhub.inspection.check import check
    from arrayhub.inspection.explain import explain
    from arrayhub.inspection.pictures.picture import picture
    from arrayhub.inspection.printout import debug_repr
    from arrayhub.inspection.tracing import trace
    from arrayhub.libraries.plugins import register_library
    from arrayhub.nested import NestedArray, as_arrow, as_awkward, as_pandas, as_polars
    from arrayhub.nested.asnested import asnested
    from arrayhub.sparse import SparseArray, as_scipy, assparse
    from arrayhub.storage import empty, from_array, full, ones, zeros
    from arrayhub.transport.ipc import ipc_handle

_MODULES = ("datashape", "storage", "testing", "transfer", "transport")  # imported on first use

# Other names whose modules are imported on first use, to keep `import arrayhub` fast.
_LAZY = {
    name: module
    for module, names in {
        "arrayhub.capi": ("get_include",),
        "arrayhub.capi.table": ("Request",),
        "arrayhub.convert.adapt": ("adapt",),
        "arrayhub.convert.like": ("like",),
        "arrayhub.convert.placement": ("placement",),
        "arrayhub.inspection.check": ("check",),
        "arrayhub.inspection.explain": ("explain",),
        "arrayhub.inspection.pictures.picture": ("picture",),
        "arrayhub.inspection.printout": ("debug_repr",),
        "arrayhub.inspection.tracing": ("trace",),
        "arrayhub.libraries.plugins": ("register_library",),
        "arrayhub.nested": ("NestedArray", "as_arrow", "as_awkward", "as_pandas", "as_polars", "asnested"),
        "arrayhub.nested.pickling": ("_unpickle_nested",),
        "arrayhub.sparse": ("SparseArray", "as_scipy", "assparse"),
        "arrayhub.sparse.methods": ("_unpickle_sparse",),
        "arrayhub.storage": ("empty", "from_array", "full", "ones", "zeros"),
        "arrayhub.transport.ipc": ("_ipc_handle", "ipc_handle"),
        "arrayhub.transport.pickles": ("_unpickle",),
    }.items()
    for name in names
}

# Names that users may expect, and the call that the AttributeError suggests instead.
_ELSEWHERE = {
    **dict.fromkeys(("as_array", "as_tensor", "asanyarray", "frombuffer", "ndarray", "tensor"), "arrayhub.asarray(x)"),
    **{f"{name}_like": f"arrayhub.{name}(like=x)" for name in ("empty", "ones", "zeros")},
    **dict.fromkeys(("asnumpy", "numpy"), "arrayhub.as_numpy(x)"),
    **dict.fromkeys(("as_list", "to_list", "tolist"), "arrayhub.asarray(x).tolist()"),
    **dict.fromkeys(("as_dataframe", "to_dataframe"), "arrayhub.as_pandas(x)"),
    **dict.fromkeys(("device", "get_device"), "arrayhub.asarray(x).device"),
    **dict.fromkeys(("is_array", "isarray"), "arrayhub.explain(x)"),
    "as_dask": "dask.array.from_array(arrayhub.as_numpy(x))",
    "as_tensorflow": "tensorflow.experimental.dlpack.from_dlpack(arrayhub.asarray(x).__dlpack__())",
    "as_xarray": "arrayhub.asarray(x).to_xarray()",
    "astype": "arrayhub.asarray(x, dtype=dtype)",
    "full_like": "arrayhub.full(fill_value=value, like=x)",
    "stack": "arrayhub.asarray(numpy.stack(list(map(arrayhub.as_numpy, arrays))))",
    "to": "arrayhub.to_device(x, device)",
    "view": "arrayhub.asarray(x).view(dtype)",
}

__all__ = [
    "Device",
    "InterfaceError",
    "NestedArray",
    "Refusal",
    "Request",
    "SparseArray",
    "USMArray",
    "adapt",
    "as_arrow",
    "as_awkward",
    "as_cupy",
    "as_dpnp",
    "as_jax",
    "as_numba",
    "as_numpy",
    "as_pandas",
    "as_polars",
    "as_scipy",
    "as_torch",
    "asarray",
    "asnested",
    "assparse",
    "check",
    "convert",
    "debug_repr",
    "empty",
    "explain",
    "from_array",
    "from_dlpack",
    "full",
    "get_include",
    "ipc_handle",
    "like",
    "ones",
    "picture",
    "placement",
    "register_library",
    "to_device",
    "to_host",
    "trace",
    "zeros",
]


if not TYPE_CHECKING:  # a module-level __getattr__ makes type checkers accept any name

    def __getattr__(name):
        if name in _MODULES:
            return import_module(f"arrayhub.{name}")
        if name not in _LAZY:
            direction, _, library = name.partition("_")
            call = {"from": "arrayhub.asarray(x)", "to": f"arrayhub.as_{library}(x)"}.get(direction)
            instead = _ELSEWHERE.get(name, call if f"as_{library}" in __all__ else None)
            advice = f"; use {instead}" if instead else ""
            raise AttributeError(f"module 'arrayhub' has no attribute {name!r}{advice}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value

    def __dir__():
        names = {name for name in globals() if name.startswith("__")}
        return sorted(names | {*__all__, *_MODULES, "sycl_runtime"})
