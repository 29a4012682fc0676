"""NestedArray: what is not dense, as structure over flat arrays; and how it is taken apart by index, row and field."""

cimport cython

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    NOTSWAPPED,
    WRITEABLE,
    Descriptor,
    host_readable,
    reshape,
    same_layout,
    seal,
    shape_tuple,
    view_of,
)
from arrayhub._core.device cimport make_device
from arrayhub._core.integers cimport integer
from arrayhub._core.kinds cimport CHARACTERS, FIELDS, FLAT, KINDS, LISTS, NUMBERS, PACKED, SIZES, UTF8, VIEWS, WIDTH, ENDS
from arrayhub._core.tree cimport (
    INLINE_VIEW,
    UNCOUNTED,
    VIEW_BYTES,
    Tree,
    bit_at,
    check_again,
    check_tree,
    count_nulls,
    false_field_error,
    first_array,
    has,
    index_at,
    integer_at,
    is_missing,
    length_of,
    new_tree,
    part_inside,
    part_of,
    visit_arrays,
    wait_for,
)
from arrayhub.adapters cimport arrow, arrow_device

from arrayhub._core.copying import forbidden
from arrayhub._core.errors import show, unreadable
from arrayhub._core.hooks import hooks
from arrayhub._core.kinds import KIND_NAMES
from arrayhub.convert.functions import as_numpy
from arrayhub.nested import logical_types


