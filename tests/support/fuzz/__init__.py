"""Reproducible random inputs, valid and invalid, for protocols, datashapes, formats, indices, constructors and pickles.

    python -m tests.support.fuzz --count 10000 [--seed N] [--target NAME] [--only K]

`targets` is the table of calls and inputs, and `chance` draws values. `runner` runs a target in a separate process, so
that a crash does not end the run.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # folder of shared test modules
