"""Copies in host memory.

- tiles: copy between any two layouts
- gather: select the bytes that the elements of an array occupy
- check_out: validate the argument `out` of a copy
"""

include "tiles.pxi"
include "gather.pxi"
include "check_out.pxi"
