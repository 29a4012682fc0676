"""Test `tools/peers.py`, which runs tests of other projects with arrayhub between producer and consumer.

This file runs only the quick suites. ``python tools/peers.py`` runs all suites.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
from children import check, finished

pytestmark = pytest.mark.slow

TOOL = Path(__file__).resolve().parents[2] / "tools" / "peers.py"
ROW = {"cases": ["test_a"], "message": "^BufferError", "kind": "stricter", "reason": "A reason."}


@pytest.fixture(scope="module")
def peers():
    """Import the tool as a module."""
    spec = importlib.util.spec_from_file_location("peers", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["peers"] = module  # dataclasses look up the module here
    yield spec.loader.exec_module(module) or module
    del sys.modules["peers"]


def report(arrays=1, **outcomes):
    return {"arrays": arrays, "refused": 0, "outcomes": {f"file.py::{name}": list(o) for name, o in outcomes.items()}}


PASSED = report(test_a=("passed", ""), test_b=("passed", ""))
REFUSED = report(test_a=("failed", "BufferError: no"), test_b=("passed", ""))


@pytest.mark.parametrize(
    ("routed", "rows", "faults"),
    [
        (PASSED, [], []),
        (REFUSED, [ROW], []),
        (REFUSED, [], ["file.py::test_a: passed becomes failed: BufferError: no"]),
        (
            REFUSED,
            [{**ROW, "cases": ["test_b"]}],
            ["test_a: passed becomes failed", "unused row: test_b"],
        ),
        (REFUSED, [{**ROW, "message": "^TypeError"}], ["passed becomes failed", "unused row: test_a"]),
        (PASSED, [ROW], ["unused row: test_a"]),
        (PASSED, [{**ROW, "cases": ["test_of_another_release"]}], []),
        (report(0, test_a=("passed", ""), test_b=("passed", "")), [], ["arrayhub imported no array"]),
        (report(test_a=("passed", "")), [], ["test_b: passed becomes absent"]),
    ],
)
def test_only_explained_differences_are_accepted(peers, routed, rows, faults):
    found, _ = peers.compare("suite", PASSED, routed, rows)
    assert len(found) == len(faults)
    assert all(part in fault for part, fault in zip(faults, found, strict=True))


def test_a_row_explains_a_test_with_one_or_all_parameters(peers):
    assert peers.explains(ROW, "file.py::test_a[1]", "BufferError")
    assert not peers.explains(ROW, "file.py::test_ab", "BufferError")
    assert not peers.explains({**ROW, "cases": ["test_a[2]"]}, "file.py::test_a[1]", "BufferError")


def test_every_row_has_a_suite_a_kind_and_a_reason(peers):
    kinds = {"exception", "stricter", "wider", "identity", "limitation"}
    rows = peers.load_rows()
    assert rows.keys() <= peers.SUITES.keys()
    for row in (row for suite in rows.values() for row in suite):
        assert row.keys() == {"cases", "message", "kind", "reason"}
        assert row["kind"] in kinds
        assert row["cases"] and row["message"] and row["reason"].endswith(".")


def skip_without(peers, suite):
    if absent := peers.missing(peers.SUITES[suite]):
        pytest.skip(f"not installed: {absent[0]}")


QUICK = ["numpy_dlpack", "numpy_buffers", "numpy_stride_tricks", "pyarrow_capsules", "pyarrow_dlpack", "pandas"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", QUICK)
def test_every_difference_of_a_peers_suite_is_listed(peers, suite):
    skip_without(peers, suite)
    check(finished(sys.executable, TOOL, suite))


def test_an_unlisted_difference_sets_the_exit_status(peers, tmp_path):
    skip_without(peers, "numpy_dlpack")
    rows = tmp_path / "rows.toml"
    rows.write_text("")
    done = finished(sys.executable, TOOL, "numpy_dlpack", "--rows", rows)
    assert done.returncode == 1
    assert "TestDLPack::test_dunder_dlpack_stream: passed becomes failed: arrayhub.Refusal" in done.stdout
