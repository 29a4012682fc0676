"""Export of sparse arrays: `as_scipy`, the functions that `convert`, `like` and `placement` call, and the conversion of
arrays that a library does not accept.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from arrayhub import transfer
from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.errors import NO_CUDA_DEVICE, Refusal, name_of_type, needed, show
from arrayhub._core.hooks import hooks
from arrayhub.convert.functions import as_cupy, as_numpy, as_torch, asarray
from arrayhub.convert.names import OWN, SPARSE, sparse_library
from arrayhub.libraries.jax import NARROWED, has_x64
from arrayhub.runtimes.cuda import has_device
from arrayhub.runtimes.host import is_host_readable
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import (
    FORMATS,
    PADDED,
    SEEN,
    TRUSTED,
    has_padding,
    is_canonical,
    is_on_host,
    structure_of,
    to_format,
    validate_export,
)
from arrayhub.sparse.libraries import RULES, TYPE_NUMBERS, SparseLibrary, assparse, change, sparse_or_none


def as_scipy(obj: Any, /, *, copy: Copy = False, dtype: Any = None, device: Any = None, missing: Any = None) -> Any:
    """Return a SciPy sparse array that shares the memory of `obj`.

    Parameters
    ----------
    obj : object
        Any object that `assparse` accepts.
    copy : {False, None, True}, optional
        False: share the memory, or raise BufferError if a part requires a copy. None: copy only parts that require a
        copy. True: copy each part.
    dtype, device : optional
        As in `arrayhub.as_numpy`.
    missing : None
        Accepted for uniformity. Sparse arrays do not have missing values.

    Returns
    -------
    scipy.sparse.coo_array, csr_array, csc_array or bsr_array
        An array in the format of `obj`. Parts in read-only memory are read-only. SciPy's arrays and matrices are
        returned unchanged, or as ``obj.copy()`` if `copy` is True. To choose between an array and a matrix, use `like`,
        as in ``like(obj, scipy.sparse.csr_matrix)``.

    Raises
    ------
    TypeError
        `obj` is not a sparse array.
    BufferError
        SciPy does not support the format or the element type, or a copy is required and `copy` does not permit it.
    ImportError
        SciPy is not installed.

    Examples
    --------
    >>> import torch
    >>> as_scipy(torch.eye(3).to_sparse_csr()).diagonal()
    array([1., 1., 1.], dtype=float32)
    """
    try:
        given, copy = _apply_request(obj, copy, dtype, device, missing, "as_scipy")
        if sparse_library(given) == "scipy":
            return given.copy() if copy else given
        return give_any(given, "scipy", copy)
    except (BufferError, TypeError, ValueError) as error:
        raise hooks.advice.complete_refusal(error, obj, "scipy")  # noqa: B904


def as_pydata_sparse(obj: Any, copy: Copy, dtype: Any, device: Any, missing: Any) -> Any:
    """Return a sparse array of the library sparse, for ``convert(x, "pydata_sparse")``."""
    obj, copy = _apply_request(obj, copy, dtype, device, missing, "convert")
    return give_any(obj, "pydata_sparse", copy)


def _apply_request(obj: Any, copy: Copy, dtype: Any, device: Any, missing: Any, call: str) -> tuple[Any, Copy]:
    """Apply `dtype` and `device` to a sparse object. Return it and the argument `copy` for its export."""
    copy = check_copy(copy, call)
    if missing is not None:
        raise ValueError(f"{call}: missing is {show(missing)}; accepted: None, as sparse arrays lack missing values")
    if dtype is None and device is None:
        return obj, copy
    changed = change(obj, dtype, device)
    return changed, copy if changed is obj else None


def give_any(obj: Any, library: str, copy: Copy = False, allow_readonly: bool = False, matrix: bool = False) -> Any:
    """Convert a sparse object of any library to a sparse array of `library`.

    `matrix` requests a SciPy matrix instead of a SciPy sparse array. Raise Refusal if the library does not support this
    sparse array, or a copy is required and `copy` does not permit it.
    """
    copy = check_copy(copy, f"as_{library}")
    x = obj if type(obj) is SparseArray else assparse(obj, copy=None if copy else copy)
    if library not in RULES:
        raise Refusal(
            library,
            f"{name_of_type(type(obj))} is sparse, and {library} does not have sparse arrays; accepted by:"
            f" {', '.join(RULES)}. Use arrayhub.assparse(x).to_dense(), a dense copy",
        )
    stays = is_on_host(x) or (x.device.type == "cuda" and library in ("torch", "jax", "cupy"))
    if copy is None and not stays:
        reason = f"the memory is on {x.device}, and only device= and copy=True move it to another device"
        raise Refusal(library, reason)
    conformed = conform(x, library, copy is not False)
    if copy:
        shared = {id(array) for array in (x.data, *structure_of(x))}  # `conform` has copied the other parts
        conformed = conformed._map(lambda array: transfer.copy(array) if id(array) in shared else array)
    row = RULES[library]
    options: dict[str, Any] = {"copy": None if copy else copy}
    if row.export in (as_torch, as_cupy):  # the other libraries have read-only arrays
        options["allow_readonly"] = allow_readonly
    return row.emit(conformed, partial(row.export, **options), matrix)  # type: ignore[misc]


# For a dense model of the first library, `like` returns a sparse array of the second library.
_SPARSE_LIBRARY = {"numpy": "scipy", "numba": "scipy", OWN: SPARSE}


def device_of(model: Any) -> Device | None:
    """Return the device of a sparse array, even if it requires a gradient. Return None for other objects."""
    if sparse_library(model) in ("scipy", "pydata_sparse"):
        return CPU
    x = sparse_or_none(model.detach() if getattr(model, "requires_grad", False) else model)
    return None if x is None else x.device


def convert_like(
    call: str,
    obj: Any,
    library: str,
    where: Device | None,
    copy: Copy = None,
    dtype: Any = None,
    device: Any = None,
    cls: type | None = None,
    checked: bool = False,
) -> Any:
    """Return the sparse array `obj` as a sparse array of `library`, in the same format.

    The target is `device`, or the model's device `where` if `device` is None. `obj` itself is returned if it already
    belongs to the library and is on this device, and neither `dtype` nor a copy is requested.

    The parameters `copy`, `dtype` and `device` are those of `arrayhub.like`. `cls` is the type of the model. If
    `checked` is true, values that `dtype` cannot represent raise an error.
    """
    own = None if cls is None else sparse_library(cls)
    library = own or _SPARSE_LIBRARY.get(library, library)
    target = where if device is None else Device(device)
    copy = check_copy(copy, call)
    unchanged = dtype is None and not copy and _is_of(obj, library, cls)
    if unchanged and (target is None or device_of(obj) == target):
        return obj
    x = assparse(obj, copy=None if copy else copy)
    if dtype is None and library == "jax" and not has_x64():
        dtype, checked = NARROWED.get(x.dtype.name), True
    if dtype is not None:
        x = x._cast(dtype, call if checked else "")
    if target is not None and x.device != target:
        if device is None and copy is False:
            raise Refusal(
                call, f"the memory is on {x.device}, but the model is on {target}; pass copy=None, which copies"
            )
        x = x.to_device(target)
    if library == SPARSE:
        return assparse(x, copy=copy)
    return give_any(x, library, copy, matrix=cls is not None and _is_matrix(cls))


def _is_of(obj: Any, library: str, cls: type | None) -> bool:
    """Return whether an object belongs to a library, and is a matrix if and only if the model's type `cls` is a matrix.

    The format is not compared.
    """
    if library == SPARSE:
        return type(obj) is SparseArray
    return sparse_library(obj) == library and (cls is None or _is_matrix(type(obj)) == _is_matrix(cls))


def _is_matrix(cls: type) -> bool:
    """Return whether a type is one of SciPy's matrices, whose operators differ from those of arrays."""
    return any(base.__name__ == "spmatrix" for base in cls.__mro__)


