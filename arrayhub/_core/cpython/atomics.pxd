"""What threads share without the GIL: dicts that are filled on the way, and what is set once and then only read.

With the GIL each of these is the plain C that it looks like.
"""

from cpython.object cimport PyObject

from arrayhub._core.cpython.exceptions cimport take

cdef extern from *:
    """
    #ifndef ARRAYHUB_SHARED
    #define ARRAYHUB_SHARED
    /* A new reference, which a borrowed one is too late for where another thread may take the value out meanwhile. */
    static inline PyObject *arrayhub_find(PyObject *table, PyObject *key) {
    #if PY_VERSION_HEX >= 0x030D0000
        PyObject *value;
        (void)PyDict_GetItemRef(table, key, &value);
        return value;
    #else
        return Py_XNewRef(PyDict_GetItemWithError(table, key));
    #endif
    }
    #if PY_VERSION_HEX >= 0x030E0000
    #define arrayhub_refer_from_everywhere(obj) ((void)PyUnstable_Object_EnableDeferredRefcount(obj))
    #else
    #define arrayhub_refer_from_everywhere(obj) ((void)(obj))
    #endif
    #ifdef Py_GIL_DISABLED
    static CYTHON_UNUSED inline PyObject *arrayhub_seen(PyObject **place) {
        return (PyObject *)_Py_atomic_load_ptr_acquire(place);
    }
    static CYTHON_UNUSED inline PyObject *arrayhub_set_once(PyObject **place, PyObject *nothing, PyObject *value) {
        PyObject *present = nothing;
        Py_INCREF(value);
        if (_Py_atomic_compare_exchange_ptr(place, &present, value)) {
            Py_XDECREF(nothing);
            return value;
        }
        Py_DECREF(value);
        return present;
    }
    static CYTHON_UNUSED inline int arrayhub_is_done(int *done) { return _Py_atomic_load_int_acquire(done); }
    static CYTHON_UNUSED inline void arrayhub_mark_done(int *done) { _Py_atomic_store_int_release(done, 1); }
    #else
    static CYTHON_UNUSED inline PyObject *arrayhub_seen(PyObject **place) { return *place; }
    static CYTHON_UNUSED inline PyObject *arrayhub_set_once(PyObject **place, PyObject *nothing, PyObject *value) {
        if (*place == nothing) {
            *place = Py_NewRef(value);
            Py_XDECREF(nothing);
        }
        return *place;
    }
    static CYTHON_UNUSED inline int arrayhub_is_done(int *done) { return *done; }
    static CYTHON_UNUSED inline void arrayhub_mark_done(int *done) { *done = 1; }
    #endif
    #endif
    """
    # A new reference to what a dict has under a key; NULL where it has nothing, or with an exception.
    PyObject* find "arrayhub_find"(dict table, object key) except? NULL

    # What is in a place that is set once, borrowed. The place keeps it, so it lives as long as the place.
    PyObject* seen "arrayhub_seen"(PyObject** place) noexcept
    # Put `value` where `nothing` (NULL or None) was, unless another thread was quicker; what is there now, borrowed.
    PyObject* set_once "arrayhub_set_once"(PyObject** place, PyObject* nothing, object value) noexcept

    # Let all threads refer to an object that lives as long as the process without writing to it.
    void refer_from_everywhere "arrayhub_refer_from_everywhere"(object obj) noexcept

    # Whether variables that are set together have been. Set them in a critical section, look there once more first, and
    # mark them last.
    bint is_done "arrayhub_is_done"(int* done) noexcept nogil
    void mark_done "arrayhub_mark_done"(int* done) noexcept nogil


cdef inline object found(dict table, object key):
    """What a dict that other threads fill and empty has under a key, or None. (Cython's ``.get`` borrows the value.)"""
    cdef PyObject* value = find(table, key)
    return None if value == NULL else take(value)
