"""Test that killed owners and borrowers of IPC handles of CUDA memory do not leak resources.

The environment variable ``ARRAYHUB_TEST_KILLS`` sets the number of rounds.
"""

import os
import sys
from pathlib import Path

import pytest
from children import ROOT, run

SCRIPT = Path(__file__).with_name("ipc_kills.py")
ROUNDS = int(os.environ.get("ARRAYHUB_TEST_KILLS", "60"))


def test_killed_owners_and_borrowers_do_not_leak_resources():
    pytest.importorskip("cupy")
    printed = run(sys.executable, "-X", "faulthandler", SCRIPT, ROUNDS, PYTHONPATH=str(ROOT))
    assert f"{ROUNDS} rounds" in printed and "no leaks" in printed
    print(printed)
