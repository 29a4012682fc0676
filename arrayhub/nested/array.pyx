"""The class `NestedArray`: lists, strings, records and missing values, stored as flat arrays.

This module includes these files:

- values: elements, slices and fields, and conversion to Python objects and to one dense array
- nodes: construction and validation of nodes, boolean bitmaps and validity bitmaps
- from_values: fast import of Python lists of strings, and of rows of numbers
- exports: the import for exports to the libraries of nested data
- strings: NumPy's StringDType, and conversion between string offsets and string views
"""

from functools import partial
from itertools import chain

cimport cython

from cpython.object cimport Py_EQ, Py_NE, PyObject_GenericGetAttr

from arrayhub._core.descriptor cimport Descriptor, make_device
from arrayhub._core.tree cimport CHUNKS, FIELDS, FOREIGN, VIEWS, Tree, count_nulls, first_array, has
from arrayhub.adapters cimport arrow
from arrayhub.array.usm_array cimport compare

from arrayhub._core.copying import check_copy, view_or_copy
from arrayhub._core.errors import unreadable
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import KIND_NAMES
from arrayhub.adapters.arrow import extension_of_node as arrow_extension_of
from arrayhub.adapters.arrow import metadata_of_node as arrow_metadata_of

include "values.pxi"
include "nodes.pxi"
include "strings.pxi"
include "from_values.pxi"
include "exports.pxi"


# Attributes of other libraries' arrays, columns and tensors, and the corresponding expressions for a NestedArray.
_ELSEWHERE = {
    **dict.fromkeys(("shape", "ndim", "size"), "len(x), x.type, or arrayhub.asarray(x) if its lists have equal lengths"),
    "copy": "arrayhub.asnested(x, copy=True)",
    "cpu": "x.to_host()",
    "dropna": "arrayhub.as_pandas(x).dropna()",
    "dtype": "x.type",
    "fillna": "x.fill_null(value)",
    "isna": "x.is_null()",
    "isnull": "x.is_null()",
    "to": "x.to_device(device)",
    "to_pylist": "x.to_list()",
    "tolist": "x.to_list()",
}
for _name in ("arrow", "awkward", "jax", "numpy", "pandas", "polars", "torch"):
    _ELSEWHERE[_name] = _ELSEWHERE[f"to_{_name}"] = f"arrayhub.as_{_name}(x)"


