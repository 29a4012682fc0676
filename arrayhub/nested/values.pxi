"""Values of a nested array: its elements, slices and fields, all elements as Python objects, and as one dense array."""

import numpy as np

cimport numpy as cnp
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_GetSlice
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from arrayhub._core.descriptor cimport COPIED, EXACT_TIMES, Descriptor, integer, reshape, shape_tuple
from arrayhub._core.tree cimport (
    BIT_PACKED,
    CHARACTERS,
    CHUNKS,
    ENDS,
    FIELDS,
    FOREIGN,
    INDICES,
    KINDS,
    LISTS,
    NUMBERS,
    UTF8,
    WIDTH,
    Tree,
    bit_at,
    check_again,
    check_tree,
    chunk_of,
    count_nulls,
    false_field_error,
    has,
    index_at,
    integer_at,
    is_missing,
    length_of,
    part_inside,
    part_of,
    wait_for,
)

from arrayhub._core.errors import Refusal, ValueRefusal, show
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import KIND_NAMES
from arrayhub.adapters.arrow import type_name
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested import logical_types


cdef object get_item(Tree t, object key):
    cdef Py_ssize_t i, start, stop, step
    if isinstance(key, str) and has(t, CHUNKS):
        return make_chunked([get_item(<Tree> chunk, key) for chunk in t.parts])
    if isinstance(key, str):
        if not has(t, FIELDS):
            instead = "; use x.children" if has(t, FOREIGN) and t.parts else ""
            raise KeyError(f"{key}: an array of kind {KIND_NAMES[t.kind]!r} does not have fields{instead}")
        if key not in t.names:
            raise KeyError(f"{key}: the record does not have this field; accepted: {', '.join(t.names)}")
        first = t.names.index(key)
        if key in t.names[first + 1 :]:
            missing = "" if t.validity is None else ", with x.validity for the missing records"
            raise KeyError(f"{key}: several fields have this name; accepted: the name of a single field. Use"
                           f" x.children[{first}]{missing}")
        field = t.parts[first]
        return field if t.validity is None or count_nulls(t) == 0 else cover_missing(field, t.validity, t.bit)
    if isinstance(key, slice):
        start, stop, step = key.indices(t.length)
        if step != 1:
            raise IndexError(f"slice with a step of {step}; accepted: 1. Use x.to_list()[...]")
        return part_of(t, start, max(start, stop))
    try:
        i = integer(key, "index")
    except TypeError:
        several = ". Use arrayhub.as_awkward(x, copy=None)[...]" if hasattr(type(key), "__len__") else ""
        raise TypeError(f"index is {show(key)} of type {type(key).__name__}; accepted: an integer, a slice or a field"
                        f" name{several}") from None
    except ValueError:      # beyond 64 bits
        raise range_error(t, key) from None
    if i < 0:
        i += t.length
    if i < 0 or i >= t.length:
        raise range_error(t, key)
    return element(t, i)


cpdef int check_names(Tree t, str call, str instead="arrayhub.as_arrow(x)", object error=ValueError) except -1:
    """Raise an error if two fields of a record have the same name, which a dict cannot represent.

    Parameters
    ----------
    t : NestedArray
        A record.
    call : str
        Call or protocol at the start of the message.
    instead : str
        Call that the message recommends.
    error : type
        Class of the error.
    """
    if len(frozenset(t.names)) != len(t.names):
        raise error(f"{call}: field names are {show(t.names)}; accepted: a different name for each field. Use {instead}")
    return 0


cdef object range_error(Tree t, object key):
    return IndexError(f"index {show(key)} is out of range for an array of {t.length} elements")


cdef object element(Tree t, Py_ssize_t i):
    cdef Py_ssize_t k
    if has(t, CHUNKS):
        k = chunk_of(t, i)
        return element(<Tree> t.parts[k], i - <Py_ssize_t> t.starts[k])
    if not has(t, NUMBERS) or t.validity is not None:
        check_tree(t)
    return None if is_missing(t, i) else _ELEMENTS[t.kind](t, i)


cdef object number_at(Tree t, Py_ssize_t i):
    return (<object> t.content)[i]


