"""Export of sparse arrays: `as_scipy`, and the function that `convert` calls for sparse arrays."""

from typing import Any

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import Refusal, name_of_type, show
from arrayhub._core.hooks import hooks
from arrayhub.convert.names import sparse_library
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import assparse, change
from arrayhub.sparse.libraries import RULES
from arrayhub.sparse.rules import conform
from arrayhub.sparse.to_device import copied_besides
from arrayhub.sparse.validation import is_on_host


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
        given, copy = _changed(obj, copy, dtype, device, missing, "as_scipy")
        if sparse_library(given) == "scipy":
            return given.copy() if copy else given
        return give_any(given, "scipy", copy)
    except (BufferError, TypeError, ValueError) as error:
        raise hooks.advice.complete_refusal(error, obj, "scipy")  # noqa: B904


def _as_pydata_sparse(obj: Any, copy: Copy, dtype: Any, device: Any, missing: Any) -> Any:
    obj, copy = _changed(obj, copy, dtype, device, missing, "convert")
    return give_any(obj, "pydata_sparse", copy)


def _changed(obj: Any, copy: Copy, dtype: Any, device: Any, missing: Any, call: str) -> tuple[Any, Copy]:
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

    `matrix` requests a SciPy matrix instead of a SciPy sparse array.

    Raises
    ------
    BufferError
        The library does not support this sparse array, or a copy is required and `copy` does not permit it. The message
        names the call to make instead.
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
        conformed = copied_besides(conformed, x)
    return RULES[library].emit(conformed, None if copy else copy, allow_readonly, matrix)  # type: ignore[misc]


# Export functions by the library's name in `convert`, for libraries without dense arrays.
SPARSE_CONSUMERS = {"scipy": as_scipy, "pydata_sparse": _as_pydata_sparse}
