"""Pictures of arrays. The picture of a dense array is drawn from shape and strides, and never reads the elements."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, overload

import numpy as np

from arrayhub._core.descriptor import MAX_NDIM, integer, name_of_elements
from arrayhub._core.errors import PASSES_ON, show
from arrayhub.array.usm_array import USMArray
from arrayhub.inspection.pictures.drawing import draw_svg, draw_text
from arrayhub.inspection.texts import of_bytes
from arrayhub.inspection.unread import import_view
from arrayhub.libraries.numpy import ndarray

_LIMIT = 2**63
_NARROWEST = 240  # pixels
_EDGE = 3  # number of values at each end of a dimension
_MOST_VALUES = 24  # maximum number of values that are shown without an ellipsis
_VALUES_WIDTH = 100  # maximum characters per line of values
_MOST_COUNTED = 1 << 14  # maximum number of positions that are enumerated if no formula applies


@dataclass(slots=True, eq=False, repr=False)
class Picture:
    """Memory layout of an array: shape, strides and offset in its buffer, with the drawing methods `text` and `svg`.

    ``arrayhub.picture`` creates a picture from numbers, and ``USMArray.picture`` from an array. Positions are relative
    to the start of the buffer.

    Attributes
    ----------
    shape : tuple of int
        Lengths of the dimensions, in elements.
    strides : tuple of int or None
        Strides in elements. None if they are not multiples of the item size (a field of a packed record).
    byte_strides : tuple of int or None
        Strides in bytes. None if the item size is unknown or less than a byte.
    offset : int
        Position of element zero in `unit`.
    size : int or None
        Length of the buffer in `unit`. None if unknown.
    itemsize : int or None
        Size of an element in bytes. None if unknown.
    unit : str
        ``"element"``, or ``"byte"`` if elements are not at multiples of the item size.
    dtype, memory, access, labels : str or None
        Facts for the heading of the drawing. None for a picture from numbers.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    byte_strides: tuple[int, ...] | None
    offset: int
    size: int | None
    itemsize: int | None
    dtype: str | None = None
    memory: str | None = None
    access: str | None = None
    labels: str | None = None
    steps: tuple[int, ...] = field(init=False)  # strides of the dimensions, in `unit`
    span: int = field(init=False)  # extent of an element, in `unit`
    low: int = field(init=False)  # [low, high) is the smallest range of positions that contains all elements
    high: int = field(init=False)  # `low` if the elements do not cover any position
    used: int | None = field(init=False)  # number of distinct positions that elements cover. See `_count_used`

    def __post_init__(self) -> None:
        self.steps = (self.byte_strides if self.unit == "byte" else self.strides) or ()
        self.span = (self.itemsize or 0) if self.unit == "byte" else int(self.itemsize != 0)
        self.low = self.high = self.offset
        if self.count and self.span:
            reach = [step * (length - 1) for length, step in zip(self.shape, self.steps, strict=True)]
            self.low += sum(step for step in reach if step < 0)
            self.high += sum(step for step in reach if step > 0) + self.span
        self.used = self._count_used()

    @property
    def unit(self) -> str:
        return "byte" if self.strides is None else "element"

    def text(self) -> str:
        """Draw the layout as text: the buffer as a list of elements, with ``*`` for unused positions.

        Returns
        -------
        str
            Lines in the notation of the USMArray specification, with at most 64 positions.
        """
        return draw_text(self)

    def svg(self, *, width: SupportsIndex = 768) -> str:
        """Draw the layout as SVG: the buffer by position, with the colors of a rainbow in logical order.

        Parameters
        ----------
        width : int, optional
            Maximum width in pixels. Longer lines are wrapped.

        Returns
        -------
        str
            SVG document of less than 20 kB with at most 64 elements.

        Raises
        ------
        TypeError
            `width` is not an integer.
        ValueError
            `width` is less than 240.
        """
        return draw_svg(self, _integer("width", width, least=_NARROWEST))

    def __call__(self) -> Picture:
        """Return the picture itself, so that ``x.picture()`` is the same as ``x.picture``."""
        return self

    def _repr_html_(self) -> str:
        return f'<div class="arrayhub-layout">{draw_svg(self, in_page=True)}</div>'

    @property
    def ndim(self) -> int:
        """int : number of dimensions."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """int : number of elements."""
        return math.prod(self.shape)

    @property
    def leaves_buffer(self) -> bool:
        """bool : whether an element is before the start or beyond the end of the buffer."""
        return self.low < self.high and (self.low < 0 or (self.size is not None and self.high > self.size))

    @property
    def contiguity(self) -> str:
        """str : ``"C-contiguous"``, ``"F-contiguous"``, ``"C- and F-contiguous"`` or ``"not contiguous"``."""
        orders = [order for order in "CF" if self._first_gap(order) is None]
        return f"{'- and '.join(orders)}-contiguous" if orders else "not contiguous"

    def notes(self) -> Iterator[str]:
        """Yield notes on unusual properties of the layout, such as overlapping elements."""
        if self.leaves_buffer:
            spanned = f"{self.unit}s {self.low} to {self.high - 1}"
            buffer = f"has {self.unit}s 0 to {self.size - 1}" if self.size else "is empty"
            buffer = f"begins at {self.unit} 0" if self.size is None else buffer
            span = f"It spans {spanned}, and the buffer {buffer}."
            yield f"The view extends beyond its buffer. {span} Reading it is an error."
        if self.count == 0:
            yield "The array is empty, so the strides are not used."
            return
        if self.span == 0:
            yield "Elements of zero bytes do not occupy the buffer."
            return
        if self.unit == "byte":
            size = f"{self.itemsize} bytes"
            yield f"Positions are in bytes, because elements are not at multiples of their size ({size})."
        gap = self._first_gap("C")
        if gap is not None and self._first_gap("F") is not None:
            yield f"Not contiguous: {'; '.join(self._reasons(*gap))}."
        if self.used is None:
            yield "The dimensions interleave in memory, and the array is too large to count the used positions."
        elif self.used < self.count * self.span:
            used = _many(self.used, "position" if self.unit == "element" else "byte")
            yield f"Elements share memory: {self.count} elements occupy {used}."

    def _reasons(self, dimension: int, compact: int) -> Iterator[str]:
        """Yield the reasons why the array is neither C- nor F-contiguous. See `_first_gap`."""
        yield f"dimension {dimension} steps by {_many(self.steps[dimension], self.unit)}; compact would be {compact}"
        for k, (length, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            if step < 0 and length > 1 and k != dimension:
                yield f"dimension {k} also steps backwards, by {_many(step, self.unit)}"

    def _first_gap(self, order: str) -> tuple[int, int] | None:
        """Return the fastest-varying dimension whose stride is not contiguous, and the stride that would be contiguous.

        Return None if all strides are contiguous.
        """
        if self.count == 0:
            return None
        dimensions = list(enumerate(zip(self.shape, self.steps, strict=True)))
        compact = self.span
        for k, (length, step) in dimensions if order == "F" else reversed(dimensions):
            if length != 1:
                if step != compact:
                    return k, compact
                compact *= length
        return None

    def _count_used(self) -> int | None:
        """Return the number of distinct positions, or None if a large array has elements that may overlap."""
        if self.low == self.high:
            return 0
        # The sign of a stride, and dimensions with stride 0, do not change the number.
        moving = [(abs(step), length) for length, step in zip(self.shape, self.steps, strict=True) if step]
        dimensions = [(1, self.span), *sorted(dimension for dimension in moving if dimension[1] > 1)]
        most = math.prod(length for _, length in dimensions)
        if _are_disjoint(dimensions):
            return most
        if most > _MOST_COUNTED:
            return None
        return len(set(map(sum, itertools.product(*(range(0, step * length, step) for step, length in dimensions)))))

    def __repr__(self) -> str:
        return f"Picture(shape={self.shape}, strides={self.strides}, offset={self.offset}, size={self.size})"


def _are_disjoint(dimensions: list[tuple[int, int]]) -> bool:
    """Return whether each stride is at least the extent of the previous dimensions (stride, length)."""
    extent = 1
    for stride, length in dimensions:
        if stride < extent:
            return False
        extent += stride * (length - 1)
    return True


def _many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"


class TextPicture:
    """Text that describes a nested or sparse array. Notebooks display it, and `str` and `text` return it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self) -> str:
        """Return the text."""
        return self._text

    def __call__(self) -> TextPicture:
        """Return the picture itself, so that ``x.picture()`` is the same as ``x.picture``."""
        return self

    __str__ = text

    def __repr__(self) -> str:
        return f"<TextPicture: {self._text.partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        return f'<pre class="arrayhub-layout">{html.escape(self._text)}</pre>'


