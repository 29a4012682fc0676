"""Arrow's export methods, such as ``__arrow_c_array__``. An array has only methods that can export its memory and type."""

cimport cython

from arrayhub._core.descriptor cimport Descriptor, host_readable
from arrayhub._core.runtime cimport device_name
from arrayhub._core.tree cimport CHUNKS, Tree, first_array, has

from arrayhub._core.errors import Refusal, unreadable
from arrayhub.adapters.table import BY_VIA

# In the order of the enum in arrow.pxd.
cdef tuple _ATTRIBUTES = ("__arrow_c_schema__", *BY_VIA["arrow"].attributes)


cdef int check_request(object node, object requested, str method) except -1:
    """Raise BufferError if a requested type differs from the elements' type, because a conversion would copy the elements.

    The specification permits a producer to ignore the request. However, ``pyarrow.array(x, type=)`` then fails with a less
    helpful error instead of casting. pyarrow casts the chunks of streams, so this function is not called for streams.
    """
    found = difference(requested, emit_schema(node, requested))
    if found is None:
        return 0
    others = "" if isinstance(node, Tree) else ", or convert the elements first, by x.astype(dtype)"
    raise Refusal(method, f"{found}; call pyarrow.array(x).cast(type){others}")


@cython.final
cdef class Export:
    """Bound method of an Arrow interface, created by `emit_attribute` on access."""
    cdef object node
    cdef object conform      # function that converts a node toward a requested schema, or None
    cdef int what

    def __init__(self):
        raise TypeError("cannot create 'Export' instances directly; use x.__arrow_c_array__")

    def __call__(self, requested_schema=None, **keywords):
        node = need_node(self.node, "Export")
        if requested_schema is not None:
            asked = described(requested_schema)
            node = node if self.conform is None else self.conform(node, asked)
            node = with_requested_extensions(node, requested_schema, asked)
            if self.what == ARRAY or self.what == DEVICE_ARRAY:
                check_request(node, requested_schema, _ATTRIBUTES[self.what])
        if self.what == DEVICE_ARRAY:
            return emit_device(node, requested_schema, keywords)
        if self.what == DEVICE_STREAM:
            return emit_device_stream(node, requested_schema, keywords)
        if keywords:
            raise TypeError(f"{_ATTRIBUTES[self.what]}: unknown keyword {next(iter(keywords))}; accepted: requested_schema")
        return emit(node, requested_schema) if self.what == ARRAY else emit_stream(node, requested_schema)

    def __repr__(self):
        return f"<{_ATTRIBUTES[self.what]} of a {type(self.node).__name__}>"


@cython.final
cdef class ExportSchema:
    """Bound method ``__arrow_c_schema__``, which takes no arguments."""
    cdef object node

    def __init__(self):
        raise TypeError("cannot create 'ExportSchema' instances directly; use x.__arrow_c_schema__")

    def __call__(self):
        return emit_schema(need_node(self.node, "ExportSchema"), None)


cdef object need_node(object node, str name):
    """Return `node`, or raise TypeError if it is None because ``__new__`` created the method without an array."""
    if node is None:
        raise TypeError(f"{name}: the object was created by __new__ without an array; use x.__arrow_c_array__")
    return node


cdef object emit_attribute(object node, int what, object conform=None):
    """Return an export method. Raise AttributeError if the method cannot export the array's memory or type."""
    cdef Export export
    cdef ExportSchema schema
    if not isinstance(node, Tree):
        why = export_obstacle(<Descriptor> node)
        if why is not None:
            raise AttributeError(f"{_ATTRIBUTES[what]}: {why}")
    elif has(<Tree> node, CHUNKS) and (what == ARRAY or what == DEVICE_ARRAY):
        raise AttributeError(f"{_ATTRIBUTES[what]}: the array has several chunks; use __arrow_c_stream__, or call"
                             " arrayhub.asnested(x, copy=True)")
    cdef Descriptor first = first_array(node)
    if (what == ARRAY or what == STREAM) and first is not None and not host_readable(first):
        other = _ATTRIBUTES[DEVICE_ARRAY if what == ARRAY else DEVICE_STREAM]
        raise AttributeError(unreadable(_ATTRIBUTES[what], device_name(first), call=f"use {other}, or call x.to_host()"))
    if what == SCHEMA:
        schema = ExportSchema.__new__(ExportSchema)
        schema.node = node
        return schema
    export = Export.__new__(Export)
    export.node = node
    export.conform = conform
    export.what = what
    return export
