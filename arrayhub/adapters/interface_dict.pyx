"""The interface dicts of host, CUDA and SYCL memory, and ``__array_struct__``: parse and emit.

Each part uses the parts above it:

- keys: read the values of a dict, and make the errors that name a key
- typestr: element types from type strings and from descriptions of fields
- shared_keys: an array from the keys that all three dicts have
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
