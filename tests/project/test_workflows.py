"""Test that the workflows in .github are valid, and that their commands use the repository's own tools and tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_is_valid_yaml(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    jobs = yaml.safe_load(path.read_text())["jobs"]
    assert jobs
    for job in jobs.values():
        assert all("run" in step or "uses" in step for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_files_that_a_workflow_runs_exist(path):
    for name in re.findall(r"\b(?:tests|tools)/[\w/]+\.py\b", path.read_text()):
        assert (ROOT / name).is_file()
