"""Table of known libraries.

Each row contains the installation command of a library, the import of its types, the export to its arrays, its devices, and
its deviations from the specifications. A library that follows a protocol does not need a row.

To add a library, write a row here, and a module in this folder if the import or export takes more than a few lines. arrayhub
loads this module before it first imports or exports an array of the library. The module sets its functions in the row. The
types of a library are recognized without importing the library.

`importers.pxi` contains importers without a module of their own.
"""

import importlib
import os
import sys
from functools import partial

import numpy as np

from cpython.object cimport PyObject_Call

from arrayhub._core.cpython.atomics cimport is_done, mark_done
from arrayhub.adapters cimport buffer
from arrayhub.adapters.type_cache cimport (
    ARROW_ARRAY_FIRST,
    ARROW_BYTES_ARE_OBJECTS,
    ARROW_IS_LAZY,
    ARROW_STREAM_FIRST,
    BORROWS,
    DLPACK_BY_IMPORTER,
    LEGACY_IS_WRITABLE,
    NO_STREAM_IS_NONE,
    SILENT_ON_DEFAULT,
    SYCL_IS_READONLY,
)
from arrayhub.libraries cimport numpy

from arrayhub._core import dtypes
from arrayhub._core.descriptor import READERS
from arrayhub._core.errors import INSTALL, root_of
from arrayhub.libraries.numpy import check as numpy_check
from arrayhub.libraries.dtypes import READERS as TYPE_READERS

include "importers.pxi"

dtypes.TYPE_READERS.update(TYPE_READERS)

# If False, each known type is imported through a protocol. The modules' checks and advice still apply.
cdef bint _fast_paths = os.environ.get("ARRAYHUB_DISABLE_FAST_PATHS", "0") in ("", "0")

cdef list _recognize = [None]       # for each import function: a predicate on types
cdef list _library_of = [None]      # for each import function: the library's row
cdef dict _by_root = {}
cdef dict _by_name = {}


def _read_device(function, device):
    """Return the DLPack pair of a device object. `devices` is imported on the first call."""
    from arrayhub.libraries import devices

    return getattr(devices, function)(device)


cdef class Library:
    """Row of the table. The constructor adds the row to the table.

    `module` names the module in this folder that implements import and export. `device` names the function in `devices`
    that converts the library's device objects. `environ` prevents side effects of creating the sample: by default, jax
    allocates most of a GPU's memory.
    """

    def __init__(self, name, install, sample=None, roots=(), traits=0, device=None, like=None, by_driver=(), environ=(),
                 module=None):
        self.name, self.install, self.sample, self.traits = name, install, sample, traits
        self.module, self.first_importer = module, len(_recognize)
        self.roots, self.like = roots or (name,), like or name
        self.by_driver, self.environ = dict(by_driver), dict(environ)
        _by_name[name] = self
        INSTALL[name] = install if not by_driver else \
            f"{install} (or {', '.join([f'{other} for a CUDA {driver} driver' for driver, other in by_driver.items()])})"
        for root in self.roots:
            _by_root[root] = self
            if device is not None:
                READERS[root] = partial(_read_device, device)

    def check_export(self, array, copied):
        """Raise the error of the export of an array, or of its copy on a supported device, without converting it."""
        self.load()
        self.check(array, copied)

    def install_for(self, driver):
        """Return the installation command for a CUDA driver version. The row must have an installation command.

        Pass None as `driver` on a machine without a driver. Return None if the library needs a driver that is missing.
        """
        if self.by_driver and driver is None:
            return None
        return self.by_driver.get((driver or "").partition(".")[0], self.install)

    cdef Library importing(self, object recognize, Importer importer=NULL, Importer plain=NULL):
        """Register an import function for the types that `recognize` accepts. `plain` is used if fast paths are disabled.

        If `importer` is omitted, the module of the library calls `set_importer`.
        """
        assert len(_recognize) < MAX_IMPORTERS and (importer != NULL or self.module is not None)
        importers[len(_recognize)] = importer if _fast_paths else plain
        _recognize.append(recognize)
        _library_of.append(self)
        return self

    cdef Library exporting(self, str device_type, bint reads_host, Exporter exporter=NULL, int own=MAX_IMPORTERS):
        """Register the export function, the device type of the arrays, and whether they can also be in host memory.

        If `exporter` is omitted, the module of the library calls `set_exporter`. The first `own` import functions are for
        arrays that the export returns unchanged.
        """
        assert exporter != NULL or self.module is not None
        self.first_own, self.last_own = self.first_importer, min(len(_recognize), self.first_importer + own) - 1
        self.exporter, self.device_type, self.reads_host = exporter, device_type, reads_host
        self.call = f"as_{self.name}"
        return self

    cdef int load(self) except -1:
        """Import the module of the library if it is not imported yet."""
        if self.module is not None and not is_done(&self.loaded):
            importlib.import_module(f"arrayhub.libraries.{self.module}")      # waits while another thread imports the module
            mark_done(&self.loaded)
        return 0

    cdef int set_importer(self, int k, Importer importer, Importer plain) except -1:
        """Set the import function that the `k`-th call of `importing` omitted."""
        assert _library_of[self.first_importer + k] is self
        importers[self.first_importer + k] = importer if _fast_paths else plain
        return 0

    cdef int set_exporter(self, Exporter exporter, Require require=NULL) except -1:
        """Set the export function. `require` checks, before memory is copied, that the library is installed."""
        self.exporter, self.require = exporter, require
        return 0


