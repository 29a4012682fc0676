"""Functions of this folder that lower layers and the class SparseArray call through `_core/hooks`.

`nested/methods` has the same functions for nested arrays: import, export, pickles and descriptions.
"""

from collections.abc import Iterator
from typing import Any

from arrayhub._core.errors import InterfaceError
from arrayhub.inspection.printout import head_lines, part_lines
from arrayhub.inspection.texts import attempt
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import assparse, relocate
from arrayhub.sparse.assparse import sparse_or_none as import_or_none
from arrayhub.sparse.export import convert_like, device_of
from arrayhub.sparse.export import give_any as export
from arrayhub.sparse.pickling import reduce
from arrayhub.sparse.validation import check_indices, parts_of

__all__ = [
    "assparse",
    "convert_like",
    "device_of",
    "export",
    "find_faults",
    "import_or_none",
    "lines_of",
    "reduce",
    "relocate",
    "view_of",
]


def view_of(obj: Any) -> SparseArray | None:
    """Import `obj` as a SparseArray, or return None."""
    found: SparseArray | None = attempt(import_or_none, obj)[0]
    return found


def lines_of(x: SparseArray, refcount: int) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a SparseArray and its parts, without the first and the last."""
    yield from head_lines(x, refcount, [f"  type: {x.format} of {x.dtype}"])
    yield f"  {x.format} arrmeta"
    yield f"   shape: {x.shape}"
    yield f"   stored: {x.nnz}"
    if x.blocksize is not None:
        yield f"   blocksize: {tuple(x.blocksize)}"
    if x.batch_ndim or x.dense_ndim:
        yield f"   batch_ndim: {x.batch_ndim}"
        yield f"   dense_ndim: {x.dense_ndim}"
    yield " data:"
    coords = {f"coords[{k}]": array for k, array in enumerate(x.coords or ())}
    for name, array in (parts_of(x) if x.coords is None else {"data": x.data, **coords}).items():
        yield from part_lines(name, array)


def find_faults(obj: Any, texts: list[str]) -> list[str] | None:
    """Return a list with the first error in the parts or indices, if any. Return None if `obj` is not sparse.

    Indices on a device are copied to the host for the check. `texts`, the messages about interfaces, are not repeated.
    """
    try:
        x = import_or_none(obj)
        if x is None:
            return None
        check_indices(x.to_host())
    except InterfaceError as error:
        return [f"x: {error}"]
    return []
