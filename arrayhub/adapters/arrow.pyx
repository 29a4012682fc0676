"""Import and export through Arrow's C data, C stream and C device data interfaces, as PyCapsules.

Sources: the specifications of the three interfaces, the PyCapsule interface, the columnar format, and the canonical
extension types ``arrow.fixed_shape_tensor`` and ``arrow.bool8``.

Each included file uses only the files above it.
"""

cimport numpy as cnp

include "arrow/format.pxi"
include "arrow/import.pxi"
include "arrow/export.pxi"

cnp.import_array()
