"""assparse, and the table of libraries: how their sparse arrays are imported and exported, and what a library accepts.

docs/sparse.md shows the table, and tests/sparse/test_export_rules.py checks each row against the library. The names in
`LIBRARIES` are those in the column `sparse` of `libraries.table`, which recognizes the types.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import (
    PASSES_ON,
    Refusal,
    TypeRefusal,
    dimensions,
    first_line,
    name_of_type,
    needed,
    root_of,
    show,
)
from arrayhub.convert.functions import SparseParts, as_cupy, as_jax, as_numpy, as_torch, asarray
from arrayhub.libraries.known import derived_from
from arrayhub.libraries.wrappers import sparse_module
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, INTEGERS, PADDED, TRUSTED, check_shapes, is_marked_canonical, is_on_host

_Export = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SparseLibrary:
    """A library of sparse arrays, and the arrays that it accepts."""

    # ``parse(obj, copy)`` imports a sparse object, and returns None for a dense one.
    parse: Callable[[Any, Copy], SparseArray | None]
    # ``emit(x, export, matrix)`` returns an array of the library that shares the memory of `x`, a result of
    # `export.conform`. `export` exports each part. `matrix` requests a SciPy matrix. None if the library only produces
    # arrays.
    emit: Callable[[SparseArray, _Export, bool], Any] | None = None
    export: Callable[..., Any] = as_numpy  # exports the parts
    bit: int = (
        0  # bit of `SparseParts._state` that marks accepted arrays; 0 if acceptance depends on the library's setting
    )
    formats: dict[str, tuple[str, ...]] | None = None  # accepted index types by format, the preferred type first
    canonical: tuple[str, ...] = ()  # formats for which unsorted or repeated indices would lead to wrong results
    joined: bool = False  # whether the coordinates are one array instead of one array for each dimension
    batches: tuple[str, ...] = ()  # formats in which the library supports batch dimensions
    dense: bool = False  # whether the library supports dense dimensions
    values: str = ""  # accepted element types, as NumPy's characters; empty if the library itself rejects the others
    host: bool = True  # whether the library reads only host memory
    max_ndim: int | None = None  # largest number of dimensions, or None


def _parse_compressed(source: str, format: str, shape: Any, data: Any, indices: Any, indptr: Any, **facts: Any) -> Any:
    """Import the arrays of a compressed format. `source` is the subject of errors."""
    x = SparseArray(format, tuple(shape), asarray(data), asarray(indices), asarray(indptr), **facts)
    return check_shapes(source, x)


def _parse_coords(source: str, shape: Any, data: Any, coords: Any, **facts: Any) -> Any:
    """Import the arrays of the format coo. `coords` is a tuple of arrays, or one array of (dimension, element)."""
    separate = isinstance(coords, tuple)
    facts |= {"coords": tuple(map(asarray, coords))} if separate else {"coords_array": asarray(coords)}
    return check_shapes(source, SparseArray("coo", tuple(shape), asarray(data), **facts))


def _export_structure(x: SparseArray, export: _Export) -> tuple[Any, ...]:
    """Return each array of coordinates, or indices and pointers, as an array of a library."""
    return tuple(map(export, (x.coords or ()) if x.format == "coo" else (x.indices, x.indptr)))


# ------------------------------------------------------------------------------------------------------------ SciPy


def _parse_scipy(obj: Any, copy: Copy) -> Any:
    """Import an array or a matrix of scipy.sparse."""
    name, shape = obj.format, obj.shape
    if name == "coo":
        coords = obj.coords if hasattr(obj, "coords") else (obj.row, obj.col)
        return _parse_coords("scipy.sparse", shape, obj.data, tuple(coords))
    row = FORMATS.get(name)
    if row is None or len(shape) != 2:
        raise Refusal(
            name_of_type(type(obj)),
            f"{name} of {dimensions(obj.ndim)} is not supported",
            "coo, and csr, csc and bsr of 2 dimensions",
            "arrayhub.assparse(x.tocoo())",
        )
    pointers = obj.indptr
    data, indices, indptr = asarray(obj.data), asarray(obj.indices), asarray(pointers)
    stored = indices.shape
    if len(stored) == 1 and stored == data.shape[:1] and indptr.ndim == 1 and indptr.shape[0]:
        used = int(pointers[-1])
        if 0 <= used < stored[0]:  # the elements after `used` are unused
            data, indices = data[:used], indices[:used]
        elif (  # the same checks as in `check_shapes`, but faster
            (not row.blocks and data.ndim == 1 and indptr.shape[0] == shape[row.compressed] + 1)
            and indices.typenum in INTEGERS
            and indptr.typenum in INTEGERS
        ):
            return SparseArray(name, shape, data, indices, indptr)
    blocksize = obj.blocksize if row.blocks else None
    return check_shapes("scipy.sparse", SparseArray(name, shape, data, indices, indptr, blocksize=blocksize))


def _emit_scipy(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a SciPy sparse array, or a SciPy matrix, that shares the memory of `x`."""
    sparse = needed("scipy.sparse", "to create its sparse arrays").sparse
    make = getattr(sparse, f"{x.format}_{'matrix' if matrix else 'array'}")
    data, structure = export(x.data), _export_structure(x, export)
    options = {"blocksize": x.blocksize} if x.blocksize else {}
    made = make((data, structure) if x.format == "coo" else (data, *structure), shape=x.shape, **options)
    own = made.coords if x.format == "coo" else (made.indices, made.indptr)
    if not all(map(_is_same_memory, own, structure)):  # the constructor narrows int64 to int32 if the values fit
        if x.format == "coo":
            made.coords = structure
        else:
            made.indices, made.indptr = structure
    return made


