"""Attribute access for a static class, with a hint for each known name that the class lacks.

The slot differs from a method ``__getattr__`` in three ways: an AttributeError of a property, such as
``__cuda_array_interface__`` of host memory, keeps its text; present attributes cost the same as without the slot; and a
missing attribute does not make a traceback, which `hasattr` would discard.
"""

cdef extern from *:
    """
    static PyObject *arrayhub_hints; /* dict: name of a missing attribute -> call to use instead; never modified */

    static PyObject *arrayhub_getattro(PyObject *obj, PyObject *name) {
        PyTypeObject *cls = Py_TYPE(obj);
        PyObject *entry = _PyType_Lookup(cls, name); /* borrowed from the class, which is immutable */
        if (entry != NULL) {
            descrgetfunc get = Py_TYPE(entry)->tp_descr_get;
            if (get != NULL) return get(entry, obj, (PyObject *)cls);
            Py_INCREF(entry);
            return entry;
        }
        entry = PyDict_GetItemWithError(arrayhub_hints, name);
        if (entry != NULL) {
            const char *dot = strrchr(cls->tp_name, '.');
            PyErr_Format(PyExc_AttributeError, "%U: %s does not have this attribute; use %U", name,
                         dot == NULL ? cls->tp_name : dot + 1, entry);
        } else if (!PyErr_Occurred())
            PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", cls->tp_name, name);
        return NULL;
    }

    /* For a class whose instances do not have a dict. */
    static void arrayhub_set_hints(PyTypeObject *cls, PyObject *hints) {
        Py_INCREF(hints);
        arrayhub_hints = hints;
        cls->tp_getattro = arrayhub_getattro;
        PyType_Modified(cls);
    }
    """
    void set_hints "arrayhub_set_hints"(type cls, dict hints)
