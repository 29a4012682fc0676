"""Owners and borrowers of IPC handles of CUDA memory that are killed at random moments leave nothing behind.

``ARRAYHUB_TEST_KILLS=1000`` makes a thousand rounds, and `python tests/gpu/ipc_kills.py 1000` is the same as a command.
"""

import os
import sys
from pathlib import Path

import pytest
from children import ROOT, run

SCRIPT = Path(__file__).with_name("ipc_kills.py")
ROUNDS = int(os.environ.get("ARRAYHUB_TEST_KILLS", "60"))


def test_kills_leave_nothing_behind():
    pytest.importorskip("cupy")
    printed = run(sys.executable, "-X", "faulthandler", SCRIPT, ROUNDS, PYTHONPATH=str(ROOT))
    assert f"{ROUNDS} rounds" in printed and "left behind: nothing" in printed
    print(printed)
