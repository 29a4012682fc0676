"""check_producer: test the protocols of a library's arrays."""

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

from arrayhub._core.errors import PASSES_ON, InterfaceError, Refusal
from arrayhub.adapters.table import PROTOCOLS
from arrayhub.convert.functions import asarray
from arrayhub.inspection.check import check
from arrayhub.runtimes.sycl import queue_of
from arrayhub.testing import cuda
from arrayhub.testing.isolation import report_of
from arrayhub.testing.report import Broken, NotMade, Refused, Report, Rules, add_rule, raising, require, words_of
from arrayhub.testing.samples import Sample, bytes_of

_VERSION = (1, 1)  # version of DLPack that the rules request
_REFUSALS = (BufferError, TypeError, ValueError)
_ALLOWED = (*_REFUSALS, RuntimeError)  # errors of `__dlpack__` and other protocols; NameError and the like are defects
_CHECKED = ("dlpack", "array_interface", "cuda", "sycl")
_PROTOCOLS = [(row.attributes[0], name) for name in _CHECKED for row in PROTOCOLS if row.name == name]


def check_producer(
    make: Callable[[Any], Any], *, dtypes: Iterable[Any] | None = None, layouts: Iterable[str] | None = None
) -> Report:
    """Check the arrays of a library against the rules of each protocol that the arrays support.

    Parameters
    ----------
    make : callable
        ``make(array)`` converts a ``numpy.ndarray`` to an array of the library, which is a view or a copy. It raises an
        exception for element types and layouts that the library does not support. A function that can be imported by
        name runs in a new process. Other functions run in a fork of this process.
    dtypes : iterable of str or dtype, optional
        Element types, or one element type, in any form that ``numpy.dtype`` accepts. Accepted are "bool", "int8" to
        "int64", "uint8" to "uint64", "float16", "float32", "float64", "complex64", "complex128", "bfloat16",
        "longdouble", "datetime64[ns]", "S5", "U3" and ">f8". The default is all.
    layouts : iterable of str, optional
        Any of "C", "F", "sliced", "negative", "1-d", "0-d", "empty", "unaligned" and "read-only". The default is all.

    Returns
    -------
    Report
        Results by rule, element type and layout. A rule fails if its test ends the process, or does not return within
        60 seconds. If no array can be imported, the rule "values" fails with the exceptions of `make` or the protocols.

    Raises
    ------
    TypeError
        `make` is not callable.
    ValueError
        `dtypes` or `layouts` is empty or contains an unknown name.

    Examples
    --------
    >>> import numpy
    >>> from arrayhub.testing import check_producer
    >>> report = check_producer(numpy.asarray, dtypes=["int32", "complex64"], layouts=["C", "negative"])
    >>> report.assert_ok()
    """
    return report_of("producer", make, dtypes, layouts, RULES)


class _Made(Sample):
    """An object that `make` returned, and the values, shape and dtype that the rules expect."""

    def __init__(self, make: Callable[[Any], Any], dtype: str, layout: str) -> None:
        self.arguments = make, dtype, layout
        given = self.take(dtype, layout)
        with raising(NotMade, BaseException):
            self.obj = make(given)

    def array(self, via: Any = None) -> Any:
        """Import the object. Raise NotMade if the library has converted the elements to a different type."""
        with raising(Refused, *_REFUSALS), raising(Broken, InterfaceError):
            try:
                array = asarray(self.obj, via=via)
            except Refusal as error:
                if not isinstance(error.__cause__, (type(None), *_ALLOWED)):
                    raise Broken(words_of(error.__cause__)) from error
                raise
        if array.dtype != self.dtype and self.dtype.name not in str(getattr(self.obj, "dtype", "")):
            raise NotMade(f"the library converts the elements to {array.dtype}")
        return array

    def protocols(self) -> list[str]:
        """Return the protocols that the object may support, by their names for ``via=``."""
        return ["buffer", *(via for name, via in _PROTOCOLS if hasattr(self.obj, name))]

    def export(self, words: str = "", /, **keywords: Any) -> Any:
        """Return a capsule. Errors of the classes `_ALLOWED` count as refusals.

        A TypeError that only a call with keywords raises breaks the rule. `words` is the start of the reason.
        """
        self.need_dlpack()
        try:
            return self.obj.__dlpack__(**keywords)
        except PASSES_ON:
            raise
        except _ALLOWED as error:
            if keywords and type(error) is TypeError:
                with contextlib.suppress(Refused):
                    self.export()
                    raise Broken(f"{words}: {words_of(error)}") from error
            raise Refused(words_of(error)) from error

    def need_dlpack(self) -> None:
        """Raise NotMade if the object does not support DLPack."""
        if not hasattr(self.obj, "__dlpack__"):
            raise NotMade("the object does not support DLPack")

    def need_version(self) -> None:
        """Raise NotMade if `__dlpack__` does not accept `max_version`."""
        try:
            self.export(max_version=_VERSION)
        except Broken:
            raise NotMade("it does not accept max_version") from None


