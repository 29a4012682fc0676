"""Keys of the three interface dicts (host, CUDA, SYCL), and the values of one dict."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

from arrayhub._core.integers cimport digit, is_digit

# Each protocol has eight keys, and all three share five. The order is about the one in which libraries write them.
cdef enum Key:
    DATA
    SHAPE
    STRIDES
    TYPESTR
    VERSION
    MASK
    SYCLOBJ = MASK            # the SYCL dict is without a mask
    OFFSET
    STREAM = OFFSET           # the CUDA dict is without an offset
    DESCR                     # "typedescr" in the SYCL dict
    KEYS                      # number of keys

# References to the values of one dict, from `read` to `let_go`: an ``__index__`` of a value may change the dict.
cdef struct Entries:
    PyObject* values[<int> KEYS]

cdef int read(object interface, int protocol, Entries* entries) except -1
cdef Py_ssize_t whole_slowly(object value, int protocol, str key, int position) except? -1
cdef object dict_error(int protocol, str key, object value, str accepted)


cdef inline Py_ssize_t whole(object value, int protocol, str key, int position) except? -1:
    """Convert a value to an integer with ``__index__``. Floats, bools and strings are errors, and integers beyond 64 bits.

    `position` is the index in a tuple, for the message; -1 if the value of the key is the number itself.
    """
    return digit(value) if is_digit(value) else whole_slowly(value, protocol, key, position)


cdef inline object entry(const Entries* entries, Key key):
    """Return the value of a key, or None if it is missing: no protocol distinguishes the two."""
    cdef PyObject* value = entries.values[<int> key]
    return None if value == NULL else <object> value


cdef inline void begin(Entries* entries) noexcept:
    """Initialize the entries; call it before `read`."""
    cdef int k
    for k in range(<int> KEYS):
        entries.values[k] = NULL


cdef inline void let_go(Entries* entries) noexcept:
    """Release the values; call it exactly once, also after an error."""
    cdef int k
    for k in range(<int> KEYS):
        Py_XDECREF(entries.values[k])
