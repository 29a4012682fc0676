"""Export of sparse arrays: `as_scipy`, the functions that `convert`, `like` and `placement` call, and the conversion of
arrays that a library does not accept.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.errors import Refusal, name_of_type, show
from arrayhub.convert.functions import as_cupy, as_numpy, as_torch, asarray, convert
from arrayhub.convert.names import SPARSE, sparse_library
from arrayhub.libraries.jax import NARROWED, has_x64
from arrayhub.libraries.known import TARGETS
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import ACCEPTED, INT32_MAX, PADDED, TRUSTED, find_used, is_canonical, to_format, validate
from arrayhub.sparse.libraries import RULES, SparseLibrary, import_sparse, sparse_or_none


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
    return convert(obj, "scipy", copy=copy, dtype=dtype, device=device, missing=missing)


def _export_named(call: str, library: str, obj: Any, copy: Copy, dtype: Any, device: Any, missing: Any) -> Any:
    """Return a sparse array of a library, or a SparseArray, with the keywords of the ``as_*`` functions."""
    if missing is not None:
        raise ValueError(f"{call}: missing is {show(missing)}; accepted: None, as sparse arrays lack missing values")
    return convert_like(call, obj, library, None, copy, dtype, device)


# The exporters that `convert` calls.
export_scipy = partial(_export_named, "as_scipy", "scipy")
export_pydata_sparse = partial(_export_named, "convert", "pydata_sparse")
export_own = partial(_export_named, "convert", SPARSE)


def device_of(model: Any) -> Device | None:
    """Return the device of a sparse array, even if it requires a gradient. Return None for other objects."""
    if sparse_library(model) in ("scipy", "pydata_sparse"):
        return CPU
    x = sparse_or_none(model.detach() if getattr(model, "requires_grad", False) else model)
    return None if x is None else x.device


def relocate(call: str, obj: Any, device: Any, copy: Copy, out: Any) -> Any:
    """Return a sparse object as a SparseArray on a device. `call` is the name of the public function."""
    if out is not None:
        raise TypeError(f"{call}: out is {show(out)}; accepted for sparse arrays: None")
    return convert_like(call, obj, SPARSE, device, copy)


def convert_like(
    call: str,
    obj: Any,
    library: str,
    where: Any,
    copy: Copy = None,
    dtype: Any = None,
    device: Any = None,
    cls: type | None = None,
    checked: bool = False,
) -> Any:
    """Return the sparse array `obj` as a sparse array of `library`, in the same format.

    The target is `device`, or the model's device `where` if `device` is None. Without ``copy=False``, the array is
    moved to `where`. `obj` itself is returned if it already belongs to the library and is on this device, and neither
    `dtype` nor a copy is requested.

    The parameters `copy`, `dtype` and `device` are those of `arrayhub.like`. `cls` is the type of the model. If
    `checked` is true, values that `dtype` cannot represent raise an error.
    """
    by_row = TARGETS[library].sparse_by if library in TARGETS else None  # for a model of a library of dense arrays
    library = (None if cls is None else sparse_library(cls)) or by_row or library
    copy, target = check_copy(copy, call), where if device is None else device
    is_own = sparse_library(obj) == library and (cls is None or _is_matrix(cls) == _is_matrix(type(obj)))
    if is_own and dtype is None and (target is None or device_of(obj) == Device(target)):
        if not copy:
            return obj
        if library == "scipy":  # also in formats that `assparse` does not import
            return obj.copy()
    given = x = import_sparse(obj, copy if copy is False and dtype is None and device is None else None)
    if dtype is None and library == "jax" and not has_x64():
        dtype, checked = NARROWED.get(x.dtype.name), True
    if dtype is not None:
        x = x._cast(dtype, call if checked else "")
    if target is not None:
        stays = Device(target) == x.device or (Device(target) == CPU and x._is_on_host())
        if not stays and copy is False and device is None:
            raise Refusal(call, f"the memory is on {x.device}, and copy=False forbids a copy", "copy=None")
        x = x.to_device(target)
    return export(x, library, copy if copy or x is given else None, matrix=cls is not None and _is_matrix(cls))


def _is_matrix(cls: type) -> bool:
    """Return whether a type is one of SciPy's matrices, whose operators differ from those of arrays."""
    return any(base.__name__ == "spmatrix" for base in cls.__mro__)