def _is_same_memory(a: Any, b: Any) -> bool:
    return a is b or bool(a.dtype == b.dtype and (a.size == 0 or np.shares_memory(a, b)))


# ------------------------------------------------------------------------------------------------------------ torch


def _parse_torch(obj: Any, copy: Copy) -> Any:
    """Import a sparse tensor in the layout COO (coalesced or not), CSR, CSC, BSR or BSC."""
    try:
        layout = str(obj.layout)
    except PASSES_ON:
        raise
    except Exception:  # a subclass of Tensor may raise any exception
        return None
    name = layout.rpartition("torch.sparse_")[2]
    if name not in FORMATS:
        return None
    if obj.requires_grad:
        raise Refusal("torch", "requires_grad is True; accepted: tensors outside autograd. Call x.detach() first")
    if name == "coo":
        indices, data = _torch_coo_parts(obj)
        return _parse_coords("torch", obj.shape, data, indices)
    of_columns = FORMATS[name].compressed == 1
    indices = asarray(obj.row_indices() if of_columns else obj.col_indices())
    indptr = asarray(obj.ccol_indices() if of_columns else obj.crow_indices())
    data, batch = asarray(obj.values()), indices.ndim - 1
    blocksize = data.shape[batch + 1 : batch + 3] if FORMATS[name].blocks else None
    facts = dict(blocksize=blocksize, batch_ndim=batch)
    return _parse_compressed("torch", name, obj.shape, data, indices, indptr, **facts)


def _torch_coo_parts(obj: Any) -> tuple[Any, Any]:
    """Return indices and values. For tensors that are not coalesced, torch has only private methods."""
    if obj.is_coalesced():
        return obj.indices(), obj.values()
    try:
        return obj._indices(), obj._values()
    except AttributeError:
        raise Refusal("torch", "the tensor is not coalesced; call x.coalesce() first, which copies") from None


