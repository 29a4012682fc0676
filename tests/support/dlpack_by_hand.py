"""DLPack's structs in ctypes, and hand-made producers, valid and invalid."""

import ctypes

import numpy as np

import arrayhub

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
READ_ONLY, IS_COPIED, PADDED = 1, 2, 4


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class LegacyTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class VersionedTensor(ctypes.Structure):
    _fields_ = [
        ("version", Version),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", Tensor),
    ]


class ExchangeTable(ctypes.Structure):
    _fields_ = [
        ("version", Version),
        ("prev_api", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("from_py_object", ctypes.c_void_p),
        ("to_py_object", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FROM_PY_OBJECT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))

_python = ctypes.PyDLL(None)  # not ctypes.pythonapi, because other libraries set argument types of its functions
new_capsule = _python.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = _python.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsule_name = _python.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
capsule_destructor = _python.PyCapsule_GetDestructor
capsule_destructor.restype, capsule_destructor.argtypes = ctypes.c_void_p, [ctypes.py_object]
_set_name = _python.PyCapsule_SetName
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_destructor = _python.PyCapsule_SetDestructor
_set_destructor.argtypes = [ctypes.py_object, ctypes.c_void_p]
_keep = _python.Py_IncRef
_keep.restype, _keep.argtypes = None, [ctypes.py_object]

# These objects are never freed, because a capsule does not own its name, and a deleter may be called after the test.
_kept = [USED := b"used_by_hand"]


def tensor_of(capsule):
    """Return the managed tensor of an unconsumed capsule."""
    name = capsule_name(capsule)
    return {LEGACY: LegacyTensor, VERSIONED: VersionedTensor}[name].from_address(capsule_pointer(capsule, name))


def consume(capsule):
    """Consume a capsule, and return its managed tensor. The caller must call `delete` with the tensor."""
    managed = tensor_of(capsule)
    _set_name(capsule, USED)
    _set_destructor(capsule, None)
    return managed


def delete(managed):
    """Call the deleter of a managed tensor without the GIL, as a C++ consumer might."""
    DELETER(managed.deleter)(ctypes.addressof(managed))


def longs(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class Handmade:
    """A producer of a DLPack tensor with the given fields. By default, the tensor has four float64 elements.

    `deleted` counts calls of the deleter, and `destroyed` calls of the capsule's destructor. `requests` contains the
    keywords of each call of ``__dlpack__``.
    """

    def __init__(
        self, *, versioned=True, memory=None, data=None, shape=(4,), strides="c", dtype=(2, 64, 1), device=(1, 0),
        byte_offset=0, ndim=None, version=(1, 0), flags=0, deleter=True, announced=(1, 0),
    ):  # fmt: skip
        self.memory = np.arange(4.0) if memory is None else memory
        self.announced = announced
        self.deleted = 0
        self.destroyed = 0
        self.requests = []
        self.managed = VersionedTensor() if versioned else LegacyTensor()
        if versioned:
            self.managed.version = Version(*version)
            self.managed.flags = flags
        tensor = self.managed.dl_tensor
        tensor.data = self.memory.ctypes.data if data is None else data
        tensor.device = Device(*device)
        tensor.ndim = len(shape) if ndim is None else ndim
        tensor.dtype = DataType(*dtype)
        tensor.byte_offset = byte_offset
        self.shape = longs(shape or ())
        tensor.shape = None if shape is None else self.shape
        if strides == "c":
            strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
        if strides is not None:
            self.strides = longs(strides)
            tensor.strides = self.strides
        self.callbacks = DELETER(self._delete), DELETER(self._destroy)
        for callback in self.callbacks:  # a capsule may call its destructor at the end of the process
            _keep(callback)
        self.managed.deleter = ctypes.cast(self.callbacks[0], ctypes.c_void_p) if deleter else None
        self.name = VERSIONED if versioned else LEGACY
        _kept.append(self)

    def _delete(self, _address):
        self.deleted += 1

    def _destroy(self, _capsule):
        self.destroyed += 1

    def capsule(self):
        return new_capsule(
            ctypes.addressof(self.managed), self.name, ctypes.cast(self.callbacks[1], ctypes.c_void_p)
        )  # fmt: skip

    def __dlpack__(self, **keywords):
        self.requests.append(keywords)
        self.given = self.capsule()
        return self.given

    def __dlpack_device__(self):
        return self.announced


class OnlyDLPack:
    """An object that exports an array only through DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def packed_int4():
    """Return six 4-bit integers in three bytes."""
    producer = Handmade(memory=np.array([0x21, 0x43, 0x65], "u1"), shape=(2, 3), dtype=(0, 4, 1))
    return arrayhub.asarray(producer.capsule())
