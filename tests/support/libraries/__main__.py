"""``python -m tests.support.libraries`` tests every row, and writes docs/libraries.md with the tested versions."""

import sys

from arrayhub import sycl_runtime

from .one import MISSING
from .page import PAGE, ran, versions, written
from .table import LIBRARIES

sycl_runtime.configure()  # the children inherit the environment
known, wrong = versions(), 0
for library in LIBRARIES:
    status, said, errors = ran(library)
    if status == 0:
        known[library.name] = said
    elif status != MISSING:
        wrong += 1
        print(f"{library.name}: exit status {status}\n{errors}", file=sys.stderr)
    print(f"{library.name}: {said}")
PAGE.write_text(written(known))
print(PAGE)
sys.exit(wrong)