@cython.final
cdef class NestedArray(Tree):
    """An array whose elements are lists, strings, records or missing values: structure over flat arrays. Immutable.

    `arrayhub.asnested` makes one. The numbers, offsets and characters in it are USMArrays on the producer's memory; parts
    of it are views.

    Attributes
    ----------
    kind : str
        ``"flat"`` (numbers, of which some may be missing), ``"bits"`` (truth values, eight to a byte), ``"list"``,
        ``"list_view"``, ``"regular"`` (lists of one length), ``"string"``, ``"bytes"``, ``"string_view"``,
        ``"bytes_view"``, ``"record"``, ``"categorical"``.
    """

    __module__ = "arrayhub.nested.array"     # for `inspect.getmodule`, as in USMArray

    # -------------------------------------------------------------------------------------------------- what it is

    @property
    def kind(self):
        """str : what this node is."""
        return KIND_NAMES[(<Tree> self).kind]

    @property
    def type(self):
        """Type : the datashape, such as ``3 * var * ?string``; ``str(x.type)`` gives the text."""
        return hooks.nested_type(self)

    @property
    def offsets(self):
        """USMArray : int32 or int64. Row i is ``content[offsets[i]:offsets[i + 1]]``; a list_view's ends by its `sizes`."""
        return self.part_named("offsets", self.offsets_())

    @property
    def sizes(self):
        """USMArray : of a list_view, the length of each row."""
        return self.part_named("sizes", (<Tree> self).sizes)

    @property
    def indices(self):
        """USMArray : of a categorical, which element of `content` each element is."""
        return self.part_named("indices", (<Tree> self).indices)

    @property
    def content(self):
        """USMArray or NestedArray : what the rows lie in; characters, of strings; numbers, of a flat node."""
        return self.part_named("content", (<Tree> self).content)

    @property
    def buffers(self):
        """tuple of USMArray : of strings by views, the buffers that the longer ones lie in."""
        cdef Tree t = self
        return self.part_named("buffers", t.parts if has(t, VIEWS) else None)

    @property
    def validity(self):
        """USMArray or None : bytes of bits, the lowest first; a bit that is 0 means that the element is missing. The bit of
        the first element is number `validity_offset`. None where nothing is missing."""
        return (<Tree> self).validity

    @property
    def validity_offset(self):
        """int : bits of `validity` before the first element's, and of the content of bits."""
        return (<Tree> self).bit

    @property
    def null_count(self):
        """int : how many elements are missing; counted when first asked for."""
        return count_nulls(self)

    @property
    def fields(self):
        """dict : of a record, each field's name and array. AttributeError if two fields have one name."""
        cdef Tree t = self
        if not has(t, FIELDS):
            return self.part_named("fields", None)
        check_names(t, "fields", "x.field_names and x.children", AttributeError)
        return dict(zip(t.names, t.parts))

    @property
    def field_names(self):
        """tuple of str : of a record, the name of each field. Arrow allows several fields of one name."""
        return self.part_named("field_names", (<Tree> self).names)

    @property
    def children(self):
        """tuple of USMArray or NestedArray : of a record, the array of each field, in the order of `field_names`."""
        cdef Tree t = self
        return self.part_named("children", t.parts if has(t, FIELDS) else None)

    @property
    def width(self):
        """int : of a regular node, how many elements a row has."""
        return (<Tree> self).width

    @property
    def meaning(self):
        """str or None : Arrow's format where the numbers mean more than their type says: a time zone, days, a time of day."""
        return (<Tree> self).meaning

    @property
    def device(self):
        """Device : where the arrays lie; the host of records without fields."""
        return make_device(arrow_device.device_of_node(self))

    @property
    def access(self):
        """str : that of its elements. Arrow memory is immutable, and so are records without fields, which have none. Offsets,
        sizes, views, indices and bits of what is missing are never written through a NestedArray."""
        cdef Descriptor a = first_array(self)
        return "immutable" if a is None else a.access

    @property
    def protocol(self):
        """str : the protocol by which the memory came in, as ``asarray(via=)`` names it; "arrow" of records without fields."""
        cdef Descriptor a = first_array(self)
        return "arrow" if a is None else a.protocol

    cdef Descriptor offsets_(self):
        return (<Tree> self).offsets

    cdef object part_named(self, str name, object part):
        if part is None:
            kind = KIND_NAMES[(<Tree> self).kind]     # self.kind is the struct's number here
            raise AttributeError(f"{name}: an array of kind {kind!r} has none; it has {', '.join(self.parts_())}")
        return part

    cdef list parts_(self):
        cdef Tree t = self
        present = {"offsets": t.offsets, "sizes": t.sizes, "indices": t.indices, "content": t.content,
                   "buffers": t.parts if has(t, VIEWS) else None, "fields": t.names}
        return [name for name, part in present.items() if part is not None]

    def __repr__(self):
        return f"NestedArray({self.type}, device='{self.device}', access='{self.access}')"

    def _repr_html_(self):
        return hooks.nested_picture_of(self)

    def __reduce__(self):
        """For pickle and the module copy: refused, since the addresses mean nothing to another process."""
        from arrayhub.transport.deferred_error import refused

        return refused(TypeError("NestedArray: not pickled; pickle arrayhub.as_arrow(x) or x.to_list()"))

    # ------------------------------------------------------------------------------------------------------- parts

    def __len__(self):
        return self.length

    def __iter__(self):
        return map(self.__getitem__, range(self.length))

    def __contains__(self, value):
        raise TypeError("in: a NestedArray compares no elements; ask x.to_list()")

    def __bool__(self):
        raise ValueError("bool: an array is neither true nor false; ask for len(x)")

    def __getitem__(self, key):
        """An element, a slice, or a field; all but strings, truth values and dicts of fields are views.

        Parameters
        ----------
        key : int, slice, str or tuple
            An index; a slice with a step of 1; a field's name; several of them one after another, as in ``x[3, 1]``,
            where all but the last are indices or names.

        Returns
        -------
        USMArray, NestedArray, str, bytes, bool, dict or None
            A row of numbers is a USMArray on the memory of `content`; a missing element is None.

        Raises
        ------
        IndexError, KeyError
            There is no such element or field.
        InterfaceError
            Offsets lead out of the content, or a string is no UTF-8.
        BufferError
            The host cannot read what has to be followed; the message names ``to_host()``.
        """
        cdef object node = self
        if not isinstance(key, tuple):
            return indexed(self, key)
        for part in key:
            node = indexed(<Tree> node, part) if isinstance(node, Tree) else node[part]
        return node

    def to_list(self):
        """Return the elements as Python objects: lists, str, bytes, numbers, None, and a dict a record; a copy.

        Times are what ``numpy.ndarray.tolist`` makes of them.

        Raises
        ------
        BufferError
            The host cannot read the memory; the message names ``to_host()``.
        """
        if not is_on_host(self):
            raise BufferError(unreadable("to_list", self.device, call="call x.to_host()"))
        return listed(self)

    def to_dense(self, *, copy=None):
        """Return lists of equal lengths as one array of one more dimension, as a view of the content.

        Parameters
        ----------
        copy : bool, optional
            True: a copy, which truth values in bits and missing numbers' places need too.

        Returns
        -------
        USMArray
            Of shape ``(len(x), k, ...)``.

        Raises
        ------
        ValueError
            Rows of different lengths, or missing values; the message names the first one.
        BufferError
            What it holds is no array of numbers, or takes a copy.
        """
        result = densified(self, bool(copy))
        return result.copy() if copy and not result.is_copy else result

    def to_host(self):
        """Return the array in host memory: itself where the host can read it, else a copy of what it reaches."""
        return hooks.nested_to_host(self)

    def to_device(self, device, /):
        """Return the array on `device`: itself where it is there, else a copy of what it reaches, one copy per buffer."""
        return hooks.nested_to_device(self, device)

    # --------------------------------------------------------------------------------------------------- protocols

    @property
    def __arrow_c_schema__(self):
        return arrow.emit_attribute(self, arrow.SCHEMA)

    # A requested schema may ask for longer offsets, or for strings as views.

    @property
    def __arrow_c_device_array__(self):
        return arrow.emit_attribute(self, arrow.DEVICE_ARRAY, _conformed)

    @property
    def __arrow_c_array__(self):
        return arrow.emit_attribute(self, arrow.ARRAY, _conformed)

    @property
    def __arrow_c_stream__(self):
        return arrow.emit_attribute(self, arrow.STREAM, _conformed)

    @property
    def __arrow_c_device_stream__(self):
        return arrow.emit_attribute(self, arrow.DEVICE_STREAM, _conformed)


