"""An argument that has to be an integer: read by ``__index__``, with the one error that is made otherwise."""

import operator

import numpy as np

from arrayhub._core.errors import show


cpdef bint is_bool(object value):
    """Return whether a value is Python's or NumPy's bool, which are no integers: before NumPy 2.3 its own has ``__index__``."""
    return isinstance(value, (bool, np.bool_))


cpdef Py_ssize_t integer(object value, str what) except? -1:
    """Return an argument as an integer of 63 bits and a sign.

    Parameters
    ----------
    value : object
        What the caller was given.
    what : str
        What the argument is called, for the message.

    Raises
    ------
    TypeError
        No integer: a bool, for one, or a float without a fraction.
    ValueError
        Beyond 63 bits and a sign.
    """
    try:
        if is_digit(value):
            return digit(value)
        if is_bool(value):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} has {show(value)} of type {type(value).__name__}; accepted: integers") from None
    except OverflowError:
        raise ValueError(f"{what} has {show(value)}; accepted: integers that fit in 64 bits with a sign") from None