def exactly(module, name):
    """Return a predicate for the type `name` in `module`. The predicate is false while the module is not loaded."""
    root = module.partition(".")[0]
    return lambda cls: root_of(cls) == root and cls is getattr(sys.modules.get(module), name, None)


def derived_from(module, *names):
    """Return a predicate for the types `names` in `module` and their subclasses.

    The predicate is false while the module is not loaded. It does not raise an error while another thread imports the
    module, although the module may lack the types until the import ends.
    """
    def recognize(cls):
        loaded = sys.modules.get(module)
        if loaded is None:
            return False
        for name in names:      # without temporary lists, because asnested calls several predicates for each object
            base = getattr(loaded, name, None)
            if isinstance(base, type) and issubclass(cls, base):
                return True
        return False

    return recognize


def named(root, *names):
    """Return a predicate for types with the given names in any module of a library.

    It recognizes types that are defined in private modules, whose names may change.
    """
    return lambda cls: root_of(cls) == root and cls.__name__ in names


def own(root, *names):
    """Return a predicate for types that a library defines and that have a base class, or are a class, of the given names."""
    return lambda cls: root_of(cls) == root and any([base.__name__ in names and root_of(base) == root for base in cls.__mro__])


def _usm_memory(module):
    import dpctl.memory

    return dpctl.memory.MemoryUSMShared(8) if module.get_devices() else dpctl.memory.MemoryUSMShared


def _dpnp_array(module):
    import dpctl

    return module.zeros(3) if dpctl.get_devices() else module.ndarray


# ------------------------------------------------------------------------------------------------------------- export


cdef object to_numpy(Descriptor a, bint copied, bint allow_readonly):
    return numpy.emit(a)


cdef object to_numba(Descriptor a, bint copied, bint allow_readonly):
    from arrayhub.libraries import numba

    return numba.emit(a)


def check_numba(array, copied):
    from arrayhub.libraries import numba

    numba.check(array, copied)


# --------------------------------------------------------------------------------------------------------- the table

# Types are tested in the order of the table, and reports list the libraries in this order.

Library("numpy", "pip install 'numpy>=2.0'", lambda numpy: numpy.zeros(3)) \
    .importing(lambda cls: issubclass(cls, np.generic), numpy.copy_scalar, numpy.copy_scalar) \
    .importing(lambda cls: issubclass(cls, np.ndarray), numpy.parse, numpy.parse_by_dict) \
    .exporting("cpu", True, to_numpy, 0)     # `give` returns an ndarray unchanged if it does not contain Python objects

library("numpy").check = numpy_check

Library("python", None, roots=("builtins", "array"), like="numpy") \
    .importing(lambda cls: cls is bytes, buffer.parse_bytes, buffer.parse) \
    .importing(lambda cls: cls is bytearray or cls is memoryview, buffer.parse, buffer.parse) \
    .importing(exactly("array", "array"), buffer.parse, buffer.parse)

Library("torch", "pip install torch", lambda torch: torch.zeros(3), device="read_torch",
        traits=LEGACY_IS_WRITABLE | DLPACK_BY_IMPORTER, module="torch") \
    .importing(derived_from("torch", "Tensor")) \
    .exporting("cuda", True)

