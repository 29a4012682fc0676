"""Measure placement, like and adapt beside the conversions that they make."""

from typing import Annotated

import numpy as np

import arrayhub

from .measure import Result, Timed, compare
from .rows import SAMPLES

REQUEST = arrayhub.Request("n * float64", may="cast")

# The calls and their peers, with the libraries that they need besides NumPy.
ROWS = (
    ("placement of three NumPy arrays", "placement(a, a, a)", "namespaces(a, a, a)", ("sklearn",)),
    ("placement of NumPy and torch", "placement(a, t)", "namespaces(a, t)", ("sklearn", "torch")),
    ("like, of torch", "like(a, t)", "torch.from_numpy(a)", ("torch",)),
    ("adapt, one NumPy array", "adapted(a)", "plain(a)", ()),
    ("adapt, a NumPy array and keywords", "adapted(a, width=3)", "plain(a, width=3)", ()),
    ("adapt, a request", "requested(a)", "plain(convert(asarray(a, name='plain: x'), 'numpy', copy='if_needed'))", ()),
    ("adapt, torch", "adapted(t)", "like(plain(convert(t, 'numpy')), t, copy='if_needed')", ("torch",)),
)

# Nanoseconds beyond the peer's, and of a call.
BEYOND = {"adapt, one NumPy array": 2000, "adapt, a NumPy array and keywords": 2000, "adapt, a request": 2000}
IN_ALL = {"placement of three NumPy arrays": 1000}


def plain(x, width=3):
    return x


def annotated(x: Annotated[np.ndarray, REQUEST], width=3):
    return x


def sklearn():
    """The function that scikit-learn has in place of `placement`."""
    from sklearn.utils import _array_api

    return {"namespaces": _array_api.get_namespace_and_device}


def authors(options):
    """Measure each row, then state whether the limits in nanoseconds hold."""
    names = {
        "a": np.arange(12.0),
        "adapted": arrayhub.adapt("numpy", copy="if_needed")(plain),
        "asarray": REQUEST.asarray,
        "convert": arrayhub.convert,
        "like": arrayhub.like,
        "placement": arrayhub.placement,
        "plain": plain,
        "requested": arrayhub.adapt("numpy", copy="if_needed")(annotated),
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
        if way in BEYOND:
            beyond = timing["ours_ns"] - timing["peer_ns"]
            facts.append((f"{way}: {beyond:.0f} ns more, at most {BEYOND[way]} ns", beyond <= BEYOND[way]))
        if way in IN_ALL:
            facts.append(
                (f"{way}: {timing['ours_ns']:.0f} ns, at most {IN_ALL[way]} ns", timing["ours_ns"] <= IN_ALL[way])
            )
    for fact, holds in facts:
        yield "authors", fact, holds
