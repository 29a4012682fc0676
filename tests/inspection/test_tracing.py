"""Test `arrayhub.trace` and ``python -m arrayhub trace``, which record imports, exports and copies."""

import html
import importlib
import io
import json
import sys
import threading

import numpy as np
import pytest
from children import finished, python

import arrayhub as ah


def found(traced, *names):
    return [tuple(getattr(event, name) for name in names) for event in traced.events]


def test_notebooks_show_the_table():
    with ah.trace() as events:
        ah.asarray(np.zeros(3))
    assert events._repr_html_() == f"<pre>{html.escape(str(events))}</pre>" and "1 hand-over" in str(events)


def test_imports_are_recorded():
    a = np.arange(5.0)
    with ah.trace() as traced:
        x = ah.asarray(a)
        ah.asarray(x)  # not recorded, because `x` is a USMArray
        ah.asarray(a, via="buffer")
        ah.from_dlpack(a)
    assert found(traced, "kind", "by", "source", "target", "nbytes") == [
        ("in", by, "numpy.ndarray", "cpu", 40) for by in ("array_interface", "buffer", "dlpack")
    ]
    assert all(event.seconds > 0 for event in traced.events)


def test_exports_are_recorded():
    pytest.importorskip("torch")
    x = ah.asarray(np.arange(5.0))
    with ah.trace() as traced:
        ah.as_numpy(x)
        ah.as_torch(np.arange(3.0))  # one event, although `as_torch` also imports
        ah.as_torch(x, copy=None)
        ah.convert(x, "torch")
    assert found(traced, "kind", "by", "source", "target", "nbytes") == [
        ("out", "as_numpy", "arrayhub.USMArray", "numpy.ndarray", 40),
        ("out", "as_torch", "numpy.ndarray", "torch.Tensor", 24),
        ("out", "as_torch", "arrayhub.USMArray", "torch.Tensor", 40),
        ("out", "as_torch", "arrayhub.USMArray", "torch.Tensor", 40),
    ]


def test_exports_by_a_protocol_are_not_recorded():
    """The hot functions of the protocols do not contain code for traces."""
    x = ah.asarray(np.arange(5.0))
    with ah.trace() as traced:
        np.asarray(x), memoryview(x), x.__dlpack__(), x.__array_interface__
    assert traced.events == []


COPIED = {
    "copy": (lambda x: x.copy(), 40),
    "to_host": (lambda x: ah.to_host(x, copy=True), 40),
    "astype": (lambda x: x.astype("f4"), 20),
    "assign": (lambda x: ah.full((3,), 2.0), 24),
    "torch": (lambda x: ah.as_torch(x, copy=True), 40),
}


def copies_told(call, x):
    with ah.trace() as traced:
        call(x)
    return [event for event in traced.events if event.kind == "copy"]


# Expressions, and the bytes that they copy.
CONVERSIONS = {
    "ah.as_numpy([[1.0, 2.0]])": 16,
    "ah.as_torch([1.0] * 3)": 24,
    "ah.asnested([[1], [2, 3]])": 24 + 12,
    "ah.as_numpy(Image.new('1', (5, 4)), copy=None)": 20,
    "ah.as_numpy(chunks, copy=None)": 24,
    "ah.to_host(chunks)": 24,
    "ah.as_arrow(chunks, copy=True)": 24,
    "ah.as_numpy(pl.DataFrame({'a': [1.0, 2.0], 'b': [3, 4]}), copy=True)": 32,
    "ah.as_numpy(pa.array([1.0, None]), missing=0.0)": 16,
    "ah.as_numpy(pa.array([True, None]), missing='mask')": 2,
    "ah.as_torch(pa.array([1, None]), missing=0)": 16,
    "ah.as_polars(np.ones(16, bool))": 2,
    "ah.as_torch(tensor, copy=True)": 8,
    "ah.as_torch(tensor, dtype='float64')": 16,
    "ah.as_scipy(matrix, copy=True)": 16 + 8 + 12,
    "ah.zeros(3).__setitem__(..., np.ones(3))": 24,
    "ah.as_numpy(pa.array([1.0, None]), missing='mask')": 0,
    "ah.as_numpy(pa.array([1.0]), missing=0.0)": 0,
    "ah.as_numpy(pa.array([[1, 2], [3, 4]]), copy=None)": 0,
    "ah.as_torch(pa.array([[1], [2, 3]]), allow_readonly=True)": 0,
    "ah.as_pandas(np.ones((2, 3)))": 0,
    "ah.as_polars(pa.array(['a' * 20]))": 0,
    "ah.as_torch(matrix)": 0,
    "ah.asarray(tensor.detach().__dlpack__())": 0,
    "ah.as_arrow(pa.RecordBatchReader.from_batches(batch.schema, [batch]))": 0,
}


