"""Access to state of a module that threads share on free-threaded Python. A module publishes its state in one of five ways:

- A Python object that is created on first use: `seen` and `set_once`. The first thread's object stays.
- A group of variables that is determined on first use: compute all values, enter a critical section, test `is_done` again,
  store the values, and call `mark_done` last. Only stores belong in the section, because a call may suspend it.
- A number that changes: `read_int` and `write_int`.
- A dict that is filled on demand: `found`, and ``setdefault`` if two threads must use the same value.
- A list that only grows: `item_of`.

Python modules build a new dict or tuple and assign it, under a lock if it depends on the previous one (libraries/plugins).

In builds with the GIL, these functions do not use atomic operations.
"""

from cpython.object cimport PyObject

from arrayhub._core.cpython.exceptions cimport take

cdef extern from *:
    """
    #ifndef ARRAYHUB_SHARED
    #define ARRAYHUB_SHARED
    /* The result is a new reference, because another thread may remove the value from the dict and thereby free it. */
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
    #define arrayhub_item_of(values, number) PyList_GetItemRef(values, number)
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
    #define arrayhub_read_int(place) _Py_atomic_load_int_acquire(place)
    #define arrayhub_write_int(place, value) _Py_atomic_store_int_release(place, value)
    #else
    #define arrayhub_item_of(values, number) Py_NewRef(PyList_GET_ITEM(values, number))
    static CYTHON_UNUSED inline PyObject *arrayhub_seen(PyObject **place) { return *place; }
    static CYTHON_UNUSED inline PyObject *arrayhub_set_once(PyObject **place, PyObject *nothing, PyObject *value) {
        if (*place == nothing) {
            *place = Py_NewRef(value);
            Py_XDECREF(nothing);
        }
        return *place;
    }
    #define arrayhub_read_int(place) (*(place))
    #define arrayhub_write_int(place, value) ((void)(*(place) = (value)))
    #endif
    #define arrayhub_mark_done(place) arrayhub_write_int(place, 1)
    #endif
    """
    # Return a new reference to the value of `key` in `table`. If the key is missing, return NULL without an exception. On
    # error, return NULL with an exception set.
    PyObject* find "arrayhub_find"(dict table, object key) except? NULL

    # Return an item of a list to which other threads append. Cython's index would not notice that the items are moved.
    object item_of "arrayhub_item_of"(list values, Py_ssize_t number)

    # Return a borrowed reference to the value of a variable that is set once. The variable keeps the value alive.
    PyObject* seen "arrayhub_seen"(PyObject** place) noexcept
    # Store `value` if the variable is still `nothing` (NULL or None). Return a borrowed reference to the stored value.
    PyObject* set_once "arrayhub_set_once"(PyObject** place, PyObject* nothing, object value) noexcept

    # Avoid contention on the reference count of an object that all threads use and that is never freed.
    void refer_from_everywhere "arrayhub_refer_from_everywhere"(object obj) noexcept

    # Read and write a number. What a thread wrote before `write_int` is visible to threads that read the new number.
    int read_int "arrayhub_read_int"(int* place) noexcept nogil
    void write_int "arrayhub_write_int"(int* place, int value) noexcept nogil

    # Return whether a group of variables has been set, and note that it has been set.
    bint is_done "arrayhub_read_int"(int* done) noexcept nogil
    void mark_done "arrayhub_mark_done"(int* done) noexcept nogil


cdef inline object found(dict table, object key):
    """Return the value of `key` in a dict that other threads may change, or None if the key is missing.

    Cython's ``.get`` would use a borrowed reference, which another thread could free.
    """
    cdef PyObject* value = find(table, key)
    return None if value == NULL else take(value)
