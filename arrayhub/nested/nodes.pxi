"""Construction of nodes from arrays and from other nodes, and bitmaps.

Bitmaps of booleans or of validity have eight bits per byte, least significant bit first.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t, uint64_t

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    EXACT_TIMES,
    IMMUTABLE,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    host_readable,
    same_layout,
    seal,
    view_of,
)
from arrayhub._core.tree cimport (
    BIT_PACKED,
    CHARACTERS,
    CHUNKS,
    FOREIGN,
    ENDS,
    NUMBERS,
    UNCOUNTED,
    VIEWS,
    WIDTH,
    Tree,
    check_again,
    count_nulls,
    flat,
    has,
    is_sliced_with,
    length_of,
    new_chunked,
    new_tree,
    part_of,
    same_node,
    visit_arrays,
    wait_for,
)
from arrayhub.adapters cimport arrow

from arrayhub._core.copying import forbidden
from arrayhub._core.errors import PACKED_ELEMENTS, Refusal, show
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import KIND_NAMES
from arrayhub.adapters.arrow import layout_of
from arrayhub.convert.functions import as_numpy, asarray

cdef extern from *:
    """
    /* Copy n + 1 int32 offsets to int64, and return whether they start at 0 or more and never decrease. */
    #if defined(__GNUC__) && !defined(__clang__)
    __attribute__((optimize("O3")))     /* GCC vectorizes loops of unknown length only with -O3, and clang also with -O2 */
    #endif
    static int arrayhub_widen(const char *restrict data, Py_ssize_t n, int64_t *restrict wide) {
        int here, next, falls;
        memcpy(&here, data, 4);
        falls = here < 0;
        for (Py_ssize_t k = 0; k < n; k++) {
            memcpy(&here, data + 4 * k, 4);
            memcpy(&next, data + 4 * k + 4, 4);
            falls |= next < here;
            wide[k] = (uint32_t)here;      /* valid offsets have no sign, and SSE2 cannot extend signs in one instruction */
        }
        memcpy(&here, data + 4 * n, 4);
        wide[n] = here;
        return !falls;
    }

    /* Copy n elements whose bit is 1, and replace the others by *value. With a constant size, the compiler inlines memcpy. */
    static inline void arrayhub_fill_sized(
            char *out, const char *data, const uint8_t *bits, size_t bit, size_t n, size_t size, const char *value) {
        for (size_t k = 0; k < n;) {
            size_t rest = 8 - bit % 8, count = n - k < rest ? n - k : rest;
            unsigned valid = bits[bit / 8] >> bit % 8;
            if (valid == 0xff && count == 8)
                memcpy(out + k * size, data + k * size, 8 * size);
            else
                for (size_t j = k; j < k + count; j++, valid >>= 1)
                    memcpy(out + j * size, valid & 1 ? data + j * size : value, size);
            k += count;
            bit += count;
        }
    }
    static void arrayhub_fill(
            char *out, const char *data, const uint8_t *bits, size_t bit, size_t n, size_t size, const char *value) {
        switch (size) {
            case 1: arrayhub_fill_sized(out, data, bits, bit, n, 1, value); break;
            case 2: arrayhub_fill_sized(out, data, bits, bit, n, 2, value); break;
            case 4: arrayhub_fill_sized(out, data, bits, bit, n, 4, value); break;
            case 8: arrayhub_fill_sized(out, data, bits, bit, n, 8, value); break;
            default: arrayhub_fill_sized(out, data, bits, bit, n, size, value);
        }
    }
    """
    bint arrayhub_widen(const char* data, Py_ssize_t n, int64_t* wide) noexcept nogil
    void arrayhub_fill(
        char* out, const char* data, const uint8_t* bits, size_t bit, size_t n, size_t size, const char* value) noexcept nogil


def nested_of(node):
    """Return a NestedArray unchanged, and a USMArray of one or more dimensions as a flat node."""
    return <Tree> node if isinstance(checked_node(node), Tree) else flat(node)


cdef object checked_node(object node):
    """Return `node` if it is a node or an array of one or more dimensions, else raise TypeError."""
    if not isinstance(node, Tree) and (not isinstance(node, Descriptor) or (<Descriptor> node).nd_ < 1):
        raise TypeError(f"NestedArray: {show(node)} is neither a NestedArray nor a USMArray of one or more dimensions")
    if isinstance(node, Descriptor) and (<Descriptor> node).flags_ & PACKED:      # which do not have byte strides
        raise Refusal("asnested", PACKED_ELEMENTS)
    return node


def make_chunked(nodes, /):
    """Return one array that consists of the chunks of the given arrays, or the chunk itself if there is only one."""
    cdef list chunks = []
    for node in nodes:
        chunks.extend((<NestedArray> nested_of(node)).chunks)
    return chunks[0] if len(chunks) == 1 else new_chunked(tuple(chunks))


def one_chunk(Tree t not None):
    """Return an unchunked node itself. For a chunked node, return the only chunk that has elements.

    If no chunk has elements, return the first chunk. If several chunks have elements, return None.
    """
    if not has(t, CHUNKS):
        return t
    cdef list full = [chunk for chunk in t.parts if (<Tree> chunk).length]
    return None if len(full) > 1 else full[0] if full else t.parts[0]


def array_like(values, *sources):
    """Import an ndarray whose elements were copied from `sources`.

    The smallest integer is a time if it is one in a source. It is NaT if a source without such times contains NaT.
    """
    cdef Descriptor a = asarray(values), source
    cdef bint exact = any([(<Descriptor> source).flags_ & EXACT_TIMES for source in sources])
    for source in sources if exact else ():
        if arrow.may_be_nat(source) and np.isnat(np.asarray(source)).any():
            return a
    a.flags_ |= EXACT_TIMES if exact else 0
    return a


def make(str kind, Py_ssize_t length, *, content=None, Descriptor offsets=None, Descriptor indices=None,
         Descriptor validity=None, Py_ssize_t bit=0, mask=None, tuple buffers=None, tuple parts=None, tuple names=None,
         Py_ssize_t width=0, Py_ssize_t skip=0, str meaning=None, tuple field=None, tuple child_fields=None, name=None,
         copy=False):
    """Create a node from its parts. Offsets, indices, views, and the buffers of an opaque node are validated on first use.

    Offsets, indices, views, bitmaps and the buffers of an opaque node are read-only in the node. These arrays, characters and
    packed booleans are copied if they are not contiguous. For VIEW, BufferError is raised instead.

    `mask` is an ndarray of bools in place of `validity`, and False for missing elements. Its bitmap starts at bit 0.

    A validity bitmap with a nonzero bit offset is copied to a byte boundary, if the host can read the bitmap. The reason is
    that an Arrow array has one offset for all of its buffers, and the other buffers of a node start at element 0. The bitmap
    of packed booleans is not copied, because `bit` applies to the booleans, too.
    """
    cdef Tree t = new_tree(KIND_NAMES.index(kind), length)
    if has(t, CHUNKS):
        return new_chunked(tuple([one_array(nested_of(part)) for part in parts]))
    for part in (content, *(parts or ())):
        one_array(part)
    t.content = content
    t.parts = parts
    if has(t, BIT_PACKED | CHARACTERS):
        t.content = without_gaps(content, "characters", copy)
        t.parts = None if parts is None else tuple([without_gaps(buffer, "characters", copy) for buffer in parts])
    if has(t, VIEWS):
        t.content = never_written(t.content)
    if mask is not None and not mask.all():
        validity = bitmap_of(mask)
    validity = without_gaps(validity, "validity", copy)
    t.offsets = never_written(of_offsets(without_gaps(offsets, "offsets", copy)))
    t.skip = skip
    t.field = field
    t.child_fields = child_fields
    t.name = name
    t.indices = never_written(without_gaps(indices, "indices", copy))
    t.validity = never_written(validity)
    t.bit = bit
    t.names = names
    t.width = width
    t.meaning = meaning
    t.nulls = 0 if validity is None else UNCOUNTED
    if has(t, FOREIGN):
        t.buffers = tuple([never_written(without_gaps(buffer, "buffers", copy)) for buffer in buffers or ()])
        t.parts, t.names = parts or (), names or ()
        check_layout(t)
    if validity is not None:
        check_bits(validity, bit, length)
    if has(t, BIT_PACKED):
        check_bits(<Descriptor> t.content, bit, length)
    if not has(t, BIT_PACKED):
        align_bitmap(t)
    return t


cdef int check_layout(Tree t) except -1:
    """Raise ValueError unless the buffers and children of an opaque node have the sizes that its format requires."""
    bitmap, sizes, children = layout_of(t.meaning or "")
    made = [buffer.itemsize for buffer in t.buffers if buffer.ndim == 1 and len(buffer) == t.length]
    if len(t.buffers) != len(sizes) or made != list(sizes) or (t.validity is not None and not bitmap):
        raise ValueError(f"NestedArray: buffers of {t.meaning!r} are {t.buffers}; accepted: {t.length} items of {sizes} bytes")
    lengths = [length_of(checked_node(one_array(part))) for part in t.parts]
    if children not in (None, len(lengths)) or len(t.names) != len(lengths) \
            or (is_sliced_with(t) and any([length < t.length for length in lengths])):
        raise ValueError(f"NestedArray: children of {t.meaning!r} have lengths {lengths}; accepted: {children} children")
    if t.meaning == "+r" and not (isinstance(t.parts[0], Descriptor) and t.parts[0].dtype in ("i2", "i4", "i8")
                                  and t.parts[0].ndim == 1 and 0 <= t.skip <= 2**62):
        raise ValueError(f"NestedArray: run_ends are {t.parts[0]!r}; accepted: int16, int32 or int64 in one dimension")
    t.nulls = t.length if t.meaning == "n" else t.nulls
    return 0


cdef int align_bitmap(Tree t) except -1:
    """Copy a validity bitmap with a nonzero bit offset to a byte boundary, if the host can read the bitmap."""
    if t.bit and t.validity is not None and host_readable(t.validity):
        t.validity = never_written(bitmap_of(unpack_bitmap(t.validity, t.bit, t.length)))
        t.bit = 0
    return 0


cdef object one_array(object node):
    """Return `node`. Raise TypeError if `node` is chunked, because only the outermost node may be chunked."""
    if isinstance(node, Tree) and has(<Tree> node, CHUNKS):
        raise TypeError("NestedArray: a part of the array has chunks; accepted: chunks only of the array itself. Pass copy=True"
                        " to asnested, which concatenates them")
    return node


def facts_of(Tree t not None):
    """Return the arguments of `make`, except the kind and the length, that make the same node. Defaults are omitted."""
    if has(t, CHUNKS):
        return {"parts": t.parts}
    facts = {
        "content": t.content, "offsets": t.offsets, "indices": t.indices, "validity": t.validity, "bit": t.bit or None,
        "buffers": t.buffers, "parts": t.parts, "names": t.names, "width": t.width if has(t, WIDTH) else None,
        "skip": t.skip or None, "meaning": t.meaning, **field_facts(t),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def field_facts(Tree t):
    """Return the arguments of `make` for the column name, and for Arrow's flags and metadata of a node and its children."""
    return {"field": t.field, "child_fields": t.child_fields, "name": t.name}


