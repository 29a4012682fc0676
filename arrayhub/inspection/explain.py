"""explain: report whether each library can import an object, by trying the conversion without a copy."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice, repeat
from typing import Any

import numpy as np

from arrayhub._core.copying import CopyForbidden
from arrayhub._core.descriptor import BOUNDARY, MAX_NDIM, empty_like
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import NO_CUDA_DEVICE, module_of
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import Tree
from arrayhub.adapters.arrow import unread
from arrayhub.adapters.dlpack import peek
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import (
    CONSUMERS,
    VALUES,
    asarray,
    check_values,
    convert,
    nested_consumers,
    offer,
    protocols_of_type,
    to_device,
)
from arrayhub.convert.names import library_name
from arrayhub.inspection.datashape.types import type_of
from arrayhub.inspection.explanation import CANNOT, COPY, NOT_TRIED, ZERO_COPY, Explanation, Offer, Verdict
from arrayhub.libraries import plugins, wrappers
from arrayhub.runtimes.cuda import has_device
from arrayhub.runtimes.host import is_host_readable

LONGEST_TEXT = 300  # maximum characters of a text from other libraries, such as an error message
LOOKED_AT = 1000  # maximum number of items of nested sequences that are inspected
_CAPSULE = type(USMArray.__dlpack_c_exchange_api__)


def explain(obj: Any, /, to: Any = None) -> Explanation:
    """Explain how `asarray` imports an object, and which libraries can import the object without a copy.

    Each conversion is tried:

    - A conversion that requires ``copy=True`` is tried with a small array of the same type instead of `obj`.
    - A conversion that always copies, such as booleans to Arrow, copies `obj`, or up to 1,000 items of a Python
      sequence.
    - Queries, and streams that can be read only once, are not read.

    For this purpose, `explain` imports the installed libraries. An exception of `obj` or of a library becomes part of
    the explanation, except KeyboardInterrupt.

    Parameters
    ----------
    obj : object
        Any object.
    to : str, module or type, optional
        Try only this library, named as in `convert`. The default depends on `obj`:

        - dense data: the libraries of dense arrays
        - nested data: numpy, torch, arrow, polars, pandas and awkward
        - nested Python values: the libraries of both dense and nested data
        - sparse arrays: the libraries of sparse arrays

    Returns
    -------
    Explanation
        Printable result. Its verdicts are ``"zero-copy"``, ``"copy=True"`` (the result is a copy),
        ``"cannot"`` and ``"not tried"``.

    Raises
    ------
    ValueError
        `convert` does not support the library `to`.

    Examples
    --------
    >>> print(arrayhub.explain(bytearray(4), to="numpy"))
    call: arrayhub.as_numpy(x)
    bytearray: 4 * uint8, readwrite, on cpu
    in: asarray imports bytearray natively and reports the protocol as buffer
    out:
      numpy  zero-copy
    """
    if to is not None:
        to = library_name(to, "explain")
    explanation = _examine(obj, to)
    if explanation.call:
        return explanation
    if to is not None or explanation.taken is None or not _is_dense(explanation):
        verdicts = tuple(map(_with_call, repeat(obj), explanation.verdicts, repeat(to)))
        explanation = replace(explanation, verdicts=verdicts)
    return replace(explanation, call=_shortest_call(obj, explanation, to))


def _is_dense(explanation: Explanation) -> bool:
    """Return whether all verdicts are for libraries of dense arrays."""
    return not any(verdict.consumer in nested_consumers() for verdict in explanation.verdicts)


def _with_call(obj: Any, verdict: Verdict, to: str | None) -> Verdict:
    """Replace the advice of an error with a call that works, if the library rejects the data and such a call is known.

    For libraries other than numpy, torch and the libraries of nested arrays, calls are tried only if `to` names the
    library.
    """
    if verdict.verdict not in (CANNOT, NOT_TRIED) or verdict.call:
        return verdict
    if verdict.consumer != to and verdict.consumer not in (*hooks.DENSE_CONSUMERS, *nested_consumers()):
        return verdict
    call, _ = attempt(hooks.nested_call, obj, verdict.consumer, verdict.reason)
    if not call:
        return verdict
    return replace(verdict, reason=_ADVICE.split(verdict.reason, maxsplit=1)[0], call=call)


# The start of the advice in an error's message. `explain` replaces the advice with a call that it has tried.
_ADVICE = re.compile(r"(?:[.;,] (?:or )?|^)(?:Use|Convert|Pass|Call|call|pass|use) ")


def _examine(obj: Any, to: str | None) -> Explanation:
    name = type_name(type(obj))
    stream, _ = attempt(unread, obj)
    array, protocol_used, why = _import_besides_stream(obj) if stream else _import(obj, name)
    # `asarray` imports the array in a wrapper, and does not use the wrapper's own protocols.
    is_wrapper = array is not None and protocol_used is None and wrappers.unwraps(type(obj))
    offers = tuple(_offers(obj, array, protocol_used, why, stream)) if to is None and not is_wrapper else ()
    if array is None and stream:
        asked = (*CONSUMERS, *nested_consumers()) if to is None else (to,)
        return Explanation(name, stream, (), offers, None, why, _alike(asked, NOT_TRIED, why))
    if array is None:
        described = None
        if not issubclass(type(obj), VALUES):
            described = hooks.explain_sparse(obj, name, offers, to) or hooks.explain_nested(obj, name, offers, to)
        return described or _explain_without_memory(obj, name, offers, why, to)
    nested = hooks.nested_verdict(obj, to) if to in nested_consumers() else None  # for example, for records
    consumers = (*CONSUMERS, *plugins.emitting()) if to is None else (to,)
    verdicts = (nested,) if nested else tuple(_verdicts(obj, array, consumers, to))
    return Explanation(name, _summary(array), tuple(_facts(array)), offers, protocol_used, why, verdicts)


def _shortest_call(obj: Any, explanation: Explanation, to: str | None) -> str:
    """Return the shortest call that works, or "" if none is known."""
    works = [verdict for verdict in explanation.verdicts if verdict.verdict != CANNOT]
    if to is None:
        is_dense = not any(verdict.consumer in nested_consumers() for verdict in works)
        if not works:
            return next((verdict.call for verdict in explanation.verdicts if verdict.call), "")
        return "arrayhub.asarray(x)" if is_dense else "arrayhub.asnested(x)"
    call = f"arrayhub.as_{to}(x" if to in (*CONSUMERS, *nested_consumers()) else f"arrayhub.convert(x, {to!r}"
    if works and not works[0].call:
        return call + (", copy=True)" if works[0].verdict == COPY and not _copies_without_request(obj, to) else ")")
    return explanation.verdicts[0].call


def _copies_without_request(obj: Any, to: str) -> bool:
    """Return whether a conversion that copies succeeds without ``copy=True``, as for Python values."""
    first = obj[:LOOKED_AT] if issubclass(type(obj), (list, tuple, range)) else obj
    return not attempt(convert, first, to)[1]


# ------------------------------------------------------------------------------------------------------- foreign code


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, str]:
    """Call a function that may run foreign code. Return its result and "", or None and the reason for the failure."""
    try:
        return function(*arguments, **options), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, _reason(error)


def _reason(error: BaseException) -> str:
    """Return the reason of a CopyForbidden, or the first line of an error's message, even if ``__str__`` raises."""
    if isinstance(error, CopyForbidden):
        return error.why
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        text = ""
    message, kind = printable(text), type_name(type(error))
    if " " in message:
        return message
    return f"{kind}: {message}" if message else kind  # one word is unclear without the class, as in KeyError: 'shape'


