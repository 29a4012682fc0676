"""What a notebook shows of an array: its picture, and some of its values where they are at hand."""

import html

import numpy as np

from arrayhub._core.errors import PASSES_ON
from arrayhub.inspection.picture import picture_of
from arrayhub.libraries.numpy import ndarray
from arrayhub.usm_array import USMArray

_EDGE = 3  # values at each end of a dimension
_MOST = 24  # values that are shown without an ellipsis
_WIDTH = 100  # characters of a line


def page_of(array: USMArray) -> str:
    """Return the HTML: the picture, and under it the values at the corners, of memory of the host alone.

    Memory of a device is never read for it, be it readable: that would wait for a queue or a stream.
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
        shown = np.array2string(ndarray(array), max_line_width=_WIDTH, threshold=_MOST, edgeitems=_EDGE)
    except PASSES_ON:
        raise
    except Exception:  # types that NumPy cannot show: the picture is there all the same
        return None
    return "".join(character for character in shown if character.isprintable() or character == "\n")
