"""Who reads by DLPack what the host reads, and knows no SYCL device.

Shared and host USM lies in memory that the host reads too, so that both devices are true of it. DLPack lets a consumer say
which it wants (``dl_device``), and those below do not: they would refuse oneAPI's. They are given the host's, as if they had
asked for it. Everybody else, SYCL's libraries among them, gets the device that the memory belongs to.
"""

import sys

import numpy as np

from arrayhub._core.cpython.frames cimport calling_module
from arrayhub._core.descriptor cimport Descriptor, host_readable
from arrayhub.libraries.torch_as_consumer cimport asked_by

# Those that ask from Python, by the first part of the module that calls.
cdef tuple _PACKAGES = ("jax", "warp", "torch")

# Those that ask from C without ``max_version``: the module that is loaded then, and what is in the name of its file.
cdef dict _FILES = {"mlx.core": b"/mlx/"}

cdef object _numpys_version = None      # the very tuple that NumPy names as its version, by which it is known


cdef class _Probe:
    """An array that NumPy asks in vain, to see what it asks with."""

    def __dlpack__(self, *, max_version=None, **others):
        global _numpys_version
        _numpys_version = max_version
        raise BufferError

    def __dlpack_device__(self):
        return (1, 0)


cdef object numpys_version():
    if _numpys_version is None:
        try:
            np.from_dlpack(_Probe())
        except BufferError:
            pass
    return _numpys_version


cdef str package_that_asks():
    """The reader whose Python code called, or None. A torch that was built for Intel's GPUs knows their devices."""
    name = calling_module()
    root = name.partition(".")[0] if type(name) is str else None
    if root == "torch" and getattr(getattr(sys.modules.get(root), "version", None), "xpu", None) is not None:
        return None
    return root if root in _PACKAGES else None


cdef bint wants_host(Descriptor a, object max_version) except -1:
    """Whether who calls ``__dlpack__`` of USM, without a wish for a device, reads the host's memory only.

    A consumer that names no version is from before DLPack 1.0, whose readers know the host and CUDA (onnxruntime refuses
    others: "Unsupported device type"). It gets the host's device of all memory that the host can read.

    Raises
    ------
    BufferError
        So it does, and the host cannot read this memory.
    """
    cdef const char* file
    if max_version is None and host_readable(a):
        return True
    cdef str reader = "numpy" if max_version is not None and max_version is numpys_version() else package_that_asks()
    if reader is None and max_version is None:
        for name in _FILES:
            file = _FILES[name]
            if name in sys.modules and asked_by(file):
                reader = name
    return reader is not None and check_readable(a, reader)


cdef bint wants_host_device(Descriptor a) except -1:
    """The same of who calls ``__dlpack_device__``, and asks for the memory next."""
    reader = package_that_asks()
    return reader is not None and check_readable(a, reader)


cdef bint check_readable(Descriptor a, str reader) except -1:
    if not host_readable(a):
        raise BufferError(
            f"DLPack: {reader} reads no memory of oneAPI devices, and the host cannot read this; call arrayhub.to_host(x),"
            " which copies"
        )
    return True
