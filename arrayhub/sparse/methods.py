"""Functions of this folder that lower layers and the class SparseArray call through `_core/hooks`.

`nested/methods` has the same functions for nested arrays: import, export, pickles and descriptions.
"""

from arrayhub.sparse.assparse import assparse, relocate
from arrayhub.sparse.assparse import sparse_or_none as import_or_none
from arrayhub.sparse.explain import find_faults, lines_of, view_of
from arrayhub.sparse.export import convert_like, device_of
from arrayhub.sparse.export import give_any as export
from arrayhub.sparse.pickling import reduce, token

__all__ = [
    "assparse",
    "convert_like",
    "device_of",
    "export",
    "find_faults",
    "import_or_none",
    "lines_of",
    "reduce",
    "relocate",
    "token",
    "view_of",
]
