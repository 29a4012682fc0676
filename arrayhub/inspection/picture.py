"""How an array lies in its memory: from numbers, or from an array. The data are never read."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

from arrayhub._core.descriptor import MAX_NDIM, name_of_elements
from arrayhub._core.errors import show
from arrayhub._core.integers import integer
from arrayhub.inspection.geometry import Geometry
from arrayhub.inspection.units import of_bytes
from arrayhub.usm_array import USMArray

_LIMIT = 2**63
_NARROWEST = 240  # pixels


class Picture(Geometry):
    """Shape, strides and offset of an array in its buffer, which `text` and `svg` draw.

    Made by ``arrayhub.picture`` from numbers alone, and by ``USMArray.picture`` from an array. Positions count from the
    start of the buffer.

    Attributes
    ----------
    shape : tuple of int
        Lengths of the dimensions, in elements.
    strides : tuple of int or None
        Steps in elements; None where they are no whole numbers of elements (a field of a packed record).
    byte_strides : tuple of int or None
        Steps in bytes; None where the size of an element is unknown or less than a byte.
    offset : int
        Position of element zero: in elements, or in bytes where `unit` is ``"byte"``.
    size : int or None
        Length of the buffer in the same unit; None where it is unknown.
    itemsize : int or None
        Size of an element in bytes; None where it is unknown.
    unit : str
        ``"element"``, or ``"byte"`` where elements do not lie at whole multiples of their size.
    dtype, memory, access, labels : str or None
        What else the array's heading says; None for a layout without an array.
    """

    __slots__ = ()

    def text(self) -> str:
        """Draw the layout as text: the buffer as a list of elements, ``*`` for the places between them.

        Returns
        -------
        str
            Some lines, in the notation of the specification of USMArray. At most 64 places are written out.
        """
        from arrayhub.inspection.picture_text import draw

        return draw(self)

    def svg(self, *, width: SupportsIndex = 768) -> str:
        """Draw the layout as a picture: the array by index, and under it the buffer by position.

        An element has the same colour in both.

        Parameters
        ----------
        width : int, optional
            How wide the picture may become, in pixels: lines that are longer are broken.

        Returns
        -------
        str
            An SVG document of less than 20 kB, whatever the array; at most 64 elements are drawn.

        Raises
        ------
        TypeError
            `width` is no integer.
        ValueError
            `width` is less than 240.
        """
        from arrayhub.inspection.picture_svg import draw

        return draw(self, _integer("width", width, least=_NARROWEST))

    def _repr_html_(self) -> str:
        from arrayhub.inspection.picture_svg import draw_for_page

        return draw_for_page(self)

    def __repr__(self) -> str:
        return f"Picture(shape={self.shape}, strides={self.strides}, offset={self.offset}, size={self.size})"


def picture(
    shape: SupportsIndex | Sequence[SupportsIndex],
    strides: SupportsIndex | Sequence[SupportsIndex] | None = None,
    offset: SupportsIndex = 0,
    size: SupportsIndex | None = None,
    *,
    itemsize: SupportsIndex | None = None,
) -> Picture:
    """Describe how an array would lie in a buffer, from numbers alone.

    Nothing is allocated and nothing is checked against memory: a view that leaves its buffer is drawn as it is.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the dimensions, in elements.
    strides : int or sequence of int, optional
        Steps of the dimensions, in elements; C-contiguous by default.
    offset : int, optional
        Elements from the start of the buffer to element zero.
    size : int, optional
        Length of the buffer in elements; by default it is unknown, and counts as long enough.
    itemsize : int, optional
        Bytes an element takes. With it, strides are said in bytes too.

    Returns
    -------
    Picture
        Shows itself in a notebook; ``text()`` and ``svg()`` draw it.

    Raises
    ------
    TypeError
        Something that is no integer, or an array for a shape: its picture is ``arrayhub.asarray(x).picture``.
    ValueError
        A negative length, size or item size; other than one stride a dimension; more than 64 dimensions; a number that
        does not fit 64 bits.

    Examples
    --------
    >>> print(arrayhub.picture((4,), (-2,), offset=7, size=8).text())
    nd: 1
    shape: (4,)
    strides: (-2,)
    data: points to &buf_flat[7]
    buf_flat = { *,     a[3], *,     a[2], *,     a[1], *,   a[0] }
    addr:      {    offset-6,    offset-4,    offset-2,    offset }
    """
    if getattr(shape, "ndim", 0):  # whose elements would be taken for lengths
        raise TypeError(
            f"picture: shape has {show(shape)}, an array; accepted: an integer, or a sequence of them as x.shape is. An"
            " array's own picture is arrayhub.asarray(x).picture"
        )
    lengths = _integers("shape", shape, least=0)
    if len(lengths) > MAX_NDIM:
        raise ValueError(f"picture: shape has {len(lengths)} dimensions; accepted: at most {MAX_NDIM}")
    steps = _c_strides(lengths) if strides is None else _integers("strides", strides)
    if len(steps) != len(lengths):
        raise ValueError(f"picture: strides has {len(steps)} entries, shape has {len(lengths)}; accepted: as many")
    width = None if itemsize is None else _integer("itemsize", itemsize, least=0)
    return Picture(
        lengths,
        steps,
        None if width is None else tuple(step * width for step in steps),
        _integer("offset", offset),
        None if size is None else _integer("size", size, least=0),
        width,
    )


def picture_of(array: USMArray) -> Picture:
    """Describe how an array lies in its memory block: what ``USMArray.picture`` gives."""
    block = array.memory
    distance = array.ptr - block.address if array.size else 0
    facts = {"dtype": name_of_elements(array), "memory": _memory_of(array), "access": array.access}
    labels = _labels_of(array)
    itemsize = array.itemsize
    try:
        byte_strides = array.byte_strides
    except ValueError:  # elements of less than a byte: only their number is known, and such arrays have no views
        return Picture(array.shape, array.strides, None, 0, array.size, None, labels=labels, **facts)
    # Nobody steps along a dimension of one element, so its stride decides nothing.
    taken = [stride for length, stride in zip(array.shape, byte_strides, strict=True) if length > 1]
    whole = itemsize > 0 and not any(number % itemsize for number in (distance, *taken))
    if not whole:
        return Picture(
            array.shape, None, byte_strides, distance, block.nbytes, itemsize, "byte", labels=labels, **facts
        )
    strides = tuple(stride // itemsize for stride in byte_strides)
    size = None if block.nbytes is None else block.nbytes // itemsize
    return Picture(array.shape, strides, byte_strides, distance // itemsize, size, itemsize, labels=labels, **facts)


def _integers(name: str, values: Any, *, least: int = -_LIMIT) -> tuple[int, ...]:
    try:
        each = tuple(values)
    except TypeError:  # no sequence: an integer, or an array without dimensions, which is one
        each = (values,)
    return tuple(_integer(name, value, least=least) for value in each)


def _integer(name: str, value: Any, *, least: int = -_LIMIT) -> int:
    number = integer(value, f"picture: {name}")
    if number < least:
        raise ValueError(f"picture: {name} has {number}; accepted: {least} or more")
    return number


def _c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = [1]
    for length in reversed(shape[1:]):
        steps.append(steps[-1] * max(length, 1))
    return tuple(reversed(steps))[: len(shape)]


def _labels_of(array: USMArray) -> str | None:
    said = [f"{name} {value}" for name, value in (("dims", array.dims), ("halo", array.halo)) if value is not None]
    return " · ".join(said) or None


def _memory_of(array: USMArray) -> str:
    nbytes = array.memory.nbytes
    size = "unknown size" if nbytes is None else of_bytes(nbytes)
    kind = f" of {array.usm_type} USM" if array.usm_type else ""
    return f"{size}{kind} on {array.device}"
