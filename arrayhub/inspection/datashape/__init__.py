"""The datashape language: its types and its parser."""
