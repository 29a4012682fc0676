"""NestedArrays as the arrays of other libraries: pyarrow, polars, pandas, awkward, torch, NumPy."""

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from arrayhub._core.copying import wanted
from arrayhub._core.errors import first_line, needed, unreadable
from arrayhub._core.kinds import kind_of, per_kind
from arrayhub.adapters.arrow import unread
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.nested.array import (
    NestedArray,
    check,
    check_names,
    is_on_host,
    nested_of,
    to_string_dtype,
    unpacked,
    unwrapped,
    valid_mask,
    with_offsets,
)
from arrayhub.nested.asnested import asnested
from arrayhub.nested.concatenate import concatenate, in_order
from arrayhub.nested.conform import as_polars_has_it, with_days
from arrayhub.nested.from_torch import as_jagged
from arrayhub.nested.to_device import offsets_on_host


def _taken(obj: Any, copy: bool | None, call: str) -> Any:
    """What is given out: a USMArray as it is, all else as a NestedArray, or one copy of it."""
    if wanted(copy, call) and not isinstance(obj, NestedArray):
        return asnested(obj, copy=True)
    taken = obj if isinstance(obj, NestedArray) else _dense_or_nested(obj, copy)
    return concatenate([taken]) if copy else taken


def _taken_for_arrow(obj: Any, copy: bool | None, call: str) -> Any:
    """The same for who takes Arrow's types: a copy has days of four bytes."""
    taken = _taken(obj, copy, call)
    return with_days(taken) if copy else taken


def _dense_or_nested(obj: Any, copy: bool | None) -> Any:
    taken = asnested(obj, copy=copy)
    if isinstance(taken, list):
        read = ". This has read x: what can be read once must be made anew" if unread(obj) else ""
        raise BufferError(f"asnested: {len(taken)} chunks; accepted: one. Pass copy=True, which makes them one{read}")
    return unwrapped(taken)


def as_arrow(obj: Any, /, *, copy: bool | None = None) -> Any:
    """Return a ``pyarrow.Array`` on the memory of `obj`.

    Parameters
    ----------
    obj : object
        Anything `asnested` takes: what is dense too.
    copy : bool, optional
        True: a copy, in host memory, of ``datetime64[D]`` as date32. Otherwise zero-copy, or BufferError.

    Returns
    -------
    pyarrow.Array
        ``pyarrow.RecordBatch.from_struct_array`` makes columns of records.

    Raises
    ------
    BufferError
        Arrow has no words for the type, or the memory is on a device that pyarrow does not know.
    ImportError
        pyarrow is not installed.
    """
    pyarrow = needed("pyarrow", "for its arrays")
    taken = _taken_for_arrow(obj, copy, "as_arrow")
    if is_on_host(taken):
        _need_arrow(taken)
        take = getattr(pyarrow.Array, "_import_from_c_capsule", None)  # private; the public way takes longer
        return pyarrow.array(taken) if take is None else take(*taken.__arrow_c_array__())
    try:
        return pyarrow.array(taken)
    except (pyarrow.ArrowException, KeyError) as error:
        raise _elsewhere_error(taken, "pyarrow") from error


def _need_arrow(taken: Any) -> None:
    """Refuse an array whose memory or type keep Arrow's methods off it, in the words that those have."""
    try:
        taken.__arrow_c_schema__  # noqa: B018
    except AttributeError as error:
        why = str(error).removeprefix("__arrow_c_schema__: ").removeprefix("Arrow: ")
        raise BufferError(f"Arrow: {why}{', or pass copy=True' if 'compact' in why else ''}") from None


def _elsewhere_error(x: Any, library: str) -> BufferError:
    return BufferError(unreadable(library, x.device, library, "call x.to_host(), or pass copy=True"))


def _on_host(x: Any, library: str) -> Any:
    if not is_on_host(x):
        raise _elsewhere_error(x, library)
    return x


