"""check: whether an object's several interfaces say the same about it."""

from typing import Any

from arrayhub._core.errors import InterfaceError
from arrayhub.conversion import asarray
from arrayhub.usm_array import USMArray

# What is tried, in this order, by the names that `via=` takes; the first one that answers is what the others are held to.
_INTERFACES = {
    "__array_interface__": "array_interface",
    "__array_struct__": "array_struct",
    "__cuda_array_interface__": "cuda",
    "__sycl_usm_array_interface__": "sycl",
    "the buffer protocol": "buffer",
    "__dlpack__": "dlpack",
}
_REFUSALS = (AttributeError, BufferError, ImportError, NotImplementedError, RuntimeError, TypeError, ValueError)

# What is compared: its name, and how it is read off an array.
_FACTS = {
    "the pointer": lambda x: f"{x.ptr:#x}",
    "the shape": lambda x: x.shape,
    "the strides in bytes": lambda x: x.byte_strides,
    "the element type": lambda x: x.dtype,
    "the access": lambda x: "read-write" if x.flags.writeable else "read-only",
}
_NOT_IN_LEGACY_CAPSULES = "the access"


def check(obj: Any, /) -> list[str]:
    """Compare what an object's interfaces say: pointer, shape, strides, element type, and whether it may be written.

    Parameters
    ----------
    obj : object
        An object with one or more of ``__array_interface__``, ``__array_struct__``, ``__cuda_array_interface__``,
        ``__sycl_usm_array_interface__``, the buffer protocol and ``__dlpack__``. An interface that refuses, as for memory
        or an element type that it has no words for, is not asked further.

    Returns
    -------
    list of str
        The disagreements, each in words; empty where there are none. A description that its protocol does not allow is
        one too.

    Raises
    ------
    TypeError
        `obj` has none of these interfaces.
    """
    found, faults = {}, []
    for name, via in _INTERFACES.items():
        try:
            found[name] = _ask(obj, via)
        except InterfaceError as error:
            faults.append(f"{name} says what is not allowed: {error}")
        except _REFUSALS:
            continue
    if not found and not faults:
        asarray(obj)  # raises, and says what each of them answered
    names = list(found)
    return faults + [text for name in names[1:] for text in _differences(names[0], *found[names[0]], name, *found[name])]


def _ask(obj: Any, via: str) -> tuple[USMArray, bool]:
    """Return what one interface gives, and whether it can say read-only."""
    if via != "dlpack":
        return asarray(obj, via=via), True
    try:
        capsule = obj.__dlpack__(max_version=(1, 0))
    except TypeError:  # from before there were versions
        capsule = obj.__dlpack__()
    return asarray(capsule, via="dlpack"), "dltensor_versioned" in repr(capsule)


def _differences(first: str, one: USMArray, one_knows: bool, second: str, other: USMArray, other_knows: bool) -> list[str]:
    """Return in words what two interfaces disagree about."""
    texts = []
    for fact, read in _FACTS.items():
        if fact == _NOT_IN_LEGACY_CAPSULES and not (one_knows and other_knows):
            continue
        if fact == "the pointer" and one.size == 0:
            continue  # nobody reads there
        a, b = _value(read, one), _value(read, other)
        if a != b:
            texts.append(f"{fact}: {first} says {a}, {second} says {b}")
    return texts


def _value(read: Any, array: USMArray) -> Any:
    """Return a fact, or for a type without a dtype object, or strides that there are none of, what names it instead."""
    try:
        return read(array)
    except (TypeError, ValueError, BufferError):
        return f"type number {array.typenum}"
