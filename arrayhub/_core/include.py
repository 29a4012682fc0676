"""Where the public C header lies."""

from pathlib import Path


def get_include() -> str:
    """Return the directory to compile against for ``#include <arrayhub.h>``.

    Returns
    -------
    str
        The ``-I`` directory of the installed ``arrayhub.h``. See docs/c_interface.md.
    """
    return str(Path(__file__).resolve().parent.parent / "include")
