"""Progress reporters for the argument `progress` of large copies.

An engine that copies in pieces calls ``update(nbytes)`` after each piece, in the calling thread. `reporting` calls
``close()``. An exception that the user's function raises propagates through ``update`` and ends the copy.
"""

import contextlib
import sys
import time

from arrayhub._core.errors import show

_SHOWN_AFTER = 1.0  # seconds; a bar is drawn only for copies that take longer


class _Called:
    """Reporter that calls a function with the number of copied bytes and the total number of bytes."""

    def __init__(self, function, total):
        self.function, self.done, self.total = function, 0, total

    def update(self, nbytes):
        self.done += nbytes
        self.function(self.done, self.total)

    def close(self):
        pass


class _Bar:
    """Reporter that draws a progress bar with tqdm after `_SHOWN_AFTER` seconds."""

    def __init__(self, tqdm, total):
        self.bar = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, delay=_SHOWN_AFTER, leave=False)
        self.done, self.total = 0, total

    def update(self, nbytes):
        self.done += nbytes
        self.bar.update(nbytes)

    def close(self):
        self.bar.close()


class _ProgressLine:
    """Reporter that writes a line to stderr, used if tqdm is not installed."""

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
    """Return a context manager that yields the reporter for a copy of `total` bytes, or None without progress reports.

    The end of a copy is always reported, even if the copy is a single piece. An empty copy is not reported.

    Raises
    ------
    TypeError
        `progress` is neither a bool, None, nor callable.
    """
    wanted = progress is True or callable(progress)
    if not wanted and progress is not None and progress is not False:
        raise TypeError(
            f"progress is {show(progress)}; accepted: True, or a function of two integers, copied and total bytes"
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
