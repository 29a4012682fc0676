"""check_consumer: test a library's import of arrays."""

import ctypes
import gc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arrayhub._core.errors import PASSES_ON
from arrayhub.convert.functions import asarray, to_device, to_host
from arrayhub.testing import cuda
from arrayhub.testing.isolation import report_of
from arrayhub.testing.report import (
    DLPACK_C,
    DLPACK_METHOD,
    DLPACK_PYTHON,
    Broken,
    Check,
    NotMade,
    Refused,
    Report,
    Rule,
    words_of,
)
from arrayhub.testing.samples import Sample, bytes_of


def check_consumer(
    read: Callable[[Any], Any], *, dtypes: Iterable[Any] | None = None, layouts: Iterable[str] | None = None
) -> Report:
    """Check a library's import of arrays against the rules of DLPack, the buffer protocol and ``__array_interface__``.

    Parameters
    ----------
    read : callable
        ``read(obj)`` imports an object with ``__dlpack__``, a memoryview, or an object with ``__array_interface__``,
        and returns an array of the library, which is a view or a copy. The returned arrays must be importable by
        `asarray`. Any exception counts as a refusal, but the rule "refusal" requires that a producer's BufferError is
        propagated.
    dtypes, layouts : iterable, optional
        As in `check_producer`.

    Returns
    -------
    Report
        As for `check_producer`, which raises the same errors. Here, `read` may raise the exceptions.

    Examples
    --------
    >>> import numpy
    >>> from arrayhub.testing import check_consumer
    >>> report = check_consumer(numpy.from_dlpack, dtypes=["float64"], layouts=["C", "read-only"])
    >>> report.assert_ok()
    """
    return report_of("consumer", read, dtypes, layouts, RULES)


# ------------------------------------------------------------------------------------------------------------- offers


class _Dlpack:
    """A producer that follows the array API standard, and records the arguments of each ``__dlpack__`` call."""

    accepted = frozenset(("stream", "max_version", "dl_device", "copy"))

    def __init__(self, array: Any) -> None:
        self.array = asarray(array)
        self.requests: list[dict[str, Any]] = []
        self.capsules: list[Any] = []

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        self.requests.append(keywords)
        unknown = set(keywords) - self.accepted
        if unknown:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(unknown)!r}")
        self.capsules.append(self.array.__dlpack__(**keywords))
        return self.capsules[-1]


class _Legacy(_Dlpack):
    """A producer that supports only DLPack before version 1.0."""

    accepted = frozenset(("stream",))