def _conformed(node, described):
    """The node as a request describes it, as far as the host can read it: a request is no promise."""
    return hooks.conform(node, described) if is_on_host(node) else node


# ----------------------------------------------------------------------------------------------------------- by index


cdef object indexed(Tree t, object key):
    cdef Py_ssize_t i, start, stop, step
    if isinstance(key, str):
        if t.names is None or key not in t.names:
            raise KeyError(f"{key!r}: " + (f"accepted: {', '.join(t.names)}" if t.names is not None else
                                           f"an array of kind {KIND_NAMES[t.kind]!r} has no fields"))
        first = t.names.index(key)
        if key in t.names[first + 1 :]:
            missing = "" if t.validity is None else ", with x.validity for the missing records"
            raise KeyError(f"{key!r}: field names are {show(t.names)}; accepted: the name of one field. Use"
                           f" x.children[{first}]{missing}")
        field = t.parts[first]
        return field if t.validity is None else masked_field(t, field)
    if isinstance(key, slice):
        start, stop, step = key.indices(t.length)
        if step != 1:
            raise IndexError(f"slice with a step of {step}; accepted: 1. Take x.to_list()[...], or its own library's")
        return part_of(t, start, max(start, stop))
    try:
        i = integer(key, "index")
    except ValueError:      # beyond 64 bits
        raise range_error(t, key) from None
    if i < 0:
        i += t.length
    if i < 0 or i >= t.length:
        raise range_error(t, key)
    return element(t, i)


cpdef int check_names(Tree t, str call, str instead="arrayhub.as_arrow(x)", object error=ValueError) except -1:
    """Raise an error if two fields of a record have one name, because a dict has one value for each name.

    Parameters
    ----------
    t : NestedArray
        A record.
    call : str
        Call or protocol at the start of the message.
    instead : str
        Call that the message names.
    error : type
        Class of the error.
    """
    if len(frozenset(t.names)) != len(t.names):
        raise error(f"{call}: field names are {show(t.names)}; accepted: a different name for each field. Use {instead}")
    return 0


cdef object range_error(Tree t, object key):
    return IndexError(f"index {show(key)} is out of range for an array of {t.length} elements")


cdef object masked_field(Tree t, object field):
    """A field of records of which some are missing: what is missing there is missing in the field."""
    return field if count_nulls(t) == 0 else covered(field, t.validity, t.bit)