@overload
def picture(
    obj: SupportsIndex | Sequence[SupportsIndex] | USMArray,
    /,
    strides: SupportsIndex | Sequence[SupportsIndex] | None = None,
    offset: SupportsIndex = 0,
    size: SupportsIndex | None = None,
    *,
    itemsize: SupportsIndex | None = None,
) -> Picture: ...
@overload
def picture(obj: Any, /) -> Picture | TextPicture: ...
def picture(
    obj: Any,
    /,
    strides: SupportsIndex | Sequence[SupportsIndex] | None = None,
    offset: SupportsIndex = 0,
    size: SupportsIndex | None = None,
    *,
    itemsize: SupportsIndex | None = None,
) -> Picture | TextPicture:
    """Return a picture of an array, or of the memory layout that numbers describe.

    The picture of a dense array shows its layout, without reading elements. A view that exceeds its buffer is drawn
    with a warning. Nested and sparse arrays are described as text, with their first elements.

    Parameters
    ----------
    obj : object
        Any array that `asarray`, `asnested` or `assparse` accepts without a copy. The result is the attribute
        ``picture`` of the imported array. An integer, and a list or tuple of integers, is a shape: the lengths of the
        dimensions, in elements.
    strides : int or sequence of int, optional
        Strides in elements, for a shape. The default is C-contiguous.
    offset : int, optional
        Distance in elements from the start of the buffer to element zero, for a shape.
    size : int, optional
        Length of the buffer in elements, for a shape. By default the length is unknown and is not checked.
    itemsize : int, optional
        Size of an element in bytes, for a shape. If given, the picture also shows strides in bytes.

    Returns
    -------
    Picture or TextPicture
        Picture, which notebooks display. The method ``text()`` returns the picture as text, and ``svg()`` of a Picture
        as a drawing.

    Raises
    ------
    TypeError
        A number is not an integer, an array is given with numbers, or the object is not an array.
    BufferError
        The array cannot be imported without a copy, or is a query or a stream that can be read only once.
    ValueError
        A length, `size` or `itemsize` is negative, the number of strides differs from the number of dimensions, there
        are more than 64 dimensions, or a number exceeds 64 bits.

    Examples
    --------
    >>> print(arrayhub.picture((4,), (-2,), offset=7, size=8).text())
    nd: 1
    shape: (4,)
    strides: (-2,)
    data: points to &buf_flat[7]
    buf_flat = { *,     a[3], *,     a[2], *,     a[1], *,   a[0] }
    addr:      {    offset-6,    offset-4,    offset-2,    offset }
    Not contiguous: dimension 0 steps by -2 elements; compact would be 1.
    >>> arrayhub.picture(numpy.zeros((2, 3))[:, ::2]).strides
    (3, 2)
    """
    if not _is_shape(obj):
        if strides is not None or size is not None or itemsize is not None or offset != 0:
            raise TypeError(
                f"picture: {show(obj)} is given with numbers; accepted: an array alone, or a shape such as x.shape with"
                " numbers"
            )
        drawn: Picture | TextPicture = import_view(obj, "picture").picture
        return drawn
    lengths = _integers("shape", obj, least=0)
    if len(lengths) > MAX_NDIM:
        raise ValueError(f"picture: shape has {len(lengths)} dimensions; accepted: at most {MAX_NDIM}")
    steps = _c_strides(lengths) if strides is None else _integers("strides", strides)
    if len(steps) != len(lengths):
        raise ValueError(f"picture: strides has {len(steps)} entries; accepted: {len(lengths)}, one per dimension")
    width = None if itemsize is None else _integer("itemsize", itemsize, least=0)
    return Picture(
        lengths,
        steps,
        None if width is None else tuple(map(width.__mul__, steps)),
        _integer("offset", offset),
        None if size is None else _integer("size", size, least=0),
        width,
    )


