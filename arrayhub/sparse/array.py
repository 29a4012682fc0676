"""The class `SparseArray`: sparse arrays in the formats coo, csr, csc, bsr and bsc, stored as flat arrays."""

import math
from collections.abc import Callable, Iterator
from operator import is_
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from arrayhub import transfer
from arrayhub._core.copying import Copy
from arrayhub._core.descriptor import CPU, Device, is_host_readable
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub._core.errors import Refusal
from arrayhub._core.hooks import hooks
from arrayhub.array.casting import cast_checked
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import SparseParts, asarray
from arrayhub.inspection.pictures.picture import TextPicture
from arrayhub.sparse.formats import CANONICAL, FORMATS, NOT_CANONICAL, SEEN, elements, is_canonical, to_format

# Attributes of other libraries' sparse arrays, and the equivalent calls for a SparseArray.
_ELSEWHERE = {
    **{f"to{name}": f"x.to_format('{name}')" for name in ("coo", "csr", "csc")},
    "tobsr": "arrayhub.as_scipy(x).tobsr()",
    **dict.fromkeys(("scipy", "to_scipy", "to_scipy_sparse"), "arrayhub.as_scipy(x)"),
    **dict.fromkeys(("torch", "to_torch"), "arrayhub.as_torch(x)"),
    **dict.fromkeys(("toarray", "todense"), "x.to_dense()"),
    **dict.fromkeys(("numpy", "to_numpy"), "arrayhub.as_numpy(x.to_dense())"),
    **dict.fromkeys(("cpu", "get"), "x.to_host()"),
    "coalesce": "x.to_format('coo')",
    "to": "x.to_device(device)",
    "tolist": "x.to_dense().tolist()",
    "transpose": "x.T",
}


