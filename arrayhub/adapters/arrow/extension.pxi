"""Import and export Arrow's canonical extension types ``arrow.fixed_shape_tensor`` and ``arrow.bool8``."""

import sys

import numpy as np

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    Descriptor,
    labels_of,
    make_dims,
    reshape,
    set_labels,
    set_type,
    shape_tuple,
    size_of,
    transpose,
)
from arrayhub._core.tree cimport (
    CHUNKS,
    FIELDS,
    FOREIGN,
    INDICES,
    LISTS,
    NUMBERS,
    REGULAR,
    WIDTH,
    Tree,
    bit_at,
    flat,
    has,
    is_missing,
    new_chunked,
    new_tree,
    same_node,
)

from arrayhub._core.errors import Refusal, interface_error

cdef enum:
    BOOL_CODE = 6                  # DLPack's kDLBool
    MAX_PAIRS = 4096               # maximum number of key-value pairs in the metadata of a schema
    MAX_METADATA = 1 << 20         # maximum size of one key or value, in bytes


cdef bytes raw_metadata(ArrowSchema* schema):
    """Return the encoded metadata of a schema, whose lengths are validated, or None."""
    cdef Py_ssize_t at = 4
    cdef int32_t count, length
    if schema.metadata == NULL:
        return None
    memcpy(&count, schema.metadata, 4)
    if count < 0 or count > MAX_PAIRS:
        raise interface_error("Arrow", f"{text_of(schema.format)} schema's metadata", count, f"0 to {MAX_PAIRS} pairs")
    for _ in range(2 * <Py_ssize_t> count):
        memcpy(&length, schema.metadata + at, 4)
        if length < 0 or length > MAX_METADATA:
            raise interface_error("Arrow", f"{text_of(schema.format)} schema's metadata: length of a key or value", length,
                                  f"0 to {MAX_METADATA} bytes")
        at += 4 + length
    return schema.metadata[:at]


cdef dict pairs_in(bytes metadata):
    """Return the key-value pairs of encoded metadata from `raw_metadata`, which may be None."""
    cdef Py_ssize_t at = 4
    cdef list strings = []
    while metadata is not None and at < len(metadata):
        size = int.from_bytes(metadata[at : at + 4], sys.byteorder)
        strings.append(metadata[at + 4 : at + 4 + size])
        at += 4 + size
    return dict(zip(strings[::2], strings[1::2]))


cdef dict pairs_of(ArrowSchema* schema):
    """Return the metadata of a schema as a dict, including the name and the metadata of the extension type."""
    return pairs_in(raw_metadata(schema))


cdef tuple field_of(ArrowSchema* schema, const char* conventional):
    """Return the name, flags and metadata of a child's schema, or None if all three are the defaults.

    The name is None if it equals `conventional`. Pass NULL as `conventional` if the parent node stores the names of its
    children. The name is then always None.
    """
    cdef bint usual = conventional == NULL or schema.name == NULL or strcmp(schema.name, conventional) == 0
    cdef int64_t flags = schema.flags & (ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED)
    if usual and schema.metadata == NULL and flags == ARROW_FLAG_NULLABLE:
        return None
    return (None if usual else <bytes> schema.name, flags, raw_metadata(schema))


cdef tuple fields_of(ArrowSchema* schema, const char* conventional):
    """Return a tuple with the result of `field_of` for each child, or None if all results are None."""
    cdef int64_t k
    for k in range(schema.n_children):
        if field_of(schema.children[k], conventional) is not None:
            return tuple([field_of(schema.children[k], conventional) for k in range(schema.n_children)])
    return None


cdef inline tuple child_field(Tree t, Py_ssize_t k):
    return None if t.child_fields is None or k >= len(t.child_fields) else <tuple> t.child_fields[k]


cdef tuple field_of_node(object node, tuple field):
    """Return the name, flags and metadata of a node. `field` contains those that the parent stores for it, or is None."""
    if isinstance(node, Tree) and (<Tree> node).field is not None:
        return (None if field is None else field[0], *(<Tree> node).field)
    return field


cdef object extension_name(ArrowSchema* schema):
    return None if schema.metadata == NULL else pairs_of(schema).get(b"ARROW:extension:name")


cdef object extended(object node, ArrowSchema* schema, Descriptor validity, Py_ssize_t bit):
    """Convert the storage of a canonical extension type to the array that the type describes.

    Return the storage of other extension types unchanged, as the specification permits. `validity` is the bitmap of the node
    or None, and `bit` the position of its first element in the bitmap.
    """
    cdef dict pairs = pairs_of(schema)
    name = pairs.get(b"ARROW:extension:name")
    if name == b"arrow.fixed_shape_tensor" and isinstance(node, Tree):
        dense = dense_content(node)
        if dense is not None:
            node = dense
        elif is_dense_where_valid(<Tree> node, validity, bit):
            node = reshape((<Tree> (<Tree> node).content).content, ((<Tree> node).length, (<Tree> node).width))
    if isinstance(node, Tree) or name is None:
        return node
    if name == b"arrow.bool8" and schema.format[0] == c"c":
        set_type(<Descriptor> node, dtypes.by_typestr(c"b", 1))
        return node
    if name == b"arrow.fixed_shape_tensor" and schema.format[0] == c"+" and (<Descriptor> node).nd_ == 2:
        return tensor_of(<Descriptor> node, pairs.get(b"ARROW:extension:metadata", b""))
    return node


