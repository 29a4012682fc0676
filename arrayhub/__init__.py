"""Exchange arrays between libraries without copies: import an array of any library, export it by any protocol.

Import
    asarray(obj)            import an array of any library, without a copy, as a USMArray
    from_dlpack(obj)        import only through DLPack
    to_host, to_device      return an array in host memory or on a device, with a copy if necessary

Export
    as_numpy, as_torch, as_jax, as_cupy, as_dpnp, as_numba
                            return an array of the named library that shares the memory
    convert(obj, "torch")   return an array of the library that the second argument names
    like(obj, model)        convert `obj` to the library, device and labels of the array `model`
    adapt(to)               decorate a function written for one library, so that it accepts arrays of any library
    placement(*objs)        select the library and the device for a function of several arrays
    x.__dlpack__, x.__array_interface__, x.__cuda_array_interface__, x.__sycl_usm_array_interface__, memoryview(x)
                            protocols through which other libraries import a USMArray x

New arrays
    empty, zeros, ones, full, from_array, empty_like, zeros_like, ones_like, full_like
                            allocate host, CUDA or SYCL memory with a layout, an alignment, a halo and named dimensions
    plan                    compute a layout without allocating memory
    layout_for              return the layout that a backend prefers
    layouts.register        register the layout of a backend
    USMArray(shape, dtype)  constructor of the USM array specification

Description
    explain(obj)            explain which libraries can import an object, and why
    trace()                 list the lines of a program that import, export, copy or wait for arrays
    check(obj)              compare the descriptions that an object gives through its protocols
    inspect, debug_repr     describe the metadata of an array
    picture                 draw the layout of an array in memory
    datashape, parse_type   format and parse the type of an array
    get_dims, get_origin    return the dimension names and the origin of an array of any library
    Device                  device of an array, such as Device("cuda:0")

Nested data
    asnested(obj)           import lists, strings, missing values and records as a NestedArray
    as_arrow, as_polars, as_pandas, as_awkward
                            export a NestedArray

Sparse data
    assparse(obj)           import a sparse array of SciPy, torch, jax, CuPy, pydata/sparse and others as a SparseArray
    as_scipy, as_pydata_sparse
                            export a SparseArray; as_torch, as_jax and as_cupy also accept sparse arrays

C, C++, and other processes
    get_include()           return the folder of the C headers
    Request                 conditions on an array argument, as in the C interface
    pickling                permit or configure pickles of device memory
    as_mpi(obj)             return an array of any layout as one message for mpi4py
    ipc_handle(x)           return a handle by which another process of the machine opens the memory, without a copy
    register_library        add support for another library
    register_dask           send arrays in dask without pickling their elements
    testing                 checks of another library's arrays against the protocols' rules
    transfer                settings of copies between devices, and of the memory that copies keep for reuse
    sycl_runtime            detection of the SYCL CPU device

`USMArray` does not implement arithmetic. Convert it first, for example with `as_numpy(x)`. USM is SYCL's unified shared
memory. ``python -m arrayhub doctor`` reports what works on a machine.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from arrayhub import sycl_runtime

sycl_runtime.configure()  # must run before dpctl is imported: the OpenCL loader reads the environment only once
if os.path.exists(os.path.join(__path__[0], "meson.build")):  # a source tree, which wheels do not contain
    from arrayhub import _clone

    __path__[:] = _clone.compiled_path(__path__)
    _clone.check_compiled()

from arrayhub._core.descriptor import Device  # noqa: E402
from arrayhub._core.errors import InterfaceError  # noqa: E402
from arrayhub.array.usm_array import USMArray  # noqa: E402
from arrayhub.capi import table as _table  # noqa: E402, F401 (fills in the function table of the C interface)
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

__version__ = "0.1.0"

if "distributed.protocol" in sys.modules:  # a dask worker may be about to read an array that another process sent
    import_module("arrayhub.transport.dask").register_arrival()

if TYPE_CHECKING:
    from arrayhub import testing as testing
    from arrayhub import transfer as transfer
    from arrayhub._core.include import get_include
    from arrayhub.adapters.dimensions import get_dims, get_origin
    from arrayhub.capi.python_request import Request
    from arrayhub.convert.adapt import adapt
    from arrayhub.convert.like import like
    from arrayhub.convert.placement import Placement, placement
    from arrayhub.inspection.check import check
    from arrayhub.inspection.datashape.parser import parse_type
    from arrayhub.inspection.datashape.types import Type, datashape
    from arrayhub.inspection.explain import explain
    from arrayhub.inspection.pictures.picture import picture
    from arrayhub.inspection.printout import debug_repr, inspect
    from arrayhub.inspection.tracing import trace
    from arrayhub.libraries.plugins import register_library
    from arrayhub.nested import NestedArray, as_arrow, as_awkward, as_pandas, as_polars, asnested
    from arrayhub.nested.pickling import _unpickle_nested as _unpickle_nested
    from arrayhub.sparse.array import SparseArray
    from arrayhub.sparse.assparse import assparse
    from arrayhub.sparse.export import as_pydata_sparse, as_scipy
    from arrayhub.sparse.pickling import _unpickle_sparse as _unpickle_sparse
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
    from arrayhub.transport.ipc import IpcHandle, ipc_handle
    from arrayhub.transport.ipc import _ipc_handle as _ipc_handle
    from arrayhub.transport.mpi import as_mpi
    from arrayhub.transport.pickling import _unpickle as _unpickle
    from arrayhub.transport.policy import pickling

# Public names whose modules are imported on first use, to keep `import arrayhub` fast.
_LAZY = {
    name: module
    for module, names in {
        "arrayhub._core.include": ("get_include",),
        "arrayhub.adapters.dimensions": ("get_dims", "get_origin"),
        "arrayhub.capi.python_request": ("Request",),
        "arrayhub.convert.adapt": ("adapt",),
        "arrayhub.convert.like": ("like",),
        "arrayhub.convert.placement": ("Placement", "placement"),
        "arrayhub.transport.dask": ("register_dask",),
        "arrayhub.transport.ipc": ("IpcHandle", "ipc_handle", "_ipc_handle"),
        "arrayhub.transport.mpi": ("as_mpi",),
        "arrayhub.nested.pickling": ("_unpickle_nested",),
        "arrayhub.sparse.pickling": ("_unpickle_sparse",),
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
        "arrayhub.sparse": ("SparseArray", "as_pydata_sparse", "as_scipy", "assparse"),
        "arrayhub.nested": ("NestedArray", "as_arrow", "as_awkward", "as_pandas", "as_polars", "asnested"),
        "arrayhub.storage": (
            *("Plan", "plan", "layout_for", "layouts", "from_array"),
            *("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like"),
        ),
    }.items()
    for name in names
}

# Names that users may expect from other libraries, and the call that the AttributeError suggests instead.
_ELSEWHERE = {
    **dict.fromkeys(("as_array", "as_tensor", "asanyarray", "frombuffer", "ndarray", "tensor"), "arrayhub.asarray(x)"),
    **{
        f"from_{name}": "arrayhub.asarray(x)" for name in ("arrow", "cupy", "jax", "numpy", "pandas", "polars", "torch")
    },
    **{
        f"to_{name}": f"arrayhub.as_{name}(x)"
        for name in ("arrow", "awkward", "cupy", "dpnp", "jax", "numba", "numpy", "pandas", "polars", "torch")
    },
    **dict.fromkeys(("asnumpy", "numpy"), "arrayhub.as_numpy(x)"),
    **dict.fromkeys(("as_list", "to_list"), "arrayhub.asarray(x).tolist()"),
    "arange": "arrayhub.asarray(numpy.arange(n))",
    "array_namespace": "array_api_compat.array_namespace(arrayhub.as_numpy(x))",
    "as_nested": "arrayhub.asnested(x)",
    "as_pyarrow": "arrayhub.as_arrow(x)",
    "as_sparse": "arrayhub.assparse(x)",
    "as_xarray": "arrayhub.asarray(x).to_xarray()",
    "ascontiguousarray": "arrayhub.asarray(numpy.ascontiguousarray(x))",
    "as_cuda": "arrayhub.to_device(x, 'cuda:0')",
    "concatenate": "arrayhub.asarray(numpy.concatenate(list(map(arrayhub.as_numpy, arrays))))",
    "copy": "arrayhub.asarray(x, copy=True)",
    "demo": "python -m arrayhub demo",
    "device": "arrayhub.asarray(x).device",
    **dict.fromkeys(("cuda", "doctor", "is_available"), "python -m arrayhub doctor"),
    "linspace": "arrayhub.asarray(numpy.linspace(start, stop, n))",
    "to_dlpack": "arrayhub.asarray(x).__dlpack__()",
}

__all__ = [
    "Device",
    "InterfaceError",
    "IpcHandle",
    "NestedArray",
    "Placement",
    "Plan",
    "Request",
    "SparseArray",
    "Type",
    "USMArray",
    "adapt",
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
    "as_pydata_sparse",
    "as_scipy",
    "as_torch",
    "asarray",
    "asnested",
    "assparse",
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
    "ipc_handle",
    "layout_for",
    "layouts",
    "like",
    "ones",
    "ones_like",
    "parse_type",
    "pickling",
    "picture",
    "placement",
    "plan",
    "register_dask",
    "register_library",
    "to_device",
    "to_host",
    "trace",
    "zeros",
    "zeros_like",
]


if not TYPE_CHECKING:  # a module-level __getattr__ makes type checkers accept any name

    def __getattr__(name):
        if name == "testing":
            return import_module("arrayhub.testing")
        if name not in _LAZY:
            instead = _ELSEWHERE.get(name)
            advice = f"; use {instead}" if instead else ""
            raise AttributeError(f"module 'arrayhub' has no attribute {name!r}{advice}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value

    def __dir__():
        modules = {"sycl_runtime", "testing", "transfer"}
        return sorted({name for name in globals() if name.startswith("__")} | {*__all__} | modules)
