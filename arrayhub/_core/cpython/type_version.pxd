"""The version tag of a type, for caches that do not keep the types alive."""

from cpython.object cimport PyTypeObject

cdef extern from *:
    """
    /* The interpreter resets the tag of a type whenever the type or one of its bases changes, and the next attribute
       lookup assigns a new tag. Tags are never reused. The tag is zero if no tag is assigned yet, or if the tags of the
       type (1000, since CPython 3.13) or of the process are exhausted. Facts about a type without a tag are not cached.
       Up to CPython 3.12, a flag indicates whether the tag is valid. CPython 3.13 does not set this flag, and sets
       invalid tags to zero. */
    static unsigned int arrayhub_version_tag(PyTypeObject *type) {
    #if defined(Py_GIL_DISABLED)
        return _Py_atomic_load_uint_relaxed(&type->tp_version_tag);
    #elif PY_VERSION_HEX >= 0x030D0000
        return type->tp_version_tag;
    #else
        return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
    #endif
    }
    """
    unsigned int version_tag "arrayhub_version_tag"(PyTypeObject* cls) nogil
