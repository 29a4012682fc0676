"""Copies in host memory.

- tiles: copy between any two layouts
- gather: select the bytes that the elements of an array occupy
- check_out: validate `out` against the source (compatibility, broadcasting, overlap)
"""

include "tiles.pxi"
include "gather.pxi"
include "check_out.pxi"