def column_name(NestedArray t not None):
    """Return the name of the Series or schema that an array was imported from, or None."""
    return t.first_chunk().name


def rename_column(Tree t not None, name):
    """Return an array with the column name `name` that shares the memory of `t`."""
    if has(t, CHUNKS):
        return new_chunked(tuple([rename_column(chunk, name) for chunk in t.parts]))
    cdef Tree same = same_node(t)
    same.name = name
    return same


def without_gaps(Descriptor a or None, str what, copy=False):
    """Return `a` if it is C-contiguous, else a copy. Raise BufferError instead of copying for VIEW."""
    if a is None or a.flags_ & C_CONTIGUOUS:
        return a
    forbidden(copy, "asnested", f"{what} with byte strides {a.byte_strides} need a copy")
    return (<object> a).copy()


cdef int _SIGNED = 0     # DLPack's code of signed integers (kDLInt)


cdef Descriptor of_offsets(Descriptor a):
    """Return `a` if it is None or a 1-d array of int32 or int64 in native byte order, else raise TypeError."""
    if a is not None and (a.nd_ != 1 or a.dl_dtype_.code != _SIGNED or a.itemsize_ not in (4, 8) or not a.flags_ & NOTSWAPPED):
        raise TypeError(f"asnested: offsets are {a!r}; accepted: 1 dimension, and int32 or int64 in native byte order")
    return a