def printable(text: str) -> str:
    """Return the first line of a string, shortened and printable, as an exact str."""
    text = str.lstrip(str.__getitem__(text, slice(4 * LONGEST_TEXT)))
    line = "".join(c if c.isprintable() else "?" for c in text.partition("\n")[0])
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 3] + "..."


def type_name(cls: type) -> str:
    """Return the name of a type as the interpreter stores it, which a metaclass cannot redefine."""
    module = module_of(cls)
    name = printable(type.__dict__["__qualname__"].__get__(cls))
    return name if module in ("", "builtins") else f"{printable(module)}.{name}"


# ------------------------------------------------------------------------------------------------------------- import


def _import(obj: Any, name: str) -> tuple[USMArray | None, str | None, str]:
    """Import `obj` without a copy. Return the array or None, the protocol that was used or None, and the reason."""
    cls = type(obj)
    if cls is _CAPSULE:
        array, refusal = attempt(peek, obj)
        return array, None if refusal else "dlpack", refusal or "a DLPack capsule, which can be imported once"
    if issubclass(cls, VALUES):
        return _import_value(obj, name)
    array, refusal = attempt(asarray, obj)
    if array is None:
        return None, None, refusal
    if array is obj:
        through = through_protocol(array)
        return array, None, f"it is a USMArray{through and f', imported{through}'}"
    row = wrappers.known(cls)
    if row is not None and row.parse is not None and attempt(row.parse, obj)[0] is not None:
        return array, None, f"{row.words.rstrip(',')}, returns its array{through_protocol(array)}"
    if row is not None and row.attribute is not None:
        return array, None, f"it is a wrapper; asarray imports its .{row.attribute}{through_protocol(array)}"
    if row is None and _protocols(cls)[0]:
        why = f"asarray imports {name} natively and reports the protocol as {array.protocol}"
    else:
        why = _why_used(array)
    return array, array.protocol, why


