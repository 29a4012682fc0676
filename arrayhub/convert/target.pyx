"""The target of a conversion: library, class, device and model. `like`, `placement` and `adapt` convert to targets."""

import datetime
import sys
from functools import lru_cache, partial
from types import ModuleType

import numpy

cimport cython
from cpython.object cimport PyTypeObject

from arrayhub._core.cpython.atomics cimport item_of
from arrayhub._core.cpython.type_notes cimport recall, version_tag
from arrayhub._core.descriptor cimport Descriptor, make_device
from arrayhub._core.runtime cimport device_of as device_of_array
from arrayhub._core.tree cimport Tree
from arrayhub.adapters cimport type_cache
from arrayhub.adapters.arrow cimport is_stream
from arrayhub.adapters.type_cache cimport REMEMBERED_ARRAY_TYPES, types_generation
from arrayhub.convert.functions cimport give_as, import_allowed, read_inner
from arrayhub.libraries.known cimport Library
from arrayhub.libraries.numpy cimport is_value

from arrayhub import transfer
from arrayhub._core.copying import check_copy
from arrayhub._core.descriptor import CPU, Device, is_host_readable
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import PASSES_ON, PlaceError, Refusal, TypeRefusal, form_of, name_of_type, show
from arrayhub._core.hooks import hooks
from arrayhub.adapters.table import PROTOCOLS
from arrayhub.array.casting import check_fit
from arrayhub.convert.containers import BY_SHAPE, class_like, maker_of, with_arrow_type
from arrayhub.convert import functions
from arrayhub.convert.functions import asarray, convert_to_library, narrow_for_jax, protocols_of_type
from arrayhub.convert.labels import TABLES, check_labels, get_names, label_kind, shape_of, with_coords, with_index, with_labels
from arrayhub.convert.names import EXPORT_BY, NESTED, OWN, library_name, sparse_library
from arrayhub.convert.names import name_of_type as library_of_type
from arrayhub.libraries import plugins, wrappers
from arrayhub.libraries.known import NESTING, TARGETS, row_of_type
from arrayhub.libraries.numpy import VALUES, ndarray

cdef dict _TARGETS = TARGETS
cdef Library _WITHOUT_ROW = Library("")

# For a library of sparse arrays, the first library of dense arrays in the same kind of memory.
cdef dict _DENSE_LIBRARY = {row.sparse_by: name for name, row in reversed(_TARGETS.items()) if row.sparse_by is not None}

cdef str _ALLOW_COPY = "copy=None, which copies"
cdef object _CAPSULE = type(datetime.datetime_CAPI)
cdef object _NDARRAY = numpy.ndarray


cdef class ArrayType:
    """Facts about arrays that their type determines."""

    def __cinit__(self, library, owner=None, sparse=None, bint wraps=False, bint refused=False, bint host=False,
                  bint has_maker=False):
        self.library, self.owner, self.sparse = library, owner, sparse
        self.wraps, self.refused, self.host = wraps, refused, host
        self.has_maker = has_maker
        self.dense = not wraps and (owner in functions.EXPORTERS or owner == OWN)

    cdef tuple fields(self):
        return (self.library, self.owner, self.sparse, self.wraps, self.refused, self.host, self.has_maker)


cdef object _is_sparse_tensor = lru_cache(maxsize=16)(lambda layout: str(layout).startswith("torch.sparse_"))


