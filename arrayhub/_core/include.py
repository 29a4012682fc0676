"""The directory of the public C header."""

import os


def get_include() -> str:
    """Return the include directory for ``#include <arrayhub.h>``.

    Returns
    -------
    str
        Directory that contains ``arrayhub.h``, for the compiler's option ``-I``. See docs/c_interface.md.

    Examples
    --------
    >>> import os
    >>> os.path.exists(os.path.join(arrayhub.get_include(), "arrayhub.h"))
    True
    """
    # pathlib is not used, because importing pathlib takes a third as long as importing arrayhub.
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "include")
