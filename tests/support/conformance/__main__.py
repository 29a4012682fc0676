"""``PYTHONPATH=tests/support python -m conformance`` writes docs/conformance.md."""

from .page import PAGE, written

PAGE.write_text(written())
print(PAGE)