@cython.freelist(8)      # without one, every allocation counts as a reason for a garbage collection
cdef class Target:
    """Library, class, device and model that an object is converted to. The .pxd describes the fields."""

    def __init__(self, str library not None, cls=None, device=None, model=None):
        self.set_fields(library, cls, device, model, None if model is None else type_row(type(model)))

    def __reduce__(self):
        return Target, (self.library, self.cls, self.device, self.model)

    cdef int set_fields(self, str library, cls, device, model, ArrayType model_type) except -1:
        self.library, self.cls, self.device, self.model, self.model_type = library, cls, device, model, model_type
        self.row = _TARGETS.get(library, _WITHOUT_ROW)
        self.host_only = self.row.device_type == "cpu"
        self.needed = None if self.row.reads_host else self.row.device_type
        return 0

    cpdef object convert(self, obj, str call, copy=None, dtype=None, bint labels=False, missing=None, bint move=False,
                         str advice=_ALLOW_COPY, Descriptor array=None):
        """Return `obj` as an array of this target. The parameters are those of `like`.

        `move` permits a copy to the device, as ``copy=True`` does. `advice` is what an error suggests without `move`.
        `array` is the imported `obj`, or None.
        """
        cdef ArrayType found = type_row(type(obj))
        cdef object cls = self.cls
        if array is None and found is not None and missing is None and (
            found.sparse is not None or found.owner == "torch" and not found.refused and _is_sparse_tensor(obj.layout)
        ):
            return self._convert_sparse(obj, call, copy, dtype, move)
        cdef bint moves = move or copy is True
        cdef bint is_of_library = found is not None and found.owner == self.library and not found.refused
        cdef str inner = self._inner() if self.library == "xarray" else None      # the library of the data
        cdef bint checks = isinstance(dtype, str) and dtype == "model"
        cdef bint narrows = dtype is None and (self.library == "jax" or inner == "jax")
        given = asarray(obj) if type(obj) is _CAPSULE else obj      # a capsule can be read only once
        cdef bint has_class = cls is None and self.model_type is not None and self.model_type.has_maker
        if (checks or narrows or has_class) and is_stream(obj):
            given = (hooks.nested.import_nested(obj) if self.row.nests or self.library == NESTED      # keeps the columns
                     else functions.convert(obj, "numpy", copy=None, missing=missing))
        if checks:
            dtype = self._check_fit(given, call, missing)      # the export casts, as for other types
        elif narrows:
            given = _narrow(given, call, copy, missing)
            copy = None if given is not obj and copy is True else copy      # the cast has made a copy
        # The export replaces missing values before it moves the elements, which are not missing in a dense array.
        cdef bint fills = missing is not None and moves and not self.host_only
        if self.device is not None and not self.host_only and not fills:
            given = self._move(given, call, moves, advice)
        if has_class:
            cls = class_like(self.model, partial(_has_columns, given))
        cdef bint is_own = is_of_library and given is obj and copy is not True
        try:
            if self.library == "xarray" and self.cls is None and cls is not None:
                if labels and label_kind(type(self.model)) == "coords" and shape_of(given) == shape_of(self.model):
                    data = functions.convert(given, inner, copy=copy, dtype=dtype, missing=missing)
                    return with_coords(data, self.model)
                made = self._wrap(given, inner, copy, dtype, missing)
            elif labels and copy is not True and dtype is None and missing is None and _takes_index(given, self.model):
                return with_index(given, self.model)
            elif is_own and missing is None and dtype is None and (
                self.row.returns_own if cls is None else issubclass(type(obj), cls)
            ):
                made = obj
            else:
                to = None
                if fills or moves and copy is not True and (found is None or not found.host or self.needed is not None):
                    to = self.device if self.device is not None or self.needed is None else f"{self.needed}:0"
                model = obj if is_of_library else self.model      # an array of the library keeps its own metadata
                array = array if given is obj and not is_own else None
                made = self._export(given, array, cls, copy, dtype, to, missing, model)
        except BufferError as error:
            if not moves:
                _check_place(self, given, call, advice)
            if given is not obj and isinstance(error, Refusal):      # whose call is for the moved array
                error.call = ""
            raise
        if self.library == "pandas" and self.model is not None:
            made = with_arrow_type(made, self.model, copy)
        elif self.row.call is None and self.model is not None and self.library not in EXPORT_BY:
            made = _with_device_of(made, self.model, call, copy)
        return with_labels(made, self.model, obj) if labels and self.model is not None else made

    cdef object _export(self, given, Descriptor array, cls, copy, dtype, device, missing, model):
        """Return the result of `convert` for a library, or for a class. `array` is the imported `given`, or None."""
        if cls is not None:
            return functions.convert(given, cls, copy=copy, dtype=dtype, device=device, missing=missing)
        if self.row.call is None:
            return convert_to_library(given, self.library, copy, dtype, device, missing, False, model)
        array = array if dtype is None and device is None and missing is None else None
        return give_as(given, self.row, copy, dtype, device, missing, False, array)

    def _convert_sparse(self, obj, str call, copy, dtype, bint move):
        cdef bint checked = isinstance(dtype, str) and dtype == "model"
        if checked:
            dtype = self.dtype(call)
        cls = self.cls if self.cls is not None else type(self.model)
        device = self.device if move else None
        sparse_class = cls if sparse_library(cls) is not None else None
        return hooks.sparse.convert_like(call, obj, self.library, self.device, copy, dtype, device, sparse_class, checked)

    cdef str _inner(self):
        """Return the library of the data of the model, which belongs to xarray."""
        if label_kind(type(self.model)) not in ("coords", "dims"):
            return "numpy"
        return library_of_type(type(self.model.data)) or "numpy"

    def _wrap(self, obj, str library, copy, dtype, missing):
        """Return `obj` as an object of xarray. Its data belongs to a library, that of the data of the model."""
        made = functions.convert(obj, "xarray", copy=copy, dtype=dtype, missing=missing) if library == "numpy" else None
        if made is None:
            data = functions.convert(obj, library, copy=copy, dtype=dtype, missing=missing)
            made = sys.modules["xarray"].DataArray(data, dims=asarray(obj).dims if missing is None else None)
        return made.variable if label_kind(type(self.model)) == "dims" else made

    def _check_fit(self, obj, str call, missing):
        """Return the element type of the model, or None if `obj` has it. Raise an error if a value does not fit."""
        own = self.dtype(call)
        given = obj if missing is None else functions.convert(obj, "numpy", copy=None, missing=missing)
        try:
            array = asarray(given, copy=None)
        except Refusal as error:      # of missing elements, which fit every type
            try:
                array = asarray(numpy.ma.compressed(functions.convert(given, "numpy", copy=None, missing="mask")))
            except Refusal:
                raise error
        if array.dtype == own:
            return None
        check_fit(ndarray(transfer.to_host(array)), own, call)
        return own

    def dtype(self, str call not None):
        """Return the element type of the model."""
        if self.model is None:
            raise ValueError(f"{call}: dtype is 'model', but the model is a module or a type; accepted: an array as the model")
        try:
            return asarray(self.model).dtype
        except PASSES_ON:
            raise
        except (BufferError, TypeError) as error:
            refusal = error
        own = getattr(self.model, "type" if self.library == "arrow" else "dtype", "")      # "" is not a type
        try:
            return requested_dtype(own)
        except TypeError:
            reason = f"'model' requires a model with elements of one type, and {form_of(refusal).reason}"
            raise TypeRefusal("dtype", reason) from refusal

    cdef object _move(self, obj, str call, bint allowed, str advice):
        """Return `obj` in the kind of memory of the model. Lists are built there."""
        if type(obj) is _NDARRAY and self.device == CPU:
            return obj
        device = device_of(obj)
        if self.device is None or device == self.device:
            return obj
        if self.device == CPU and is_host_readable(array_of(obj)):
            return asarray(obj).to_host()
        if not allowed and not is_value(obj):
            reason = f"the memory is on {device}, but the model is on {self.device}"
            raise PlaceError(call, reason, f"memory on the same device. Pass {advice}")
        if issubclass(type(obj), Tree):
            return obj.to_device(self.device)
        array, memory = asarray(obj, copy=None), array_of(self.model)
        if memory is not None and is_host_readable(array) and memory.device == self.device:
            return transfer.to_memory_of(memory, array)
        return transfer.to_device(array, self.device)


