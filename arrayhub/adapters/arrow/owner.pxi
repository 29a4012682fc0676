"""Ownership of an Arrow producer's structs. Each struct is released exactly once, on any thread."""

from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid

cimport cython

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport DLDevice, kDLCPU
from arrayhub._core.cpython.exceptions cimport Aside, put_aside, put_back
from arrayhub._core.tree cimport MAX_DEPTH

from arrayhub._core.errors import InterfaceError, interface_error


@cython.final
@cython.no_gc
@cython.freelist(32)
cdef class Import:
    """Schema and array structs that were moved out of a producer's capsules or stream.

    The array struct owns the memory that arrays view.
    """
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef DLDevice device
    cdef intptr_t stream           # CUDA: a stream that waits for the producer's work; 0: no work is pending

    def __init__(self):
        raise TypeError("cannot create 'Import' instances directly; use arrayhub.asarray or arrayhub.asnested")

    def __dealloc__(self):
        cdef Aside aside = put_aside()
        if self.array.release != NULL:
            self.array.release(&self.array)
            self.array.release = NULL
        drop_schema(&self.schema)
        put_back(aside)

    def __repr__(self):
        return f"<memory of an Arrow array, released by {<size_t> <void*> self.array.release:#x}>"


cdef inline void drop_schema(ArrowSchema* schema) noexcept:
    cdef Aside aside
    if schema.release != NULL:
        aside = put_aside()
        schema.release(schema)
        schema.release = NULL
        put_back(aside)


cdef Import new_import():
    cdef Import owner = Import.__new__(Import)
    owner.schema.release = NULL
    owner.array.release = NULL
    owner.device = DLDevice(kDLCPU, 0)
    owner.stream = 0
    return owner


cdef void* pointer_in(object capsule, const char* name, str source) except NULL:
    """Return the pointer in a capsule. `source` is the method or argument that supplied the capsule, for error messages."""
    if not PyCapsule_IsValid(capsule, name):
        raise interface_error("Arrow", source, capsule if not PyCapsule_CheckExact(capsule) else name_of(capsule),
                              f"a capsule named {name.decode()!r}")
    return PyCapsule_GetPointer(capsule, name)


cdef object name_of(object capsule):
    cdef const char* name = PyCapsule_GetName(capsule)
    return None if name == NULL else name


cdef object released_error(str what):
    return interface_error("Arrow", f"{what}.release", None, "a function. The struct was consumed before, and can be"
                           " consumed only once. Request a new struct from the producer")


cdef int check_schema(ArrowSchema* schema, str source, int depth, int* nodes) except -1:
    """Validate the pointers and counts of a foreign schema. A hostile schema may contain itself."""
    cdef int64_t k
    nodes[0] += 1
    if schema.release == NULL:
        raise released_error(source)
    if depth > MAX_DEPTH or nodes[0] > MAX_NODES or schema.n_children > MAX_NODES:
        raise InterfaceError(
            f"Arrow: {source} has more than {MAX_DEPTH} levels of children or more than {MAX_NODES} nodes; accepted: at most"
            f" {MAX_DEPTH} levels and {MAX_NODES} nodes"
        )
    if schema.format == NULL:
        raise interface_error("Arrow", f"{source}.format", None, "a format of the C data interface, such as 'g' or '+l'")
    if schema.n_children < 0:
        raise interface_error("Arrow", f"{source}.n_children", schema.n_children, "zero or more")
    if schema.n_children > 0 and schema.children == NULL:
        raise interface_error("Arrow", f"{source}.children", None, f"a pointer to {schema.n_children} children")
    for k in range(schema.n_children):
        if schema.children[k] == NULL:
            raise interface_error("Arrow", f"{source}.children[{k}]", None, "a pointer to a child")
        check_schema(schema.children[k], source, depth + 1, nodes)
    return 0 if schema.dictionary == NULL else check_schema(schema.dictionary, source, depth + 1, nodes)


cdef int validate_schema(ArrowSchema* schema, str source) except -1:
    """Validate a schema and all schemas below it. Errors name `source`."""
    cdef int nodes = 0
    return check_schema(schema, source, 0, &nodes)


cdef int move_struct(Releasable* target, Releasable* source, str what) except -1:
    """Move a struct of a producer. The error for a struct that was moved before names it `what`."""
    if source.release == NULL:
        raise released_error(what)
    target[0] = source[0]
    source.release = NULL
    return 0


cdef int move_schema(Import owner, object capsule, str source) except -1:
    return move_struct(&owner.schema, <ArrowSchema*> pointer_in(capsule, SCHEMA_NAME, source), "ArrowSchema")
