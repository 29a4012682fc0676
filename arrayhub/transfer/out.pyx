"""What is asked of the array that a copy goes into."""

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    PACKED,
    WRITEABLE,
    Descriptor,
    get_dtype,
    host_readable,
    same_shape,
)

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM

cdef int _FIRST_OWN = FIRST_OWN_TYPENUM


def check(Descriptor array, Descriptor out):
    """Refuse an `out` that `array` cannot be copied into, element by element.

    Raises
    ------
    ValueError
        Another shape or element type, read-only memory, memory the host cannot reach, elements that share bytes.
    """
    if not host_readable(out):
        raise ValueError(f"to_host: out is on {out.device}; accepted: memory that the host can write. See to_device")
    if not same_shape(out, array) or not same_type(out, array):
        raise ValueError(f"to_host: out is {out!r}; accepted: the shape and the element type of {array!r}")
    if not out.flags_ & WRITEABLE:
        raise ValueError("to_host: out is read-only; accepted: a writable array")
    if not out.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS) and overlaps_itself(out):
        raise ValueError(
            f"to_host: out has byte strides {out.byte_strides} for shape {out.shape}, so that its elements overlap each"
            " other; accepted: an array whose elements each have bytes of their own"
        )


cdef bint same_type(Descriptor a, Descriptor b) except -1:
    """Whether bytes of one may be read as elements of the other: byte order, units and fields included."""
    if a.typenum_ != b.typenum_ or a.itemsize_ != b.itemsize_ or (a.flags_ ^ b.flags_) & PACKED:
        return False
    # Types without a dtype object (complex32, say) have nothing more to differ in.
    return a.typenum_ >= _FIRST_OWN or get_dtype(a) == get_dtype(b)


cdef bint overlaps_itself(Descriptor array) noexcept:
    """Whether dimensions step on each other: some step is shorter than what the dimensions of smaller steps cover.

    Interleavings of strides that happen to miss each other are counted as overlaps: to tell those apart can take
    exponential time, and no library makes them.
    """
    cdef Py_ssize_t steps[layout.MAX_NDIM]      # from the smallest
    cdef Py_ssize_t lengths[layout.MAX_NDIM]
    cdef Py_ssize_t step, covered = array.itemsize_
    cdef int k, place, kept = 0
    for k in range(array.nd_):
        if array.shape_[k] > 1:
            step = abs(array.byte_strides_[k])
            place = kept
            while place > 0 and steps[place - 1] > step:
                steps[place] = steps[place - 1]
                lengths[place] = lengths[place - 1]
                place -= 1
            steps[place] = step
            lengths[place] = array.shape_[k]
            kept += 1
    for k in range(kept):
        if steps[k] < covered:
            return True
        covered += steps[k] * (lengths[k] - 1)
    return False
