"""Class `Request`, which represents a request of the C interface in Python."""

cimport cython
from libc.string cimport memcpy

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, Descriptor, shape_tuple
from arrayhub.capi.header cimport (
    USM_ARRAY_ANYWHERE,
    USM_ARRAY_MAY_BUILD,
    USM_ARRAY_MAY_CAST,
    USM_ARRAY_MAY_RELAYOUT,
    USM_ARRAY_MAY_TRANSFER,
    USM_ARRAY_ON_CUDA,
    USM_ARRAY_ON_HOST,
    USM_ARRAY_ON_USM,
    PyUSMArrayDataType,
    PyUSMArrayRequest,
)

from arrayhub._core.errors import PASSES_ON, show

cdef enum:
    MAX_TYPES = 64      # MAX_PATTERN of the parser, inspection/datashape
    MAX_DIMS = 64

cdef dict _ORDERS = {None: 0, "C": <int> C_CONTIGUOUS, "F": <int> F_CONTIGUOUS}
cdef dict _PLACES = {
    "host": <int> USM_ARRAY_ON_HOST, "usm": <int> USM_ARRAY_ON_USM, "cuda": <int> USM_ARRAY_ON_CUDA,
    "any": <int> USM_ARRAY_ANYWHERE,
}
cdef dict _COPIES = {
    "cast": <int> USM_ARRAY_MAY_CAST, "relayout": <int> USM_ARRAY_MAY_RELAYOUT, "transfer": <int> USM_ARRAY_MAY_TRANSFER,
    "build": <int> USM_ARRAY_MAY_BUILD,
}


