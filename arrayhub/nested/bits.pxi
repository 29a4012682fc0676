"""Bitmaps of booleans or of validity: eight bits per byte, least significant bit first."""

import numpy as np

from libc.stdint cimport uint64_t

from arrayhub._core.descriptor cimport C_CONTIGUOUS, Descriptor
from arrayhub._core.tree cimport (
    BIT_PACKED,
    CHUNKS,
    FOREIGN,
    UNCOUNTED,
    Tree,
    count_nulls,
    has,
    same_node,
    wait_for,
)

from arrayhub._core.errors import show
from arrayhub._core.hooks import hooks
from arrayhub.adapters.arrow import layout_of
from arrayhub.convert.functions import as_numpy, asarray


cpdef object valid_mask(Tree t):
    """Return a new NumPy array of bools that is False for missing elements. A bitmap on a device is copied to the host."""
    if t is None:
        raise TypeError("valid_mask: None is not a NestedArray")
    if has(t, CHUNKS):
        return np.concatenate([valid_mask(chunk) for chunk in t.parts])
    if t.validity is None:
        return np.full(t.length, count_nulls(t) == 0)
    return unpack_bitmap(t.validity, t.bit, t.length)


def unpack_bitmap(bits not None, Py_ssize_t first, Py_ssize_t length):
    """Return a new NumPy array of bools for `length` bits from bit `first` on. Bits on a device are copied to the host."""
    return np.unpackbits(as_numpy(bits.to_host()), count=first + length, bitorder="little")[first:].view(bool)


cpdef object unpack_bits(Tree t):
    """Return a copy of packed booleans with one byte per value."""
    if t is None or not isinstance(t.content, Descriptor) or not has(t, BIT_PACKED):
        raise TypeError(f"unpack_bits: {show(t)} is not of kind 'bits'")
    wait_for(<Descriptor> t.content, "content")
    return asarray(unpack_bitmap(t.content, t.bit, t.length))


cpdef object bitmap_of(object mask):
    """Pack a NumPy array of bools, such as the result of `valid_mask`, into a bitmap."""
    return asarray(np.packbits(mask, bitorder="little"))


cpdef object cover_missing(object node, object validity, Py_ssize_t bit):
    """Return `node` with a validity bitmap. An element is missing if `node` or the bitmap marks the element as missing.

    If `node` does not have missing elements, the result shares the bitmap. Packed booleans whose first bit is not at
    position `bit` are unpacked to one byte each. Unions and runs, which do not have a bitmap, are converted by pyarrow.

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
    if has(part, BIT_PACKED) and bit != part.bit:     # a node has a single bit offset for its content and its bitmap
        part = with_validity(flat(unpack_bits(part)), part)
    if part.validity is not None and count_nulls(part):
        validity = bitmap_of(valid_mask(part) & unpack_bitmap(validity, bit, part.length))
        bit = 0
        if has(part, BIT_PACKED):
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


cdef Tree with_validity(Tree t, Tree other):
    t.validity, t.bit, t.nulls = other.validity, other.bit, other.nulls
    return t
