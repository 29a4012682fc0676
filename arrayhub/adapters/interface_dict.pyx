"""Import and export through the interface dicts of host, CUDA and SYCL memory, and ``__array_struct__``.

Each included file uses only the files above it:

- keys: reading of a dict's values, and errors that name a key
- typestr: element types from type strings and from descriptions of fields
- shared_keys: the keys that all three dicts contain
- array_interface: ``__array_interface__`` and ``__array_struct__``
- cuda_array: ``__cuda_array_interface__``
- sycl_usm: ``__sycl_usm_array_interface__``
"""

include "interface_dict/keys.pxi"
include "interface_dict/typestr.pxi"
include "interface_dict/shared_keys.pxi"
include "interface_dict/array_interface.pxi"
include "interface_dict/cuda_array.pxi"
include "interface_dict/sycl_usm.pxi"
