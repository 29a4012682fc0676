"""The rows of `table` as objects, with the functions that import and export the arrays of each library.

Before arrayhub first imports or exports an array of a library, it loads the module of this folder that the row names.
The module sets its functions in the row. Importers that only check an object or select a protocol are in this module.
The types of a library are recognized without importing the library.
"""

import gc
import importlib
import os
import sys

import numpy as np

from cpython.object cimport PyObject

from arrayhub._core.cpython.atomics cimport is_done, mark_done, seen, set_once
from arrayhub._core.cpython.exceptions cimport take
from arrayhub._core.descriptor cimport (
    IMMUTABLE,
    WRITEABLE,
    Descriptor,
    get_dtype,
    host_readable,
    kDLCUDA,
    make_dims,
    set_labels,
)
from arrayhub._core.runtime cimport device_name
from arrayhub.adapters cimport arrow, buffer, dlpack
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI
from arrayhub.libraries cimport numpy
from arrayhub.runtimes.cuda cimport has_device
# NumPy's own declarations come last: otherwise, Cython 3.2 leaves out the inline functions that NumPy 2.5 declares.
cimport numpy as cnp

from arrayhub._core import dtypes
from arrayhub._core.descriptor import READERS, relabel
from arrayhub._core.errors import INSTALL, InterfaceError, Refusal, first_line, root_of
from arrayhub.adapters.type_cache import Trait
from arrayhub.libraries.numpy import ndarray
from arrayhub.libraries.table import SHARED_MODES, TABLE

cdef extern from *:
    Py_ssize_t Py_REFCNT(object obj) noexcept
    object PyObject_Vectorcall(PyObject* function, PyObject** arguments, size_t positional, object keywords)
    PyObject* PyObject_VectorcallMethod(object name, PyObject** arguments, size_t positional, object keywords) noexcept

# If False, each known type is imported through a protocol. The modules' checks and advice still apply.
cdef bint _fast_paths = os.environ.get("ARRAYHUB_DISABLE_FAST_PATHS", "0") in ("", "0")

cdef list _recognize = [None]       # for each import function: a predicate on types
cdef list _library_of = [None]      # for each import function: the library's row
cdef dict _by_root = {}


cdef class Library:
    """Row of the table, whose columns `table` describes. The rows of `register_library` have `emit`, too.

    `wrappers` reads the columns about types.
    """

    def __init__(self, name, *, install=None, sample=None, roots=(), traits=(), device=None, dtype=None, like=None,
                 by_driver=(), environment=(), module=None, importers=(), memory=(None, False), own=MAX_IMPORTERS,
                 spellings=(), instead=None, export_by=None, nests=False, labels=False, immutable=False, sparse_by=None,
                 emit=None, takes_model=False, **types):
        self.name, self.install, self.sample, self.module = name, install, sample, module
        self.roots, self.like = roots or (name,), like or name
        self.by_driver, self.environment = dict(by_driver), dict(environment)
        self.device_type, self.reads_host = memory
        self.call = f"as_{name}" if self.device_type is not None and export_by is None else None
        self.export_by, self.nests, self.labels, self.immutable = export_by, nests, labels, immutable
        self.sparse_by, self.returns_own = sparse_by, own != 0
        self.spellings, self.instead, self.emit, self.takes_model = spellings, instead, emit, takes_model
        self.recognizers, self.own = importers, 0 if self.call is None else min(len(importers), own)
        for trait in traits:
            self.traits |= <unsigned int> Trait[trait]
        self.handled = bool(install or importers or traits or device)
        for root in self.roots:
            if device is not None:
                READERS[root] = device
            if dtype is not None:
                dtypes.TYPE_READERS[root] = dtype

    cdef int add(self) except -1:
        """Add the row to the table of libraries that arrayhub handles, and number its importers."""
        cdef int first = len(_recognize)
        if self.install is not None:
            others = ", ".join([f"{other} for a CUDA {driver} driver" for driver, other in self.by_driver.items()])
            INSTALL[self.name] = f"{self.install} (or {others})" if others else self.install
        for root in self.roots:
            _by_root[root] = self
        for kind, *names in self.recognizers:
            if kind == "own":
                _recognize.append(own(self.roots, names))
            else:
                _recognize.append((exactly if kind == "exactly" else derived_from)(*names))
            _library_of.append(self)
        assert len(_recognize) <= SPARSE
        self.first_importer, self.first_own, self.last_own = first, first, first + self.own - 1
        return 0

    def check_export(self, Descriptor array not None, bint copied):
        """Raise the error of the export of an array, or of its copy on a supported device, without converting it."""
        self.load()
        if self.check_memory == NULL or self.check_elements == NULL:
            raise TypeError(f"check_export: {self.name} does not have an exporter")
        if not copied:
            self.check_memory(array, False)
        elif self.require != NULL:
            self.require()
        self.check_elements(array)

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

    cdef int set_importer(self, int k, Importer importer, Importer plain=NULL) except -1:
        """Set the import function of the row's `k`-th importer. `plain`, if given, is used if fast paths are disabled."""
        assert _library_of[self.first_importer + k] is self
        importers[self.first_importer + k] = importer if _fast_paths or plain == NULL else plain
        return 0

    cdef int set_exporter(
            self, Exporter exporter, CheckMemory memory, CheckElements elements, Require require=NULL, Copier copier=NULL
    ) except -1:
        """Set the export function, the functions that raise its errors, and the one that copies by the library."""
        self.exporter, self.check_memory, self.check_elements, self.require = exporter, memory, elements, require
        self.copier = copier
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