Library("jax", "pip install jax", lambda jax: jax.numpy.zeros(3), roots=("jax", "jaxlib"), device="read_jax",
        traits=NO_STREAM_IS_NONE,
        environ={"JAX_PLATFORMS": "cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, module="jax") \
    .importing(named("jaxlib", "ArrayImpl")) \
    .importing(named("jax", "ArrayImpl")) \
    .exporting("cuda", True)

Library("cupy", "pip install 'arrayhub[cuda13]'", lambda cupy: cupy.zeros(3) if cupy.is_available() else cupy.ndarray,
        by_driver={"12": "pip install 'arrayhub[cuda12]'"}, roots=("cupy", "cupyx"), device="read_cupy",
        traits=LEGACY_IS_WRITABLE, module="cupy") \
    .importing(exactly("cupy", "ndarray")) \
    .exporting("cuda", False)

Library("dpctl", "pip install 'arrayhub[sycl]'", _usm_memory, like="dpnp", module="dpctl") \
    .importing(exactly("dpctl.tensor", "usm_ndarray")) \
    .importing(named("dpctl", "MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"))

Library("dpnp", "pip install dpnp", _dpnp_array, module="dpctl") \
    .importing(exactly("dpnp", "ndarray")) \
    .importing(exactly("dpnp.tensor", "usm_ndarray")) \
    .exporting("oneapi", False, NULL, 1)

Library("numba", "pip install numba", roots=("numba", "numba_cuda"), traits=SILENT_ON_DEFAULT) \
    .exporting("cuda", True, to_numba)

library("numba").check = check_numba

Library("pyarrow", "pip install pyarrow", lambda pyarrow: pyarrow.array([0.0, 1.0]), traits=ARROW_ARRAY_FIRST,
        like="arrow", module="pyarrow") \
    .importing(derived_from("pyarrow", "Array", "ChunkedArray", "RecordBatch", "Scalar", "Table"))

Library("nanoarrow", None) \
    .importing(named("nanoarrow", "CBuffer", "CBufferView"), unpacked_buffer, unpacked_buffer)

# In polars (up to 2.1.0), every column that is exported as fixed-size bytes has the dtype Object.
Library("polars", "pip install polars", lambda polars: polars.Series([0.0, 1.0]), traits=ARROW_BYTES_ARE_OBJECTS) \
    .importing(exactly("polars", "Series"), parse_polars, parse_polars)

Library("pandas", "pip install pandas", lambda pandas: pandas.Series([0.0, 1.0])) \
    .importing(own("pandas", "Series", "Index"), parse_column, parse_column)

# narwhals 2.29 concatenates the chunks of a Series for __arrow_c_array__, even a single chunk.
Library("narwhals", None, traits=ARROW_STREAM_FIRST)

# Each call of __arrow_c_stream__ runs the query again (duckdb 2.0, ibis 12, datafusion 55; by design: duckdb/duckdb#17084).
Library("duckdb", None, roots=("duckdb", "_duckdb"), traits=ARROW_IS_LAZY)

Library("ibis", None, traits=ARROW_IS_LAZY)

Library("datafusion", None, traits=ARROW_IS_LAZY)

Library("awkward", "pip install awkward", lambda awkward: awkward.Array([0.0, 1.0]))

Library("xarray", "pip install xarray", lambda xarray: xarray.DataArray([0.0, 1.0])) \
    .importing(own("xarray", "DataArray", "NamedArray"), parse_xarray, parse_xarray)

Library("warp", None, traits=LEGACY_IS_WRITABLE) \
    .importing(exactly("warp", "array"), parse_warp, parse_warp)

Library("mlx", None, traits=LEGACY_IS_WRITABLE) \
    .importing(exactly("mlx.core", "array"), dlpack_first, dlpack_first)       # bfloat16 buffers lack a PEP 3118 format

Library("paddle", None) \
    .importing(exactly("paddle", "Tensor"), parse_paddle, parse_paddle) \
    .importing(named("paddle", "EagerParamBase"), parse_paddle, parse_paddle)

Library("av", None, traits=LEGACY_IS_WRITABLE) \
    .importing(named("av", "VideoPlane"), parse_plane, parse_plane)

Library("PIL", None) \
    .importing(derived_from("PIL.Image", "Image"), parse_image, parse_image)

Library("tensorflow", None, traits=DLPACK_BY_IMPORTER) \
    .importing(named("tensorflow", "EagerTensor"), without_strings, without_strings)

Library("ml_dtypes", "pip install ml_dtypes")

# If an OrtValue was created from a NumPy array, its capsule does not keep the NumPy array alive.
Library("onnxruntime", None, traits=BORROWS)

# oneDAL's tables (2026.2) are never mutable, but store `is_mutable` (False) in the read-only flag of the dict. Inverting the
# flag would make the tables writable once oneDAL corrects the flag. The tables' DLPack capsules are read-only.
Library("onedal", None, traits=SYCL_IS_READONLY)

Library("tvm_ffi", None, device="read_tvm_ffi")

Library("cuda.core", None, roots=("cuda",), device="read_cuda_core")


# ---------------------------------------------------------------------------------------------------- queries on the table


cdef int importer_of_type(type cls) except -1:
    """Return the number of the import function for a type, or 0 if the type is unknown."""
    cdef int importer
    for importer in range(1, len(_recognize)):
        if _recognize[importer](cls):
            (<Library> _library_of[importer]).load()
            return importer
    return 0


cdef Library library_of_type(type cls, int importer):
    """Return the row of a type, or None.

    If the type has an import function, the result is the function's row, otherwise the row of the first class in the MRO
    whose library has a row.
    """
    cdef Library row
    if importer != 0:
        return _library_of[importer]
    for base in cls.__mro__[:len(cls.__mro__) - 1]:      # without `object`
        row = _by_root.get(root_of(base))
        if row is not None:
            return row
    return None


def row_of_type(cls, /):
    """Return the row of the first class in the MRO whose library has a row, or None."""
    return library_of_type(<type> cls, 0)


cdef Library library(str name):
    return _by_name[name]


LIBRARIES = tuple(_by_name.values())
