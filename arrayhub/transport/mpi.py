"""Messages for mpi4py. One derived datatype describes any layout. Reductions reject unsupported element types."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.dtypes import FIRST_USER_TYPENUM
from arrayhub._core.errors import needed, unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.transfer.host_copies import emit_reach, host_view, is_packed


def as_mpi(obj: Any, /, *, op: Any = None) -> list[Any]:
    """Return an array of any layout as a message for mpi4py's upper-case methods, without a copy.

    The elements of any layout are sent in C order. ``comm.Send(as_mpi(x.T))`` sends the transpose. The receiver's array
    must have the same shape, but may have a different layout. A strided array is described by one derived datatype,
    which is freed with its last reference.

    Parameters
    ----------
    obj : object
        Any array that `asarray` imports, in memory that the host can read.
    op : mpi4py.MPI.Op, optional
        The operation of a reduction or of an accumulating window call (``Win.Accumulate``). With `op`, element types
        that MPI does not support raise TypeError. Without `op`, such elements are sent as opaque bytes, which MPI's
        predefined operations reject with a less helpful error.

    Returns
    -------
    list
        ``[buffer, None, datatype]``. mpi4py computes the count. In collective calls such as ``Allgather``, this is the
        count of one block. The list keeps the array alive. Copies that `asarray` has made, for example of a list, are
        read-only, because elements received in such a copy would be lost. A strided or packed array is one block, which
        mpi4py does not divide among several ranks.

    Raises
    ------
    BufferError
        The memory is on a device (call ``to_host``), or `op` is given and the elements are not contiguous in C order.
    TypeError
        `op` is given, and MPI does not support the element type, such as bfloat16.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> import numpy as np, arrayhub
    >>> grid = np.zeros((4, 5))
    >>> request = MPI.COMM_SELF.Irecv(arrayhub.transport.as_mpi(grid[:, 0]), source=0)
    >>> MPI.COMM_SELF.Send(arrayhub.transport.as_mpi(np.arange(4.0)), dest=0)
    >>> request.Wait()
    True
    >>> grid[:, 0].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    array = asarray(obj)
    received_unseen = array.is_copy and not isinstance(obj, USMArray)
    if not is_host_readable(array):
        call = (
            "call arrayhub.to_host(x), and after a receive x.to_device(...). An MPI that supports the device accepts"
            " the array itself"
        )
        raise BufferError(unreadable("mpi", array.device, call=call))
    array = host_view(array)
    element = _find_element_type(array)
    if op is not None and element is None:
        raise TypeError(
            f"mpi: op is given, but MPI's operations do not support the elements of {array!r}; convert them first, for"
            " example arrayhub.as_numpy(x).astype('float32')"
        )
    if op is not None and not array.flags.c_contiguous:
        raise BufferError("mpi: op is given, but the elements are not contiguous in C order; call x.copy() first")
    if not array.flags.c_contiguous or is_packed(array):
        datatype = _contiguous_datatype(array, element)
    else:
        datatype = element or _commit_datatype([_create_bytes(array.itemsize)], array.itemsize)
    buffer = emit_reach(array)
    if received_unseen:
        buffer.flags.writeable = False
    return [buffer, None, datatype]


def _find_element_type(array: USMArray) -> Any:
    """Return the MPI datatype of the elements, or None."""
    MPI = needed("mpi4py.MPI", "for MPI messages").MPI

    try:
        dtype = array.dtype
    except TypeError:  # neither NumPy nor ml_dtypes has the type
        return None
    if dtype.kind not in "biufc" or not dtype.isnative or dtype.names is not None or dtype.num >= FIRST_USER_TYPENUM:
        return None
    if dtype.str[1:] == "f2":  # not in MPI's standard; MPIX_C_FLOAT16 is an extension of MPICH
        return None
    try:
        found = MPI.Datatype.fromcode(dtype.str[1:])
    except ValueError:
        return None
    return None if found == MPI.DATATYPE_NULL else found  # an MPI without the type


def _contiguous_datatype(array: USMArray, element: Any) -> Any:
    """Return a datatype of all elements in C order. Its displacements are relative to the lowest byte of the array."""
    if is_packed(array):
        return _commit_datatype([_create_bytes(array.nbytes)], array.nbytes)
    parts = [_create_bytes(array.itemsize) if element is None else element.Dup()]
    shape = array.shape if array.size else ()
    strides = array.byte_strides if shape else ()
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        row = parts[-1]
        is_run = stride == row.extent  # MPI copies contiguous elements at once
        parts.append(row.Create_contiguous(length) if is_run else row.Create_hvector(length, 1, stride))
    before = sum(-stride * (length - 1) for length, stride in zip(shape, strides, strict=True) if stride < 0)
    if before:
        parts.append(parts[-1].Create_hindexed([1], [before]))
    return _commit_datatype(parts, emit_reach(array).nbytes)


def _create_bytes(nbytes: int) -> Any:
    """Return a derived datatype of bytes. MPI's operations reject derived datatypes, but some accept ``MPI.BYTE``."""
    from mpi4py import MPI

    return MPI.BYTE.Create_contiguous(nbytes)


def _commit_datatype(parts: list[Any], extent: int) -> Any:
    """Resize the last of a chain of derived datatypes to `extent` and commit it. Free the other datatypes."""
    made = _owner_class()(parts[-1].Create_resized(0, extent))
    made.Commit()
    for part in parts:
        part.Free()
    return made


@cache
def _owner_class() -> Any:
    """Return the class of datatypes that are freed with their Python object. MPI waits for pending messages."""
    from mpi4py import MPI

    return type("Owned", (MPI.Datatype,), {"__del__": _free_datatype})


def _free_datatype(datatype: Any) -> None:
    MPI = sys.modules.get("mpi4py.MPI")  # None at interpreter exit
    if MPI is not None and not MPI.Is_finalized() and datatype != MPI.DATATYPE_NULL:  # the user may have called Free
        datatype.Free()
