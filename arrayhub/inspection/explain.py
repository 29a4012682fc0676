"""Why an object can or cannot reach a library: found by trying, without copying what it holds."""

import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np

from arrayhub._core.allocate import empty_like
from arrayhub._core.descriptor import MAX_NDIM
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import module_of, show
from arrayhub._core.memory import BOUNDARY
from arrayhub.adapters.arrow import unread
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.dispatch import VALUES, check_values, offer, peek, ways_in
from arrayhub.convert.functions import CONSUMERS, asarray, convert, further_takers, to_device
from arrayhub.inspection import not_dense
from arrayhub.inspection.datashape.types import type_of
from arrayhub.inspection.explanation import CANNOT, COPY, NOT_TRIED, ZERO_COPY, Explanation, Offer, Verdict
from arrayhub.libraries import wrappers
from arrayhub.runtimes.host import is_host_readable

LONGEST_TEXT = 300  # characters of what an object says about itself
LOOKED_AT = 1000  # items of nested sequences
_CAPSULE = type(USMArray.__dlpack_c_exchange_api__)


def explain(obj: Any, /, to: str | None = None) -> Explanation:
    """Say why an object can or cannot reach a library, and by which way it comes in.

    Nothing of `obj` is copied: what would copy is tried on an array of its type without elements. A stream that can be
    read once and a query are not read. Libraries that are installed are imported. No object makes it raise, but Ctrl-C
    stops it.

    Parameters
    ----------
    obj : object
        Any object at all.
    to : {"numpy", "torch", "jax", "cupy", "dpnp", "numba", "arrow", "polars", "pandas", "awkward"}, optional
        Ask about one library only. The last four are asked about without it where `obj` is not dense.

    Returns
    -------
    Explanation
        Its `str` is for people. The verdicts are ``"zero-copy"``, ``"copy=True"`` (a copy has to be asked for) and
        ``"cannot"``.

    Raises
    ------
    ValueError
        `to` is no library that `convert` knows.
    """
    if isinstance(to, str):
        to = str.__str__(to)  # a subclass, such as NumPy's own, may have changed how it compares
    if to is not None and (type(to) is not str or to not in CONSUMERS):
        further = further_takers()
        if type(to) is not str or to not in further:
            raise ValueError(f"explain: to is {show(to)}; accepted: {', '.join((*CONSUMERS, *further))}")
    name = type_name(type(obj))
    stream, _ = attempt(unread, obj)
    array, taken, why = _way_besides(obj, stream) if stream else _way_in(obj, name)
    taken_as_wrapper = array is not None and wrappers.unwraps(type(obj))  # which is asked for no protocol
    offers = tuple(_offers(obj, array, taken, why, stream)) if to is None and not taken_as_wrapper else ()
    if array is None and stream:
        asked = (*CONSUMERS, *further_takers()) if to is None else (to,)
        return Explanation(name, stream, (), offers, None, why, _alike(asked, NOT_TRIED, why))
    if array is None:
        nested = None if issubclass(type(obj), VALUES) else not_dense("explain", obj, name, offers, to)
        return nested or _of_what_has_no_memory(obj, name, offers, why, to)
    nested = None if to is None or to in CONSUMERS else not_dense("verdict", obj, to)  # of records, say
    consumers = CONSUMERS if to is None else (to,)
    verdicts = (nested,) if nested else tuple(_verdicts(array, consumers, to))
    return Explanation(name, _summary(array), tuple(_facts(array)), offers, taken, why, verdicts)


# ----------------------------------------------------------------------------------------------- what cannot be trusted


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, str]:
    """Call what may run anybody's code. Return its result and "", or None and the reason why there is none."""
    try:
        return function(*arguments, **options), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, _reason(error)


