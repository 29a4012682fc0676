"""Labels: what the dimensions of an array are called, and where they lie on a grid; and what views keep of that."""

cimport cython

import operator
from collections.abc import Mapping

from arrayhub._core.descriptor cimport Descriptor, labels_of, same_layout, set_labels
from arrayhub._core.integers cimport integer

from arrayhub._core.errors import show


# Nothing but strings and integers is in here, so that no reference can lead back: the collector need not look.
@cython.final
@cython.no_gc
cdef class Labels:
    """What an array says about its dimensions besides their lengths. Never changed once made: views share it.

    Attributes
    ----------
    dims : tuple of str or None
        The names of the dimensions, all different.
    origin : tuple of int or None
        The index of the element where a stencil's domain starts. It need not lie inside the array.
    halo : tuple of (int, int) or None
        How many elements at the lower and at the upper end of each dimension lie outside of the domain.
    aligned_index : tuple of int or None
        An index such that every element is aligned which has it in the dimension that was allocated as the fastest.
    """
    cdef readonly tuple dims
    cdef readonly tuple origin
    cdef readonly tuple halo
    cdef readonly tuple aligned_index

    def indexed(self, tuple keys, Descriptor source):
        """The labels of ``source[keys]``, or None where nothing is left to say.

        An integer drops its dimension, and a slice moves the indices. A step other than 1 leaves the names alone: the
        elements between are on no grid with these. A new axis has no name, so that no names are left.
        """
        cdef list kept = []       # of each dimension of the view: the one in the source, where it starts and ends
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
            shifted(self.origin, kept) if on_grid else None,
            tuple([narrowed(self.halo, source, part) for part in kept]) if on_grid and self.halo is not None else None,
            shifted(self.aligned_index, kept) if on_grid and aligned else None,
        )

    def transposed(self, list order):
        """The labels with the dimensions in another order."""
        return combine(
            permuted(self.dims, order), permuted(self.origin, order), permuted(self.halo, order),
            permuted(self.aligned_index, order),
        )

    def moved(self):
        """The labels of a copy, whose memory is aligned as it happens to be."""
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
    """The parts of an index with its Ellipsis written out."""
    cdef list parts = []
    for part in keys:
        if part is Ellipsis:
            parts.extend([slice(None)] * (nd - len(keys) + 1 + sum([part is None for part in keys])))
        else:
            parts.append(part)
    return parts


cdef int fastest_axis(Descriptor a) noexcept:
    """The dimension with the shortest step, the only one that alignment pads; -1 where there is none to step along.

    It may also be one of length 1 that a slice has left, whose step nobody knows any more.
    """
    cdef int k, fastest = -1
    for k in range(a.nd_):
        if a.shape_[k] > 1 and (fastest < 0 or abs(a.byte_strides_[k]) < abs(a.byte_strides_[fastest])):
            fastest = k
    return fastest


cdef tuple shifted(tuple index, list kept):
    if index is None:
        return None
    return tuple([0 if part is None else index[part[0]] - part[1] for part in kept])


cdef tuple narrowed(tuple halo, Descriptor source, tuple part):
    """What a slice leaves of a dimension's halo: the domain is cut, what lies outside of it stays outside."""
    if part is None:
        return (0, 0)
    axis, start, stop = part
    lower, upper = halo[axis]
    return (
        min(max(lower, start), stop) - start,
        stop - min(max(source.shape_[axis] - upper, start), stop),
    )


cdef tuple permuted(tuple values, list order):
    return None if values is None else tuple([values[axis] for axis in order])


# --------------------------------------------------------------------------------------------------- what users give