# ------------------------------------------------------------------------- conversion of what a library does not accept

_COUNTS = "the batches have different numbers of stored values"


def conform(x: Any, library: str, copy: bool | None) -> Any:
    """Return `x` itself if a library accepts it, else an array in which the rejected parts are converted.

    Raise Refusal if the library does not support the format, or a conversion is required and `copy` is not true, and
    InterfaceError if an index or a pointer is invalid.
    """
    rules = RULES[library]
    if x._state & rules.bit:
        return x
    _check_kind(x, rules, library)
    given = x
    if library == "jax":
        needed("jax", "to create its sparse arrays")
    if rules.host and not is_on_host(x):
        if not copy:
            raise Refusal(library, _unreadable(x, library), call="x.to_host()")
        x = x.to_host()
    validate_export(x)
    while (obstacle := _find_obstacle(x, rules, library)) is not None:
        reason, convert = obstacle
        if not copy:
            raise Refusal(library, reason)
        x = convert(x, rules, library)
    if x is given:
        x._state |= rules.bit
    return x


def _unreadable(x: Any, library: str) -> str:
    return f"the memory is on {x.device}, which {library} cannot read"


def _find_obstacle(x: Any, rules: SparseLibrary, library: str) -> tuple[str, Callable[..., Any]] | None:
    """Return why a library requires a copy of an array, and the function that makes it, or None."""
    if x._state & PADDED and library != "jax":
        if not is_on_host(x) or has_padding(x):
            return "some elements are padding, which only jax ignores", _convert_to_canonical
        x._state &= ~PADDED
    if x.format in rules.canonical and not x._state & TRUSTED and is_on_host(x) and not is_canonical(x):
        reason = "the indices are unsorted or repeated, and the library would compute wrong results"
        return reason, _convert_to_canonical
    accepted, arrays = _list_index_types(x, rules, library), structure_of(x)
    if not any(all(array.typenum in TYPE_NUMBERS[name] for array in arrays) for name in accepted):
        names = " and ".join(sorted({array.dtype.name for array in arrays}))
        return f"indices of {names} are not supported; accepted: {' or '.join(accepted)}", _convert_indices
    if rules.joined and x.format == "coo" and x.coords_array is None:
        return "the coordinates are separate arrays, and the library requires a single array", _convert_indices
    if rules.values and not x.dtype.isnative:
        return f"values of {x.dtype} are not in native byte order", _convert_byte_order
    return None