def own(roots, names):
    """Return a predicate for types that a library defines and that are, or derive from, a class of one of the given names.

    It recognizes types in private modules, whose names may change. `roots` are the library's top-level modules.
    """
    return lambda cls: root_of(cls) in roots and any(
        [base.__name__ in names and root_of(base) in roots for base in cls.__mro__])


# ---------------------------------------------------------------------------------------------------------- importers


cdef Descriptor without_strings(object obj, object stream):
    """Reject TensorFlow tensors whose elements are not numbers. Return None for other tensors, so that protocols are tried.

    ``__dlpack__`` of the rejected tensors ends the process (``CHECK(DataTypeCanUseMemcpy)`` in tensorflow 2.21).
    """
    name = obj.dtype.name
    if name == "string":
        call = "arrayhub.asnested(x.numpy().tolist())" if obj.shape.rank else "x.numpy(), which returns its bytes"
        raise Refusal("tensorflow.Tensor", f"dtype is 'string'; accepted: numbers. Call {call}")
    if name == "variant" or name == "resource":
        raise Refusal("tensorflow.Tensor", f"dtype is {name!r}, whose elements are opaque handles; accepted: numbers")
    return None


cdef Descriptor dlpack_first(object obj, object stream):
    """Import an object through DLPack, which describes these objects better than their buffer does.

    Return None if the export through DLPack raises an error. An invalid export raises InterfaceError.
    """
    try:
        return dlpack.parse(obj, stream)
    except InterfaceError:
        raise
    except Exception:
        return None


cdef Descriptor parse_plane(object obj, object stream):
    """Import an ``av.VideoPlane`` through DLPack, whose shape excludes the padding of rows.

    PyAV 18.1 raises for planes that are big-endian, have 32-bit or packed components, a palette or negative line sizes, drops
    the last row and column of some chroma planes of odd size, and describes 16-bit floats as integers. A plane does not have
    a public attribute for its frame, which knows the format. If DLPack does not describe the picture, raise TypeError, because
    the buffer of the plane contains padding.
    """
    cdef Descriptor a = None
    why = "PyAV's buffer of it includes padding"
    try:
        a = dlpack.parse(obj, stream)
    except InterfaceError:
        raise
    except Exception as error:
        why = f"PyAV refuses: {error}"
    if a is None or a.nd_ < 2 or a.shape_[0] != obj.height or a.shape_[1] != obj.width:
        from arrayhub.libraries.wrappers import wrapper_error

        raise wrapper_error(obj, f"is not imported as a picture ({why})")
    for frame in gc.get_referents(obj):
        if type(frame).__name__ == "VideoFrame" and "f16" in frame.format.name:
            return (<object> a).view("float16")
    return a


cdef int check_arrow_export(object obj) except -1:
    """Load an image from its file. Raise Refusal if Pillow before 13 would crash when it exports the image through Arrow."""
    obj.load()
    version = sys.modules["PIL"].__version__
    if (obj.readonly or 0 in obj.size) and int(version.partition(".")[0]) < 13:
        raise Refusal("PIL.Image", f"Pillow {version} crashes when it shares an image of a file or a buffer, or without pixels",
                      "Pillow 13, or copy=None", "arrayhub.asarray(x, copy=None)")
    return 0


