"""Tree: struct of a node of a nested array, with slicing, missing values and bounds checks. Independent of protocols.

Tree is the base of NestedArray, as Descriptor is the base of USMArray. NestedArray adds methods and no fields. All nodes are
instances of NestedArray. `hooks` imports the class when the first node is created.

- kinds: the table of node kinds
"""

from bisect import bisect_right

cimport cython
from cpython.object cimport PyObject, PyTypeObject

from arrayhub._core cimport layout
from arrayhub._core.cpython.atomics cimport seen, set_once
from arrayhub._core.descriptor cimport IMMUTABLE, Descriptor, host_readable, seal, view_of
from arrayhub._core.runtime cimport host_ready, device_name

from arrayhub._core.errors import interface_error, unreadable
from arrayhub._core.hooks import hooks

include "kinds.pxi"

cdef extern from *:
    """
    #define arrayhub_node(base, type, no_arguments) ((base)->tp_new(type, no_arguments, NULL))

    /* GCC vectorizes loops of unknown length only from -O3 on, clang from -O2 on. */
    #if defined(__GNUC__) && !defined(__clang__)
    /* A loop that crosses a cache line takes up to 1.7 times as long. */
    #define ARRAYHUB_VECTORIZED __attribute__((optimize("O3", "align-loops=32")))
    #else
    #define ARRAYHUB_VECTORIZED
    #endif

    /* Count the bits that are set, one word at a time. */
    static Py_ssize_t arrayhub_count_bits(const unsigned char *bits, Py_ssize_t first, Py_ssize_t n) {
        Py_ssize_t count = 0, k = first, end = first + n;
        for (; k < end && (k & 7); k++) count += bits[k >> 3] >> (k & 7) & 1;
        for (; k + 64 <= end; k += 64) {
            unsigned long long word;
            memcpy(&word, bits + (k >> 3), 8);
            word -= (word >> 1) & 0x5555555555555555ULL;
            word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
            word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
            count += (Py_ssize_t)((word * 0x0101010101010101ULL) >> 56);
        }
        for (; k < end; k++) count += bits[k >> 3] >> (k & 7) & 1;
        return count;
    }
    /* Return whether n + 1 offsets never decrease, in one pass that compilers vectorize. */
    #define ARRAYHUB_NEVER_FALL(name, type)                                                                            \
        ARRAYHUB_VECTORIZED static int name(const char *data, Py_ssize_t n) {                                          \
            int falls = 0;                                                                                             \
            for (Py_ssize_t k = 0; k < n; k++) {                                                                       \
                type here, next;                                                                                       \
                memcpy(&here, data + k * sizeof(type), sizeof(type));                                                  \
                memcpy(&next, data + (k + 1) * sizeof(type), sizeof(type));                                            \
                falls |= next < here;                                                                                  \
            }                                                                                                          \
            return !falls;                                                                                             \
        }
    ARRAYHUB_NEVER_FALL(arrayhub_never_fall_32, int)
    ARRAYHUB_NEVER_FALL(arrayhub_never_fall_64, long long)
    /* Return whether n integers are from 0 to `end` - 1. The integers are read as unsigned, so negative values are large. */
    #define ARRAYHUB_BELOW(type)                                                                                       \
        {                                                                                                              \
            type most = 0, value;                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) {                                                                       \
                memcpy(&value, data + k * sizeof(type), sizeof(type));                                                 \
                most = value > most ? value : most;                                                                    \
            }                                                                                                          \
            return n == 0 || (most < end && !(is_signed && most > (type)~(type)0 / 2));                                \
        }
    ARRAYHUB_VECTORIZED
    static int arrayhub_all_below(const char *data, Py_ssize_t n, int size, int is_signed, unsigned long long end) {
        switch (size) {
        case 1: ARRAYHUB_BELOW(unsigned char)
        case 2: ARRAYHUB_BELOW(unsigned short)
        case 4: ARRAYHUB_BELOW(unsigned int)
        default: ARRAYHUB_BELOW(unsigned long long)
        }
    }
    """
    bint arrayhub_all_below(const char* data, Py_ssize_t n, int size, bint is_signed, Py_ssize_t end) noexcept nogil
    Py_ssize_t arrayhub_count_bits(const uint8_t* bits, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    bint arrayhub_never_fall_32(const char* data, Py_ssize_t n) noexcept nogil
    bint arrayhub_never_fall_64(const char* data, Py_ssize_t n) noexcept nogil
    object arrayhub_node(PyTypeObject* base, PyTypeObject* cls, tuple no_arguments)

cdef PyObject* _tree_class = NULL
cdef tuple _NO_ARGUMENTS = ()


# A node is created after the objects that it refers to, so the garbage collector does not have to clear nodes to break cycles.
# Without clearing, no code can see a node without its children.
@cython.no_gc_clear
cdef class Tree:
    """Immutable struct of a node. arrayhub.NestedArray adds all Python methods and attributes."""

    def __cinit__(self):
        if type(self) is Tree:
            raise TypeError("Tree: cannot be instantiated; use arrayhub.asnested")


cdef Tree new_tree(int kind, Py_ssize_t length):
    """Create a node without children and without missing values."""
    cdef PyObject* tree_class = seen(&_tree_class)
    if tree_class == NULL:
        tree_class = set_once(&_tree_class, NULL, hooks.nested_array.NestedArray)
    cdef Tree t = <Tree> arrayhub_node(<PyTypeObject*> Tree, <PyTypeObject*> tree_class, _NO_ARGUMENTS)
    t.kind = kind
    t.length = length
    return t


cdef Tree new_chunked(tuple chunks):
    """Create a node that is the concatenation of one or more Trees. All Trees must have the same Arrow type.

    Raise OverflowError if the lengths add up to 2**63 or more. Records without fields, which do not need memory, can do so.
    """
    cdef Py_ssize_t total = 0
    cdef list starts = []
    for chunk in chunks:
        starts.append(total)
        if layout.checked_add(total, (<Tree> chunk).length, &total):
            raise OverflowError("asnested: the chunks have 2**63 elements or more in total; use them one by one")
    cdef Tree t = new_tree(CHUNKED, total)
    t.parts = chunks
    t.starts = tuple(starts)
    t.nulls = UNCOUNTED
    return t


cdef Py_ssize_t chunk_of(Tree t, Py_ssize_t i) except -1:
    """Return the index of the chunk that contains element `i`, which must be in bounds."""
    return bisect_right(t.starts, i) - 1


cdef Tree flat(object array):
    """Return a node of kind FLAT whose content is `array`. No element is missing."""
    cdef Tree t = new_tree(FLAT, length_of(array))
    t.content = array
    return t


cdef Tree same_node(Tree t):
    """Return a new node with the attributes of `t`, which must not be chunked."""
    cdef Tree same = new_tree(t.kind, t.length)
    same.checked, same.width, same.nulls, same.bit = t.checked, t.width, t.nulls, t.bit
    same.validity, same.offsets, same.buffers, same.indices = t.validity, t.offsets, t.buffers, t.indices
    same.skip, same.field, same.child_fields, same.name = t.skip, t.field, t.child_fields, t.name
    same.content, same.parts, same.names, same.meaning = t.content, t.parts, t.names, t.meaning
    return same


cdef Py_ssize_t length_of(object node) except -1:
    """Return the number of elements of a Tree, or the length of the first dimension of a Descriptor."""
    if isinstance(node, Tree):
        return (<Tree> node).length
    return (<Descriptor> node).shape_[0]


cdef Descriptor first_array(object node):
    """Return one of the arrays of a node, preferably one that contains elements, or None if the node does not have arrays.

    An array of Arrow's type null does not have arrays, and neither does a record without fields and without a bitmap.

    The result represents the device of the node, because all arrays of a node are on one device.
    """
    cdef Tree t
    cdef Descriptor found
    if not isinstance(node, Tree):
        return <Descriptor> node
    t = <Tree> node
    if t.content is not None:
        found = first_array(t.content)
        if found is not None:
            return found
    if has(t, FIELDS | FOREIGN | CHUNKS):
        for part in t.parts:
            found = first_array(part)
            if found is not None:
                return found
    if t.buffers:
        return <Descriptor> t.buffers[0]
    if t.offsets is not None:
        return t.offsets
    return t.indices if t.indices is not None else t.validity


cdef int visit_arrays(object node, Visit visit, void* argument) except -1:
    """Call `visit` with each array of a node and of the nodes below."""
    cdef Tree t
    if not isinstance(node, Tree):
        return visit(<Descriptor> node, argument)
    t = <Tree> node
    if t.validity is not None:
        visit(t.validity, argument)
    if t.offsets is not None:
        visit(t.offsets, argument)
    if t.indices is not None:
        visit(t.indices, argument)
    if t.buffers is not None:
        for buffer in t.buffers:
            visit(<Descriptor> buffer, argument)
    if t.content is not None:
        visit_arrays(t.content, visit, argument)
    if t.parts is not None:
        for part in t.parts:
            visit_arrays(part, visit, argument)
    return 0


# ------------------------------------------------------------------------------------------------------------- parts


cdef Descriptor bytes_part(Descriptor a, Py_ssize_t start, Py_ssize_t stop):
    """Return the view ``a[start:stop]``, or `a` itself for the full range. Both indices must be in bounds."""
    cdef int k
    if start == 0 and stop == a.shape_[0]:
        return a
    cdef Descriptor view = view_of(a, a.nd_)
    for k in range(a.nd_):
        view.shape_[k] = a.shape_[k]
        view.byte_strides_[k] = a.byte_strides_[k]
    view.shape_[0] = stop - start
    view.data_ += start * a.byte_strides_[0]
    seal(view)
    return view


cdef object part_of(object node, Py_ssize_t start, Py_ssize_t stop):
    """Return the view ``node[start:stop]``, or `node` itself for the full range. Both indices must be in bounds."""
    cdef Tree t, part
    if not isinstance(node, Tree):
        return bytes_part(<Descriptor> node, start, stop)
    t = <Tree> node
    if start == 0 and stop == t.length:
        return t
    if has(t, CHUNKS):
        return chunks_between(t, start, stop)
    part = same_node(t)
    part.length = stop - start
    part.nulls = 0 if t.nulls == 0 else part.length if t.validity is None else UNCOUNTED
    part.bit += start
    if t.offsets is not None:
        part.offsets = bytes_part(t.offsets, start, stop + 1)
    if t.indices is not None:
        part.indices = bytes_part(t.indices, start, stop)
    if t.buffers is not None:
        part.buffers = tuple([bytes_part(buffer, start, stop) for buffer in t.buffers])
    if has(t, FOREIGN) and t.meaning == "+r":
        part.skip += start
    if has(t, NUMBERS | VIEWS):
        part.content = bytes_part(<Descriptor> t.content, start, stop)
    elif has(t, WIDTH):
        part.content = part_of(t.content, start * t.width, stop * t.width)
    elif is_sliced_with(t):
        part.parts = tuple([part_of(field, start, stop) for field in t.parts])
    return drop_whole_bytes(part)


cdef bint is_sliced_with(Tree t) noexcept:
    """Return whether each part has one element for each element of the node, as in records and sparse unions."""
    return has(t, FIELDS) or (has(t, FOREIGN) and t.meaning.startswith("+us:"))


cdef Tree chunks_between(Tree t, Py_ssize_t start, Py_ssize_t stop):
    """Return the view ``t[start:stop]`` of a chunked node. The result has at least one chunk, which defines the type."""
    cdef Py_ssize_t k, first = chunk_of(t, start), last = chunk_of(t, max(start, stop - 1)), begin
    cdef list chunks = []
    for k in range(first, last + 1):
        begin = t.starts[k]
        length = (<Tree> t.parts[k]).length
        chunks.append(part_of(t.parts[k], min(max(start - begin, 0), length), min(max(stop - begin, 0), length)))
    return new_chunked(tuple(chunks))


cdef Tree drop_whole_bytes(Tree t):
    """Drop whole bytes before the first bit of bit-packed arrays, so that ``t.bit`` is less than 8, and return `t`."""
    cdef Py_ssize_t first_byte = t.bit >> 3
    if t.validity is None and not has(t, BIT_PACKED):
        t.bit = 0
    if t.bit == 0:
        return t
    t.bit &= 7
    cdef Py_ssize_t nbytes = (t.bit + t.length + 7) >> 3
    if t.validity is not None:
        t.validity = bytes_part(t.validity, first_byte, first_byte + nbytes)
    if has(t, BIT_PACKED):
        t.content = bytes_part(<Descriptor> t.content, first_byte, first_byte + nbytes)
    return t


# ------------------------------------------------------------------------------------------- validation of buffers


cdef int wait_for(Descriptor a, str what) except -1:
    """Wait until the host may read `a`."""
    if not host_readable(a):
        raise BufferError(unreadable(f"NestedArray {what}", device_name(a), call="call x.to_host()"))
    return host_ready(a)


cdef Py_ssize_t count_nulls(Tree t) except -1:
    """Return the number of missing elements. Count them on first use."""
    cdef Py_ssize_t total = 0
    if has(t, CHUNKS):
        if t.nulls == UNCOUNTED:
            for chunk in t.parts:
                total += count_nulls(<Tree> chunk)
            t.nulls = total
        return t.nulls
    if t.validity is None:
        return max(t.nulls, 0)
    if t.nulls == UNCOUNTED:
        wait_for(t.validity, "validity")
        t.nulls = t.length - arrayhub_count_bits(<const uint8_t*> t.validity.data_, t.bit, t.length)
    return t.nulls


cdef int check_tree(Tree t) except -1:
    """Validate that the offsets, views and indices of a node, or those in the buffers of an opaque node, are within bounds.

    A node that was validated before is not validated again, except a chunked node: `check_again` is called for its chunks.

    Raises
    ------
    InterfaceError
        A value is out of bounds. The message names the field, the element and the value.
    BufferError
        The host cannot read the memory.
    """
    if has(t, CHUNKS):       # `checked` of a chunked node means that its chunks have one type, see `adapters/arrow/export`
        for chunk in t.parts:
            check_again(<Tree> chunk)
        return 0
    if t.checked:
        return 0
    for array in arrays_to_check(t):
        if array is not None:
            wait_for(<Descriptor> array, "buffers")
    if has(t, ENDS):
        check_offsets(t)
    elif has(t, VIEWS):
        check_views(t)
    elif has(t, INDICES):
        check_indices(t)
    elif has(t, FOREIGN):
        if t.meaning.startswith("+v"):
            check_list_views(t)
        elif t.meaning.startswith("+u"):
            check_types(t)
        elif t.meaning == "+r":
            check_runs(t)
    t.checked = True
    return 0


cdef list arrays_to_check(Tree t):
    """Return the arrays that `check_tree` reads for a node."""
    cdef list arrays = [t.validity, t.offsets, t.indices, views_of(t)]
    if has(t, VIEWS):
        arrays.extend(t.parts)
    elif has(t, FOREIGN):
        arrays.extend(t.buffers)
        if t.meaning == "+r":
            arrays.append(t.parts[0])
    return arrays


cdef int check_again(Tree t) except -1:
    """Validate a node as `check_tree` does, even if it was validated before, unless the memory is immutable.

    Call this function before code that does not check indices reads the node.
    """
    if may_change(t.validity) or may_change(t.offsets) or may_change(t.indices) or may_change(views_of(t)):
        t.checked = False
    for buffer in t.buffers or ():
        t.checked = t.checked and not may_change(<Descriptor> buffer)
    return check_tree(t)


cdef int check_below(object node) except -1:
    """Call `check_again` for a node and all nodes below, except nodes whose buffers the host cannot read."""
    if not isinstance(node, Tree):
        return 0
    cdef Tree t = <Tree> node
    if not has(t, CHUNKS) and is_followed_on_host(t):
        check_again(t)
    check_below(t.content)
    if has(t, FIELDS | FOREIGN | CHUNKS):
        for part in t.parts:
            check_below(part)
    return 0


cdef inline Descriptor views_of(Tree t):
    return <Descriptor> t.content if has(t, VIEWS) else None


cdef inline bint may_change(Descriptor a) noexcept:
    return a is not None and not a.flags_ & IMMUTABLE


cdef inline bint is_readable(Descriptor a) noexcept:
    return a is None or host_readable(a)


cdef bint is_followed_on_host(Tree t) noexcept:
    """Return whether the host can read all memory that `check_tree` reads for a node."""
    if not (is_readable(t.validity) and is_readable(t.offsets) and is_readable(t.indices)):
        return False
    for buffer in t.parts if has(t, VIEWS) else t.buffers or ():
        if not host_readable(<Descriptor> buffer):
            return False
    if has(t, FOREIGN) and t.meaning == "+r":
        return is_readable(t.parts[0])
    return is_readable(views_of(t))


cdef object part_inside(Tree t, Py_ssize_t start, Py_ssize_t stop, str field):
    """Return ``content[start:stop]`` of a node. Check the bounds, because offsets may have changed since their validation."""
    if start < 0 or stop < start or stop > length_of(t.content):
        raise false_field_error(t, field, (start, stop), f"a range within the content's {length_of(t.content)} elements")
    return part_of(t.content, start, stop)


cdef object false_field_error(Tree t, str field, object value, str accepted):
    """Return the error about a field of a node."""
    name = repr(t.meaning) if has(t, FOREIGN) else NODE_KINDS[t.kind].name.decode()
    return interface_error("Arrow", f"{name} array's {field}", value, accepted)


cdef int check_offsets(Tree t) except -1:
    cdef Py_ssize_t k, last, first, size = t.offsets.itemsize_, end = length_of(t.content)
    if t.offsets.shape_[0] == 0:      # the offsets of a node without elements may be empty
        return 0
    cdef const char* data = t.offsets.data_
    if not (arrayhub_never_fall_32(data, t.length) if size == 4 else arrayhub_never_fall_64(data, t.length)):
        for k in range(t.length):
            if integer_at(data, size, k + 1) < integer_at(data, size, k):
                raise false_field_error(t, f"offsets[{k + 1}]", integer_at(data, size, k + 1),
                                        f"{integer_at(data, size, k)} or more, because offsets must not decrease")
    first = integer_at(data, size, 0)
    last = integer_at(data, size, t.length)
    if first < 0 or last > end:
        raise false_field_error(t, f"offsets[{0 if first < 0 else t.length}]", first if first < 0 else last,
                                f"0 to {end}, the length of the content")
    return 0


cdef int check_views(Tree t) except -1:
    """Validate string views.

    The view of a string of up to 12 bytes consists of the length and the string. The view of a longer string consists of the
    length, the first 4 bytes, the index of a buffer, and the offset in this buffer.
    """
    cdef Descriptor views = <Descriptor> t.content
    cdef Descriptor buffer
    cdef int32_t view[4]
    cdef Py_ssize_t k
    for k in range(t.length):
        memcpy(view, views.data_ + VIEW_BYTES * k, VIEW_BYTES)
        if 0 <= view[0] <= INLINE_VIEW or is_missing(t, k):
            continue
        if view[0] < 0:
            raise false_field_error(t, f"views[{k}].length", view[0], "0 or more bytes")
        if view[2] < 0 or view[2] >= len(t.parts):
            raise false_field_error(t, f"views[{k}].buffer", view[2], f"the index of one of the {len(t.parts)} buffers")
        buffer = <Descriptor> t.parts[view[2]]
        if view[3] < 0 or <Py_ssize_t> view[3] + view[0] > buffer.shape_[0]:
            raise false_field_error(t, f"views[{k}] (offset, length)", (view[3], view[0]),
                                    f"a range within the {buffer.shape_[0]} bytes of buffer {view[2]}")
    return 0


cdef int check_indices(Tree t) except -1:
    cdef Py_ssize_t k, index, end = length_of(t.content)
    if arrayhub_all_below(t.indices.data_, t.length, t.indices.itemsize_, t.indices.dl_dtype_.code == 0, end):
        return 0
    for k in range(t.length):      # the index of a missing element may have any value
        index = index_at(t.indices, k)
        if (index < 0 or index >= end) and not is_missing(t, k):
            raise false_field_error(t, f"indices[{k}]", index, f"0 to {end - 1}, the elements of the dictionary")
    return 0


cdef int check_list_views(Tree t) except -1:
    """Validate the offsets and sizes of list views."""
    cdef Py_ssize_t k, start, size, end = length_of(t.parts[0])
    cdef Descriptor starts, sizes
    starts, sizes = t.buffers
    for k in range(t.length):
        start = integer_at(starts.data_, starts.itemsize_, k)
        size = integer_at(sizes.data_, sizes.itemsize_, k)
        if start < 0 or size < 0 or start > end or size > end - start:
            raise false_field_error(t, f"(offsets[{k}], sizes[{k}])", (start, size),
                                    f"nonnegative integers whose sum is at most {end}, the length of the content")
    return 0


def union_codes(str text not None, Py_ssize_t count):
    """Return the type code of each of `count` children of a union with a format such as ``+ud:0,5``."""
    cdef list codes = text[4:].split(",") if text[4:] else []
    if len(codes) != count:
        raise interface_error("Arrow", "format", text, f"a type code for each of the {count} children")
    if not all([code.isascii() and code.isdigit() and len(code) <= 3 and int(code) <= 127 for code in codes]) \
            or len(set(map(int, codes))) != count:
        raise interface_error("Arrow", "format", text, "type codes from 0 to 127, each once")
    return list(map(int, codes))


cdef int check_types(Tree t) except -1:
    """Validate the type codes of a union, and the offsets of a dense union."""
    cdef Py_ssize_t[128] lengths
    cdef Py_ssize_t k, offset
    cdef int code
    cdef Descriptor codes = <Descriptor> t.buffers[0], offsets = None
    if not is_sliced_with(t):
        offsets = <Descriptor> t.buffers[1]
    for k in range(128):
        lengths[k] = -1
    for known, child in zip(union_codes(t.meaning, len(t.parts)), t.parts):
        lengths[<int> known] = length_of(child)
    for k in range(t.length):
        code = (<signed char*> codes.data_)[k]
        if code < 0 or lengths[code] < 0:
            raise false_field_error(t, f"type_codes[{k}]", code, f"one of the codes in {t.meaning}")
        if offsets is not None:
            offset = integer_at(offsets.data_, offsets.itemsize_, k)
            if offset < 0 or offset >= lengths[code]:
                raise false_field_error(t, f"offsets[{k}]", offset,
                                        f"0 to {lengths[code] - 1}, within the child with type code {code}")
    return 0


cdef int check_runs(Tree t) except -1:
    """Validate that each run has a value, that run ends increase, and that the last run reaches the last element."""
    cdef Descriptor ends = <Descriptor> t.parts[0]
    cdef Py_ssize_t k, end, last = 0, runs = ends.shape_[0]
    if length_of(t.parts[1]) < runs:
        raise false_field_error(t, "values", f"{length_of(t.parts[1])} elements", f"{runs} or more, one for each run")
    for k in range(runs):
        end = index_at(ends, k)
        if end <= last:
            raise false_field_error(t, f"run_ends[{k}]", end, f"more than {last}, because run ends must increase")
        last = end
    if t.length and (t.skip > last or t.length > last - t.skip):
        raise false_field_error(t, f"run_ends[{runs - 1}]", last, f"{t.skip + t.length} or more, for the last element")
    return 0


cdef Py_ssize_t index_at(Descriptor a, Py_ssize_t i) noexcept nogil:
    """Return an integer of any size, or a negative number for a uint64 that exceeds int64."""
    cdef int64_t value = 0
    cdef Py_ssize_t bits = 64 - 8 * a.itemsize_
    memcpy(&value, a.data_ + i * a.itemsize_, a.itemsize_)      # little-endian, like Arrow on all supported platforms
    if a.dl_dtype_.code == 0 and bits:      # signed: extend the sign
        value = (<int64_t> (<unsigned long long> value << bits)) >> bits
    return value