def through_protocol(array: Any) -> str:
    """Return " through" and the protocol of an array, or "" if the array was not imported."""
    return "" if array.protocol == "constructed" else f" through {array.protocol}"


def _why_used(array: USMArray) -> str:
    return f"asarray uses {array.protocol}, the first protocol of the object that succeeds"


def _import_besides_stream(obj: Any) -> tuple[USMArray | None, str | None, str]:
    """Import a stream through a protocol other than Arrow, because an import through Arrow would read the stream.

    Return the array, the protocol and the reason.
    """
    for protocol in _protocols(type(obj))[1]:
        array = attempt(offer, obj, protocol)[0] if protocol != "arrow" else None
        if array is not None:
            return array, array.protocol, _why_used(array)
    return None, None, "explain does not read the data; arrayhub.asnested(x) does"


def _import_value(obj: Any, name: str) -> tuple[USMArray | None, str | None, str]:
    """Import a value, such as a list, through a protocol. Return the array, the protocol and the reason.

    Return None as the array and as the protocol for values that `asarray` copies, because these lack a protocol.
    """
    for protocol in () if issubclass(type(obj), np.generic) else _protocols(type(obj))[1]:
        array, _ = attempt(offer, obj, protocol)
        if array is not None:
            return array, array.protocol, _why_used(array)
    return None, None, f"a value of type {name} cannot be viewed: asarray copies it through NumPy"


def _protocols(cls: type) -> tuple[bool, tuple[str, ...]]:
    """Return whether a type has an importer, and the protocols that its instances may support."""
    found, _ = attempt(protocols_of_type, cls)
    return found or (False, ())


def _offers(obj: Any, array: USMArray | None, protocol_used: str | None, why: str, stream: str) -> Iterator[Offer]:
    """Yield the result of each protocol of the object. The protocol that the import used is not tried again.

    If the import failed, `why` is the reason. If the object is a stream, `stream` describes it, and Arrow's interface
    is not tried.
    """
    known, protocols = _protocols(type(obj))
    for protocol in ("dlpack",) if type(obj) is _CAPSULE else protocols:
        if protocol == protocol_used and array is not None:
            yield Offer(protocol, True, _summary(array))
        elif protocol == "arrow" and stream:
            yield Offer(protocol, False, f"{stream}; explain does not read it")
        elif protocol == "exchange" and known:  # the library's importer also checks facts that the table does not have
            yield Offer(protocol, array is not None, why if array is None else "DLPack's C exchange table")
        elif type(obj) is not _CAPSULE:
            found, refusal = attempt(offer, obj, protocol)
            if found is not None:
                elsewhere = array is not None and found.size and found.ptr != array.ptr
                yield Offer(protocol, True, _summary(found) + (", at another address" if elsewhere else ""))
            elif refusal:
                yield Offer(protocol, False, refusal)


def _summary(array: USMArray) -> str:
    kind, _ = attempt(type_of, array)
    return f"{printable(str(kind))}, {array.access}, on {array.device}"


def _facts(array: USMArray) -> Iterator[str]:
    """Yield the properties of the memory that some consumers do not support."""
    flags = array.flags
    if not flags.c_contiguous and not flags.f_contiguous:
        yield printable(f"non-contiguous: shape {array.shape} with byte strides {array.byte_strides}")
    if not flags.aligned:
        yield f"unaligned: the address is {array.ptr:#x}; asarray(x).aligned() copies"
    if _is_swapped(array):
        yield "byte-swapped: not in the machine's byte order; asarray(x).native() copies"
    if array.access != "readwrite":
        yield _ACCESS[array.access]
    if not is_host_readable(array):
        yield f"on {array.device}: the host cannot read it; to_host(x) copies"


_ACCESS = {"readonly": "read-only: other code may still write", "immutable": "immutable: the elements never change"}


