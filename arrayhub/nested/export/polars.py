"""Export to polars: `as_polars`."""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from arrayhub._core.copying import Copy
from arrayhub._core.errors import PACKED_BOOLEANS, RangeRefusal, Refusal, first_line, needed
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import packs_booleans
from arrayhub.convert.containers import without_index
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.convert.target import is_dense
from arrayhub.nested.array import (
    NestedArray,
    check_names,
    export,
    need_arrow,
    nested_of,
    valid_mask,
    wide_lists,
    with_views,
)
from arrayhub.nested.asnested import name_of
from arrayhub.nested.conform import element_type, with_days
from arrayhub.nested.export.arrow import check as check_arrow
from arrayhub.nested.logical_types import decimal_type
from arrayhub.nested.opaque import LIST_VIEWS, RUNS, decode, is_list_view, is_run_end
from arrayhub.nested.to_device import child_nodes, find_reason, on_host, rebuild, walk

if TYPE_CHECKING:
    import polars as pl


def as_polars(
    obj: Any, /, *, copy: Copy = False, dtype: Any = None, device: Any = None, missing: Any = None
) -> "pl.Series | pl.DataFrame":
    """Return a ``polars.Series`` that shares the memory of `obj`, or a ``polars.DataFrame`` of records.

    Numbers and characters are shared. int32 offsets are converted to int64, and a 16-byte view is created for each
    string, because polars' layout requires both. polars' own conversion would also copy the characters. List views,
    run-end encoded arrays and categories that are not strings are copied. The name of a Series of
    pandas or polars is kept, even if `asnested` imported the Series. Like ``polars.from_pandas``, this function drops
    the index of a pandas DataFrame.

    If some records are missing, the result is a Series, because a DataFrame cannot represent missing rows. Ordered
    categories become an ``Enum``, unless a category is missing or repeated, or the categories of two chunks differ.
    Inside lists, and inside records of a Series, ordered categories stay a ``Categorical``.

    An array of two dimensions becomes a Series of rows. ``polars.DataFrame(arrayhub.as_numpy(x))`` and
    ``arrayhub.like(x, frame)`` return a DataFrame of its columns.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy, dtype, device, missing : optional
        As in `as_arrow`.

    Returns
    -------
    polars.Series or polars.DataFrame
        A DataFrame for records and tables, and a Series for other data.

    Raises
    ------
    BufferError, TypeError, ValueError, OverflowError
        As in `as_arrow`.
    ImportError
        polars is not installed.

    Examples
    --------
    >>> import polars
    >>> arrayhub.as_polars(np.array([1, 2])).to_list()
    [1, 2]
    """
    polars = needed("polars", "to create its arrays")
    has_labels = not is_dense(obj)
    name = name_of(obj) if has_labels else None
    values, own = without_index(obj) if has_labels else obj, ("Series", "DataFrame")
    made = export("polars", polars, _to_polars, values, copy, dtype, device, missing, own)
    if not isinstance(made, polars.Series):
        return made.to_struct(name or "") if isinstance(obj, polars.Series) else made  # as the Series is without a copy
    return made.rename(str(name)) if made is not obj and name is not None else made


def _to_polars(polars: Any, array: Any, copied: bool, obj: Any) -> Any:
    """Return a ``polars.Series`` with the chunks of `array`, or a ``polars.DataFrame`` of records."""
    array = on_host(with_days(array) if copied else array, "polars")
    is_nested = isinstance(array, NestedArray)
    if not is_nested:
        need_arrow(array, False, "polars")
    check_for_polars(array, copied)
    _check_seconds(array)
    try:
        series = polars.Series(for_polars(array) if is_nested else array)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        raise _rejection(error) from error
    if not is_nested:
        return series
    if len(series) != len(array):  # polars 2.1 loses the rows of a chunk whose lists of categories are all empty
        raise Refusal(
            "polars",
            f"{len(array) - len(series)} of {len(array)} rows were lost in the import of several chunks",
            "copy=True, which concatenates them",
        )
    if series.dtype != polars.Struct or series.null_count():
        return _with_order(polars, series, array)
    frame = series.struct.unnest()
    if polars.Categorical not in frame.dtypes:
        return frame
    columns = zip(frame.get_columns(), array.fields.values(), strict=True)
    return frame.with_columns([_with_order(polars, column, nested_of(field)) for column, field in columns])


