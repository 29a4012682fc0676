from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack, overload

# Imported only by type checkers, which treat a library that is not installed as Any.
import cupy
import dpnp
import jax
import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import disjoint_base

from arrayhub._core.copying import Copy
from arrayhub._core.descriptor import _DeviceLike
from arrayhub.array.usm_array import USMArray, _DTypeLike, _Progress

_Via: TypeAlias = Literal["array_interface", "array_struct", "cuda", "sycl", "buffer", "dlpack", "arrow"]

_Out = TypeVar("_Out")
_T = TypeVar("_T")
_Array_co = TypeVar("_Array_co", covariant=True)
_Masked_co = TypeVar("_Masked_co", covariant=True)

EXPORTERS: dict[str, Any]

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

# The keywords of all exports, without `missing`, whose value determines the type of the result.
class _Request(TypedDict, total=False):
    copy: Copy
    dtype: _DTypeLike | None
    device: _DeviceLike | None

# The signature of an export. The second type is that of the result for missing="mask".
class _Export(Protocol[_Array_co, _Masked_co]):
    @overload
    def __call__(self, obj: Any, /, *, missing: Literal["mask"], **request: Unpack[_Request]) -> _Masked_co: ...
    @overload
    def __call__(self, obj: Any, /, *, missing: Any = None, **request: Unpack[_Request]) -> _Array_co: ...

# For libraries without read-only arrays.
class _ExportReadonly(Protocol[_Array_co]):
    @overload
    def __call__(
        self, obj: Any, /, *, missing: Literal["mask"], allow_readonly: bool = False, **request: Unpack[_Request]
    ) -> tuple[_Array_co, _Array_co]: ...
    @overload
    def __call__(
        self, obj: Any, /, *, missing: Any = None, allow_readonly: bool = False, **request: Unpack[_Request]
    ) -> _Array_co: ...

as_numpy: _Export[npt.NDArray[Any], np.ma.MaskedArray[Any, Any]]
as_torch: _ExportReadonly[torch.Tensor]
as_jax: _Export[jax.Array, tuple[jax.Array, jax.Array]]
as_cupy: _ExportReadonly[cupy.ndarray]
as_dpnp: _Export[dpnp.ndarray, tuple[dpnp.ndarray, dpnp.ndarray]]
as_numba: _Export[Any, tuple[Any, Any]]

@disjoint_base
class SparseParts:
    format: str
    shape: tuple[int, ...]
    data: Any
    structure: tuple[Any, ...]
    blocksize: tuple[int, int] | None
    batch_ndim: int
    _state: int
    def __new__(
        cls,
        format: str,
        shape: tuple[int, ...],
        data: Any,
        structure: tuple[Any, ...],
        blocksize: tuple[int, ...] | None = None,
        batch_ndim: int = 0,
        state: int = 0,
    ) -> Self: ...

def array_or_nested(obj: Any, /) -> Any: ...
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
    obj: Any,
    name: str,
    copy: Copy,
    dtype: Any,
    device: Any,
    missing: Any,
    allow_readonly: bool = False,
    model: Any = None,
) -> Any: ...
def is_array_of(obj: Any, name: str, /) -> bool: ...
def import_unadvised(obj: Any, /, *, missing: Any = None, via: Any = None, **request: Unpack[_Request]) -> Any: ...
def import_allowed(obj: Any, copy: Copy, call: str) -> USMArray: ...
def is_traced() -> bool: ...
def call_completing(function: Callable[..., _T], obj: Any, name: str, /, *arguments: Any, **options: Any) -> _T: ...
def call_traced(call: str, obj: Any, function: Callable[..., _T], /, *arguments: Any, **options: Any) -> _T: ...
def refuse_bytes(obj: Any, dtype: Any, /) -> None: ...
def objects_of(obj: Any) -> Any: ...
def check_level(obj: Any, level: int, seen: dict[int, Any]) -> bool: ...
def import_elements(obj: Any) -> Any: ...
def protocols_of_type(cls: type, /) -> tuple[bool, tuple[str, ...]]: ...
def check_exportable(obj: Any, /) -> None: ...
