"""Arrow's export methods, such as ``__arrow_c_array__``. An array has only methods that can export its memory and type."""

cimport cython


from arrayhub._core.descriptor cimport Descriptor, host_readable, kDLCPU
from arrayhub._core.runtime cimport device_name
from arrayhub._core.tree cimport CHUNKS, Tree, first_array, has

from arrayhub._core.errors import Refusal, needed, show, unreadable
from arrayhub.adapters.table import BY_VIA

# In the order of the enum in arrow.pxd.
cdef tuple _ATTRIBUTES = ("__arrow_c_schema__", *BY_VIA["arrow"].attributes)


cdef object emit(object node, int what, int form):
    """Return the capsule, or the schema and array capsules, of an export method.

    `form` contains the extension types of a dense array. The host waits for pending work, except on CUDA, where arrays of the
    device interfaces contain an event. For SYCL, this function waits instead of exporting the ``sycl::event*`` that the
    interface defines. `exported_device` determines which memory is exported as host memory.

    Raises
    ------
    BufferError
        The host cannot read the memory, Arrow cannot represent the type, the memory is on several devices, or an array of a
        nested node is not compact.
    InterfaceError
        Offsets, sizes, views or indices are out of range.
    """
    return export(exportable(node, form), what)


cdef object export(object node, int what):
    """Return the result of `emit` for a node from `exportable`."""
    cdef void* held
    if what == SCHEMA:
        return schema_capsule(node)
    node = compact(node, 0)
    # Must precede the filling of arrays, which scans times for NaT.
    ready_for_host(node) if what == ARRAY or what == STREAM else ready_on_device(node)
    if what == STREAM:
        capsule = new_capsule(sizeof(ArrowArrayStream), STREAM_NAME, &held)
        fill_stream(<ArrowArrayStream*> held, node)
        return capsule
    if what == DEVICE_STREAM:
        capsule = new_capsule(sizeof(ArrowDeviceArrayStream), DEVICE_STREAM_NAME, &held)
        fill_stream(<ArrowDeviceArrayStream*> held, node)
        return capsule
    schema = schema_capsule(node)
    if what == ARRAY:
        capsule = new_capsule(sizeof(ArrowArray), ARRAY_NAME, &held)
        fill_array(<ArrowArray*> held, node, 0)
    else:
        capsule = new_capsule(sizeof(ArrowDeviceArray), DEVICE_NAME, &held)
        fill_device_array(<ArrowDeviceArray*> held, node)
    return schema, capsule


def emit_with_extensions(Descriptor a not None):
    """Return the schema and device array capsules of a dense array, with its extension types."""
    return emit(a, DEVICE_ARRAY, TENSOR | BOOL8)


cdef object emit_requested(object node, int what, object requested):
    """Export a node with a requested type, by pyarrow's cast.

    The specification permits a producer to ignore a request. This function ignores it without pyarrow, for memory on devices,
    for streams of device arrays, and for tables (structs that are not nullable), whose columns the consumer casts.
    """
    cdef ArrowSchema* schema = <ArrowSchema*> pointer_in(requested, SCHEMA_NAME, "requested_schema")
    validate_schema(schema, "requested_schema")
    node = exportable(node, requested_form(node, schema))
    cdef bint is_table = schema.format[0] == c"+" and schema.format[1] == c"s" and not schema.flags & ARROW_FLAG_NULLABLE
    exported = export(node, what)
    if is_table or what == DEVICE_STREAM or exported_device(first_array(node)).device_type != kDLCPU:
        return exported
    try:
        pyarrow = needed("pyarrow", "to cast to a requested type")
    except ImportError:
        return exported
    method = _ATTRIBUTES[what]
    own = pyarrow.field(as_producer("__arrow_c_schema__", schema_capsule(node))).type
    wanted = pyarrow.field(as_producer("__arrow_c_schema__", requested)).type
    if own.equals(wanted):
        return exported
    column = (pyarrow.chunked_array if what == STREAM else pyarrow.array)(as_producer(method, exported))
    try:
        return getattr(column.cast(wanted), method)()
    except pyarrow.ArrowException as error:
        raise Refusal(method, f"pyarrow does not cast {own} to the requested type {wanted}") from error


cdef object as_producer(str method, object exported):
    """Return an object whose method `method` returns `exported`, because pyarrow imports objects, not capsules."""
    return type("Producer", (), {method: lambda self, requested_schema=None: exported})()


cdef int check_keywords(int what, dict keywords) except -1:
    for name, value in keywords.items():
        if what != DEVICE_ARRAY and what != DEVICE_STREAM:
            raise TypeError(f"{_ATTRIBUTES[what]}: unknown keyword {name}; accepted: requested_schema")
        if value is not None:
            raise NotImplementedError(f"{_ATTRIBUTES[what]}: keyword {name} is {show(value)}; accepted: None. Omit the keyword")
    return 0


@cython.final
cdef class Export:
    """Bound method of an Arrow interface, created by `bind_export` on access."""
    cdef object node
    cdef int what

    def __init__(self):
        raise TypeError("cannot create 'Export' instances directly; use x.__arrow_c_array__")

    def __call__(self, requested_schema=None, **keywords):
        if self.node is None:
            raise TypeError("Export: the object was created by __new__ without an array; use x.__arrow_c_array__")
        if keywords:
            check_keywords(self.what, keywords)
        if requested_schema is None:
            return emit(self.node, self.what, 0)
        if self.what == SCHEMA:
            raise TypeError("__arrow_c_schema__ takes no arguments")
        return emit_requested(self.node, self.what, requested_schema)

    def __repr__(self):
        return f"<{_ATTRIBUTES[self.what]} of a {type(self.node).__name__}>"


cdef object bind_export(object node, int what):
    """Return an export method. Raise AttributeError if the method cannot export the array's memory or type."""
    cdef Export export
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
    export = Export.__new__(Export)
    export.node = node
    export.what = what
    return export