def check_for_polars(array: Any, copied: bool) -> None:
    """Check an array for `for_polars`, from its types.

    Raises
    ------
    BufferError
        Rows have the fixed length 0, two fields of a record have the same name, or polars does not support the type:
        unions, intervals and some decimals.
    """
    if not isinstance(array, NestedArray):
        if not copied and not array.flags.aligned:  # polars copies it without a word
            raise Refusal("polars", "unaligned elements are not supported")
        if array.itemsize == 0 and array.dtype.type is np.void:  # polars panics
            raise Refusal("polars", "elements of 0 bytes are not supported", "bytes of a length of 1 or more")
        if array.ndim > 1 and 0 in array.shape[1:] and len(array):
            raise Refusal(*_EMPTY_ROWS)
        return
    kind = kind_of(array)
    if kind.opaque:
        _check_opaque(array)
    if kind.fields:
        check_names(array, "polars", error=Refusal)  # polars keeps one of several fields of a name inside lists
    if kind.width and array.width == 0 and len(array):
        raise Refusal(*_EMPTY_ROWS)
    for child in child_nodes(array):
        check_for_polars(child, copied)


_EMPTY_ROWS = (
    *("polars", "rows of fixed length 0 are not supported", "rows of variable length"),
    "arrayhub.as_polars(arrayhub.asnested(x).to_list())",
)


def for_polars(node: Any) -> Any:
    """Convert a node to the layout that polars imports without a copy: int64 offsets, and string views.

    List views and run-end encoded arrays are decoded. The validity bitmap of fixed-length rows is copied so that it
    starts at a byte boundary, because polars panics if an array of fixed-length rows has both a bitmap and an offset.
    The panic raises PanicException, which ``except Exception`` does not catch.
    `check_for_polars` must have accepted the node.
    """
    if not isinstance(node, NestedArray):
        return node
    kind = kind_of(node)
    if kind.numbers:
        return rebuild(node) if node.validity_offset and node.content.ndim > 1 else node
    if kind.characters:
        return with_views(node)
    if _is_narrow_decimal(node):
        low = as_numpy(node.buffers[0]).astype(np.int64)
        words = np.stack((low, low >> 63), axis=1).view("V16").reshape(-1)
        return rebuild(node, meaning=str(node.meaning).rpartition(",")[0], buffers=(asarray(words),))
    if kind.opaque:
        return for_polars(decode(node, "polars")) if is_list_view(node) or is_run_end(node) else node
    if kind.ends and node.meaning is None:
        return wide_lists(node, for_polars(node.content))
    # polars 2.1 imports a map as its Map type, and converts the int32 offsets itself
    return rebuild(node, for_polars) if kind.lists or kind.fields or kind.chunks else node


def _is_narrow_decimal(node: NestedArray) -> bool:
    """Return whether a node has decimals of 32 or 64 bits. polars 2.1 reads those in lists and records as 128 bits."""
    return kind_of(node).opaque and str(node.meaning)[:2] == "d:" and node.buffers[0].itemsize < 16


def _check_opaque(node: NestedArray) -> None:
    """Raise BufferError for unions, intervals and decimals that polars does not support."""
    meaning = str(node.meaning)
    is_supported, accepted = meaning[:2] not in ("+u", "ti"), ""
    if meaning[:2] == "d:":
        name, precision, scale = decimal_type(meaning)
        is_supported = name != "decimal256" and scale >= 0 and precision <= 38
        accepted = "up to 38 digits, and a scale of 0 or more"
    if not is_supported:
        raise Refusal("polars", f"Arrow's {element_type(node)} is not supported", accepted, "arrayhub.as_arrow(x)")