def as_polars(obj: Any, /, *, copy: bool | None = None) -> Any:
    """Return a ``polars.Series`` on the memory of `obj`, or a ``polars.DataFrame`` of records; see `as_arrow`.

    Records of which some are missing are a Series too: a row of a DataFrame can only have missing fields.
    The numbers and characters are shared. Offsets of four bytes become eight, and strings get views of 16 bytes each,
    as polars has them; it would copy the characters too.
    """
    polars = needed("polars", "for its arrays")
    taken = _on_host(_taken_for_arrow(obj, copy, "as_polars"), "polars")
    _need_arrow(taken)
    try:
        series = polars.Series(as_polars_has_it(taken))
        return series.struct.unnest() if series.dtype == polars.Struct and not series.null_count() else series
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        raise _polars_error(taken, error) from error


def _polars_error(taken: Any, error: BaseException) -> BufferError:
    """What polars refuses by itself, or panics at, which no handler of the caller's would catch, in words of ours."""
    said, zones = first_line(error), list(_zones(taken, "x"))
    if zones and "time zone" in said:
        called, unit, _zone = next((part for part in zones if repr(part[2]) in said), zones[0])
        return BufferError(
            f"polars: it does not know the time zone of {called} ({said}); accepted: names of the time zone data base."
            f" Convert to UTC, as arrayhub.as_polars(arrayhub.as_arrow({called}).cast(pyarrow.timestamp("
            f"{unit!r}, 'UTC'))), or take arrayhub.as_arrow(x)"
        )
    return BufferError(f"polars: it refuses the array ({said}); take arrayhub.as_arrow(x), and convert it there")


def _zones(node: Any, called: str) -> Iterator[tuple[str, str, str]]:
    """Of what is called so, the parts that are times of a zone: what each is called, its unit and the zone's name."""
    if not isinstance(node, NestedArray):
        return
    if kind_of(node).fields:
        for name, field in zip(node.field_names, node.children, strict=True):
            yield from _zones(field, f"{called}[{name!r}]")
        return
    if node.meaning is not None and node.meaning[:2] == "ts" and node.meaning[4:]:
        yield called, np.datetime_data(node.content.dtype)[0], node.meaning[4:]
    yield from _zones(node.content, f"{called}.content")


def as_pandas(obj: Any, /, *, copy: bool | None = None) -> Any:
    """Return a ``pandas.Series`` of Arrow's type on the memory of `obj`, or a ``pandas.DataFrame`` of records; see
    `as_arrow`.

    Records of which some are missing are a Series too: a row of a DataFrame can only have missing fields.
    """
    pandas = needed("pandas", "for its arrays")
    array = as_arrow(obj, copy=copy)
    pyarrow = needed("pyarrow", "for its arrays")
    if pyarrow.types.is_struct(array.type) and not array.null_count:
        if not array.type.num_fields:
            return pandas.DataFrame(index=pandas.RangeIndex(len(array)))  # no column says how many they are
        frame = pandas.DataFrame(dict(enumerate(map(_column, repeat(pandas), array.flatten()))))
        frame.columns = [field.name for field in array.type]  # names may repeat, unlike keys of a dict
        return frame
    return _column(pandas, array)


def _column(pandas: Any, array: Any) -> Any:
    return pandas.Series(pandas.arrays.ArrowExtensionArray(array))


def as_awkward(obj: Any, /, *, copy: bool | None = None) -> Any:
    """Return an ``awkward.Array`` on the memory of `obj`; see `as_arrow`. pyarrow is not needed.

    Numbers, offsets, characters and bits are shared; string views and list views in any order are put in order first,
    and days of four bytes become ``datetime64[D]``.
    """
    awkward = needed("awkward", "for its arrays")
    return awkward.Array(_layout(awkward, _on_host(_taken(obj, copy, "as_awkward"), "awkward")))


