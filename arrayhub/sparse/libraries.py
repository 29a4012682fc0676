"""assparse, and the table of libraries: how their sparse arrays are imported and exported, and what a library accepts.

docs/sparse.md shows the table, and tests/sparse/test_export_rules.py checks each row against the library. The names in
`RULES` are those in the column `sparse` of `libraries.table`, which recognizes the types.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import PASSES_ON, Refusal, TypeRefusal, first_line, name_of_type, needed, root_of, show
from arrayhub.convert import functions
from arrayhub.convert.functions import as_cupy, as_jax, as_numpy, as_torch, call_traced, import_unadvised, is_traced
from arrayhub.convert.labels import cache_by_type
from arrayhub.convert.names import SPARSE
from arrayhub.libraries.known import derived_from
from arrayhub.libraries.wrappers import known
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, INTEGERS, PADDED, TRUSTED, check_shapes, is_marked_canonical

_Export = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SparseLibrary:
    """A library of sparse arrays, and the arrays that it accepts."""

    # ``parse(obj, copy)`` imports a sparse object, and returns None for a dense one.
    parse: Callable[[Any, Copy], SparseArray | None]
    # ``emit(x, export, matrix)`` returns an array of the library that shares the memory of `x`, a result of
    # `export.conform`. `export` exports each part. `matrix` requests a SciPy matrix.
    emit: Callable[[SparseArray, _Export, bool], Any]
    export: Callable[..., Any]  # exports the parts
    formats: dict[str, tuple[np.dtype[Any], ...]]  # accepted index types by format, the preferred type first
    canonical: tuple[str, ...] = ()  # formats for which unsorted or repeated indices would lead to wrong results
    joined: bool = False  # whether the coordinates are one array instead of one array for each dimension
    batches: tuple[str, ...] = ()  # formats in which the library supports batch dimensions
    dense: bool = False  # whether the library supports dense dimensions
    # accepted element types by format, as NumPy's characters; for other formats, the exporter of the parts decides
    values: dict[str, str] = field(default_factory=dict)
    max_ndim: int | None = None  # largest number of dimensions, or None

    @property
    def host(self) -> bool:
        """bool : true if the library reads only host memory."""
        return self.export is as_numpy


def import_parts(source: str, format: str, shape: Any, data: Any, structure: Any, **facts: Any) -> SparseArray:
    """Import the arrays of a sparse array. `source` is the subject of errors."""
    x = SparseArray(format, tuple(shape), import_unadvised(data), tuple(map(import_unadvised, structure)), **facts)
    check_shapes(source, x)
    return x


# --------------------------------------------------------------------------------------------------- SciPy and CuPy


def _parse_scipy(obj: Any, copy: Copy) -> Any:
    """Import an array or a matrix of scipy.sparse or cupyx.scipy.sparse."""
    row, shape, blocksize = FORMATS.get(obj.format), obj.shape, None
    if row is None or (row.compressed is not None and len(shape) != 2):
        raise Refusal(
            name_of_type(type(obj)),
            f"{obj.format} of shape {shape} is not supported",
            "coo, and csr, csc and bsr of 2 dimensions",
            "arrayhub.assparse(x.tocoo())",
        )
    data = import_unadvised(obj.data)
    if row.compressed is None:  # the matrices of cupyx do not have `coords`
        structure = obj.coords if hasattr(obj, "coords") else (obj.row, obj.col)
    else:
        pointers = obj.indptr
        structure = indices, indptr = import_unadvised(obj.indices), import_unadvised(pointers)
        stored = indices.shape
        blocksize = obj.blocksize if row.blocks else None
        is_readable = isinstance(pointers, np.ndarray) and pointers.ndim == 1 and indptr.typenum in INTEGERS
        if stored and stored == data.shape[:1] and is_readable:
            used = int(pointers[-1]) if pointers.size else -1
            if 0 <= used < stored[0]:  # SciPy ignores the elements after `used`
                data, structure = data[:used], (indices[:used], indptr)
            elif (  # the same checks as in `check_shapes`, but faster
                (not row.blocks and data.ndim == 1 and indptr.shape[0] == shape[row.compressed] + 1)
                and indices.typenum in INTEGERS
            ):
                return SparseArray(obj.format, shape, data, structure)
    source = "cupyx.scipy.sparse" if root_of(type(obj)) == "cupyx" else "scipy.sparse"
    return import_parts(source, obj.format, shape, data, structure, blocksize=blocksize)


def _separate(x: SparseArray, export: _Export) -> tuple[Any, ...]:
    """Return the parts in the form that the constructors of SciPy and CuPy expect. Coordinates are separate arrays."""
    if x.coords is None:
        return (export(x.data), *map(export, x.structure))
    return export(x.data), tuple(map(export, x.coords))


def _emit_scipy(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a SciPy sparse array, or a SciPy matrix, that shares the memory of `x`."""
    sparse = needed("scipy.sparse", "to create its sparse arrays").sparse
    parts = _separate(x, export)
    made = getattr(sparse, f"{x.format}_{'matrix' if matrix else 'array'}")(parts, shape=x.shape)
    if x.format == "coo":  # the constructor narrows int64 to int32 if the values fit
        made.coords = parts[1]
    else:
        made.indices, made.indptr = parts[1:]
    return made


