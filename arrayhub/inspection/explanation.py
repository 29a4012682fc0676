"""The result of `explain`, with its representations as text and as HTML."""

import html
from collections.abc import Iterator
from dataclasses import dataclass

ZERO_COPY, COPY, CANNOT, NOT_TRIED = "zero-copy", "copy=True", "cannot", "not tried"
# These colors are mixed with the text color, because no single color reaches the contrast of 4.5:1 (WCAG 2) both on
# white and on the usual dark page colors, such as #1e1e1e.
_COLORS = {ZERO_COPY: "#2a9d4a", COPY: "#c98500", CANNOT: "#d94848", NOT_TRIED: "#888888"}
_COLORED = "color:{0};color:color-mix(in srgb,{0} 70%,currentColor)"  # the first if `color-mix` is unknown
_CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"


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
        width = max((len(offer.protocol) for offer in self.offers), default=0)
        for offer in self.offers:
            yield f"  {offer.protocol.ljust(width)}  {self._says(offer)}"
        yield "out:"
        width = max((len(verdict.consumer) for verdict in self.verdicts), default=0)
        for verdict in self.verdicts:
            line = f"  {verdict.consumer.ljust(width)}  {verdict.verdict}"
            reason = self._reason(verdict)
            yield f"{line}: {reason}" if reason else line

    def _says(self, offer: Offer) -> str:
        return f"{'taken' if offer.protocol == self.taken else 'gives' if offer.works else 'refuses'}: {offer.gives}"

    def _reason(self, verdict: Verdict) -> str:
        """Return the text after a verdict: its reason, unless the reason equals `why`, and its call."""
        reason = verdict.reason if verdict.reason != self.why else ""
        call = f"call {verdict.call}" if verdict.call else ""
        return "; ".join(filter(None, (reason, call)))

    def _repr_html_(self) -> str:
        call = f"<div><code>{html.escape(self.call)}</code></div>" if self.call else ""
        head = f"<strong>{html.escape(self.type_name)}</strong>: {html.escape(self.summary)}"
        facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in self.facts)
        rows = [_row(offer.protocol, self._says(offer)) for offer in self.offers]
        rows += [_row(verdict.consumer, self._colored(verdict), escaped=True) for verdict in self.verdicts]
        rows.insert(len(self.offers), f'<tr><th colspan="2" style="{_CELL}">out</th></tr>')
        return (
            f'<div class="arrayhub-explanation">{call}<div>{head}</div><ul style="margin:0.3em 0">{facts}</ul>'
            f'<table style="border-collapse:collapse"><tr><th style="{_CELL}">in</th>'
            f'<td style="{_CELL}">{html.escape(self.why)}</td></tr>{"".join(rows)}</table></div>'
        )

    def _colored(self, verdict: Verdict) -> str:
        reason = self._reason(verdict)
        reason = f" {html.escape(reason)}" if reason else ""
        color = _COLORED.format(_COLORS[verdict.verdict])
        return f'<strong style="{color}">{verdict.verdict}</strong>{reason}'


def _row(name: str, text: str, escaped: bool = False) -> str:
    text = text if escaped else html.escape(text)
    return f'<tr><td style="{_CELL}"><code>{html.escape(name)}</code></td><td style="{_CELL}">{text}</td></tr>'