@cython.final
cdef class NestedArray(Tree):
    """Array of lists, strings, records or missing values, stored as flat arrays.

    `arrayhub.asnested` creates nested arrays. The structure of a NestedArray cannot change. Its values can change if
    `access` is ``"readwrite"``. Numbers, offsets and characters are USMArrays, which share the producer's memory if
    possible. Slices, rows and fields are views.

    Attributes
    ----------
    kind : str
        ``"flat"`` (numbers, dates or times, possibly missing), ``"bits"`` (booleans, eight per byte), ``"list"``,
        ``"regular"`` (lists of equal lengths), ``"string"``, ``"bytes"``, ``"string_view"``, ``"bytes_view"``, ``"record"``,
        ``"categorical"``, ``"chunked"`` (several arrays of one type, see `chunks`), ``"opaque"`` (another type of Arrow:
        a decimal, an interval, a union, list views, run-end encoded, or null).

    Examples
    --------
    >>> x = arrayhub.asnested([{"name": "a", "values": [1, 2]}, {"name": "b", "values": []}])
    >>> print(x.type)
    2 * {name: string, values: var * int64}
    >>> rows = x["values"]
    >>> rows.kind, rows.offsets.tolist(), rows.content.tolist(), rows[0].tolist()
    ('list', [0, 2, 2], [1, 2], [1, 2])
    """

    __module__ = "arrayhub.nested.array"     # for `inspect.getmodule`, as in USMArray

    def __cinit__(self):      # `new_tree` creates nodes without calling this method
        raise TypeError("NestedArray: cannot be instantiated directly; use arrayhub.asnested")

    # -------------------------------------------------------------------------------------------------- structure

    @property
    def kind(self):
        """str : kind of this node. The class docstring lists the kinds."""
        return KIND_NAMES[(<Tree> self).kind]

    @property
    def type(self):
        """Type : datashape of the array. ``str(x.type)`` returns text such as ``3 * var * ?string``."""
        return hooks.nested.nested_type(self)

    @property
    def offsets(self):
        """USMArray : start of each row or string in `content`, as int32 or int64.

        Row or string i is ``content[offsets[i]:offsets[i + 1]]``.
        """
        return self.part_named("offsets", (<Tree> self).offsets)

    @property
    def run_offset(self):
        """int : position in the runs of the first element of a run-end encoded array, which is not 0 after slicing.

        0 for other types.
        """
        return (<Tree> self).skip

    @property
    def indices(self):
        """USMArray : index in `content` for each element of a categorical. Those of missing elements are undefined."""
        return self.part_named("indices", (<Tree> self).indices)

    @property
    def content(self):
        """USMArray or NestedArray : array that contains the values.

        The kind determines the values:

        - flat: one number, or one row of numbers, for each element
        - bits: eight booleans in each byte
        - list, regular: the elements of all rows
        - string, bytes: the bytes of all strings
        - string_view, bytes_view: a 16-byte view for each string
        - categorical: the categories
        """
        return self.part_named("content", (<Tree> self).content)

    @property
    def buffers(self):
        """tuple of USMArray : buffers of a string_view or bytes_view that contain the strings longer than 12 bytes.

        For kind ``"opaque"``, the buffers of Arrow's layout after the bitmap, with one item for each element.
        """
        cdef Tree t = self
        return self.part_named("buffers", t.parts if has(t, VIEWS) else t.buffers)

    @property
    def validity(self):
        """USMArray or None : validity bitmap, least significant bit first; 0 marks a missing element.

        Bit `validity_offset` belongs to the first element. None if no element is missing, and for unions, run-end encoded
        arrays and null, because their Arrow layouts do not have a bitmap. In a chunked array, each chunk has its own bitmap.
        """
        return self.part_named("validity", None) if has(self, CHUNKS) else (<Tree> self).validity

    @property
    def validity_offset(self):
        """int : position of the first element's bit in `validity`, and in the `content` of kind ``"bits"``."""
        return (<Tree> self).bit

    @property
    def null_count(self):
        """int : number of elements that `validity` marks as missing, computed on first access.

        For Arrow's type null, all elements are counted. NumPy's NaT, missing categories, and missing elements of the children
        of unions and runs, are not counted. `is_null` reports them.
        """
        return count_nulls(self)

    @property
    def fields(self):
        """dict : arrays of a record by field name. Raises AttributeError if two fields have the same name."""
        cdef Tree first = self.first_chunk()
        names = self.part_named("fields", first.names if has(first, FIELDS) else None)
        check_names(first, "fields", "x.field_names and x.children", AttributeError)
        return dict(zip(names, self.children))

    @property
    def field_names(self):
        """tuple of str : names of the fields of a record, or of the children of kind ``"opaque"``. May repeat."""
        return self.part_named("field_names", self.first_chunk().names)

    @property
    def children(self):
        """tuple of USMArray or NestedArray : fields of a record, or Arrow's children, in the order of `field_names`."""
        cdef Tree t = self
        cdef Tree first = self.first_chunk()
        if has(t, CHUNKS) and has(first, FIELDS):
            return tuple([make_chunked([(<Tree> chunk).parts[k] for chunk in t.parts]) for k in range(len(first.parts))])
        return self.part_named("children", t.parts if has(t, FIELDS | FOREIGN) else None)

    @property
    def chunks(self):
        """tuple of NestedArray : chunks of an array of kind ``"chunked"``, in order; ``(x,)`` for other kinds.

        A column or a table that is imported in several chunks is one array. ``asnested(x, copy=True)`` concatenates them.

        Examples
        --------
        >>> import pyarrow
        >>> column = pyarrow.chunked_array([[1, None], [3]])
        >>> [len(chunk) for chunk in arrayhub.asnested(column).chunks]
        [2, 1]
        """
        return (<Tree> self).parts if has(self, CHUNKS) else (self,)

    @property
    def width(self):
        """int : number of elements in each row of a regular node. 0 for other kinds."""
        return (<Tree> self).width

    @property
    def meaning(self):
        """str or None : part of the type that the kind and the dtype do not determine.

        Arrow format string of kind ``"opaque"``, and of a logical type, such as a date, a time with a zone, or a map.
        ``"ordered"`` for ordered categories. For records of awkward, whether they are tuples, and their parameters as JSON.
        """
        return self.first_chunk().meaning

    @property
    def extension(self):
        """tuple or None : name and metadata (bytes) of the Arrow extension type of the elements."""
        return arrow_extension_of(self.first_chunk())

    @property
    def metadata(self):
        """dict : Arrow metadata of the field or schema. Keys and values are bytes. Exports to Arrow include the metadata."""
        return arrow_metadata_of(self.first_chunk())

    @property
    def device(self):
        """Device : device that holds the memory, or the host for arrays without memory, such as records without fields."""
        return make_device(arrow.device_of_node(self))

    @property
    def access(self):
        """str : access of the values: ``"immutable"``, ``"readonly"`` or ``"readwrite"``.

        Memory from Arrow is immutable, and so are arrays without memory: records without fields, and Arrow's type null.
        Offsets, views, indices, validity bitmaps and the buffers of kind ``"opaque"`` are never writable.
        """
        cdef Descriptor a = first_array(self)
        return "immutable" if a is None else a.access

    @property
    def protocol(self):
        """str : protocol of the import, as in ``asarray(via=)``.

        ``"constructed"`` for memory that was not imported, such as copies of Python lists. ``"arrow"`` for arrays without
        memory: records without fields, and Arrow's type null.
        """
        cdef Descriptor a = first_array(self)
        return "arrow" if a is None else a.protocol

    cdef Tree first_chunk(self):
        """Return the first chunk, or the array itself if it is not chunked. All chunks have the same type."""
        return <Tree> (<Tree> self).parts[0] if has(self, CHUNKS) else self

    cdef object part_named(self, str name, object part):
        if part is None:
            kind = KIND_NAMES[(<Tree> self).kind]     # in Cython, `self.kind` is the integer of the C struct, not the property
            raise AttributeError(f"{name}: not defined for kind {kind!r}{'; use x.chunks' if has(self, CHUNKS) else ''}")
        return part

    def __repr__(self):
        return f"NestedArray({self.type}, device='{self.device}', access='{self.access}')"

    @property
    def picture(self):
        """TextPicture : the nodes and their first elements as text. See ``arrayhub.picture``."""
        return hooks.nested.picture_of(self)

    def _repr_html_(self):
        return self.picture._repr_html_()

    # ------------------------------------------------------------------------------------------- pickle and copies

    def __reduce__(self):
        """Return the state for pickle.

        A pickle of host memory contains only the bytes that the array references. From protocol 5 on, pickle can write these
        bytes out of band.
        """
        return hooks.nested.reduce(self)

    def __copy__(self):
        """Return the array itself for ``copy.copy``, because the structure of the array cannot change."""
        return self

    def __deepcopy__(self, memo):
        """Return a copy of the referenced elements in memory of the same kind, for ``copy.deepcopy``."""
        return hooks.nested.deep_copy(self, memo)

    def __sizeof__(self):
        """Return the size in bytes, including the buffers. dask uses the size to decide which objects to move or spill."""
        return object.__sizeof__(self) + hooks.nested.nbytes(self)

    def __eq__(self, other):
        return compare(self, other, Py_EQ, _NO_COMPARISON)

    def __ne__(self, other):
        return compare(self, other, Py_NE, _NO_COMPARISON)

    __hash__ = None     # the elements can change

    # ---------------------------------------------------------------------------------------------------- elements

    def __len__(self):
        return self.length

    def __iter__(self):
        return chain.from_iterable((<Tree> self).parts) if has(self, CHUNKS) else map(self.__getitem__, range(self.length))

    def __contains__(self, value):
        raise TypeError("in: NestedArray does not compare elements. Use x.to_list()")

    def __bool__(self):
        raise ValueError("bool: the truth value of an array is ambiguous. Use len(x)")

    def __getitem__(self, key):
        """Return an element, a slice or a field.

        Numbers, rows, slices and fields are views. Strings, booleans, decimals and dicts are copied.

        Parameters
        ----------
        key : int, slice, str or tuple
            Index, slice with a step of 1, or field name. A tuple applies its keys in turn: ``x[3, 1]`` is ``x[3][1]``. After
            a slice, a tuple may have only field names.

        Returns
        -------
        USMArray, NestedArray, str, bytes, bool, Decimal, tuple, dict or None
            A number, a date or a time is a USMArray of 0 dimensions. A row of numbers is a USMArray that shares the memory
            of `content`. A missing element is None.

        Raises
        ------
        IndexError, KeyError
            The element or the field does not exist, or several fields have this name.
        ValueError
            The element is a record in which two fields have the same name.
        InterfaceError
            Offsets or indices are out of bounds, or a string is not valid UTF-8.
        BufferError
            The host cannot read the memory. The message names ``to_host()``.
        """
        cdef object node = self
        if not isinstance(key, tuple):
            return get_item(self, key)
        for k, part in enumerate(key):
            if isinstance(node, Descriptor):
                return node[key[k:]]
            if isinstance(part, slice) and not all([isinstance(later, str) for later in key[k + 1:]]):
                raise IndexError(f"index is {show(key)}; accepted: a slice before field names, or as the last key. Use"
                                 " arrayhub.as_awkward(x, copy=None)[...], or x.to_dense()[...] of rows of equal lengths")
            node = get_item(<Tree> node, part) if isinstance(node, Tree) else node[part]
        return node

    def __getattr__(self, str name):
        """Raise an AttributeError that names an alternative, if there is one."""
        cdef Tree first = self.first_chunk()
        if has(first, FIELDS) and name in first.names and not hasattr(type(self), name):
            raise AttributeError(f"{name}: NestedArray does not have this attribute; use x[{name!r}] for the field",
                                 name=name, obj=self)
        if name not in _ELSEWHERE or hasattr(type(self), name):
            return PyObject_GenericGetAttr(self, name)      # raises the usual error, or the error of a property
        raise AttributeError(f"{name}: NestedArray does not have this attribute; use {_ELSEWHERE[name]}", name=name, obj=self)

    def to_list(self):
        """Return a copy of the elements as Python objects: lists, str, bytes, numbers, None, and a dict for each record.

        Times of NumPy's types are converted as in ``numpy.ndarray.tolist``. Arrow's dates, times of day and times with a zone
        become objects of the module ``datetime``, or integers if Python cannot represent them, such as nanoseconds. pyarrow
        converts decimals to ``decimal.Decimal``, intervals, and unions. For an extension type, the elements of its storage are
        returned.

        Raises
        ------
        BufferError
            The host cannot read the memory. The message names ``to_host()``.
        ValueError
            Two fields of a record have the same name.
        """
        if not is_on_host(self):
            raise BufferError(unreadable("to_list", self.device, call="call x.to_host()"))
        return list_elements(self)

    def to_dense(self, *, copy=False):
        """Return the elements as one dense array. Rows of equal lengths, or the fields of records, become a dimension.

        Parameters
        ----------
        copy : {False, None, True}, optional
            False returns a view, or raises BufferError. None returns a view, or a copy if a view is impossible. True returns a
            copy. Packed booleans, date32, records, run-end encoded arrays, list views, and arrays of several chunks require a
            copy.

        Returns
        -------
        USMArray
            View or copy of the content, of shape ``(len(x), k, ...)``. For records, a C-ordered matrix with one row per
            record and one column per field, in NumPy's common type of the fields. The index of a pandas DataFrame is omitted.

        Raises
        ------
        ValueError
            Rows differ in length, or elements are missing. The message names the first such row or element.
        BufferError
            The innermost elements are not numbers, or a copy is needed and `copy` does not permit it.
        TypeError
            The fields of a record do not have a common type in NumPy. The message names the field.
        OverflowError
            The common type of the fields would round an integer, or a time exceeds its range. The message names the field.
        """
        if copy is None:
            return view_or_copy(make_dense, self)
        copy = check_copy(copy, "to_dense")
        result = make_dense(self, copy)
        return result.copy() if copy and not result.is_copy else result

    def is_null(self):
        """Return a boolean array (one byte per element) that is True for missing elements.

        The result is in host memory if the host can read the array, else on the array's device. Missing elements inside lists
        and records are not reported. NaT counts as missing, with two exceptions: memory from Arrow, where NaT's integer is a
        valid timestamp, and memory that the host cannot read.

        Returns
        -------
        USMArray

        Examples
        --------
        >>> arrayhub.as_numpy(arrayhub.asnested([1, None, 3]).is_null())
        array([False,  True, False])
        """
        return hooks.nested.is_null(self)

    def fill_null(self, value):
        """Return an array with `value` in place of missing elements. Parts without missing elements are shared if possible.

        Parameters
        ----------
        value : object
            A number, string or time of the element type replaces missing elements, also inside lists and records. A list
            replaces missing rows of lists. A dict contains a value for each record field to fill.

        Returns
        -------
        USMArray or NestedArray
            A USMArray if its type is dense. If elements were missing, the result is in host memory and has one chunk.

        Raises
        ------
        TypeError, OverflowError
            `value` does not fit the element type. ``as_numpy(x, missing="nan")`` converts integers to floats.
        ValueError
            A list of variable length is missing, and `value` is not a list. Also raised if `value` is not one of the
            categories, and if a dict names a field that does not exist.

        Examples
        --------
        >>> arrayhub.asnested([1, None, 3]).fill_null(0).tolist()
        [1, 0, 3]
        >>> arrayhub.asnested(["a", None]).fill_null("b").to_list()
        ['a', 'b']
        >>> arrayhub.asnested([[1], None]).fill_null([]).to_list()
        [[1], []]
        """
        return hooks.nested.fill_null(self, value)

    def to_host(self):
        """Return the array if the host can read its memory, else a host copy of the elements that the array references."""
        return hooks.nested.to_host(self)

    def to_device(self, device, /):
        """Return the array if it is on `device`, else a copy on `device` of the elements that the array references."""
        return hooks.nested.to_device(self, device)

    # ---------------------------------------------- the internal interface, which SparseArray and USMArray implement too

    def _export(self, library, copy, allow_readonly):
        """Return the array as an array of a library, which is dense unless the library has nested arrays."""
        return hooks.nested.export(self, library, copy, allow_readonly)

    def _change(self, dtype, device):
        """Return an array whose numbers have the type `dtype`, on `device`, or the array itself if nothing changes."""
        return hooks.nested.change(self, dtype, device)

    def _is_on_host(self):
        return is_on_host(self)

    def _describe(self, refcount):
        """Return the lines of `debug_repr`."""
        return hooks.nested.lines_of(self, refcount)

    # --------------------------------------------------------------------------------------------------- protocols

    def __array__(self, dtype=None, copy=None):
        """Return an ndarray for NumPy. Errors are those of `arrayhub.as_numpy`, with TypeError instead of BufferError."""
        return hooks.nested.for_array_method(self, dtype, copy)

    @property
    def __arrow_c_schema__(self):
        return arrow.bind_export(self, arrow.SCHEMA)

    @property
    def __arrow_array__(self):
        """Method for ``pyarrow.array(x)`` of a chunked array, which returns a ``pyarrow.ChunkedArray``."""
        if not has(self, CHUNKS):
            raise AttributeError("__arrow_array__: only chunked arrays have this method; use __arrow_c_array__")
        return partial(hooks.nested.chunks_to_arrow, self)

    @property
    def __arrow_c_device_array__(self):
        return arrow.bind_export(self, arrow.DEVICE_ARRAY)

    @property
    def __arrow_c_array__(self):
        return arrow.bind_export(self, arrow.ARRAY)

    @property
    def __arrow_c_stream__(self):
        return arrow.bind_export(self, arrow.STREAM)

    @property
    def __arrow_c_device_stream__(self):
        return arrow.bind_export(self, arrow.DEVICE_STREAM)


cdef str _NO_COMPARISON = (
    "a NestedArray does not implement comparison; use x.to_list(), or another library's array from as_arrow, as_polars,"
    " as_pandas or as_awkward"
)
