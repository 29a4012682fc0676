"""The binsparse protocol: ``__binsparse_descriptor__`` and ``__binsparse__``, drafted in data-apis/array-api#840.

``__binsparse_descriptor__`` returns the descriptor of a binsparse file as a dict
(https://graphblas.org/binsparse-specification/). ``__binsparse__`` returns a dict of arrays, whose keys are names in
the specification: ``values``, ``pointers_to_1``, ``indices_0`` and ``indices_1``.
"""

from typing import Any

import numpy as np

from arrayhub._core.errors import PASSES_ON, Refusal, first_line, interface_error, name_of_type
from arrayhub.convert.functions import asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.emit_binsparse import FORMAT_NAMES, type_name
from arrayhub.sparse.formats import FORMATS, check_coords, check_parts

_NAME = "__binsparse__"
_DESCRIPTOR = "__binsparse_descriptor__"
_ACCEPTED = "'COO', 'COOR', 'COOC', 'CSR', 'CSC', and their custom levels"
_FORMATS = {name: format for format, name in FORMAT_NAMES.items()} | {"COOR": "coo", "COOC": "coo"}


def parse(obj: Any) -> SparseArray:
    """Import an object by the binsparse protocol."""
    try:
        descriptor = obj.__binsparse_descriptor__()
        arrays = obj.__binsparse__()
    except PASSES_ON:
        raise
    except Exception as error:
        raise BufferError(f"{name_of_type(type(obj))}: {_NAME} failed ({first_line(error)})") from error
    facts = descriptor.get("binsparse") if isinstance(descriptor, dict) else None
    if not isinstance(facts, dict):
        raise interface_error(_DESCRIPTOR, "binsparse", facts, "a dict")
    if not isinstance(arrays, dict):
        raise interface_error(_NAME, "result", arrays, "a dict of arrays")
    version = facts.get("version")
    if not isinstance(version, str) or not version.startswith("0."):
        raise interface_error(_DESCRIPTOR, "version", version, "'0.1'")
    shape = _shape_of(facts)
    if facts.get("fill") and np.any(np.asarray(arrays.get("fill_value", 1))):
        raise Refusal(_NAME, "the fill value is not 0; accepted: 0, as in other libraries")
    return _built(_format_of(facts, len(shape)), shape, _Parts(arrays, facts.get("data_types") or {}))


def _shape_of(facts: dict[str, Any]) -> tuple[int, ...]:
    shape = facts.get("shape")
    if not isinstance(shape, (list, tuple)) or any(type(length) is not int or length < 0 for length in shape):
        raise interface_error(_DESCRIPTOR, "shape", shape, "a list of lengths")
    return tuple(shape)


def _format_of(facts: dict[str, Any], ndim: int) -> str:
    """Return the format that a descriptor specifies by name or by levels.

    Return ``"joined"`` for coo with all coordinates in one array.
    """
    name = facts.get("format")
    if isinstance(name, str) and name in _FORMATS:
        return _FORMATS[name]
    custom = name.get("custom") if isinstance(name, dict) else None
    levels, level = [], custom
    while isinstance(level, dict) and isinstance(level.get("level"), dict):
        level = level["level"]
        levels.append((level.get("level_desc", level.get("level_kind")), level.get("rank", 1)))
    straight = list(range(ndim))
    transpose = custom.get("transpose", straight) if isinstance(custom, dict) else None
    if levels == [("dense", 1), ("sparse", 1), ("element", 1)] and ndim == 2 and transpose in ([0, 1], [1, 0]):
        return "csr" if transpose == straight else "csc"
    if levels == [("sparse", ndim), ("element", 1)] and transpose == straight:
        return "joined"
    raise interface_error(_DESCRIPTOR, "format", name, _ACCEPTED)


class _Parts:
    """Arrays of a binsparse object, by their names in the specification.

    Each access compares the element type of the array with the descriptor, except for ``pointers_to_1``.
    """

    def __init__(self, arrays: dict[str, Any], types: Any) -> None:
        self.arrays, self.types = arrays, types if isinstance(types, dict) else {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.arrays:
            raise interface_error(_NAME, name, None, "an array")
        array = asarray(self.arrays[name])
        expected = self.types.get(name)
        if expected is not None and expected != type_name(array.dtype) and name != "pointers_to_1":
            accepted = f"{type_name(array.dtype)}, the type of the array"
            raise interface_error(_DESCRIPTOR, f"data_types[{name!r}]", expected, accepted)
        return array


def _built(name: str, shape: tuple[int, ...], parts: _Parts) -> SparseArray:
    data = parts["values"]
    if name in FORMATS and FORMATS[name].compressed is not None:
        indices, indptr = parts["indices_1"], parts["pointers_to_1"]
        check_parts(_NAME, FORMATS[name], shape, data, indices, indptr, 0, None)
        return SparseArray(name, shape, data, indices, indptr)
    if name == "joined":
        joined = parts["indices_1"]
        if joined.ndim != 2:
            raise interface_error(_NAME, "indices_1", joined.shape, "an array of (dimension, element)")
        check_coords(_NAME, shape, data, None, joined, 0)
        return SparseArray("coo", shape, data, coords_array=joined)
    coords = tuple(parts[f"indices_{k}"] for k in range(len(shape)))
    check_coords(_NAME, shape, data, coords, None, 0)
    return SparseArray("coo", shape, data, coords=coords)
