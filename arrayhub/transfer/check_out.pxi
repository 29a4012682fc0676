"""Checks of the source and the target of a copy: validation of `out`, broadcasting, overlap."""

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    PACKED,
    WRITEABLE,
    Descriptor,
    get_dtype,
    same_shape,
    seal,
    set_labels,
    shape_tuple,
    view_of,
)

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM

cdef int _FIRST_OWN = FIRST_OWN_TYPENUM


def check_out(Descriptor array, Descriptor out, str call):
    """Check that `array` can be copied to `out`. Messages begin with `call`.

    Raises
    ------
    ValueError
        `out` differs in shape or element type, is read-only, or has overlapping elements.
    """
    if not same_shape(out, array) or not have_one_type(out, array):
        raise ValueError(f"{call}: out is {out!r}; accepted: the shape and the element type of {array!r}")
    check_writable(out, f"{call}: out")


def check_writable(Descriptor out, str subject):
    """Raise ValueError if `out` is read-only, or if its elements overlap each other. Messages begin with `subject`."""
    if not out.flags_ & WRITEABLE:
        raise ValueError(f"{subject} is read-only; accepted: a writable array")
    if not out.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS) and overlaps_itself(out):
        raise ValueError(
            f"{subject} has byte strides {out.byte_strides} for shape {out.shape}, so its elements overlap; "
            "accepted: an array whose elements do not overlap"
        )


def broadcast(Descriptor array, Descriptor out):
    """Broadcast `array` to the shape of `out` according to NumPy's rules for assignment.

    Missing dimensions and dimensions of length 1 are repeated with the stride 0. Leading dimensions of length 1 that
    `out` does not have are dropped.

    Raises
    ------
    ValueError
        The shape of `array` cannot be broadcast to the shape of `out`.
    """
    cdef int nd = out.nd_, surplus = max(array.nd_ - nd, 0), missing = max(nd - array.nd_, 0), k, own
    cdef Descriptor view
    cdef Py_ssize_t length
    if same_shape(array, out):
        return array
    for k in range(surplus):
        if array.shape_[k] != 1:
            raise shape_error(array, out)
    if array.flags_ & PACKED:
        raise shape_error(array, out)      # packed elements do not have byte strides, so they cannot be repeated
    view = view_of(array, nd)
    set_labels(view, None)
    for k in range(nd):
        own = surplus + k - missing
        length = 1 if k < missing else array.shape_[own]
        view.shape_[k] = out.shape_[k]
        view.byte_strides_[k] = 0 if length == 1 else array.byte_strides_[own]
        if length != 1 and length != view.shape_[k]:
            raise shape_error(array, out)
    seal(view)
    return view


cdef object shape_error(Descriptor array, Descriptor out):
    return ValueError(f"could not broadcast input array from shape {shape_tuple(array)} into shape {shape_tuple(out)}")


cpdef bint have_one_type(Descriptor a, Descriptor b) except -1:
    """Return whether `a` and `b` have the same element type, including byte order, datetime units and fields."""
    if a.typenum_ != b.typenum_ or a.itemsize_ != b.itemsize_ or (a.flags_ ^ b.flags_) & PACKED:
        return False
    # The type number identifies arrayhub's own types (such as complex32) completely.
    return a.typenum_ >= _FIRST_OWN or get_dtype(a) == get_dtype(b)


cdef bint overlaps_itself(Descriptor array) noexcept:
    """Return whether elements may overlap: a stride is shorter than the extent of the dimensions with smaller strides.

    The result is also True for interleaved strides without an overlap. An exact test can take exponential time, and no
    library is known to create such strides.
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
