"""A view keeps memory alive that its producer does not own, see `libraries.borrowing`."""

import pytest
from children import python
from libraries import borrowing

LIBRARIES = sorted({case.library for case in borrowing.CASES if case.outcome != borrowing.MOVES})


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_view_outlives_the_loan(library):
    """Run in a separate process, because a read of freed memory crashes the process."""
    pytest.importorskip(library.partition(".")[0])
    python(
        "import sys; from libraries import borrowing; borrowing.check_library(sys.argv[1])",
        library,
        SDL_VIDEODRIVER="dummy",
    )
