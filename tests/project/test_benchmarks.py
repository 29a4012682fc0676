"""The benchmark runner works, and its JSON has the documented form. These tests do not assert times."""

import json
import sys
from pathlib import Path

import pytest
from children import finished

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {
    *("reach", "by_hand", "elements", "nested", "sparse", "authors", "native", "storage", "import", "dimensions"),
    *("types", "threads", "copies", "engines", "sweep"),
}
NUMBERS = ("ours_ns", "peer_ns", "ratio")
PEERS_OF_THE_TARGETS = 23  # number of rows of the group "reach" that have a target ratio


def run(*arguments):
    return finished(sys.executable, "-m", "benchmarks", *arguments, cwd=ROOT)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    file = tmp_path_factory.mktemp("benchmarks") / "results.json"
    done = run("--repeat", "2", "--sample", "0.0001", "--json", str(file))
    assert done.returncode == 0, done.stderr
    return done, json.loads(file.read_text())


def test_json_describes_the_measurement(everything):
    _, results = everything
    assert results["schema"] == 1
    assert results["rounds"] == 2 and results["sample_seconds"] == 0.0001
    assert set(results["machine"]) == {"cores", "architecture", "system", "python", "load"}
    assert {"arrayhub", "numpy", "torch", "jax", "dpnp", "dpctl", "pyarrow"} <= set(results["versions"])
    assert results["versions"]["numpy"]


def test_every_row_has_positive_numbers(everything):
    _, results = everything
    assert {row["group"] for row in results["rows"]} == GROUPS
    for row in results["rows"]:
        assert set(row) == {"group", "way", "peer", *NUMBERS, "spread", "at_most", "met"}
        assert all(row[name] > 0 for name in NUMBERS), row
        low, high = row["spread"]
        assert 0 < low <= high
        assert row["met"] is (row["at_most"] is None or row["ratio"] <= row["at_most"])


def test_rows_with_a_target_are_complete(everything):
    """Each row with a target was measured, or was skipped with a reason."""
    _, results = everything
    measured = [row for row in results["rows"] if row["group"] == "reach" and row["at_most"] is not None]
    skipped = [row for row in results["skipped"] if row["reason"]]
    assert len(skipped) == len(results["skipped"])
    assert PEERS_OF_THE_TARGETS - len(skipped) <= len(measured) <= PEERS_OF_THE_TARGETS


def test_facts_that_do_not_depend_on_times_hold(everything):
    """Facts that are not times hold, for example that importing arrayhub imports no other library."""
    _, results = everything
    assert {fact["group"] for fact in results["facts"]} == {"authors", "engines", "import", "types", "sweep"}
    # The facts of "authors" and "engines" limit times, which depend on the machine.
    timeless = [fact for fact in results["facts"] if fact["group"] not in ("authors", "engines")]
    assert all(fact["holds"] for fact in timeless), timeless


def test_printed_table_shows_each_row(everything):
    done, results = everything
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["call", "arrayhub"]
    assert len(lines) == 1 + len(results["rows"]) + len(results["facts"]) + len(results["skipped"])


def test_option_only_measures_one_group():
    done = run("--only", "dimensions", "--repeat", "1", "--sample", "0.0001", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert {row["group"] for row in json.loads(done.stdout)["rows"]} == {"dimensions"}


def test_installed_transports_are_measured():
    """Each transport is measured or skipped with a reason. All memory peaks are within their limits."""
    # An allocator reuses freed memory, which would hide the peak of smaller arrays.
    done = run("--only", "clusters", "--repeat", "2", "--megabytes", "40", "--json", "-")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    engines = {row["way"].partition(":")[0].partition(".")[0] for row in results["rows"]}
    assert {"dask", "joblib"} <= engines and len(engines) + len(results["skipped"]) == 4
    facts = {row["fact"].removeprefix("peak memory of ").rpartition(": ")[0]: row["holds"] for row in results["facts"]}
    one_process = {"pickle in band", "pickle out of band", "dask's frames", "joblib.dump and load"}
    dask = {f"dask: {way}" for way in ("client.scatter", "client.gather", "worker to worker")}
    assert one_process | dask < set(facts)
    assert all(facts.values()), results["facts"]


def test_sweep_measures_the_selected_ways():
    done = finished(
        *(
            sys.executable,
            "-m",
            "benchmarks.sweep",
            "SYCL",
            "--ways",
            "from host",
            "--seconds",
            "0",
            "--at-most",
            "1000",
        ),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    *rows, summary = done.stdout.splitlines()
    assert all("[...] = host" in row for row in rows)
    assert summary.startswith("SYCL: 2 of ")
