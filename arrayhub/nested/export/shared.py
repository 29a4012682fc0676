"""Steps that all exports share: chunks, and errors about memory on a device."""

from typing import Any

from arrayhub._core.descriptor import empty_like
from arrayhub._core.errors import Refusal
from arrayhub.adapters.arrow import unread
from arrayhub.nested.array import NestedArray, is_on_host, one_chunk
from arrayhub.nested.concatenate import concatenate
from arrayhub.runtimes.host import is_packed


def single_chunk(x: NestedArray, copy: Any, library: str, obj: Any = None) -> NestedArray:
    """Return a chunked array as one array. Two or more chunks with elements require a copy.

    Return other arrays unchanged. If `obj` is a stream, the error also states that this call has read the stream.
    """
    one = one_chunk(x)
    if one is not None:
        return one
    if not copy and copy is not None:
        read = "; this call has read the stream x, so create the stream again first" if unread(obj) else ""
        raise Refusal(library, f"the array has {len(x.chunks)} chunks", f"one{read}")
    return concatenate([x]) if library in _HOST_ONLY else copied_chunk(x)


_HOST_ONLY = ("numpy", "awkward", "missing")  # exports whose copies are in host memory


def copied_chunk(x: NestedArray) -> NestedArray:
    """Return a copy of the elements that `x` references, in one chunk on the same device."""
    joined = concatenate([x])
    return joined if is_on_host(x) else joined.to_device(x.device)


def device_error(x: Any, library: str) -> Refusal:
    return Refusal(library, f"the memory is on {x.device}, which {library} cannot read", call="x.to_host()")


def fresh(array: Any) -> Any:
    """Return an empty array of the type that a copy of a dense array has."""
    return array if is_packed(array) or not array.ndim or not len(array) else empty_like(array[:0])


def on_host(x: Any, library: str) -> Any:
    if not is_on_host(x):
        raise device_error(x, library)
    return x


LIST_VIEWS = "list views are converted to lists"