# -------------------------------------------------------------------------------------------------------------- rules

RULES: Rules = []


def _rule(name: str, text: str, specification: str) -> Callable[[Callable[[_Made], None]], None]:
    """Return a decorator that adds a function to the rules."""
    add = add_rule(RULES, name, text, specification)
    return lambda check: add(lambda *arguments: check(_Made(*arguments)))


@_rule(
    "values", "the exported array has the same elements, shape and element type as the object", "__array_interface__"
)
def _check_values(made: _Made) -> None:
    try:
        array = made.array()
    except Refused as error:
        if isinstance(error.__cause__, TypeError) and made.protocols() == ["buffer"]:
            raise Broken(f"make returns an object that is not an array: {error}") from error
        raise
    require(array.dtype == made.dtype, f"the element type is {array.dtype} instead of {made.dtype}")
    require(array.shape == made.shape, f"the shape is {array.shape} instead of {made.shape}")
    require(bytes_of(array) == made.values, "the elements differ")


@_rule("agreement", "all protocols describe the same memory, and follow their specifications", "buffer protocol")
def _check_agreement(made: _Made) -> None:
    made.array()
    with raising(Refused, *_REFUSALS):
        texts = check(made.obj)
    words = "; ".join(texts).split()  # without addresses, which differ from run to run
    require(not texts, " ".join("an address" if word.rstrip(",").startswith("0x") else word for word in words))


@_rule("read-only", "read-only memory is not writable through any protocol", "DLPack's C interface")
def _check_readonly(made: _Made) -> None:
    if made.arguments[-1] != "read-only" or not made.shares(made.array()):
        raise NotMade("the memory is writable")
    for via in made.protocols():
        try:
            array = made.array(via)
        except Refused:
            continue
        is_writable = made.shares(array) and array.flags.writeable
        require(not is_writable, f"read-only memory is writable through {via}")
    with contextlib.suppress(Refused, NotMade):
        has_flag = '"dltensor"' not in repr(made.export())
        require(has_flag, "read-only memory is exported in a legacy capsule, which lacks the read-only flag")


@_rule(
    "lifetime", "the memory is released with the last array that shares it, and not before", "DLPack's Python interface"
)
def _check_lifetime(made: _Made) -> None:
    checked = 0
    for via in made.protocols():
        made = _Made(*made.arguments)
        with contextlib.suppress(Refused):
            made.check_release([made.array(via)], f"an array imported through {via}")
            checked += 1
    if not checked:
        raise Refused("no protocol describes the memory")


@_rule("capsules", "each capsule is independent, even if it is not consumed or another thread releases it",
       "DLPack's Python interface")  # fmt: skip
def _check_capsules(made: _Made) -> None:
    shared = made.shares(made.array())
    for keywords in ({}, {"max_version": _VERSION}):
        try:
            capsules = [made.export(**keywords) for _ in range(3)]
        except (Refused, Broken):
            continue
        capsules.pop()  # not consumed
        second = asarray(capsules.pop())
        elements = bytes_of(second)
        held = [asarray(capsules.pop())]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        require(bytes_of(second) == elements, "the elements differ after other capsules are released")
        del second
    made.obj = None
    require(not shared or made.is_released(), "the memory is not released after the last capsule is deleted")


