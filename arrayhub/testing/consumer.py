"""check_consumer: test a library's import of arrays."""

import gc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arrayhub._core.errors import PASSES_ON
from arrayhub.convert.functions import asarray, to_device, to_host
from arrayhub.testing import capsules, cuda, rules
from arrayhub.testing.isolation import report_of
from arrayhub.testing.report import Report, Rule
from arrayhub.testing.rules import Broken, NotMade, Refused, Sample, words_of
from arrayhub.testing.samples import bytes_of


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
        Results by rule, element type and layout. If the test of a rule ends the process, the rule fails. If `read`
        raises an exception for each element type and layout, the rule "values" fails with these exceptions.

    Raises
    ------
    TypeError
        `read` is not callable.
    ValueError
        `dtypes` or `layouts` is empty or contains an unknown name.

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

    def __init__(self, array: Any) -> None:
        self.array = asarray(array)
        self.requests: list[dict[str, Any]] = []
        self.capsules: list[Any] = []

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        self.requests.append(keywords)
        unknown = set(keywords) - {"stream", "max_version", "dl_device", "copy"}
        if unknown:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(unknown)!r}")
        self.capsules.append(self.array.__dlpack__(**keywords))
        return self.capsules[-1]


class _Legacy(_Dlpack):
    """A producer that supports only DLPack before version 1.0."""

    def __dlpack__(self, **keywords: Any) -> Any:
        if set(keywords) - {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.requests.append(keywords)
        self.capsules.append(self.array.__dlpack__())
        return self.capsules[-1]


class _Interface:
    """A producer that supports only ``__array_interface__``."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = asarray(array).__array_interface__  # AttributeError for other types
        self._array = array


def _buffer(array: Any) -> Any:
    return memoryview(array)


_OFFERS: dict[str, Callable[[Any], Any]] = {
    "DLPack": _Dlpack,
    "legacy DLPack": _Legacy,
    "buffer": _buffer,
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


def _each_offer(check: Callable[[Any, _Offered], None]) -> Callable[..., None]:
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


# -------------------------------------------------------------------------------------------------------------- rules


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


@_each_offer
def _check_readonly(read: Any, offered: _Offered) -> None:
    # Legacy capsules lack the read-only flag.
    if isinstance(offered.obj, _Legacy) or asarray(offered.obj).flags.writeable:
        raise NotMade("the memory is writable")
    array = offered.import_result(offered.read(read))
    if array.size and array.ptr in offered.span and array.flags.writeable:
        raise Broken("read-only memory is writable")


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
    if not rules.is_released(offered.owner):
        raise Broken("the producer's memory is not released with the consumer's array")


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


def _check_raising(read: Any, dtype: str, layout: str) -> None:
    _only_once(dtype, layout)
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
        if not producer.called:
            raise NotMade(f"the consumer does not request DLPack: {words_of(error)}") from error
        words = words_of(error)
        if "refused on purpose" in words or error.__context__ is not None or "dlpack" not in words.lower():
            return
        raise Broken(f"the producer's BufferError becomes {words}") from error
    raise Broken("the import succeeds although the producer raises BufferError")


def _only_once(dtype: str, layout: str) -> None:
    """Raise NotMade unless the cell is (float64, C): the calling rule does not depend on element type and layout."""
    if (dtype, layout) != ("float64", "C"):
        raise NotMade("the rule is tested only for float64 in C order")


class _OfCapsule:
    def __init__(self, capsule: Any, device: tuple[int, int] = (1, 0)) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._capsule


def _unusual(shape: tuple[int, ...], **options: Any) -> Callable[[Any, str, str], None]:
    """Return a rule that requires a correct import of an unusual capsule. The consumer may also reject the capsule."""

    def rule(read: Any, dtype: str, layout: str) -> None:
        _only_once(dtype, layout)
        array = np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)
        producer = _OfCapsule(capsules.capsule(array, **options))
        found = _read(read, producer)
        back = np.asarray(to_host(asarray(found)))
        if back.shape != shape or back.astype("f8").tobytes() != array.tobytes():
            raise Broken("the elements or the shape differ")

    return rule


def _check_device(read: Any, dtype: str, layout: str) -> None:
    _only_once(dtype, layout)
    device = (99, 0)  # not a device type of the specification
    producer = _OfCapsule(capsules.capsule(np.arange(4.0), device=device), device)
    found = _read(read, producer)
    raise Broken(f"a capsule of device type 99 is imported, as {type(found).__name__}")


def _check_streams(read: Any, dtype: str, layout: str) -> None:
    _only_once(dtype, layout)
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


RULES = (
    (Rule("values", "the imported array has the producer's elements, shape and type", rules.DLPACK_C), _check_values),
    (Rule("read-only", "read-only memory is not writable in the consumer", rules.DLPACK_C), _check_readonly),
    (Rule("lifetime", "the producer's memory is released with the consumer's array, and not before",
          rules.DLPACK_PYTHON), _check_lifetime),
    (Rule("request", "max_version is passed, a stream is not passed for host memory, and the capsule is consumed",
          f"{rules.STANDARD}.__dlpack__.html"), _check_request),
    (Rule("refusal", "an error of the producer is propagated", rules.DLPACK_PYTHON), _check_raising),
    (Rule("byte_offset", "the address of element zero is data + byte_offset", rules.DLPACK_C),
     _unusual((3, 4), offset=64)),
    (Rule("null strides", "null strides mean C order, in legacy capsules", rules.DLPACK_C),
     _unusual((3, 4), strides=False)),
    (Rule("null pointer", "the pointer of an array without elements may be null", rules.DLPACK_C),
     _unusual((0, 4), data=False)),
    (Rule("null deleter", "the deleter may be null", rules.DLPACK_C), _unusual((3, 4), deleter=False)),
    (Rule("device", "memory of an unknown device type is rejected", rules.DLPACK_C), _check_device),
    (Rule("streams", "CUDA memory is read after the producer's work is complete", f"{rules.STANDARD}.__dlpack__.html"),
     _check_streams),
)  # fmt: skip
