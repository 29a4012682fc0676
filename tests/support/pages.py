"""Code blocks of the documentation."""

import re

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page):
    """Return the Python blocks of a page, given as a path."""
    return [block[1] for block in BLOCK.finditer(page.read_text())]


def needs_cuda(page):
    """Return whether the examples of a page need a CUDA device. tests/gpu/test_howto.py runs such examples."""
    return "examples on this page require a CUDA device" in page.read_text()
