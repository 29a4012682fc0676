"""Allocation of arrays with a given layout, alignment and dimension names (GT4Py's storage proposal)."""

from arrayhub.adapters.dimensions import get_dims, get_origin
from arrayhub.storage import layouts
from arrayhub.storage.creation import empty, from_array, full, ones, zeros
from arrayhub.storage.layouts import Plan, layout_for, plan

__all__ = [
    "Plan",
    "empty",
    "from_array",
    "full",
    "get_dims",
    "get_origin",
    "layout_for",
    "layouts",
    "ones",
    "plan",
    "zeros",
]
