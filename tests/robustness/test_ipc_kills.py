"""Processes that own or borrow shared memory and are killed at random moments leave no resources behind."""

import sys

import pytest
from children import ROOT, run

pytestmark = pytest.mark.slow


@pytest.mark.timeout(300)
def test_a_thousand_kills_leave_nothing_behind():
    printed = run(sys.executable, "-m", "tests.support.ipc_kills", 1000, cwd=ROOT)
    assert "1000 rounds" in printed and "no leaks" in printed
    _, borrowers, owners = (int(word) for word in printed.replace(";", " ").split() if word.isdigit())
    assert borrowers > 10 and owners > 10
