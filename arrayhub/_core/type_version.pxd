"""Which version of a type it is, for those who remember something about a type without keeping it alive."""

from cpython.object cimport PyTypeObject

cdef extern from *:
    """
    /* The interpreter gives a type a new tag whenever it changes, and no two live types share one. Zero: none given. */
    static unsigned int arrayhub_version_tag(PyTypeObject *type) {
        return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
    }
    """
    unsigned int version_tag "arrayhub_version_tag"(PyTypeObject* cls) nogil


cdef inline bint is_version(PyTypeObject* cls, PyTypeObject* known, unsigned int version) noexcept nogil:
    """Whether a type is the one that something is known of, and as it was then; `known` is only compared."""
    return cls == known and version != 0 and version == version_tag(cls)