cdef Descriptor parse_image(object obj, object stream):
    """View the memory of a ``PIL.Image`` through Arrow, with the shape and type of the image.

    Pillow shares its memory since 11.2. A pixel with more than one band has four bytes. Images with two bands use the first
    and the last byte. Raise Refusal for images that Pillow only copies: images whose rows are not contiguous, such as those in
    several blocks, and other modes. In the memory of mode "1", true is not always 1, and mode "LAB" stores signed bands with
    an offset.
    """
    from PIL import ImageMode

    cdef Descriptor a = None
    cdef object failed = None, why = f"Pillow stores mode {obj.mode!r} in another form"
    check_arrow_export(obj)
    if obj.mode in SHARED_MODES:
        why = "Pillow shares images in one block of memory, by default up to 16 MB, without padded rows"
        try:
            a = arrow.parse(obj, stream)
        except (InterfaceError, MemoryError):
            raise
        except Exception as error:
            failed = error
    if a is None:
        reason = f"the image can only be copied; {why}"
        raise Refusal("PIL.Image", reason, "copy=None", "arrayhub.asarray(x, copy=None)") from failed
    mode = ImageMode.getmode(obj.mode)
    bands = len(mode.bands)
    view = (<object> a).reshape((obj.height, obj.width, *a.shape[1:]))
    if bands > 1:
        view = view[..., ::3] if bands == 2 else view[..., :bands]
    if view.dtype.str != mode.typestr:      # 16-bit modes, which Arrow describes as int16
        view = view.view(mode.typestr)
    a = view
    a.flags_ &= ~IMMUTABLE      # Pillow's methods write to this memory
    return a


cdef Descriptor unpacked_buffer(object obj, object stream):
    """Import an object through the buffer protocol.

    Reject packed booleans, because nanoarrow (0.9) exports them with the format of bytes.
    """
    cdef Descriptor a = buffer.parse(obj, stream)
    if a is not None and a.typenum_ == cnp.NPY_UBYTE and obj.data_type == "bool":
        raise TypeError(f"nanoarrow.{type(obj).__name__}: booleans are packed, eight per byte; accepted: one per byte. Use"
                        " numpy.fromiter(x.elements(), bool), which copies")
    return a


cdef Descriptor parse_paddle(object obj, object stream):
    """Import a ``paddle.Tensor`` or a parameter through the exchange table.

    The table is used because ``__dlpack_device__`` returns None as the host's device number (paddle 3.3). Unlike
    ``__dlpack__``, the table exports tensors that require gradients, so these tensors are rejected here. The table and
    ``__dlpack__`` do not support sparse tensors. Return None if paddle does not have a table.
    """
    if not obj.is_dense():
        raise Refusal("paddle", "the tensor is sparse; pass x.to_dense(), a dense copy")
    if not obj.stop_gradient:
        raise Refusal("paddle", "the tensor requires gradients, which an array does not track; pass x.detach()")
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(sys.modules["paddle"].Tensor)
    if api == NULL:
        return None
    return dlpack.parse_exchange(obj, api)


cdef Descriptor parse_warp(object obj, object stream):
    """Import a ``warp.array`` through DLPack, or a host array of structs through NumPy.

    DLPack does not have structs, and the ``descr`` in warp's ``__array_interface__`` is not a list (warp 1.19). ``x.numpy()``
    would copy structs on a device.
    """
    if type(obj.dtype).__name__ != "Struct":
        return dlpack.parse(obj, stream)
    cdef Descriptor a = None
    if obj.device.is_cpu:
        a = numpy.parse(obj.numpy(), stream)
    if a is None or a.size and <size_t> a.data_ != <size_t> (obj.ptr or 0):
        raise Refusal(
            "warp", f"{obj.dtype.key} elements on {obj.device} cannot be exported by any protocol; pass x.numpy(), a"
            " copy"
        )
    return a


cdef str _DLPACK = "__dlpack__"
cdef tuple _MAX_VERSION_NAME = ("max_version",)
cdef tuple _MAX_VERSION = (1, 0)      # pyarrow compares this version faster than a later one, with the same result


cdef Descriptor parse_pyarrow(object obj, object stream):
    """Import a ``pyarrow.Array`` as read-only memory. The offset of a slice is applied.

    DLPack, the faster protocol, lacks times, chunked arrays with one chunk, and arrays with a validity bitmap but without
    nulls. They are imported through ``__arrow_c_array__``. ``pyarrow.Buffer`` and ``pyarrow.Tensor`` support PEP 3118.

    Raises
    ------
    BufferError
        The array is not dense because of nulls, bits, chunks or strings. The message names a call to use instead.
    TypeError
        `obj` is a scalar. PEP 3118 would export the characters of a string as writable int8.
    """
    cdef Descriptor a
    capsule = capsule_of(obj)
    if capsule is not None:
        a = dlpack.parse_capsule(capsule, False, obj)
        return a if a.nd_ == 1 else arrow.parse(obj, None)      # FixedShapeTensorArray: DLPack would lose its dimension names
    a = arrow.parse(obj, None)
    if a is None:
        from arrayhub.libraries.wrappers import wrapper_error

        raise wrapper_error(obj, "is not imported as an array")
    return a


