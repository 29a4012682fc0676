"""A thousand invalid inputs for every protocol, language, index and constructor do not cause a crash or an unexpected
error.

``ARRAYHUB_TEST_FUZZ=10000`` sets the number of inputs. ``python -m tests.support.fuzz`` is the corresponding command.
"""

import os

import pytest
from fuzz import runner
from fuzz.targets import TARGETS

COUNT = int(os.environ.get("ARRAYHUB_TEST_FUZZ", "1000"))


@pytest.mark.timeout(runner.HANGS + 60)
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_inputs(target):
    assert runner.run_apart(target, COUNT, seed=11) == []
