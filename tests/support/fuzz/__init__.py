"""Call arrayhub with reproducible random inputs: protocols, datashapes, formats, indices, constructors and pickles.

    python -m tests.support.fuzz --count 10000 [--seed N] [--target NAME] [--only K]

`targets` is the table of targets, which draw an input and call arrayhub with it. `chance` draws values. `runner` runs
each target in a separate process, so that a crash does not end the run.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # folder of shared test modules