def _numbers(awkward: Any, x: Any) -> Any:
    array = dense_as_numpy(x)
    if array.dtype.type is np.void and array.dtype.names is None and array.dtype.itemsize:
        return _fixed_bytes(awkward, x)
    try:
        return awkward.contents.NumpyArray(array)
    except TypeError as error:
        raise BufferError(
            f"awkward: it has no elements of type {array.dtype}; accepted: NumPy's own numbers, truth values and times."
            ' Convert them first, as in arrayhub.asarray(x, dtype="float32")'
        ) from error


def _fixed_bytes(awkward: Any, x: Any) -> Any:
    """Elements of a fixed number of bytes, as ``awkward.from_arrow`` has them."""
    flat = dense_as_numpy(x.reshape(-1)).view(np.uint8)
    characters = awkward.contents.NumpyArray(flat, parameters={"__array__": "byte"})
    layout = awkward.contents.RegularArray(
        characters, x.itemsize, zeros_length=x.size, parameters={"__array__": "bytestring"}
    )
    for axis in range(x.ndim - 1, 0, -1):
        layout = awkward.contents.RegularArray(layout, x.shape[axis], zeros_length=math.prod(x.shape[:axis]))
    return layout


def _layout(awkward: Any, node: Any) -> Any:
    if not isinstance(node, NestedArray):
        return _numbers(awkward, node)
    check(node)  # awkward itself follows offsets and indices wherever they lead
    layout = _LAYOUTS[node.kind](awkward, node)
    if node.validity is None or node.null_count == 0 or kind_of(node).indices:
        return layout
    if node.validity_offset:
        mask = np.packbits(valid_mask(node), bitorder="little")
    else:
        mask = dense_as_numpy(node.validity)
    index = awkward.index.IndexU8(mask)
    return awkward.contents.BitMaskedArray(index, layout, True, len(node), True)


def _flat(awkward: Any, node: NestedArray) -> Any:
    if node.meaning is None or node.meaning == "tdm":
        return _numbers(awkward, node.content)
    if node.meaning != "tdD":
        raise BufferError(
            f"awkward: it has no elements of Arrow's type {node.meaning!r}, such as zones and times of a day; take"
            " x.content, the numbers alone"
        )
    days = dense_as_numpy(node.content).astype("M8[D]")  # of eight bytes each
    return awkward.contents.NumpyArray(days)


def _bits(awkward: Any, node: NestedArray) -> Any:
    return _numbers(awkward, unpacked(node))


def _offsets(awkward: Any, node: NestedArray) -> Any:
    numbers = offsets_on_host(node)
    return awkward.index.Index64(numbers) if numbers.dtype == np.int64 else awkward.index.Index32(numbers)


def _list(awkward: Any, node: NestedArray) -> Any:
    return awkward.contents.ListOffsetArray(_offsets(awkward, node), _layout(awkward, node.content))


def _text(awkward: Any, node: NestedArray) -> Any:
    node = with_offsets(node) if kind_of(node).views else node
    text = kind_of(node).utf8
    characters = awkward.contents.NumpyArray(
        dense_as_numpy(node.content), parameters={"__array__": "char" if text else "byte"}
    )
    return awkward.contents.ListOffsetArray(
        _offsets(awkward, node), characters, parameters={"__array__": "string" if text else "bytestring"}
    )


def _regular(awkward: Any, node: NestedArray) -> Any:
    return awkward.contents.RegularArray(_layout(awkward, node.content), node.width, zeros_length=len(node))


def _record(awkward: Any, node: NestedArray) -> Any:
    check_names(node, "awkward", error=BufferError)  # awkward accepts equal names, and its to_list loses fields
    columns = [_layout(awkward, field) for field in node.children]
    return awkward.contents.RecordArray(columns, list(node.field_names), length=len(node))


def _categorical(awkward: Any, node: NestedArray) -> Any:
    indices = dense_as_numpy(node.indices).astype(np.int64)
    parameters = {"__array__": "categorical"}
    content = _layout(awkward, node.content)
    if node.validity is None or node.null_count == 0:
        return awkward.contents.IndexedArray(awkward.index.Index64(indices), content, parameters=parameters)
    indices[~valid_mask(node)] = -1
    return awkward.contents.IndexedOptionArray(awkward.index.Index64(indices), content, parameters=parameters)


