"""Export to polars: `as_polars`."""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from arrayhub._core.copying import Copy
from arrayhub._core.errors import PACKED_BOOLEANS, Refusal, first_line, needed
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import packs_booleans
from arrayhub.convert.containers import without_index
from arrayhub.nested.array import NestedArray, export, need_arrow, nested_of
from arrayhub.nested.asnested import name_of
from arrayhub.nested.conform import check_for_polars, for_polars, with_days
from arrayhub.nested.export.arrow import check as check_arrow
from arrayhub.nested.opaque import LIST_VIEWS, RUNS, is_list_view, is_run_end
from arrayhub.nested.to_device import find_reason, on_host, walk

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
    name, own = name_of(obj), ("Series", "DataFrame")
    made = export("polars", polars, _to_polars, without_index(obj), copy, dtype, device, missing, own)
    if not isinstance(made, polars.Series):
        return made.to_struct(name or "") if isinstance(obj, polars.Series) else made  # as the Series is without a copy
    return made.rename(str(name)) if made is not obj and name is not None else made


def _to_polars(polars: Any, array: Any, copied: bool, obj: Any) -> Any:
    """Return a ``polars.Series`` with the chunks of `array`, or a ``polars.DataFrame`` of records."""
    array = on_host(with_days(array) if copied else array, "polars")
    is_nested = isinstance(array, NestedArray)
    if not is_nested:
        need_arrow(array, False, "polars")
    check_for_polars(array)
    try:
        series = polars.Series(for_polars(array) if is_nested else array)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        raise _rejection(error) from error
    if not is_nested:
        return series
    if len(series) != len(array):  # polars 2.1 loses the rows of a chunk whose lists of categories are all empty
        raise Refusal(
            "polars",
            f"{len(array) - len(series)} of {len(array)} rows were lost in the import of several chunks; pass"
            " copy=True, which concatenates them",
        )
    if series.dtype != polars.Struct or series.null_count():
        return _with_order(polars, series, array)
    frame = series.struct.unnest()
    if polars.Categorical not in frame.dtypes:
        return frame
    columns = zip(frame.get_columns(), array.fields.values(), strict=True)
    return frame.with_columns([_with_order(polars, column, nested_of(field)) for column, field in columns])


def _with_order(polars: Any, series: Any, x: NestedArray) -> Any:
    """Return a column of ordered categories as an Enum in the same order. Return other columns unchanged.

    A column is also returned unchanged if a category is missing or repeated, or if the categories of two chunks differ.
    """
    chunks = x.chunks
    if series.dtype != polars.Categorical or not all(kind_of(c).indices and c.meaning == "ordered" for c in chunks):
        return series
    categories = nested_of(chunks[0].content).to_list()
    if None in categories or len(set(categories)) < len(categories):
        return series
    if any(nested_of(chunk.content).to_list() != categories for chunk in chunks[1:]):
        return series
    return series.cast(polars.Enum(categories))


def _why_values_are_copied(node: Any) -> str:
    """Return why `as_polars` copies the values of a node, or "" if it shares them."""
    if not isinstance(node, NestedArray):
        return _SECONDS if node.dtype.kind in "mM" and np.datetime_data(node.dtype) == ("s", 1) else ""
    if node.meaning is not None and node.meaning.startswith("tt") and node.meaning != "ttn":
        return "polars has times of day only in nanoseconds, and converts other times of day"
    if is_run_end(node):
        return RUNS
    if kind_of(node).indices and not kind_of(nested_of(node.content)).characters:
        return "polars has categories of strings only, and replaces each index by its value"
    return LIST_VIEWS if is_list_view(node) else ""


_SECONDS = "polars does not have times in seconds, and converts them to milliseconds"


def check(array: Any, copied: bool, obj: Any) -> None:
    """Raise the error of `as_polars` for an array, or for its copy on the host, without converting it."""
    if not copied:
        on_host(array, "polars")
    check_arrow(array, copied, obj)
    check_for_polars(array)
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
