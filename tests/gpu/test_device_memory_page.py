"""Run the Python blocks of docs/device_memory.md in one process on a machine with a CUDA device."""

import sys
from pathlib import Path

import pytest
from children import finished
from pages import python_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "device_memory.md"


def test_page_runs_with_a_cuda_device(tmp_path):
    pytest.importorskip("cupy")
    program = tmp_path / "page.py"
    program.write_text("\n".join(python_blocks(PAGE)) + "\nassert cuda is not None\n")
    done = finished(sys.executable, "-X", "faulthandler", program)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
