"""Tables of imports from libraries and exports to them, the source of docs/libraries.md."""