def why_copied(x: Any, library: str) -> str:
    """Return why the export of an array copies, or "". Whether indices are sorted is known after the first export."""
    rules = RULES[library]
    if not x._state & rules.bit:
        if rules.host and not is_on_host(x):
            return _unreadable(x, library)
        obstacle = _find_obstacle(x, rules, library)
        if obstacle is not None:
            return obstacle[0]
    if library == "torch" and x.access != "readwrite":
        return "the memory is read-only, and torch does not have read-only tensors"
    if library == "jax" and any(array.ptr % 64 and array.size for array in (x.data, *structure_of(x))):
        return "jax shares only host memory that starts on a 64-byte boundary"
    return ""


def check_export(x: Any, library: str) -> None:
    """Raise the Refusal of an export that fails even with ``copy=True``, without converting the array."""
    _check_kind(x, RULES[library], library)
    if library == "cupy" and not has_device():
        raise Refusal(library, NO_CUDA_DEVICE)


def _check_kind(x: Any, rules: SparseLibrary, library: str) -> None:
    """Raise Refusal if the library does not support the format, the dimensions or the element type."""

    def export(given: str, *arguments: str) -> str:
        name, words = (f"as_{library}", ()) if library != "pydata_sparse" else ("convert", ("'pydata_sparse'",))
        return f"arrayhub.{name}({', '.join((given, *words, *arguments))})"

    narrow = NARROWED.get(x.dtype.name) if library == "jax" and not has_x64() else None

    def call(method: str) -> str:
        return export(f"arrayhub.assparse(x).{method}", f"dtype={narrow!r}" if narrow else "copy=True")

    if x.format not in rules.formats:  # type: ignore[operator]
        other = "to_format('coo')" if x.batch_ndim or x.dense_ndim else "to_format('csr')"
        raise Refusal(library, f"{x.format} is not supported", ", ".join(rules.formats or ()), call(other))
    if x.batch_ndim and x.format not in rules.batches:
        other = "to_dense()" if rules.max_ndim else "to_format('coo')"
        raise Refusal(library, f"{x.format} of shape {x.shape} has batches, which are not supported", "", call(other))
    padded = x._state & PADDED and library != "jax" and is_on_host(x)
    if padded and x.batch_ndim and x.format != "coo" and np.unique(as_numpy(x.indptr)[..., -1]).size > 1:
        raise Refusal(library, _COUNTS, "", call("to_format('coo')"))
    if x.dense_ndim and not rules.dense:
        raise Refusal(library, f"shape {x.shape} has dense dimensions, which are not supported", "", call("to_dense()"))
    if rules.max_ndim and len(x.shape) > rules.max_ndim:
        reason = f"shape {x.shape} has {len(x.shape)} dimensions"
        raise Refusal(library, reason, str(rules.max_ndim), call("to_dense()"))
    if rules.values and x.dtype.char not in rules.values:
        names = list(dict.fromkeys(np.dtype(char).name for char in rules.values))
        wider = next((name for name in names if np.can_cast(x.dtype, name)), None)
    elif narrow:
        names, wider = [f"{narrow}, or {x.dtype.name} with jax_enable_x64"], narrow
    else:
        return
    place = ("device='cpu'",) if rules.host and not is_on_host(x) else ()
    cast = export("x", f"dtype={wider!r}", *place) if wider else ""
    raise Refusal(library, f"values of {x.dtype} are not supported", ", ".join(names), cast)


