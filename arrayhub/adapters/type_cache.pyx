"""Cache of one record for each producer type. The .pxd describes the records."""

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
    """Compute and cache the record of a type. A changed type has a new version tag, so its old record is not used."""
    held = cls                      # keep a reference, because a metaclass may drop all other references
    hasattr(held, "__dlpack__")     # the lookup makes the interpreter assign a version tag
    cdef unsigned int version = version_tag(<PyTypeObject*> held)
    cdef unsigned int computed_in = generation
    cdef unsigned int record = _compute_record(<type> held)      # without a check, which would reject subclasses of `type`
    # If a metaclass has changed the type meanwhile, the version differs, and nothing is cached.
    write_down(records, REMEMBERED_TYPES, <PyTypeObject*> held, version, record)
    if computed_in != generation:       # a library was registered meanwhile, so the record may be outdated
        forget_types()
    return record


def types_generation():
    """Return the number of calls of `forget_types`. Upper layers use it to invalidate their own caches of types."""
    return generation


def forget_types():
    """Erase both caches. A newly registered library may add an importer for a type that is already cached."""
    global generation
    generation += 1
    for k in range(REMEMBERED_TYPES):
        write_note(&records[k], 0)
    for k in range(REMEMBERED_WRAPPERS):
        write_note(&wrappers[k], 0)