def _emit_torch(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a sparse tensor that shares the memory of `x`. A canonical COO tensor is marked as coalesced."""
    data = export(x.data)
    make = _load_torch_function(x.format)
    try:
        if x.format == "coo":
            joined = export(x.coords_array)
            return make(joined, data, x.shape, check_invariants=False, is_coalesced=is_marked_canonical(x))
        indices, indptr = _export_structure(x, export)
        return make(indptr, indices, data, x.shape, check_invariants=False)
    except PASSES_ON:
        raise
    except RuntimeError as error:
        raise Refusal("torch", f"{x!r} is not supported ({first_line(error)})") from error


@lru_cache
def _load_torch_function(name: str) -> Any:
    """Return torch's constructor function for a format."""
    return getattr(needed("torch", "to create its tensors"), f"sparse_{name}_tensor")


# -------------------------------------------------------------------------------------------------------------- jax


def _parse_jax(obj: Any, copy: Copy) -> Any:
    """Import a BCOO or BCSR matrix of jax.experimental.sparse, including batch dimensions and dense dimensions."""
    source, kind = "jax.experimental.sparse", type(obj).__name__
    if kind not in ("BCOO", "BCSR"):
        raise Refusal(
            name_of_type(type(obj)),
            f"{kind} is not supported",
            "BCOO and BCSR. Call jax.experimental.sparse.BCOO.fromdense(x.todense()) first, which copies",
        )
    shape, batch = tuple(obj.shape), obj.n_batch
    arrays = [asarray(part) for part in (obj.data, obj.indices, *([obj.indptr] if kind == "BCSR" else []))]
    for array in arrays:
        if array.shape[:batch] != shape[:batch]:
            raise Refusal(
                source,
                f"an array of shape {array.shape} is broadcast to the batches {shape[:batch]}; accepted:"
                f" arrays of all batches. Call jax.experimental.sparse.bcoo_update_layout(x, n_batch=0) first, which"
                " copies. Convert a BCSR matrix by x.to_bcoo() before this call",
            )
    facts = dict(batch_ndim=batch, state=PADDED)
    if kind == "BCSR":
        return _parse_compressed(source, "csr", shape, *arrays, **facts)
    data, indices = arrays
    return _parse_coords(source, shape, data, indices.transpose(batch + 1, *range(batch + 1)), **facts)


def _emit_jax(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a BCOO or BCSR matrix that shares the memory of `x`."""
    sparse = needed("jax.experimental.sparse", "to create its sparse arrays").experimental.sparse
    data, canonical = export(x.data), is_marked_canonical(x)
    if x.format == "coo":
        axes = (*range(1, x.batch_ndim + 2), 0)
        parts = (data, export(x.coords_array.transpose(*axes)))
        return sparse.BCOO(parts, shape=x.shape, indices_sorted=canonical, unique_indices=canonical)
    parts = (data, *_export_structure(x, export))
    return sparse.BCSR(parts, shape=x.shape, indices_sorted=canonical, unique_indices=canonical)


# ------------------------------------------------------------------------------------------------------------- CuPy


def _parse_cupy(obj: Any, copy: Copy) -> Any:
    """Import a matrix of cupyx.scipy.sparse."""
    name = obj.format
    if name not in ("coo", "csr", "csc"):
        raise Refusal(
            name_of_type(type(obj)), f"{name} is not supported", "coo, csr, csc", "arrayhub.assparse(x.tocsr())"
        )
    if name == "coo":
        return _parse_coords("cupyx.scipy.sparse", obj.shape, obj.data, (obj.row, obj.col))
    return _parse_compressed("cupyx.scipy.sparse", name, obj.shape, obj.data, obj.indices, obj.indptr)


def _emit_cupy(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a matrix of cupyx.scipy.sparse that shares the memory of `x`."""
    needed("cupy", "to create its arrays")
    make = getattr(import_module("cupyx.scipy.sparse"), f"{x.format}_matrix")
    data = export(x.data)
    with data.device:
        structure = _export_structure(x, export)
        return make((data, structure) if x.format == "coo" else (data, *structure), shape=x.shape)


# ---------------------------------------------------------------------------------------------------- pydata/sparse


def _parse_pydata_sparse(obj: Any, copy: Copy) -> Any:
    """Import a COO array, or a GCXS, CSR or CSC array of two dimensions."""
    cls = name_of_type(type(obj))
    if not np.array_equal(obj.fill_value, np.zeros((), obj.dtype)):
        raise Refusal(
            cls,
            f"fill_value is {obj.fill_value}",
            "0, the fill value of other libraries. Use x.todense(), a dense copy",
        )
    shape = tuple(map(int, obj.shape))
    if hasattr(obj, "coords"):
        return _parse_coords("sparse", shape, obj.data, obj.coords)
    axes = tuple(getattr(obj, "compressed_axes", None) or ())
    if obj.ndim != 2 or axes not in ((0,), (1,)):
        raise Refusal(
            cls,
            f"compressed_axes is {axes or None} for {dimensions(obj.ndim)}; accepted: COO, or two dimensions"
            " with one compressed axis",
            call="arrayhub.assparse(x.asformat('coo'))",
        )
    return _parse_compressed("sparse", "csr" if axes == (0,) else "csc", shape, obj.data, obj.indices, obj.indptr)


def _emit_pydata_sparse(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a COO array, or a GCXS array for csr and csc, that shares the memory of `x`."""
    sparse = needed("sparse", "to create its arrays")
    data = export(x.data)
    if x.format == "coo":
        return sparse.COO(export(x.coords_array), data, shape=x.shape, has_duplicates=False, sorted=True)
    parts = (data, *_export_structure(x, export))
    try:
        return sparse.GCXS(parts, shape=x.shape, compressed_axes=(FORMATS[x.format].compressed,))
    except PASSES_ON:
        raise
    except Exception as error:  # GCXS is compiled by Numba, which does not support float16
        raise Refusal(
            "pydata_sparse", f"GCXS does not support {x!r} ({first_line(error)}). Use x.to_format('coo')"
        ) from error


# ----------------------------------------------------------------------------------------------------------- oneDAL


def _parse_onedal(obj: Any, copy: Copy) -> Any:
    """Import a copy of a csr table, because oneDAL does not share its memory. Return None for other tables."""
    if obj.kind != "csr":
        return None
    if copy is False:
        raise Refusal("onedal", "csr tables are exported as copies only", call="arrayhub.assparse(x, copy=True)")
    return _parse_compressed("onedal", "csr", obj.shape, *sys.modules["onedal.datatypes"].from_table(obj))


# ------------------------------------------------------------------------------------------------------------ table

_WIDE = ("int64",)
_BOTH = ("int32", "int64")
_NARROW = ("int32",)
_ANY = ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
_COMPRESSED = ("csr", "csc", "bsr", "bsc")

LIBRARIES = {
    "scipy": SparseLibrary(
        _parse_scipy,
        _emit_scipy,
        as_numpy,
        16,
        dict(coo=_BOTH, csr=_BOTH, csc=_BOTH, bsr=_BOTH),
        values="?bBhHiIlLqQfdgFDG",
    ),
    "torch": SparseLibrary(
        _parse_torch,
        _emit_torch,
        as_torch,
        32,
        dict(coo=_WIDE, csr=_BOTH, csc=_BOTH, bsr=_BOTH, bsc=_BOTH),
        canonical=_COMPRESSED,
        joined=True,
        batches=_COMPRESSED,
        dense=True,
        host=False,
    ),
    "jax": SparseLibrary(
        _parse_jax,
        _emit_jax,
        as_jax,
        0,
        dict(coo=_ANY, csr=_ANY),
        joined=True,
        batches=("coo", "csr"),
        dense=True,
        host=False,
    ),
    "cupy": SparseLibrary(
        _parse_cupy,
        _emit_cupy,
        as_cupy,
        128,
        dict(coo=_NARROW, csr=_NARROW, csc=_NARROW),
        values="?fdFD",
        host=False,
        max_ndim=2,
    ),
    "pydata_sparse": SparseLibrary(
        _parse_pydata_sparse,
        _emit_pydata_sparse,
        as_numpy,
        256,
        dict(coo=_ANY, csr=_ANY, csc=_ANY),
        canonical=("coo", "csr", "csc"),
        joined=True,
    ),
    "onedal": SparseLibrary(_parse_onedal),
}

# Libraries to which sparse arrays are exported.
RULES = {name: row for name, row in LIBRARIES.items() if row.emit is not None}

# NumPy type numbers of each index type. On Linux, long and long long are both int64.
TYPE_NUMBERS = {
    name: {np.dtype(char).num for char in "bBhHiIlLqQ" if np.dtype(char) == np.dtype(name)} for name in _ANY
}


# ----------------------------------------------------------------------------------------------------------- assparse


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
        raise TypeRefusal(
            "assparse",
            f"{show(obj)} is of type {name_of_type(type(obj))}, which is not sparse",
            f"sparse arrays of scipy, torch, jax, cupyx and pydata/sparse, and csr tables of oneDAL. {advice}",
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
