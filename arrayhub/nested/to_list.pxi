"""Conversion of the elements of a nested array to Python objects."""

from cpython.list cimport PyList_GetSlice

from arrayhub._core.descriptor cimport EXACT_TIMES, Descriptor
from arrayhub._core.tree cimport (
    KINDS,
    LISTS,
    Tree,
    check_again,
    count_nulls,
    has,
    is_missing,
    part_inside,
    part_of,
)

from arrayhub.convert.functions import as_numpy
from arrayhub.nested import logical_types


cdef object list_elements(object node):
    """Convert the elements of a node to Python objects."""
    cdef Tree t
    if not isinstance(node, Tree):
        return list_numbers(<Descriptor> node)
    t = <Tree> node
    check_again(t)
    items = _LISTED[t.kind](t)
    if t.validity is None or count_nulls(t) == 0:
        return items
    return [item if valid else None for item, valid in zip(items, valid_mask(t).tolist())]


cdef list list_numbers(Descriptor a):
    return logical_types.times(as_numpy(a)) if a.flags_ & EXACT_TIMES else as_numpy(a).tolist()


cdef list list_flat(Tree t):
    return list_numbers(t.content) if t.meaning is None else logical_types.list_elements(as_numpy(t.content), t.meaning)


cdef enum:
    ROWS_AT_ONCE = 1024      # so that the converted items are still in the cache when they are sliced into rows


cdef bint can_be_split(object node) noexcept:
    """Return whether the parts of a node are converted as fast as the node. Each part of a dictionary has all categories."""
    while isinstance(node, Tree) and has(<Tree> node, ENDS) and has(<Tree> node, LISTS):
        node = (<Tree> node).content
    return not isinstance(node, Tree) or has(<Tree> node, NUMBERS | BIT_PACKED | ENDS)


cdef list list_lists(Tree t):
    cdef const char* ends = t.offsets.data_
    cdef Py_ssize_t k, size = t.offsets.itemsize_, begin, end, first, start, stop
    cdef Py_ssize_t batch = ROWS_AT_ONCE if can_be_split(t.content) else max(t.length, 1)
    cdef list items, rows = []
    for begin in range(0, t.length, batch):
        end = min(begin + batch, t.length)
        first = integer_at(ends, size, begin)
        items = list_elements(part_inside(t, first, integer_at(ends, size, end), "offsets"))
        start = 0
        for k in range(begin, end):
            stop = integer_at(ends, size, k + 1) - first
            rows.append(PyList_GetSlice(items, start, stop))       # clips offsets that the producer changes meanwhile
            start = stop
    return rows


cdef list list_regular(Tree t):
    items = list_elements(t.content)
    return [items[k * t.width : (k + 1) * t.width] for k in range(t.length)]


cdef list list_texts(Tree t):
    return [None if is_missing(t, k) else text_at(t, k) for k in range(t.length)]


cdef bint is_tuple(Tree t) except -1:
    """Return whether a record was imported from tuples of awkward."""
    return t.meaning is not None and t.meaning.startswith(logical_types.AWKWARD_TUPLE)


cdef list list_records(Tree t):
    check_names(t, "to_list")
    if not t.parts:
        return [() if is_tuple(t) else {} for _ in range(t.length)]
    columns = [list_elements(part_of(part, 0, t.length)) for part in t.parts]
    if is_tuple(t):
        return list(zip(*columns))
    return [dict(zip(t.names, row)) for row in zip(*columns)]


cdef list list_categories(Tree t):
    words = list_elements(t.content)
    return [None if is_missing(t, k) else words[index] for k, index in enumerate(as_numpy(t.indices).tolist())]


cdef list list_chunks(Tree t):
    cdef list items = []
    for chunk in t.parts:
        items.extend(list_elements(chunk))
    return items


cdef list list_opaque(Tree t):
    return hooks.nested.opaque.to_list(t)


cdef list list_bits(Tree t):
    return as_numpy(unpack_bits(t)).tolist()


ctypedef list (*Lister)(Tree t)
ctypedef object (*ElementAt)(Tree t, Py_ssize_t i)

# One function for each kind, in the order of `kinds`. Cython rejects lists of a different length.
cdef Lister[<int> KINDS] _LISTED
_LISTED[:] = [list_flat, list_bits, list_lists, list_regular, list_texts, list_texts, list_texts, list_texts, list_records,
              list_categories, list_chunks, list_opaque]
cdef ElementAt[<int> KINDS] _ELEMENTS
_ELEMENTS[:] = [number_at, bit_value_at, row_at, row_at, text_at, text_at, text_at, text_at, record_at, category_at,
                element_in_chunk, opaque_value_at]
