"""check: compare how the protocols of an object describe its memory."""

from collections.abc import Iterator
from traceback import format_exception_only
from typing import Any

from arrayhub._core.descriptor import name_of_elements
from arrayhub._core.errors import PASSES_ON, InterfaceError, TypeRefusal, interface_error, show
from arrayhub._core.hooks import hooks
from arrayhub.adapters.arrow import unread
from arrayhub.adapters.table import BY_VIA
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray, check_exportable
from arrayhub.inspection.unread import import_view

# The name of each interface in messages, and the name of its protocol in `via=`. The first interface that succeeds is
# the reference for the others.
_INTERFACES = {row.interfaces[0]: name for name, row in BY_VIA.items()}
_REFUSALS = (AttributeError, BufferError, ImportError, NotImplementedError, RuntimeError, TypeError, ValueError)
_ACCESS = "the access"


def check(obj: Any, /) -> list[str]:
    """Compare what an object's protocols report: pointer, shape, strides, element type, and whether memory is writable.

    Parameters
    ----------
    obj : object
        An object that supports one or more of the protocols that `asarray` accepts. A protocol that rejects the object,
        for example because it cannot represent the element type, is not compared. If `obj` is nested or sparse, all its
        offsets, views, indices and strings are validated. A copy is validated if `obj` is a sparse array on a device,
        or an awkward array that `asnested` cannot view, such as an array whose lists are not in order.

    Returns
    -------
    list of str
        The differences, or an empty list. Violations of a protocol's specification and unexpected errors
        of an interface are included.

    Raises
    ------
    TypeError
        `obj` does not support any protocol, has values that can only be copied, such as a list, or has elements that a
        `USMArray` cannot hold, such as Python objects.
    BufferError
        All protocols reject `obj`, for example because it is a tensor that requires a gradient. Also raised for a query
        or a stream that can be read only once, unless the object supports a protocol other than Arrow.

    Examples
    --------
    >>> arrayhub.check(numpy.zeros(3))
    []
    """
    found: list[tuple[str, dict[str, Any]]] = []
    texts = []
    stream = unread(obj) is not None
    for name, via in _INTERFACES.items():
        if stream and via == "arrow":  # reading would consume the stream, or run the query
            continue
        try:
            found.append((name, _facts(obj, via)))
        except InterfaceError as error:
            texts.append(f"{name} violates its specification: {error}")
        except PASSES_ON:  # before _REFUSALS, which contains base classes of these exceptions
            raise
        except _REFUSALS:
            continue
        except Exception as error:  # a bug in the producer, which also affects other consumers
            texts.append(f"{name} fails with {format_exception_only(error)[0].strip()}")
    if not found:
        for folder in () if stream else (hooks.sparse, hooks.nested):
            faults: list[str] | None = folder.find_faults(obj, texts)
            if faults is not None:
                return faults
        _refuse_without_interface(obj, texts)
    return [*texts, *_disagreements(found)]


def _disagreements(found: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield a message for each fact that an interface reports differently from the first interface."""
    for name, facts in found[1:]:
        first, reference = found[0]
        for fact, expected in reference.items():
            if fact in facts and facts[fact] != expected:
                yield f"{fact}: {first} says {expected}, {name} says {facts[fact]}"


def _refuse_without_interface(obj: Any, texts: list[str]) -> None:
    """Raise the error for an object without a readable interface.

    If `texts` contains messages about the interfaces, only a TypeError is raised.
    """
    try:
        import_view(obj, "check")
    except (TypeError, *PASSES_ON):  # no protocol, or elements that a USMArray cannot hold, such as Python objects
        raise
    except Exception:
        if not texts:
            raise
    if not texts:
        call = "arrayhub.check(arrayhub.asnested(x))" if issubclass(type(obj), (list, tuple)) else ""
        raise TypeRefusal("check", f"obj is {show(obj)}", "arrays, buffers, columns and tables", call)


def _facts(obj: Any, via: Any) -> dict[str, Any]:
    """Return the facts that `check` compares, as reported by one interface of `obj`."""
    producer = _capsule_of(obj) if via == "dlpack" else obj
    facts = _read(asarray(producer, via=via))
    # Legacy capsules do not contain the access, and Arrow declares all memory immutable.
    if via == "arrow" or (via == "dlpack" and "dltensor_versioned" not in repr(producer)):
        del facts[_ACCESS]
    return facts


def _capsule_of(obj: Any) -> Any:
    check_exportable(obj)
    try:
        capsule = obj.__dlpack__(max_version=(1, 1))
    except TypeError as error:
        if type(error) is not TypeError:
            raise  # the producer's own error, such as pyarrow's ArrowTypeError
        # The producer is older than DLPack 1.0, whose method has other parameters.
        capsule = obj.__dlpack__()
    if type(capsule).__name__ != "PyCapsule":
        raise interface_error("DLPack", "__dlpack__()", capsule, "a capsule named 'dltensor_versioned' or 'dltensor'")
    return capsule


def _read(array: USMArray) -> dict[str, Any]:
    """Return the facts that `check` compares. The pointer and strides of an empty array are not used, so omit them."""
    facts = {
        "pointer": f"{array.ptr:#x}",
        "shape": array.shape,
        "strides in bytes": array.byte_strides,
        "element type": _element_type(array),
        _ACCESS: "read-write" if array.flags.writeable else "read-only",
    }
    if array.size == 0:
        del facts["pointer"], facts["strides in bytes"]
    return facts


def _element_type(array: USMArray) -> Any:
    try:
        return array.dtype
    except TypeError:  # an element type that only DLPack has
        return name_of_elements(array)