@cython.final
cdef class Request:
    """Request(type=None, *, ndim=None, order=None, writable=False, where="host", may=(), name=None)
--

    Conditions on an array argument, and the copies that are allowed in order to meet them.

    This is `PyUSMArrayRequest` of the C interface: a request and a C extension with the same conditions accept the same
    objects, make the same copies and raise the same errors.

    Parameters
    ----------
    type : str, optional
        Element type and lengths as a datashape: ``"float64"``, ``"n * 3 * float32"``, ``"... * {float32, float64}"``. A
        number is a length in elements. A letter, or another identifier, names a length: dimensions with the same letter must
        have the same length. ``...`` matches any number of leading dimensions. A type without dimensions does not restrict the
        shape.
    ndim : int or tuple of int, optional
        Number of dimensions, or a tuple of its minimum and maximum.
    order : {None, "C", "F"}, optional
        Required contiguity. None accepts any strides.
    writable : bool, optional
        Whether the function writes to the array. True excludes copies.
    where : str or tuple of str, optional
        Accepted memory: ``"host"`` (readable by the host), ``"usm"``, ``"cuda"`` or ``"any"``.
    may : str or tuple of str, optional
        Allowed copies: ``"cast"`` (to native byte order, or to a different element type of the same or a higher kind, in the
        order bool, integer, real, complex; a value out of the range of this type raises OverflowError), ``"relayout"`` (to a
        different order or alignment, or to native byte order), ``"transfer"`` (between host and device), ``"build"`` (from
        numbers and lists).
    name : str, optional
        Prefix of error messages, such as ``"blur: x"``.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid.

    Examples
    --------
    >>> points = Request("n * 3 * float32", may="cast")
    >>> points.asarray(np.zeros((4, 3))).dtype
    dtype('float32')
    >>> points.explain(np.zeros((4, 2), "f4"))
    'this numpy.ndarray has shape (4, 2); accepted: (any, 3)'
    >>> points.matches(np.zeros((4, 3), "f4"))
    True

    As an annotation, for `adapt` and for pydantic: ``Annotated[np.ndarray, Request("n * float64")]``.
    """

    cdef PyUSMArrayRequest r
    cdef PyUSMArrayDataType dtypes[MAX_TYPES]
    cdef Py_ssize_t lengths_[MAX_DIMS]
    cdef bytes name_
    cdef object pattern         # None if the struct expresses the type completely
    cdef object parsed          # a Pattern, or None
    cdef tuple arguments

    def __cinit__(self, type=None, *, ndim=None, order=None, writable=False, where="host", may=(), name=None):
        self.r.struct_size = sizeof(PyUSMArrayRequest)
        self.r.flags = option("order", order, _ORDERS) | (<int> WRITEABLE if writable else 0)
        self.r.where = options("where", where, _PLACES)
        self.r.may = options("may", may, _COPIES)
        if self.r.where == 0:
            raise ValueError(f"Request: where is {show(where)}; accepted: {', '.join(_PLACES)}")
        if name is not None:
            self.name_ = checked_name(name)
            self.r.name = <const char*> self.name_
        if type is not None:
            self.set_type(type)
        if ndim is not None:
            self.set_ndim(ndim)
        self.arguments = (type, ndim, order, bool(writable), where, may, name)

    cdef int set_type(self, object text) except -1:
        cdef const dtypes.ElementType* row
        cdef int k
        if not isinstance(text, str):
            raise TypeError(f"Request: type is {show(text)}; accepted: a str such as 'n * 3 * float32'")
        from arrayhub.inspection.datashape import TYPENUMS, parse_pattern      # `import arrayhub` does not need the parser

        self.parsed = parsed = parse_pattern(text)
        for k, number in enumerate(parsed.elements):
            row = dtypes.by_typenum(TYPENUMS[number])
            if row.dlpack.code == dtypes.NO_DLPACK:
                raise ValueError(f"Request: type is {show(text)}, and DLPack does not define {show(str(number))}; accepted:"
                                 " numbers, such as float32")
            self.dtypes[k] = (<const PyUSMArrayDataType*> &row.dlpack)[0]
        self.r.dtypes = self.dtypes
        self.r.ndtypes = len(parsed.elements)
        if parsed.leading:
            self.r.min_nd = len(parsed.lengths)
            self.pattern = parsed if parsed.lengths else None
        elif parsed.lengths:
            self.r.min_nd = self.r.max_nd = len(parsed.lengths)
            for k, length in enumerate(parsed.lengths):
                self.lengths_[k] = length if isinstance(length, int) else -1
            self.r.shape = self.lengths_
            letters = [length for length in parsed.lengths if isinstance(length, str)]
            self.pattern = parsed if len(set(letters)) < len(letters) else None
        return 0

    cdef int set_ndim(self, object ndim) except -1:
        least, most = ndim if isinstance(ndim, tuple) and len(ndim) == 2 else (ndim, ndim)
        if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most <= MAX_DIMS):
            raise ValueError(f"Request: ndim is {show(ndim)}; accepted: 0 to {MAX_DIMS}, or a tuple of the minimum and the"
                             " maximum")
        if self.parsed is not None and (self.r.shape != NULL or self.parsed.leading):
            if least < self.r.min_nd or self.r.shape != NULL and most > self.r.max_nd:
                raise ValueError(f"Request: ndim is {show(ndim)}; accepted: {self.r.min_nd}"
                                 f"{' or more' if self.parsed.leading else ''}, as the type requires")
        if self.r.shape != NULL:
            return 0
        self.r.min_nd, self.r.max_nd = least, most if most < MAX_DIMS else 0
        if most == 0:      # 0 as the greatest number of dimensions means no limit, unless lengths are given
            self.r.shape = self.lengths_
        return 0

    @property
    def writable(self):
        """Whether the function writes to the array."""
        return bool(self.r.flags & <int> WRITEABLE)

    def asarray(self, obj, /, *, name=None):
        """Import an array that meets the request.

        Parameters
        ----------
        obj : object
            Any object that `arrayhub.asarray` accepts.
        name : str, optional
            Prefix of error messages. The default is `name` of the request.

        Returns
        -------
        USMArray
            A view of the memory of `obj`, or one of the copies that the request allows.

        Raises
        ------
        TypeError
            `obj` is not an array, or its element type is not accepted.
        ValueError
            The shape is not accepted, or the memory is read-only.
        BufferError
            The kind of memory or the layout is not accepted.
        OverflowError
            A number is out of the range of the accepted types.

        Examples
        --------
        >>> Request("float64", may="build").asarray([1, 2]).dtype
        dtype('float64')
        """
        cdef PyUSMArrayRequest r
        cdef bytes prefix
        memcpy(&r, &self.r, sizeof(r))
        if name is not None:
            prefix = checked_name(name)
            r.name = <const char*> prefix
        cdef Descriptor a = request(obj, &r)
        if self.pattern is not None and not has_lengths(a, self.pattern):
            raise add_name(&r, error_about(ValueError, obj, f"has shape {shape_tuple(a)}; accepted: {self.pattern}"))
        return a

    def matches(self, obj, /):
        """Return whether an object meets the request without a copy.

        Parameters
        ----------
        obj : object
            Any object. The result is False if it is not an array.

        Returns
        -------
        bool

        Examples
        --------
        >>> Request("float64", order="C").matches(np.zeros((2, 3)).T)
        False
        """
        cdef Descriptor a = import_view(obj)
        return bool(a is not None and match(a, &self.r) and (self.pattern is None or has_lengths(a, self.pattern)))

    def explain(self, obj, /):
        """Return the error message of `asarray` for an object, or ``""`` if it succeeds.

        The method makes the copies that the request allows, and discards the result.

        Parameters
        ----------
        obj : object
            Any object.

        Returns
        -------
        str

        Examples
        --------
        >>> Request("float64").explain(np.zeros(3, "f4"))
        "this numpy.ndarray has elements of float32; accepted: float64. Call arrayhub.asarray(x, dtype='float64'), which copies"
        """
        words = ""
        try:
            self.asarray(obj)
        except PASSES_ON:
            raise
        except Exception as error:
            if isinstance(error, PASSES_ON):      # a MemoryError, which replaces the error if the traceback cannot be allocated
                raise
            words = str(error)
        return words

    def lengths(self, array, /):
        """Return the length that each letter of the type stands for.

        Parameters
        ----------
        array : USMArray
            An array that `asarray` of this request has returned.

        Returns
        -------
        dict of str to int
            Lengths in elements, keyed by letter.

        Examples
        --------
        >>> points = Request("n * 3 * float64")
        >>> points.lengths(points.asarray(np.zeros((4, 3))))
        {'n': 4}
        """
        if self.parsed is None:
            return {}
        shape = array.shape[len(array.shape) - len(self.parsed.lengths):]
        pairs = zip(self.parsed.lengths, shape, strict=True)
        return {letter: length for letter, length in pairs if isinstance(letter, str)}

    def __repr__(self):
        type, ndim, order, writable, where, may, name = self.arguments
        parts = [] if type is None else [repr(type)]
        given = (("ndim", ndim, None), ("order", order, None), ("writable", writable, False), ("where", where, "host"),
                 ("may", may, ()), ("name", name, None))
        parts.extend([f"{key}={value!r}" for key, value, default in given if value != default])
        return f"Request({', '.join(parts)})"

    def __eq__(self, other):
        return self.arguments == (<Request> other).arguments if isinstance(other, Request) else NotImplemented

    def __hash__(self):
        return hash(self.arguments)

    def __getnewargs_ex__(self):
        type, ndim, order, writable, where, may, name = self.arguments
        return (type,), dict(ndim=ndim, order=order, writable=writable, where=where, may=may, name=name)

    def __get_pydantic_core_schema__(self, source, handler):
        """Return the pydantic schema for ``Annotated[source, Request(...)]``."""
        from arrayhub.capi.pydantic_schema import schema_of

        return schema_of(self, source, self.parsed)


