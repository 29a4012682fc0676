"""Validation of integer arguments, which are converted with ``__index__``."""

import operator

import numpy as np

from arrayhub._core.errors import show


cpdef bint is_bool(object value):
    """Return whether a value is a bool of Python or NumPy. Both have ``__index__`` (NumPy's bool only before NumPy 2.3)."""
    return isinstance(value, (bool, np.bool_))


cpdef Py_ssize_t integer(object value, str what) except? -1:
    """Convert an argument to a signed 64-bit integer.

    Parameters
    ----------
    value : object
        The argument.
    what : str
        Name of the argument, for the message.

    Raises
    ------
    TypeError
        The value is not an integer. Bools and integral floats are rejected.
    ValueError
        The value does not fit in 64 bits.
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
