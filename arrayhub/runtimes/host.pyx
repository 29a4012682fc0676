"""Views of arrays for the host or for a caller's stream.

- host_memory: host-readable memory as host memory
- streams: the argument ``stream=``
"""

include "host_memory.pxi"
include "streams.pxi"