def _is_swapped(array: USMArray) -> bool:
    return array.typenum < FIRST_OWN_TYPENUM and not array.dtype.isnative


# ------------------------------------------------------------------------------------------------------------ verdicts


def _verdicts(obj: Any, array: USMArray, consumers: Iterable[str], to: str | None) -> Iterator[Verdict]:
    for consumer in consumers:
        yield _verdict(obj, array, consumer, consumer == to)


def _alike(consumers: Iterable[str], verdict: str, why: str) -> tuple[Verdict, ...]:
    """Return the same verdict for each consumer."""
    return tuple(Verdict(consumer, verdict, why) for consumer in consumers)


def _verdict(obj: Any, array: USMArray, consumer: str, asked: bool) -> Verdict:
    """Try to convert `array`, which was imported from `obj`.

    If the conversion requires a copy, try it again with ``copy=True`` and the small array of `_stand_in`.
    """
    refusal = ""
    if consumer == "jax":
        if not asked and _would_start_a_gpu():
            return Verdict(consumer, NOT_TRIED, "jax would reserve GPU memory; explain(x, to='jax') tries it")
        refusal = _why_jax_copies(array)
    # `asarray` imports a NestedArray as immutable memory, but `convert` exports its content with the access it has.
    source = obj if issubclass(type(obj), Tree) else array
    refusal = refusal or attempt(convert, source, consumer)[1]
    if not refusal:
        why = hooks.why_always_copied(array, consumer, obj)
        if why:
            return Verdict(consumer, COPY, why)
        return Verdict(consumer, ZERO_COPY, _ROWS_IN_POLARS if consumer == "polars" and array.ndim == 2 else "")
    obstacle = _why_no_copy(array, consumer)
    if not obstacle:
        return Verdict(consumer, COPY, refusal.removeprefix(f"{consumer}: "))
    return Verdict(consumer, CANNOT, obstacle)


_ROWS_IN_POLARS = "a Series of rows; for a frame of the columns, use polars.DataFrame(arrayhub.as_numpy(x))"


def _why_no_copy(array: USMArray, consumer: str) -> str:
    """Return why the conversion also fails with ``copy=True``, or "" if it succeeds."""
    stand_in, obstacle = attempt(_stand_in, array)
    if obstacle:
        return obstacle
    _, obstacle = attempt(convert, stand_in, consumer, copy=True)
    if obstacle and consumer == "cupy" and not has_device() and attempt(find_spec, "cupy")[0] is None:
        return NO_CUDA_DEVICE
    return obstacle.removeprefix(f"{consumer}: ")


def _stand_in(array: USMArray) -> USMArray:
    """Return an array for a trial copy, with the same type, device and number of dimensions as `array`.

    The result has at most one element, or the shape of `array` if its elements are packed and cannot be sliced. An
    array without elements keeps its shape, because some libraries do not support rows of length 0.
    """
    if array.size and not is_host_readable(array):  # a copy of an empty array would succeed on an unsupported device
        return to_device(empty_like(array[(slice(1),) * array.ndim]), array.device)
    try:
        if array.ndim and array.size:
            return array[:0]
    except BufferError:  # packed elements
        pass
    fresh: USMArray = empty_like(array)
    return fresh


def _why_jax_copies(array: USMArray) -> str:
    """Return why jax would copy the array, or "" if it would not."""
    past = array.ptr % BOUNDARY
    if not array.size or (not is_host_readable(array) and array.device.type != "cuda"):
        return ""
    if past and is_host_readable(array):
        return (
            f"jax requires host memory to be aligned to {BOUNDARY} bytes; the address is {past} bytes past a multiple"
        )
    one, packed = attempt(_one_element, array)
    refusal = "" if packed else attempt(convert, one, "jax")[1]
    return "jax supports 64-bit types only with jax_enable_x64" if "jax_enable_x64" in refusal else refusal


def _one_element(array: USMArray) -> USMArray:
    """Return a new 0-d array of the same type."""
    one: USMArray = empty_like(array[(0,) * array.ndim])
    return one


def _would_start_a_gpu() -> bool:
    return "jax" not in sys.modules and attempt(find_spec, "jax_plugins")[0] is not None


# ------------------------------------------------------------------------------------------------------------- values

_NUMBERS = (bool, int, float, complex)
_SEQUENCES = (list, tuple, range)