def _is_shape(obj: Any) -> bool:
    """Return whether `obj` is an integer, or a list or tuple. These objects do not have memory to draw."""
    cls = type(obj)
    return issubclass(cls, (list, tuple, int, np.integer)) or (
        hasattr(cls, "__index__") and not hasattr(cls, "shape")  # arrays without dimensions also have __index__
    )


def picture_of(array: USMArray) -> Picture:
    """Return the picture of an array in its memory block, for ``USMArray.picture``."""
    block = array.memory
    distance = array.ptr - block.address if array.size else 0
    facts = {"dtype": name_of_elements(array), "memory": _memory_of(array), "access": array.access}
    named = (("dims", array.dims), ("halo", array.halo))
    labels = " · ".join(f"{name} {value}" for name, value in named if value is not None) or None
    itemsize = array.itemsize
    try:
        byte_strides = array.byte_strides
    except ValueError:  # packed elements smaller than a byte do not support slices or byte strides
        return Picture(array.shape, array.strides, None, 0, array.size, None, labels=labels, **facts)
    # The stride of a dimension of length 1 is not used.
    taken = [stride for length, stride in zip(array.shape, byte_strides, strict=True) if length > 1]
    is_in_bytes = itemsize == 0 or math.gcd(distance, *taken) % itemsize != 0
    unit = 1 if is_in_bytes else itemsize
    strides = None if is_in_bytes else tuple(stride // itemsize for stride in byte_strides)
    size = None if block.nbytes is None else block.nbytes // unit
    return Picture(array.shape, strides, byte_strides, distance // unit, size, itemsize, labels=labels, **facts)


def page_of(array: USMArray) -> str:
    """Return the HTML of the picture and, for arrays in host memory, of the values, which NumPy abbreviates.

    Device memory is never read, even if the host can access it, because reading would wait for a queue or a stream.
    """
    picture: str = picture_of(array)._repr_html_()
    values = _values_of(array)
    if values is None:
        return picture
    return f'<div class="arrayhub-array">{picture}<pre>{html.escape(values)}</pre></div>'


def _values_of(array: USMArray) -> str | None:
    if array.device.type != "cpu" or array.usm_type is not None or array.size == 0:
        return None
    try:
        shown = np.array2string(ndarray(array), max_line_width=_VALUES_WIDTH, threshold=_MOST_VALUES, edgeitems=_EDGE)
    except PASSES_ON:
        raise
    except Exception:  # types that NumPy cannot print: show the picture without values
        return None
    return "".join(character for character in shown if character.isprintable() or character == "\n")


def _integers(name: str, values: Any, *, least: int = -_LIMIT) -> tuple[int, ...]:
    try:
        each = tuple(values)
    except TypeError:  # not a sequence: an integer or a 0-d array
        each = (values,)
    return tuple(_integer(name, value, least=least) for value in each)


def _integer(name: str, value: Any, *, least: int = -_LIMIT) -> int:
    number = integer(value, f"picture: {name}")
    if number < least:
        raise ValueError(f"picture: {name} is {number}; accepted: {least} or more")
    return number


def _c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = [1]
    for length in reversed(shape[1:]):
        steps.append(steps[-1] * max(length, 1))
    return tuple(reversed(steps))[: len(shape)]


def _memory_of(array: USMArray) -> str:
    nbytes = array.memory.nbytes
    size = "unknown size" if nbytes is None else of_bytes(nbytes)
    kind = f" of {array.usm_type} USM" if array.usm_type else ""
    return f"{size}{kind} on {array.device}"