cdef bint _takes_index(obj, model) except -1:
    """Return whether `obj` is an ndarray of numbers, and `model` is a Series of the same length with a type of NumPy."""
    if type(obj) is not _NDARRAY or obj.ndim != 1 or obj.dtype.kind not in "biufc" or label_kind(type(model)) != "series":
        return False
    return isinstance(model.dtype, numpy.dtype) and len(obj) == len(model)


def _with_device_of(made, model, str call, copy):
    """Return an array of a library that `convert` knows by ``from_dlpack``, on the device of the model.

    The library may have devices that ``__dlpack_device__`` does not distinguish, such as those of array_api_strict.
    """
    device = getattr(model, "device", None)
    if device is None or getattr(made, "device", device) == device or not hasattr(made, "to_device"):
        return made
    if copy is False:
        raise PlaceError(call, f"the result is on {made.device}, but the model is on {device}", "copy=None")
    return made.to_device(device)


def _narrow(obj, str call, copy, missing):
    """Return `obj`, or its elements as jax narrows elements of 64 bits if x64 is disabled."""
    from arrayhub.libraries.jax import has_x64

    found = array_type(obj)
    if has_x64() or copy is False or found is not None and found.owner == "jax":
        return obj
    mask = None
    if missing is not None:
        obj = functions.convert(obj, "numpy", copy=copy, missing=missing)
        mask = obj.mask if isinstance(obj, numpy.ma.MaskedArray) else None
    array = array_of(obj if mask is None else obj.data, None if copy else copy)
    narrow = None if array is None else narrow_for_jax(array, f"{call}: jax without x64")
    if narrow is array:
        return obj      # the export of `obj` makes a copy, or raises the error
    return narrow if mask is None else numpy.ma.MaskedArray(ndarray(narrow), mask)


