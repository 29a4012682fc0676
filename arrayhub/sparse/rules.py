"""Table of the sparse arrays that each library accepts, and conversion of arrays that a library does not accept.

docs/sparse.md shows the table, and tests/sparse/test_rules.py checks each row against the library.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from arrayhub._core.errors import NO_CUDA_DEVICE, Refusal, needed
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.libraries.jax import NARROWED, has_x64
from arrayhub.runtimes.cuda import has_device
from arrayhub.runtimes.host import is_host_readable
from arrayhub.sparse.conversion import has_padding, to_format
from arrayhub.sparse.formats import FORMATS
from arrayhub.sparse.to_device import moved, to_host
from arrayhub.sparse.validation import (
    PADDED,
    SEEN,
    TRUSTED,
    is_canonical,
    is_on_host,
    structure_of,
    validate_export,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Sparse arrays that a library accepts.

    Attributes
    ----------
    bit : int
        Bit of `SparseParts._state` that marks accepted arrays. 0 if acceptance depends on a setting of the library.
    formats : dict
        Accepted index types by format, the preferred type first.
    canonical : tuple of str
        Formats whose indices must be sorted and distinct, because the library computes wrong results otherwise.
    joined : bool
        Whether the coordinates are one array instead of one array for each dimension.
    batches : tuple of str
        Formats in which the library supports batch dimensions.
    dense : bool
        Whether the library supports dense dimensions.
    values : str
        Accepted element types in native byte order, as NumPy type characters. Empty if the library itself rejects the
        element types that it does not support.
    host : bool
        Whether the library reads only host memory.
    max_ndim : int or None
        Largest number of dimensions. None if the number is not limited.
    """

    bit: int
    formats: dict[str, tuple[str, ...]]
    canonical: tuple[str, ...] = ()
    joined: bool = False
    batches: tuple[str, ...] = ()
    dense: bool = False
    values: str = ""
    host: bool = True
    max_ndim: int | None = None


_WIDE = ("int64",)
_BOTH = ("int32", "int64")
_NARROW = ("int32",)
_ANY = ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")

RULES = {
    "scipy": Rules(16, dict(coo=_BOTH, csr=_BOTH, csc=_BOTH, bsr=_BOTH), values="?bBhHiIlLqQfdgFDG"),
    "torch": Rules(
        32,
        dict(coo=_WIDE, csr=_BOTH, csc=_BOTH, bsr=_BOTH, bsc=_BOTH),
        canonical=("csr", "csc", "bsr", "bsc"),
        joined=True,
        batches=("csr", "csc", "bsr", "bsc"),
        dense=True,
        host=False,
    ),
    "jax": Rules(0, dict(coo=_ANY, csr=_ANY), joined=True, batches=("coo", "csr"), dense=True, host=False),
    "cupy": Rules(128, dict(coo=_NARROW, csr=_NARROW, csc=_NARROW), values="?fdFD", host=False, max_ndim=2),
    "pydata_sparse": Rules(256, dict(coo=_ANY, csr=_ANY, csc=_ANY), canonical=("coo", "csr", "csc"), joined=True),
}

# NumPy type numbers of each index type. On Linux, long and long long are both int64.
_NUMBERS = {name: {np.dtype(char).num for char in "bBhHiIlLqQ" if np.dtype(char) == np.dtype(name)} for name in _ANY}


