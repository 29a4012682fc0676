"""Export of sparse arrays: `as_scipy`, and the functions that `convert`, `like` and `placement` call."""

from functools import partial
from typing import Any

from arrayhub import transfer
from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.errors import Refusal, name_of_type, show
from arrayhub._core.hooks import hooks
from arrayhub.convert.functions import as_cupy, as_torch
from arrayhub.convert.names import OWN, SPARSE, sparse_library
from arrayhub.libraries.jax import NARROWED, has_x64
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import assparse, change, sparse_or_none
from arrayhub.sparse.formats import is_on_host, structure_of
from arrayhub.sparse.libraries import RULES
from arrayhub.sparse.rules import conform


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