cdef Descriptor never_written(Descriptor a):
    """Return a read-only view of a writable array, and other arrays unchanged.

    Otherwise, the caller could change offsets after they are validated.
    """
    if a is None or not a.flags_ & WRITEABLE:
        return a
    cdef Descriptor view = same_layout(a)
    view.flags_ &= ~WRITEABLE
    return view


def unwrap_flat(Tree t not None):
    """Return the array of a flat node without a validity bitmap. Return other nodes unchanged.

    Nodes with a logical type or an extension type are also returned unchanged, because an array cannot store these.
    """
    if not has(t, NUMBERS) or t.validity is not None or t.meaning is not None or arrow_extension_of(t) is not None:
        return t
    return t.content


def part(node, Py_ssize_t start, Py_ssize_t stop):
    """Return elements `start` to `stop` of a USMArray or a NestedArray, or raise IndexError if they exceed its length."""
    cdef Py_ssize_t length = length_of(checked_node(node))
    if not 0 <= start <= stop <= length:
        raise IndexError(f"NestedArray: elements {start} to {stop} are out of range for an array of {length} elements")
    return part_of(node, start, stop)


def check(Tree t):
    """Validate offsets, indices, views, and the buffers of an opaque node. Raises as `NestedArray.__getitem__` does."""
    check_again(t)


