"""Import the two most frequent kinds of Python lists in C: lists of ASCII strings, and lists of rows of numbers."""

import numpy as np

cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef int64_t _MANY_BYTES = 2**40
cdef int64_t _MANY_ELEMENTS = 2**30


def ascii_texts(list values not None):
    """Return the offsets, characters and mask of a list of ASCII strings and None. Return None for other lists.

    The mask is False for None. If no element is None, the mask itself is None.
    """
    cdef Py_ssize_t k, n = len(values), size
    cdef object text
    cdef cnp.ndarray offsets = np.zeros(n + 1, np.int64), mask = None
    cdef int64_t* ends = <int64_t*> cnp.PyArray_DATA(offsets)
    for k in range(n):
        text = values[k]
        if text is None:
            mask = mask_for(mask, n, k)
            size = 0
        elif type(text) is str and PyUnicode_IS_ASCII(text):
            size = PyUnicode_GET_LENGTH(text)
        else:
            return None
        ends[k + 1] = ends[k] + size
        if ends[k + 1] > _MANY_BYTES:
            return None
    cdef cnp.ndarray content = np.empty(ends[n], np.uint8)
    cdef char* characters = <char*> cnp.PyArray_DATA(content)
    for k in range(n):
        text = values[k]
        if text is None:
            continue
        if type(text) is not str or PyUnicode_GET_LENGTH(text) != ends[k + 1] - ends[k] or not PyUnicode_IS_ASCII(text):
            return None       # another thread changed the list
        memcpy(characters + ends[k], PyUnicode_DATA(text), ends[k + 1] - ends[k])
    return offsets, content, mask


def rows_of_numbers(list values not None):
    """Return the offsets, numbers and mask of a list of rows and None. All rows are lists of float, or all are lists of int.

    Return None for other lists, and for integers that int64 cannot represent. `ascii_texts` documents the mask.
    """
    cdef Py_ssize_t k, j, n = len(values), at
    cdef int overflow = 0
    cdef type kind = None
    cdef list row
    cdef object value
    cdef cnp.ndarray offsets = np.zeros(n + 1, np.int64), mask = None
    cdef int64_t* ends = <int64_t*> cnp.PyArray_DATA(offsets)
    for k in range(n):
        value = values[k]
        if value is None:
            mask = mask_for(mask, n, k)
            ends[k + 1] = ends[k]
            continue
        if type(value) is not list:
            return None
        row = <list> value
        ends[k + 1] = ends[k] + len(row)
        if ends[k + 1] > _MANY_ELEMENTS:      # probably one row repeated; `from_python` raises an error above MAX_ELEMENTS
            return None
        if kind is None and len(row):
            kind = type(row[0])
    if kind is not float and kind is not int:
        return None
    cdef cnp.ndarray numbers = np.empty(ends[n], np.float64 if kind is float else np.int64)
    cdef double* floats = <double*> cnp.PyArray_DATA(numbers)
    cdef int64_t* integers = <int64_t*> cnp.PyArray_DATA(numbers)
    for k in range(n):
        value = values[k]
        if value is None:
            continue
        if type(value) is not list or len(<list> value) != ends[k + 1] - ends[k]:
            return None       # another thread changed the list
        row = <list> value
        at = ends[k]
        for j in range(ends[k + 1] - at):
            value = row[j]
            if type(value) is not kind:
                return None
            if kind is float:
                floats[at + j] = PyFloat_AS_DOUBLE(value)
            else:
                integers[at + j] = PyLong_AsLongLongAndOverflow(value, &overflow)
                if overflow:
                    return None
    return offsets, numbers, mask


cdef cnp.ndarray mask_for(cnp.ndarray mask, Py_ssize_t n, Py_ssize_t k):
    """Mark element `k` as missing in the mask, and return the mask, which the first call creates."""
    if mask is None:
        mask = np.ones(n, bool)
    (<uint8_t*> cnp.PyArray_DATA(mask))[k] = 0
    return mask
