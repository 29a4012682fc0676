"""Steps that the exports to Arrow, polars, pandas and awkward share: the import, the argument `copy`, and Arrow's capsules."""

import numpy as np

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.arrow cimport obstacle_of
from arrayhub.convert.functions cimport import_allowed, is_traced
from arrayhub.convert.target cimport is_dense
from arrayhub.libraries.numpy cimport is_value

from arrayhub._core.copying import VIEW
from arrayhub._core.errors import Refusal
from arrayhub.convert.functions import call_traced, objects_of
from arrayhub.convert.names import sparse_library


def export(str name not None, library not None, emit not None, obj, copy, dtype, device, missing, tuple own=()):
    """Import `obj`, and return it as an array of the module `library`, which `convert` calls `name`.

    `obj` is imported only once, because it may be a stream.
    ``emit(library, array, copied, obj)`` returns `array`, which was imported from `obj`, as an array of the library. An
    instance of one of the library's classes `own` is returned unchanged if no argument changes it.
    """
    if is_traced():
        return call_traced(f"as_{name}", obj, partial(export, name, library, emit), copy, dtype, device, missing, own)
    cdef object source = obj, given = copy
    cdef bint is_changed = dtype is not None or device is not None
    cdef bint dense = is_dense(obj)
    if copy is not False and copy is not None:
        copy = check_copy(copy, f"as_{name}")
    if copy is False and not dense and is_value(obj):  # values are built whatever `copy` says
        copy = None
    try:
        if missing is not None:
            obj, copy = hooks.nested.replace_missing(obj, missing, copy, name, dtype)
        is_own = not dense and obj is source and any([isinstance(obj, getattr(library, cls)) for cls in own])
        if is_own and not copy and not is_changed:
            return obj
        array = import_any(obj, None if is_changed and copy is False else copy)
        if is_changed:
            nested = nested_of(array)
            changed = hooks.nested.change_imported(nested, obj, dtype, device)
            if changed is not nested:  # the change may copy whatever `copy` says
                array, copy = unwrap_flat(changed), None
            elif is_own and not copy:
                return obj
        if copy is not None:
            return emit(library, array, copy is True, obj)
        try:
            return emit(library, array, False, obj)
        except BufferError:
            if not is_on_host(array):  # copy=None does not leave the device
                raise
        return emit(library, import_any(array, True), True, obj)
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        refusal = error
    if isinstance(refusal, TypeError) and sparse_library(source) is not None:
        refusal = hooks.sparse.refusal_of_sparse(source, name)
    raise hooks.advice.complete_refusal(refusal, source, name, given, dtype, device, missing)


cpdef object import_any(obj, copy):
    """Import an object as a NestedArray, or as a USMArray if it is dense. ``copy=True`` copies to one host chunk."""
    if isinstance(obj, NestedArray):
        return hooks.nested.concatenate([obj]) if copy else obj
    dense = None if copy else import_dense(obj, copy)
    if dense is not None:
        return dense
    node = hooks.nested.import_node(obj, copy)
    return unwrap_flat(node) if isinstance(node, NestedArray) else node


cpdef object import_dense(obj, copy):
    """Import a numeric array of a library of dense arrays. Return None for other objects, and for Python objects."""
    cdef Descriptor a
    if not is_dense(obj) or objects_of(obj) is not None:
        return None
    try:
        a = import_allowed(obj, False if copy is VIEW else copy, "asarray")
    except (BufferError, TypeError):  # jagged and sparse arrays, and strings
        return None
    return a if a.nd_ and a.typenum_ in _NUMBERS else None


# NumPy's type numbers of booleans, integers and floating-point numbers
cdef frozenset _NUMBERS = frozenset([np.dtype(code).num for code in "?bhilqBHILQefdFD"])


cpdef need_arrow(Descriptor array, bint extension=False, str library="arrow"):
    """Raise Refusal if an array cannot be exported to Arrow, or if a strided array would be copied."""
    why = obstacle_of(array, extension)
    if why is not None:
        is_tensor = not extension and obstacle_of(array, True) is None
        raise Refusal("Arrow", why, "extension=True" if is_tensor and library == "arrow" else "")


def host_capsules(node):
    """Return the capsules of ``__arrow_c_array__``, or None if the host cannot read the memory. See `need_arrow`."""
    if isinstance(node, Descriptor):
        need_arrow(node)
    cdef bint readable = host_readable(node) if isinstance(node, Descriptor) else is_on_host(node)
    return arrow.emit(node, arrow.ARRAY, 0) if readable else None
