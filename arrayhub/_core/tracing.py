"""Reports of imports, exports and copies to open traces. Without one, the only cost is a test of `open_traces`.

Events are reported in three places: imports by `import_traced` of convert/dispatch, exports by `give_traced` of
convert/functions, and copies by `_engine` of transfer. An import or export within another one is not reported.

A trace is an object with a method `record`, which is called with the kind of event (``"in"``, ``"out"`` or ``"copy"``),
the method (a protocol or a call, for example ``"dlpack"``), the source, the target, the size in bytes and the time in
seconds. It is called directly after the event, in the same thread, so that it can find the line of the program.
"""

from time import perf_counter
from typing import Any

from arrayhub._core.errors import name_of_type

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


def report(kind: str, method: str, source: str, target: str, nbytes: int, since: float) -> None:
    """Report an event that began at `since`, a result of ``time.perf_counter``."""
    seconds = perf_counter() - since
    for trace in dict.fromkeys(open_traces):
        trace.record(kind, method, source, target, nbytes, seconds)


def report_import(obj: object, array: Any, since: float) -> None:
    """Report the import of `obj` as `array`, and the copy if `array` is one. Do nothing if `obj` is `array` itself."""
    if array is obj:
        return
    for kind in ("copy", "in") if array.is_copy else ("in",):
        report(kind, array.protocol, name_of_type(type(obj)), str(array.device), array.nbytes, since)


def report_export(call: str, obj: object, result: object, since: float) -> None:
    """Report the export of `obj` as `result` by the function named `call`."""
    report("out", call, name_of_type(type(obj)), name_of_type(type(result)), _read_nbytes(result), since)


def _read_nbytes(array: object) -> int:
    """Return ``nbytes`` of an array, or 0 if the attribute is missing, raises RuntimeError or is not an int."""
    try:
        nbytes = getattr(array, "nbytes", 0)
    except RuntimeError:  # sparse tensors of torch
        return 0
    return nbytes if isinstance(nbytes, int) else 0