cdef object bit_value_at(Tree t, Py_ssize_t i):
    wait_for(<Descriptor> t.content, "content")
    return bool(bit_at(<const unsigned char*> (<Descriptor> t.content).data_, t.bit + i))


cdef object row_at(Tree t, Py_ssize_t i):
    cdef Py_ssize_t start = start_of_row(t, i)
    return part_inside(t, start, start + length_of_row(t, i), f"row {i}")


cdef object record_at(Tree t, Py_ssize_t i):
    check_names(t, f"x[{i}]")
    if is_tuple(t):
        return tuple([element_of(part, i) for part in t.parts])
    return {name: element_of(part, i) for name, part in zip(t.names, t.parts)}


cdef object category_at(Tree t, Py_ssize_t i):
    cdef Py_ssize_t index = index_at(t.indices, i), end = length_of(t.content)
    if index < 0 or index >= end:
        raise false_field_error(t, f"indices[{i}]", index, f"0 to {end - 1}, an index into the dictionary")
    return element_of(t.content, index)


cdef object opaque_value_at(Tree t, Py_ssize_t i):
    return hooks.nested.opaque.element(t, i)


cdef object element_of(object node, Py_ssize_t i):
    return element(<Tree> node, i) if isinstance(node, Tree) else node[i]


cdef object text_at(Tree t, Py_ssize_t i):
    """Return a string or bytes. `t` must have been validated, and the element must not be missing.

    The offsets or the view of the element are validated again, because the producer may have changed them.
    """
    cdef Characters characters = characters_of(t)
    cdef Text text
    if not find(&characters, i, &text):
        raise false_field_error(t, f"element {i} (offset, length)", (text.start, text.length), "characters within their buffer")
    cdef const char* first = text.buffer + text.start
    if not has(t, UTF8):
        return PyBytes_FromStringAndSize(first, text.length)
    try:
        return PyUnicode_DecodeUTF8(first, text.length, NULL)
    except UnicodeDecodeError as error:
        raise false_field_error(t, f"element {i}", PyBytes_FromStringAndSize(first, min(text.length, 80)),
                                f"UTF-8 ({error.reason} at byte {error.start})") from error


# ------------------------------------------------------------------------------------------------------ Python objects


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
                NULL, opaque_value_at]      # `element` calls the function of the chunk


# --------------------------------------------------------------------------------------------------------- dense arrays


cpdef object make_dense(object node, bint copy):
    """Return a node as one array. See `NestedArray.to_dense`."""
    cdef Tree t
    cdef Py_ssize_t width, k, start, size
    if not isinstance(node, Tree):
        return node
    t = <Tree> node
    if has(t, CHUNKS):
        return densified_chunks(t, copy)
    if has(t, INDICES):
        raise Refusal("to_dense", "the elements are categories", "x.indices, x.content or x.to_list()")
    if count_nulls(t):
        missing = f"element {int(valid_mask(t).argmin())} is missing"
        raise ValueRefusal("to_dense", missing, "the result of NestedArray.fill_null")
    if has(t, NUMBERS):
        return t.content if t.meaning is None else of_numpys_type(t, copy)
    if has(t, BIT_PACKED):
        if not copy:
            raise Refusal("to_dense", "eight booleans share a byte", call="x.to_dense(copy=True)")
        return unpack_bits(t)
    if has(t, WIDTH):
        dense = <Descriptor> make_dense(t.content, copy)
        return reshape(dense, (t.length, t.width) + shape_tuple(dense)[1:])
    if has(t, FIELDS):
        if not copy:
            raise Refusal(
                "to_dense", "the fields are separate arrays, which a copy stores as a matrix of rows by columns",
                call="x.to_dense(copy=True)",
            )
        dense = <Descriptor> hooks.nested.from_table(t)
        dense.flags_ |= COPIED
        return dense
    if has(t, FOREIGN):
        plain = hooks.nested.opaque.decode(t if copy else part_of(t, 0, 0), "to_dense")
        if not copy and t.length:
            raise Refusal("to_dense", f"the elements of {type_name(t.meaning)} are converted", call="x.to_dense(copy=True)")
        return make_dense(plain, copy)
    if has(t, CHARACTERS):
        elements = "strings" if has(t, UTF8) else "byte strings"
        raise Refusal("to_dense", f"the elements are {elements}", "numbers, booleans, dates and times", "x.to_list()")
    if isinstance(t.content, Tree) and has(<Tree> t.content, FIELDS) and any(
            [isinstance(field, Tree) and has(<Tree> field, CHARACTERS) for field in (<Tree> t.content).parts]):
        raise Refusal("to_dense", "the lists have records with strings", "records of numbers", "x.to_list()")
    check_again(t)
    width = length_of_row(t, 0) if t.length else 0
    start = start_of_row(t, 0) if t.length else 0
    for k in range(t.length):
        size = length_of_row(t, k)
        if size != width:
            raise ValueRefusal("to_dense", f"row {k} has {size} elements, and row 0 has {width}", "equal lengths",
                               "x.to_list()")
    dense = <Descriptor> make_dense(part_inside(t, start, start + width * t.length, "rows"), copy)
    return reshape(dense, (t.length, width) + shape_tuple(dense)[1:])


