"""Test `consumer_quirks`, the table of exports that depend on the consumer."""

import re
from pathlib import Path

import numpy as np
import pytest

import arrayhub as ah
from arrayhub.libraries.consumer_quirks import QUIRKS, calling

NAMES = (Path(__file__).resolve().parents[2] / "docs" / "private_names.md").read_text()


def test_each_row_links_an_upstream_issue():
    assert all(quirk.issue.startswith("https://github.com/") for quirk in QUIRKS)


def test_usm_is_on_its_sycl_device_for_every_consumer_but_awkward():
    """A consumer that does not support oneAPI devices requests the host's device, or receives a host array."""
    x = ah.USMArray((3,), "f4", buffer="shared")
    assert {row.consumer for row in QUIRKS if "__dlpack" in row.request} == {"torch", "awkward"}
    with pytest.raises((RuntimeError, BufferError), match="device"):
        np.from_dlpack(x)
    for made in (np.from_dlpack(x, device="cpu"), np.from_dlpack(x.to_host()), ah.as_numpy(x)):
        assert made.ctypes.data == x.ptr


@pytest.mark.parametrize("memory", ["host", "shared"])
def test_awkward_reads_host_readable_usm(memory):
    """awkward, which supports only a few device types, receives host and shared USM as host memory."""
    awkward = pytest.importorskip("awkward")
    x = ah.USMArray((3,), "f4", buffer=memory)
    x[...] = np.arange(3)
    for made in (awkward.Array(x), awkward.from_dlpack(x)):
        assert made.to_list() == [0, 1, 2]
        assert made.layout.data.ctypes.data == x.ptr
    assert x.__dlpack_device__() == (14, 0)


def test_awkward_rejects_device_usm():
    """Awkward cannot read USM device memory, which only the device can access."""
    awkward = pytest.importorskip("awkward")
    x = ah.USMArray((3,), "f4", buffer="device")
    with pytest.raises(AssertionError):
        awkward.Array(x)
    assert len(awkward.Array(x.to_host())) == 3


def test_private_names_page_lists_each_caller():
    assert [caller for row in QUIRKS for caller in row.callers if caller not in NAMES] == []


def test_only_consumer_quirks_and_tracing_read_frames():
    package = Path(ah.__file__).parent
    frames = re.compile(r"_getframe|PyEval_GetFrame|currentframe|f_back")
    readers = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.suffix in {".py", ".pyx", ".pxi", ".pxd", ".h"} and frames.search(path.read_text())
    }
    # `tracing` reads frames only to report the line that caused an event.
    assert readers == {"libraries/consumer_quirks.py", "inspection/tracing.py"}


def test_calling_yields_the_innermost_frame_first():
    assert next(calling()) == (__name__, "test_calling_yields_the_innermost_frame_first")
