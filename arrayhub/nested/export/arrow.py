"""Export to pyarrow: `as_arrow`."""

from functools import partial
from typing import TYPE_CHECKING, Any

from arrayhub._core.copying import Copy
from arrayhub._core.descriptor import empty_like
from arrayhub._core.errors import PACKED_BOOLEANS, Refusal, first_line, needed
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import check_node, emit_with_extensions, packs_booleans
from arrayhub.nested.array import NestedArray, export, host_capsules, need_arrow
from arrayhub.nested.conform import is_days, with_days
from arrayhub.nested.to_device import device_error, on_host
from arrayhub.transfer.host_copies import is_packed

if TYPE_CHECKING:
    import pyarrow as pa


def as_arrow(
    obj: Any,
    /,
    *,
    copy: Copy = False,
    dtype: Any = None,
    device: Any = None,
    missing: Any = None,
    extension: bool = False,
) -> "pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch":
    """Return a ``pyarrow.Array`` that shares the memory of `obj`, or a ``pyarrow.ChunkedArray`` of the same chunks.

    A dense array is exported with the type that ``pyarrow.array`` infers from its dtype. Each dimension after the first
    becomes a fixed-size list. Booleans are copied, because Arrow stores eight booleans in a byte.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy : {False, None, True}, optional
        False: share the memory, or raise BufferError. None: share the memory if possible, otherwise copy. True: copy to
        host memory, and convert ``datetime64[D]`` to date32. Booleans are encoded whatever `copy` says.
    extension : bool, default: False
        Whether a dense array becomes an array of Arrow's canonical extension types, which share its memory:
        ``arrow.bool8`` for booleans, and ``arrow.fixed_shape_tensor`` for several dimensions. A tensor keeps the names
        and the order of the dimensions in memory. Nested arrays always keep their own extension types.
    dtype, device : optional
        As in `arrayhub.as_numpy`.
    missing : value, optional
        Replaces missing values, in a copy. None keeps missing values.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        Tables and records become structs. ``arrayhub.convert(x, pyarrow.Table)`` returns a table instead. Chunks are
        shared individually, and ``copy=True`` concatenates the chunks.

    Raises
    ------
    BufferError
        Arrow cannot represent the type, pyarrow does not support the device, or a copy is needed and `copy` does not
        permit it.
    TypeError
        `obj` is not an array, or `missing` has another type than the elements.
    ValueError
        `missing` is "nan" or "mask", or a row is missing and `missing` is not a list.
    OverflowError
        `missing` is out of the range of the element type.
    ImportError
        pyarrow is not installed.

    Examples
    --------
    >>> import pyarrow
    >>> arrayhub.as_arrow(np.array([1, 2])).to_pylist()
    [1, 2]
    >>> print(arrayhub.as_arrow(np.array([True, False])).type)
    bool
    >>> print(arrayhub.as_arrow(np.array([True, False]), extension=True).type)
    extension<arrow.bool8>
    """
    pyarrow = needed("pyarrow", "to create its arrays")
    emit = partial(to_arrow, extension=True) if extension else to_arrow
    return export("arrow", pyarrow, emit, obj, copy, dtype, device, missing, ("Array", "ChunkedArray"))


def to_arrow(pyarrow: Any, array: Any, copied: bool, obj: Any = None, *, extension: bool = False) -> Any:
    """Return a ``pyarrow.Array`` or ``pyarrow.ChunkedArray``. In copies, ``datetime64[D]`` becomes date32.

    If `extension` is true, a dense array gets Arrow's canonical extension types.
    """
    array = with_days(array) if copied else array
    if isinstance(array, NestedArray):
        if kind_of(array).chunks:
            return chunks_to_arrow(array)
    elif extension:
        need_arrow(array, True)
        return _from_device(pyarrow, _WithExtension(array), array)
    capsules = host_capsules(array)
    if capsules is None:
        return _from_device(pyarrow, array, array)
    try:
        import_capsules = pyarrow.Array._import_from_c_capsule  # private, but faster
    except AttributeError:
        return pyarrow.array(array)
    return import_capsules(*capsules)


def _from_device(pyarrow: Any, producer: Any, array: Any) -> Any:
    try:
        return pyarrow.array(producer)
    except (pyarrow.ArrowException, KeyError) as error:
        raise device_error(array, "pyarrow") from error


class _WithExtension:
    """Arrow producer that exports a dense array with extension types."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        return emit_with_extensions(self._array)


def chunks_to_arrow(x: NestedArray, type: Any = None) -> Any:
    """Return a ``pyarrow.ChunkedArray`` that shares the chunks of `x`, for ``NestedArray.__arrow_array__``."""
    pyarrow = needed("pyarrow", "to create its arrays")
    try:
        column = pyarrow.chunked_array(on_host(x, "pyarrow"))
    except pyarrow.ArrowException as error:
        raise Refusal("pyarrow", f"{first_line(error)}") from error
    return column if type is None else column.cast(type)


def check(array: Any, copied: bool, obj: Any) -> None:
    """Raise the error of `as_arrow` for an array, or for its copy on the host, without converting it."""
    if not copied:
        on_host(array, "pyarrow")
    if isinstance(array, NestedArray):
        # Arrow does not have NumPy's days of 8 bytes, which a copy converts. Seconds stand for them.
        check_node(with_days(array, lambda days: days.view("M8[s]")) if copied else array, copied)
    elif not (copied and is_days(array)):
        need_arrow(_type_of_copy(array) if copied else array)


def _type_of_copy(array: Any) -> Any:
    """Return an empty array of the type that a copy of a dense array has."""
    return array if is_packed(array) or not array.ndim or not len(array) else empty_like(array[:0])


def why_copied(array: Any, obj: Any) -> str:
    """Return why `as_arrow` copies `array` without ``copy=True``, or "" if it does not."""
    return PACKED_BOOLEANS if packs_booleans(array) else ""
