"""Pictures of arrays. The picture of a dense array is drawn from shape and strides, and never reads the elements."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from arrayhub._core.descriptor import MAX_NDIM, name_of_elements
from arrayhub._core.errors import PASSES_ON, show
from arrayhub.array.usm_array import USMArray
from arrayhub.inspection.pictures.drawing import LIMIT, Picture, to_integer
from arrayhub.inspection.texts import of_bytes
from arrayhub.inspection.unread import import_view
from arrayhub.libraries.numpy import ndarray

_EDGE = 3  # number of values at each end of a dimension
_MOST_VALUES = 24  # maximum number of values that are shown without an ellipsis
_VALUES_WIDTH = 100  # maximum characters per line of values


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
    compact = tuple(math.prod(max(length, 1) for length in lengths[k + 1 :]) for k in range(len(lengths)))
    steps = compact if strides is None else _integers("strides", strides)
    if len(steps) != len(lengths):
        raise ValueError(f"picture: strides has {len(steps)} entries; accepted: {len(lengths)}, one per dimension")
    width = None if itemsize is None else to_integer("itemsize", itemsize, least=0)
    return Picture(
        lengths,
        steps,
        None if width is None else tuple(map(width.__mul__, steps)),
        to_integer("offset", offset),
        None if size is None else to_integer("size", size, least=0),
        width,
    )


def _is_shape(obj: Any) -> bool:
    """Return whether `obj` is an integer, or a list or tuple. These objects do not have memory to draw."""
    cls = type(obj)
    return issubclass(cls, (list, tuple, int, np.integer)) or (
        hasattr(cls, "__index__") and not hasattr(cls, "ndim")  # classes of arrays also have __index__
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


def _integers(name: str, values: Any, *, least: int = -LIMIT) -> tuple[int, ...]:
    try:
        each = tuple(values)
    except TypeError:  # not a sequence: an integer or a 0-d array
        each = (values,)
    return tuple(to_integer(name, value, least=least) for value in each)


def _memory_of(array: USMArray) -> str:
    nbytes = array.memory.nbytes
    size = "unknown size" if nbytes is None else of_bytes(nbytes)
    kind = f" of {array.usm_type} USM" if array.usm_type else ""
    return f"{size}{kind} on {array.device}"
