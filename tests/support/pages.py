"""Code blocks of the documentation."""

import re

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page):
    """Return the Python code blocks of the page at the path `page`."""
    return [block[1] for block in BLOCK.finditer(page.read_text())]


def needs_cuda(page):
    """Return whether the page at the path `page` needs a CUDA device. tests/gpu/test_howto.py runs such pages."""
    return "examples on this page require a CUDA device" in page.read_text()
