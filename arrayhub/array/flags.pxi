"""Flags of an array, with NumPy's names."""

cimport cython

from arrayhub._core.descriptor cimport ALIGNED, C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, Descriptor

from arrayhub._core.errors import show

# One row per flag of numpy.ndarray.flags: its attribute and its keys.
_KEYS = {
    "c_contiguous": ("C_CONTIGUOUS", "CONTIGUOUS", "C"),
    "f_contiguous": ("F_CONTIGUOUS", "FORTRAN", "F"),
    "owndata": ("OWNDATA", "O"),
    "writeable": ("WRITEABLE", "W"),
    "aligned": ("ALIGNED", "A"),
    "writebackifcopy": ("WRITEBACKIFCOPY", "X"),
    "fnc": ("FNC",),
    "forc": ("FORC",),
    "behaved": ("BEHAVED", "B"),
    "carray": ("CARRAY", "CA"),
    "farray": ("FARRAY", "FA"),
}
_ATTRIBUTES = {key: attribute for attribute, keys in _KEYS.items() for key in keys}


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
    def c_contiguous(self):
        return bool(self.owner().flags_ & C_CONTIGUOUS)

    @property
    def f_contiguous(self):
        return bool(self.owner().flags_ & F_CONTIGUOUS)

    @property
    def aligned(self):
        return bool(self.owner().flags_ & ALIGNED)

    @property
    def writeable(self):
        return bool(self.owner().flags_ & WRITEABLE)

    @writeable.setter
    def writeable(self, value):
        cdef Descriptor array = self.owner()
        if not value:
            array.flags_ &= ~WRITEABLE
        elif not array.flags_ & WRITEABLE:
            raise ValueError("flags.writeable: a read-only array cannot be made writeable; use x.copy()")

    @property
    def owndata(self):
        return False

    @property
    def writebackifcopy(self):
        return False

    @property
    def contiguous(self):
        return self.c_contiguous

    @property
    def fnc(self):
        return self.f_contiguous and not self.c_contiguous

    @property
    def fortran(self):
        return self.f_contiguous

    @property
    def forc(self):
        return self.f_contiguous or self.c_contiguous

    @property
    def behaved(self):
        return self.aligned and self.writeable

    @property
    def carray(self):
        return self.behaved and self.c_contiguous

    @property
    def farray(self):
        return self.behaved and self.fnc

    @property
    def num(self):
        return self.c_contiguous | self.f_contiguous << 1 | self.aligned << 8 | self.writeable << 10

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
