"""A small array library that does not support any protocol. An entry point adds the library to arrayhub."""


class Slate:
    """One-dimensional array that stores the buffer of any object in a private attribute."""

    def __init__(self, cells):
        self._cells = memoryview(cells)

    @property
    def shape(self):
        return self._cells.shape


class Chalk(Slate):
    """A subclass, which is imported like its base."""


class Draft:
    """A result that is not computed yet."""

    def __init__(self, function):
        self._function = function

    def compute(self):
        return Slate(self._function())