class SparseArray(SparseParts):
    """Sparse array in one of five formats, stored as flat arrays.

    `arrayhub.assparse` creates sparse arrays. The arrays of values and indices are USMArrays that share the producer's
    memory. The shape consists of batch dimensions, sparse dimensions and dense dimensions, in this order. Most arrays
    have only two sparse dimensions.

    Attributes
    ----------
    format : {"coo", "csr", "csc", "bsr", "bsc"}
        coo: coordinates. csr: compressed rows. csc: compressed columns. bsr: compressed rows of dense blocks. bsc:
        compressed columns of dense blocks.
    shape : tuple of int
        Lengths of all dimensions.
    data : USMArray
        Stored values, of shape ``(*batch, stored, *blocksize, *dense)``. ``stored`` is the number of stored values or
        blocks in a batch.
    structure : tuple of USMArray
        `indices` and `indptr`. coo: an array of coordinates for each sparse dimension, or one array of all coordinates,
        whose first dimension is the sparse dimension.
    blocksize : tuple of int or None
        Shape of the blocks of bsr and bsc. None for other formats.
    batch_ndim : int
        Number of batch dimensions.

    Examples
    --------
    >>> import scipy.sparse
    >>> x = assparse(scipy.sparse.csr_array([[0, 1.5], [2.5, 0]]))
    >>> x.format, x.shape, x.nnz
    ('csr', (2, 2), 2)
    >>> x.indices.tolist(), x.indptr.tolist(), x.data.tolist()
    ([1, 0], [0, 1, 2], [1.5, 2.5])
    """

    __slots__ = ()

    @property
    def indices(self) -> USMArray | None:
        """USMArray or None : index of each stored value or block along the dimension that is not compressed.

        csr: column of each stored value. csc: row of each stored value. bsr: block column of each stored block. bsc:
        block row of each stored block. None for coo.
        """
        return None if self.format == "coo" else self.structure[0]

    @property
    def indptr(self) -> USMArray | None:
        """USMArray or None : start of each row or column in `indices` and `data`, and the end of the last.

        csr: row i consists of the stored values ``indptr[i]`` to ``indptr[i + 1] - 1``. csc: the same for column i.
        bsr, bsc: the same for the stored blocks of block row or block column i. None for coo.
        """
        return None if self.format == "coo" else self.structure[1]

    @property
    def coords(self) -> tuple[USMArray, ...] | None:
        """tuple of USMArray : index of each stored value along each sparse dimension. None if the format is not coo."""
        if self.format != "coo":
            return None
        joined = self._joined
        return self.structure if joined is None else tuple(joined[k] for k in range(joined.shape[0]))

    @property
    def _joined(self) -> USMArray | None:
        """The array of all coordinates, or None if each dimension has its own array."""
        first = self.structure[0] if self.format == "coo" and self.structure else None
        return first if first is not None and first.ndim == self.batch_ndim + 2 else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy.dtype : type of the stored values."""
        return self.data.dtype

    @property
    def device(self) -> Device:
        """Device : device that holds the memory."""
        return self.data.device

    @property
    def ndim(self) -> int:
        """int : number of dimensions."""
        return len(self.shape)

    @property
    def dense_ndim(self) -> int:
        """int : number of dense dimensions, which follow the sparse dimensions."""
        return int(self.data.ndim) - self.batch_ndim - 1 - (2 if self.blocksize else 0)

    @property
    def nnz(self) -> int:
        """int : number of stored values, including explicit zeros, duplicates, padding and all values of blocks.

        If there are dense dimensions, each dense subarray counts as one value.
        """
        return math.prod(self.data.shape[: self.data.ndim - self.dense_ndim])

    @property
    def nbytes(self) -> int:
        """int : total size of the arrays in bytes."""
        return int(self.data.nbytes) + sum(int(array.nbytes) for array in self.structure)

    @property
    def canonical(self) -> bool:
        """bool : whether the indices are sorted and distinct.

        The result is cached. If the host cannot read the array, the first access copies it to the host.
        """
        host = self if self._state & (CANONICAL | NOT_CANONICAL) else self.to_host()
        found = is_canonical(host)
        self._state |= host._state
        return found

    @property
    def access(self) -> str:
        """str : access of the values: ``"readwrite"``, ``"readonly"`` or ``"immutable"``."""
        return str(self.data.access)

    @property
    def protocol(self) -> str:
        """str : protocol by which the values were imported, as in ``asarray(via=)``, or ``"constructed"``."""
        return str(self.data.protocol)

    @property
    def T(self) -> "SparseArray":
        """SparseArray : transposed array on the same memory. csr becomes csc, and csc becomes csr."""
        row = FORMATS[self.format]
        if row.transposed is None or self.batch_ndim or self.dense_ndim or self.ndim != 2:
            raise Refusal(
                "T",
                f"{self.format} of shape {self.shape} cannot be transposed without a copy; accepted: coo, csr and csc"
                " of two dimensions. Use x.to_format('csr').T for bsr and bsc, or x.to_dense().T",
            )
        structure, state = self.structure, self._state & SEEN
        if self.coords is not None:  # whether the coordinates are sorted depends on which dimension is first
            structure, state = self.coords[::-1], state & ~(CANONICAL | NOT_CANONICAL)
        return type(self)(row.transposed, self.shape[::-1], self.data, structure, state=state)

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name):
            """Raise an AttributeError that names the equivalent call, if there is one."""
            instead = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"'SparseArray' object has no attribute {name!r}{instead}", name=name, obj=self)

    def to_host(self) -> "SparseArray":
        """Return the array itself if the host can read its memory, else an array with a host copy of each part."""
        return self if self._is_on_host() else self._map(USMArray.to_host)

    def to_device(self, device: Any, /) -> "SparseArray":
        """Return the array itself if it is on `device`, else an array with a copy of each part on `device`.

        For the device ``"cpu"``, the array itself is also returned if the host can read its memory.

        Parameters
        ----------
        device : Device, str, tuple or object
            Target device; see `Device`.
        """
        return self.to_host() if Device(device) == CPU else self._map(lambda array: array.to_device(device))

    def to_dense(self) -> USMArray:
        """Return a dense copy, in which the values of equal indices are added.

        The copy is in host memory if the host can read the array, else on the device of the array.

        Examples
        --------
        >>> import scipy.sparse
        >>> assparse(scipy.sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(2, 2))).to_dense().tolist()
        [[0, 3], [0, 0]]
        """
        if not self._is_on_host():
            return self.to_host().to_dense().to_device(self.device)
        dense = np.zeros(self.shape, self.dtype)
        batches = math.prod(self.shape[: self.batch_ndim])
        np.add.at(dense.reshape(batches, *self.shape[self.batch_ndim :]), *elements(self))
        return asarray(dense)

    def to_format(self, format: str, /) -> "SparseArray":
        """Return a copy in the given format, in canonical order. The values of equal indices are added.

        The copy is in host memory if the host can read the array, else on the device of the array.

        In coo, batch dimensions become sparse dimensions. In the other formats, each batch is converted separately.
        Batches with fewer stored values than the largest batch are padded with zeros after their last pointer, as in
        jax.

        Parameters
        ----------
        format : {"coo", "csr", "csc", "bsr", "bsc"}
            Format of the result. bsr and bsc keep the blocks of an array that consists of blocks.

        Raises
        ------
        ValueError
            `format` is unknown. Also raised if `format` is not coo and the array does not have exactly two sparse
            dimensions, and if `format` consists of blocks and the array does not.
        """
        return to_format(self, format)

    def copy(self) -> "SparseArray":
        """Return an array with a copy of each part, in memory of the same kind."""
        return self._map(transfer.copy)

    def _map(self, convert: Callable[[Any], Any]) -> "SparseArray":
        """Return a sparse array of the results of `convert` for each part, or the array itself if nothing changes."""
        return self._with_parts(convert(self.data), tuple(map(convert, self.structure)))

    def _with_parts(self, data: Any, structure: tuple[Any, ...], state: int = 0) -> "SparseArray":
        """Return a sparse array of other arrays with equal indices, in whose state the bits of `state` are set.

        If nothing changes, return the array itself.
        """
        if not state and data is self.data and all(map(is_, structure, self.structure)):
            return self
        state |= self._state & SEEN
        return type(self)(self.format, self.shape, data, structure, self.blocksize, self.batch_ndim, state)

    def _cast(self, dtype: Any, checked: str = "") -> "SparseArray":
        """Return an array with values of `dtype` and the same indices, or the array itself if nothing changes.

        With `checked`, which starts error messages, values that `dtype` cannot represent raise an error.
        """
        dtype, data = requested_dtype(dtype), self.data
        if satisfies(data.dtype, dtype):
            return self
        cast = cast_checked(data, dtype, checked) if checked else asarray(data, dtype=dtype)
        return self._with_parts(cast, self.structure)

    # The internal interface, which NestedArray and USMArray implement too.

    def _export(self, library: str, copy: Copy, allow_readonly: bool) -> Any:
        """Return a sparse array of a library."""
        return hooks.sparse.export(self, library, copy, allow_readonly)

    def _change(self, dtype: Any, device: Any) -> "SparseArray":
        """Return an array with values of `dtype` on `device`, or the array itself if nothing changes."""
        x = self if dtype is None else self._cast(dtype)
        return x if device is None else x.to_device(device)

    def _is_on_host(self) -> bool:
        """Return whether the host can read all arrays."""
        return all(map(is_host_readable, (self.data, *self.structure)))

    def _describe(self, refcount: int) -> Iterator[str]:
        """Return the lines of `debug_repr`."""
        return hooks.sparse.lines_of(self, refcount)

    def __reduce__(self) -> Any:
        """Return the state for pickle. From protocol 5 on, pickle can write the bytes of each part out of band."""
        return hooks.sparse.reduce(self)

    def __copy__(self) -> "SparseArray":
        """Return the array itself for ``copy.copy``, because a shallow copy shares all parts anyway."""
        return self

    def __deepcopy__(self, memo: Any) -> "SparseArray":
        """Return an array with a copy of each part in memory of the same kind, for ``copy.deepcopy``."""
        return self.copy()

    def __sizeof__(self) -> int:
        """Return the size in bytes, including the parts.

        dask uses this size to decide which objects to move or spill.
        """
        return object.__sizeof__(self) + self.nbytes

    @property
    def picture(self) -> TextPicture:
        """TextPicture : pattern of the stored values as text. See ``arrayhub.picture``."""
        return hooks.sparse.picture_of(self)

    def _repr_html_(self) -> str:
        return self.picture._repr_html_()

    def __repr__(self) -> str:
        where = "" if str(self.device) == "cpu" else f", on {self.device}"
        blocks = f" in blocks of {self.blocksize}" if self.blocksize else ""
        values = f"{self.nnz} stored values of {self.dtype}{where}"
        return f"<SparseArray: {self.format} of shape {self.shape}{blocks}, {values}>"

    def __eq__(self, other: object) -> Any:
        raise TypeError("SparseArray does not implement ==; compare arrays of a library, such as arrayhub.as_scipy(x)")

    def __bool__(self) -> NoReturn:
        raise TypeError("SparseArray does not have a truth value; use x.nnz, or arrayhub.as_scipy(x)")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "SparseArray is not dense; use arrayhub.as_numpy(x.to_dense()), or arrayhub.as_scipy(x) for a sparse array"
        )
