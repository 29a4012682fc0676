"""check: whether an object's several interfaces say the same about it."""

from collections.abc import Iterator
from traceback import format_exception_only
from typing import Any

from arrayhub._core.descriptor import name_of_elements
from arrayhub._core.errors import PASSES_ON, InterfaceError, interface_error
from arrayhub.adapters.arrow import unread
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.dispatch import check_exportable
from arrayhub.convert.functions import asarray
from arrayhub.inspection import not_dense
from arrayhub.inspection.unread import array_besides

# What is tried, by the names that `via=` takes; the first that answers is what the others are held to.
_INTERFACES = {
    "__array_interface__": "array_interface",
    "__array_struct__": "array_struct",
    "__cuda_array_interface__": "cuda",
    "__sycl_usm_array_interface__": "sycl",
    "the buffer protocol": "buffer",
    "__dlpack__": "dlpack",
    "__arrow_c_array__": "arrow",
}
_REFUSALS = (AttributeError, BufferError, ImportError, NotImplementedError, RuntimeError, TypeError, ValueError)
_NOT_IN_LEGACY_CAPSULES = "the access"  # nor in Arrow, whose memory nobody may write


def check(obj: Any, /) -> list[str]:
    """Compare what an object's interfaces say: pointer, shape, strides, element type, and whether it may be written.

    Parameters
    ----------
    obj : object
        An object with one or more of ``__array_interface__``, ``__array_struct__``, ``__cuda_array_interface__``,
        ``__sycl_usm_array_interface__``, the buffer protocol, ``__dlpack__`` and Arrow's. One that refuses, for
        memory or an element type that it has no words for, says nothing that could disagree. Of what is not dense,
        offsets, views, indices and strings are followed to the last, in a copy of those that awkward has in
        another order.

    Returns
    -------
    list of str
        The disagreements, each in words; empty where there are none. A description that its protocol does not allow is
        one too, and so is an interface that fails with an error that is no refusal.

    Raises
    ------
    TypeError
        `obj` has none of these interfaces, or elements that no array here can hold, such as Python objects.
    BufferError
        It refuses all of them, as a tensor that is part of a gradient does. A stream that can be read once and a query
        are not read.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    texts = []
    stream = unread(obj) is not None
    for name, via in _INTERFACES.items():
        if stream and via == "arrow":  # which reading would empty or compute
            continue
        try:
            found.append((name, _facts(obj, via)))
        except InterfaceError as error:
            texts.append(f"{name} says what is not allowed: {error}")
        except PASSES_ON:  # first: one of them is a kind of what refusals are
            raise
        except _REFUSALS:
            continue
        except Exception as error:  # a fault of the producer's code, which others would meet as well
            texts.append(f"{name} fails with {format_exception_only(error)[0].strip()}")
    if not found and stream:
        array_besides(obj, "check")
    if not found:
        faults: list[str] | None = not_dense("check", obj, texts)
        if faults is not None:
            return faults
        _explain_nothing(obj, texts)
    return [*texts, *_disagreements(found)]


def _disagreements(found: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield each fact of which an interface says something else than the first interface."""
    for name, facts in found[1:]:
        first, held_to = found[0]
        for fact, said in held_to.items():
            if fact in facts and facts[fact] != said:
                yield f"{fact}: {first} says {said}, {name} says {facts[fact]}"


def _explain_nothing(obj: Any, texts: list[str]) -> None:
    """Raise what is wrong with an object of which no interface can be read, unless `texts` say it."""
    try:
        asarray(obj)
    except TypeError:  # Python objects as elements, say: true descriptions, of nothing that an array here can hold
        raise
    except PASSES_ON:
        raise
    except Exception:
        if not texts:
            raise
    if not texts:
        raise TypeError(f"check: {type(obj).__name__} has none of {', '.join(_INTERFACES)}")


def _facts(obj: Any, via: Any) -> dict[str, Any]:
    """Return what one interface says of `obj`."""
    if via == "dlpack":
        capsule = _capsule_of(obj)
        facts = _read(asarray(capsule, via=via))
        if "dltensor_versioned" not in repr(capsule):
            del facts[_NOT_IN_LEGACY_CAPSULES]
        return facts
    facts = _read(asarray(obj, via=via))
    if via == "arrow":
        del facts[_NOT_IN_LEGACY_CAPSULES]
    return facts


def _capsule_of(obj: Any) -> Any:
    check_exportable(obj)
    try:
        capsule = obj.__dlpack__(max_version=(1, 1))
    except TypeError:  # from before there were versions
        capsule = obj.__dlpack__()
    if type(capsule).__name__ != "PyCapsule":
        raise interface_error("DLPack", "__dlpack__()", capsule, "a capsule named 'dltensor_versioned' or 'dltensor'")
    return capsule


def _read(array: USMArray) -> dict[str, Any]:
    """Return the facts that interfaces may disagree about; of an empty array nobody ever reads the first."""
    facts = {
        "pointer": f"{array.ptr:#x}",
        "shape": array.shape,
        "strides in bytes": array.byte_strides,
        "element type": _element_type(array),
        _NOT_IN_LEGACY_CAPSULES: "read-write" if array.flags.writeable else "read-only",
    }
    if array.size == 0:
        del facts["pointer"], facts["strides in bytes"]
    return facts


def _element_type(array: USMArray) -> Any:
    try:
        return array.dtype
    except TypeError:  # one that only DLPack has
        return name_of_elements(array)
