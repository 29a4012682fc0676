"""``PYTHONPATH=.:tests/support python -m tests.support.matrix`` writes docs/matrix.md."""

from .table import PAGE, written

PAGE.write_text(written())
print(PAGE)
