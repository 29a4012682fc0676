"""C struct of a sparse array: a format, a shape and flat arrays.

SparseArray is a subclass of `SparseParts` that adds only methods, as NestedArray is a subclass of `Tree`.
"""


cdef class SparseParts:
    """Base of SparseArray, by which compiled code recognizes sparse arrays. `SparseArray` documents the fields."""

    cdef readonly str format
    cdef readonly tuple shape
    cdef readonly object data
    cdef readonly object indices
    cdef readonly object indptr
    cdef readonly object coords_array      # coo: coordinates as one array, dimension first; None if they are separate
    cdef readonly tuple blocksize
    cdef readonly int batch_ndim
    cdef public object _coords             # coo: tuple of arrays; None until `coords` is read
    cdef public int _state                 # bits of `sparse.formats` and `sparse.libraries`
    cdef object __weakref__

    def __cinit__(self, str format, tuple shape, data, indices=None, indptr=None, coords=None, coords_array=None,
                  tuple blocksize=None, int batch_ndim=0, int state=0):
        self.format = format
        self.shape = shape
        self.data = data
        self.indices = indices
        self.indptr = indptr
        self.coords_array = coords_array
        self.blocksize = blocksize
        self.batch_ndim = batch_ndim
        self._coords = coords
        self._state = state
