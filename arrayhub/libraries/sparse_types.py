"""Table of the types of sparse arrays, which are recognized without importing their libraries."""

from arrayhub._core.errors import root_of

# By root and class name, base classes included: the module of sparse/ that imports the objects. The value "arrayhub"
# marks a SparseArray, which is used as it is.
SPARSE_TYPES = {
    ("arrayhub", "SparseArray"): "arrayhub",
    ("cupyx", "spmatrix"): "cupy",
    ("jax", "JAXSparse"): "jax",
    ("scipy", "sparray"): "scipy",
    ("scipy", "spmatrix"): "scipy",
    ("sparse", "SparseArray"): "pydata_sparse",
}


def sparse_module(cls: type) -> str | None:
    """Return the name of the module of sparse/ for a type, or None if no object of the type is sparse.

    Dense and sparse tensors of torch have the same type, for which this function returns None.
    """
    for base in cls.__mro__:
        found = SPARSE_TYPES.get((root_of(base), base.__name__))
        if found is not None:
            return found
    return "binsparse" if getattr(cls, "__binsparse__", None) is not None else None
