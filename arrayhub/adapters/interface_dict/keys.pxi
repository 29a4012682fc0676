"""Reading of interface dicts, and the errors that name a key.

`_KEYS` has one row for each of ``__array_interface__``, ``__cuda_array_interface__`` and ``__sycl_usm_array_interface__``. A
dict that contains only these keys is iterated once, without lookups or Python calls.
"""

import operator
import sys

cimport cython
from cpython.dict cimport PyDict_Check, PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from arrayhub._core.descriptor cimport digit, is_bool, is_digit
from arrayhub._core.cpython.atomics cimport find
from arrayhub.adapters.table cimport ARRAY_INTERFACE, CUDA_DICT, PROTOCOL_NUMBERS, SYCL_DICT

from arrayhub._core.descriptor import IN_MESSAGES
from arrayhub._core.errors import interface_error

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) noexcept
    Py_ssize_t PyDict_GET_SIZE(object mapping) noexcept

# Each protocol has eight keys. All three protocols share the first five. `read_entries` is fastest for dicts in this order.
cdef enum Key:
    DATA
    SHAPE
    STRIDES
    TYPESTR
    VERSION
    MASK
    SYCLOBJ = MASK            # the SYCL dict does not have a mask
    OFFSET
    STREAM = OFFSET           # the CUDA dict does not have an offset
    DESCR                     # "typedescr" in the SYCL dict
    KEYS                      # number of keys

# References to the values of one dict, held from `read` to `release_values`, because ``__index__`` of a value may change the
# dict.
cdef struct Entries:
    PyObject* values[<int> KEYS]

# Names of the keys in the order of `Key`, interned like string literals, so that keys can be compared by identity.
cdef dict _KEYS = {
    ARRAY_INTERFACE: ["data", "shape", "strides", "typestr", "version", "mask", "offset", "descr"],
    CUDA_DICT: ["data", "shape", "strides", "typestr", "version", "mask", "stream", "descr"],
    SYCL_DICT: ["data", "shape", "strides", "typestr", "version", "syclobj", "offset", "typedescr"],
}
cdef PyObject* _names[<int> PROTOCOL_NUMBERS][<int> KEYS]
cdef int _protocol, _key
cdef list _row
for _protocol, _row in _KEYS.items():
    for _key in range(<int> KEYS):
        _row[_key] = sys.intern(_row[_key])
        _names[_protocol][_key] = <PyObject*> _row[_key]


cdef inline Py_ssize_t integer(object value, int protocol, str key, int position) except? -1:
    """Convert a value to an integer with ``__index__``. Reject floats, bools, strings and integers outside int64.

    For the message, `position` is the index of the value in a tuple, or -1 if the value is not in a tuple.
    """
    return digit(value) if is_digit(value) else checked_integer(value, protocol, key, position)


cdef inline object entry(const Entries* entries, Key key):
    """Return the value of a key, or None if the key is missing. No protocol distinguishes a missing key from None."""
    cdef PyObject* value = entries.values[<int> key]
    return None if value == NULL else <object> value


cdef inline void begin(Entries* entries) noexcept:
    """Initialize the entries. Must be called before `read`."""
    cdef int k
    for k in range(<int> KEYS):
        entries.values[k] = NULL


cdef inline void release_values(Entries* entries) noexcept:
    """Release the values. Must be called exactly once, also after an error."""
    cdef int k
    for k in range(<int> KEYS):
        Py_XDECREF(entries.values[k])


cdef int read(object interface, int protocol, Entries* entries) except -1:
    """Read the values of an interface dict. `entry` returns the value of one key.

    Call `begin` before and `release_values` after `read`, even if `read` raises.

    Raises
    ------
    InterfaceError
        The attribute is not a dict.
    """
    cdef bint strange
    if not PyDict_Check(interface):
        raise dict_error(protocol, "the attribute", interface, "a dict")
    with cython.critical_section(interface):     # another thread may change the dict
        strange = read_entries(<dict> interface, _names[protocol], entries)
    if strange:
        look_up(<dict> interface, _names[protocol], entries)
    return 0


cdef bint read_entries(dict interface, PyObject** names, Entries* entries) noexcept:
    """Store new references to the values whose keys are identical to a string in `names`.

    Return True if the dict has any other key, which may be equal to a name without being the same object.
    """
    cdef PyObject* key
    cdef PyObject* value
    cdef Py_ssize_t position = 0
    cdef int _tried, row, k = 0
    cdef bint strange = False
    for _ in range(PyDict_GET_SIZE(interface)):     # saves the last call of PyDict_Next, which would return 0
        if not PyDict_Next(interface, &position, &key, &value):
            break
        for _tried in range(<int> KEYS):
            row = k
            k = k + 1 if k + 1 < KEYS else 0     # continue after the last match, because many dicts are in this order
            if key == names[row]:
                Py_INCREF(<object> value)
                entries.values[row] = value
                break
        else:
            strange = True
    return strange


cdef int look_up(dict interface, PyObject** names, Entries* entries) except -1:
    """Look up, by equality, the keys that `read_entries` did not find."""
    cdef int k
    for k in range(<int> KEYS):
        if entries.values[k] == NULL:
            entries.values[k] = find(interface, <object> names[k])
    return 0


cdef Py_ssize_t checked_integer(object value, int protocol, str key, int position) except? -1:
    """Implement `integer` for values other than an int with one internal digit."""
    cdef int overflow = 0
    cdef Py_ssize_t number
    if PyLong_CheckExact(value):      # an int with more than one internal digit, usually an address
        number = <Py_ssize_t> PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0:
            return number
    if position >= 0:
        key = f"{key}[{position}]"
    if is_bool(value):
        raise dict_error(protocol, key, value, "an integer, not a bool")
    try:
        exact = operator.index(value)
    except TypeError:
        raise dict_error(protocol, key, value, "an integer, or an object with __index__") from None
    number = <Py_ssize_t> PyLong_AsLongLongAndOverflow(exact, &overflow)
    if overflow != 0:
        raise dict_error(protocol, key, value, "an integer from -2**63 to 2**63 - 1")
    return number


cdef object dict_error(int protocol, str key, object value, str accepted):
    """Return the error for an invalid value of a key.

    If `key` starts with ``descr``, replace this word by the protocol's name of the key.
    """
    if key.startswith("descr") and protocol in _KEYS:
        key = key.replace("descr", _KEYS[protocol][<int> KEYS - 1], 1)
    return interface_error(IN_MESSAGES[protocol], key, value, accepted)