cdef int _check_place(Target target, obj, str call, str advice) except -1:
    """Raise PlaceError for an array whose memory a library cannot read, because ``copy=None`` does not move arrays."""
    if is_value(obj) or target.row.device_type is None:
        return 0
    array = array_of(obj)
    if array is None:
        return 0
    needed = target.needed or "cpu"
    fits = array.device.type.startswith(target.row.device_type) or needed == "cpu" and is_host_readable(array)
    # A library that also lacks the elements rejects a moved array, too.
    if not fits and (target.row.call is None or not hooks.advice.find_obstacle(target.row.check_export, array, True)):
        accepted = f"memory on {needed}. Pass {advice.format(needed)}"
        raise PlaceError(call, f"the memory is on {array.device}", accepted)
    return 0


def _has_columns(obj):
    """Return whether an object has two dimensions, or names of columns."""
    ndim = getattr(obj, "ndim", None)
    if ndim is None and is_value(obj):
        return issubclass(type(obj), (list, tuple)) and len(obj) != 0 and issubclass(type(obj[0]), (list, tuple))
    if ndim is None:
        array = None if label_kind(type(obj)) else array_of(obj)
        ndim = len(shape_of(obj)) if array is None else array.ndim
    return ndim == 2 or isinstance(get_names(obj), list)


cpdef Descriptor array_of(obj, copy=False):
    """Import an object, or return None for an object that can be read only once, or if the import fails."""
    if obj is None or type(obj) is _CAPSULE or is_stream(obj):
        return None
    try:
        return import_allowed(obj, copy, "asarray")
    except PASSES_ON:
        raise
    except Exception:      # a conversion raises the error
        return None


def device_of(obj):
    """Return the device of an array, even if `asarray` rejects the array, for example because it requires a gradient.

    Pinned CUDA memory belongs to the device ``cpu``, and managed CUDA memory to its GPU.
    """
    return find_device(obj, type_row(type(obj)), None)


cdef object find_device(obj, ArrayType found, Descriptor array):
    """Return the device of an array of type `found`. `array` is the imported `obj`, or None."""
    if found is not None and (found.host or array is None and is_on_cpu(obj, found)):
        return CPU
    array = array_of(obj) if array is None else array
    if array is not None:
        device = make_device(device_of_array(array))
    elif sparse_library(obj) is not None:
        device = hooks.sparse.device_of(obj) or CPU
    else:
        try:
            device = Device(tuple(obj.__dlpack_device__()))
        except PASSES_ON:
            raise
        except Exception:
            device = _device_of_columns(obj)
    if device.type == "cuda_host":
        return CPU
    return Device(f"cuda:{device.id}") if device.type == "cuda_managed" else device


def _device_of_columns(obj):
    """Return the device of Arrow columns, and the host for arrays without memory, such as traced arrays."""
    try:
        return hooks.nested.import_nested(obj).device if hasattr(type(obj), "__arrow_c_device_array__") else CPU
    except PASSES_ON:
        raise
    except Exception:
        return CPU


# ------------------------------------------------------------------------------------------------------ types of arrays


_NO_ARRAYS = (type(None), str, bytes, dict, set, type, ModuleType, *VALUES)


