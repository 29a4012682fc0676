"""Compare placement, like and adapt with the conversions that they perform."""

from typing import Annotated

import numpy as np

import arrayhub

from .measure import Result, Timed, compare
from .rows import SAMPLES

REQUEST = arrayhub.Request("n * float64", may="cast")

# Name of the row, arrayhub's call, the peer's call, and the libraries that the row requires besides NumPy.
ROWS = (
    ("placement of three NumPy arrays", "placement(a, a, a)", "namespaces(a, a, a)", ("sklearn",)),
    ("placement of NumPy and torch", "placement(a, t)", "namespaces(a, t)", ("sklearn", "torch")),
    ("like, of torch", "like(a, t)", "torch.from_numpy(a)", ("torch",)),
    ("adapt, one NumPy array", "adapted(a)", "plain(a)", ()),
    ("adapt, a NumPy array and keywords", "adapted(a, width=3)", "plain(a, width=3)", ()),
    ("adapt, a request", "requested(a)", "plain(convert(asarray(a, name='plain: x'), 'numpy', copy=None))", ()),
    ("adapt, torch", "adapted(t)", "like(plain(convert(t, 'numpy')), t, copy=None)", ("torch",)),
)

# For each row, the subject of the sentence in the report, and the limit in nanoseconds. ADDED limits the difference
# from the peer's time, and TOTAL the time of the call.
ADDED = {
    "adapt, one NumPy array": ("`adapt` with one NumPy array", 2000),
    "adapt, a NumPy array and keywords": ("`adapt` with a NumPy array and keywords", 2000),
    "adapt, a request": ("`adapt` with a request", 2000),
}
TOTAL = {"placement of three NumPy arrays": ("`placement` of three NumPy arrays", 1000)}


def plain(x, width=3):
    return x


def annotated(x: Annotated[np.ndarray, REQUEST], width=3):
    return x


def sklearn():
    """Return a dict that maps the name `namespaces` to scikit-learn's equivalent of `placement`."""
    from sklearn.utils import _array_api

    return {"namespaces": _array_api.get_namespace_and_device}


def authors(options):
    """Measure all rows. Yield for each row a `Result`, or its name and the reason for skipping it. Then yield facts."""
    names = {
        "a": np.arange(12.0),
        "adapted": arrayhub.adapt("numpy", copy=None)(plain),
        "asarray": REQUEST.asarray,
        "convert": arrayhub.convert,
        "like": arrayhub.like,
        "placement": arrayhub.placement,
        "plain": plain,
        "requested": arrayhub.adapt("numpy", copy=None)(annotated),
    }
    facts = []
    for way, ours, peer, needs in ROWS:
        try:
            for library in needs:
                names.update(sklearn() if library == "sklearn" else SAMPLES[library]())
        except ImportError as error:
            yield f"{way} beside {peer}", str(error)
            continue
        timing = compare(Timed(ours, names), Timed(peer, names), options.repeat, options.sample)
        yield Result("authors", way, peer, at_most=None, **timing)
        if way in ADDED:
            (subject, limit), added = ADDED[way], timing["ours_ns"] - timing["peer_ns"]
            facts.append((f"{subject} adds {added:.0f} ns to the call (limit: {limit} ns)", added <= limit))
        if way in TOTAL:
            (subject, limit), total = TOTAL[way], timing["ours_ns"]
            facts.append((f"{subject} takes {total:.0f} ns (limit: {limit} ns)", total <= limit))
    for fact, holds in facts:
        yield "authors", fact, holds
