"""Draw random values, mostly valid ones. The values depend only on the random number generator `r`."""

from exporters import Index

EDGES = [0, 1, -1, 2, 3, 63, 64, 65, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 2**200]


class Raises:
    """An object whose methods raise, except ``__repr__``."""

    def __index__(self):
        raise ValueError("no index")

    def __len__(self):
        raise ValueError("no length")

    def __iter__(self):
        raise ValueError("no iteration")

    def __repr__(self):
        return "Raises()"

    def __eq__(self, other):
        raise ValueError("no comparison")

    __hash__ = None


def integer(r):
    """Draw a length, step, offset or address, which is mostly small."""
    kind = r.random()
    if kind < 0.6:
        return r.randint(-4, 9)
    return r.choice(EDGES) if kind < 0.9 else r.getrandbits(66) - (1 << 65)


def strange(r):
    """Draw a value that is not an integer, or an unusual integer."""
    return r.choice(
        [
            None, True, 1.0, float("nan"), "1", b"1", (), [], {}, object, Raises(), Index(integer(r)), Index("x"), 1j,
            (integer(r), integer(r)), [integer(r)], "\ud800", "x" * 50, bytearray(3), NotImplemented, ...,
            slice(1, 2, 3),
        ]
    )  # fmt: skip


def scalar(r):
    return integer(r) if r.random() < 0.85 else strange(r)


def lengths(r, most=4):
    """Draw a shape or strides, rarely with too many dimensions."""
    nd = r.randint(0, most) if r.random() < 0.95 else r.choice([32, 63, 64, 65, 300])
    return tuple(scalar(r) if r.random() < 0.3 else r.randint(0, 5) for _ in range(nd))


def text(r, letters, most=12):
    """Draw text that consists of elements of `letters`, and sometimes one other character."""
    words = [r.choice(letters) for _ in range(r.randint(0, most))]
    if r.random() < 0.2:
        words.insert(r.randint(0, len(words)), chr(r.choice([0, 10, 127, 233, 0x3000, 0xD800, 0x1F600])))
    return "".join(words)


def changed(r, text, letters):
    """Return a mutation of the valid `text`: up to three random deletions, repetitions or insertions."""
    text = list(text)
    for _ in range(r.randint(0, 3)):
        at = r.randint(0, len(text))
        what = r.randint(0, 2)
        if what == 0:
            text[at : at + 1] = []
        elif what == 1:
            text[at:at] = text[at : at + 4]
        else:
            text[at:at] = r.choice(letters)
    return "".join(text)


def spoilt(r, said, strangers):
    """Replace or omit some entries of the valid description `said`. `strangers` draws the replacement for a key."""
    said = dict(said)
    for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
        key = r.choice(list(said) or ["shape"])
        if r.random() < 0.1:
            said.pop(key, None)
        else:
            said[key] = strangers(r, key)
    return said
