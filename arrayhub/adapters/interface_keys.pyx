"""What an interface dict says: the values of its keys, held while they are read, and the errors that name a key.

The keys of ``__array_interface__``, ``__cuda_array_interface__`` and ``__sycl_usm_array_interface__`` are a row of one
table each. On the good path a dict is gone through once, with no look-up and no Python call; errors may take their time.
"""

import operator
import sys

cimport cython
from cpython.dict cimport PyDict_Check, PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from arrayhub._core.integers cimport is_bool
from arrayhub._core.cpython.atomics cimport find
from arrayhub.adapters.table cimport ARRAY_INTERFACE, CUDA_DICT, PROTOCOL_NUMBERS, SYCL_DICT

from arrayhub._core.descriptor import IN_MESSAGES
from arrayhub._core.errors import interface_error

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) noexcept
    Py_ssize_t PyDict_GET_SIZE(object mapping) noexcept

# What each protocol calls its keys, in the order of `Key`; interned, as the keys of a dict in source code are.
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


cdef int read(object interface, int protocol, Entries* entries) except -1:
    """Read the values of an interface dict in one pass; `entry` gives one.

    `begin` comes before it, and `let_go` after it, also where it raises.

    Raises
    ------
    InterfaceError
        The attribute gave no dict.
    """
    cdef bint strange
    if not PyDict_Check(interface):
        raise dict_error(protocol, "the attribute", interface, "a dict")
    with cython.critical_section(interface):     # another thread may be changing it
        strange = go_through(<dict> interface, _names[protocol], entries)
    if strange:
        look_up(<dict> interface, _names[protocol], entries)
    return 0


cdef bint go_through(dict interface, PyObject** names, Entries* entries) noexcept:
    """Hold the values of the keys that are the very strings in `names`; True where there is a key that is none of them:
    a strange one, or one of them in another string object."""
    cdef PyObject* key
    cdef PyObject* value
    cdef Py_ssize_t position = 0
    cdef int _tried, place, k = 0
    cdef bint strange = False
    for _ in range(PyDict_GET_SIZE(interface)):     # which saves the call that finds no more
        if not PyDict_Next(interface, &position, &key, &value):
            break
        for _tried in range(<int> KEYS):
            place = k
            k = k + 1 if k + 1 < KEYS else 0     # on from the last one: most dicts have them in much this order
            if key == names[place]:
                Py_INCREF(<object> value)
                entries.values[place] = value
                break
        else:
            strange = True
    return strange


cdef int look_up(dict interface, PyObject** names, Entries* entries) except -1:
    """Look the missing keys up by what they say, not by which objects they are."""
    cdef int k
    for k in range(<int> KEYS):
        if entries.values[k] == NULL:
            entries.values[k] = find(interface, <object> names[k])
    return 0


cdef Py_ssize_t whole_slowly(object value, int protocol, str key, int position) except? -1:
    """`whole` of what is no int of one digit."""
    cdef int overflow = 0
    cdef Py_ssize_t number
    if PyLong_CheckExact(value):      # a pointer
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
        raise dict_error(protocol, key, value, "an integer, or what __index__ makes one of") from None
    number = <Py_ssize_t> PyLong_AsLongLongAndOverflow(exact, &overflow)
    if overflow != 0:
        raise dict_error(protocol, key, value, "an integer from -2**63 to 2**63 - 1")
    return number


cdef object dict_error(int protocol, str key, object value, str accepted):
    """The error about a key, to be raised; see `interface_error`. What describes fields has each protocol's own name."""
    if key.startswith("descr") and protocol in _KEYS:
        key = key.replace("descr", _KEYS[protocol][<int> KEYS - 1], 1)
    return interface_error(IN_MESSAGES[protocol], key, value, accepted)
