"""Sparse arrays in the formats coo, csr, csc, bsr and bsc, stored as flat arrays. See docs/sparse.md."""

from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import assparse
from arrayhub.sparse.export import as_scipy

__all__ = ["SparseArray", "as_scipy", "assparse"]
