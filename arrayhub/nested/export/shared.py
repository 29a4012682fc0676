"""Steps that all exports share: the import, the argument `copy`, chunks, and errors about memory on a device."""

from collections.abc import Callable
from typing import Any

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import empty_like
from arrayhub._core.errors import Refusal
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import unread
from arrayhub.convert.names import sparse_library
from arrayhub.libraries.numpy import VALUES
from arrayhub.nested.array import NestedArray, is_on_host, nested_of, one_chunk, unwrap_flat
from arrayhub.nested.asnested import change_imported, import_node
from arrayhub.nested.concatenate import concatenate
from arrayhub.runtimes.host import is_packed

# emit(array, copied, obj) returns `array`, which was imported from `obj`, as an array of the library
Emit = Callable[[Any, bool, Any], Any]


def export(
    call: str,
    emit: Emit,
    obj: Any,
    copy: Copy,
    dtype: Any = None,
    device: Any = None,
    missing: Any = None,
    own: tuple[type, ...] = (),
) -> Any:
    """Import `obj`, and return it as an array of a library. `obj` is imported only once, because it may be a stream.

    An instance of one of the classes `own` is returned unchanged if `dtype` and `device` do not change it.
    """
    copy = check_copy(copy, call)
    if copy is False and issubclass(type(obj), VALUES):  # values are built whatever `copy` says
        copy = None
    if missing is not None:
        obj, copy = hooks.nested.replace_missing(obj, missing, copy, call.partition("_")[2])
    try:
        array = import_array(obj, copy)
        if dtype is not None or device is not None:
            nested = nested_of(array)
            changed = change_imported(nested, obj, dtype, device)
            if changed is not nested:  # the change may copy whatever `copy` says
                array, copy = unwrap_flat(changed), None
            elif isinstance(obj, own) and not copy:
                return obj
        if copy is not None:
            return emit(array, copy is True, obj)
        try:
            return emit(array, False, obj)
        except BufferError:
            if not is_on_host(array):  # copy=None does not leave the device
                raise
        return emit(import_array(array, True), True, obj)
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        if not isinstance(error, TypeError) or sparse_library(obj) is None:
            raise hooks.advice.complete_refusal(error, obj, call.partition("_")[2])  # noqa: B904
    return hooks.sparse.export(obj, call.partition("_")[2])  # raises the error for libraries without sparse arrays


def import_array(obj: Any, copy: Copy) -> Any:
    """Import an object as a NestedArray, or as a USMArray if it is dense. ``copy=True`` copies to one host chunk."""
    if issubclass(type(obj), NestedArray):
        return concatenate([obj]) if copy else obj
    node = import_node(obj, copy)
    return unwrap_flat(node) if isinstance(node, NestedArray) else node


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


def is_chunked(array: Any) -> bool:
    return isinstance(array, NestedArray) and kind_of(array).chunks


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
