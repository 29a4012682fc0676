"""Execute the notebooks of docs/notebooks, which are stored with their output.

``PYTHONPATH=.:tests/support python -m notebooks [NAME ...]`` executes the named notebooks, and stores their output. By
default, it executes all notebooks that do not need CUDA. `tests/docs/test_notebooks.py` executes these notebooks, and
compares the output with the stored output. `tests/gpu` executes the notebook for CUDA.
"""

import importlib.metadata
import importlib.util
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TIME = 120  # maximum seconds for a cell


def source_of(path):
    """Return the code cells of a notebook as one program."""
    import nbformat

    return "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")


def needs_cuda(path):
    return "requires a CUDA device" in path.read_text()


def executed(path):
    """Execute a notebook in a separate kernel. Return the notebook with its output."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, 4)
    client = nbclient.NotebookClient(notebook, timeout=TIME, kernel_name="python3", record_timing=False)
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = merged(output for output in cell.outputs if output.get("name") != "stderr")
    notebook.metadata.language_info = {"name": "python"}  # without the version
    notebook.metadata.versions = versions(path)
    return notebook


def imported(path):
    """Return the names of the third-party packages that a notebook imports, except arrayhub."""
    names = re.findall(r"^ *(?:import|from) (\w+)", source_of(path), re.MULTILINE)
    return sorted({*names} - {"arrayhub"} - sys.stdlib_module_names)


def versions(path):
    """Return the version of each package that a notebook imports."""
    distributions = importlib.metadata.packages_distributions()
    names = [name for name in imported(path) if name in distributions]
    return {name: importlib.metadata.version(distributions[name][0]) for name in names}


def merged(outputs):
    """Merge adjacent outputs of the same stream, because the kernel splits text differently in each run."""
    result = []
    for output in outputs:
        if result and output.output_type == "stream" == result[-1].output_type and output.name == result[-1].name:
            result[-1].text += output.text
        else:
            result.append(output)
    return result


def shown(notebook):
    """Return the output of each code cell, as (type, text) pairs."""
    return [
        [part for output in cell.outputs for part in parts(output)]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def parts(output):
    """Return the (type, text) pairs of one output. The text of an image is empty, because its bytes depend on fonts."""
    if output.output_type == "stream":
        return [("stream", output.text)]
    return [(mime, "" if mime == "image/png" else comparable(text)) for mime, text in sorted(output.data.items())]


def comparable(text):
    """Return `text` without addresses and the sizes of figures, which may change with every run."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return re.sub(r"<Figure size .*>", "<Figure>", text)


def missing(path):
    """Return the first package that a notebook imports and that is not installed, or None."""
    return next((name for name in imported(path) if importlib.util.find_spec(name) is None), None)


if __name__ == "__main__":
    import nbformat

    for path in NOTEBOOKS:
        if path.stem in sys.argv[1:] or (not sys.argv[1:] and not needs_cuda(path)):
            nbformat.write(executed(path), path)
