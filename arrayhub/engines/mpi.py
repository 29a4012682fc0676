"""MPI, by mpi4py: any layout as one message, and no garbage where MPI does not know the elements."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from arrayhub.conversion import asarray
from arrayhub.runtimes.host import host_view, is_host_readable, is_packed
from arrayhub.transfer.gather import reached
from arrayhub.usm_array import USMArray

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


class Message(list[Any]):
    """The list ``[buffer, count, datatype]`` that mpi4py takes. A datatype that was made for it is freed with it."""

    _made: Any = None

    def __del__(self) -> None:
        if self._made is not None:
            MPI = sys.modules.get("mpi4py.MPI")  # gone where the interpreter ends
            if MPI is not None and not MPI.Is_finalized():
                self._made.Free()


def as_mpi(obj: Any, /, *, op: Any = None) -> Message:
    """Return an array of any layout as a message for mpi4py's upper-case calls, without a copy.

    Elements go in C order whatever the strides are: ``comm.Send(as_mpi(x.T))`` sends the transpose, and a receiver
    fills any layout of the same shape. Strided arrays become one derived datatype.

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
        ``[buffer, count, datatype]``. It keeps the array alive. A read-only array cannot be received into.

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
    array = _readable(asarray(obj))
    element = _element(array)
    if op is not None:
        _refuse_reduction(array, element)
    message = Message([reached(array), array.size, element])
    if element is None or not array.flags.c_contiguous:
        message[1:] = [min(array.size, 1), _derived(array, element)]
        message._made = message[2]
    return message


def _readable(array: USMArray) -> USMArray:
    if not is_host_readable(array):
        raise BufferError(
            f"mpi: the memory is on {array.device}, which the host cannot read; call arrayhub.to_host(x), and after a"
            " receive x.to_device(...). An MPI that knows the device takes the array itself"
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


def _derived(array: USMArray, element: Any) -> Any:
    """Return a datatype of all elements in C order, counted from the lowest byte that the array reaches."""
    from mpi4py import MPI

    if is_packed(array) or element is None:  # a type of its own, which no operation of MPI takes
        parts = [MPI.BYTE.Create_contiguous(array.nbytes if is_packed(array) else array.itemsize)]
    else:
        parts = [element.Dup()]
    shape = () if is_packed(array) or not array.size else array.shape
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
    derived = parts[-1].Create_resized(0, reached(array).nbytes)
    derived.Commit()
    for part in parts:
        part.Free()
    return derived
