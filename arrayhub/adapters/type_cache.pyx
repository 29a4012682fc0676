"""Cache of one record for each producer type. The .pxd describes the records."""

from cpython.object cimport PyTypeObject

cimport cython

from arrayhub._core.cpython.atomics cimport read_int, write_int
from arrayhub._core.cpython.type_notes cimport version_tag, write_down, write_note

cdef ComputeRecord _compute_record = NULL
cdef object _lock = object()
cdef int _generation = 0      # number of times that the caches were erased


cdef void register_compute_record(ComputeRecord compute_record):
    """Register the function that computes a record."""
    global _compute_record
    _compute_record = compute_record


cdef unsigned int learn(object cls) except 0:
    """Compute and cache the record of a type. A changed type has a new version tag, so its old record is not used."""
    held = cls                      # keep a reference, because a metaclass may drop all other references
    hasattr(held, "__dlpack__")     # the lookup makes the interpreter assign a version tag
    cdef unsigned int version = version_tag(<PyTypeObject*> held)
    cdef int computed_in = types_generation()
    cdef unsigned int record = _compute_record(<type> held)      # without a check, which would reject subclasses of `type`
    # If a metaclass has changed the type meanwhile, the version differs, and nothing is cached.
    write_since(computed_in, records, REMEMBERED_TYPES, <PyTypeObject*> held, version, record)
    return record


cdef void write_since(int computed_in, TypeNote* notes, uintptr_t slots, PyTypeObject* cls, unsigned int version,
                      unsigned int facts) noexcept:
    """Cache facts that were computed since `types_generation` returned `computed_in`.

    If a library was registered meanwhile, the facts may be outdated, and nothing is cached.
    """
    with cython.critical_section(_lock):
        if _generation == computed_in:
            write_down(notes, slots, cls, version, facts)


cdef unsigned int number_of(list values, dict numbers, object key, object value) except 0:
    """Return the index of a value in `values`, to which it is appended if `key` is new. Element 0 stands for unknown types."""
    cdef unsigned int number
    with cython.critical_section(_lock):
        number = numbers.setdefault(key, len(values))
        if number == len(values):
            values.append(value)
    return number


cpdef int types_generation() noexcept:
    """Return the number of calls of `forget_types`. Upper layers use it to invalidate their own caches of types."""
    return read_int(&_generation)


def forget_types():
    """Erase all caches. A newly registered library may add an importer for a type that is already cached."""
    with cython.critical_section(_lock):
        write_int(&_generation, _generation + 1)
        for k in range(REMEMBERED_TYPES):
            write_note(&records[k], 0)
        for k in range(REMEMBERED_WRAPPERS):
            write_note(&wrappers[k], 0)
        for k in range(REMEMBERED_ARRAY_TYPES):
            write_note(&array_types[k], 0)
