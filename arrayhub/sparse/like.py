"""`like` and `placement` for sparse arrays: find the library and the device of a model."""

from typing import Any

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.errors import Refusal
from arrayhub.convert.names import OWN, SPARSE, sparse_library
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import assparse, sparse_or_none
from arrayhub.sparse.export import give_any
from arrayhub.sparse.to_device import cast

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
) -> Any:
    """Return the sparse array `obj` as a sparse array of `library`, in the same format.

    The target is `device`, or the model's device `where` if `device` is None. `obj` itself is returned if it already
    belongs to the library and is on this device, and neither `dtype` nor a copy is requested.

    The parameters `copy`, `dtype` and `device` are those of `arrayhub.like`. `cls` is the type of the model.
    """
    own = None if cls is None else sparse_library(cls)
    library = own or _SPARSE_LIBRARY.get(library, library)
    target = where if device is None else Device(device)
    copy = check_copy(copy, call)
    unchanged = dtype is None and not copy and _is_of(obj, library, cls)
    if unchanged and (target is None or device_of(obj) == target):
        return obj
    x = assparse(obj, copy=None if copy else copy)
    if dtype is not None:
        x = cast(x, dtype)
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