cdef Tree new_rows(object content, Py_ssize_t length, Py_ssize_t width):
    """Return a node of `length` fixed-size lists of the elements of `content`."""
    cdef Tree rows = new_tree(REGULAR, length)
    rows.width = width
    rows.content = content
    return rows


cdef Descriptor dense_content(object node):
    """Return the numbers of a node as an array, or None if they do not form a dense array.

    An extension type of the node, and the names and metadata of list items, are not part of the array.
    """
    cdef Tree t
    cdef Descriptor items
    if not isinstance(node, Tree):
        return <Descriptor> node
    t = <Tree> node
    if t.validity is not None or t.meaning is not None:
        return None
    if has(t, NUMBERS):
        return <Descriptor> t.content
    if not has(t, WIDTH) or (isinstance(t.content, Tree) and (<Tree> t.content).field is not None):
        return None
    items = dense_content(t.content)
    if items is None or items.nd_ == layout.MAX_NDIM or not items.flags_ & C_CONTIGUOUS:
        return None
    return reshape(items, (t.length, t.width) + shape_tuple(items)[1:])


cdef bint is_dense_where_valid(Tree rows, Descriptor validity, Py_ssize_t bit):
    """Return whether a node consists of fixed-size lists of numbers that are missing only in missing lists.

    pyarrow marks each number of a missing list as missing. Bitmaps on a device are not read, and the result is then False.
    """
    cdef Tree items
    cdef Py_ssize_t k
    if not has(rows, WIDTH) or not isinstance(rows.content, Tree):
        return False
    items = <Tree> rows.content
    if validity is None or items.validity is None or validity.device_.device_type != kDLCPU:
        return False
    if not has(items, NUMBERS) or items.meaning is not None or (<Descriptor> items.content).nd_ != 1:
        return False
    if items.field is not None and (<Descriptor> items.content).dl_dtype_.code != BOOL_CODE:
        return False      # the tensor would lose the extension type of its items
    for k in range(items.length):
        if is_missing(items, k) and bit_at(<const uint8_t*> validity.data_, bit + k // rows.width):
            return False
    return True


cdef object name_in(bytes metadata):
    """Return the name of the extension type in the metadata of a schema, which may be None. Return None without a name."""
    return None if metadata is None else pairs_in(metadata).get(b"ARROW:extension:name")


cdef bint is_tensor(bytes metadata):
    return name_in(metadata) == b"arrow.fixed_shape_tensor"


cdef bint has_flat_storage(ArrowSchema* schema) noexcept:
    """Return whether a schema is a list whose child is not nested, like the storage of a tensor."""
    return schema.format[0] == c"+" and schema.n_children == 1 and schema.children[0].n_children == 0


cdef Tree tensor_storage(Tree t):
    """Return the storage of ``arrow.fixed_shape_tensor``: one list for each tensor, with the elements in memory order.

    The metadata is replaced if it describes a different shape or order, for example after a copy of a permuted tensor.
    """
    cdef Descriptor a = <Descriptor> t.content
    cdef Py_ssize_t run = 1
    fields = json_of(pairs_in(t.field[1]).get(b"ARROW:extension:metadata", b""))
    cdef list order = memory_order(a)
    permutation = list_in(fields, "permutation", int) or list(range(a.nd_ - 1))
    if sorted(permutation) == list(range(a.nd_ - 1)):
        # The strides of an empty tensor, or of dimensions of length 1, do not determine the order of the dimensions.
        stated = sorted(range(1, a.nd_), key=lambda axis: permutation[axis - 1])
        order = stated if is_compact(a, stated) else order
    if order is None:
        raise Refusal("Arrow", "the rows of the tensor are not compact; call arrayhub.asnested(x, copy=True)")
    for axis in order:
        run *= a.shape_[axis]
    cdef Tree rows = new_rows(reshape(transpose(a, [0, *order]), (size_of(a),)), t.length, run)
    rows.validity, rows.bit, rows.nulls = t.validity, t.bit, t.nulls
    rows.name = t.name
    if a.dl_dtype_.code == BOOL_CODE:      # booleans of one byte; bit-packed booleans are nodes of another kind
        rows.child_fields = ((None, ARROW_FLAG_NULLABLE, _BOOL8),)
    same = fields.get("shape") == [a.shape_[axis] for axis in order] \
        and permutation == [order.index(axis) for axis in range(1, a.nd_)]
    rows.field = t.field if same else (t.field[0], tensor_metadata(a, order, names_of_dimensions(fields, permutation)))
    return rows


cdef list names_of_dimensions(dict fields, object permutation):
    """Return the dimension names in a tensor's metadata, one for each dimension after the first, or None."""
    names = list_in(fields, "dim_names", str)
    if names is None or type(permutation) is not list or sorted(permutation) != list(range(len(names))):
        return None
    return [names[axis] for axis in permutation]


cdef object with_tensors(object node, tuple field):
    """Return a copy of a node with the storage of each ``arrow.fixed_shape_tensor``, at any depth.

    Return a node without tensors unchanged. `field` is None, or contains the name, flags and metadata that the parent stores
    for the node.
    """
    cdef Tree t, changed
    cdef tuple old
    cdef list children
    cdef Py_ssize_t k
    if not isinstance(node, Tree) or has(<Tree> node, NUMBERS):
        field = field_of_node(node, field)
        return tensor_storage(with_facts(node, field)) if field is not None and is_tensor(field[2]) else node
    t = <Tree> node
    cdef bint has_content = has(t, LISTS | INDICES)
    if not has_content and not has(t, FIELDS | FOREIGN | CHUNKS):
        return t
    old = (t.content,) if has_content else t.parts
    children = None
    for k in range(len(old)):
        child = with_tensors(old[k], child_field(t, k))
        if child is not old[k]:
            children = list(old) if children is None else children
            children[k] = child
    if children is None:
        return t
    if has(t, CHUNKS):
        return new_chunked(tuple(children))
    changed = same_node(t)
    if has_content:
        changed.content = children[0]
    else:
        changed.parts = tuple(children)
    return changed


cdef Tree with_facts(object node, tuple field):
    """Return a node with the numbers of `node`, and with the flags and metadata of `field`."""
    cdef Tree t = same_node(<Tree> node) if isinstance(node, Tree) else flat(node)
    t.field = (field[1], field[2])
    return t


def extension_of_node(Tree t):
    """Return the name and the metadata of a node's Arrow extension type, or None."""
    pairs = metadata_of_node(t)
    name = pairs.get(b"ARROW:extension:name")
    return None if name is None else (name.decode("utf-8", "replace"), pairs.get(b"ARROW:extension:metadata", b""))


def metadata_of_node(Tree t):
    """Return the metadata in a node's Arrow schema, as a dict from bytes to bytes."""
    return {} if t.field is None else pairs_in(t.field[1])


cdef Descriptor tensor_of(Descriptor rows, bytes metadata):
    """Return `rows` as the tensor that the metadata of ``arrow.fixed_shape_tensor`` describes.

    In the metadata, ``shape`` and ``dim_names`` are in memory order. For each dimension of the tensor, ``permutation`` contains
    the position of this dimension in memory order.
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
    if size != rows.shape_[1]:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"lengths whose product is {rows.shape_[1]}, the"
                              " length of the list")
    if order is None:
        order = list(range(len(shape)))
    if sorted(order) != list(range(len(shape))):
        raise interface_error("arrow.fixed_shape_tensor", "permutation", order, f"a permutation of 0 to {len(shape) - 1}")
    if names is not None and len(names) != len(shape):
        raise interface_error("arrow.fixed_shape_tensor", "dim_names", names, f"{len(shape)} names")
    if len(shape) >= layout.MAX_NDIM:
        raise interface_error("arrow.fixed_shape_tensor", "shape", shape, f"at most {layout.MAX_NDIM - 1} dimensions")
    a = transpose(reshape(rows, (rows.shape_[0], *shape)), [0, *[1 + axis for axis in order]])
    if names is not None and len(set(names)) == len(names):
        set_labels(a, make_dims((None, *[names[axis] for axis in order])))
    return a


cdef dict json_of(bytes metadata):
    import json      # on first use, because importing json takes a tenth of the package's import time

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


cdef list memory_order(Descriptor a):
    """Return the axes after the first, sorted by decreasing stride, or None if the array is not contiguous in this order."""
    cdef list order = sorted(range(1, a.nd_), key=lambda axis: -a.byte_strides_[axis])
    if size_of(a) == 0:
        return list(range(1, a.nd_))
    return order if is_compact(a, order) else None


cdef bint is_compact(Descriptor a, list order):
    """Return whether an array is contiguous in the axis order ``[0, *order]``."""
    cdef Py_ssize_t expected = a.itemsize_
    if size_of(a) == 0:
        return True
    for axis in reversed(order):
        if a.shape_[axis] != 1:
            if a.byte_strides_[axis] != expected:
                return False
            expected *= a.shape_[axis]
    return a.shape_[0] <= 1 or a.byte_strides_[0] == expected


cdef bytes tensor_metadata(Descriptor a, list order, list names=None):
    """Return the schema metadata of a tensor, see `tensor_of`. `names` contains a name for each dimension after the first."""
    import json

    fields = {"shape": [a.shape_[axis] for axis in order]}
    if order != sorted(order):
        fields["permutation"] = [order.index(axis) for axis in range(1, a.nd_)]
    dims = getattr(labels_of(a), "dims", None)
    if names is None and dims is not None and None not in dims[1:]:
        names = list(dims[1:])
    if names is not None and len(names) == len(order):
        fields["dim_names"] = [names[axis - 1] for axis in order]
    return metadata_of(b"arrow.fixed_shape_tensor", json.dumps(fields).encode())
