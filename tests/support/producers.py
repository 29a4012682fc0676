"""Functions that create producers, and a function that tests whether an object is alive."""

import gc


def lives(reference):
    """Return whether the referent of a weak reference is alive after a garbage collection."""
    gc.collect()
    return reference() is not None


def raising(error):
    """Return a method, or the getter of a property, that raises `error`."""

    def method(*arguments, **keywords):
        raise error

    return method


def producer(*bases, **attributes):
    """Return an object of a new class with the given attributes. If it supports DLPack, its device is the host."""
    device = {"__dlpack_device__": lambda self: (1, 0)} if "__dlpack__" in attributes else {}
    return type("Producer", bases, {**device, **attributes})()


def lending(array):
    """Return a method `__dlpack__` that exports the given array."""
    return lambda self, **keywords: array.__dlpack__(**keywords)
