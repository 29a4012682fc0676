"""Test that the programs of the tutorials print the output that the pages show."""

import re
import sys
from pathlib import Path

import pytest
from children import finished

pytestmark = pytest.mark.slow

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
# A Python block, and the text block with its output, if any.
STEP = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
END = "-- end of a step --"
PAGES = [page for page in sorted(TUTORIALS.glob("*.md")) if STEP.search(page.read_text())]


def outputs_of(steps, folder):
    """Run the Python blocks of a page in one process, and return the output of each block."""
    program = folder / "tutorial.py"
    program.write_text("".join(f"{step['code']}\nprint({END!r})\n" for step in steps))
    done = finished(sys.executable, "-P", str(program), cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(f"{END}\n")[:-1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_print_the_output_on_the_page(page, tmp_path):
    steps = list(STEP.finditer(page.read_text()))
    shown = [step["output"] or "" for step in steps]
    assert outputs_of(steps, tmp_path) == shown
    assert sum(map(bool, shown)) >= 5


def test_each_text_block_follows_a_program():
    for page in PAGES:
        text = page.read_text()
        assert len(re.findall(r"^```text$", text, re.MULTILINE)) == sum(
            step["output"] is not None for step in STEP.finditer(text)
        ), page