cdef inline object capsule_of(object obj):
    """Return ``obj.__dlpack__(max_version=(1, 0))``, or None if the method is missing or raises.

    For speed, the call is made without creating a bound method or a dict of keywords.
    """
    cdef PyObject* arguments[2]
    arguments[0] = <PyObject*> obj
    arguments[1] = <PyObject*> _MAX_VERSION
    cdef PyObject* capsule = PyObject_VectorcallMethod(_DLPACK, arguments, 1, _MAX_VERSION_NAME)
    if capsule != NULL:
        return take(capsule)
    try:
        dlpack.raise_pending("pyarrow's __dlpack__")
    except Exception:      # ArrowInvalid or others, and TypeError from releases that do not accept `max_version`
        return None


cdef PyObject* _polars_to_numpy = NULL
cdef tuple _ALLOW_COPY = ("allow_copy",)


cdef Descriptor parse_polars(object obj, object stream):
    """View the numbers of a ``polars.Series``.

    Return None for a Series that NumPy cannot view, such as one with missing values, strings, booleans or several chunks, and
    for times, whose time zone ``to_numpy`` drops. Arrow describes these Series.
    """
    cdef Descriptor a
    cdef object allow_copy = False
    cdef PyObject* arguments[2]
    cdef PyObject* to_numpy = seen(&_polars_to_numpy)
    if to_numpy == NULL:      # without the decorator that checks keywords, which takes as long as the method
        from polars import Series

        to_numpy = set_once(&_polars_to_numpy, NULL, getattr(Series.to_numpy, "__wrapped__", Series.to_numpy))
    arguments[0] = <PyObject*> obj
    arguments[1] = <PyObject*> allow_copy
    try:
        array = PyObject_Vectorcall(to_numpy, arguments, 1, _ALLOW_COPY)
    except Exception:      # polars raises RuntimeError instead of copying
        return None
    if not cnp.PyArray_CheckExact(array) or cnp.PyArray_NDIM(array) != 1 or \
            not (cnp.PyArray_ISINTEGER(array) or cnp.PyArray_ISFLOAT(array)):
        return None
    a = numpy.parse(array, stream)
    if a.flags_ & WRITEABLE:      # an empty Series, whose array polars allocates
        return None
    a.flags_ |= IMMUTABLE
    return a


cdef Descriptor parse_column(object obj, object stream):
    """View the numbers of a Series or an Index of pandas with one of NumPy's types. Import others as the row's `types` says."""
    dtype = obj.dtype
    if isinstance(dtype, np.dtype) and cnp.PyTypeNum_ISNUMBER((<cnp.dtype> dtype).type_num):
        values = obj.to_numpy()      # a view of numbers; faster than x.values (pandas 3)
        if cnp.PyArray_CheckExact(values) and values.dtype is dtype:
            return numpy.parse(values, stream)
    cdef Descriptor a = importers[WRAPPER](obj, stream)
    a.flags_ &= ~WRITEABLE      # as `values`: pandas copies on write, which a write to the memory would bypass
    return a


cdef PyObject* _named_data = NULL


cdef object data_of(object variable):
    """Return ``variable.data``. An ndarray is read by the property of the base class, which is faster than that of Variable."""
    cdef PyObject* read = seen(&_named_data)
    if read == NULL:
        from xarray import NamedArray

        read = set_once(&_named_data, NULL, NamedArray.data.fget)
    data = (<object> read)(variable)
    return data if cnp.PyArray_CheckExact(data) else variable.data


cdef Descriptor parse_xarray(object obj, object stream):
    """Import the array in a DataArray, a Variable or a NamedArray, with its dimension names.

    Each access to a lazily indexed array reads another array, which only this function refers to. The row's `types` refuses
    such an array.
    """
    cdef Descriptor a
    variable = getattr(obj, "variable", obj)      # of a DataArray, whose own attributes take longer
    data = data_of(variable)
    cdef bint wrapped = not cnp.PyArray_CheckExact(data) or Py_REFCNT(data) == 1
    a = (importers[WRAPPER] if wrapped else numpy.parse)(obj if wrapped else data, stream)
    dims = variable.dims
    if type(dims) is not tuple or len(<tuple> dims) != a.nd_ or a.nd_ > 1 and len(set(dims)) != a.nd_:
        return a
    for name in <tuple> dims:
        if type(name) is not str:
            return a
    if wrapped:
        return relabel(a, dims)      # a wrapped USMArray is its own import
    set_labels(a, make_dims(dims))
    return a


