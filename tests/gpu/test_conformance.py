"""Test the conformance kit with CUDA memory: real libraries, and classes that violate the rules for streams."""

import cuda_producers
import pytest

from arrayhub.testing import check_consumer, check_producer
from arrayhub.testing.report import FAILED, PASSED, REFUSED

SMALL = dict(dtypes=["float32", "int64", "bool"], layouts=["C", "1-d", "0-d", "empty"])
FIXTURES = {"cupy": "cp", "torch": "torch", "jax": "jax", "numba": "cuda"}

# Known violations of rules for CUDA memory, with text of the report. docs/gpu.md describes them.
KNOWN = {"jax": {"streams": "stream=-1 is rejected with"}}


def cells(report, rule):
    return [cell for cell in report.cells if cell.rule == rule]


@pytest.mark.parametrize("name", FIXTURES)
def test_producers_conform(request, name):
    request.getfixturevalue(FIXTURES[name])
    report = check_producer(getattr(cuda_producers, f"make_{name}"), **SMALL)
    unknown = [
        cell for cell in report.failures() if KNOWN.get(name, {}).get(cell.rule, "not a known defect") not in cell.why
    ]
    assert not unknown, f"{unknown}\n{report}"
    assert any(cell.verdict == PASSED for cell in cells(report, "values")), str(report)
    if name in ("cupy", "torch"):
        assert any(cell.verdict == PASSED for cell in cells(report, "streams")), str(report)


def test_producer_with_pending_work_passes(cp):
    report = check_producer(cuda_producers.Late, dtypes=["float32"], layouts=["C"])
    assert [cell.verdict for cell in cells(report, "streams")] == [PASSED], str(report)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (cuda_producers.Unordered, "the stream does not wait for the elements"),
        (cuda_producers.WithoutStream, "stream=1 is rejected with RuntimeError: on purpose"),
    ],
    ids=["unordered", "without stream"],
)
def test_producers_that_violate_the_streams_rule_fail(cp, make, words):
    report = check_producer(make, dtypes=["float32"], layouts=["C"])
    found = cells(report, "streams")
    assert [cell.verdict for cell in found] == [FAILED] and words in found[0].why, str(report)


@pytest.mark.parametrize("name", ["cupy", "torch", "jax"])
def test_consumers_wait_for_the_producer(request, cp, name):
    request.getfixturevalue(FIXTURES[name])
    report = check_consumer(getattr(cuda_producers, f"read_{name}"), dtypes=["float64"], layouts=["C"])
    accepted = {PASSED, REFUSED} if name == "jax" else {PASSED}  # jax without x64 may reject float64
    assert {cell.verdict for cell in cells(report, "streams")} <= accepted, str(report)


def test_consumer_that_does_not_wait_fails(cp):
    report = check_consumer(cuda_producers.read_unordered, dtypes=["float64"], layouts=["C"])
    found = cells(report, "streams")
    assert [cell.verdict for cell in found] == [FAILED], str(report)
    assert "the memory is read before the producer's work" in found[0].why, str(report)
