"""Code blocks of the documentation."""

import re

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page):
    """Return the Python blocks of a page, given as a path."""
    return [block[1] for block in BLOCK.finditer(page.read_text())]
