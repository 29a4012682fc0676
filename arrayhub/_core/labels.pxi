"""Labels of an array's dimensions: names, and positions on a grid. Indexing and transposing adapt the labels."""

cimport cython

import operator
from collections.abc import Mapping

from arrayhub._core.errors import show


# Labels are excluded from garbage collection: they contain only strings and integers, so they cannot be part of a cycle.
@cython.final
@cython.no_gc
cdef class Labels:
    """Names and positions of an array's dimensions. Immutable, so that views can share them.

    Attributes
    ----------
    dims : tuple of (str or None) or None
        The names of the dimensions, all different. The entry of a dimension without a name is None.
    origin : tuple of int or None
        The index of the first element of a stencil's domain. It may be outside the array.
    halo : tuple of (int, int) or None
        Number of elements outside the domain at the lower and the upper end of each dimension.
    aligned_index : tuple of int or None
        An index such that every element with this index along the fastest-varying dimension is aligned.
    """
    cdef readonly tuple dims
    cdef readonly tuple origin
    cdef readonly tuple halo
    cdef readonly tuple aligned_index

    def index(self, tuple keys, Descriptor source):
        """Return the labels of ``source[keys]``, or None if no label remains.

        An integer removes its dimension, and a slice shifts the indices. A step other than 1 removes all labels except the
        names, because the remaining elements form a different grid. A new axis, which does not have a name, removes all names.
        An integer in the fastest-varying dimension, or in a dimension of length 1, removes the aligned index unless the integer
        equals the entry of the aligned index.
        """
        cdef list kept = []       # for each dimension of the view: its axis in the source, start and end
        cdef bint named = True, on_grid = True, aligned = True
        cdef int axis = 0, fastest = fastest_axis(source)
        for part in every_part(keys, source.nd_):
            if part is None:
                named = False
                kept.append(None)
                continue
            if isinstance(part, slice):
                start, stop, step = part.indices(source.shape_[axis])
                on_grid = on_grid and step == 1
                kept.append((axis, start, max(start, stop)))
            elif self.aligned_index is not None and (axis == fastest or source.shape_[axis] == 1):
                aligned &= operator.index(part) % source.shape_[axis] == self.aligned_index[axis]
            axis += 1
        return combine(
            tuple([self.dims[k] for k, _, _ in kept]) if named and self.dims is not None else None,
            shift_index(self.origin, kept) if on_grid else None,
            tuple([narrow_halo(self.halo, source, part) for part in kept]) if on_grid and self.halo is not None else None,
            shift_index(self.aligned_index, kept) if on_grid and aligned else None,
        )

    def transpose(self, list order):
        """Return the labels with the dimensions in another order."""
        return combine(
            permute_entries(self.dims, order), permute_entries(self.origin, order), permute_entries(self.halo, order),
            permute_entries(self.aligned_index, order),
        )

    def forget_alignment(self):
        """Return the labels for a copy: all except the aligned index, because the alignment of a copy is unknown."""
        return combine(self.dims, self.origin, self.halo, None)


cdef object combine(tuple dims, tuple origin, tuple halo, tuple aligned_index):
    if dims is None and origin is None and halo is None and aligned_index is None:
        return None
    cdef Labels labels = Labels.__new__(Labels)
    labels.dims = dims
    labels.origin = origin
    labels.halo = halo
    labels.aligned_index = aligned_index
    return labels


cdef list every_part(tuple keys, int nd):
    """Return the parts of an index with its Ellipsis expanded."""
    cdef list parts = []
    for part in keys:
        if part is Ellipsis:
            parts.extend([slice(None)] * (nd - len(keys) + 1 + sum([part is None for part in keys])))
        else:
            parts.append(part)
    return parts


cdef int fastest_axis(Descriptor a) noexcept:
    """Return the dimension with the smallest absolute stride, or -1 if no length exceeds 1.

    Dimensions of length 1 are ignored, because their original stride is unknown. If a slice has reduced the fastest dimension
    to length 1, the result is therefore a different dimension.
    """
    cdef int k, fastest = -1
    for k in range(a.nd_):
        if a.shape_[k] > 1 and (fastest < 0 or abs(a.byte_strides_[k]) < abs(a.byte_strides_[fastest])):
            fastest = k
    return fastest


cdef tuple shift_index(tuple index, list kept):
    if index is None:
        return None
    return tuple([0 if part is None else index[part[0]] - part[1] for part in kept])


