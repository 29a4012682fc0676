"""The examples of docs/howto/cuda_user.md run, each section after the imports in a process of its own."""

import re
import sys
from pathlib import Path

import pytest
from children import finished
from numpy_release import WITH_ROW_STACK
from pages import BLOCK

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "cuda_user.md"
IMPORTS, *SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)


def program_of(title):
    """The Python blocks of a section, and those of the sections that it continues."""
    names = [text.partition("\n")[0] for text in SECTIONS]
    position = names.index(title)
    first = position - 1 if title.startswith("Continue") else position
    return "".join(block[1] for text in (IMPORTS, *SECTIONS[first : position + 1]) for block in BLOCK.finditer(text))


@pytest.mark.parametrize("title", [text.partition("\n")[0] for text in SECTIONS])
def test_examples_run(title, request, cp, torch, cuda):
    program = program_of(title)
    if "@cuda.jit" in program:
        request.getfixturevalue("kernels")
    done = finished(sys.executable, "-X", "faulthandler", "-c", WITH_ROW_STACK + program)
    assert done.returncode == 0, f"section {title!r} of {PAGE.name}:\n{program}\n{done.stdout}{done.stderr[-5000:]}"
