"""Owners and borrowers of IPC handles of CUDA memory that are killed at random moments do not leak resources.

``ARRAYHUB_TEST_KILLS=1000`` runs a thousand rounds, as does the command `python tests/gpu/ipc_kills.py 1000`.
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
