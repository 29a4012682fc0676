"""Allocation of arrays with a given layout, alignment and dimension names (GT4Py's storage proposal)."""

from arrayhub.storage import layouts
from arrayhub.storage.allocation import empty, zeros
from arrayhub.storage.creation import empty_like, from_array, full, full_like, ones, ones_like, zeros_like
from arrayhub.storage.layouts import layout_for
from arrayhub.storage.planning import Plan, plan

__all__ = [
    "Plan",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "layout_for",
    "layouts",
    "ones",
    "ones_like",
    "plan",
    "zeros",
    "zeros_like",
]