def _emit_cupy(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a matrix of cupyx.scipy.sparse that shares the memory of `x`."""
    needed("cupy", "to create its arrays")
    make = getattr(import_module("cupyx.scipy.sparse"), f"{x.format}_matrix")
    parts = _separate(x, export)
    with parts[0].device:
        return make(parts, shape=x.shape)


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
        raise Refusal("torch", "requires_grad is True", "tensors outside autograd", "x.detach()")
    if name == "coo":
        indices, data = _torch_coo_parts(obj)
        return import_parts("torch", name, obj.shape, data, (indices,))
    of_columns, data = FORMATS[name].compressed == 1, import_unadvised(obj.values())
    indices = obj.row_indices() if of_columns else obj.col_indices()
    indptr = obj.ccol_indices() if of_columns else obj.crow_indices()
    batch = indices.ndim - 1
    blocksize = data.shape[batch + 1 : batch + 3] if FORMATS[name].blocks else None
    return import_parts("torch", name, obj.shape, data, (indices, indptr), blocksize=blocksize, batch_ndim=batch)


def _torch_coo_parts(obj: Any) -> tuple[Any, Any]:
    """Return indices and values. For tensors that are not coalesced, torch has only private methods."""
    if obj.is_coalesced():
        return obj.indices(), obj.values()
    try:
        return obj._indices(), obj._values()
    except AttributeError:
        raise Refusal("torch", "the tensor is not coalesced", call="x.coalesce()") from None


def _emit_torch(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a sparse tensor that shares the memory of `x`. A canonical COO tensor is marked as coalesced."""
    arrays = [*map(export, x.structure[::-1]), export(x.data)]  # pointers, indices and values
    coalesced = {"is_coalesced": is_marked_canonical(x)} if x.format == "coo" else {}
    try:
        make = getattr(sys.modules["torch"], f"sparse_{x.format}_tensor")
        return make(*arrays, x.shape, check_invariants=False, **coalesced)
    except PASSES_ON:
        raise
    except RuntimeError as error:
        raise Refusal("torch", f"{x!r} is not supported ({first_line(error)})") from error


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
    parts = (obj.data, obj.indices, *([obj.indptr] if kind == "BCSR" else []))
    arrays = list(map(import_unadvised, parts))
    for array in arrays:
        if array.shape[:batch] != shape[:batch]:
            raise Refusal(
                source,
                f"an array of shape {array.shape} is broadcast to the batches {shape[:batch]}; accepted:"
                f" arrays of all batches. Call jax.experimental.sparse.bcoo_update_layout(x, n_batch=0) first, which"
                " copies. Convert a BCSR matrix by x.to_bcoo() before this call",
            )
    data, indices, *indptr = arrays
    if kind == "BCOO":  # the last dimension is that of the coordinates
        indices = indices.transpose(batch + 1, *range(batch + 1))
    format = "csr" if indptr else "coo"
    return import_parts(source, format, shape, data, (indices, *indptr), batch_ndim=batch, state=PADDED)


def _emit_jax(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a BCOO or BCSR matrix that shares the memory of `x`."""
    sparse = needed("jax.experimental.sparse", "to create its sparse arrays").experimental.sparse
    canonical, structure, make = is_marked_canonical(x), x.structure, sparse.BCSR
    if x.format == "coo":
        structure, make = (structure[0].transpose(*range(1, x.batch_ndim + 2), 0),), sparse.BCOO
    parts = (export(x.data), *map(export, structure))
    return make(parts, shape=x.shape, indices_sorted=canonical, unique_indices=canonical)


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
        return import_parts("sparse", "coo", shape, obj.data, (obj.coords,))
    axes = tuple(getattr(obj, "compressed_axes", None) or ())
    if obj.ndim != 2 or axes not in ((0,), (1,)):
        raise Refusal(
            cls,
            f"compressed_axes is {axes or None} for shape {shape}",
            "COO, or two dimensions with one compressed axis",
            "arrayhub.assparse(x.asformat('coo'))",
        )
    return import_parts("sparse", ("csr", "csc")[axes[0]], shape, obj.data, (obj.indices, obj.indptr))


def _emit_pydata_sparse(x: SparseArray, export: _Export, matrix: bool) -> Any:
    """Return a COO array, or a GCXS array for csr and csc, that shares the memory of `x`."""
    sparse = needed("sparse", "to create its arrays")
    data, *structure = map(export, (x.data, *x.structure))
    if x.format == "coo":
        return sparse.COO(*structure, data, shape=x.shape, has_duplicates=False, sorted=True)
    return sparse.GCXS((data, *structure), shape=x.shape, compressed_axes=(FORMATS[x.format].compressed,))


# ----------------------------------------------------------------------------------------------------------- oneDAL


def _parse_onedal(obj: Any, copy: Copy) -> Any:
    """Import a copy of a csr table, because oneDAL does not share its memory. Return None for other tables."""
    if obj.kind != "csr":
        return None
    if copy is False:
        raise Refusal("onedal", "csr tables are exported as copies only", call="arrayhub.assparse(x, copy=True)")
    data, *structure = sys.modules["onedal.datatypes"].from_table(obj)
    return import_parts("onedal", "csr", obj.shape, data, structure)


# ------------------------------------------------------------------------------------------------------------ table

_ANY = tuple(map(np.dtype, ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")))
_NARROW, _WIDE, _BOTH = _ANY[:1], _ANY[1:2], _ANY[:2]
_COMPRESSED = ("csr", "csc", "bsr", "bsc")

RULES = {
    "scipy": SparseLibrary(
        _parse_scipy,
        _emit_scipy,
        as_numpy,
        dict.fromkeys(("coo", "csr", "csc", "bsr"), _BOTH),
        values=dict.fromkeys(("coo", "csr", "csc", "bsr"), "?bBhHiIlLqQfdgFDG"),
    ),
    "torch": SparseLibrary(
        _parse_torch,
        _emit_torch,
        as_torch,
        {"coo": _WIDE, **dict.fromkeys(_COMPRESSED, _BOTH)},
        canonical=_COMPRESSED,
        joined=True,
        batches=_COMPRESSED,
        dense=True,
    ),
    "jax": SparseLibrary(
        _parse_jax,
        _emit_jax,
        as_jax,
        dict(coo=_ANY, csr=_ANY),
        joined=True,
        batches=("coo", "csr"),
        dense=True,
    ),
    "cupy": SparseLibrary(
        _parse_scipy,
        _emit_cupy,
        as_cupy,
        dict(coo=_NARROW, csr=_NARROW, csc=_NARROW),
        values=dict.fromkeys(("coo", "csr", "csc"), "?fdFD"),
        max_ndim=2,
    ),
    "pydata_sparse": SparseLibrary(
        _parse_pydata_sparse,
        _emit_pydata_sparse,
        as_numpy,
        dict(coo=_ANY, csr=_ANY, csc=_ANY),
        canonical=("coo", "csr", "csc"),
        joined=True,
        values=dict.fromkeys(("csr", "csc"), "?bBhHiIlLqQfdFD"),  # GCXS is compiled by Numba
    ),
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
    if validate is not True and validate is not False:
        raise TypeError(f"assparse: validate is {show(validate)}; accepted: True, False")
    return functions.call_completing(import_sparse, obj, SPARSE, check_copy(copy, "assparse"), dtype, device, validate)


def import_sparse(obj: Any, copy: Copy, dtype: Any = None, device: Any = None, validate: bool = True) -> SparseArray:
    """Implement `assparse`. The call of a refusal is that of the importer, and may not work."""
    if is_traced():
        return call_traced("assparse", obj, import_sparse, copy, dtype, device, validate)
    x = sparse_or_none(obj, copy if dtype is None and device is None else None)
    if x is None:
        reason = f"{show(obj)} is of type {name_of_type(type(obj))}, which is not sparse"
        accepted = "sparse arrays of scipy, torch, jax, cupyx, pydata/sparse, oneDAL. Use arrayhub.asarray(x) otherwise"
        raise TypeRefusal("assparse", reason, accepted)
    made = x.copy() if copy and root_of(type(obj)) != "onedal" else x  # oneDAL itself makes a copy
    made = made._change(dtype, device)
    return made if validate else made._with_parts(made.data, made.structure, TRUSTED)


def sparse_or_none(obj: Any, copy: Copy = False) -> SparseArray | None:
    """Import an object if it is sparse, with the errors of `assparse`. Return None for other objects.

    Only tables of oneDAL are copied, unless `copy` is False.
    """
    if isinstance(obj, SparseArray):
        return obj
    parse = _find_importer(type(obj))
    return None if parse is None else parse(obj, copy)


_is_tensor = derived_from("torch", "Tensor")


@cache_by_type
def _find_importer(cls: type) -> Callable[[Any, Copy], SparseArray | None] | None:
    """Return the importer for a type, or None if objects of the type are never sparse."""
    if root_of(cls) == "onedal" and cls.__name__ == "table":
        return _parse_onedal
    name = "torch" if _is_tensor(cls) else known(cls).sparse
    return None if name is None else RULES[name].parse
