"""check_consumer: test a library's import of arrays."""

import ctypes
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from arrayhub.convert.functions import asarray, to_device, to_host
from arrayhub.testing import cuda
from arrayhub.testing.isolation import report_of
from arrayhub.testing.report import Broken, Check, NotMade, Refused, Report, Rules, add_rule, raising, require
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


_OFFERS: dict[str, Callable[[Any], Any]] = {
    "DLPack": _Dlpack,
    "legacy DLPack": _Legacy,
    "buffer": memoryview,
    # AttributeError for types that the interface cannot represent.
    "__array_interface__": lambda array: SimpleNamespace(
        __array_interface__=asarray(array).__array_interface__, of=array
    ),
}


def _read(read: Callable[[Any], Any], producer: Any) -> Any:
    """Return the result of the consumer's function `read`. Any exception counts as a refusal."""
    with raising(Refused, BaseException):
        return read(producer)


class _Offered(Sample):
    """A sample array that is offered to the consumer through one protocol."""

    def __init__(self, dtype: str, layout: str, offer: str) -> None:
        given = self.take(dtype, layout)
        with raising(NotMade, AttributeError, BufferError, TypeError, ValueError):
            self.obj = _OFFERS[offer](given)
            if isinstance(self.obj, _Dlpack):
                self.obj.array.__dlpack__(max_version=(1, 1))

    def read(self, read: Callable[[Any], Any]) -> Any:
        """Return the result of the consumer's function `read`."""
        found = _read(read, self.obj)
        require(found is not None, "the consumer returned None")
        with raising(Broken, BufferError, TypeError, ValueError, words="the result is not an array: "):
            asarray(found)
        return found


# -------------------------------------------------------------------------------------------------------------- rules

RULES: Rules = []
_rule = partial(add_rule, RULES)


def _each_offer(check: Callable[[Any, _Offered], None]) -> Check:
    """Return a rule that fails if `check` fails for any protocol, and passes if `check` passes for at least one."""

    def rule(read: Any, dtype: str, layout: str) -> None:
        unpassed: list[Refused | NotMade] = []
        for offer in _OFFERS:
            try:
                check(read, _Offered(dtype, layout, offer))
            except Broken as error:
                raise Broken(f"{offer}: {error}") from error
            except (Refused, NotMade) as error:
                unpassed.append(error)
        if len(unpassed) == len(_OFFERS):
            refusals = [error for error in unpassed if isinstance(error, Refused)]
            raise refusals[0] if refusals else NotMade("no protocol can represent this element type")

    return rule


def _only_once(check: Callable[[Any], None]) -> Check:
    """Return a rule that does not depend on element type and layout, and is therefore tested for one cell only."""

    def rule(read: Any, dtype: str, layout: str) -> None:
        if (dtype, layout) != ("float64", "C"):
            raise NotMade("the rule is tested only for float64 in C order")
        check(read)

    return rule


@_rule("values", "the imported array has the producer's elements, shape and type", "DLPack's C interface")
@_each_offer
def _check_values(read: Any, offered: _Offered) -> None:
    array = asarray(offered.read(read))
    require(array.shape == offered.shape, f"the shape is {array.shape} instead of {offered.shape}")
    is_same = array.dtype.newbyteorder("=") == offered.dtype.newbyteorder("=")
    require(is_same, f"the element type is {array.dtype} instead of {offered.dtype}")
    require(bytes_of(np.asarray(to_host(array)).astype(offered.dtype)) == offered.values, "the elements differ")


@_rule("read-only", "read-only memory is not writable in the consumer", "DLPack's C interface")
@_each_offer
def _check_readonly(read: Any, offered: _Offered) -> None:
    # Legacy capsules lack the read-only flag.
    if isinstance(offered.obj, _Legacy) or asarray(offered.obj).flags.writeable:
        raise NotMade("the memory is writable")
    array = asarray(offered.read(read))
    require(not (offered.shares(array) and array.flags.writeable), "read-only memory is writable")


@_rule("lifetime", "the producer's memory is released with the consumer's array, and not before",
       "DLPack's Python interface")  # fmt: skip
@_each_offer
def _check_lifetime(read: Any, offered: _Offered) -> None:
    offered.check_release([offered.read(read)], "the consumer's array")


@_rule("request", "max_version is passed, a stream is not passed for host memory, and the capsule is consumed",
       "__dlpack__")  # fmt: skip
def _check_request(read: Any, dtype: str, layout: str) -> None:
    offered = _Offered(dtype, layout, "DLPack")
    offered.read(read)
    requests, offers = offered.obj.requests, offered.obj.capsules
    if not requests:
        raise NotMade("the consumer does not request DLPack")
    has_version = any("max_version" in keywords for keywords in requests)
    require(has_version, "__dlpack__ is called without max_version, so the producer cannot mark read-only memory")
    has_stream = any(keywords.get("stream") not in (None, -1) for keywords in requests)
    require(not has_stream, "a stream is passed for host memory")
    is_consumed = not offers or '"used_dltensor' in repr(offers[-1])
    require(is_consumed, "the consumed capsule is not renamed, so its deleter would be called twice")


