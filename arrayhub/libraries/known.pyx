"""The rows of `table` as objects, with the functions that import and export the arrays of each library.

Before arrayhub first imports or exports an array of a library, it loads the module of this folder that the row names. The
module sets its functions in the row. `importers.pxi` contains importers without a module of their own. The types of a library
are recognized without importing the library.
"""

import importlib
import os
import sys
from functools import partial

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
from arrayhub.libraries.table import TABLE

include "importers.pxi"

# If False, each known type is imported through a protocol. The modules' checks and advice still apply.
cdef bint _fast_paths = os.environ.get("ARRAYHUB_DISABLE_FAST_PATHS", "0") in ("", "0")

cdef list _recognize = [None]       # for each import function: a predicate on types
cdef list _library_of = [None]      # for each import function: the library's row
cdef dict _by_root = {}
cdef dict _TRAITS = {
    "ARROW_ARRAY_FIRST": ARROW_ARRAY_FIRST,
    "ARROW_BYTES_ARE_OBJECTS": ARROW_BYTES_ARE_OBJECTS,
    "ARROW_IS_LAZY": ARROW_IS_LAZY,
    "ARROW_STREAM_FIRST": ARROW_STREAM_FIRST,
    "BORROWS": BORROWS,
    "DLPACK_BY_IMPORTER": DLPACK_BY_IMPORTER,
    "LEGACY_IS_WRITABLE": LEGACY_IS_WRITABLE,
    "NO_STREAM_IS_NONE": NO_STREAM_IS_NONE,
    "SILENT_ON_DEFAULT": SILENT_ON_DEFAULT,
    "SYCL_IS_READONLY": SYCL_IS_READONLY,
}


def _read(str module not None, str function not None, value):
    """Convert a device object or an element type by a function of `devices` or `dtypes`, which the first call imports."""
    return getattr(importlib.import_module(f"arrayhub.libraries.{module}"), function)(value)


cdef class Library:
    """Row of the table, whose columns `table` describes. The rows of `register_library` have `emit`, too."""

    def __init__(self, name, *, install=None, sample=None, roots=(), traits=(), device=None, dtype=None, like=None,
                 by_driver=(), environment=(), module=None, importers=(), exports=None, own=MAX_IMPORTERS, types=(), advice=(),
                 sparse=(), resembling=(), spellings=(), instead=None, export_by=None, nests=False, emit=None,
                 takes_model=False):
        self.name, self.install, self.sample, self.module = name, install, sample, module
        self.roots, self.like = roots or (name,), like or name
        self.by_driver, self.environment = dict(by_driver), dict(environment)
        self.types, self.advice, self.sparse, self.resembling = dict(types), dict(advice), dict(sparse), resembling
        self.export_by, self.nests = export_by, nests
        self.spellings, self.instead, self.emit, self.takes_model = spellings, instead, emit, takes_model
        self.recognizers, self.own = importers, 0 if exports is None else min(len(importers), own)
        for trait in traits:
            self.traits |= <unsigned int> _TRAITS[trait]
        self.handled = bool(install or importers or traits or device)
        if exports is not None:
            self.device_type, self.reads_host = exports
            self.call = f"as_{name}"
        for root in self.roots:
            if device is not None:
                READERS[root] = partial(_read, "devices", device)
            if dtype is not None:
                dtypes.TYPE_READERS[root] = partial(_read, "dtypes", dtype)

    cdef int add(self) except -1:
        """Add the row to the table of libraries that arrayhub handles, and number its importers."""
        cdef int first = len(_recognize)
        if self.install is not None:
            others = ", ".join([f"{other} for a CUDA {driver} driver" for driver, other in self.by_driver.items()])
            INSTALL[self.name] = f"{self.install} (or {others})" if others else self.install
        for root in self.roots:
            _by_root[root] = self
        for kind, *names in self.recognizers:
            _recognize.append(_PREDICATES[kind](*names))
            _library_of.append(self)
        assert len(_recognize) <= SPARSE
        self.first_importer, self.first_own, self.last_own = first, first, first + self.own - 1
        return 0

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

    cdef int load(self) except -1:
        """Import the module of the library if it is not imported yet."""
        if self.module is not None and not is_done(&self.loaded):
            importlib.import_module(f"arrayhub.libraries.{self.module}")      # waits while another thread imports the module
            mark_done(&self.loaded)
        return 0

    cdef int set_importer(self, int k, Importer importer, Importer plain) except -1:
        """Set the import function of the row's `k`-th importer. `plain` is used if fast paths are disabled."""
        assert _library_of[self.first_importer + k] is self
        importers[self.first_importer + k] = importer if _fast_paths else plain
        return 0

    cdef int set_exporter(self, Exporter exporter, Require require=NULL) except -1:
        """Set the export function. `require` checks, before memory is copied, that the library is installed."""
        self.exporter, self.require = exporter, require
        return 0


def exactly(module, *names):
    """Return a predicate for the types `names` in `module`. The predicate is false while the module is not loaded."""
    root = module.partition(".")[0]

    def recognize(cls):
        if root_of(cls) != root:
            return False
        loaded = sys.modules.get(module)
        for name in names:      # a name may be an alias: dpnp.ndarray is the class dpnp_array
            if cls is getattr(loaded, name, None):
                return True
        return False

    return recognize


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


def own(root, *names):
    """Return a predicate for types that a library defines and that are, or derive from, a class of one of the given names.

    It recognizes types in private modules, whose names may change.
    """
    return lambda cls: root_of(cls) == root and any([base.__name__ in names and root_of(base) == root for base in cls.__mro__])


_PREDICATES = {"exactly": exactly, "derived": derived_from, "own": own}


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


ROWS = {name: Library(name, **columns) for name, columns in TABLE.items()}

# Libraries whose arrays arrayhub imports or exports by code, or whose deviations from the specifications it knows.
LIBRARIES = tuple([row for row in ROWS.values() if row.handled])
for _row in LIBRARIES:
    (<Library> _row).add()

# Names of the libraries whose arrays can be nested, in `convert`.
NESTING = tuple([row.like for row in LIBRARIES if row.nests])

library("numpy").set_importer(0, numpy.copy_scalar, numpy.copy_scalar)
library("numpy").set_importer(1, numpy.parse, numpy.parse_by_dict)
library("numpy").set_exporter(to_numpy)
library("numpy").check = numpy_check
library("python").set_importer(0, buffer.parse_bytes, buffer.parse)
library("python").set_importer(1, buffer.parse, buffer.parse)
library("python").set_importer(2, buffer.parse, buffer.parse)
library("numba").set_exporter(to_numba)
library("numba").check = check_numba
library("nanoarrow").set_importer(0, unpacked_buffer, unpacked_buffer)
library("polars").set_importer(0, parse_polars, parse_polars)
library("pandas").set_importer(0, parse_column, parse_column)
library("xarray").set_importer(0, parse_xarray, parse_xarray)
library("warp").set_importer(0, parse_warp, parse_warp)
library("mlx").set_importer(0, dlpack_first, dlpack_first)
library("paddle").set_importer(0, parse_paddle, parse_paddle)
library("paddle").set_importer(1, parse_paddle, parse_paddle)
library("av").set_importer(0, parse_plane, parse_plane)
library("PIL").set_importer(0, parse_image, parse_image)
library("tensorflow").set_importer(0, without_strings, without_strings)


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
    return ROWS[name]
