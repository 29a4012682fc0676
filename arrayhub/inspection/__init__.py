"""Describe arrays: element type, memory, layout, and the conversions to libraries."""
