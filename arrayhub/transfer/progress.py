"""How far a large copy has come: what ``progress=`` accepts, as one kind of object for every engine.

An engine that copies in pieces calls ``update(nbytes)`` after each, from the thread that asked for the copy; whoever
made the reporter calls ``close()``. What a callable raises comes out of ``update``, and so ends the copy.
"""

import contextlib
import sys
import time

from arrayhub._core.errors import show

_SHOWN_AFTER = 1.0  # seconds; shorter copies draw no bar


class _Called:
    """Reports to a function of the caller's."""

    def __init__(self, function, total):
        self.function, self.done, self.total = function, 0, total

    def update(self, nbytes):
        self.done += nbytes
        self.function(self.done, self.total)

    def close(self):
        pass


class _Bar:
    """tqdm's bar, which appears once the copy has taken a while."""

    def __init__(self, tqdm, total):
        self.bar = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, delay=_SHOWN_AFTER, leave=False)
        self.done, self.total = 0, total

    def update(self, nbytes):
        self.done += nbytes
        self.bar.update(nbytes)

    def close(self):
        self.bar.close()


class _ProgressLine:
    """A line on stderr where tqdm is not installed."""

    def __init__(self, total):
        self.done, self.total, self.start, self.shown = 0, total, time.monotonic(), False

    def update(self, nbytes):
        self.done += nbytes
        if self.shown or time.monotonic() - self.start > _SHOWN_AFTER:
            self.shown = True
            sys.stderr.write(f"\r{self.done / self.total:4.0%} of {self.total / 2**30:.2f} GiB copied")
            sys.stderr.flush()

    def close(self):
        if self.shown:
            sys.stderr.write("\n")


def _bar(total):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _ProgressLine(total)
    return _Bar(tqdm, total)


def reporting(progress, total):
    """Return a context that gives what an engine reports to while it copies `total` bytes.

    That is None, or an object with ``update`` and ``close``.

    The end of a copy is always reported, that of one done in a single piece too; a copy of nothing reports nothing.

    Raises
    ------
    TypeError
        `progress` is neither a bool, None, nor callable.
    """
    wanted = progress is True or callable(progress)
    if not wanted and progress is not None and progress is not False:
        raise TypeError(
            f"progress is {show(progress)}; accepted: True, or a function of two numbers, the bytes done and all bytes"
        )
    return _reporting(progress, total) if wanted and total else contextlib.nullcontext()


@contextlib.contextmanager
def _reporting(progress, total):
    reporter = _bar(total) if progress is True else _Called(progress, total)
    try:
        yield reporter
        if reporter.done < total:
            reporter.update(total - reporter.done)
    finally:
        reporter.close()
