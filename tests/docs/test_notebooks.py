"""Run the notebooks and compare their output with the stored output."""

import pytest

pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

import nbformat
from notebooks import NOTEBOOKS, executed, missing, needs_cuda, shown, versions


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if not needs_cuda(path)], ids=lambda path: path.stem)
def test_notebooks_show_the_stored_output(path):
    absent = missing(path)
    if absent:
        pytest.skip(f"could not import {absent!r}")
    stored, again = nbformat.read(path, 4), executed(path)
    if stored.metadata.versions != versions(path):
        pytest.skip(f"the notebook runs, but its stored output is from other releases: {stored.metadata.versions}")
    assert shown(again) == shown(stored), "store the output with: PYTHONPATH=.:tests/support python -m notebooks"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_code_cell_is_stored_with_its_output(path):
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
