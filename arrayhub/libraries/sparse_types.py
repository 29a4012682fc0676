"""Table of sparse array types, by which they are recognized without importing their libraries."""

from arrayhub._core.errors import root_of

# The module of sparse/ that imports an object, by top-level module and name of the class or of a base class. "arrayhub"
# marks a SparseArray, which is not converted.
SPARSE_TYPES = {
    ("arrayhub", "SparseArray"): "arrayhub",
    ("cupyx", "spmatrix"): "cupy",
    ("jax", "JAXSparse"): "jax",
    ("scipy", "sparray"): "scipy",
    ("scipy", "spmatrix"): "scipy",
    ("sparse", "SparseArray"): "pydata_sparse",
}


def sparse_module(cls: type) -> str | None:
    """Return the name of the module of sparse/ for a type, or None if its objects are not sparse.

    The result for ``torch.Tensor``, the type of dense and sparse tensors, is None.
    """
    for base in cls.__mro__:
        found = SPARSE_TYPES.get((root_of(base), base.__name__))
        if found is not None:
            return found
    return "binsparse" if getattr(cls, "__binsparse__", None) is not None else None
