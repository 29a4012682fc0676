"""The table of answers that depend on the consumer."""

from pathlib import Path

import numpy as np
import pytest

import arrayhub as ah
from arrayhub.libraries.known import QUIRKS

NAMES = (Path(__file__).resolve().parents[2] / "docs" / "private_names.md").read_text()


def test_each_row_links_an_upstream_issue():
    assert all(quirk.issue.startswith("https://github.com/") for quirk in QUIRKS)


def test_usm_has_one_device_for_every_consumer():
    """A consumer that does not support oneAPI devices requests the host's device, or receives a host array."""
    x = ah.USMArray((3,), "f4", buffer="shared")
    assert {quirk.consumer for quirk in QUIRKS} == {"torch"}
    with pytest.raises((RuntimeError, BufferError), match="device"):
        np.from_dlpack(x)
    for made in (np.from_dlpack(x, device="cpu"), np.from_dlpack(x.to_host()), ah.as_numpy(x)):
        assert made.ctypes.data == x.ptr


def test_the_page_on_private_names_lists_each_caller():
    assert [quirk.caller for quirk in QUIRKS if quirk.caller not in NAMES] == []