def refusal_of_sparse(obj: Any, library: str) -> Refusal:
    """Return the error about a sparse array for a library that has only dense arrays."""
    return Refusal(
        library,
        f"{name_of_type(type(obj))} is sparse, and {library} does not have sparse arrays",
        f"libraries with sparse arrays ({', '.join(RULES)}), or the dense copy arrayhub.assparse(x).to_dense()",
    )


def export(obj: Any, library: str, copy: Copy = False, allow_readonly: bool = False, matrix: bool = False) -> Any:
    """Convert a sparse object of any library to a sparse array of `library`.

    `matrix` requests a SciPy matrix instead of a SciPy sparse array. Raise Refusal if the library does not support this
    sparse array, or a copy is required and `copy` does not permit it.
    """
    copy = check_copy(copy, f"as_{library}")
    x = obj if type(obj) is SparseArray else import_sparse(obj, None if copy else copy)
    if library == SPARSE:
        return x.copy() if copy else x
    row = RULES.get(library)
    if row is None:
        raise refusal_of_sparse(obj, library)
    options: dict[str, Any] = {"copy": copy}
    if row.export in (as_torch, as_cupy):  # the other libraries have read-only arrays
        options["allow_readonly"] = allow_readonly
    return row.emit(conform(x, library, copy), partial(row.export, **options), matrix)


# ------------------------------------------------------------------------- conversion of what a library does not accept

_COUNTS = "the batches have different numbers of stored values"


def conform(x: Any, library: str, copy: Copy) -> Any:
    """Return `x` itself if a library accepts it, else an array in which the rejected parts are converted.

    Raise Refusal if the library does not support the format, or a conversion is required and `copy` forbids it, and
    InterfaceError if an index or a pointer is invalid. Only ``copy=True`` moves memory to the host.
    """
    rules, accepted = RULES[library], ACCEPTED.get(library, 0)
    if x._state & accepted:
        return x
    check_kind(sparse_kind_of(x), library)
    given = x
    if rules.host and not x._is_on_host():
        if not copy:
            raise Refusal(library, _unreadable(x, library), call="x.to_host()")
        x = x.to_host()
    if not x._state & TRUSTED:
        validate(x)
    while (obstacle := _find_obstacle(x, rules, library)) is not None:
        reason, convert = obstacle
        if copy is False:
            raise Refusal(library, reason)
        x = convert(x, rules, library)
    if x is given:
        x._state |= accepted
    return x


def _unreadable(x: Any, library: str) -> str:
    return f"the memory is on {x.device}, which {library} cannot read"


def _find_obstacle(x: Any, rules: SparseLibrary, library: str) -> tuple[str, Callable[..., Any]] | None:
    """Return why a library requires a copy of an array, and the function that makes it, or None."""
    if x._state & PADDED and library != "jax":
        if not x._is_on_host() or not find_used(x).all():
            return "some elements are padding, which only jax ignores", _convert_to_canonical
        x._state &= ~PADDED
    if x.format in rules.canonical and not x._state & TRUSTED and x._is_on_host() and not is_canonical(x):
        reason = "the indices are unsorted or repeated, and the library would compute wrong results"
        return reason, _convert_to_canonical
    accepted = _list_index_types(x.format, rules, library)
    if not any(all(array.dtype == dtype for array in x.structure) for dtype in accepted):
        names = " and ".join(sorted({array.dtype.name for array in x.structure}))
        return f"indices of {names} are not supported; accepted: {' or '.join(map(str, accepted))}", _convert_types
    if rules.joined and x.format == "coo" and x._joined is None:
        return "the coordinates are separate arrays, and the library requires a single array", _convert_types
    if not x.dtype.isnative:
        return f"values of {x.dtype} are not in native byte order", _convert_types
    return None


def why_copied(x: Any, library: str) -> str:
    """Return why the export of an array copies, or "". Whether indices are sorted is known after the first export."""
    rules = RULES[library]
    if not x._state & ACCEPTED.get(library, 0):
        if rules.host and not x._is_on_host():
            return _unreadable(x, library)
        obstacle = _find_obstacle(x, rules, library)
        if obstacle is not None:
            return obstacle[0]
    if library == "torch" and any(array.access != "readwrite" for array in (x.data, *x.structure)):
        return "the memory is read-only, and torch does not have read-only tensors"
    if library == "jax" and any(array.ptr % 64 and array.size for array in (x.data, *x.structure)):
        return "jax shares only host memory that starts on a 64-byte boundary"
    return ""