@_rule("device", "__dlpack_device__ names the device of the memory", "__dlpack_device__")
def _check_device(made: _Made) -> None:
    array = made.array()
    made.need_dlpack()
    with raising(Refused, BufferError), raising(Broken, AttributeError, words="__dlpack_device__ is missing: "):
        device = made.obj.__dlpack_device__()
    is_pair = isinstance(device, tuple) and len(device) == 2
    require(is_pair, f"__dlpack_device__ returns {type(device).__name__}")
    found = tuple(map(int, device))
    is_right = found == tuple(array.__dlpack_device__())
    require(is_right, f"__dlpack_device__ returns {found}; the memory is on {array.device}")


@_rule("versions", "max_version is accepted, and without it __dlpack__ returns a legacy capsule", "__dlpack__")
def _check_versions(made: _Made) -> None:
    made.array()
    with contextlib.suppress(Refused):
        is_legacy = '"dltensor"' in repr(made.export())
        require(is_legacy, "a consumer without max_version gets a capsule that is not named dltensor")
    capsule = repr(made.export("max_version is not accepted", max_version=_VERSION))
    is_named = '"dltensor_versioned"' in capsule or '"dltensor"' in capsule
    require(is_named, "the capsule is named neither dltensor_versioned nor dltensor")


@_rule("dl_device", "the object's own device is accepted", "__dlpack__")
def _check_device_argument(made: _Made) -> None:
    made.array()
    made.need_version()
    own = made.obj.__dlpack_device__()
    made.export("the object's own device is not accepted as dl_device", max_version=_VERSION, dl_device=own)


@_rule("copy", "copy=True returns a copy, and copy=False the same memory", "__dlpack__")
def _check_copy_argument(made: _Made) -> None:
    array = made.array()
    made.need_version()
    for copy in (True, False):
        try:
            found = asarray(made.export(f"copy={copy} is not accepted", max_version=_VERSION, copy=copy))
        except Refused:
            continue
        same = found.ptr == array.ptr
        words = f"copy={copy} returns {'the same memory' if same else 'different memory'}"
        require(not found.size or same is not copy, words)


@_rule("streams", "a stream of the device is accepted, and waits for the work that fills the memory", "__dlpack__")
def _check_streams(made: _Made) -> None:
    device = _device_type(made)
    accepted = 0
    streams: tuple[Any, ...] = (None,)
    if device == "cuda":
        streams = (None, cuda.LEGACY, cuda.PER_THREAD, cuda.new_stream(), -1)
    elif device == "oneapi":
        streams = (None, queue_of(made.array()))
    for stream in streams:
        name = f"stream={'a handle' if isinstance(stream, int) and stream > cuda.PER_THREAD else repr(stream)}"
        if device == "cuda":
            cuda.delay(cuda.LEGACY)  # delays the work of `make`, so that a missing wait is detected
            made = _Made(*made.arguments)
        try:
            found = asarray(made.export(f"{name} is not accepted", stream=stream))
        except Refused as error:
            if stream is not None and not isinstance(error.__cause__, BufferError):
                raise Broken(f"{name} is rejected with {error}") from error
            continue
        accepted += 1
        if stream == -1:
            continue
        wait = (stream or cuda.LEGACY) if device == "cuda" else None
        elements = bytes_of(found, wait)
        if elements != made.values and device == "cuda":
            cuda.call("cuCtxSynchronize")
        # Otherwise the elements are wrong without any streams.
        is_complete = elements == made.values or bytes_of(found, wait) == elements
        require(is_complete, f"with {name}, the stream does not wait for the elements")
    if not accepted:
        raise Refused("__dlpack__ rejects the array")


def _device_type(made: _Made) -> str:
    """Return the device type from `asarray`, or "cuda" from ``__dlpack_device__`` if `asarray` raises an error."""
    try:
        return str(made.array().device.type)
    except Refused:
        if tuple(getattr(made.obj, "__dlpack_device__", tuple)())[:1] == (2,):
            return "cuda"
        raise


@_rule("refusal", "__dlpack__ raises BufferError if it fails", "__dlpack__")
def _check_refusal(made: _Made) -> None:
    made.array()
    try:
        made.export()
    except Refused as error:
        name = type(error.__cause__).__name__
        require(isinstance(error.__cause__, BufferError), f"__dlpack__ raises {name} instead of BufferError")
        raise