cpdef object covered(object node, object validity, Py_ssize_t bit):
    """Return a node of whose elements those are missing too that a bitmap says are missing; it is shared where the node has
    none of its own.

    Parameters
    ----------
    node : USMArray or NestedArray
    validity : USMArray or None
        Bytes of bits, the lowest first, 0 for what is missing; None: nothing more is.
    bit : int
        Which bit stands for the first element.
    """
    cdef Tree part = copy_node(<Tree> checked_node(node)) if isinstance(node, Tree) else flat(checked_node(node))
    if validity is None:
        return part
    check_bits(validity, bit, part.length)
    if has(part, PACKED) and bit != part.bit:     # whose bits start where its content's do
        part = with_validity(flat(unpacked(part)), part)
    if part.validity is not None and count_nulls(part):
        validity = bitmap_of(valid_mask(part) & mask_in(validity, bit, part.length))
        bit = 0
        if has(part, PACKED):
            part = flat(unpacked(part))
    part.validity = never_written(validity)
    part.bit = bit
    part.nulls = UNCOUNTED
    part.checked = False
    return part


cdef int check_bits(Descriptor bits, Py_ssize_t first, Py_ssize_t n) except -1:
    """Refuse what does not have `n` bits from the `first` on, in bytes one after the other."""
    if (n < 0 or first < 0 or bits.nd_ != 1 or bits.itemsize_ != 1 or not bits.flags_ & C_CONTIGUOUS
            or (<uint64_t> first + <uint64_t> n + 7) // 8 > <uint64_t> bits.shape_[0]):
        raise ValueError(
            f"NestedArray: {n} bits from bit {first} of {bits!r}; accepted: an array of bytes without gaps that has so many"
        )
    return 0


cdef Tree with_validity(Tree t, Tree other):
    t.validity, t.bit, t.nulls = other.validity, other.bit, other.nulls
    return t


cdef Tree copy_node(Tree t):
    cdef Tree same = new_tree(t.kind, t.length)
    same.checked, same.width, same.nulls, same.bit = t.checked, t.width, t.nulls, t.bit
    same.validity, same.offsets, same.sizes, same.indices = t.validity, t.offsets, t.sizes, t.indices
    same.content, same.parts, same.names, same.meaning = t.content, t.parts, t.names, t.meaning
    return same


cdef object element(Tree t, Py_ssize_t i):
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
    return {name: element_of(part, i) for name, part in zip(t.names, t.parts)}


cdef object category_at(Tree t, Py_ssize_t i):
    cdef Py_ssize_t index = index_at(t.indices, i), end = length_of(t.content)
    if index < 0 or index >= end:
        raise false_field_error(t, f"indices[{i}]", index, f"0 to {end - 1}, one of the dictionary's elements")
    return element_of(t.content, index)


cdef object element_of(object node, Py_ssize_t i):
    return element(<Tree> node, i) if isinstance(node, Tree) else node[i]


cdef object text_at(Tree t, Py_ssize_t i):
    """A string or bytes; `t` has been checked and the element is there."""
    cdef const char* first
    cdef Py_ssize_t length
    locate(t, i, &first, &length)
    if not has(t, UTF8):
        return PyBytes_FromStringAndSize(first, length)
    try:
        return PyUnicode_DecodeUTF8(first, length, NULL)
    except UnicodeDecodeError as error:
        raise false_field_error(t, f"element {i}", PyBytes_FromStringAndSize(first, min(length, 80)),
                                f"UTF-8 ({error.reason} at byte {error.start})") from error


cdef int locate(Tree t, Py_ssize_t i, const char** first, Py_ssize_t* length) except -1:
    """Where the characters of an element lie; what is read here of offsets and views is looked at again."""
    cdef int32_t view[4]
    cdef Py_ssize_t start
    cdef const char* place
    cdef Descriptor buffer = <Descriptor> t.content
    if has(t, ENDS):
        start = integer_at(t.offsets.data_, t.offsets.itemsize_, i)
        length[0] = integer_at(t.offsets.data_, t.offsets.itemsize_, i + 1) - start
        first[0] = buffer.data_ + start
    else:
        place = buffer.data_ + VIEW_BYTES * i
        memcpy(view, place, VIEW_BYTES)
        length[0] = view[0]
        if 0 <= view[0] <= INLINE_VIEW:
            first[0] = place + 4
            return 0
        start = view[3]
        buffer = <Descriptor> t.parts[view[2]] if 0 <= view[2] < len(t.parts) else None
        first[0] = NULL if buffer is None else buffer.data_ + start
    if buffer is None or start < 0 or length[0] < 0 or start > buffer.shape_[0] - length[0]:
        raise false_field_error(t, f"element {i} (offset, length)", (start, length[0]), "characters within their buffer")
    return 0


# ------------------------------------------------------------------------------------------------------ all of it


cdef object listed(object node):
    """The elements of a node as Python objects."""
    cdef Tree t
    if not isinstance(node, Tree):
        return as_numpy(node).tolist()
    t = <Tree> node
    check_again(t)
    items = _LISTED[t.kind](t)
    if t.validity is None or count_nulls(t) == 0:
        return items
    return [item if valid else None for item, valid in zip(items, valid_mask(t).tolist())]


cdef list list_flat(Tree t):
    numbers = as_numpy(t.content)
    return numbers.tolist() if t.meaning is None else logical_types.listed(numbers, t.meaning)


cdef list list_lists(Tree t):
    offsets = as_numpy(t.offsets)
    first = int(offsets[0]) if len(offsets) else 0
    items = listed(part_inside(t, first, int(offsets[t.length]) if len(offsets) else 0, "offsets"))
    ends = (offsets - first).tolist()
    return [items[ends[k] : ends[k + 1]] for k in range(t.length)]


cdef list list_views(Tree t):
    starts, sizes = as_numpy(t.offsets).tolist(), as_numpy(t.sizes).tolist()
    items = listed(t.content)
    return [items[start : start + size] for start, size in zip(starts, sizes)]


cdef list list_regular(Tree t):
    items = listed(t.content)
    return [items[k * t.width : (k + 1) * t.width] for k in range(t.length)]


cdef list list_texts(Tree t):
    return [None if is_missing(t, k) else text_at(t, k) for k in range(t.length)]


cdef list list_records(Tree t):
    check_names(t, "to_list")
    if not t.parts:
        return [{} for _ in range(t.length)]
    columns = [listed(part_of(part, 0, t.length)) for part in t.parts]
    return [dict(zip(t.names, row)) for row in zip(*columns)]


cdef list list_categories(Tree t):
    words = listed(t.content)
    return [None if is_missing(t, k) else words[index] for k, index in enumerate(as_numpy(t.indices).tolist())]


cdef list list_bits(Tree t):
    return as_numpy(unpacked(t)).tolist()


ctypedef list (*Lister)(Tree t)
ctypedef object (*ElementAt)(Tree t, Py_ssize_t i)

# One row for each kind, in the order of `kinds`; Cython rejects a row too many or too few.
cdef Lister[<int> KINDS] _LISTED
_LISTED[:] = [list_flat, list_bits, list_lists, list_views, list_regular, list_texts, list_texts, list_texts, list_texts,
              list_records, list_categories]
cdef ElementAt[<int> KINDS] _ELEMENTS
_ELEMENTS[:] = [number_at, bit_value_at, row_at, row_at, row_at, text_at, text_at, text_at, text_at, record_at,
                category_at]


cpdef object valid_mask(Tree t):
    """Whether each element is there, as NumPy's truth values; fresh ones."""
    if t is None:
        raise TypeError("valid_mask: None is no NestedArray")
    if t.validity is None:
        return np.ones(t.length, bool)
    return mask_in(t.validity, t.bit, t.length)


cdef object mask_in(Descriptor validity, Py_ssize_t bit, Py_ssize_t length):
    wait_for(validity, "validity")
    return np.unpackbits(as_numpy(validity), bitorder="little")[bit : bit + length].astype(bool)


cpdef object unpacked(Tree t):
    """The truth values of bits, one to a byte: a copy."""
    if t is None or not isinstance(t.content, Descriptor) or not has(t, PACKED):
        raise TypeError(f"unpacked: {show(t)} has no truth values in bits")
    wait_for(<Descriptor> t.content, "content")
    from arrayhub.convert.functions import asarray

    bits = np.unpackbits(as_numpy(t.content), bitorder="little")[t.bit : t.bit + t.length]
    return asarray(bits.astype(bool), copy=True)


cpdef object bitmap_of(object mask):
    """The bitmap of NumPy's truth values, True where an element is there."""
    from arrayhub.convert.functions import asarray

    return asarray(np.packbits(mask, bitorder="little"))


cdef object densified(object node, bint copy):
    """A node as one array; see `NestedArray.to_dense`."""
    cdef Tree t
    cdef Py_ssize_t width, k, start, size
    if not isinstance(node, Tree):
        return node
    t = <Tree> node
    if t.validity is not None and count_nulls(t):
        raise ValueError(f"to_dense: element {int(valid_mask(t).argmin())} is missing; accepted: arrays without missing values")
    if has(t, NUMBERS):
        return t.content if t.meaning is None else of_numpys_type(t, copy)
    if has(t, PACKED):
        if not copy:
            raise BufferError("to_dense: eight values share a byte; call to_dense(copy=True), which unpacks them")
        return unpacked(t)
    if has(t, WIDTH):
        dense = <Descriptor> densified(t.content, copy)
        return reshape(dense, (t.length, t.width) + shape_tuple(dense)[1:])
    if not has(t, LISTS):
        raise BufferError(
            f"to_dense: an array of kind {KIND_NAMES[t.kind]!r} holds no lists of numbers; accepted: lists of equal lengths."
            " Take its parts, or call to_list()"
        )
    check_again(t)
    width = length_of_row(t, 0) if t.length else 0
    start = start_of_row(t, 0) if t.length else 0
    for k in range(t.length):
        size = length_of_row(t, k)
        if size != width:
            raise ValueError(f"to_dense: row {k} has {size} elements, those before it have {width}; accepted: equal lengths")
        if has(t, SIZES) and width and start_of_row(t, k) != start + k * width:
            raise BufferError(f"to_dense: row {k} does not follow the one before it in memory; call arrayhub.asnested(x,"
                              " copy=True).to_dense()")
    dense = <Descriptor> densified(part_inside(t, start, start + width * t.length, "rows"), copy)
    return reshape(dense, (t.length, width) + shape_tuple(dense)[1:])


cdef object of_numpys_type(Tree t, bint copy):
    """Numbers that mean more than their type says, as NumPy's type that says it."""
    if t.meaning == "tdm":      # milliseconds, which NumPy's type says: whole days of them
        return t.content
    if t.meaning != "tdD":
        raise BufferError(
            f"to_dense: elements of Arrow's type {t.meaning!r}, of which NumPy's says less; take x.content and x.meaning, or"
            " call as_arrow(x)"
        )
    if not copy:
        raise BufferError("to_dense: days of four bytes, and NumPy's have eight; pass copy=True, which makes datetime64[D] of"
                          " them, or take x.content")
    from arrayhub.convert.functions import asarray

    return asarray(as_numpy(t.content).astype("M8[D]"), copy=True)


cdef inline Py_ssize_t start_of_row(Tree t, Py_ssize_t k) noexcept:
    return k * t.width if has(t, WIDTH) else integer_at(t.offsets.data_, t.offsets.itemsize_, k)


cdef inline Py_ssize_t length_of_row(Tree t, Py_ssize_t k) noexcept:
    if has(t, WIDTH):
        return t.width
    if has(t, SIZES):
        return integer_at(t.sizes.data_, t.sizes.itemsize_, k)
    return start_of_row(t, k + 1) - start_of_row(t, k)


# ------------------------------------------------------------------------------------- for the modules that make them


cdef Tree flat(object array):
    cdef Tree t = new_tree(FLAT, length_of(array))
    t.content = array
    return t


def nested_of(node):
    """Return a USMArray as a node of its own; a NestedArray as it is."""
    return rooted(checked_node(node))


cdef inline Tree rooted(object node):
    return <Tree> node if isinstance(node, Tree) else flat(node)


cdef object checked_node(object node):
    """A node or an array of one dimension or more, whatever Python code handed over."""
    if not isinstance(node, Tree) and (not isinstance(node, Descriptor) or (<Descriptor> node).nd_ < 1):
        raise TypeError(f"NestedArray: {show(node)} is no NestedArray and no USMArray of one dimension or more")
    return node


def make(str kind, Py_ssize_t length, *, content=None, Descriptor offsets=None, Descriptor sizes=None,
         Descriptor indices=None, Descriptor validity=None, Py_ssize_t bit=0, tuple parts=None, tuple names=None,
         Py_ssize_t width=0, str meaning=None, copy=None):
    """Return a node of parts that fit together; what they lead into is checked when they are first followed.

    Offsets, sizes, indices, bits, characters and views lie without gaps afterwards: those that do not are copied, which
    ``copy=False`` forbids. Nobody writes what is followed through a node.

    A bitmap that the host can read and that starts within a byte is copied, so that it starts with one: whoever takes an
    array with an offset takes it that all its buffers have as many elements in front, which new parts do not.
    """
    cdef Tree t = new_tree(KIND_NAMES.index(kind), length)
    t.content = content
    t.parts = parts
    if has(t, PACKED | CHARACTERS):
        t.content = without_gaps(content, "characters", copy)
        t.parts = None if parts is None else tuple([without_gaps(buffer, "characters", copy) for buffer in parts])
    if has(t, VIEWS):
        t.content = never_written(t.content)
    validity = without_gaps(validity, "validity", copy)
    t.offsets = never_written(of_offsets(without_gaps(offsets, "offsets", copy), "offsets", 0))
    t.sizes = never_written(of_offsets(without_gaps(sizes, "sizes", copy), "sizes",
                                       0 if offsets is None else offsets.itemsize_))
    t.indices = never_written(without_gaps(indices, "indices", copy))
    t.validity = never_written(validity)
    t.bit = bit
    t.names = names
    t.width = width
    t.meaning = meaning
    t.nulls = 0 if validity is None else UNCOUNTED
    if validity is not None:
        check_bits(validity, bit, length)
    if has(t, PACKED):
        check_bits(<Descriptor> t.content, bit, length)
    if bit and validity is not None and not has(t, PACKED) and host_readable(validity):
        t.validity = never_written(bitmap_of(mask_in(validity, bit, length)))
        t.bit = 0
    return t


def without_gaps(Descriptor a=None, str what="it", copy=None):
    """Return an array whose elements lie one after another: itself, or a copy, which ``copy=False`` forbids."""
    if a is None or a.flags_ & C_CONTIGUOUS:
        return a
    forbidden(copy, "asnested", f"{what} of byte strides {a.byte_strides} have to be copied")
    return (<object> a).copy()


cdef int _SIGNED = 0     # of DLPack's codes of element types


cdef Descriptor of_offsets(Descriptor a, str what, Py_ssize_t width):
    """`a`, which is of integers as wide as offsets are; `width`: of exactly so many bytes."""
    if a is not None and (a.nd_ != 1 or a.dl_dtype_.code != _SIGNED or a.itemsize_ not in (4, 8) or not a.flags_ & NOTSWAPPED
                          or width and a.itemsize_ != width):
        raise TypeError(f"asnested: {what} are {a!r}; accepted: one dimension of int32 or int64, sizes as the offsets")
    return a


cdef Descriptor never_written(Descriptor a):
    """A view that nobody writes through: offsets that change after they were checked lead anywhere."""
    if a is None or not a.flags_ & WRITEABLE:
        return a
    cdef Descriptor view = same_layout(a)
    view.flags_ &= ~WRITEABLE
    return view


def unwrapped(Tree t not None):
    """Return the array of a node of nothing but numbers, of a type that NumPy has; any other node unchanged."""
    return t.content if has(t, NUMBERS) and t.validity is None and t.meaning is None else t


def part(node, Py_ssize_t start, Py_ssize_t stop):
    """Return elements `start` to `stop` of a USMArray or a NestedArray; IndexError where they are not within its length."""
    cdef Py_ssize_t length = length_of(checked_node(node))
    if not 0 <= start <= stop <= length:
        raise IndexError(f"NestedArray: elements {start} to {stop} of {length}")
    return part_of(node, start, stop)


def check(Tree t):
    """Follow what this node leads into; see `NestedArray.__getitem__` for what it raises."""
    check_again(t)


def sized(Descriptor a, Py_ssize_t length):
    """Return `length` bytes from where `a` begins: characters whose number only the offsets on a device knew."""
    cdef Descriptor view = view_of(a, 1)
    view.shape_[0] = length
    view.byte_strides_[0] = a.itemsize_
    seal(view)
    return view


def is_on_host(node):
    """Return whether the host can read every array of a node."""
    cdef bint found = True
    visit_arrays(checked_node(node), note_elsewhere, &found)
    return found


cdef int note_elsewhere(Descriptor a, void* found) except -1:
    if not host_readable(a):
        (<bint*> found)[0] = False
    return 0


def from_arrow(obj):
    """Return the chunks that Arrow's interfaces hand over, a NestedArray each; None where `obj` has none of them. A
    NestedArray is one chunk."""
    if isinstance(obj, NestedArray):
        return [obj]
    cdef list chunks = arrow.parse_chunks(obj)
    cdef Py_ssize_t k
    if chunks is not None:
        for k in range(len(chunks)):
            chunks[k] = rooted(chunks[k])
    return chunks
