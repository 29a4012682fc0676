"""Functions that create producers, and a function that tests whether an object is alive."""

import gc


def lives(reference):
    """Return whether the object of a weak reference is alive after a garbage collection."""
    gc.collect()
    return reference() is not None


def raising(error):
    """Return a function that raises `error`, for use as a method or as the getter of a property."""

    def method(*arguments, **keywords):
        raise error

    return method


def producer(*bases, **attributes):
    """Return an object of a new class with the given attributes. ``__dlpack_device__`` is added if needed."""
    device = {"__dlpack_device__": lambda self: (1, 0)} if "__dlpack__" in attributes else {}
    return type("Producer", bases, {**device, **attributes})()


def lending(array):
    """Return a method ``__dlpack__`` that exports `array` instead of the object itself."""
    return lambda self, **keywords: array.__dlpack__(**keywords)