def _reason(error: BaseException) -> str:
    """The first line of an error's message, whatever its ``__str__`` does."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        text = ""
    said, kind = printable(text), type_name(type(error))
    if " " in said:
        return said
    return f"{kind}: {said}" if said else kind  # as in KeyError: 'shape', where one word is not enough


def printable(text: str) -> str:
    """The first line of a text, made safe to print; exactly a str, and not too long."""
    text = str.lstrip(str.__getitem__(text, slice(4 * LONGEST_TEXT)))
    line = "".join(c if c.isprintable() else "?" for c in text.partition("\n")[0])
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 3] + "..."


def type_name(cls: type) -> str:
    """The name of a type by the interpreter's own record, which no metaclass can redefine."""
    module = module_of(cls)
    name = printable(type.__dict__["__qualname__"].__get__(cls))
    return name if module in ("", "builtins") else f"{printable(module)}.{name}"


# ------------------------------------------------------------------------------------------------------------- way in


def _way_in(obj: Any, name: str) -> tuple[USMArray | None, str | None, str]:
    """The array that `asarray` makes without a copy, the protocol it takes, and why."""
    cls = type(obj)
    if cls is _CAPSULE:
        array, refusal = attempt(peek, obj)
        return array, None if refusal else "dlpack", refusal or "a DLPack capsule; asarray consumes it, once"
    if issubclass(cls, VALUES):
        return _way_of_a_value(obj, name)
    array, refusal = attempt(asarray, obj)
    if array is None:
        return None, None, refusal
    if array is obj:
        return array, None, f"it is a USMArray already; it came in by {array.protocol}"
    if wrappers.unwraps(cls):
        why = f"it is a wrapper; asarray takes its .{wrappers.known(cls).attribute}, by {array.protocol}"
        return array, None, why
    if _protocols(cls)[0]:
        why = f"asarray knows {name} exactly, and takes a way of its own that stands for {array.protocol}"
    else:
        why = f"asarray takes {array.protocol}, the first of its protocols that answers"
    return array, array.protocol, why


def _way_besides(obj: Any, stream: str) -> tuple[USMArray | None, str | None, str]:
    """Return the same of a stream, which is not read: by the first of its other protocols that answers."""
    for protocol in _protocols(type(obj))[1]:
        array = attempt(offer, obj, protocol)[0] if protocol != "arrow" else None
        if array is not None:
            return array, array.protocol, f"asarray takes {array.protocol}, the first of its protocols that answers"
    return None, None, "explain does not read it; arrayhub.asnested(x) does"


def _way_of_a_value(obj: Any, name: str) -> tuple[USMArray | None, str | None, str]:
    """`asarray` would copy these, so it is not called. A subclass may speak a protocol all the same."""
    for protocol in () if issubclass(type(obj), np.generic) else _protocols(type(obj))[1]:
        array, _ = attempt(offer, obj, protocol)
        if array is not None:
            return array, array.protocol, f"asarray takes {array.protocol}, the first of its protocols that answers"
    return None, None, f"a value of type {name} has no memory to view: asarray copies it through NumPy"


def _protocols(cls: type) -> tuple[bool, tuple[str, ...]]:
    """Whether a type is known exactly, and what its instances would be asked for."""
    found, _ = attempt(ways_in, cls)
    return found or (False, ())


def _offers(obj: Any, array: USMArray | None, taken: str | None, why: str, stream: str) -> Iterator[Offer]:
    """Every protocol that the object speaks, each tried once; `why` is the reason where there is no array.

    `stream` says what it is if Arrow's interface is not to be tried.
    """
    known, protocols = _protocols(type(obj))
    for protocol in ("dlpack",) if type(obj) is _CAPSULE else protocols:
        if protocol == taken and array is not None:
            yield Offer(protocol, True, _summary(array))
        elif protocol == "arrow" and stream:
            yield Offer(protocol, False, f"{stream}; it is not read here")
        elif protocol == "exchange" and known:  # its module looks at more than the table says
            yield Offer(
                protocol, array is not None, why if array is None else "DLPack's C table, without a Python call"
            )
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
    """What may keep a consumer from taking the memory as it is."""
    flags = array.flags
    if not flags.c_contiguous and not flags.f_contiguous:
        yield printable(f"non-contiguous: shape {array.shape} with byte strides {array.byte_strides}")
    if not flags.aligned:
        yield f"unaligned: the address is {array.ptr:#x}; asarray(x).aligned() copies"
    if _is_swapped(array):
        yield "byte-swapped: not in the machine's order; asarray(x).native() copies"
    if array.access != "readwrite":
        yield _ACCESS[array.access]
    if not is_host_readable(array):
        yield f"on {array.device}: the host cannot read it; to_host(x) copies"


