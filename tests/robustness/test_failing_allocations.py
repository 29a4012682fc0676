"""Every public call with each of its allocations failing: a MemoryError or the right answer, and no reference lost.

`allocations` has the calls. Each table runs in a process of its own: one that ends is a failed test, which names the
call and the allocation.
"""

import importlib.util
import os
import re
import sys

import pytest
from allocations import TABLES
from children import TESTS, finished
from test_architecture import PACKAGE

pytest.importorskip("_testcapi", reason="not every build of CPython has the functions that make allocations fail")


def missing(table):
    return [name for name in TABLES[table].libraries if importlib.util.find_spec(name) is None]


WITH = re.compile(r"with (?!nogil\b|gil\b|cython\.critical_section\b).*:(\s*#.*)?$")
EXCEPT = re.compile(r"except\b.*:(\s*#.*)?$")


def left_by_jumps(text):
    """Yield the number and the text of each line that leaves a block which holds an exception, and of each `with`.

    Cython 3.1 and 3.2 read the traceback there, and without memory an exception has none. A handler without a name
    holds no exception if all it does is return.
    """
    handlers = []  # indentation and text
    for number, line in enumerate(text.splitlines(), 1):
        code, indent = line.strip(), len(line) - len(line.lstrip())
        if not code or code.startswith("#"):
            continue
        handlers = [handler for handler in handlers if handler[0] < indent]
        if EXCEPT.match(code):
            handlers.append((indent, code))
        named = any(re.search(r" as \w+:", handler) for _, handler in handlers)
        jumps = handlers and re.match(r"(continue|break)\b", code)
        if WITH.match(code) or jumps or (named and re.match(r"return\b", code)):
            yield number, code


def test_compiled_code_needs_no_traceback():
    found = {file.name: list(left_by_jumps(file.read_text())) for file in PACKAGE.rglob("*.pyx")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_tables_have_all_kinds_of_calls():
    assert sum(len(table.statements) for table in TABLES.values()) >= 150


@pytest.mark.parametrize("table", TABLES)
def test_without_memory_a_call_raises_or_answers(table, tmp_path):
    if missing(table):
        pytest.skip(f"{missing(table)[0]} is not installed")
    last = tmp_path / "last"
    paths = os.pathsep.join(filter(None, [str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH")]))
    done = finished(sys.executable, "-X", "faulthandler", TESTS / "allocations.py", table, last, PYTHONPATH=paths)
    where = last.read_text().strip() if last.exists() else "nothing ran"
    assert done.returncode == 0, f"exit code {done.returncode} in {where}\n{done.stderr[-3000:]}"
    assert done.stdout == ""
