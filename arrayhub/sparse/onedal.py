"""oneDAL: import csr tables of scikit-learn-intelex, which requires a copy. `asarray` imports dense tables."""

import sys
from typing import Any

from arrayhub._core.errors import Refusal
from arrayhub.convert.functions import asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, check_parts


def parse(obj: Any) -> SparseArray | None:
    """Raise BufferError for a csr table, because oneDAL does not share its memory. Return None for other tables."""
    if obj.kind != "csr":
        return None
    raise Refusal("onedal", "csr tables are exported as copies only", call="arrayhub.assparse(x, copy=True)")


def parse_copy(obj: Any) -> SparseArray | None:
    """Import a copy of a csr table. Return None for other tables."""
    if obj.kind != "csr":
        return None
    data, indices, indptr = map(asarray, sys.modules["onedal.datatypes"].from_table(obj))
    shape = tuple(obj.shape)
    check_parts("onedal", FORMATS["csr"], shape, data, indices, indptr, 0, None)
    return SparseArray("csr", shape, data, indices, indptr)
