"""``PYTHONPATH=.:tests/support python -m tests.support.matrix`` writes docs/matrix.md."""

from arrayhub import sycl_runtime

from .table import PAGE, written

sycl_runtime.configure()  # before dpctl is used
PAGE.write_text(written())
print(PAGE)
