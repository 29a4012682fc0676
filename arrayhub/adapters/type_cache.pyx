"""What is known of the types that producers have; see the .pxd."""

from cpython.object cimport PyTypeObject

from arrayhub._core.cpython.type_notes cimport write_down
from arrayhub._core.cpython.type_version cimport version_tag

cdef WorkOut _work_out = NULL


cdef void register_work_out(WorkOut work_out):
    """Enter the function that makes a type's record."""
    global _work_out
    _work_out = work_out


cdef unsigned int learn(object cls) except 0:
    """Work out the record of a type and remember it. A changed type has a new version, and is worked out again."""
    held = cls                      # code of a metaclass may run, and give the only object of this class another one
    hasattr(held, "__dlpack__")     # a look-up is what makes the interpreter give out the version tag
    cdef unsigned int version = version_tag(<PyTypeObject*> held)
    cdef unsigned int record = _work_out(<type> held)      # unchecked: a subclass of `type` is one too
    # Looking up may run code of a metaclass, which may change the type: then this is known of no version of it.
    write_down(records, REMEMBERED_TYPES, <PyTypeObject*> held, version, record)
    return record
