"""Random invalid inputs of protocols, text formats, indices and constructors cause no crash or unexpected error.

``ARRAYHUB_TEST_FUZZ=10000`` sets the number of inputs. ``python -m tests.support.fuzz`` runs the same tests.
"""

import os

import pytest
from fuzz import runner
from fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("ARRAYHUB_TEST_FUZZ", "1000"))


@pytest.mark.timeout(runner.HANGS + 60)
@pytest.mark.parametrize("target", TARGETS)
def test_invalid_inputs_do_not_crash(target):
    assert runner.run_apart(target, COUNT, seed=11) == []
