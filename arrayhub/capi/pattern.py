"""Parser of the type strings of `Request`: lengths, letters for lengths, and accepted element types."""

from typing import NamedTuple

from arrayhub._core.errors import show

MAX_LENGTH = 2**63 - 1
_EXAMPLE = "'n * 3 * float32' or '... * {float32, float64}'"


class Pattern(NamedTuple):
    """A parsed type string.

    Attributes
    ----------
    lengths : tuple of int or str or None
        One entry per dimension: its length, its letter, or None for any length.
    leading : bool
        Whether any number of further dimensions may precede `lengths`.
    elements : tuple of str
        Accepted element types.
    """

    lengths: tuple[int | str | None, ...]
    leading: bool
    elements: tuple[str, ...]

    @property
    def letters(self) -> tuple[str, ...]:
        """Distinct letters in the order of the dimensions."""
        return tuple(dict.fromkeys(length for length in self.lengths if isinstance(length, str)))

    def __str__(self) -> str:
        parts = ["any" if length is None else str(length) for length in self.lengths]
        if self.leading:
            parts.insert(0, "...")
        return f"({', '.join(parts)})"


def parse_pattern(text: str) -> Pattern:
    """Parse the type string of a `Request`.

    The grammar is that of datashapes with three additions: letters or other identifiers for lengths, ``...`` for any
    number of leading dimensions, and braces for a list of element types.

    Parameters
    ----------
    text : str
        For example ``"float64"``, ``"n * 3 * float32"`` or ``"... * {float32, float64}"``. ``strided`` matches any
        length.

    Returns
    -------
    Pattern

    Raises
    ------
    ValueError
        `text` does not follow the grammar, or has a dimension of variable length (``var``).
    """
    *dimensions, last = [part.strip() for part in text.split("*")]
    leading = dimensions[:1] == ["..."]
    lengths = tuple(_length(text, part) for part in dimensions[leading:])
    if last.startswith("{") and last.endswith("}"):
        elements = tuple(part.strip() for part in last[1:-1].split(","))
    else:
        elements = (last,)
    if not all(elements):
        raise ValueError(f"Request: type is {show(text)}, without an element type; accepted: for example {_EXAMPLE}")
    return Pattern(lengths, leading, elements)


def _length(text: str, part: str) -> int | str | None:
    """Parse one dimension."""
    if part.isascii() and part.isdecimal() and len(part) < 20 and int(part) <= MAX_LENGTH:
        return int(part)
    if part == "strided":
        return None
    if part == "var":
        raise ValueError(
            f"Request: type is {show(text)}, whose rows differ in length; accepted: a dense array such as {_EXAMPLE}."
            " Use arrayhub.asnested(x) for rows of different lengths"
        )
    if part.isidentifier():
        return part
    raise ValueError(
        f"Request: type is {show(text)}, with the dimension {show(part)}; accepted: a length, a letter for a length,"
        f" 'strided', or a leading '...', as in {_EXAMPLE}"
    )
