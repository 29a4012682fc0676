"""What is asked of the array that a copy goes into."""

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub.runtimes.host import is_host_readable, is_packed


def check(array, out):
    """Refuse an `out` that `array` cannot be copied into, element by element.

    Raises
    ------
    ValueError
        Another shape or element type, read-only memory, memory the host cannot reach, elements that share bytes.
    """
    if not is_host_readable(out):
        raise ValueError(f"to_host: out is on {out.device}; accepted: memory that the host can write. See to_device")
    if out.shape != array.shape or not _same_type(out, array):
        raise ValueError(f"to_host: out is {out!r}; accepted: the shape and the element type of {array!r}")
    if not out.flags.writeable:
        raise ValueError("to_host: out is read-only; accepted: a writable array")
    if not (out.flags.c_contiguous or out.flags.f_contiguous) and _overlaps_itself(out):
        raise ValueError(
            f"to_host: out has byte strides {out.byte_strides} for shape {out.shape}, so that its elements overlap each"
            " other; accepted: an array whose elements each have bytes of their own"
        )


def _same_type(a, b):
    """Whether bytes of one may be read as elements of the other: byte order, units and fields included."""
    if (a.typenum, a.itemsize, is_packed(a)) != (b.typenum, b.itemsize, is_packed(b)):
        return False
    # Types without a dtype object (complex32, say) have nothing more to differ in.
    return a.typenum >= FIRST_OWN_TYPENUM or a.dtype == b.dtype


def _overlaps_itself(array):
    """Whether dimensions step on each other: some step is shorter than what the dimensions of smaller steps cover.

    Interleavings of strides that happen to miss each other are counted as overlaps: to tell those apart can take
    exponential time, and no library makes them.
    """
    covered = array.itemsize
    for step, length in sorted(
        (abs(step), n) for step, n in zip(array.byte_strides, array.shape, strict=True) if n > 1
    ):
        if step < covered:
            return True
        covered += step * (length - 1)
    return False