cdef object densified_chunks(Tree t, bint copy):
    """Return a chunked array as one array. Several chunks with elements are concatenated, which requires `copy`."""
    one = one_chunk(t)
    if one is not None:
        return make_dense(one, copy)
    if not copy:
        raise Refusal("to_dense", f"the array has {len(t.parts)} chunks", "one", "x.to_dense(copy=True)")
    dense = <Descriptor> make_dense(hooks.nested.concatenate([t]), True)
    dense.flags_ |= COPIED
    return dense


cdef object of_numpys_type(Tree t, bint copy):
    """Convert dates to NumPy's type. Raise BufferError for other Arrow logical types, which NumPy does not have."""
    if t.meaning == "tdm":      # date64, which is stored like datetime64[ms]
        return t.content
    if t.meaning != "tdD":
        raise Refusal(
            "to_dense", f"NumPy cannot represent elements of {type_name(t.meaning)}",
            "x.content, which holds the values without this type", "arrayhub.as_arrow(x)",
        )
    if not copy:
        raise Refusal("to_dense", "Arrow's date32 has 4 bytes, and NumPy's datetime64[D] has 8", call="x.to_dense(copy=True)")
    return asarray(as_numpy(t.content).astype("M8[D]"), copy=True)


cdef inline Py_ssize_t start_of_row(Tree t, Py_ssize_t k) noexcept:
    return k * t.width if has(t, WIDTH) else integer_at(t.offsets.data_, t.offsets.itemsize_, k)


cdef inline Py_ssize_t length_of_row(Tree t, Py_ssize_t k) noexcept:
    if has(t, WIDTH):
        return t.width
    return start_of_row(t, k + 1) - start_of_row(t, k)


def gather_rows(cnp.ndarray source not None, cnp.ndarray starts not None, cnp.ndarray sizes not None):
    """Return a copy of the rows ``source[starts[k] : starts[k] + sizes[k]]`` of a C-contiguous array, one after another.

    `starts` and `sizes` are C-contiguous arrays of int64. NumPy's own indexing requires an index for each element, which has
    eight times the size of a character.
    """
    cdef Py_ssize_t k, end = cnp.PyArray_DIM(source, 0), step = source.nbytes // end if end else 0
    cdef const int64_t* start = <const int64_t*> cnp.PyArray_DATA(starts)
    cdef const int64_t* size = <const int64_t*> cnp.PyArray_DATA(sizes)
    cdef const char* data = <const char*> cnp.PyArray_DATA(source)
    for k in range(cnp.PyArray_DIM(sizes, 0)):
        if size[k] < 0 or start[k] < 0 or start[k] > end - size[k]:
            raise IndexError(f"NestedArray: row {k} has {size[k]} elements from {start[k]} on, and the content has {end}")
    cdef cnp.ndarray made = np.empty((sizes.sum(), *(<object> source).shape[1:]), source.dtype)
    cdef char* target = <char*> cnp.PyArray_DATA(made)
    for k in range(cnp.PyArray_DIM(sizes, 0)):
        memcpy(target, data + start[k] * step, size[k] * step)
        target += size[k] * step
    return made