def wide_lists(Tree t not None, content):
    """Return the lists `t` with validated int64 offsets, with `content` as their content, and without a logical type.

    `content` has the length of ``t.content``. int32 offsets are validated and converted in one pass. Return `t` itself if
    nothing changes. Raises as `check` does.
    """
    cdef bint narrow = has(t, ENDS) and t.offsets.itemsize_ == 4
    if not narrow:
        check_again(t)
        if content is t.content and t.meaning is None:
            return t
    cdef Tree lists = same_node(t)
    if narrow:
        lists.offsets = widened(t)
    lists.checked = t.checked and length_of(content) == length_of(t.content)
    lists.content = content
    lists.meaning = None
    align_bitmap(lists)     # new offsets start at element 0
    return lists


cdef Descriptor widened(Tree t):
    """Return the int32 offsets of `t` as a validated int64 copy."""
    cdef Descriptor wide
    wait_for(t.offsets, "offsets")
    if t.validity is not None:
        wait_for(t.validity, "validity")
    cdef cnp.ndarray made = np.zeros(1, np.int64) if t.length == 0 else np.empty(t.length + 1, np.int64)
    cdef int64_t* ends = <int64_t*> cnp.PyArray_DATA(made)
    while t.length and not (arrayhub_widen(t.offsets.data_, t.length, ends) and ends[t.length] <= length_of(t.content)):
        t.checked = False
        check_again(t)      # raises an error, unless another thread has just corrected the offsets
    t.checked = True
    wide = same_layout(asarray(made))
    wide.flags_ = (wide.flags_ & ~WRITEABLE) | IMMUTABLE     # no other code has a reference to the copy
    return wide


def extend_array(Descriptor a, Py_ssize_t length):
    """Return an array of `length` elements that starts at the address of `a`. `a` may be shorter.

    An import of strings from a device does not read the offsets, which contain the number of characters. The characters
    are therefore imported as an empty array.
    """
    cdef Descriptor view = view_of(a, 1)
    view.shape_[0] = length
    view.byte_strides_[0] = a.itemsize_
    seal(view)
    return view


cpdef bint is_on_host(node) except -1:
    """Return whether the host can read every array of a node."""
    cdef bint readable = True
    visit_arrays(checked_node(node), check_readable, &readable)
    return readable


cdef int check_readable(Descriptor a, void* readable) except -1:
    if not host_readable(a):
        (<bint*> readable)[0] = False
    return 0


def from_arrow(obj):
    """Import an object through Arrow's interfaces. A NestedArray is returned unchanged.

    Return None if `obj` does not support Arrow.
    """
    if isinstance(obj, NestedArray):
        return obj
    cdef list chunks = arrow.parse_chunks(obj)
    if chunks is None or len(chunks) == 1:
        return None if chunks is None else chunks[0]
    return new_chunked(tuple(chunks))


# ------------------------------------------------------------------------------------------------------------- bitmaps


def valid_mask(Tree t not None):
    """Return a new NumPy array of bools that is False for missing elements. A bitmap on a device is copied to the host."""
    if has(t, CHUNKS):
        return np.concatenate([valid_mask(chunk) for chunk in t.parts])
    if t.validity is None:
        return np.full(t.length, count_nulls(t) == 0)
    return unpack_bitmap(t.validity, t.bit, t.length)


