"""Table of calls from lower layers to upper layers.

Modules import only from their own layer and from lower layers. For the names in this table, a lower layer calls
``hooks.NAME(...)``, which imports the function on first use.
"""

from importlib import import_module
from typing import Any

# The name that lower layers use, and the module and the name of the function or table.
UPWARD = {
    # called by array/
    "asarray": "arrayhub.convert.functions:asarray",
    "check_values": "arrayhub.convert.functions:check_values",
    "picture_of": "arrayhub.inspection.pictures.picture:picture_of",
    "page_of": "arrayhub.inspection.pictures.page:page_of",
    "reduce": "arrayhub.transport.pickles:reduce",
    "register_reduction": "arrayhub.transport.pickles:register_reduction",
    "token": "arrayhub.transport.tokens:token",
    "padded_copy": "arrayhub.transport.padding:padded_copy",
    # called by capi/
    "empty": "arrayhub.storage.allocation:empty",
    # called by _core/
    "has_device": "arrayhub.runtimes.cuda:has_device",
    "block_of_usm": "arrayhub.runtimes.sycl:block_of_usm",
    "DTYPE_READERS": "arrayhub.libraries.dtypes:READERS",
    "NestedArray": "arrayhub.nested.array:NestedArray",
    # called mainly by convert/ and inspection/
    "explain": "arrayhub.inspection.explain:explain",
    "asnested": "arrayhub.nested.asnested:asnested",
    "dense_copy": "arrayhub.nested.asnested:dense_copy",
    "DENSE_CONSUMERS": "arrayhub.nested.export:DENSE_CONSUMERS",
    "dense_for": "arrayhub.nested.export.dense:dense_for",
    "NESTED_CONSUMERS": "arrayhub.nested.export:NESTED_CONSUMERS",
    "advise": "arrayhub.nested.advice:advise",
    "complete_refusal": "arrayhub.nested.advice:complete_refusal",
    "import_source": "arrayhub.nested.advice:import_source",
    "has_missing": "arrayhub.nested.missing:has_missing",
    "has_numbers": "arrayhub.nested.missing:has_numbers",
    "resolve_missing": "arrayhub.nested.missing:resolve_missing",
    "change_nested": "arrayhub.nested.conform:change",
    "change_sparse": "arrayhub.sparse.like:change",
    "nested_is_on_host": "arrayhub.nested.array:is_on_host",
    "with_value": "arrayhub.nested.missing:with_value",
    "nested_or_none": "arrayhub.nested.asnested:nested_or_none",
    "nested_view": "arrayhub.nested.explain:view_of",
    "lines_of_nested": "arrayhub.nested.explain:lines_of",
    "check_nested": "arrayhub.nested.explain:check_nested",
    "assparse": "arrayhub.sparse.assparse:assparse",
    "sparse_or_none": "arrayhub.sparse.assparse:sparse_or_none",
    "give_sparse": "arrayhub.sparse.export:give_any",
    "SPARSE_CONSUMERS": "arrayhub.sparse.export:SPARSE_CONSUMERS",
    "sparse_like": "arrayhub.sparse.like:sparse_like",
    "sparse_device_of": "arrayhub.sparse.like:device_of",
    "check_sparse": "arrayhub.sparse.explain:check_sparse",
    "sparse_view": "arrayhub.sparse.explain:view_of",
    "lines_of_sparse": "arrayhub.sparse.explain:lines_of",
    "sparse_to_host": "arrayhub.sparse.assparse:to_host_as",
    "sparse_to_device": "arrayhub.sparse.assparse:to_device_as",
    # called by convert/functions
    "to_class": "arrayhub.convert.tables:to_class",
    # called by nested/array and others, and implemented by modules that import nested/array
    "nested_type": "arrayhub.nested.types:nested_type",
    "nested_picture_of": "arrayhub.nested.picture:picture_of",
    "nested_to_host": "arrayhub.nested.to_device:to_host",
    "nested_to_device": "arrayhub.nested.to_device:to_device",
    "nested_matrix": "arrayhub.nested.matrix:from_record",
    "nested_reduce": "arrayhub.nested.pickling:reduce",
    "nested_deep_copy": "arrayhub.nested.pickling:deep_copy",
    "nested_token": "arrayhub.nested.pickling:token",
    "nested_nbytes": "arrayhub.nested.pickling:nbytes",
    "nested_array_method": "arrayhub.nested.export.dense:for_array_method",
    # called by sparse/array
    "sparse_reduce": "arrayhub.sparse.pickling:reduce",
    "sparse_deep_copy": "arrayhub.sparse.pickling:deep_copy",
    "sparse_token": "arrayhub.sparse.pickling:token",
    # called by nested/array
    "is_null": "arrayhub.nested.missing:is_null",
    "fill_null": "arrayhub.nested.missing:fill_null",
    "conform": "arrayhub.nested.conform:conform",
    "concatenate": "arrayhub.nested.concatenate:concatenate",
    "chunks_to_arrow": "arrayhub.nested.export.arrow:chunks_to_arrow",
    "nested_decoded": "arrayhub.nested.runs:decoded",
    "covered_without_bitmap": "arrayhub.nested.missing:covered_without_bitmap",
}


class Hooks:
    """Module-like object whose attributes are the names in `UPWARD`, each imported on first use."""

    def __getattr__(self, name: str) -> Any:
        if name not in UPWARD:
            raise AttributeError(f"hooks.{name} does not exist; accepted: the names in arrayhub._core.hooks.UPWARD")
        module, _, attribute = UPWARD[name].partition(":")
        value = getattr(import_module(module), attribute)
        setattr(self, name, value)
        return value


hooks = Hooks()
