"""Producers that a test makes on the spot, and whether somebody still holds one."""

import gc


def lives(reference):
    """Whether what a weak reference refers to is still held, after the collector has run."""
    gc.collect()
    return reference() is not None


def raising(error):
    """A method, or the getter of a property, that raises."""

    def method(*arguments, **keywords):
        raise error

    return method


def producer(*bases, **attributes):
    """An object of a class of its own with these attributes; where it speaks DLPack, it says that it is on the host."""
    device = {"__dlpack_device__": lambda self: (1, 0)} if "__dlpack__" in attributes else {}
    return type("Producer", bases, {**device, **attributes})()


def lending(array):
    """A method `__dlpack__` that lends out an array."""
    return lambda self, **keywords: array.__dlpack__(**keywords)