def label(Descriptor array, *, dims=None, origin=None, halo=None, aligned_index=None):
    """Give `array` labels, in place; views that exist already keep theirs.

    Parameters
    ----------
    array : USMArray
        An array that nobody else holds yet.
    dims : sequence of str, optional
        A name a dimension, all different. A string is the sequence of its letters, as in ``"IJK"``.
    origin : sequence of int, optional
        An index; it need not lie inside the array.
    halo : sequence of int or of (int, int), optional
        Widths in elements, at both ends of each dimension or at the lower and the upper one.
    aligned_index : sequence of int, optional
        An index; the caller knows the elements there to be aligned.

    Returns
    -------
    USMArray
        `array` itself.

    Raises
    ------
    ValueError
        Another number of entries than dimensions, a name twice, a negative width, a halo wider than the array.
    TypeError
        A name that is no string, an index that is no integer.
    """
    set_labels(array, combine(
        None if dims is None else names(dims, array.nd_),
        None if origin is None else integers(origin, array.nd_, "origin"),
        None if halo is None else widths(halo, array),
        None if aligned_index is None else integers(aligned_index, array.nd_, "aligned_index"),
    ))
    return array


def named(tuple dims):
    """Return Labels of names that are known to be strings, all different, or None for a dimension without one."""
    return combine(dims, None, None, None)


def relabelled(Descriptor array, dims, origin=None):
    """Return a view of `array` with names for its dimensions, and where given an origin; it keeps its other labels.

    Parameters
    ----------
    array : USMArray
    dims : sequence of str, mapping or None
        A name a dimension; a mapping from present names to new ones; None leaves the names as they are.
    origin : sequence of int, optional
        As in `label`.
    """
    cdef Descriptor view = same_layout(array)
    cdef object old = labels_of(array)
    if old is None:
        old = Labels()
    set_labels(view, combine(
        old.dims if dims is None else names(renamed(old.dims, dims), array.nd_),
        old.origin if origin is None else integers(origin, array.nd_, "origin"),
        old.halo,
        old.aligned_index,
    ))
    return view


cdef object renamed(object present, object dims):
    """The names that `dims` gives, itself or in place of those that are `present`."""
    if not isinstance(dims, Mapping):
        return dims
    unknown = [name for name in dims if name not in (present or ())]
    if unknown:
        raise ValueError(f"dims: {show(unknown[0])} is none of the names {present}; accepted: a mapping from present names")
    return [dims.get(name, name) for name in present or ()]


cdef tuple names(object dims, int nd):
    cdef list result = []
    for name in one_each(dims, nd, "dims", "names"):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"dims: {show(name)} is no name; accepted: strings, such as 'I', 'J', 'K', '0', and None for none")
        result.append(None if name is None else str.__str__(name))     # of a subclass only the characters
    named = [name for name in result if name is not None]
    if len(set(named)) != len(named):
        raise ValueError(f"dims: {show(tuple(result))} has a name twice; accepted: a different name for each dimension")
    return tuple(result)


cdef tuple integers(object values, int nd, str what):
    return tuple([integer(value, what) for value in one_each(values, nd, what, "integers")])


cdef tuple widths(object halo, Descriptor array):
    cdef list result = []
    for axis, width in enumerate(one_each(halo, array.nd_, "halo", "widths")):
        pair = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
        if len(pair) != 2:
            raise ValueError(f"halo: {show(width)} is no width; accepted: an integer, or the lower and the upper width")
        lower, upper = integer(pair[0], "halo"), integer(pair[1], "halo")
        if lower < 0 or upper < 0 or lower + upper > array.shape_[axis]:
            raise ValueError(
                f"halo: {show(width)} for dimension {axis} of length {array.shape_[axis]}; accepted: widths of zero or more"
                " that fit into it together"
            )
        result.append((lower, upper))
    return tuple(result)


cdef tuple one_each(object values, int nd, str what, str kind):
    """`values` as a tuple with an entry for each dimension."""
    try:
        if isinstance(values, (set, frozenset)):    # whose order nobody meant
            raise TypeError
        result = tuple(values)
    except TypeError:
        raise TypeError(f"{what}: {show(values)} is no sequence; accepted: {nd} {kind}, one a dimension") from None
    if len(result) != nd:
        raise ValueError(f"{what}: {show(result)} has {len(result)} entries; accepted: {nd} {kind}, one a dimension")
    return result
