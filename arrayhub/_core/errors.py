"""Errors for people: which protocol, which key, what value, what would be accepted."""

import reprlib

# One rule says what an exception out of somebody else's code means. Only an AttributeError says that there is no such
# attribute. Whoever reads other exceptions as an answer of the object lets these pass, which speak of the process, and
# lets pass what is no Exception at all: KeyboardInterrupt, SystemExit, GeneratorExit.
PASSES_ON = (MemoryError, RecursionError)


class InterfaceError(ValueError):
    """A producer described its memory in a way that its protocol does not allow.

    The message names the protocol, the key, the offending value and what would have been accepted.
    """


def show(value: object) -> str:
    """Return a short representation of `value` on one line, whatever its ``__repr__`` does.

    A hostile producer must not turn the report of its own fault into another one.
    """
    try:
        return " ".join(reprlib.repr(value).splitlines())  # those of tables and arrays have many lines
    except Exception:
        return f"<{type(value).__name__} object>"


def interface_error(protocol: str, key: str, value: object, accepted: str) -> InterfaceError:
    """Build the one form that every complaint about a producer has.

    Parameters
    ----------
    protocol : str
        The protocol's attribute or its usual name, such as ``__cuda_array_interface__``.
    key : str
        The key or field that is wrong.
    value : object
        What the producer gave.
    accepted : str
        What would have been accepted, and where there is one, the call to make instead.

    Returns
    -------
    InterfaceError
        To be raised by the caller.
    """
    return InterfaceError(f"{protocol}: {key} is {show(value)}; accepted: {accepted}")
