"""The flags of one array, under NumPy's names too."""

cimport cython

from arrayhub._core.descriptor cimport ALIGNED, C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, Descriptor

from arrayhub._core.errors import show

# One row per flag of numpy.ndarray.flags: the attribute that says it, and its keys.
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
    """What the layout and the access of one array are. Keys and attributes are those of ``numpy.ndarray.flags``.

    Attributes
    ----------
    c_contiguous, f_contiguous : bool
        Computed from shape and strides; strides of length-1 dimensions do not count.
    aligned : bool
        Whether every element lies on a boundary of its type's alignment.
    writeable : bool
        May be set to False, for this array alone; never back to True.
    owndata : bool
        False: the memory is that of ``base``, which views share.
    writebackifcopy : bool
        False: nothing is ever written back.
    contiguous, fortran : bool
        The same as `c_contiguous` and `f_contiguous`.
    forc, fnc : bool
        One of the two orders; Fortran order that is not C order too.
    behaved, carray, farray : bool
        Aligned and writeable; and besides in C order, or in Fortran order that is not C order too.
    num : int
        NumPy's number for all of them.
    """

    cdef Descriptor owner(self):
        if self.array is None:
            raise TypeError("Flags: these are the flags of no array; take x.flags")
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
            raise ValueError("flags.writeable: the array is read-only and stays so; x.copy() can be written")

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
            raise ValueError(f"flags[{show(key)}]: follows from the array; accepted: 'WRITEABLE'")
        self.writeable = value

    def __repr__(self):
        names = ("c_contiguous", "f_contiguous", "aligned", "writeable")
        return "Flags(" + ", ".join(f"{name}={getattr(self, name)}" for name in names) + ")"


cdef str attribute_of(object key):
    if not isinstance(key, str) or key not in _ATTRIBUTES:
        raise KeyError(f"flags: no flag is called {show(key)}; accepted: {', '.join(_ATTRIBUTES)}")
    return _ATTRIBUTES[key]


cdef Flags flags_of(Descriptor a):
    cdef Flags flags = Flags.__new__(Flags)
    flags.array = a
    return flags