def _explain_without_memory(obj: Any, name: str, offers: tuple[Offer, ...], why: str, to: str | None) -> Explanation:
    consumers = [*CONSUMERS] if to is None else [to]
    if not issubclass(type(obj), VALUES):
        return _no_array(name, offers, why, consumers)
    nested = None if to is None or to in CONSUMERS else hooks.verdict_of_values(obj, to)
    if nested:
        return Explanation(name, "a value, which is copied", (), offers, None, why, (nested,))
    dtype, refusal = attempt(_dtype_of_value, obj)
    if not refusal:
        empty, refusal = attempt(asarray, np.empty(0, dtype))
    if refusal:
        return _nested_values(obj, name, refusal, to)
    verdicts = tuple(_verdicts_of_copies(empty, consumers, why))
    return Explanation(name, f"a value, which NumPy converts to {dtype}", (), offers, None, why, verdicts)


def _verdicts_of_copies(empty: USMArray, consumers: list[str], why: str) -> Iterator[Verdict]:
    """Yield the verdict of each consumer on a copy with the element type of `empty`."""
    for consumer in consumers:
        obstacle = _why_no_copy(empty, consumer)
        yield Verdict(consumer, CANNOT if obstacle else COPY, obstacle or why)


def _nested_values(obj: Any, name: str, why: str, to: str | None) -> Explanation:
    """Explain values that do not form a dense array. `asnested` may convert them to a nested array."""
    consumers = [*CONSUMERS] if to is None else [to]
    nested = (*hooks.DENSE_CONSUMERS, *nested_consumers()) if to is None else (to,)
    found = {consumer: hooks.verdict_of_values(obj, consumer) for consumer in nested}
    if all(verdict.verdict == CANNOT for verdict in found.values()):
        return _no_array(name, (), why, consumers)
    why = f"{why}; asnested copies them"
    verdicts = {consumer: Verdict(consumer, CANNOT, why) for consumer in consumers} | found
    return Explanation(name, "nested values, which are copied", (), (), None, why, tuple(verdicts.values()))


def _no_array(name: str, offers: tuple[Offer, ...], why: str, consumers: list[str]) -> Explanation:
    return Explanation(name, "no array", (), offers, None, why, _alike(consumers, CANNOT, why))


def _dtype_of_value(obj: Any) -> np.dtype[Any]:
    """Return the dtype to which NumPy would convert a value, inferred from its first items."""
    level, depth = [obj], 0
    while level and all(issubclass(type(item), _SEQUENCES) for item in level):
        depth += 1
        if depth > MAX_NDIM:
            raise TypeError(f"sequences are nested deeper than NumPy's {MAX_NDIM} dimensions")
        lengths = {_sequence_of(item).__len__(item) for item in level}
        if len(lengths) > 1:
            raise TypeError(f"sequences have different lengths ({', '.join(map(str, sorted(lengths)[:5]))})")
        items = (item for sequence in level for item in _sequence_of(sequence).__iter__(sequence))
        level = list(islice(items, LOOKED_AT))
    if not level:
        return np.dtype(float)
    check_values(level)  # as `asarray` does
    dtypes = [_dtype_of_item(item) for item in level]
    common = np.result_type(*dtypes)
    if common.kind in "SU" and any(dtype.kind not in "SU" for dtype in dtypes):
        raise TypeError("it mixes strings with other types")
    return common


def _sequence_of(sequence: Any) -> Any:
    """Return the base class of `sequence` in `_SEQUENCES`, so that methods of a subclass are not called."""
    return next(filter(partial(issubclass, type(sequence)), _SEQUENCES))


def _dtype_of_item(item: Any) -> Any:
    cls = type(item)
    if issubclass(cls, np.generic):
        return np.generic.dtype.__get__(item)
    if cls is np.ndarray:
        return item.dtype
    if issubclass(cls, str):
        return np.dtype(f"U{max(str.__len__(item), 1)}")
    if issubclass(cls, int) and int.bit_length(item) > 63:
        return np.dtype(np.uint64 if int.bit_length(item) == 64 else object)
    for number in _NUMBERS:
        if issubclass(cls, number):
            return np.dtype(number)
    if issubclass(cls, bytes):
        return np.dtype(f"S{max(bytes.__len__(item), 1)}")
    if _protocols(cls)[1] or hasattr(cls, "__array__"):
        return np.asarray(item).dtype
    if item is None:
        raise TypeError(
            "it contains None, a missing value; call arrayhub.asnested(x), or arrayhub.as_numpy(x, missing=value)"
        )
    raise TypeError(f"it contains {type_name(cls)} objects, which NumPy does not convert to numbers")