cpdef ArrayType array_type(obj):
    """Return what the type of an array determines, or None for objects that are not arrays.

    An array is an object with an importer, a protocol of arrays, or a type that the table of wrappers lists. Objects
    with ``__array__``, and objects with a shape, an element type and elements (``shape``, ``dtype``, ``__getitem__``)
    are arrays, too, although `asarray` refuses them.
    """
    cdef ArrayType found = type_row(type(obj))
    cls = type(obj)
    if found is not None:
        has_unit = found.refused and (hasattr(cls, "unit") or hasattr(cls, "units"))
        return None if has_unit and getattr(obj, "shape", ()) == () else found      # a number with a unit
    if issubclass(cls, _NO_ARRAYS) or not hasattr(obj, "__dict__"):
        return None
    return _UNKNOWN if any(map(partial(_has, obj), _ON_INSTANCES)) else None


cpdef bint is_dense(obj) except -1:
    """Return whether the type of `obj` is that of a library of dense arrays. Some instances may be sparse or jagged."""
    cdef ArrayType found = type_row(type(obj))
    return found is not None and found.dense


def _has(obj, attribute):
    try:
        return hasattr(obj, attribute)
    except PASSES_ON:
        raise
    except Exception:      # of the object's own __getattr__
        return False


cdef ArrayType _UNKNOWN = ArrayType("numpy")
cdef list _ON_INSTANCES = [name for row in PROTOCOLS if row.on_instances for name in row.attributes]

# The facts that `type_row` returns, by the number that the type cache stores for a type. 0 is the number of unknown types.
cdef list _facts = [None]
cdef dict _numbers = {}      # index in _facts, by the fields


cdef ArrayType type_row(type cls):
    """Return what a type determines, see `array_type`. The facts are cached until a library is registered."""
    cdef unsigned int number = recall(type_cache.array_types, REMEMBERED_ARRAY_TYPES, <PyTypeObject*> cls)
    if number != 0:
        return item_of(_facts, number)
    cdef unsigned int version = version_tag(<PyTypeObject*> cls)
    cdef int computed_in = types_generation()
    cdef ArrayType found = _determine(cls)
    number = type_cache.number_of(_facts, _numbers, None if found is None else found.fields(), found)
    type_cache.write_since(
        computed_in, type_cache.array_types, REMEMBERED_ARRAY_TYPES, <PyTypeObject*> cls, version, number)
    return found


cdef ArrayType _determine(type cls):
    sparse = sparse_library(cls)
    if sparse is not None:
        return ArrayType(_DENSE_LIBRARY.get(sparse, "numpy"), sparse, sparse)
    if issubclass(cls, _NO_ARRAYS):
        return None
    if cls is _CAPSULE:
        return _UNKNOWN
    row = wrappers.known(cls)
    wraps = not row.asked and (row.attribute is not None or row.parse is not None)
    refused = not row.asked and not wraps
    speaks = _speaks(cls, row.asked)
    # Some arrays lack `dtype` (pyarrow.SparseCOOTensor). Proxies of the standard library, such as that of a dict, are values.
    holds = (refused or row.advice and hasattr(cls, "shape")) and row.root not in sys.stdlib_module_names
    if not (speaks or wraps or holds or _resembles_array(cls)):
        return None
    library = library_of_type(cls)
    make = maker_of(cls)
    has_maker = make is not None and make not in BY_SHAPE
    is_container = make is not None or library in (*NESTING, *plugins.emitting())
    owner = None if library is None or (wraps and not is_container) else _owner(cls, library, refused)
    refused = refused or not (speaks or wraps)
    host = _TARGETS.get(library, _WITHOUT_ROW).device_type == "cpu"
    return ArrayType(library or "numpy", owner, None, wraps and not is_container, refused, host, has_maker)


def _speaks(cls, may_import):
    """Return whether a type has an importer, or an attribute of a protocol. Attributes of instances do not count."""
    has_importer, names = protocols_of_type(cls)
    rows = [row for row in PROTOCOLS if row.name in names]
    own = [row for row in rows if not row.on_instances or any(hasattr(cls, name) for name in row.attributes)]
    return bool(own) or (has_importer and may_import)


def _resembles_array(cls):
    if any("__call__" in vars(base) for base in cls.__mro__):  # such as numpy.poly1d
        return False
    return hasattr(cls, "__array__") or all(hasattr(cls, name) for name in ("shape", "dtype", "__getitem__"))