class _Interface:
    """A producer that supports only ``__array_interface__``."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = asarray(array).__array_interface__  # AttributeError for other types
        self._array = array


_OFFERS: dict[str, Callable[[Any], Any]] = {
    "DLPack": _Dlpack,
    "legacy DLPack": _Legacy,
    "buffer": memoryview,
    "__array_interface__": _Interface,
}


def _read(read: Callable[[Any], Any], producer: Any) -> Any:
    """Return the result of the consumer's function `read`. Any exception counts as a refusal."""
    try:
        return read(producer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Refused(words_of(error)) from error


class _Offered(Sample):
    """A sample array that is offered to the consumer through one protocol."""

    def __init__(self, dtype: str, layout: str, offer: str) -> None:
        given = self.take(dtype, layout)
        try:
            self.obj: Any = _OFFERS[offer](given)
            if isinstance(self.obj, _Dlpack):
                self.obj.array.__dlpack__(max_version=(1, 1))
        except (AttributeError, BufferError, TypeError, ValueError) as error:
            raise NotMade(words_of(error)) from error

    def read(self, read: Callable[[Any], Any]) -> Any:
        """Return the result of the consumer's function `read`."""
        found = _read(read, self.obj)
        if found is None:
            raise Broken("the consumer returned None")
        return found

    def import_result(self, found: Any) -> Any:
        """Import the consumer's array with `asarray`."""
        try:
            return asarray(found)
        except (BufferError, TypeError, ValueError) as error:
            raise Broken(f"the result is not an array: {words_of(error)}") from error


# -------------------------------------------------------------------------------------------------------------- rules

RULES: list[tuple[Rule, Check]] = []


def _rule(name: str, text: str, specification: str) -> Callable[[Check], None]:
    """Return a decorator that adds a function to the rules."""

    def add(check: Check) -> None:
        RULES.append((Rule(name, text, specification), check))

    return add


def _each_offer(check: Callable[[Any, _Offered], None]) -> Check:
    """Return a rule that applies `check` to each protocol.

    The rule fails if `check` fails for any protocol. Otherwise the rule passes if `check` passes for at least one
    protocol.
    """

    def rule(read: Any, dtype: str, layout: str) -> None:
        outcomes: list[Exception | None] = []
        for offer in _OFFERS:
            try:
                check(read, _Offered(dtype, layout, offer))
            except Broken as error:
                raise Broken(f"{offer}: {error}") from error
            except (NotMade, Refused) as error:
                outcomes.append(error)
            else:
                outcomes.append(None)
        if None not in outcomes:
            refusals = [error for error in outcomes if isinstance(error, Refused)]
            raise refusals[0] if refusals else NotMade("no protocol can represent this element type")

    return rule


def _only_once(check: Callable[[Any], None]) -> Check:
    """Return a rule that does not depend on element type and layout, and is therefore tested for one cell only."""

    def rule(read: Any, dtype: str, layout: str) -> None:
        if (dtype, layout) != ("float64", "C"):
            raise NotMade("the rule is tested only for float64 in C order")
        check(read)

    return rule


@_rule("values", "the imported array has the producer's elements, shape and type", DLPACK_C)
@_each_offer
def _check_values(read: Any, offered: _Offered) -> None:
    array = offered.import_result(offered.read(read))
    if array.shape != offered.shape:
        raise Broken(f"the shape is {array.shape} instead of {offered.shape}")
    host = np.asarray(to_host(array))
    if array.dtype != offered.dtype:
        expected = np.frombuffer(offered.values, offered.dtype)
        with np.errstate(all="ignore"):
            same = expected.astype(host.dtype).astype(offered.dtype).tobytes() == offered.values
        if not same or bytes_of(host.astype(offered.dtype)) != offered.values:
            raise Broken(f"the elements differ after the conversion to {array.dtype}")
    elif bytes_of(host) != offered.values:
        raise Broken("the elements differ")


@_rule("read-only", "read-only memory is not writable in the consumer", DLPACK_C)
@_each_offer
def _check_readonly(read: Any, offered: _Offered) -> None:
    # Legacy capsules lack the read-only flag.
    if isinstance(offered.obj, _Legacy) or asarray(offered.obj).flags.writeable:
        raise NotMade("the memory is writable")
    array = offered.import_result(offered.read(read))
    if array.size and array.ptr in offered.span and array.flags.writeable:
        raise Broken("read-only memory is writable")


@_rule("lifetime", "the producer's memory is released with the consumer's array, and not before", DLPACK_PYTHON)
@_each_offer
def _check_lifetime(read: Any, offered: _Offered) -> None:
    found = offered.read(read)
    array = offered.import_result(found)
    shared, elements = array.size > 0 and array.ptr in offered.span, bytes_of(np.asarray(to_host(array)))
    del array
    offered.obj = None
    gc.collect()
    if shared and offered.owner() is None:
        raise Broken("the memory is released while the consumer's array exists")
    array = offered.import_result(found)
    if bytes_of(np.asarray(to_host(array))) != elements:
        raise Broken("the elements change after the producer is deleted")
    del array
    del found
    if not offered.is_released():
        raise Broken("the producer's memory is not released with the consumer's array")


@_rule("request", "max_version is passed, a stream is not passed for host memory, and the capsule is consumed",
       DLPACK_METHOD)  # fmt: skip
def _check_request(read: Any, dtype: str, layout: str) -> None:
    offered = _Offered(dtype, layout, "DLPack")
    offered.read(read)
    requests, offers = offered.obj.requests, offered.obj.capsules
    if not requests:
        raise NotMade("the consumer does not request DLPack")
    if all("max_version" not in keywords for keywords in requests):
        raise Broken("__dlpack__ is called without max_version, so the producer cannot mark read-only memory")
    if any(keywords.get("stream") not in (None, -1) for keywords in requests):
        raise Broken("a stream is passed for host memory")
    if offers and '"used_dltensor' not in repr(offers[-1]):
        raise Broken("the consumed capsule is not renamed, so its deleter would be called twice")


class _Raising:
    called = False  # whether the consumer has called __dlpack__

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.called = True
        raise BufferError("refused on purpose")


@_rule("refusal", "an error of the producer is propagated", DLPACK_PYTHON)
@_only_once
def _check_raising(read: Any) -> None:
    producer = _Raising()
    try:
        read(producer)
    except SystemError as error:
        raise Broken(words_of(error)) from error
    except BufferError:
        return
    except PASSES_ON:
        raise
    except Exception as error:
        words = words_of(error)
        if not producer.called:
            raise NotMade(f"the consumer does not request DLPack: {words}") from error
        if "refused on purpose" in words or error.__context__ is not None or "dlpack" not in words.lower():
            return
        raise Broken(f"the producer's BufferError becomes {words}") from error
    raise Broken("the import succeeds although the producer raises BufferError")


# --------------------------------------------------------------------------------------------------- unusual capsules


class _Tensor(ctypes.Structure):
    """DLPack's struct DLTensor, followed by the other members of DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_KEEP_ALIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda tensor: None)  # a deleter that releases nothing
_pointer_of = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle).PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _OfCapsule:
    """A producer of a legacy capsule in which the given members have unusual values."""

    def __init__(self, array: Any, **members: Any) -> None:
        self._capsule, self._device = array.__dlpack__(), (members.get("device_type", 1), 0)
        tensor = _Tensor.from_address(_pointer_of(self._capsule, b"dltensor"))
        for name, value in {"deleter": ctypes.cast(_KEEP_ALIVE, ctypes.c_void_p), **members}.items():
            setattr(tensor, name, value)
        if tensor.data is not None:
            tensor.data -= tensor.byte_offset

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._capsule


def _unusual(shape: tuple[int, ...], **members: Any) -> Check:
    """Return a rule that requires a correct import of an unusual capsule. The consumer may also reject the capsule."""

    @_only_once
    def rule(read: Any) -> None:
        array = np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)
        back = np.asarray(to_host(asarray(_read(read, _OfCapsule(array, **members)))))
        if back.shape != shape or back.astype("f8").tobytes() != array.tobytes():
            raise Broken("the elements or the shape differ")

    return rule


for _name, _text, _check in (
    ("byte_offset", "the address of element zero is data + byte_offset", _unusual((3, 4), byte_offset=64)),
    ("null strides", "null strides mean C order, in legacy capsules", _unusual((3, 4), strides=None)),
    ("null pointer", "the pointer of an array without elements may be null", _unusual((0, 4), data=None)),
    ("null deleter", "the deleter may be null", _unusual((3, 4), deleter=None)),
):
    _rule(_name, _text, DLPACK_C)(_check)


@_rule("device", "memory of an unknown device type is rejected", DLPACK_C)
@_only_once
def _check_device(read: Any) -> None:
    found = _read(read, _OfCapsule(np.arange(4.0), device_type=99))
    raise Broken(f"a capsule of device type 99 is imported, as {type(found).__name__}")


# -------------------------------------------------------------------------------------------------------------- CUDA


@_rule("streams", "CUDA memory is read after the producer's work is complete", DLPACK_METHOD)
@_only_once
def _check_streams(read: Any) -> None:
    values = np.arange(1.0, 1025.0)
    try:
        late, memory = to_device(values, "cuda:0"), to_device(np.zeros(1024), "cuda:0")
    except (BufferError, ImportError) as error:
        raise NotMade(f"no CUDA device: {words_of(error)}") from error
    stream = cuda.new_stream()
    offered = asarray(memory, stream=stream)
    asarray(late, stream=stream)  # makes the stream wait for the copy to the device
    cuda.delay(stream)
    cuda.copy(memory.ptr, late.ptr, memory.nbytes, stream)
    producer = _Dlpack(offered)
    found = _read(read, producer)
    if any(keywords.get("stream") == 0 for keywords in producer.requests):
        raise Broken("stream=0 is passed for CUDA memory, but 0 could mean either default stream")
    # jax without jax_enable_x64 narrows float64 to float32, which represents these values exactly.
    if not np.array_equal(np.asarray(to_host(asarray(found))), values):
        raise Broken("the memory is read before the producer's work on its stream is complete")