_LAYOUTS = per_kind(
    flat=_flat,
    bits=_bits,
    list=_list,
    list_view=lambda awkward, node: _list(awkward, in_order(node)),
    regular=_regular,
    string=_text,
    bytes=_text,
    string_view=_text,
    bytes_view=_text,
    record=_record,
    categorical=_categorical,
)


def _as_numpy(x: NestedArray, copy: bool | None) -> Any:
    """An ndarray of numbers, of records or of StringDType; for `arrayhub.as_numpy`."""
    return _ndarray(x, copy, "x")


def _ndarray(x: NestedArray, copy: bool | None, called: str) -> Any:
    """The ndarray of what an error is to call so: ``x``, or a field of it."""
    kind = kind_of(x)
    if kind.fields:
        check_names(x, "numpy", f"arrayhub.as_numpy({called}.children[0], copy=True), one field", BufferError)
    x = x.to_host() if copy else x
    if x.null_count and not kind.utf8:
        numbers = f"{called}.content and {called}.validity, or " if kind.numbers else ""
        parts = f"{called}[name] of each field, or " if kind.fields else numbers
        raise BufferError(
            f"numpy: {x.null_count} of {len(x)} elements of {called} are missing, which NumPy cannot say; take"
            f" {parts}{called}.to_list()"
        )
    if kind.utf8:
        _need_copy(copy, "strings become NumPy's StringDType, which keeps them in an arena of its own")
        return to_string_dtype(x)
    if kind.fields:
        _need_copy(copy, "the fields lie in arrays of their own, and NumPy's records beside each other")
        columns = {name: _field(nested_of(field), f"{called}[{name!r}]") for name, field in x.fields.items()}
        kinds = [(name, column.dtype, column.shape[1:]) for name, column in columns.items()]
        records = np.empty(len(x), kinds)
        for name, column in columns.items():
            records[name] = column
        return records
    try:
        return dense_as_numpy(x.to_dense(copy=True if copy else None), copy=copy)
    except (BufferError, ValueError) as error:
        why = str(error).removeprefix("to_dense: ").replace("call to_dense(copy=True)", "pass copy=True")
        prefix = "" if called == "x" else f"{called}: "
        helps = f". Take {called}.to_list(), or arrayhub.as_awkward({called})" if "equal lengths" in why else ""
        raise type(error)(f"numpy: {prefix}{why}{helps}") from None


def _field(field: NestedArray, called: str) -> Any:
    """The column of a record's field, which may be a record itself."""
    if kind_of(field).utf8:
        raise BufferError(
            f"numpy: its records hold no strings of variable length, which {called} has; take the fields one by one, as"
            f" arrayhub.as_numpy({called}, copy=True)"
        )
    return _ndarray(field, True, called)


def _need_copy(copy: bool | None, why: str) -> None:
    if not wanted(copy, "as_numpy"):
        raise BufferError(f"numpy: {why}; pass copy=True")


def _as_torch(x: NestedArray, copy: bool | None, allow_readonly: bool = False) -> Any:
    """A jagged tensor; of one node of numbers a plain one."""
    if kind_of(x).numbers and x.null_count == 0:
        from arrayhub.convert.functions import as_torch

        content = x.content if x.meaning is None else x.to_dense()  # which refuses what torch would take for numbers
        return as_torch(content, copy=copy, allow_readonly=allow_readonly)
    return as_jagged(concatenate([x]) if copy else x, copy, allow_readonly)


# What gives out what is not dense, by `convert`'s name for it: to libraries that take dense arrays too, and to others.
WAYS = {"numpy": _as_numpy, "torch": _as_torch}
TAKERS = {"arrow": as_arrow, "polars": as_polars, "pandas": as_pandas, "awkward": as_awkward}
