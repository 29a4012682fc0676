"""The kind of an array: library, device and labels. `like` and `Placement.convert` convert arrays to a given kind."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from arrayhub import transfer
from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Descriptor, Device
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import PASSES_ON, InterfaceError, name_of_type, root_of, show
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import Tree
from arrayhub.adapters.table import PROTOCOLS
from arrayhub.adapters.type_cache import types_generation
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import container_of, is_frame, with_index_columns, with_labels_of, without_index
from arrayhub.convert.functions import asarray, convert, protocols_of_type
from arrayhub.convert.names import NESTED, OWN, SPARSE, library_name, sparse_library
from arrayhub.convert.names import name_of_type as library_of_type
from arrayhub.libraries import plugins, wrappers
from arrayhub.libraries.known import row_of_type
from arrayhub.libraries.numpy import VALUES
from arrayhub.runtimes.host import is_host_readable

# Libraries whose arrays are in host memory only.
_HOST_ONLY = ("numpy", "polars", "pandas", "awkward")

# Libraries that have only sparse arrays, with the library of dense arrays in the same kind of memory.
_DENSE_LIBRARY = {"scipy": "numpy", "pydata_sparse": "numpy", SPARSE: OWN}

# Libraries whose arrays are in device memory only, with their first device.
_DEVICES = {"dpnp": "oneapi:0", "cupy": "cuda:0"}

# Modules whose name differs from the name that `convert` uses.
_MODULES = {"arrow": "pyarrow"}


@dataclass(eq=False, slots=True)
class Kind:
    """Library, device and labels of an array.

    Attributes
    ----------
    library : str
        Name that `convert` uses.
    device : Device or None
        Device of the memory. None (any device) if the kind was created from a module or a type.
    model : object
        The array whose labels and element type are used, or None.
    cls : type or None
        The array type. None if the kind was created from a module, a sparse array or the name of a library.
    sparse : type or None
        The sparse array type, if the kind was created from a sparse array or a sparse array type. Otherwise None.
    """

    library: str
    device: Device | None
    model: Any = None
    cls: type | None = None
    sparse: type | None = None

    def convert(
        self, obj: Any, call: str, copy: Copy = None, dtype: Any = None, device: Any = None, labels: bool = True
    ) -> Any:
        """Return `obj` as an array of this kind, with the labels of the model if `labels` is true. See `like`."""
        if sparse_library(obj) is not None:
            return hooks.sparse_like(call, obj, self.library, self.device, copy, dtype, device, self.sparse)
        array = self.asarray(obj, call, copy, dtype, device)
        if copy is True and not isinstance(array, Tree) and _is_new(array, obj):
            copy = None
        make = None if self.cls is None else container_of(self.cls)
        if not isinstance(array, Tree) and array.ndim == 0 and self.lacks_scalars():
            module = _MODULES.get(self.library, self.library)
            raise ValueError(
                f"{call}: the array has 0 dimensions; accepted by {module}: 1 or more."
                " Pass arrayhub.asarray(x).reshape(1), or numpy as the model"
            )
        if make is not None:
            made = make(self.model, array, copy, labels)
            return made if isinstance(array, Tree) else with_labels_of(obj, made, self.model, labels)
        if self.library == OWN:
            return self._with_dims(array) if labels else array
        # A type or a module does not have a device. Host memory is then copied to the first device of a device library.
        place = _DEVICES.get(self.library) if self.device is None and device is None and copy is None else None
        return convert(array, self.library, copy=copy, device=place if _is_on_host(array) else None)

    def with_missing(self, obj: Any, export: Callable[..., Any], missing: Any, copy: Copy) -> Any:
        """Export `obj` by `export` with a representation of its missing values, see `convert`."""
        if self.library == "pandas":
            made = hooks.with_value(without_index(obj), export, missing, copy, self.library)
            return with_labels_of(obj, made, self.model, True)
        if self.library in hooks.NESTED_CONSUMERS:
            return hooks.with_value(obj, export, missing, copy, self.library)
        if self.is_dataset():
            return hooks.with_value(obj, export, missing, copy)
        return hooks.with_missing(obj, export, missing, copy, True, self.library == "numpy")

    def is_dataset(self) -> bool:
        """Return whether this kind is an ``xarray.Dataset``, a table whose columns are NumPy arrays."""
        return self.library == "xarray" and getattr(self.cls, "__name__", None) == "Dataset"

    def lacks_scalars(self) -> bool:
        """Return whether the library lacks 0-d arrays, as libraries of columns do (except ``pyarrow.Tensor``)."""
        return self.library in hooks.NESTED_CONSUMERS and getattr(self.cls, "__name__", None) != "Tensor"

    def asarray(self, obj: Any, call: str, copy: Copy = None, dtype: Any = None, device: Any = None) -> Any:
        """Return `obj` as a USMArray, NestedArray or SparseArray on `device`, by default the device of this kind."""
        if sparse_library(obj) is not None:
            return hooks.sparse_like(call, obj, OWN, self.device, copy, dtype, device)
        allowed = check_copy(copy, call) is not False
        if self.library == NESTED:
            array = hooks.asnested(obj, copy=copy)
        else:
            array = self._columns_of(obj, copy) if dtype is None else None
            array = _imported(obj, copy, self.library) if array is None else array
        if isinstance(array, Tree):
            return self._nested(array, call, dtype, device, allowed)
        if dtype is not None:
            array = self._cast(array, obj, call, dtype)
        if device is not None:
            return transfer.to_device(array, device)
        return array if self.device is None else self._moved(array, call, allowed)

    def _columns_of(self, obj: Any, copy: Copy) -> Any:
        """Import a table as records, for a library with named columns. Return None if `_imported` must import `obj`.

        `_imported` imports a pandas DataFrame of one type as a matrix, without the names and the index. A conversion to
        pandas uses the matrix, because an import as records would replace NaN by Arrow's null. The matrix is also used
        if the columns are not contiguous and no copy is permitted, because pandas' Arrow export copies such columns.
        """
        if not self.is_dataset() and not (self.lacks_scalars() and self.library != "pandas" and is_frame(obj)):
            return None
        table = obj if self.library == "arrow" else with_index_columns(obj)
        if is_frame(obj) and copy is False and self.library in ("arrow", "polars"):
            array = array_of(obj)
            if array is not None and not array[:, :1].flags["C"]:
                return None
        try:
            return hooks.asnested(table, copy=None if copy else copy)
        except InterfaceError:
            raise
        except (BufferError, TypeError, ValueError):
            if self.library in ("polars", "awkward"):  # these libraries reject repeated column names
                raise
            return None

    def _nested(self, array: Any, call: str, dtype: Any, device: Any, allowed: bool) -> Any:
        if dtype is not None:
            raise TypeError(
                f"{call}: dtype is {show(dtype)}, but the array is not dense and has the type {array.type}; accepted:"
                " dtype=None"
            )
        target = self.device if device is None else device
        if target is None or array.device == Device(target):
            return array
        if not allowed and device is None:
            raise _elsewhere(call, array.device, target)
        return array.to_device(target)

    def _cast(self, array: Any, obj: Any, call: str, dtype: Any) -> Any:
        if isinstance(dtype, str) and dtype == "model":
            dtype = self.dtype(call)
            if not np.can_cast(array.dtype, dtype, "same_kind"):
                raise TypeError(
                    f"{call}: casting {array.dtype} to the model's {dtype} is not a 'same_kind' cast;"
                    f" pass dtype={str(dtype)!r}"
                )
        if array.dtype == requested_dtype(dtype):
            return array
        if not is_host_readable(array):
            return transfer.to_memory_of(array, asarray(array.to_host(), dtype=dtype))
        return asarray(obj if issubclass(type(obj), (bool, int, float, complex, list, tuple)) else array, dtype=dtype)

    def dtype(self, call: str) -> np.dtype[Any]:
        """Return the element type of the model."""
        if self.model is None:
            raise ValueError(
                f"{call}: dtype is 'model', but the model is a module or a type; accepted: an array as the model"
            )
        try:
            return asarray(self.model).dtype
        except PASSES_ON:
            raise
        except (BufferError, TypeError):
            own = getattr(self.model, "dtype", None)
            if own is None:
                raise
        found: np.dtype[Any] = requested_dtype(own)
        return found

    def _moved(self, array: Any, call: str, allowed: bool) -> Any:
        target = self.device
        if target is None or array.device == target:
            return array
        if target == CPU and is_host_readable(array):
            return array.to_host()
        if not allowed:
            raise _elsewhere(call, array.device, target)
        memory = array_of(self.model)
        if memory is not None and is_host_readable(array) and memory.device == target:
            return transfer.to_memory_of(memory, array)
        return transfer.to_device(array, target)

    def _with_dims(self, array: USMArray) -> USMArray:
        dims = getattr(self.model, "dims", None)
        if dims is None or array.shape != self.model.shape or array.dims == dims:
            return array
        return array.with_dims(dims)


def kind_of(model: Any, call: str) -> Kind:
    """Return the kind of an array, an array type or a library's module.

    Raises
    ------
    TypeError
        `model` is not an array, an array type or the module of a known library.
    """
    if issubclass(type(model), (ModuleType, type)):
        own = model if issubclass(type(model), type) else None
        sparse = own if own is not None and sparse_library(own) is not None else None
        try:
            return Kind(library_name(model), None, None, own, sparse)
        except ValueError as error:
            raise _model_error(call, model) from error
    cls: Any = type(model)
    sparse = None if issubclass(cls, np.ndarray) else sparse_library(model)
    if sparse is not None:
        return Kind(_DENSE_LIBRARY.get(sparse, sparse), hooks.sparse_device_of(model), sparse=cls)
    library = _library_of_array(cls, types_generation())
    if library is None:
        if issubclass(cls, str):
            raise _model_error(call, model, _named_library(model))
        while wrappers.unwraps(type(model)):
            model = wrappers.inside(model)
        cls = type(model)
        library = _library_of_array(cls, types_generation())
    if library is None:
        return _by_protocol(model, call)
    return Kind(library, device_of(model, library), model, cls)


@lru_cache(maxsize=1024)
def _library_of_array(cls: Any, generation: int) -> str | None:
    """Return the library of an array type, or None for wrappers of arrays and for other types."""
    if issubclass(cls, str) or not (issubclass(cls, VALUES) or _is_array_type(cls)):
        return None
    library = library_of_type(cls)
    if container_of(cls) is not None or library in (*hooks.NESTED_CONSUMERS, *plugins.emitting()):
        return library
    return None if wrappers.unwraps(cls) else library


def _is_array_type(cls: Any) -> bool:
    """Return whether a type has an importer, a row in the table of wrappers, or an attribute of a protocol.

    Libraries have types without arrays too, such as ``torch.device`` and ``numpy.random.Generator``.
    """
    has_importer, names = protocols_of_type(cls)
    if has_importer or wrappers.known(cls) is not None:
        return True
    return any(
        not row.on_instances or any(hasattr(cls, attribute) for attribute in row.attributes)
        for row in PROTOCOLS
        if row.name in names
    )


def same_kind(obj: Any, model: Any) -> bool:
    """Return whether `obj` already has the kind of `model`, so that `like` returns `obj` itself.

    The type of `obj` must be a type without labels. If `model` is a type, `obj` must be an instance of `model`. If
    `model` is an array, `model` must be an instance of the type of `obj`, and both must be on the same device.
    """
    cls: Any = type(obj)
    if issubclass(type(model), type):
        if not issubclass(cls, model) or library_of_type(model) is None:
            return False
    elif not issubclass(type(model), cls):
        return False
    library = _library_without_labels(cls, types_generation())
    return library is not None and (
        issubclass(type(model), type) or device_of(obj, library) == device_of(model, library)
    )


@lru_cache(maxsize=1024)
def _library_without_labels(cls: Any, generation: int) -> str | None:
    """Return the library that an array type belongs to, or None if the type may have labels or is not an array type.

    `like` may return arrays of a type without labels unchanged.
    """
    if root_of(cls) == "builtins" or issubclass(cls, (np.generic, Descriptor, Tree)) or container_of(cls) is not None:
        return None
    library = None if wrappers.unwraps(cls) else library_of_type(cls)
    row = row_of_type(cls)
    # The names differ for objects that are not arrays of the library, such as dpctl's memory, and for pyarrow's types.
    return None if row is not None and row.name != library else library


def _by_protocol(model: Any, call: str) -> Kind:
    """Return the kind of NumPy arrays for a host-readable array of an unknown library.

    Raises
    ------
    TypeError
        `asarray` rejects the model, or the host cannot read its memory.
    """
    try:
        array = asarray(model, copy=None)
    except PASSES_ON:
        raise
    except Exception as error:
        raise _model_error(call, model) from error
    if not is_host_readable(array):
        raise _model_error(call, model)
    return Kind("numpy", CPU, model, np.ndarray)


def device_of(model: Any, library: str) -> Device:
    """Return the device of an array, even if `asarray` rejects the array, for example because it requires a gradient.

    Pinned CUDA memory belongs to the device ``cpu``, and managed CUDA memory to its GPU.
    """
    if library in _HOST_ONLY:
        return CPU
    array = array_of(model)
    if array is not None:
        device = array.device
    elif hasattr(type(model), "__dlpack_device__"):
        device = Device(tuple(model.__dlpack_device__()))
    else:
        return CPU if getattr(model, "is_cpu", True) else hooks.asnested(model).device
    if device.type == "cuda_host":
        return CPU
    return Device(f"cuda:{device.id}") if device.type == "cuda_managed" else device


def array_of(model: Any) -> USMArray | None:
    """Return an object as a USMArray, or None if `asarray` rejects it."""
    if model is None:
        return None
    try:
        return asarray(model, copy=None)
    except PASSES_ON:
        raise
    except Exception:
        return None


def _imported(obj: Any, copy: Copy, library: str) -> Any:
    """Return `obj` as a USMArray, or as a NestedArray if it is not dense.

    For a library of columns, such as polars, NumPy's strings and records become a NestedArray, and so does a table,
    which `asarray` would copy to a matrix.
    """
    if issubclass(type(obj), Tree):
        return obj
    refusal = None
    try:
        array = asarray(obj, copy=False if library in hooks.NESTED_CONSUMERS or copy is False else None)
        is_dense = array.dtype.kind not in "SU" and array.dtype.names is None
        if is_dense or array.ndim == 0 or library not in hooks.NESTED_CONSUMERS:
            return array
    except (BufferError, TypeError) as error:
        refusal = error
    try:
        return hooks.asnested(obj, copy=None if copy else copy)
    except (BufferError, TypeError, ValueError):
        if refusal is None:
            raise
        raise refusal from None


def _is_on_host(array: Any) -> bool:
    return bool(array.device == CPU)


def _is_new(array: USMArray, obj: Any) -> bool:
    """Return whether `array` is a new copy of `obj`, so that another copy is not necessary."""
    return array.is_copy and array is not obj and not getattr(obj, "is_copy", False)


def _elsewhere(call: str, device: Device, target: Device) -> BufferError:
    return BufferError(f"{call}: the memory is on {device}, but the model is on {target}; pass copy=None, which copies")


def _named_library(model: Any) -> str:
    """Return advice for a string as the model, or "" if the string does not name a library."""
    try:
        library_name(model)
    except ValueError:
        return ""
    return f". Call arrayhub.convert(x, {str.__str__(model)!r})"


def _model_error(call: str, model: Any, advice: str = "") -> TypeError:
    role = "the argument" if call == "placement" else "the model"
    return TypeError(
        f"{call}: {role} {show(model)} is of type {name_of_type(type(model))}; accepted: an array of numpy, torch,"
        " jax, cupy, dpnp, pyarrow, polars, pandas, xarray, awkward or another library, a USMArray, a NestedArray, or"
        f" the array type or module of a library{advice}"
    )
