"""Import and export Arrow's canonical extension types ``arrow.fixed_shape_tensor`` and ``arrow.bool8``."""

import numpy as np

from libc.stdint cimport int32_t
from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport Descriptor, labels_of, reshape, set_labels, set_type, size_of, transpose
from arrayhub._core.tree cimport Tree

from arrayhub._core.errors import interface_error
from arrayhub._core.descriptor import named

cdef enum:
    BOOL_CODE = 6                  # DLPack's kDLBool
    MAX_PAIRS = 4096               # in the metadata of a schema
    MAX_METADATA = 1 << 20         # bytes of one string


cdef dict pairs_of(ArrowSchema* schema):
    """Return the metadata of a schema as a dict, including the name and the metadata of the extension type."""
    cdef const char* metadata = schema.metadata
    cdef Py_ssize_t at = 4, n
    cdef int32_t length
    cdef list strings
    cdef dict found = {}
    memcpy(&length, metadata, 4)
    n = length
    if n < 0 or n > MAX_PAIRS:
        raise interface_error("Arrow", f"{text_of(schema.format)} schema's metadata", n, f"0 to {MAX_PAIRS} pairs")
    for _ in range(n):
        strings = []
        for _ in range(2):
            memcpy(&length, metadata + at, 4)
            if length < 0 or length > MAX_METADATA:
                raise interface_error("Arrow", f"{text_of(schema.format)} schema's metadata's length of a string", length,
                                      f"0 to {MAX_METADATA} bytes")
            strings.append(metadata[at + 4 : at + 4 + length])
            at += 4 + length
        found[strings[0]] = strings[1]
    return found


cdef object extended(object node, ArrowSchema* schema):
    """Return the array of a canonical extension type. For other types, return the storage, as the specification permits."""
    cdef dict pairs = pairs_of(schema)
    name = pairs.get(b"ARROW:extension:name")
    if isinstance(node, Tree) or name is None:
        return node
    if name == b"arrow.bool8" and schema.format[0] == c"c":
        return as_bool(<Descriptor> node)
    if name == b"arrow.fixed_shape_tensor" and schema.format[0] == c"+" and (<Descriptor> node).nd_ == 2:
        return tensor_of(<Descriptor> node, pairs.get(b"ARROW:extension:metadata", b""))
    return node


cdef Descriptor as_bool(Descriptor a):
    set_type(a, dtypes.by_typestr(c"b", 1))
    return a


cdef Descriptor tensor_of(Descriptor flat, bytes metadata):
    """Return the tensor that the metadata of ``arrow.fixed_shape_tensor`` describes.

    `shape` and `dim_names` are in memory order. `permutation` contains, for each dimension of the tensor, the position of
    this dimension in memory order.
    """
    fields = json_of(metadata)
    shape = list_in(fields, "shape", int)
    if shape is None or any([length < 0 for length in shape]):
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, "lengths of zero or more")
    order = list_in(fields, "permutation", int)
    names = list_in(fields, "dim_names", str)
    size = 1
    for length in shape:
        size *= length
    if size != flat.shape_[1]:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"lengths whose product is {flat.shape_[1]}, the"
                              " length of the list")
    if order is None:
        order = list(range(len(shape)))
    if sorted(order) != list(range(len(shape))):
        raise interface_error("arrow.fixed_shape_tensor", "permutation", order, f"the numbers 0 to {len(shape) - 1}, each once")
    if names is not None and len(names) != len(shape):
        raise interface_error("arrow.fixed_shape_tensor", "dim_names", names, f"{len(shape)} names")
    if len(shape) >= layout.MAX_NDIM:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"at most {layout.MAX_NDIM - 1} dimensions")
    a = transpose(reshape(flat, (flat.shape_[0], *shape)), [0, *[1 + axis for axis in order]])
    if names is not None and len(set(names)) == len(names):
        set_labels(a, named((None, *[names[axis] for axis in order])))
    return a


cdef dict json_of(bytes metadata):
    import json      # on first use: importing json takes a tenth of the package's import time

    try:
        fields = json.loads(metadata.decode())
    except (ValueError, RecursionError):
        fields = None
    if type(fields) is not dict:
        raise interface_error("arrow.fixed_shape_tensor", "metadata", metadata, 'JSON such as {"shape": [2, 3]}')
    return fields


cdef object list_in(dict fields, str key, type kind):
    values = fields.get(key)
    if values is None:
        return None
    if type(values) is not list or not all([type(value) is kind and (kind is str or abs(value) < 1 << 62) for value in values]):
        raise interface_error("arrow.fixed_shape_tensor", key, values, f"a list of {kind.__name__}")
    return values


# ------------------------------------------------------------------------------------------------------------------ export


cdef bytes metadata_of(bytes name, bytes metadata):
    """Return the schema metadata of an extension type: its name and its metadata."""
    cdef list strings = [b"ARROW:extension:name", name, b"ARROW:extension:metadata", metadata]
    return np.int32(2).tobytes() + b"".join([np.int32(len(s)).tobytes() + s for s in strings])


cdef bytes _BOOL8 = metadata_of(b"arrow.bool8", b"")


cdef bytes bool8_metadata():
    return _BOOL8


cdef list memory_order(Descriptor a):
    """Return the axes after the first by decreasing stride, or None if the array is not contiguous in this order."""
    cdef Py_ssize_t expected = a.itemsize_
    cdef list order = sorted(range(1, a.nd_), key=lambda axis: -a.byte_strides_[axis])
    if size_of(a) == 0:
        return list(range(1, a.nd_))
    for axis in reversed(order):
        if a.shape_[axis] != 1:
            if a.byte_strides_[axis] != expected:
                return None
            expected *= a.shape_[axis]
    return None if a.shape_[0] > 1 and a.byte_strides_[0] != expected else order


cdef bytes tensor_metadata(Descriptor a, list order):
    """Return the schema metadata of a tensor; see `tensor_of`."""
    import json

    fields = {"shape": [a.shape_[axis] for axis in order]}
    if order != sorted(order):
        fields["permutation"] = [order.index(axis) for axis in range(1, a.nd_)]
    dims = getattr(labels_of(a), "dims", None)
    if dims is not None and None not in dims[1:]:
        fields["dim_names"] = [dims[axis] for axis in order]
    return metadata_of(b"arrow.fixed_shape_tensor", json.dumps(fields).encode())
