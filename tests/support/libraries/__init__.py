"""What asarray makes of libraries' objects, and they of ours: two tables, from which docs/libraries.md is written."""
