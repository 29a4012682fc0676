"""MPI, by mpi4py: any layout as one message, and no garbage where MPI does not know the elements."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from arrayhub._core.errors import unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.runtimes.host import host_view, is_host_readable, is_packed
from arrayhub.transfer.gather import reached

# What MPI can calculate with: the name of its type by NumPy's type string without the byte order.
_NAMES = {
    "b1": "C_BOOL",
    **{f"i{size}": f"INT{8 * size}_T" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"UINT{8 * size}_T" for size in (1, 2, 4, 8)},
    "f4": "FLOAT",
    "f8": "DOUBLE",
    np.dtype("g").str[1:]: "LONG_DOUBLE",
    "c8": "C_FLOAT_COMPLEX",
    "c16": "C_DOUBLE_COMPLEX",
}


def as_mpi(obj: Any, /, *, op: Any = None) -> list[Any]:
    """Return an array of any layout as a message for mpi4py's upper-case calls, without a copy.

    Elements go in C order whatever the strides are: ``comm.Send(as_mpi(x.T))`` sends the transpose, and a receiver
    fills any layout of the same shape. Strided arrays become one derived datatype; it is freed with the last reference
    to it.

    Parameters
    ----------
    obj : object
        Anything that `asarray` takes, in memory that the host can read.
    op : mpi4py.MPI.Op, optional
        The operation, where the message is for a reduction or for a call of a window that calculates
        (``Win.Accumulate``); it is refused here for what MPI cannot calculate with. Without it MPI adds bytes there.

    Returns
    -------
    list
        ``[buffer, None, datatype]``, of which mpi4py works out the count: in collective calls such as ``Allgather`` one
        for each block. It keeps the array alive. mpi4py refuses to receive into what is read-only, and so it does into
        the copies that `asarray` makes of lists and numbers, where nobody would see what has arrived. A strided or
        packed array is one block: mpi4py refuses to divide it among several ranks.

    Raises
    ------
    BufferError
        Memory on a device: the message names ``to_host``. With `op`: elements that are not compact in C order.
    TypeError
        With `op`: elements of a type that MPI does not know, such as bfloat16, which would be added as bytes.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> import numpy as np, arrayhub
    >>> grid = np.zeros((4, 5))
    >>> request = MPI.COMM_SELF.Irecv(arrayhub.as_mpi(grid[:, 0]), source=0)
    >>> MPI.COMM_SELF.Send(arrayhub.as_mpi(np.arange(4.0)), dest=0)
    >>> request.Wait()
    True
    >>> grid[:, 0].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    array = asarray(obj)
    received_unseen = array.is_copy and not isinstance(obj, USMArray)
    array = _readable(array)
    element = _element(array)
    if op is not None:
        _refuse_reduction(array, element)
    if not array.flags.c_contiguous or is_packed(array):
        datatype = _whole(array, element)
    else:
        datatype = element or _made_of([_bytes(array.itemsize)], array.itemsize)
    buffer = reached(array)
    if received_unseen:
        buffer.flags.writeable = False
    return [buffer, None, datatype]


def _readable(array: USMArray) -> USMArray:
    if not is_host_readable(array):
        raise BufferError(
            unreadable(
                "mpi",
                array.device,
                call="call arrayhub.to_host(x), and after a receive x.to_device(...). An MPI that supports the device"
                " accepts the array itself",
            )
        )
    host: USMArray = host_view(array)
    return host


def _element(array: USMArray) -> Any:
    """Return MPI's own type of the elements, or None."""
    from mpi4py import MPI

    try:
        dtype = array.dtype
    except TypeError:  # neither NumPy nor ml_dtypes has one
        return None
    name = _NAMES.get(dtype.str[1:]) if dtype.isnative and dtype.num < 24 and dtype.names is None else None
    return None if name is None else getattr(MPI, name)


def _refuse_reduction(array: USMArray, element: Any) -> None:
    if element is None:
        raise TypeError(
            f"mpi: MPI does not know {array!r}'s elements, and would add their bytes; convert them first, for example"
            " arrayhub.as_numpy(x).astype('float32')"
        )
    if not array.flags.c_contiguous:
        raise BufferError("mpi: reductions take elements that are compact in C order; call x.copy() first")


def _whole(array: USMArray, element: Any) -> Any:
    """Return a datatype of all elements in C order, counted from the lowest byte that the array reaches."""
    if is_packed(array):
        return _made_of([_bytes(array.nbytes)], array.nbytes)
    parts = [_bytes(array.itemsize) if element is None else element.Dup()]
    shape = array.shape if array.size else ()
    strides = array.byte_strides if shape else ()
    run = array.itemsize  # bytes that lie next to each other, which MPI copies as one; 0 once there are gaps
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if run and stride == run:
            run *= length
            parts.append(parts[-1].Create_contiguous(length))
        else:
            run = 0
            parts.append(parts[-1].Create_hvector(length, 1, stride))
    before = sum(-stride * (length - 1) for length, stride in zip(shape, strides, strict=True) if stride < 0)
    if before:
        parts.append(parts[-1].Create_hindexed([1], [before]))
    return _made_of(parts, reached(array).nbytes)


def _bytes(nbytes: int) -> Any:
    """Return a type of its own, which no operation of MPI takes."""
    from mpi4py import MPI

    return MPI.BYTE.Create_contiguous(nbytes)


def _made_of(parts: list[Any], extent: int) -> Any:
    """Return the last of some datatypes, each made of the one before, as one of `extent` bytes; free them."""
    made = _owned(parts[-1].Create_resized(0, extent))
    made.Commit()
    for part in parts:
        part.Free()
    return made


_owned_type: list[Any] = []  # one class, made when there is an mpi4py


def _owned(datatype: Any) -> Any:
    """Return a datatype that is freed with the object: MPI keeps what a message under way still needs."""
    from mpi4py import MPI

    if not _owned_type:
        _owned_type.append(type("Owned", (MPI.Datatype,), {"__del__": _free}))
    return _owned_type[0](datatype)


def _free(datatype: Any) -> None:
    MPI = sys.modules.get("mpi4py.MPI")  # gone where the interpreter ends
    if MPI is not None and not MPI.Is_finalized() and datatype != MPI.DATATYPE_NULL:  # by the user's own Free
        datatype.Free()
