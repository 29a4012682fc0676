"""The keys of the three interface dicts (host, CUDA, SYCL), and the values of one dict."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

from arrayhub._core.integers cimport digit, is_digit

# A protocol has eight keys, five of which all three have; much in the order in which libraries write them.
cdef enum Key:
    DATA
    SHAPE
    STRIDES
    TYPESTR
    VERSION
    MASK
    SYCLOBJ = MASK            # no mask in SYCL's
    OFFSET
    STREAM = OFFSET           # no offset in CUDA's
    DESCR                     # "typedescr" in SYCL's
    KEYS                      # how many there are

# The values of one dict, held from `read` to `let_go`: what the ``__index__`` of one runs may change the dict.
cdef struct Entries:
    PyObject* values[<int> KEYS]

cdef int read(object interface, int protocol, Entries* entries) except -1
cdef Py_ssize_t whole_slowly(object value, int protocol, str key, int position) except? -1
cdef object dict_error(int protocol, str key, object value, str accepted)


cdef inline Py_ssize_t whole(object value, int protocol, str key, int position) except? -1:
    """An integer of 63 bits and a sign, by ``__index__``: a float, a bool or a string is an error.

    `position` is the place in a tuple, for the message; -1 where the key is a number itself.
    """
    return digit(value) if is_digit(value) else whole_slowly(value, protocol, key, position)


cdef inline object entry(const Entries* entries, Key key):
    """The value of a key, None where it is missing: no protocol tells the two apart."""
    cdef PyObject* value = entries.values[<int> key]
    return None if value == NULL else <object> value


cdef inline void begin(Entries* entries) noexcept:
    """Nothing is held yet; before `read`."""
    cdef int k
    for k in range(<int> KEYS):
        entries.values[k] = NULL


cdef inline void let_go(Entries* entries) noexcept:
    """Give everything back, once and at the end; also after an error."""
    cdef int k
    for k in range(<int> KEYS):
        Py_XDECREF(entries.values[k])
