"""Export to the libraries of dense arrays, NumPy and torch."""

from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal, TypeRefusal, reason_of
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import type_name
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.convert.functions import as_torch, convert
from arrayhub.nested.array import NestedArray, check_names, nested_of, to_string_dtype
from arrayhub.nested.asnested import has_variable_length
from arrayhub.nested.concatenate import copied_chunk, single_chunk
from arrayhub.nested.conform import with_byte_booleans
from arrayhub.nested.from_torch import as_jagged
from arrayhub.nested.opaque import decode, is_list_view, is_run_end


def _ndarray(x: NestedArray, copy: bool | None, name: str) -> Any:
    """Return the ndarray of a node. `name` is the node's name in errors, such as ``x`` or ``x['field']``."""
    kind = kind_of(x)
    if kind.fields:
        check_names(x, "numpy", f"arrayhub.as_numpy({name}.children[0], copy=True), one field", BufferError)
    x = x.to_host() if copy else x
    if x.null_count and not (kind.utf8 or kind.indices):
        raise Refusal(
            "numpy",
            f"{x.null_count} of {len(x)} elements of {name} {'is' if x.null_count == 1 else 'are'} missing,"
            " which NumPy cannot represent",
        )
    if kind.utf8:
        if not copy:
            raise Refusal("numpy", "strings become NumPy's StringDType, which stores them in its own arena")
        return to_string_dtype(x)
    if kind.fields:
        if not copy:
            why = "the fields are separate arrays, and NumPy stores the fields of a record side by side"
            raise Refusal("numpy", why)
        columns = {key: _field(nested_of(field), f"{name}[{key!r}]") for key, field in x.fields.items()}
        dtype = [(key, column.dtype, column.shape[1:]) for key, column in columns.items()]
        records = np.empty(len(x), dtype)
        for key, column in columns.items():
            records[key] = column
        return records
    return dense_as_numpy(dense_for(x, copy, "numpy", name), copy=copy)


def export(x: NestedArray, library: str, copy: bool | None, allow_readonly: bool) -> Any:
    """Return a node as an array of a library of dense arrays, for the ``as_*`` functions."""
    x = single_chunk(x, copy, library)
    if library == "numpy":
        return _ndarray(x, copy, "x")
    if library == "torch":
        return _tensor(x, copy, allow_readonly)
    return convert(dense_for(x, copy, library), library, copy=copy, allow_readonly=allow_readonly)


def dense_for(x: NestedArray, copy: bool | None, library: str, name: str = "x") -> Any:
    """Convert a node to a dense array for a library. `name` is the node's name in errors.

    Raises
    ------
    ValueError, BufferError
        As `NestedArray.to_dense`. Of Arrow's logical types, only NumPy supports some.
    """
    if library != "numpy" and kind_of(x).numbers and x.meaning is not None:
        raise Refusal(
            library,
            f"{type_name(x.meaning)} is not supported",
            "arrayhub.asnested(x).content, which holds the values without this type",
        )
    try:
        return x.to_dense(copy=bool(copy))
    except Refusal as error:
        subject = library if name == "x" else f"{library}: {name}"
        raise type(error)(subject, error.reason, error.accepted, error.call) from None


def _field(field: NestedArray, name: str) -> Any:
    """Return the column of a record field, which may itself be a record."""
    if kind_of(field).utf8:
        raise Refusal(
            "numpy",
            f"{name} has strings of variable length, which NumPy's records do not support. Convert the fields"
            f" one by one, as in arrayhub.as_numpy({name}, copy=True)",
        )
    return _ndarray(field, True, name)


def for_array_method(x: NestedArray, dtype: Any, copy: bool | None) -> Any:
    """Return the ndarray for ``NestedArray.__array__``.

    A BufferError is raised as a TypeError, as ``cupy.ndarray.__array__`` does for memory that NumPy cannot read.
    """
    try:
        array = export(x, "numpy", bool(copy), False)
    except BufferError as error:
        raise TypeRefusal("numpy", reason_of(error), call=hooks.advice.advise(x, "numpy").call) from error
    return array if dtype is None else array.astype(dtype, copy=False)


def _tensor(x: NestedArray, copy: bool | None, allow_readonly: bool) -> Any:
    """Return a jagged tensor of lists of variable length, and a plain tensor of other types."""
    x = decode(x, "torch") if copy and is_list_view(x) else x
    kind = kind_of(x)
    is_dense = kind.numbers or kind.packed or kind.width or kind.opaque or (copy and kind.fields)
    is_dense = is_list_view(x) or (is_dense and not has_variable_length(x))  # list views are refused without a copy
    if kind.indices or is_run_end(x) or (not x.null_count and is_dense):
        return as_torch(dense_for(x, copy, "torch"), copy=copy, allow_readonly=allow_readonly)
    x = copied_chunk(with_byte_booleans(x)) if copy else x
    return as_jagged(x, copy, allow_readonly)