cdef bint has_lengths(Descriptor a, object pattern) except -1:
    """Return whether the last dimensions match a pattern.

    Dimensions with the same name in the pattern must have the same length.
    """
    cdef Py_ssize_t k, first = a.nd_ - len(pattern.lengths)
    named = {}
    if first < 0:
        return False
    for k, length in enumerate(pattern.lengths):
        if isinstance(length, str):
            length = named.setdefault(length, a.shape_[first + k])
        if length is not None and length != a.shape_[first + k]:
            return False
    return True


cdef int option(str argument, object given, dict accepted) except -1:
    try:
        return accepted[given]
    except (KeyError, TypeError):
        names = ", ".join([repr(key) for key in accepted])
        raise ValueError(f"Request: {argument} is {show(given)}; accepted: {names}") from None


cdef int options(str argument, object given, dict accepted) except -1:
    """Return the combined bits of one or more names."""
    cdef int bits = 0
    for word in (given,) if isinstance(given, str) else given if isinstance(given, (tuple, list, set, frozenset)) else (None,):
        bits |= option(argument, word, accepted)
    return bits


cdef bytes checked_name(object name):
    if not isinstance(name, str) or "\0" in name:
        raise TypeError(f"Request: name is {show(name)}; accepted: a str such as 'blur: x'")
    return (<str> name).encode("utf-8", "replace")
