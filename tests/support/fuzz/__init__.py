"""Hostile inputs by chance, reproducible ones: every protocol, datashape, format, index and constructor.

    python -m tests.support.fuzz --count 10000 [--seed N] [--target NAME] [--only K]

`targets` is the table of what is called with what, `chance` draws values, `runner` runs a target in a process of its
own, so that a crash names the input instead of ending the run.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # what the tests share lies there
