"""Table of sparse array types, by which `assparse` recognizes objects without importing their libraries.

Two types are not in the table: ``torch.Tensor``, whose layout can be sparse or dense, and oneDAL's tables. `assparse`
recognizes their sparse instances.
"""

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
    """Return the name of the module of sparse/ for a type in the table, or a type with ``__binsparse__``, or None."""
    for base in cls.__mro__:
        found = SPARSE_TYPES.get((root_of(base), base.__name__))
        if found is not None:
            return found
    return "binsparse" if getattr(cls, "__binsparse__", None) is not None else None
