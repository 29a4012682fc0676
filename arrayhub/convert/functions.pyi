from types import ModuleType
from typing import Any, Literal, Self, TypeAlias, TypeVar, overload

# Imported only by type checkers, which treat a library that is not installed as Any.
import awkward
import cupy
import dpnp
import jax
import numpy as np
import numpy.typing as npt
import pandas
import polars
import pyarrow
import torch
from typing_extensions import disjoint_base

from arrayhub._core.copying import Copy
from arrayhub._core.descriptor import _DeviceLike
from arrayhub.array.usm_array import USMArray, _DTypeLike, _Progress

_Via: TypeAlias = Literal["array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack", "arrow"]

_Out = TypeVar("_Out")
_T = TypeVar("_T")

CONSUMERS: tuple[str, ...]
VALUES: tuple[type, ...]

def asarray(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    stream: Any = None,
    via: _Via | None = None,
) -> USMArray: ...
def from_dlpack(
    obj: Any, /, *, device: _DeviceLike | None = None, copy: Copy = None, stream: Any = None
) -> USMArray: ...
@overload
def as_numpy(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Literal["mask"],
) -> np.ma.MaskedArray[Any, Any]: ...
@overload
def as_numpy(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
) -> npt.NDArray[Any]: ...
@overload
def as_torch(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Literal["mask"],
    allow_readonly: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]: ...
@overload
def as_torch(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> torch.Tensor: ...
@overload
def as_jax(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Literal["mask"],
) -> tuple[jax.Array, jax.Array]: ...
@overload
def as_jax(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
) -> jax.Array: ...
@overload
def as_cupy(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Literal["mask"],
    allow_readonly: bool = False,
) -> tuple[cupy.ndarray, cupy.ndarray]: ...
@overload
def as_cupy(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> cupy.ndarray: ...
@overload
def as_dpnp(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Literal["mask"],
) -> tuple[dpnp.ndarray, dpnp.ndarray]: ...
@overload
def as_dpnp(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
) -> dpnp.ndarray: ...
def as_numba(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
) -> Any: ...

@disjoint_base
class SparseParts:
    format: str
    shape: tuple[int, ...]
    data: Any
    indices: Any
    indptr: Any
    coords_array: Any
    blocksize: tuple[int, int] | None
    batch_ndim: int
    _coords: Any
    _state: int
    def __new__(
        cls,
        format: str,
        shape: tuple[int, ...],
        data: Any,
        indices: Any = None,
        indptr: Any = None,
        coords: tuple[Any, ...] | None = None,
        coords_array: Any = None,
        blocksize: tuple[int, ...] | None = None,
        batch_ndim: int = 0,
        state: int = 0,
    ) -> Self: ...

def array_or_nested(obj: Any, /) -> Any: ...
def nested_consumers() -> tuple[str, ...]: ...
@overload
def convert(
    obj: Any,
    to: Literal["numpy", "np"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> npt.NDArray[Any]: ...
@overload
def convert(
    obj: Any,
    to: Literal["torch", "pytorch"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> torch.Tensor: ...
@overload
def convert(
    obj: Any,
    to: Literal["jax"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> jax.Array: ...
@overload
def convert(
    obj: Any,
    to: Literal["cupy"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> cupy.ndarray: ...
@overload
def convert(
    obj: Any,
    to: Literal["dpnp"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> dpnp.ndarray: ...
@overload
def convert(
    obj: Any,
    to: Literal["arrow", "pyarrow"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> pyarrow.Array | pyarrow.ChunkedArray | pyarrow.Table | pyarrow.RecordBatch: ...
@overload
def convert(
    obj: Any,
    to: Literal["polars"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> polars.Series | polars.DataFrame: ...
@overload
def convert(
    obj: Any,
    to: Literal["pandas"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> pandas.Series | pandas.DataFrame: ...
@overload
def convert(
    obj: Any,
    to: Literal["awkward"],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> awkward.Array: ...
@overload
def convert(
    obj: Any,
    to: str | ModuleType,
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> Any: ...
@overload
def convert(
    obj: Any,
    to: type[_T],
    *,
    copy: Copy = False,
    dtype: _DTypeLike | None = None,
    device: _DeviceLike | None = None,
    missing: Any = None,
    allow_readonly: bool = False,
) -> _T: ...
@overload
def to_host(
    obj: Any, /, *, out: None = None, copy: Copy = None, stream: Any = None, progress: _Progress = None
) -> USMArray: ...
@overload
def to_host(obj: Any, /, *, out: _Out, copy: Copy = None, stream: Any = None, progress: _Progress = None) -> _Out: ...
@overload
def to_device(
    obj: Any,
    device: _DeviceLike,
    /,
    *,
    out: None = None,
    copy: Copy = None,
    stream: Any = None,
    progress: _Progress = None,
) -> USMArray: ...
@overload
def to_device(
    obj: Any, device: _DeviceLike, /, *, out: _Out, copy: Copy = None, stream: Any = None, progress: _Progress = None
) -> _Out: ...
def narrow_for_jax(array: Any, subject: str, /) -> Any: ...
def convert_to_library(
    obj: Any, name: str, copy: Copy, dtype: Any, device: Any, missing: Any, allow_readonly: bool
) -> Any: ...
def convert_by_emit(obj: Any, to: str, emit: Any, copy: Copy) -> Any: ...
def is_array_of(obj: Any, name: str, /) -> bool: ...
def check_values(obj: Any) -> int: ...
def protocols_of_type(cls: type, /) -> tuple[bool, tuple[str, ...]]: ...
def check_exportable(obj: Any, /) -> None: ...
def offer(obj: Any, protocol: str, /) -> USMArray | None: ...
