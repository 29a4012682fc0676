"""Code that depends on CPython's internals: exceptions, atomics, caches by type."""