def conform(x: Any, library: str, copy: bool | None) -> Any:
    """Return `x` itself if a library accepts it, else an array in which the rejected parts are converted.

    Raises
    ------
    BufferError
        The library does not support the format, or a conversion is required and `copy` is not true. The message names
        the call to make instead.
    InterfaceError
        An index or a pointer is invalid.
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
            raise Refusal(library, f"the memory is on {x.device}, which {library} cannot read", call="x.to_host()")
        x = to_host(x)
    validate_export(x)
    if x._state & PADDED and library != "jax":
        x = _without_padding(x, library, copy)
    if x.format in rules.canonical and not x._state & TRUSTED and is_on_host(x) and not is_canonical(x):
        _need(copy, library, _UNSORTED)
        x = _canonical(x, library)
    x = _with_indices(x, rules, library, copy)
    if rules.values and not x.dtype.isnative:
        _need(copy, library, f"values of {x.dtype} are not in native byte order")
        data, native = x.data, x.dtype.newbyteorder("=")
        x = moved(x, lambda array: _cast(array, native) if array is data else array)
    if x is given:
        x._state |= rules.bit
    return x


def _check_kind(x: Any, rules: Rules, library: str) -> None:
    """Raise Refusal if the library does not support the format, the dimensions or the element type."""

    def export(given: str, *arguments: str) -> str:
        words = ", ".join((given, *(("'pydata_sparse'",) if library == "pydata_sparse" else ()), *arguments))
        return f"arrayhub.{'convert' if library == 'pydata_sparse' else f'as_{library}'}({words})"

    def call(method: str) -> str:
        return export(f"arrayhub.assparse(x).{method}", "copy=True")

    if x.format not in rules.formats:
        other = "to_format('coo')" if x.batch_ndim or x.dense_ndim else "to_format('csr')"
        raise Refusal(library, f"{x.format} is not supported", ", ".join(rules.formats), call(other))
    if x.batch_ndim and x.format not in rules.batches:
        other = "to_dense()" if rules.max_ndim else "to_format('coo')"
        raise Refusal(library, f"{x.format} of shape {x.shape} has batches, which are not supported", "", call(other))
    pointers = as_numpy(x.indptr) if _is_padded(x, library) and x.batch_ndim and x.format != "coo" else None
    if pointers is not None and np.unique(pointers[..., -1]).size > 1:
        raise Refusal(library, _COUNTS, "", call("to_format('coo')"))
    if x.dense_ndim and not rules.dense:
        raise Refusal(library, f"shape {x.shape} has dense dimensions, which are not supported", "", call("to_dense()"))
    if rules.max_ndim and len(x.shape) > rules.max_ndim:
        reason = f"shape {x.shape} has {len(x.shape)} dimensions"
        raise Refusal(library, reason, str(rules.max_ndim), call("to_dense()"))
    names: Any = ()
    if rules.values and x.dtype.char not in rules.values:
        names = dict.fromkeys(np.dtype(char).name for char in rules.values)
        wider = next((name for name in names if np.can_cast(x.dtype, name)), None)
    elif library == "jax" and x.dtype.name in NARROWED and not has_x64():
        names, wider = (f"{NARROWED[x.dtype.name]}, or {x.dtype.name} with jax_enable_x64",), NARROWED[x.dtype.name]
    if names:
        moved = ("device='cpu'",) if rules.host and not is_on_host(x) else ()
        cast = export("x", f"dtype={wider!r}", *moved) if wider else ""
        raise Refusal(library, f"values of {x.dtype} are not supported", ", ".join(names), cast)


def check_export(x: Any, library: str) -> None:
    """Raise the Refusal of an export that fails even with ``copy=True``, without converting the array."""
    _check_kind(x, RULES[library], library)
    if library == "cupy" and not has_device():
        raise Refusal(library, NO_CUDA_DEVICE)


def why_copied(x: Any, library: str) -> str:
    """Return why the export of an array copies, or "". Whether indices are sorted is known after the first export."""
    rules = RULES[library]
    if x._state & rules.bit:
        return "" if library != "torch" or x.access == "readwrite" else _READONLY
    if rules.host and not is_on_host(x):
        return f"the memory is on {x.device}, which {library} cannot read"
    why = _PADDING if _is_padded(x, library) and has_padding(x) else _why_indices_are_converted(x, rules, library)
    if not why and x.format in rules.canonical and not x._state & TRUSTED and is_on_host(x) and not is_canonical(x):
        why = _UNSORTED
    if not why and rules.values and not x.dtype.isnative:
        why = f"values of {x.dtype} are not in native byte order"
    if not why and library == "torch" and x.access != "readwrite":
        why = _READONLY
    if not why and library == "jax" and any(array.ptr % 64 and array.size for array in (x.data, *structure_of(x))):
        why = "jax shares only host memory that starts on a 64-byte boundary"
    return why


_READONLY = "the memory is read-only, and torch does not have read-only tensors"
_PADDING = "some elements are padding, which only jax ignores"
_COUNTS = "the batches have different numbers of stored values"
_UNSORTED = "the indices are unsorted or repeated, and the library would compute wrong results"


def _is_padded(x: Any, library: str) -> bool:
    """Return whether an array may contain padding that a library does not support. The host can read such an array."""
    return bool(x._state & PADDED) and library != "jax" and is_on_host(x)


def _need(copy: bool | None, library: str, why: str) -> None:
    if not copy:
        raise Refusal(library, why)


def _without_padding(x: Any, library: str, copy: bool | None) -> Any:
    """Return an array without jax's padding. The array is copied only if some elements are padding."""
    if not has_padding(x):
        return moved(x, lambda array: array, x._state & ~PADDED)
    _need(copy, library, _PADDING)
    return _canonical(x, library)


