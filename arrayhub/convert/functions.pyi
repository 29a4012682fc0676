from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, overload

# For type checkers only: a library that is not installed is Any.
import awkward
import cupy
import dpnp
import jax
import numpy.typing as npt
import pandas
import polars
import pyarrow
import torch

from arrayhub._core.copying import Copy
from arrayhub._core.device import _DeviceLike
from arrayhub.array.usm_array import USMArray, _Progress

_Via: TypeAlias = Literal["array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack", "arrow"]

_Out = TypeVar("_Out")

CONSUMERS: tuple[str, ...]

def asarray(
    obj: Any,
    /,
    *,
    dtype: npt.DTypeLike | None = None,
    device: _DeviceLike | None = None,
    copy: Copy = None,
    stream: Any = None,
    via: _Via | None = None,
) -> USMArray: ...
def from_dlpack(
    obj: Any, /, *, device: _DeviceLike | None = None, copy: Copy = None, stream: Any = None
) -> USMArray: ...
def as_numpy(obj: Any, /, *, copy: Copy = None) -> npt.NDArray[Any]: ...
def as_cupy(obj: Any, /, *, copy: Copy = None, allow_readonly: bool = False) -> cupy.ndarray: ...
def as_torch(obj: Any, /, *, copy: Copy = None, allow_readonly: bool = False) -> torch.Tensor: ...
def as_jax(obj: Any, /, *, copy: Copy = None) -> jax.Array: ...
def as_dpnp(obj: Any, /, *, copy: Copy = None) -> dpnp.ndarray: ...
def as_numba(obj: Any, /, *, copy: Copy = None) -> Any: ...
def array_or_nested(obj: Any, /) -> Any: ...
def nested_consumers() -> tuple[str, ...]: ...
@overload
def convert(
    obj: Any, to: Literal["numpy", "np"], *, copy: Copy = None, allow_readonly: bool = False
) -> npt.NDArray[Any]: ...
@overload
def convert(
    obj: Any, to: Literal["torch", "pytorch"], *, copy: Copy = None, allow_readonly: bool = False
) -> torch.Tensor: ...
@overload
def convert(obj: Any, to: Literal["jax"], *, copy: Copy = None, allow_readonly: bool = False) -> jax.Array: ...
@overload
def convert(obj: Any, to: Literal["cupy"], *, copy: Copy = None, allow_readonly: bool = False) -> cupy.ndarray: ...
@overload
def convert(obj: Any, to: Literal["dpnp"], *, copy: Copy = None, allow_readonly: bool = False) -> dpnp.ndarray: ...
@overload
def convert(
    obj: Any, to: Literal["arrow", "pyarrow"], *, copy: Copy = None, allow_readonly: bool = False
) -> pyarrow.Array: ...
@overload
def convert(
    obj: Any, to: Literal["polars"], *, copy: Copy = None, allow_readonly: bool = False
) -> polars.Series | polars.DataFrame: ...
@overload
def convert(
    obj: Any, to: Literal["pandas"], *, copy: Copy = None, allow_readonly: bool = False
) -> pandas.Series | pandas.DataFrame: ...
@overload
def convert(obj: Any, to: Literal["awkward"], *, copy: Copy = None, allow_readonly: bool = False) -> awkward.Array: ...
@overload
def convert(obj: Any, to: str | ModuleType | type, *, copy: Copy = None, allow_readonly: bool = False) -> Any: ...
@overload
def to_host(
    obj: Any, /, *, out: None = None, copy: Copy = None, stream: Any = None, progress: _Progress = None
) -> USMArray: ...
@overload
def to_host(obj: Any, /, *, out: _Out, copy: Copy = None, stream: Any = None, progress: _Progress = None) -> _Out: ...
def to_device(
    obj: Any, device: _DeviceLike, /, *, copy: Copy = None, stream: Any = None, progress: _Progress = None
) -> USMArray: ...
