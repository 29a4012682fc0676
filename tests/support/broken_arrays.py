"""Producers and consumers that each break one rule of a protocol, in a module that a new interpreter can import."""

import ctypes
import os

import numpy as np

import arrayhub as ah

_kept = []


class Array:
    """A correct producer of DLPack. Each subclass breaks one rule."""

    def __init__(self, array):
        self.array = ah.asarray(array)

    @property
    def dtype(self):
        return self.array.dtype

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OtherElements(Array):
    def __init__(self, array):
        super().__init__(array[..., ::-1].copy())


class Disagreeing(Array):
    @property
    def __array_interface__(self):
        return np.array(self.array).__array_interface__


class Writable(Array):
    @property
    def __array_interface__(self):
        described = dict(self.array.__array_interface__)
        return {**described, "data": (described["data"][0], False)}


class Leaking(Array):
    def __init__(self, array):
        super().__init__(array)
        _kept.append(array)


class OneCapsule(Array):
    def __dlpack__(self, **keywords):
        if not hasattr(self, "capsule"):
            self.capsule = super().__dlpack__(**keywords)
        return self.capsule


class ElsewhereInWords(Array):
    def __dlpack_device__(self):
        return (2, 0)


class WithoutVersion(Array):
    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()


class WithoutDevice(Array):
    def __dlpack__(self, *, stream=None, max_version=None, copy=None):
        return self.array.__dlpack__(max_version=max_version, copy=copy)


class WithoutStream(Array):
    def __dlpack__(self, *, max_version=None, dl_device=None, copy=None):
        return self.array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


class NeverCopying(Array):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.array.__dlpack__(max_version=max_version)


class RefusingByRuntimeError(Array):
    def __dlpack__(self, **keywords):
        raise RuntimeError("on purpose")

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class WithoutExport(Array):
    def __dlpack__(self, **keywords):
        return self.array.to_dlpack(**keywords)  # AttributeError


class Refusing(Array):
    def __dlpack__(self, **keywords):
        raise BufferError("on purpose")


class Aborting(Array):
    def __dlpack__(self, **keywords):
        if self.array.size and self.array.strides[0] < 0:
            os.abort()
        return self.array.__dlpack__(**keywords)


def read(obj):
    """Import an object correctly."""
    return ah.asarray(obj)


def read_reversed(obj):
    return np.asarray(obj)[..., ::-1] if isinstance(obj, memoryview) else np.from_dlpack(obj)[..., ::-1]


def read_as_int8(obj):
    return np.asarray(obj).astype("i1")


def read_writable(obj):
    array = ah.asarray(obj)
    return np.ndarray(array.shape, array.dtype, (ctypes.c_char * array.memory.nbytes).from_address(array.ptr))


def read_and_keep(obj):
    _kept.append(ah.asarray(obj))
    return _kept[-1]


def read_legacy(obj):
    return ah.asarray(obj.__dlpack__())


def read_anything(obj):
    return np.zeros((3, 4))


def read_and_abort(obj):
    os.abort()


def with_typo(obj):
    return typo(obj)  # noqa: F821


def returning_none(obj):
    return None


def reversed_copy(array):
    return array.copy()[..., ::-1]
