"""Export of sparse arrays through the binsparse protocol, as a descriptor and arrays. The module `binsparse` implements
the import.
"""

from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal
from arrayhub.sparse.conversion import has_padding
from arrayhub.sparse.validation import PADDED, validate_export

# Names of the formats in the specification.
FORMAT_NAMES = {"coo": "COO", "csr": "CSR", "csc": "CSC"}
_VERSION = "0.1"


def descriptor_of(x: Any) -> dict[str, Any]:
    """Return the descriptor of an array. See `SparseArray.__binsparse_descriptor__`."""
    arrays = arrays_of(x)
    return {
        "binsparse": {
            "version": _VERSION,
            "format": FORMAT_NAMES[x.format],
            "shape": list(x.shape),
            "number_of_stored_values": x.nnz,
            "data_types": {name: type_name(array.dtype) for name, array in arrays.items()},
        },
        "original_source": "arrayhub",
    }


def arrays_of(x: Any) -> dict[str, Any]:
    """Return the arrays by their names in the specification. See `SparseArray.__binsparse__`."""
    if x.format not in FORMAT_NAMES or x.batch_ndim or x.dense_ndim or len(x.shape) != 2:
        raise Refusal(
            "__binsparse__",
            f"{x.format} of shape {x.shape} is not a format of the specification; accepted: coo, csr and"
            " csc of two dimensions. Use x.to_format('csr')",
        )
    validate_export(x)
    if x._state & PADDED and has_padding(x):
        raise Refusal("__binsparse__", "some elements are padding, which only jax ignores. Use x.to_format('csr')")
    if x.format == "coo":
        return {"values": x.data, "indices_0": x.coords[0], "indices_1": x.coords[1]}
    return {"values": x.data, "indices_1": x.indices, "pointers_to_1": x.indptr}


def type_name(dtype: np.dtype[Any]) -> str:
    """Return the name of an element type in the specification."""
    if dtype.kind == "c":
        return f"complex[float{4 * dtype.itemsize}]"
    return "bint8" if dtype.kind == "b" else str(dtype)
