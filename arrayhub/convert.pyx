"""asarray and the as_* family: which way in a type takes, remembered by type."""

import sys

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uintptr_t

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters cimport array_interface, buffer, cuda_array, dlpack, sycl_usm
from arrayhub.libraries cimport dpctl
from arrayhub.libraries cimport numpy as numpy_room
from arrayhub.usm_array cimport USMArray

import arrayhub.usm_array
import numpy


def asarray(obj, /, *, dtype=None, device=None, copy=None, stream=None, via=None):
    for parse in (0,1,2):
        pass
    if isinstance(obj, numpy.ndarray):
        return numpy_room.parse(obj, stream)
    a = dlpack.parse(obj, stream)
    if a is None:
        a = buffer.parse(obj, stream)
    return a

def as_numpy(obj):
    return numpy_room.emit(asarray(obj))