def unpack_bitmap(bits not None, Py_ssize_t first, Py_ssize_t length):
    """Return a new NumPy array of bools for `length` bits from bit `first` on. Bits on a device are copied to the host."""
    return np.unpackbits(as_numpy(bits.to_host()), count=first + length, bitorder="little")[first:].view(bool)


def fill_rows(Tree t not None, value):
    """Return a copy of the content of a flat node on the host in which the rows without a valid bit contain `value`.

    Parameters
    ----------
    t : NestedArray
        A flat node with a validity bitmap.
    value : ndarray
        A 0-d array of the element type of the content.
    """
    if not has(t, NUMBERS) or t.validity is None:
        raise TypeError(f"fill_rows: {show(t)} is not of kind 'flat', or does not have a validity bitmap")
    check_bits(t.validity, t.bit, t.length)
    wait_for(t.validity, "validity")
    cdef cnp.ndarray source = np.ascontiguousarray(as_numpy(t.content))
    cdef cnp.ndarray filled = np.empty_like(source)
    cdef cnp.ndarray row = np.full((<object> filled).shape[1:], value, (<object> filled).dtype)
    cdef char *out = cnp.PyArray_BYTES(filled)
    cdef char *data = cnp.PyArray_BYTES(source)
    cdef char *fill = cnp.PyArray_BYTES(row)
    cdef const uint8_t *bits = <const uint8_t*> (<Descriptor> t.validity).data_
    cdef size_t first = t.bit, n = t.length, size = cnp.PyArray_NBYTES(row)
    with nogil:
        arrayhub_fill(out, data, bits, first, n, size, fill)
    return array_like(filled, t.content)


def unpack_bits(Tree t not None):
    """Return a copy of packed booleans with one byte per value."""
    if not isinstance(t.content, Descriptor) or not has(t, BIT_PACKED):
        raise TypeError(f"unpack_bits: {show(t)} is not of kind 'bits'")
    wait_for(<Descriptor> t.content, "content")
    cdef Descriptor a = asarray(unpack_bitmap(t.content, t.bit, t.length))
    a.flags_ |= COPIED
    return a


cpdef object bitmap_of(object mask):
    """Pack a NumPy array of bools, such as the result of `valid_mask`, into a bitmap."""
    return asarray(np.packbits(mask, bitorder="little"))


cpdef object cover_missing(object node, object validity, Py_ssize_t bit):
    """Return `node` with a validity bitmap. An element is missing if `node` or the bitmap marks the element as missing.

    If `node` does not have missing elements, the result shares the bitmap. Packed booleans whose first bit is not at
    position `bit` are unpacked to one byte each. Of the types without a bitmap, unions are converted by pyarrow, and runs are
    decoded.

    Parameters
    ----------
    node : USMArray or NestedArray
    validity : USMArray or None
        Bitmap, in which 0 marks a missing element. Pass None for a node without a bitmap.
    bit : int
        Position of the first element's bit in the bitmap.
    """
    cdef Tree part = same_node(<Tree> checked_node(node)) if isinstance(node, Tree) else flat(checked_node(node))
    if validity is None:
        return part
    check_bits(validity, bit, part.length)
    if has(part, FOREIGN) and not layout_of(part.meaning)[0]:
        return hooks.nested.opaque.cover(part, validity, bit)
    if part.validity is not None and count_nulls(part):
        validity = bitmap_of(valid_mask(part) & unpack_bitmap(validity, bit, part.length))
        bit = 0
    if has(part, BIT_PACKED) and bit != part.bit:     # a node has a single bit offset for its content and its bitmap
        part = flat(unpack_bits(part))
    part.validity = never_written(validity)
    part.bit = bit
    part.nulls = UNCOUNTED
    part.checked = False
    return part


cdef int check_bits(Descriptor bits, Py_ssize_t first, Py_ssize_t n) except -1:
    """Raise ValueError unless `bits` are contiguous bytes that contain `n` bits from bit `first` on."""
    if (n < 0 or first < 0 or bits.nd_ != 1 or bits.itemsize_ != 1 or not bits.flags_ & C_CONTIGUOUS
            or (<uint64_t> first + <uint64_t> n + 7) // 8 > <uint64_t> bits.shape_[0]):
        raise ValueError(
            f"NestedArray: the bitmap is {bits!r}; accepted: contiguous bytes that contain {n} bits from bit {first} on"
        )
    return 0
