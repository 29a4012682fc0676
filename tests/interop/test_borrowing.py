"""A view keeps its values if its producer is dropped, closed or resized. `libraries.borrowing` has the cases."""

import pytest
from children import python
from libraries import borrowing

pytestmark = pytest.mark.slow

LIBRARIES = sorted({case.library for case in borrowing.CASES if case.outcome != borrowing.MOVES})


@pytest.mark.parametrize("library", LIBRARIES)
def test_views_keep_their_values(library):
    """Runs in a subprocess, because a read of freed memory may crash the process."""
    pytest.importorskip(library.partition(".")[0])
    python(
        "import sys; from libraries import borrowing; borrowing.check_library(sys.argv[1])",
        library,
        SDL_VIDEODRIVER="dummy",
    )