class _OfCapsule:
    """A producer of the given capsule. Without a capsule, it raises BufferError."""

    called = False  # whether the consumer has called __dlpack__

    def __init__(self, capsule: Any = None, device_type: int = 1) -> None:
        self._capsule, self._device = capsule, (device_type, 0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **keywords: Any) -> Any:
        self.called = True
        if self._capsule is None:
            raise BufferError("refused on purpose")
        return self._capsule


@_rule("refusal", "an error of the producer is propagated", "DLPack's Python interface")
@_only_once
def _check_raising(read: Any) -> None:
    producer = _OfCapsule()
    try:
        _read(read, producer)
    except Refused as refusal:
        error, words = refusal.__cause__ or refusal, str(refusal)
        if not producer.called:
            raise NotMade(f"the consumer does not request DLPack: {words}") from error
        # The error of the producer itself, an error that has it as its context, or one about other protocols.
        is_kept = isinstance(error, BufferError) or error.__context__ is not None
        is_kept = is_kept or "refused on purpose" in words or "dlpack" not in words.lower()
        require(is_kept and not isinstance(error, SystemError), f"the producer's BufferError becomes {words}")
        return
    raise Broken("the import succeeds although the producer raises BufferError")


# DLPack's struct DLTensor, followed by the other members of DLManagedTensor.
_NAMES = ["data", "device_type", "device_id", "ndim", "dtype", "shape", "strides", "byte_offset", "context", "deleter"]
_TENSOR = np.dtype({"names": _NAMES, "formats": ["u8", *["i4"] * 4, *["u8"] * 5]})
_KEEP_ALIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda tensor: None)  # a deleter that releases nothing
_pointer_of = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle).PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _alter(array: Any, **members: int) -> _OfCapsule:
    """Return a producer of a legacy capsule in which the given members have unusual values."""
    capsule = array.__dlpack__()
    memory = (ctypes.c_char * _TENSOR.itemsize).from_address(_pointer_of(capsule, b"dltensor"))
    tensor = np.frombuffer(memoryview(memory), _TENSOR)
    for name, value in {"deleter": ctypes.cast(_KEEP_ALIVE, ctypes.c_void_p).value, **members}.items():
        tensor[name] = value
    tensor["data"] -= tensor["byte_offset"]
    return _OfCapsule(capsule, int(tensor["device_type"][0]))


def _unusual(shape: tuple[int, ...], **members: int) -> Check:
    """Return a rule that requires a correct import of an unusual capsule. The consumer may also reject the capsule."""

    @_only_once
    def rule(read: Any) -> None:
        array = np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)
        back = np.asarray(to_host(_read(read, _alter(array, **members))))
        same = back.shape == shape and back.astype("f8").tobytes() == array.tobytes()
        require(same, "the elements or the shape differ")

    return rule


for _name, _text, _check in (
    ("byte_offset", "the address of element zero is data + byte_offset", _unusual((3, 4), byte_offset=64)),
    ("null strides", "null strides mean C order, in legacy capsules", _unusual((3, 4), strides=0)),
    ("null pointer", "the pointer of an array without elements may be null", _unusual((0, 4), data=0)),
    ("null deleter", "the deleter may be null", _unusual((3, 4), deleter=0)),
):
    _rule(_name, _text, "DLPack's C interface")(_check)


@_rule("device", "memory of an unknown device type is rejected", "DLPack's C interface")
@_only_once
def _check_device(read: Any) -> None:
    found = _read(read, _alter(np.arange(4.0), device_type=99))
    raise Broken(f"a capsule of device type 99 is imported, as {type(found).__name__}")


@_rule("streams", "CUDA memory is read after the producer's work is complete", "__dlpack__")
@_only_once
def _check_streams(read: Any) -> None:
    values = np.arange(1.0, 1025.0)
    with raising(NotMade, BufferError, ImportError, words="no CUDA device: "):
        late, memory = to_device(values, "cuda:0"), to_device(np.zeros(1024), "cuda:0")
    stream = cuda.new_stream()
    offered = asarray(memory, stream=stream)
    asarray(late, stream=stream)  # makes the stream wait for the copy to the device
    cuda.delay(stream)
    cuda.call("cuMemcpyAsync", memory.ptr, late.ptr, memory.nbytes, stream)
    producer = _Dlpack(offered)
    found = _read(read, producer)
    has_zero = any(keywords.get("stream") == 0 for keywords in producer.requests)
    require(not has_zero, "stream=0 is passed for CUDA memory, but 0 could mean either default stream")
    # jax without jax_enable_x64 narrows float64 to float32, which represents these values exactly.
    has_values = np.array_equal(np.asarray(to_host(found)), values)
    require(has_values, "the memory is read before the producer's work on its stream is complete")