cdef tuple narrow_halo(tuple halo, Descriptor source, tuple part):
    """Return the halo of a sliced dimension, or (0, 0) for a new axis.

    The halo is the number of elements of the slice before and after the domain.
    """
    if part is None:
        return (0, 0)
    axis, start, stop = part
    lower, upper = halo[axis]
    return (
        min(max(lower, start), stop) - start,
        stop - min(max(source.shape_[axis] - upper, start), stop),
    )


cdef tuple permute_entries(tuple values, list order):
    return None if values is None else tuple([values[axis] for axis in order])


# ---------------------------------------------------------------------------------------------- labels from user input


def label(Descriptor array, *, dims=None, origin=None, halo=None, aligned_index=None):
    """Set the labels of an array that no other code refers to yet, and return the array.

    Parameters
    ----------
    dims : sequence of (str or None), optional
        One name per dimension, all different, or None for a dimension without a name. In a string such as ``"IJK"``,
        each letter is a name.
    origin : sequence of int, optional
        An index, which may be outside the array.
    halo : sequence of int or of (int, int), optional
        One entry per dimension, in elements: the width at both ends, or a pair of the widths at the lower and upper end.
    aligned_index : sequence of int, optional
        An index at which the caller guarantees that elements are aligned.
    """
    set_labels(array, combine(
        None if dims is None else names(dims, array.nd_),
        None if origin is None else integers(origin, array.nd_, "origin"),
        None if halo is None else widths(halo, array),
        None if aligned_index is None else integers(aligned_index, array.nd_, "aligned_index"),
    ))
    return array


cpdef object make_dims(tuple dims):
    """Return Labels with the given names, which must be different. The entry of a dimension without a name is None."""
    return combine(dims, None, None, None)


def relabel(Descriptor array, dims, origin=None):
    """Return a view of `array` with new dimension names and, if given, a new origin. Keep the other labels.

    `dims` is as in `label`, a mapping from current names to new names, or None, which keeps the names.
    """
    cdef Descriptor view = same_layout(array)
    cdef object old = labels_of(array)
    if old is None:
        old = Labels()
    set_labels(view, combine(
        old.dims if dims is None else names(rename_dims(old.dims, dims), array.nd_),
        old.origin if origin is None else integers(origin, array.nd_, "origin"),
        old.halo,
        old.aligned_index,
    ))
    return view


cdef object rename_dims(object present, object dims):
    """Return the new names. `dims` is a sequence of names, or a mapping from names in `present` to new names."""
    if not isinstance(dims, Mapping):
        return dims
    unknown = [name for name in dims if name not in (present or ())]
    if unknown:
        raise ValueError(
            f"dims: {show(unknown[0])} is not the name of a dimension (dims is {present}); accepted: a mapping from current to"
            " new names"
        )
    return [dims.get(name, name) for name in present or ()]


cdef tuple names(object dims, int nd):
    cdef list result = []
    for name in one_each(dims, nd, "dims", "names"):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"dims: {show(name)} is not a name; accepted: strings, such as 'I', 'J', 'K', '0', or None")
        result.append(None if name is None else str.__str__(name))     # convert subclasses to str
    named = [name for name in result if name is not None]
    if len(set(named)) != len(named):
        raise ValueError(f"dims: {show(tuple(result))} repeats a name; accepted: a different name for each dimension")
    return tuple(result)


cpdef tuple integers(object values, int nd, str what):
    return tuple([integer(value, what) for value in one_each(values, nd, what, "integers")])


cdef tuple widths(object halo, Descriptor array):
    cdef list result = []
    for axis, width in enumerate(one_each(halo, array.nd_, "halo", "widths")):
        pair = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
        if len(pair) != 2:
            raise ValueError(f"halo: {show(width)} is not a width; accepted: an integer, or the lower and the upper width")
        lower, upper = integer(pair[0], "halo"), integer(pair[1], "halo")
        if lower < 0 or upper < 0 or lower + upper > array.shape_[axis]:
            raise ValueError(
                f"halo: {show(width)} for dimension {axis} of length {array.shape_[axis]}; accepted: nonnegative widths"
                " whose sum does not exceed the length"
            )
        result.append((lower, upper))
    return tuple(result)


cpdef tuple one_each(object values, int nd, str what, str kind):
    """Return `values` as a tuple with one entry per dimension. Accept any number of entries if `nd` is negative."""
    try:
        if isinstance(values, (set, frozenset)):    # the order of a set is arbitrary
            raise TypeError
        result = tuple(values)
    except TypeError:
        raise TypeError(f"{what}: {show(values)} is not a sequence; accepted: {kind}, one per dimension") from None
    if nd >= 0 and len(result) != nd:
        raise ValueError(f"{what}: {show(result)} has {len(result)} entries; accepted: {nd} {kind}, one per dimension")
    return result
