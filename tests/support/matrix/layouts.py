"""The layouts of the matrix: a compact shape, and an indexing operation."""

from typing import NamedTuple


class Layout(NamedTuple):
    """One layout.

    Attributes
    ----------
    base : tuple of int
        Shape of a compact array.
    view : callable or None
        Returns a view of the compact array, which may be an array of any library with NumPy indexing. None for
        "broadcast", for which each producer calls a function of its library.
    contiguous : str
        "C", "F", or "" if the view is not compact.
    """

    name: str
    base: tuple
    view: object
    contiguous: str


def _whole(x):
    return x


LAYOUTS = {
    layout.name: layout
    for layout in [
        Layout("C", (3, 4), _whole, "C"),
        Layout("F", (4, 3), lambda x: x.T, "F"),
        Layout("sliced", (6, 9), lambda x: x[1::2, 1::2], ""),
        Layout("negative", (3, 4), lambda x: x[::-1, ::-1], ""),
        Layout("broadcast", (1, 4), None, ""),
        Layout("0-d", (), _whole, "C"),
        Layout("empty", (0, 4), _whole, "C"),
        Layout("unaligned", (3, 4), _whole, "C"),
        Layout("read-only", (3, 4), _whole, "C"),
        Layout("1-d", (12,), _whole, "C"),  # for producers of one-dimensional arrays
        Layout("1-d offset", (14,), lambda x: x[2:], "C"),
        Layout("1-d empty", (0,), _whole, "C"),
    ]
}
ALL = ["C", "F", "sliced", "negative", "broadcast", "0-d", "empty", "unaligned", "read-only"]