def _with_order(polars: Any, series: Any, x: NestedArray) -> Any:
    """Return a column of ordered categories as an Enum in the same order. Return other columns unchanged.

    A column is also returned unchanged if a category is missing or repeated, or if the categories of two chunks differ.
    """
    chunks = x.chunks
    if series.dtype != polars.Categorical or not all(kind_of(c).indices and c.meaning == "ordered" for c in chunks):
        return series
    categories, *others = (nested_of(chunk.content).to_list() for chunk in chunks)
    is_enum = None not in categories and len(set(categories)) == len(categories)
    is_enum = is_enum and all(other == categories for other in others)
    return series.cast(polars.Enum(categories)) if is_enum else series


def _why_values_are_copied(node: Any) -> str:
    """Return why `as_polars` copies the values of a node, or "" if it shares them."""
    if not isinstance(node, NestedArray):
        return _SECONDS if node.dtype.kind in "mM" and np.datetime_data(node.dtype) == ("s", 1) else ""
    if node.meaning is not None and node.meaning.startswith("tt") and node.meaning != "ttn":
        return "polars has times of day only in nanoseconds, and converts other times of day"
    if is_run_end(node):
        return RUNS
    if _is_narrow_decimal(node):
        return "polars has decimals of 128 bits only, and other decimals are converted"
    if kind_of(node).indices and not kind_of(nested_of(node.content)).characters:
        return "polars has categories of strings only, and replaces each index by its value"
    return LIST_VIEWS if is_list_view(node) else ""


def _check_seconds(node: Any) -> None:
    """Raise RangeRefusal for seconds that do not fit in 64 bits as milliseconds, to which polars would wrap them."""
    is_nested = isinstance(node, NestedArray)
    if is_nested and not kind_of(node).numbers:
        for child in child_nodes(node):
            _check_seconds(child)
        return
    times = node.content if is_nested else node
    if times.dtype.kind not in "mM" or np.datetime_data(times.dtype) != ("s", 1):
        return
    counts = as_numpy(times).view(np.int64)
    counts = counts[valid_mask(node) if is_nested else ~np.isnat(as_numpy(times))]
    if counts.size and (counts.max() > _MOST_SECONDS or counts.min() < -_MOST_SECONDS):
        reason = "a time in seconds exceeds 64 bits in milliseconds"
        raise RangeRefusal("polars", reason, f"times within {_MOST_SECONDS} s", "arrayhub.as_arrow(x)")


_MOST_SECONDS = (2**63 - 1) // 1000
_SECONDS = "polars does not have times in seconds, and converts them to milliseconds"


def check(array: Any, copied: bool, obj: Any) -> None:
    """Raise the error of `as_polars` for an array, or for its copy on the host, without converting it."""
    if not copied:
        on_host(array, "polars")
    check_arrow(array, copied, obj)
    check_for_polars(array, copied)
    polars: Any = sys.modules.get("polars")
    meanings = {str(node.meaning) for node in walk(array) if isinstance(node, NestedArray)}
    for zone in {text[4:] for text in meanings if text.startswith("ts")} - {""} if polars is not None else ():
        try:
            polars.Series([], dtype=polars.Datetime("us", zone))
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
            raise _rejection(error) from error


def _rejection(error: BaseException) -> Refusal:
    return Refusal("polars", f"the array was rejected ({first_line(error)})", call="arrayhub.as_arrow(x)")


def why_copied(array: Any, obj: Any) -> str:
    """Return why `as_polars` copies `array` without ``copy=True``, or "" if it does not."""
    return PACKED_BOOLEANS if packs_booleans(array) else find_reason(array, _why_values_are_copied)