_ACCESS = {"readonly": "read-only: somebody else may still write", "immutable": "immutable: nobody may write, ever"}


def _is_swapped(array: USMArray) -> bool:
    return array.typenum < FIRST_OWN_TYPENUM and not array.dtype.isnative


# ------------------------------------------------------------------------------------------------------------ verdicts


def _verdicts(array: USMArray, consumers: Iterable[str], to: str | None) -> Iterator[Verdict]:
    for consumer in consumers:
        yield _verdict(array, consumer, consumer == to)


def _alike(consumers: Iterable[str], verdict: str, why: str) -> tuple[Verdict, ...]:
    """Return one verdict for all consumers."""
    return tuple(Verdict(consumer, verdict, why) for consumer in consumers)


def _verdict(array: USMArray, consumer: str, asked: bool) -> Verdict:
    """Try it. What would copy is tried without elements."""
    refusal = ""
    if consumer == "jax":
        if not asked and _would_start_a_gpu():
            return Verdict(consumer, NOT_TRIED, "it would take hold of a GPU; explain(x, to='jax') tries")
        refusal = _why_jax_copies(array)
    refusal = refusal or attempt(convert, array, consumer)[1]
    if not refusal:
        return Verdict(consumer, ZERO_COPY, "")
    obstacle = _why_no_copy(array, consumer)
    if not obstacle:
        return Verdict(consumer, COPY, refusal.removeprefix(f"{consumer}: "))
    return Verdict(consumer, CANNOT, obstacle)


def _why_no_copy(array: USMArray, consumer: str) -> str:
    """Why not even ``copy=True`` helps, and what would; "" where it does."""
    stand_in, obstacle = attempt(_stand_in, array)
    if obstacle:
        return obstacle
    _, obstacle = attempt(convert, stand_in, consumer, copy=True)
    if obstacle and _is_swapped(array) and not attempt(_convert_in_order, stand_in, consumer)[1]:
        return "it has no type of swapped bytes; asarray(x).native() puts them in order"
    return obstacle.removeprefix(f"{consumer}: ")


def _convert_in_order(array: USMArray, consumer: str) -> Any:
    return convert(array.native(), consumer, copy=True)


def _stand_in(array: USMArray) -> USMArray:
    """An array of the same type on the same device, of as many dimensions, to be copied in its place: of no elements,
    or of a fresh one."""
    if array.size and not is_host_readable(array):  # an empty one would not show that nothing copies from there
        return to_device(empty_like(array[(slice(1),) * array.ndim]), array.device)
    try:
        if array.ndim:
            return array[:0]
    except BufferError:  # elements of less than a byte share bytes: no part can be had, so fresh memory has to do
        pass
    fresh: USMArray = empty_like(array)
    return fresh


def _why_jax_copies(array: USMArray) -> str:
    """Why jax would copy before it is found out that it did; "" where it would not."""
    past = array.ptr % BOUNDARY
    if not array.size or (not is_host_readable(array) and array.device.type != "cuda"):
        return ""
    if past and is_host_readable(array):
        return f"jax takes host memory only from a {BOUNDARY}-byte boundary; the address is {past} bytes past one"
    one, packed = attempt(_one_element, array)
    refusal = "" if packed else attempt(convert, one, "jax")[1]
    return "jax takes 64-bit types only with jax_enable_x64" if "jax_enable_x64" in refusal else refusal


