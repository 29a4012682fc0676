"""assparse: import a sparse object with the importer for its type."""

from collections.abc import Callable
from typing import Any

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import Refusal, name_of_type, root_of, show
from arrayhub.convert.functions import SparseParts
from arrayhub.libraries.known import derived_from
from arrayhub.libraries.wrappers import sparse_module
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import TRUSTED, is_on_host
from arrayhub.sparse.libraries import LIBRARIES


def assparse(
    obj: Any, /, *, copy: Copy = False, dtype: Any = None, device: Any = None, validate: bool = True
) -> SparseArray:
    """Import a sparse array of any library as a SparseArray, without a copy by default.

    Parameters
    ----------
    obj : object
        An array or a matrix of scipy.sparse or cupyx.scipy.sparse, a torch tensor of a sparse layout, a BCOO or BCSR
        matrix of jax, a COO or GCXS array of pydata/sparse, a csr table of oneDAL, or a SparseArray.
    copy : {False, None, True}, optional
        False or None: share the memory. True: copy each part. The csr tables of oneDAL require None or True.
    dtype, device : optional
        As in `arrayhub.asarray`.
    validate : bool, optional
        False: exports do not validate the indices. The caller guarantees that the indices are within the shape, and
        that they are sorted and distinct if the receiving library requires it. Invalid indices may crash the receiving
        library. `arrayhub.check`, and methods of the array that use the indices, still validate them.

    Returns
    -------
    SparseArray
        `obj` itself if it is a SparseArray, `validate` is True and no copy is requested.

    Raises
    ------
    TypeError
        `obj` is not sparse.
    BufferError
        The format of the object is not supported, or the object requires a copy and `copy` does not permit it.
    InterfaceError
        The shapes or types of the arrays are inconsistent. Indices are validated later, on first use or on export.

    Examples
    --------
    >>> import scipy.sparse
    >>> matrix = scipy.sparse.csr_array([[0, 1.5], [2.5, 0]])
    >>> x = assparse(matrix)
    >>> x.data.ptr == matrix.data.ctypes.data
    True
    >>> as_torch(x).layout
    torch.sparse_csr
    """
    if dtype is not None or device is not None:
        changed = change(obj, dtype, device)
        return assparse(changed, copy=copy if changed is obj else None, validate=validate)
    copy = check_copy(copy, "assparse")
    x = sparse_or_none(obj, copy)
    if x is None:
        advice = _SPARSE_COLUMNS.get(name_of_type(type(obj)), "")
        if not advice or not hasattr(obj, "sparse"):
            advice = "Use arrayhub.asarray(x) for dense arrays"
        raise TypeError(
            f"assparse: {show(obj)} is of type {name_of_type(type(obj))}, which is not sparse; accepted: sparse arrays"
            " of scipy, torch, jax, cupyx and pydata/sparse, and csr tables of oneDAL."
            f" {advice}"
        )
    if validate is not True:
        x = _mark_trusted(x, validate)
    return x.copy() if copy and root_of(type(obj)) != "onedal" else x  # oneDAL itself makes a copy


# Advice for sparse pandas objects, which store only the values that differ from a fill value.
_SPARSE_COLUMNS = {
    "pandas.DataFrame": "Use arrayhub.assparse(x.sparse.to_coo()), which copies",
    "pandas.Series": "Use arrayhub.assparse(x.to_frame().sparse.to_coo()), which copies",
}


def _mark_trusted(x: SparseArray, validate: Any) -> SparseArray:
    """Return an array that shares the memory of `x`. Its exports do not validate the indices."""
    if validate is not False:
        raise TypeError(f"assparse: validate is {show(validate)}; accepted: True, False")
    return x._map(lambda array: array, x._state | TRUSTED)


def sparse_or_none(obj: Any, copy: Copy = False) -> SparseArray | None:
    """Import an object if it is sparse, with the errors of `assparse`. Return None for other objects.

    Only tables of oneDAL are copied, unless `copy` is False.
    """
    if isinstance(obj, SparseParts):
        return obj  # type: ignore[return-value]
    parse = _known.get(type(obj)) or _find_importer(type(obj))
    return None if parse is None else parse(obj, copy)


_Parse = Callable[[Any, Copy], SparseArray | None]
_known: dict[type, _Parse] = {}
_is_tensor = derived_from("torch", "Tensor")


def _find_importer(cls: type) -> _Parse | None:
    """Return the importer for a type, or None if objects of the type are never sparse. Importers are cached by type."""
    name = "torch" if _is_tensor(cls) else sparse_module(cls)
    if root_of(cls) == "onedal" and cls.__name__ == "table":
        name = "onedal"
    if name is None:
        return None
    parse = _known[cls] = LIBRARIES[name].parse
    return parse


def change(obj: Any, dtype: Any, device: Any) -> Any:
    """Return a sparse object with values of `dtype` on `device`, or `obj` itself if nothing changes."""
    x = assparse(obj, copy=None)
    changed = x._change(dtype, device)
    return obj if changed is x else changed


def relocate(call: str, obj: Any, device: Any, copy: Copy, out: Any) -> SparseArray:
    """Return a sparse object on a device, or in host memory if `device` is None.

    `call` is the name of the public function, `to_host` or `to_device`.
    """
    if out is not None:
        raise TypeError(f"{call}: out is {show(out)}; accepted for sparse arrays: None")
    x = assparse(obj)
    stays = is_on_host(x) if device is None else x.device == device
    if check_copy(copy, call) is False and not stays:
        raise Refusal(call, f"the memory is on {x.device}, and copy=False forbids a copy")
    moved_array = x.to_host() if device is None else x.to_device(device)
    return x.copy() if moved_array is x and copy else moved_array
