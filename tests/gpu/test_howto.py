"""Run the examples of the pages for CUDA, each section in a separate process."""

import os
import re
import sys
from pathlib import Path

import pytest
from children import finished
from numpy_release import WITH_ROW_STACK
from pages import BLOCK

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOWTO = DOCS / "howto"
PAGES = {
    name: re.split(r"^## ", (HOWTO / name).read_text(), flags=re.MULTILINE) for name in ("cuda_user.md", "sparse.md")
}


def titles(page):
    return [text.partition("\n")[0] for text in PAGES[page][1:]]


def program_of(page, title):
    """Return the program of a section. If the title begins with "Continue", include the previous section."""
    imports, *sections = PAGES[page]
    names = [text.partition("\n")[0] for text in sections]
    position = names.index(title)
    first = position - 1 if title.startswith("Continue") else position
    return "".join(block[1] for text in (imports, *sections[first : position + 1]) for block in BLOCK.finditer(text))


@pytest.mark.parametrize(("page", "title"), [(page, title) for page in PAGES for title in titles(page)])
def test_examples_run(page, title, request, cp, torch, cuda):
    if page == "sparse.md":
        pytest.importorskip("scipy")
    program = program_of(page, title)
    if "@cuda.jit" in program:
        request.getfixturevalue("kernels")
    done = finished(sys.executable, "-X", "faulthandler", "-c", WITH_ROW_STACK + program)
    assert done.returncode == 0, f"section {title!r} of {page}:\n{program}\n{done.stdout}{done.stderr[-5000:]}"


def test_cuda_section_of_the_tutorial_runs(cp, torch):
    """Run the ``{code-block}`` blocks of the tutorial, which tests/docs does not run."""
    page = (DOCS / "tutorials" / "list_to_gpu.md").read_text()
    blocks = re.findall(r"^```{code-block} python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    done = finished(sys.executable, "-X", "faulthandler", "-c", WITH_ROW_STACK + "".join(blocks))
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]


def test_cuda_notebook_runs(cp, torch, cuda, kernels, tmp_path, monkeypatch):
    pytest.importorskip("nbclient")
    from notebooks import FOLDER, executed

    (tmp_path / "sitecustomize.py").write_text(WITH_ROW_STACK)  # imported by the notebook's kernel, a new process
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    executed(FOLDER / "gpu.ipynb")
