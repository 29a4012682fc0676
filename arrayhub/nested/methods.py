"""Functions of this folder that lower layers and the class NestedArray call through `_core/hooks`.

`sparse/methods` has the same functions for sparse arrays: import, export, change, copies, pickles and descriptions.
"""

from arrayhub.nested import opaque
from arrayhub.nested.asnested import change_imported, dense_copy, find_arrays, import_nested, import_node
from arrayhub.nested.asnested import nested_or_none as import_or_none
from arrayhub.nested.concatenate import concatenate
from arrayhub.nested.conform import change
from arrayhub.nested.describe import find_faults, lines_of, picture_of
from arrayhub.nested.export.arrow import chunks_to_arrow
from arrayhub.nested.export.dense import export, for_array_method
from arrayhub.nested.from_python import from_python
from arrayhub.nested.matrix import from_table
from arrayhub.nested.missing import (
    check_replacement,
    fill_null,
    has_missing,
    has_numbers,
    is_null,
    replace_missing,
    resolve_missing,
)
from arrayhub.nested.pickling import deep_copy, nbytes, reduce
from arrayhub.nested.to_device import to_device, to_host
from arrayhub.nested.types import nested_type