def _list_index_types(x: Any, rules: SparseLibrary, library: str) -> tuple[str, ...]:
    accepted = rules.formats[x.format]  # type: ignore[index]
    if library == "jax" and not has_x64():  # jax would silently narrow int64
        accepted = tuple(name for name in accepted if not name.endswith("int64"))
    return accepted


# Conversions of an array for a library, which `_find_obstacle` selects.


def _convert_to_canonical(x: Any, rules: SparseLibrary, library: str) -> Any:
    """Return a copy without padding whose indices are sorted and distinct."""
    made = to_format(x, FORMATS[x.format])
    if made._state & PADDED:
        raise Refusal(library, _COUNTS)
    return made


def _convert_indices(x: Any, rules: SparseLibrary, library: str) -> Any:
    """Convert the indices to a type that the library accepts, and join the coordinates if the library requires it."""
    accepted, most = _list_index_types(x, rules, library), max((*x.shape, x.data.shape[x.batch_ndim]))
    name = next((name for name in accepted if most <= np.iinfo(name).max), None)
    if name is None:
        raise Refusal(library, f"shape {x.shape} needs indices of int64; accepted: {', '.join(accepted)}")
    dtype = np.dtype(name)
    if x.format == "coo" and x.coords_array is None and rules.joined:
        joined = np.empty((len(x.coords), *x.data.shape[: x.batch_ndim + 1]), dtype)
        for k, array in enumerate(x.coords):
            joined[k] = as_numpy(array.to_host())
        facts = dict(coords_array=_copy_beside(asarray(joined), x.data), batch_ndim=x.batch_ndim)
        return type(x)("coo", x.shape, x.data, state=x._state & SEEN, **facts)
    data = x.data
    return x._map(lambda array: array if array is data else _cast(array, dtype))


def _convert_byte_order(x: Any, rules: SparseLibrary, library: str) -> Any:
    data, native = x.data, x.dtype.newbyteorder("=")
    return x._map(lambda array: _cast(array, native) if array is data else array)


def _cast(array: Any, dtype: np.dtype[Any]) -> Any:
    """Cast an array to `dtype`, in host memory or on the device of the array."""
    return array if array.dtype == dtype else _copy_beside(asarray(array.to_host(), dtype=dtype), array)


def _copy_beside(array: Any, model: Any) -> Any:
    """Copy a host array to the device of `model`. If the host can read `model`, return the host array itself."""
    return array if is_host_readable(model) else array.to_device(model.device)
