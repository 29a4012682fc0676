"""Reports of imports, exports and copies to open traces. Without one, the only cost is a test of `open_traces`.

Conversions are reported by `call_traced` of convert/functions, copies by `_engine` of transfer, and assignments by
`_store` of array/assignment. A conversion within another one is not reported.

A trace is an object with a method `record`, which is called with the kind of event (``"in"``, ``"out"`` or ``"copy"``),
the method (a protocol or a call, for example ``"dlpack"``), the source, the target, the size in bytes and the time in
seconds. It is called directly after the event, in the same thread, so that it can find the line of the program.
"""

import threading
from typing import Any

# A trace that is entered twice is listed twice. Threads change the list without a lock, by one method call at a time.
open_traces: list[Any] = []


def start(trace: Any) -> None:
    """Report events to a trace until `stop` was called once for each call of `start`."""
    open_traces.append(trace)


def stop(trace: Any) -> bool:
    """Undo one call of `start`. Return whether no call remains. Raise RuntimeError if no call remained before."""
    try:
        open_traces.remove(trace)
    except ValueError:
        raise RuntimeError("trace: __exit__ was called without __enter__; use it in a with statement") from None
    return trace not in open_traces


class _Thread(threading.local):
    """Size of all copies that a thread has reported, in bytes."""

    nbytes = 0


thread = _Thread()


def report(kind: str, method: str, source: str, target: str, nbytes: int, seconds: float) -> None:
    """Report an event."""
    thread.nbytes += nbytes if kind == "copy" else 0
    for trace in dict.fromkeys(open_traces):
        trace.record(kind, method, source, target, nbytes, seconds)


def read_nbytes(array: object) -> int:
    """Return ``nbytes`` of an array, or 0 if the attribute is missing, raises RuntimeError or is not an int."""
    try:
        nbytes = getattr(array, "nbytes", 0)
    except RuntimeError:  # sparse tensors of torch
        return 0
    return nbytes if isinstance(nbytes, int) else 0
