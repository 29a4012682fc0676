"""Which version of a type it is, for those who remember something about a type without keeping it alive."""

from cpython.object cimport PyTypeObject

cdef extern from *:
    """
    /* The interpreter takes a type's tag away whenever it or a base changes, and the next look-up in the type gives it
       another. No tag is given out twice. Zero: it has none, for now, or for good where the tags are used up: those of
       one type (1000 changes, from CPython 3.12 on), or all. Such a type is worked out again each time. Up to 3.12 a flag
       says whether the tag holds; 3.13 sets that flag no more, and sets a tag to zero that does not hold. */
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
