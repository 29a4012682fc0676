"""Flags of an array, with NumPy's names."""

cimport cython

from arrayhub._core.descriptor cimport ALIGNED, C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, Descriptor

from arrayhub._core.errors import show

_NAMES = (
    "c_contiguous", "contiguous", "f_contiguous", "fortran", "owndata", "writeable", "aligned", "writebackifcopy", "fnc",
    "forc", "behaved", "carray", "farray",
)
# The attribute of each key.
_ATTRIBUTES = {
    **{name.upper(): name for name in _NAMES},
    "C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned", "X": "writebackifcopy",
    "B": "behaved", "CA": "carray", "FA": "farray",
}


def _flag(mask, value=None):
    """Return a property that is true if NumPy's bits in `mask` have a value, by default all of them 1."""
    return property(lambda flags: flags.num & mask == (mask if value is None else value))


@cython.final
cdef class Flags:
    """Flags of the layout and access of an array, with the keys and attributes of ``numpy.ndarray.flags``.

    Attributes
    ----------
    c_contiguous, f_contiguous : bool
        Computed from shape and strides. Strides of dimensions of length 1 are ignored.
    aligned : bool
        Whether every element is aligned for its type.
    writeable : bool
        May be set to False for this array, but not back to True.
    owndata : bool
        Always False, because ``base`` owns the memory.
    writebackifcopy : bool
        Always False.
    contiguous, fortran : bool
        Aliases of `c_contiguous` and `f_contiguous`.
    forc : bool
        `f_contiguous` or `c_contiguous`.
    fnc : bool
        `f_contiguous` and not `c_contiguous`.
    behaved : bool
        `aligned` and `writeable`.
    carray : bool
        `behaved` and `c_contiguous`.
    farray : bool
        `behaved` and `fnc`.
    num : int
        The flags as NumPy's bit mask.
    """
    cdef Descriptor array

    cdef Descriptor owner(self):
        if self.array is None:
            raise TypeError("Flags: the object does not belong to an array; use x.flags")
        return self.array

    @property
    def num(self):
        cdef int flags = self.owner().flags_
        return flags & (C_CONTIGUOUS | F_CONTIGUOUS | ALIGNED) | (0x400 if flags & WRITEABLE else 0)

    c_contiguous = contiguous = _flag(0x1)
    f_contiguous = fortran = _flag(0x2)
    fnc = _flag(0x3, 0x2)
    owndata = _flag(0x4)
    aligned = _flag(0x100)
    behaved = _flag(0x500)
    carray = _flag(0x501)
    farray = _flag(0x503, 0x502)
    writebackifcopy = _flag(0x2000)

    @property
    def forc(self):
        return self.num & 0x3 != 0

    @property
    def writeable(self):
        return self.num & 0x400 != 0

    @writeable.setter
    def writeable(self, value):
        cdef Descriptor array = self.owner()
        if not value:
            array.flags_ &= ~WRITEABLE
        elif not self.writeable:
            raise ValueError("flags.writeable: a read-only array cannot be made writeable; use x.copy()")

    def __getitem__(self, key):
        return getattr(self, attribute_of(key))

    def __setitem__(self, key, value):
        if attribute_of(key) != "writeable":
            raise ValueError(f"flags[{show(key)}]: the flag is computed and cannot be set; accepted: 'WRITEABLE'")
        self.writeable = value

    def __repr__(self):
        names = ("c_contiguous", "f_contiguous", "aligned", "writeable")
        return "Flags(" + ", ".join(f"{name}={getattr(self, name)}" for name in names) + ")"


cdef str attribute_of(object key):
    if not isinstance(key, str) or key not in _ATTRIBUTES:
        raise KeyError(f"flags: {show(key)} is not the name of a flag; accepted: {', '.join(_ATTRIBUTES)}")
    return _ATTRIBUTES[key]


cdef Flags flags_of(Descriptor a):
    cdef Flags flags = Flags.__new__(Flags)
    flags.array = a
    return flags
