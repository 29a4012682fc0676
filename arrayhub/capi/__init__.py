"""C interface: the functions in the capsule's table, and the paths of the headers and of files for build systems."""

import os

# pathlib is not used, because importing pathlib takes a third as long as importing arrayhub.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


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
    return os.path.join(_PACKAGE, "include")


# One row per option of ``python -m arrayhub config``: its name, its description for the help text, and its value.
OPTIONS = {
    "cflags": ("flags for the compiler", f"-I{get_include()}"),
    "includes": ("the same as cflags", f"-I{get_include()}"),
    "cmakedir": ("the folder of the CMake package, for arrayhub_DIR", os.path.join(_PACKAGE, "cmake")),
    "pkgconfigdir": ("the folder of arrayhub.pc, for PKG_CONFIG_PATH", os.path.join(_PACKAGE, "pkgconfig")),
}
