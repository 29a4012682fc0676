"""explain: how an object is imported, and which libraries can import it, with or without a copy."""

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import name_of_type
from arrayhub._core.hooks import hooks
from arrayhub.adapters.table import PROTOCOLS
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import protocols_of_type
from arrayhub.convert.names import library_name
from arrayhub.inspection.texts import align_columns, attempt, is_capsule, printable
from arrayhub.libraries import wrappers

ZERO_COPY, COPY, CANNOT, NOT_TRIED = "zero-copy", "copy=True", "cannot", "not tried"


@dataclass(frozen=True)
class Verdict:
    """Result of a conversion for one consumer.

    Attributes
    ----------
    consumer : str
        The name in `convert`.
    verdict : str
        - ``"zero-copy"``: the result shares the memory of the object, and the conversion accepts ``copy=False``.
        - ``"copy=True"``: the result is a copy. The call requires ``copy=True``, except for the data that
          docs/inspect.md lists.
        - ``"cannot"``: the conversion also fails with ``copy=True``.
        - ``"not tried"``: the result depends on values that `explain` does not read, such as a stream, or the lengths
          of many rows, or on the ``from_dlpack`` of a module.
    reason : str
        Why the conversion is not zero-copy, or was not tried. "" for ``"zero-copy"``.
    call : str
        Call to use instead if `consumer` rejects the object, which the call names ``x``. The call converts the object,
        or each of its columns or rows. If `consumer` rejects all of these, the call returns a NestedArray. "" if no
        such call is known.
    """

    consumer: str
    verdict: str
    reason: str
    call: str = ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """The result of `explain`. `repr` and `str` return text, which notebooks display.

    Attributes
    ----------
    type_name : str
        Name of the object's type with its library, as in ``pandas.Series``.
    summary : str
        Description of the object as an array, or ``"no array"``.
    facts : tuple of str
        Properties that some consumers do not support: non-contiguous, unaligned, byte-swapped, read-only, immutable, on
        a device.
    protocols : tuple of str
        The protocols whose attributes the object has, in the order in which `asarray` tries them: names of
        ``asarray(via=)``, and ``"exchange"`` for DLPack's C exchange table. `check` compares what they describe.
    taken : str or None
        The protocol that is used by `asarray`, or by `asnested` if the object is not dense. None if the import fails or
        does not use any of `protocols`.
    why : str
        The reason for `taken`.
    verdicts : tuple of Verdict
        One for each consumer.
    call : str
        The shortest call that works, as a Python expression with the names ``arrayhub`` and ``x`` (the object). The
        call for a dict of columns also uses ``pyarrow``. "" if no such call is known.
    """

    type_name: str
    summary: str
    facts: tuple[str, ...]
    protocols: tuple[str, ...]
    taken: str | None
    why: str
    verdicts: tuple[Verdict, ...]
    call: str = ""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        if self.call:
            yield f"call: {self.call}"
        yield f"{self.type_name}: {self.summary}"
        yield from (f"  {fact}" for fact in self.facts)
        yield f"in: {self.why}"
        if self.protocols:
            yield f"  protocols: {', '.join(self.protocols)}"
        yield "out:"
        yield from map("  {}".format, align_columns(self._verdict_rows()))

    def _verdict_rows(self) -> list[tuple[str, str]]:
        """Return the name of each consumer, and its verdict with the reason, unless it equals `why`, and the call."""
        rows = []
        for verdict in self.verdicts:
            reason = verdict.reason if verdict.reason != self.why else ""
            call = f"call {verdict.call}" if verdict.call else ""
            more = "; ".join(filter(None, (reason, call)))
            rows.append((verdict.consumer, f"{verdict.verdict}: {more}" if more else verdict.verdict))
        return rows

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(obj: Any, /, to: Any = None) -> Explanation:
    """Explain how `asarray` imports an object, and which libraries can import the object without a copy.

    The verdicts follow from the type and the layout of the object. Nothing is converted, no elements of arrays are
    read, and no library is imported, except dpctl to look for a SYCL device. Of Python values, the first 1,000 are
    inspected, of a pandas table, some rows, and of a wide table, some columns. Queries, and streams that can be read
    only once, are not read. An exception of `obj` or of a library becomes part of the explanation, except
    KeyboardInterrupt.

    Parameters
    ----------
    obj : object
        Any object.
    to : str, module or type, optional
        Examine only this library, named as in `convert`. The default depends on `obj`:

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
    name, source = printable(name_of_type(type(obj))), hooks.advice.import_source(obj)
    taken, why = _how_imported(obj, source, name)
    protocols = () if to is not None else tuple(_protocols_of(obj, taken))
    consumers = (to,) if to is not None else source.consumers
    verdicts = tuple(hooks.advice.advise(obj, consumer, source) for consumer in consumers)
    facts = () if source.copied or source.array is None else tuple(_facts(source.array))
    call = verdicts[0].call if to is not None else _shortest_call(source, verdicts)
    verdicts = tuple(replace(v, call="") if v.verdict in (ZERO_COPY, COPY) else v for v in verdicts)
    return Explanation(name, source.summary, facts, protocols, taken, why, verdicts, call)


def _shortest_call(source: Any, verdicts: tuple[Verdict, ...]) -> str:
    """Return the call that imports the object, or "" if none is known."""
    if source.array is None and not source.stream:
        return next((verdict.call for verdict in verdicts if verdict.call), "")
    if isinstance(source.array, USMArray):
        return (source.copied and source.call) or "arrayhub.asarray(x)"
    return "arrayhub.assparse(x)" if source.kind == "sparse" else "arrayhub.asnested(x)"


def _how_imported(obj: Any, source: Any, name: str) -> tuple[str | None, str]:
    """Return the protocol that `asarray` or `asnested` uses, or None, and the reason."""
    cls, array = type(obj), source.array
    if array is None or source.copied:
        return None, source.copied or source.reason
    protocol = getattr(array, "protocol", None)
    through = "" if protocol in (None, "constructed") else f" through {protocol}"
    is_dense = isinstance(array, USMArray)
    dense_only = "" if is_dense else "; asarray returns dense arrays only"
    if is_capsule(obj):
        return "dlpack", "a DLPack capsule, which can be imported once"
    if array is obj:
        return None, f"it is a {cls.__name__}{through and f', imported{through}'}{dense_only}"
    if not is_dense:
        return protocol, f"{'assparse' if source.kind == 'sparse' else 'asnested'} imports it{through}{dense_only}"
    row = wrappers.known(cls)
    if row.parse is not None and attempt(row.parse, obj)[0] is not None:
        return None, f"{row.words.rstrip(',')}, returns its array{through}"
    if row.attribute is not None:
        return None, f"it is a wrapper; asarray imports its .{row.attribute}{through}"
    if not row.root and (attempt(protocols_of_type, cls)[0] or (False, ()))[0]:
        return protocol, f"asarray imports {name} natively and reports the protocol as {protocol}"
    return protocol, f"asarray uses {protocol}, the first protocol of the object that succeeds"


def _protocols_of(obj: Any, taken: str | None) -> Iterator[str]:
    """Yield the names of the protocols of an object. An attribute that raises an error does not count.

    Attributes of the protocol that the import has read are not read again.
    """
    names = (attempt(protocols_of_type, type(obj))[0] or (False, ()))[1]
    for row in PROTOCOLS:
        is_known = row.name == taken or not row.attributes
        if row.name in names and (is_known or any(attempt(hasattr, obj, name)[0] for name in row.attributes)):
            yield row.name


def _facts(array: Any) -> Iterator[str]:
    """Yield the properties of the memory that some consumers do not support."""
    if isinstance(array, USMArray):
        yield from _facts_of_layout(array)
    if not (is_host_readable(array) if isinstance(array, USMArray) else array._is_on_host()):
        yield f"on {array.device}: the host cannot read it; to_host(x) copies"


def _facts_of_layout(array: USMArray) -> Iterator[str]:
    flags = array.flags
    if not flags.c_contiguous and not flags.f_contiguous:
        yield printable(f"non-contiguous: shape {array.shape} with byte strides {array.byte_strides}")
    if not flags.aligned:
        yield f"unaligned: the address is {array.ptr:#x}; asarray(x).aligned() copies"
    if array.typenum < FIRST_OWN_TYPENUM and not array.dtype.isnative:
        yield "byte-swapped: not in the machine's byte order; asarray(x).native() copies"
    if array.access != "readwrite":
        yield _ACCESS[array.access]


_ACCESS = {"readonly": "read-only: other code may still write", "immutable": "immutable: the elements never change"}
