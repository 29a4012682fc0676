"""A small array library without a protocol: what another project adds to arrayhub by an entry point."""


class Slate:
    """An array of one dimension over any object with a buffer, at a private attribute."""

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
