"""Convert lists of equal lengths, and records, to one dense array with an additional dimension."""

from arrayhub._core.errors import Refusal, ValueRefusal
from arrayhub._core.descriptor cimport COPIED, Descriptor, reshape, shape_tuple
from arrayhub._core.tree cimport (
    BIT_PACKED,
    CHARACTERS,
    CHUNKS,
    FIELDS,
    FOREIGN,
    INDICES,
    NUMBERS,
    UTF8,
    WIDTH,
    Tree,
    check_again,
    count_nulls,
    has,
    integer_at,
    part_inside,
    part_of,
)

from arrayhub._core.hooks import hooks
from arrayhub.adapters.arrow import type_name
from arrayhub.convert.functions import as_numpy, asarray


def densified_with(node, copy):
    """Call `densified` with the arguments that `view_or_copy` passes."""
    return make_dense(node, bool(copy))


cdef object make_dense(object node, bint copy):
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
        raise ValueRefusal("to_dense", f"element {int(valid_mask(t).argmin())} is missing",
                           "arrays without missing values, such as x.fill_null(value)")
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
        dense = <Descriptor> hooks.nested.from_record(t)
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
