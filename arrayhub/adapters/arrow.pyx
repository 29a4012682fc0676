"""Import and export through Arrow's C data, C stream and C device data interfaces, as PyCapsules.

Sources: the specifications of the three interfaces, the PyCapsule interface, the columnar format, and the canonical
extension types ``arrow.fixed_shape_tensor`` and ``arrow.bool8``.

Each included file uses only the files above it.
"""

cimport numpy as cnp

include "arrow/abi.pxi"          # the structs and names of the interfaces
include "arrow/format.pxi"       # the table of formats
include "arrow/owner.pxi"        # release of a producer's structs
include "arrow/extension.pxi"    # canonical extension types and their metadata
include "arrow/parse.pxi"        # import of structs as arrays and nodes
include "arrow/schema.pxi"       # export of types as schemas; requested schemas
include "arrow/emit.pxi"         # export of arrays and nodes as structs
include "arrow/device.pxi"       # memory on devices, and events
include "arrow/stream.pxi"       # streams of chunks
include "arrow/importer.pxi"     # selection of an object's interface
include "arrow/methods.pxi"      # the methods of an array

cnp.import_array()