@pytest.mark.parametrize("expression", CONVERSIONS)
def test_conversions_without_shared_memory_are_recorded_as_copies(expression):
    names = {"np": np, "ah": ah, "Image": pytest.importorskip("PIL.Image"), "pl": pytest.importorskip("polars")}
    pa, names["tensor"] = pytest.importorskip("pyarrow"), pytest.importorskip("torch").ones(2, requires_grad=True)
    names |= {"pa": pa, "chunks": pa.chunked_array([[1.0, 2.0], [3.0]]), "batch": pa.record_batch({"a": [1.0]})}
    names["matrix"] = pytest.importorskip("scipy.sparse").csr_array(np.eye(2))
    copies = copies_told(lambda x: eval(expression, names), None)
    assert sum(event.nbytes for event in copies) == CONVERSIONS[expression]


@pytest.mark.parametrize("by", COPIED)
def test_copies_are_recorded(by):
    call, nbytes = COPIED[by]
    copies = copies_told(call, ah.asarray(np.arange(5.0)))
    assert [(event.by, event.nbytes) for event in copies] == [(by, nbytes)]
    assert copies[0].seconds > 0 and copies[0].file == __file__


def test_lists_are_recorded_as_copied():
    with ah.trace() as traced:
        ah.asarray([1.0, 2.0])
    assert found(traced, "kind", "source", "target", "nbytes") == [
        ("copy", "list", "cpu", 16),
        ("in", "list", "cpu", 16),
    ]


def test_device_copies_are_recorded():
    pytest.importorskip("dpctl")
    with ah.trace() as traced:
        there = ah.to_device(np.arange(5.0), "oneapi:0")
        ah.to_host(there)
    copies = [(event.by, event.source, event.target, event.nbytes) for event in traced.events if event.kind == "copy"]
    assert copies == [("assign", "cpu", "oneapi:0", 40), ("to_host", "oneapi:0", "cpu", 40)]


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_lines_of_library_code_are_skipped(tmp_path, monkeypatch, folder):
    """Lines in any folder site-packages or dist-packages are skipped, even outside of the environment (Debian)."""
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "reader.py").write_text("def read(call, x):\n    return call(x)\n")
    monkeypatch.syspath_prepend(str(tmp_path / folder))
    read = importlib.import_module("reader").read
    monkeypatch.delitem(sys.modules, "reader")
    with ah.trace() as traced:
        read(ah.asarray, np.arange(3))  # the recorded line
        read(lambda x: ah.adapt("numpy")(np.sort)(x), ah.asarray(np.arange(3)))
    lines = [(event.file, event.code) for event in traced.events]
    assert lines[0] == (__file__, "read(ah.asarray, np.arange(3))  # the recorded line")
    assert {file for file, _ in lines} == {__file__}


def test_table_combines_events_of_a_line():
    a = np.zeros(2**17)
    with ah.trace() as traced:
        for _ in range(3):
            ah.asarray(a).copy()
    text = str(traced)
    assert text.splitlines()[0].startswith("3 hand-overs, 3 copies of 3 MiB in ")
    copies, hand_overs = text.splitlines()[2:]
    assert copies.split()[:6] == ["copy", "cpu", "cpu", "copy", "3", "3"]
    assert hand_overs.split()[:5] == ["in", "numpy.ndarray", "cpu", "array_interface", "3"]
    assert "test_tracing.py" in copies and copies.endswith("ah.asarray(a).copy()")
    assert repr(traced).startswith("<arrayhub.trace: 3 hand-overs")


def test_table_is_printed_to_the_requested_file():
    out = io.StringIO()
    with ah.trace(file=out) as traced:
        pass
    assert out.getvalue() == f"{traced}\n" == "0 hand-overs, 0 copies\n"
    with pytest.raises(TypeError, match="trace: file is of type str; accepted"):
        ah.trace(file="table.txt")


def test_events_outside_the_block_are_not_recorded():
    a = np.zeros(3)
    with ah.trace() as traced:
        pass
    ah.as_numpy(ah.asarray(a).copy())
    assert traced.events == []


def test_error_in_a_nested_trace_does_not_affect_other_traces():
    a = np.zeros(3)
    with ah.trace() as outer:
        with ah.trace() as inner, pytest.raises(TypeError):
            ah.asarray(object())
        ah.asarray(a).copy()
    assert inner.events == []
    assert found(outer, "kind") == [("in",), ("copy",)]
    with ah.trace() as again:  # the error above must not affect later traces
        ah.asarray(a)
    assert found(again, "kind") == [("in",)]


def test_exit_without_enter_raises():
    traced = ah.trace()
    with pytest.raises(RuntimeError, match="__exit__ was called without __enter__"):
        traced.__exit__(None, None, None)
    with traced:
        ah.asarray(np.zeros(3))
    with pytest.raises(RuntimeError, match="__exit__ was called without __enter__"):
        traced.__exit__(None, None, None)
    assert found(traced, "kind") == [("in",)]


def test_events_of_other_threads_are_recorded():
    with ah.trace() as traced:
        thread = threading.Thread(target=lambda: ah.asarray(np.zeros(3)).copy())
        thread.start()
        thread.join()
    assert found(traced, "kind") == [("in",), ("copy",)]


