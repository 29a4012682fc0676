"""Imported before any test file: arrayhub finds the SYCL CPU runtime, which dpctl would not if it came first."""

import arrayhub  # noqa: F401
