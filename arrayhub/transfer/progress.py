"""Progress reports for the argument `progress` of large copies.

An engine that copies in pieces reports the bytes of each piece, in the calling thread. An exception that the user's
function raises propagates through the report and ends the copy.
"""

import contextlib
import sys
import time

from arrayhub._core.errors import show

_SHOWN_AFTER = 1.0  # seconds; a bar is drawn only for copies that take longer


@contextlib.contextmanager
def _bar(total):
    """Yield a function that draws the progress after `_SHOWN_AFTER` seconds: with tqdm, or else as a line on stderr."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = None
    if tqdm is not None:
        with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, delay=_SHOWN_AFTER, leave=False) as bar:
            yield lambda done, _: bar.update(done - bar.n)
        return
    start, shown = time.monotonic(), False

    def draw(done, total):
        nonlocal shown
        if shown or time.monotonic() - start > _SHOWN_AFTER:
            shown = True
            sys.stderr.write(f"\r{done / total:4.0%} of {total / 2**30:.2f} GiB copied")
            sys.stderr.flush()

    try:
        yield draw
    finally:
        if shown:
            sys.stderr.write("\n")


@contextlib.contextmanager
def reporting(progress, total):
    """Yield a function to call with the bytes of each piece of a copy of `total` bytes, or None without reports.

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
    if not wanted or not total:
        yield None
        return
    done = 0

    def report(nbytes):
        nonlocal done
        done += nbytes
        function(done, total)

    with _bar(total) if progress is True else contextlib.nullcontext(progress) as function:
        yield report
        if done < total:
            report(total - done)