def _owner(cls, library, refused):
    """Return the library whose functions receive arrays of a type unchanged, or None."""
    if library == "numpy":
        return "numpy" if issubclass(cls, _NDARRAY) and not refused else None
    if issubclass(cls, (Descriptor, Tree)):
        return library
    row = row_of_type(cls)
    # The names differ for objects that are not arrays of the library, such as dpctl's memory.
    if row is not None and row.name != library and row.name != "pyarrow":
        return None
    return None if cls.__name__ == "usm_ndarray" else library


# -------------------------------------------------------------------------------------------------------------- models


def convert_to(Target target not None, obj, str call not None, copy, dtype=None, bint labels=False, missing=None):
    """Call `Target.convert`, which may move `obj` unless `copy` is False. A refusal has the call that works for `obj`.

    `call` is the name of the function at the start of error messages.
    """
    copy = copy if copy is None else check_copy(copy, call)
    if labels and label_kind(type(obj)) and shape_of(obj) == shape_of(target.model):
        keeps_columns = label_kind(type(target.model)) in TABLES
        check_labels(call, [("obj", obj, False), ("model", target.model, False)], not keeps_columns)
    try:
        return target.convert(obj, call, copy, dtype, labels, missing, copy is not False)
    except Refusal as error:
        refusal = error
    is_complete = refusal.call or target.library == OWN
    raise refusal if is_complete else hooks.advice.complete_refusal(
        refusal, obj, target.library, copy, dtype, None, missing)


cpdef Target target_of(model, str call):
    """Return the target for an array, an array type or a library's module as the model.

    Raises
    ------
    TypeError
        `model` is not an array, an array type or the module of a known library.
    """
    cdef ArrayType found = array_type(model)      # None for a type, a module, a number or a list
    if found is not None and found.owner is not None and not found.refused:
        return target_like(model, found)
    if issubclass(type(model), (ModuleType, type)):
        cls = model if issubclass(type(model), type) else None
        try:
            return Target(library_name(model), cls)
        except ValueError as error:
            raise _model_error(call, model) from error
    if is_value(model) or type(model) is bytes:
        return Target("numpy", None, CPU, model)
    if found is None or found.refused:
        raise _model_error(call, model, _named_library(model) if issubclass(type(model), str) else "")
    if not (found.host or found.wraps) and library_of_type(type(model)) is None:
        array = array_of(model, None)
        if array is None or not is_host_readable(array):  # an array of an unknown library
            raise _model_error(call, model)
    return target_like(model, found)


cdef Target target_like(model, ArrayType found, Descriptor array=None):
    """Return the target for an array of type `found`. Arrays of unknown libraries on a device become USMArrays.

    `array` is the imported `model`, or None.
    """
    while found.wraps:
        model = read_inner(model, wrappers.known(type(model)), wrappers)
        found = array_type(model) or _UNKNOWN
        array = asarray(model, copy=None) if found.wraps else None      # raises for wrappers that lead back to themselves
    device = find_device(model, found, array)
    unknown = found.owner is None and device != CPU and library_of_type(type(model)) is None
    cdef Target target = Target.__new__(Target)      # faster than a call of the type
    target.set_fields(OWN if unknown else found.library, None, device, model, found)
    return target


cdef bint is_on_cpu(model, ArrayType found) except -1:
    """Return whether a tensor of torch is in host memory, also one that `asarray` rejects. Return False for other arrays."""
    try:
        return found.owner == "torch" and model.is_cpu is True      # a subclass may raise any error
    except PASSES_ON:
        raise
    except Exception:
        return False


def _named_library(model):
    """Return advice for a string as the model, or "" if the string does not name a library."""
    advice = f". Call arrayhub.convert(x, {str.__str__(model)!r})"
    try:
        library_name(model)
    except ValueError:
        advice = ""
    return advice


def _model_error(str call, model, str advice=""):
    role = "the argument" if call == "placement" else "the model"
    return TypeError(
        f"{call}: {role} {show(model)} is of type {name_of_type(type(model))}; accepted: an array of numpy, torch,"
        " jax, cupy, dpnp, pyarrow, polars, pandas, xarray, awkward or another library, a USMArray, a NestedArray, or"
        f" the array type or module of a library{advice}"
    )
