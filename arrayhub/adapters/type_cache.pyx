"""Cache one record for each type of producer; see the .pxd."""

from cpython.object cimport PyTypeObject

from arrayhub._core.cpython.type_notes cimport write_down, write_note
from arrayhub._core.cpython.type_version cimport version_tag

cdef ComputeRecord _compute_record = NULL
generation = 0


cdef void register_compute_record(ComputeRecord compute_record):
    """Register the function that computes a record."""
    global _compute_record
    _compute_record = compute_record


cdef unsigned int learn(object cls) except 0:
    """Compute and cache the record of a type. A type that changes gets a new version tag, and thereby a new record."""
    held = cls                      # keep a reference, because code of a metaclass may drop all other references
    hasattr(held, "__dlpack__")     # the lookup makes the interpreter assign a version tag
    cdef unsigned int version = version_tag(<PyTypeObject*> held)
    cdef unsigned int computed_in = generation
    cdef unsigned int record = _compute_record(<type> held)      # unchecked: a subclass of `type` is one too
    # If code of a metaclass has changed the type meanwhile, the version differs, and nothing is cached.
    write_down(records, REMEMBERED_TYPES, <PyTypeObject*> held, version, record)
    if computed_in != generation:       # a library was registered meanwhile, which may have changed the record
        forget_types()
    return record


def types_generation():
    """Return the number of calls of `forget_types`, which upper layers use as a key of their caches of types."""
    return generation


def forget_types():
    """Erase both caches, because a library that was registered may add an importer for a known type."""
    global generation
    generation += 1
    for k in range(REMEMBERED_TYPES):
        write_note(&records[k], 0)
    for k in range(REMEMBERED_WRAPPERS):
        write_note(&wrappers[k], 0)
