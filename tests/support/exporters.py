"""Exporters with arbitrary descriptions, made with ctypes, for the tests of the buffer protocol and array interfaces.

Before CPython 3.12, Python classes cannot export a buffer, so this module writes the C slots of a class.
"""

import ctypes
import itertools
import os

Py_ssize_t = ctypes.c_ssize_t
pythonapi = ctypes.PyDLL(None)


class PyBuffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", Py_ssize_t),
        ("itemsize", Py_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(Py_ssize_t)),
        ("strides", ctypes.POINTER(Py_ssize_t)),
        ("suboffsets", ctypes.POINTER(Py_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


get_buffer = pythonapi.PyObject_GetBuffer
get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
get_buffer.restype = ctypes.c_int
release_buffer = pythonapi.PyBuffer_Release
release_buffer.argtypes = [ctypes.POINTER(PyBuffer)]
release_buffer.restype = None

GETBUFFER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int)
RELEASEBUFFER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(PyBuffer))
# Offset of tp_as_buffer in PyTypeObject since Python 3.8. The header of an object is longer in free-threaded builds.
TP_AS_BUFFER = object.__basicsize__ + 18 * ctypes.sizeof(ctypes.c_void_p)
_numbers = itertools.count()


def ssizes(values):
    """Return a C array of Py_ssize_t, or NULL for None."""
    return None if values is None else (Py_ssize_t * max(1, len(values)))(*values)


def exporter(**fields):
    """Return an exporter of the bytes 0 to 63, whose Py_buffer has the given fields.

    The attribute `released` of its class counts calls of ``bf_releasebuffer``.
    """
    memory = (ctypes.c_ubyte * 64)(*range(64))
    said = {
        "buf": ctypes.addressof(memory), "len": 12, "itemsize": 4, "readonly": 0, "ndim": 1, "format": b"i",
        "shape": [3], "strides": [4], "suboffsets": None, **fields,
    }  # fmt: skip
    keep = {key: ssizes(said[key]) for key in ("shape", "strides", "suboffsets")}
    kind = type(f"Exporter{next(_numbers)}", (), {"released": 0})
    one = kind()

    @GETBUFFER
    def get(self, view, flags):
        out = view.contents
        for key in ("buf", "len", "itemsize", "readonly", "ndim", "format"):
            setattr(out, key, said[key])
        for key, values in keep.items():
            setattr(out, key, ctypes.cast(values, ctypes.POINTER(Py_ssize_t)) if values is not None else None)
        out.internal = None
        pythonapi.Py_IncRef(ctypes.py_object(self))
        out.obj = id(self)
        return 0

    @RELEASEBUFFER
    def release(self, view):
        kind.released += 1

    slots = ctypes.c_void_p.from_address(id(kind) + TP_AS_BUFFER).value
    ctypes.c_void_p.from_address(slots).value = ctypes.cast(get, ctypes.c_void_p).value
    ctypes.c_void_p.from_address(slots + ctypes.sizeof(ctypes.c_void_p)).value = ctypes.cast(
        release, ctypes.c_void_p
    ).value
    kind.kept = (memory, keep, get, release)
    _alive.append(kind)  # the slots must remain valid while views exist
    return one


_alive = []


class PyArrayInterface(ctypes.Structure):
    """NumPy's struct of the protocol ``__array_struct__``."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(Py_ssize_t)),
        ("strides", ctypes.POINTER(Py_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
    ]


DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new_capsule = pythonapi.PyCapsule_New
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
new_capsule.restype = ctypes.py_object
capsule_pointer = pythonapi.PyCapsule_GetPointer
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsule_pointer.restype = ctypes.c_void_p


def read_struct(capsule):
    """Return the struct of a capsule that does not have a name."""
    return PyArrayInterface.from_address(capsule_pointer(capsule, None))


class StructProducer:
    """An object whose ``__array_struct__`` describes the bytes 0 to 63. `freed` counts the freed capsules."""

    freed = 0

    def __init__(self, name=None, descr=None, **fields):
        self.memory = (ctypes.c_ubyte * 64)(*range(64))
        self.descr = descr
        said = {
            "two": 2, "nd": 1, "typekind": b"i", "itemsize": 4, "flags": 0x600, "shape": [3], "strides": [4],
            "data": ctypes.addressof(self.memory), **fields,
        }  # fmt: skip
        self.kept = [ssizes(said.pop(key)) for key in ("shape", "strides")]
        self.struct = PyArrayInterface(**said)
        for key, values in zip(("shape", "strides"), self.kept, strict=True):
            if values is not None:
                setattr(self.struct, key, ctypes.cast(values, ctypes.POINTER(Py_ssize_t)))
        self.struct.descr = None if descr is None else id(descr)
        self.name = name

    @property
    def __array_struct__(self):
        return new_capsule(ctypes.addressof(self.struct), self.name, _count_end)


@DESTRUCTOR
def _count_end(capsule):
    StructProducer.freed += 1


# Whether this run disables fast paths through ARRAYHUB_DISABLE_FAST_PATHS.
FAST_PATHS_OFF = os.environ.get("ARRAYHUB_DISABLE_FAST_PATHS", "0") not in ("", "0")


class Shows:
    """An object with only the given attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Index:
    """An object whose ``__index__`` calls `before`, and returns `value`."""

    def __init__(self, value, before=None):
        self.value, self.before = value, before

    def __index__(self):
        if self.before is not None:
            self.before()
        return self.value

    def __repr__(self):
        return f"Index({self.value!r})"


def has_driver():
    """Return whether a CUDA driver is present. It rejects the made-up addresses of the tests."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False
