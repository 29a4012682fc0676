"""What `explain` found, and how it is shown: as text, and as HTML in a notebook."""

import html
from collections.abc import Iterator
from dataclasses import dataclass

ZERO_COPY, COPY, CANNOT, NOT_TRIED = "zero-copy", "copy=True", "cannot", "not tried"
# Colours that are readable on light and on dark pages.
_COLOURS = {ZERO_COPY: "#2a9d4a", COPY: "#c98500", CANNOT: "#d94848", NOT_TRIED: "#888888"}
_CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"


@dataclass(frozen=True)
class Offer:
    """One protocol that the object speaks.

    Attributes
    ----------
    protocol : str
        As ``asarray(via=)`` names it; ``"exchange"`` is DLPack's C table, which has no ``via``.
    works : bool
        Whether an array comes of it.
    gives : str
        What the array would be, or why there is none.
    """

    protocol: str
    works: bool
    gives: str


@dataclass(frozen=True)
class Verdict:
    """Whether one consumer can have the object.

    Attributes
    ----------
    consumer : str
        As `convert` names it.
    verdict : str
        ``"zero-copy"``: on the same memory. ``"copy=True"``: if the caller asks for a copy. ``"cannot"``: not even
        then. ``"not tried"``: the reason says what trying would do.
    reason : str
        Why it is not zero-copy; of what is not dense also what is made beside the elements.
    """

    consumer: str
    verdict: str
    reason: str


@dataclass(frozen=True, repr=False)
class Explanation:
    """What `explain` found, shown as text at the prompt and by `print`, and as a table in a notebook.

    Attributes
    ----------
    type_name : str
        Of the object.
    summary : str
        What it is as an array; for what is none, that it is none.
    facts : tuple of str
        What keeps consumers from taking it: non-contiguous, unaligned, byte-swapped, read-only, a device.
    offers : tuple of Offer
        The protocols that it speaks, in the order in which `asarray` asks.
    taken : str or None
        The protocol of the object's that `asarray` takes.
    why : str
        Why that one; or why none.
    verdicts : tuple of Verdict
        One a consumer.
    """

    type_name: str
    summary: str
    facts: tuple[str, ...]
    offers: tuple[Offer, ...]
    taken: str | None
    why: str
    verdicts: tuple[Verdict, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
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
            yield f"{line}: {verdict.reason}" if self._adds(verdict) else line

    def _says(self, offer: Offer) -> str:
        return f"{'taken' if offer.protocol == self.taken else 'gives' if offer.works else 'refuses'}: {offer.gives}"

    def _adds(self, verdict: Verdict) -> bool:
        """Whether a verdict's reason is more than what was said above it."""
        return verdict.reason not in ("", self.why)

    def _repr_html_(self) -> str:
        head = f"<strong>{html.escape(self.type_name)}</strong>: {html.escape(self.summary)}"
        facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in self.facts)
        rows = [_row(offer.protocol, self._says(offer)) for offer in self.offers]
        rows += [_row(verdict.consumer, self._coloured(verdict), escaped=True) for verdict in self.verdicts]
        rows.insert(len(self.offers), f'<tr><th colspan="2" style="{_CELL}">out</th></tr>')
        return (
            f'<div class="arrayhub-explanation"><div>{head}</div><ul style="margin:0.3em 0">{facts}</ul>'
            f'<table style="border-collapse:collapse"><tr><th style="{_CELL}">in</th>'
            f'<td style="{_CELL}">{html.escape(self.why)}</td></tr>{"".join(rows)}</table></div>'
        )

    def _coloured(self, verdict: Verdict) -> str:
        reason = f" {html.escape(verdict.reason)}" if self._adds(verdict) else ""
        return f'<strong style="color:{_COLOURS[verdict.verdict]}">{verdict.verdict}</strong>{reason}'


def _row(name: str, text: str, escaped: bool = False) -> str:
    text = text if escaped else html.escape(text)
    return f'<tr><td style="{_CELL}"><code>{html.escape(name)}</code></td><td style="{_CELL}">{text}</td></tr>'
