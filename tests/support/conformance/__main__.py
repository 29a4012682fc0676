"""``PYTHONPATH=tests/support python -m conformance`` writes docs/conformance.md."""

from arrayhub import sycl_runtime

from .page import PAGE, written

sycl_runtime.configure()  # dpnp is used first
PAGE.write_text(written())
print(PAGE)
