"""The result of `explain`, with its representations as text and as HTML."""

import html
from collections.abc import Iterator
from dataclasses import dataclass

ZERO_COPY, COPY, CANNOT, NOT_TRIED = "zero-copy", "copy=True", "cannot", "not tried"


@dataclass(frozen=True)
class Offer:
    """Result of an import through one protocol that the object supports.

    Attributes
    ----------
    protocol : str
        The name in ``asarray(via=)``, or ``"exchange"`` for DLPack's C exchange table, which ``via=`` does not accept.
    works : bool
        Whether the protocol returns an array.
    gives : str
        Description of the array, or the reason for the refusal.
    """

    protocol: str
    works: bool
    gives: str


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
    """The result of `explain`. `repr` and `str` return text, and notebooks show a table.

    Attributes
    ----------
    type_name : str
        Name of the object's type.
    summary : str
        Description of the object as an array, or ``"no array"``.
    facts : tuple of str
        Properties that some consumers do not support: non-contiguous, unaligned, byte-swapped, read-only, immutable, on
        a device.
    offers : tuple of Offer
        The protocols that the object supports, in the order in which `asarray` tries them.
    taken : str or None
        The protocol that is used by `asarray`, or by `asnested` if the object is not dense. None if the import fails or
        does not use any of `offers`.
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
    offers: tuple[Offer, ...]
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
        yield from _align(self._offer_rows())
        yield "out:"
        yield from _align(self._verdict_rows())

    def _offer_rows(self) -> list[tuple[str, str]]:
        """Return the name of each protocol, and what it gives."""
        says = ("taken" if o.protocol == self.taken else "gives" if o.works else "refuses" for o in self.offers)
        return [(o.protocol, f"{word}: {o.gives}") for word, o in zip(says, self.offers, strict=True)]

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
        call = f"<div><code>{html.escape(self.call)}</code></div>" if self.call else ""
        head = f"<strong>{html.escape(self.type_name)}</strong>: {html.escape(self.summary)}"
        facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in self.facts)
        rows = [("in", self.why), *self._offer_rows(), ("out", ""), *self._verdict_rows()]
        name, text = (f'<td style="{_CELL}">{cell}</td>' for cell in ("<code>{}</code>", "{}"))
        table = "".join(f"<tr>{name}{text}</tr>".format(*map(html.escape, row)) for row in rows)
        return (
            f'<div class="arrayhub-explanation">{call}<div>{head}</div><ul style="margin:0.3em 0">{facts}</ul>'
            f'<table style="border-collapse:collapse">{table}</table></div>'
        )


_CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"


def _align(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield indented lines in which the second parts of the rows begin in one column."""
    width = max((len(name) for name, _ in rows), default=0)
    yield from (f"  {name.ljust(width)}  {text}" for name, text in rows)