# ------------------------------------------------------------------------------------------------- the command line

SCRIPT = """\
import sys
import numpy as np
import arrayhub
import helper

x = arrayhub.asarray(np.arange(5.0))
y = x.copy()
print(sys.argv, __name__)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "helper.py").touch()  # importable, because it is in the folder of the script
    (tmp_path / "scripts" / "script.py").write_text(SCRIPT)
    return tmp_path


def run(*arguments, cwd):
    return finished(sys.executable, "-m", "arrayhub", "trace", *arguments, cwd=cwd)


@pytest.mark.slow
def test_command_prints_the_table_of_a_script(script):
    done = run("scripts/script.py", "3", "--own", cwd=script)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['scripts/script.py', '3', '--own'] __main__\n"
    assert "1 hand-over, 1 copy of 40 bytes in " in done.stderr
    assert "scripts/script.py:7  y = x.copy()" in done.stderr


@pytest.mark.slow
def test_command_runs_a_module_with_its_arguments(script):
    (script / "scripts" / "__init__.py").touch()
    (script / "helper.py").touch()
    done = run("-m", "scripts.script", "3", "--own", cwd=script)
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"[{str(script / 'scripts' / 'script.py')!r}, '3', '--own'] __main__\n"
    assert "scripts/script.py:7  y = x.copy()" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the following arguments are required: script"),
        (["-m", "no_such_package.module"], "module 'no_such_package.module' does not exist"),
        (["no_such_file.py"], "file 'no_such_file.py' does not exist"),
    ],
)
def test_command_rejects_a_missing_script(script, arguments, words):
    done = run(*arguments, cwd=script)
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_command_prints_the_table_and_the_error_of_a_failing_script(script):
    done = run("scripts/script.py", "nothing", cwd=script)
    assert done.returncode == 1
    assert "1 hand-over, 1 copy of 40 bytes in " in done.stderr
    assert "ValueError: invalid literal" in done.stderr


@pytest.mark.slow
def test_command_writes_events_as_json(script):
    done = run("--json", "events.json", "scripts/script.py", "0", cwd=script)
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads((script / "events.json").read_text())
    assert [(event["kind"], event["line"], event["code"]) for event in events] == [
        ("in", 6, "x = arrayhub.asarray(np.arange(5.0))"),
        ("copy", 7, "y = x.copy()"),
    ]


def test_trace_entered_twice_records_each_event_once():
    out = io.StringIO()
    traced = ah.trace(file=out)
    with traced:
        with traced:
            ah.asarray([1])
        assert out.getvalue() == ""
        ah.asarray([1, 2])
    ah.asarray([1, 2, 3])
    assert found(traced, "kind", "nbytes") == [("copy", 8), ("in", 8), ("copy", 16), ("in", 16)]
    assert out.getvalue().count("hand-overs") == 1


@pytest.mark.slow
def test_unwritable_json_file_exits_with_status_2(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    done = finished(sys.executable, "-m", "arrayhub", "trace", "--json", tmp_path / "none" / "o.json", script)
    assert done.returncode == 2 and "argument --json" in done.stderr and not done.stdout


# ------------------------------------------------------------------------------------------------------ without memory


@pytest.mark.slow
def test_memory_error_in_a_trace_does_not_affect_later_traces():
    """Let each allocation of a trace fail in turn, and check that the next trace is complete.

    `kept` uses up CPython's free list of tuples, so that each new tuple is an allocation.
    """
    pytest.importorskip("_testcapi")
    python(
        """
import sys
import _testcapi
import arrayhub
from arrayhub._core import tracing

def traced():
    with arrayhub.trace() as events:
        arrayhub.asarray(bytearray(8))
    return [event.kind for event in events.events]

def without_memory(start, width):
    kept = [(start, k, width) for k in range(3000)]
    _testcapi.set_nomemory(start, start + width)
    try:
        traced()
    except (MemoryError, SystemError):  # SystemError: CPython's take_ownership clears a MemoryError
        pass
    finally:
        _testcapi.remove_mem_hooks()

assert traced() == ["in"]
for width in (1, 3, 10_000):
    for start in range(200):
        without_memory(start, width)
        assert not tracing.open_traces, (start, width)
        assert traced() == ["in"], (start, width)
"""
    )


def test_events_within_an_export_are_part_of_it():
    pa = pytest.importorskip("pyarrow")
    torch = pytest.importorskip("torch")
    with ah.trace() as traced:
        ah.as_torch(ah.asnested(pa.array([[1], [2, 3]])), allow_readonly=True)
        ah.as_numpy(pa.array([1, None]), missing=0)
        ah.convert([1.0, 2.0], torch)
        with pytest.raises(BufferError):
            ah.asarray(pa.array([1, None]))  # imports again to find the call in the error
    assert [(event.kind, event.by) for event in traced.events if event.kind != "copy"] == [
        ("in", "arrow"), ("out", "as_torch"), ("out", "as_numpy"), ("out", "as_torch"),
    ]  # fmt: skip
