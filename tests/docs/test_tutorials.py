"""The output below each program of a tutorial agrees with the output of the program."""

import re
import sys
from pathlib import Path

import pytest
from children import finished

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
# A program, and the block of text that may follow it.
STEP = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
END = "-- end of a step --"
PAGES = [page for page in sorted(TUTORIALS.glob("*.md")) if STEP.search(page.read_text())]


def outputs_of(steps, folder):
    """Run the programs of a page in one process, and return the output of each program."""
    program = folder / "tutorial.py"
    program.write_text("".join(f"{step['code']}\nprint({END!r})\n" for step in steps))
    done = finished(sys.executable, "-P", str(program), cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(f"{END}\n")[:-1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_print_what_the_page_shows(page, tmp_path):
    steps = list(STEP.finditer(page.read_text()))
    shown = [step["output"] or "" for step in steps]
    assert outputs_of(steps, tmp_path) == shown
    assert sum(map(bool, shown)) >= 5


def test_every_text_block_belongs_to_a_program():
    for page in PAGES:
        text = page.read_text()
        assert len(re.findall(r"^```text$", text, re.MULTILINE)) == sum(
            step["output"] is not None for step in STEP.finditer(text)
        ), page
