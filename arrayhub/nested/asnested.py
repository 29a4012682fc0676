"""asnested: which way in an object takes that is not dense."""

import sys
from typing import Any

import numpy as np

from arrayhub._core.copying import forbidden, wanted
from arrayhub._core.errors import PASSES_ON, first_line, root_of, show
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.nested.array import NestedArray, from_arrow, nested_of
from arrayhub.nested.concatenate import concatenate
from arrayhub.nested.from_awkward import from_awkward, is_awkward
from arrayhub.nested.from_numpy import from_numpy
from arrayhub.nested.from_python import from_python
from arrayhub.nested.from_torch import from_torch, is_jagged


def asnested(obj: Any, /, *, copy: bool | None = None) -> Any:
    """Return lists, strings, missing values, records and numbers as structure over flat arrays, without a copy.

    Parameters
    ----------
    obj : object
        Anything with Arrow's dunders (pyarrow, polars, pandas, nanoarrow, arro3, duckdb, ...), awkward arrays, torch's
        jagged tensors, NumPy's records, strings and masked arrays, a NestedArray, anything `asarray` takes. Python
        lists of numbers, strings, None, lists and dicts are a copy, and so are NumPy's strings.
    copy : bool, optional
        True: a copy in host memory, of several chunks one. False: never, BufferError where it takes one. None: only of
        what has no memory to view.

    Returns
    -------
    NestedArray
        Or, of an object in several chunks, a list of them, unless ``copy=True``.

    Raises
    ------
    TypeError
        Elements of several kinds, or of one that no array has.
    OverflowError
        A time in a list has more than 64 bits in its unit.
    InterfaceError
        What `obj` says of its memory is not true or not allowed.
    BufferError
        It has no form here; the message names the call that helps.
    """
    if copy is not None:
        copy = wanted(copy, "asnested")
    chunks = None if _says_more_besides(obj) else _by_arrow(obj)  # first: a look at what is known of the type
    if chunks is None:
        chunks = _by_series(obj) or [_without_arrow(obj, copy)]
    if copy:
        return concatenate(chunks)
    return chunks[0] if len(chunks) == 1 else chunks


def _says_more_besides(obj: Any) -> bool:
    """Say whether `obj` has fewer words in Arrow than as an array: a DataArray, whose stream is a table without the
    dimensions that have no coordinates, and an image of PIL's, of which Arrow gets pixels without rows, padded."""
    if hasattr(type(obj), "__array_interface__") and not isinstance(obj, (USMArray, NestedArray)):
        return True
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(obj, getattr(xarray, "DataArray", ()))


def _by_arrow(obj: Any) -> list[NestedArray] | None:
    """The chunks of Arrow's interfaces; where pyarrow fails behind them, what `asarray` makes of it."""
    try:
        return from_arrow(obj)
    except PASSES_ON:
        raise
    except Exception as error:
        if root_of(type(error)) != "pyarrow":
            raise
        column = _dense_column(obj)
        if column is not None:
            return [column]
        raise BufferError(
            f"asnested: pyarrow makes no array of this {type(obj).__name__}: {first_line(error)}; accepted: columns of"
            " one type that Arrow has. Take the columns of a frame one by one, x.to_numpy() of a sparse one, and"
            " x.tolist() once its values are of one kind"
        ) from error


def _by_series(obj: Any) -> list[NestedArray] | None:
    """The chunks of a pandas Index or ExtensionArray that is neither Arrow's nor numbers, as a Series of it has them;
    None of all else."""
    pandas = sys.modules.get("pandas")
    if pandas is None or hasattr(type(obj), "__arrow_array__") or isinstance(obj, pandas.MultiIndex):
        return None
    if not isinstance(obj, (pandas.Index, pandas.api.extensions.ExtensionArray)):
        return None
    return None if _dense_column(obj) is not None else _by_arrow(pandas.Series(obj, copy=False))


def _dense_column(obj: Any) -> NestedArray | None:
    """Numbers that Arrow has no format of, such as complex ones; a frame would lose the names of its columns."""
    try:
        array = asarray(obj)
    except PASSES_ON:
        raise
    except Exception:
        return None
    return nested_of(array) if array.ndim == 1 else None


def _without_arrow(obj: Any, copy: bool | None) -> NestedArray:
    if isinstance(obj, (list, tuple)):
        forbidden(copy, "asnested", "Python's lists have no memory to view")
        return from_python(obj)
    if isinstance(obj, np.ndarray):
        return from_numpy(obj, copy)
    if is_awkward(obj):
        return from_awkward(obj, copy)
    if is_jagged(obj):
        return from_torch(obj, copy)
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(obj, pyarrow.Scalar):  # which pyarrow does not export: an array of it is
        forbidden(copy, "asnested", "pyarrow does not export a Scalar, of which an array is made")
        return _only(_array_of(pyarrow, obj))
    if pyarrow is not None and hasattr(type(obj), "__arrow_array__"):  # pandas' arrays of Arrow's memory
        pandas = sys.modules.get("pandas")
        if pandas is None or not isinstance(obj, pandas.arrays.ArrowExtensionArray):
            forbidden(copy, "asnested", f"pyarrow copies what is missing in a {type(obj).__name__}")
        return _only(pyarrow.array(obj))
    return nested_of(_with_a_dimension(asarray(obj, copy=copy)))


def _array_of(pyarrow: Any, scalar: Any) -> Any:
    """An array of one element; of an extension type by what it is stored as."""
    if not isinstance(scalar, pyarrow.ExtensionScalar):
        return pyarrow.array([scalar.as_py()], scalar.type)
    stored = None if scalar.value is None else scalar.value.as_py()
    storage = pyarrow.array([stored], scalar.type.storage_type)
    return pyarrow.ExtensionArray.from_storage(scalar.type, storage)


def _only(obj: Any) -> NestedArray:
    """The one chunk, or the one copy of several."""
    taken = asnested(obj)
    one: NestedArray = asnested(obj, copy=True) if isinstance(taken, list) else taken
    return one


def _with_a_dimension(array: Any) -> Any:
    if array.ndim == 0:
        raise TypeError(f"asnested: {show(array)} has no dimension; accepted: one or more. Take asarray(x).reshape(-1)")
    return array
