"""Copies between host memory and CUDA devices.

- cuda_route: order in which a copy visits the words of both arrays
- cuda_stream: copies on one stream, and the kernel that reorders words
- cuda_lanes: copies by several threads through pinned memory
- lock: lock of the pinned memory
"""

include "cuda_route.pxi"
include "cuda_stream.pxi"
include "cuda_lanes.pxi"
include "lock.pxi"
