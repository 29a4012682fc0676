"""Functions that read and compare memory independently of the tested libraries."""

import ctypes
import importlib
import operator
import sys
import weakref

import numpy as np

BOUNDARY = 64  # bytes: the alignment that jax requires


def aligned(nbytes, misfit=0):
    """Return a new uint8 array that starts `misfit` bytes after a 64-byte boundary."""
    raw = np.zeros(nbytes + 2 * BOUNDARY, np.uint8)
    start = -raw.ctypes.data % BOUNDARY + misfit
    return raw[start : start + nbytes]


def peek(address, nbytes):
    """Return the bytes at an address in host-readable memory."""
    return ctypes.string_at(address, nbytes) if nbytes else b""


def span(shape, byte_strides, itemsize):
    """Return the byte range (low, high), relative to element zero, that the elements of an array cover."""
    if 0 in shape:
        return 0, 0
    steps = [stride * (length - 1) for length, stride in zip(shape, byte_strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + itemsize


def elements_at(address, shape, byte_strides, itemsize):
    """Return the bytes of the elements in C order, read at their addresses."""
    low, high = span(shape, byte_strides, itemsize)
    block = np.frombuffer(peek(address + low, high - low), np.uint8)
    return np.ndarray(shape, f"V{itemsize}", block, -low, byte_strides).tobytes() if high > low else b""


def called(module, name):
    """Return a function of one argument that imports `module`, and calls the module's function `name`."""
    return lambda x: operator.attrgetter(name)(importlib.import_module(module))(x)


class Py_buffer(ctypes.Structure):
    """CPython's Py_buffer, with which `buffer_address` requests a buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


FULL, FULL_RO = 0x11D, 0x11C


def buffer_address(exporter, flags=FULL_RO, write=None):
    """Return the address of an exporter's buffer, after writing the bytes `write` to the buffer if given."""
    view = Py_buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(exporter), ctypes.byref(view), ctypes.c_int(flags))
    address = view.buf
    if write:
        ctypes.memmove(address, write, len(write))
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return address


class _Holder:
    """Object that holds one reference to another object."""

    def __init__(self, held):
        self.held = held


_calibration = _Holder(object())
_ALONE = sys.getrefcount(_calibration.held)  # reference count of an object to which only a holder refers


def watch(root):
    """Return a function that tests whether `root` has been released, after the caller has dropped its references.

    The function uses a weak reference if the type supports weak references. Otherwise the function keeps a reference,
    and tests whether this is the only one.
    """
    if root is None:
        return lambda: True
    try:
        reference = weakref.ref(root)
    except TypeError:
        holder = _Holder(root)
        return lambda: sys.getrefcount(holder.held) == _ALONE
    return lambda: reference() is None
