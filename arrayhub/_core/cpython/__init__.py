"""Code that depends on CPython's internals: exceptions, atomics, and caches keyed by type."""