def _canonical(x: Any, library: str) -> Any:
    """Return a copy without padding whose indices are sorted and distinct."""
    made = to_format(x, FORMATS[x.format])
    if made._state & PADDED:
        raise Refusal(library, _COUNTS)
    return made


def _with_indices(x: Any, rules: Rules, library: str, copy: bool | None) -> Any:
    """Convert the indices to a type that the library accepts, and join the coordinates if the library requires it."""
    why = _why_indices_are_converted(x, rules, library)
    if not why:
        return x
    _need(copy, library, why)
    accepted, arrays = _index_types(x, rules, library), structure_of(x)
    separate = x.format == "coo" and x.coords_array is None
    dtype = _first_that_holds(x, accepted, library)
    facts = dict(blocksize=x.blocksize, batch_ndim=x.batch_ndim, state=x._state & SEEN)
    if separate and rules.joined:
        return type(x)("coo", x.shape, x.data, coords_array=_joined(x, dtype), **facts)
    arrays = tuple(_cast(array, dtype) for array in arrays)
    if separate:
        return type(x)("coo", x.shape, x.data, coords=arrays, **facts)
    if x.format == "coo":
        return type(x)("coo", x.shape, x.data, coords_array=arrays[0], **facts)
    return type(x)(x.format, x.shape, x.data, *arrays, **facts)


def _index_types(x: Any, rules: Rules, library: str) -> tuple[str, ...]:
    accepted = rules.formats[x.format]
    if library == "jax" and not has_x64():  # jax would silently narrow int64
        accepted = tuple(name for name in accepted if not name.endswith("int64"))
    return accepted


def _why_indices_are_converted(x: Any, rules: Rules, library: str) -> str:
    accepted, arrays = _index_types(x, rules, library), structure_of(x)
    if not _is_one_of(arrays, accepted):
        names = " and ".join(sorted({array.dtype.name for array in arrays}))
        return f"indices of {names} are not supported; accepted: {' or '.join(accepted)}"
    if rules.joined and x.format == "coo" and x.coords_array is None:
        return "the coordinates are separate arrays, and the library requires a single array"
    return ""


def _is_one_of(arrays: tuple[Any, ...], accepted: tuple[str, ...]) -> bool:
    """Return whether all arrays have the same element type, which is one of `accepted`."""
    return any(all(array.typenum in _NUMBERS[name] for array in arrays) for name in accepted)


def _first_that_holds(x: Any, accepted: tuple[str, ...], library: str) -> np.dtype[Any]:
    """Return the first accepted type that can represent all indices and pointers."""
    most = max((*x.shape, x.data.shape[x.batch_ndim]))
    for name in accepted:
        if most <= np.iinfo(name).max:
            return np.dtype(name)
    raise Refusal(library, f"shape {x.shape} needs indices of int64; accepted: {', '.join(accepted)}")


def _joined(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return the coordinates as one array of shape (dimensions, *batches, elements).

    The array is in host memory if the host can read `x`, else on the device of `x`.
    """
    joined = np.empty((len(x.coords), *x.data.shape[: x.batch_ndim + 1]), dtype)
    for k, array in enumerate(x.coords):
        joined[k] = as_numpy(array.to_host())
    return _beside(asarray(joined), x.data)


def _cast(array: Any, dtype: np.dtype[Any]) -> Any:
    """Cast an array to `dtype`, in host memory or on the device of the array. See `_beside`."""
    return array if array.dtype == dtype else _beside(asarray(array.to_host(), dtype=dtype), array)


def _beside(array: Any, model: Any) -> Any:
    """Copy a host array to the device of `model`. If the host can read `model`, return the host array itself."""
    return array if is_host_readable(model) else array.to_device(model.device)
