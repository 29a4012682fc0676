"""HTML representation of an array in notebooks: its picture and, for host arrays, its values."""

import html

import numpy as np

from arrayhub._core.errors import PASSES_ON
from arrayhub.array.usm_array import USMArray
from arrayhub.inspection.pictures.picture import picture_of
from arrayhub.libraries.numpy import ndarray

_EDGE = 3  # number of values at each end of a dimension
_MOST = 24  # maximum number of values that are shown without an ellipsis
_WIDTH = 100  # maximum characters per line


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
        shown = np.array2string(ndarray(array), max_line_width=_WIDTH, threshold=_MOST, edgeitems=_EDGE)
    except PASSES_ON:
        raise
    except Exception:  # types that NumPy cannot print: show the picture without values
        return None
    return "".join(character for character in shown if character.isprintable() or character == "\n")