def _one_element(array: USMArray) -> USMArray:
    """Return fresh memory for one element of the same type."""
    one: USMArray = empty_like(array[(0,) * array.ndim])
    return one


def _would_start_a_gpu() -> bool:
    return "jax" not in sys.modules and attempt(find_spec, "jax_plugins")[0] is not None


# ------------------------------------------------------------------------------------------------- what has no memory

_NUMBERS = (bool, int, float, complex)
_SEQUENCES = (list, tuple, range)


def _of_what_has_no_memory(obj: Any, name: str, offers: tuple[Offer, ...], why: str, to: str | None) -> Explanation:
    consumers = [*CONSUMERS] if to is None else [to]
    if not issubclass(type(obj), VALUES):
        return _no_array(name, offers, why, consumers)
    nested = None if to is None or to in CONSUMERS else not_dense("values", obj, to)
    if nested:
        return Explanation(name, "a value, which is copied", (), offers, None, why, (nested,))
    dtype, refusal = attempt(_dtype_of_value, obj)
    if not refusal:
        empty, refusal = attempt(asarray, np.empty(0, dtype))
    if refusal:
        return _no_array(name, offers, refusal, consumers)
    verdicts = tuple(_verdicts_of_copies(empty, consumers, why))
    return Explanation(name, f"a value, of which NumPy makes {dtype}", (), offers, None, why, verdicts)


def _verdicts_of_copies(empty: USMArray, consumers: list[str], why: str) -> Iterator[Verdict]:
    """Say of each consumer whether it takes a copy of elements such as those of `empty`."""
    for consumer in consumers:
        obstacle = _why_no_copy(empty, consumer)
        yield Verdict(consumer, CANNOT if obstacle else COPY, obstacle or why)


def _no_array(name: str, offers: tuple[Offer, ...], why: str, consumers: list[str]) -> Explanation:
    return Explanation(name, "no array", (), offers, None, why, _alike(consumers, CANNOT, why))


def _dtype_of_value(obj: Any) -> np.dtype[Any]:
    """What NumPy would make of a value, as far as a look at its first items tells."""
    level, depth = [obj], 0
    while level and all(issubclass(type(item), _SEQUENCES) for item in level):
        depth += 1
        if depth > MAX_NDIM:
            raise TypeError(f"sequences inside each other, more than NumPy's {MAX_NDIM} dimensions, are no array")
        lengths = {_length(item) for item in level}
        if len(lengths) > 1:
            raise TypeError(f"sequences of different lengths ({', '.join(map(str, sorted(lengths)[:5]))}) are no array")
        level = list(islice((item for sequence in level for item in _items(sequence)), LOOKED_AT))
    if not level:
        return np.dtype(float)
    check_values(level)  # which `asarray` looks at, too
    dtypes = [_dtype_of_item(item) for item in level]
    common = np.result_type(*dtypes)
    if common.kind in "SU" and any(dtype.kind not in "SU" for dtype in dtypes):
        raise TypeError("it holds text and values that are none")
    return common


def _length(sequence: Any) -> int:
    length: int = _sequence_of(sequence).__len__(sequence)
    return length


def _items(sequence: Any) -> Iterator[Any]:
    items: Iterator[Any] = _sequence_of(sequence).__iter__(sequence)
    return items


def _sequence_of(sequence: Any) -> Any:
    """The class whose own methods are asked, whatever a subclass makes of them."""
    for cls in _SEQUENCES[:-1]:
        if issubclass(type(sequence), cls):
            return cls
    return _SEQUENCES[-1]


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
        return np.asarray(item).dtype  # NumPy asks it
    raise TypeError(f"it holds {type_name(cls)} objects, of which NumPy makes no numbers")