class SparseKind(NamedTuple):
    """The properties of a sparse array that decide whether a library supports it or its copy."""

    format: str
    shape: tuple[int, ...]
    batch_ndim: int
    dense_ndim: int
    dtype: Any
    is_uneven: bool  # whether the batches have different numbers of stored values
    is_wide: bool  # whether the indices are of int64, and a dimension is too long for indices of int32


def sparse_kind_of(x: Any) -> SparseKind:
    """Return the properties of a sparse array. Pointers in host memory show whether batches are uneven."""
    padded = x._state & PADDED and x.batch_ndim and x.format != "coo" and x._is_on_host()
    uneven = bool(padded) and np.unique(as_numpy(x.indptr)[..., -1]).size > 1
    wide = max(x.shape, default=0) > INT32_MAX and any(array.dtype.itemsize == 8 for array in x.structure)
    return SparseKind(x.format, x.shape, x.batch_ndim, x.dense_ndim, x.dtype, uneven, wide)


def check_kind(kind: SparseKind, library: str) -> None:
    """Raise Refusal if a library does not support arrays of a kind, even as copies."""
    rules, accepted = RULES[library], ""
    values = rules.values.get(kind.format, "")
    if kind.is_wide and kind.format in rules.formats:
        _index_type(kind.format, kind.shape, 0, rules, library)
    if kind.format not in rules.formats:
        reason, accepted = f"{kind.format} is not supported", ", ".join(rules.formats)
    elif kind.batch_ndim and kind.format not in rules.batches:
        reason = f"{kind.format} of shape {kind.shape} has batches, which are not supported"
    elif kind.is_uneven and library != "jax":
        reason = _COUNTS
    elif kind.dense_ndim and not rules.dense:
        reason = f"shape {kind.shape} has dense dimensions, which are not supported"
    elif (rules.max_ndim and len(kind.shape) > rules.max_ndim) or (library == "scipy" and not kind.shape):
        reason, accepted = f"shape {kind.shape} has {len(kind.shape)} dimensions", str(rules.max_ndim or "1 or more")
    elif values and kind.dtype.char not in values:
        names = ", ".join(dict.fromkeys(np.dtype(char).name for char in values))
        reason, accepted = f"values of {kind.dtype} are not supported", names
    elif library == "jax" and kind.dtype.name in NARROWED and not has_x64():
        accepted = f"{NARROWED[kind.dtype.name]}, or {kind.dtype.name} with jax_enable_x64"
        reason = f"values of {kind.dtype} are not supported"
    else:
        return
    raise Refusal(library, reason, accepted)


def _list_index_types(format: str, rules: SparseLibrary, library: str) -> tuple[np.dtype[Any], ...]:
    accepted = rules.formats[format]
    if library == "jax" and not has_x64():  # jax would silently narrow int64
        accepted = tuple(dtype for dtype in accepted if dtype.itemsize < 8)
    return accepted


def _index_type(format: str, shape: tuple[int, ...], stored: int, rules: SparseLibrary, library: str) -> np.dtype[Any]:
    """Return the first type of indices that a library accepts and that represents a shape and a number of values."""
    accepted, most = _list_index_types(format, rules, library), max((*shape, stored))
    dtype = next((dtype for dtype in accepted if most <= np.iinfo(dtype).max), None)
    if dtype is None:
        raise Refusal(library, f"shape {shape} needs indices of int64", ", ".join(map(str, accepted)))
    return dtype


# Conversions of an array for a library, which `_find_obstacle` selects.


def _convert_to_canonical(x: Any, rules: SparseLibrary, library: str) -> Any:
    """Return a copy without padding whose indices are sorted and distinct."""
    made = to_format(x, x.format)
    if made._state & PADDED:
        raise Refusal(library, _COUNTS)
    return made


def _convert_types(x: Any, rules: SparseLibrary, library: str) -> Any:
    """Convert indices and values to types that the library accepts, and join the coordinates if it requires that."""
    dtype = _index_type(x.format, x.shape, x.data.shape[x.batch_ndim], rules, library)
    data = x.data if x.dtype.isnative else asarray(x.data, dtype=x.dtype.newbyteorder("="))
    if x.format != "coo" or x._joined is not None or not rules.joined:
        return x._with_parts(data, tuple(asarray(array, dtype=dtype) for array in x.structure))
    stored, coords = x.data.shape[: x.batch_ndim + 1], [as_numpy(array.to_host()) for array in x.coords]
    joined = asarray(np.array(coords, dtype).reshape(len(coords), *stored))
    return x._with_parts(data, (joined if x._is_on_host() else joined.to_device(x.device),))
