"""Copies in host memory.

- tiles: copy between any two layouts
- gather: select the bytes that the elements of an array occupy
- check_out: compare the two arrays of a copy: validation of `out`, broadcasting, overlap
"""

include "tiles.pxi"
include "gather.pxi"
include "check_out.pxi"