# ------------------------------------------------------------------------------------------------------------- export


cdef object to_numpy(Descriptor a, bint copied, bint allow_readonly):
    return numpy.emit(a)


cdef object to_numba(Descriptor a, bint copied, bint allow_readonly):
    """Export an array as a host ndarray, or as numba's device array for CUDA memory."""
    check_numba_memory(a, allow_readonly)
    check_numba_elements(a)
    if host_readable(a):
        source = numpy.find_source(a)
        return ndarray(a) if source is None else source
    if is_of_numba(a.base_, a):
        return a.base_
    from numba import cuda

    try:
        if len(cuda.gpus) == 1:      # selecting the device takes several microseconds
            return cuda.as_cuda_array(a)
        device = cuda.gpus[a.device_.device_id]      # numba's arrays belong to the current device
        device.__enter__()
        try:
            return cuda.as_cuda_array(a)
        finally:
            device.__exit__(None, None, None)
    except Exception as error:      # the CUDA driver or numba's support for it is missing
        raise Refusal("numba", f"as_cuda_array fails for memory on {device_name(a)} ({first_line(error)})") from error


cdef bint is_of_numba(object source, Descriptor a) except -1:
    """Return whether `source`, which `a` was imported from, is a device array of numba with the elements of `a`."""
    return (
        a.flags_ & WRITEABLE and root_of(type(source)) in ("numba", "numba_cuda") and source.dtype == get_dtype(a)
        and (source.shape, source.strides) == (a.shape, a.byte_strides)
    )


cdef int check_numba_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that neither the host nor CUDA can read."""
    if not host_readable(a) and a.device_.device_type != kDLCUDA:
        raise Refusal("numba", f"the memory is on {device_name(a)}, which numba cannot read", call="arrayhub.to_host(x)")
    return 0


cdef int check_numba_elements(Descriptor a) except -1:
    """Raise Refusal for elements that compiled functions do not support, and for CUDA memory without a CUDA device."""
    cdef bint on_host = a.device_.device_type != kDLCUDA
    if not on_host and not has_device():
        raise Refusal("numba", f"the memory is on {device_name(a)}, and no CUDA driver or device was found")
    # NumPy's characters for longdouble and clongdouble, and for float16, which numba supports on GPUs only
    if numba_lacks(get_dtype(a), "egG" if on_host else "gG"):
        raise Refusal("numba", f"compiled functions do not support the elements of {a!r}")
    return 0


cdef bint numba_lacks(object dtype, str characters) except -1:
    """Return whether numba lacks a type for elements, or for a field of elements. `characters` are those of such types."""
    if dtype.subdtype is not None:
        return numba_lacks(dtype.base, characters)
    if dtype.fields is not None:
        return any([numba_lacks(field, characters) for field, *_ in dtype.fields.values()])
    return not dtype.isnative or dtype.num >= dtypes.FIRST_USER_TYPENUM or dtype.char in characters or dtype.char == "V"


# --------------------------------------------------------------------------------------------------------- the table


ROWS = {name: Library(name, **columns) for name, columns in TABLE.items()}

# Libraries whose arrays arrayhub imports or exports by code, or whose deviations from the specifications it knows.
LIBRARIES = tuple([row for row in ROWS.values() if row.handled])
for _row in LIBRARIES:
    (<Library> _row).add()

# The libraries that `convert` exports to, by the name that it uses.
TARGETS = {row.like: row for row in ROWS.values() if row.device_type is not None or row.export_by is not None}

# Names of the libraries whose arrays can be nested, in `convert`.
NESTING = tuple([name for name, row in TARGETS.items() if row.nests])

library("numpy").set_importer(0, numpy.copy_scalar)
library("numpy").set_importer(1, numpy.parse, numpy.parse_by_dict)
library("numpy").set_exporter(to_numpy, numpy.check_memory, numpy.check_elements)
library("numba").set_exporter(to_numba, check_numba_memory, check_numba_elements)
library("python").set_importer(0, buffer.parse_bytes, buffer.parse)
library("python").set_importer(1, buffer.parse)
library("nanoarrow").set_importer(0, unpacked_buffer)
library("pyarrow").set_importer(0, parse_pyarrow)
library("polars").set_importer(0, parse_polars)
library("pandas").set_importer(0, parse_column)
library("xarray").set_importer(0, parse_xarray)
library("warp").set_importer(0, parse_warp)
library("mlx").set_importer(0, dlpack_first)
library("paddle").set_importer(0, parse_paddle)
library("av").set_importer(0, parse_plane)
library("PIL").set_importer(0, parse_image)
library("tensorflow").set_importer(0, without_strings)


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
