"""Validate the argument `out` of a copy."""

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


def check_out(Descriptor array, Descriptor out):
    """Raise ValueError if `array` cannot be copied to `out`.

    Raises
    ------
    ValueError
        `out` differs in shape or element type, is read-only, is not host memory, or has elements that overlap.
    """
    if not host_readable(out):
        raise ValueError(
            f"to_host: out is on {out.device}; accepted: memory that the host can write. "
            f"Call to_device(x, {str(out.device)!r})"
        )
    if not same_shape(out, array) or not same_type(out, array):
        raise ValueError(f"to_host: out is {out!r}; accepted: the shape and the element type of {array!r}")
    if not out.flags_ & WRITEABLE:
        raise ValueError("to_host: out is read-only; accepted: a writable array")
    if not out.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS) and overlaps_itself(out):
        raise ValueError(
            f"to_host: out has byte strides {out.byte_strides} for shape {out.shape}, so its elements overlap; "
            "accepted: an array whose elements do not overlap"
        )


cdef bint same_type(Descriptor a, Descriptor b) except -1:
    """Return whether `a` and `b` have the same element type, including byte order, datetime units and fields."""
    if a.typenum_ != b.typenum_ or a.itemsize_ != b.itemsize_ or (a.flags_ ^ b.flags_) & PACKED:
        return False
    # The type number identifies arrayhub's own types (such as complex32) completely.
    return a.typenum_ >= _FIRST_OWN or get_dtype(a) == get_dtype(b)


cdef bint overlaps_itself(Descriptor array) noexcept:
    """Return whether elements may overlap: a stride is shorter than the extent of the dimensions with smaller strides.

    Interleaved strides whose elements do not overlap are also counted as overlapping. An exact test can take
    exponential time, and no library is known to produce such strides.
    """
    cdef Py_ssize_t steps[layout.MAX_NDIM]      # in ascending order
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
