"""``python -m arrayhub config``: paths and flags for compilers and build systems."""

import os

from arrayhub._core.include import get_include

_PACKAGE = os.path.dirname(get_include())

# One row per option: its name, its description for the help text, and its value.
OPTIONS = {
    "cflags": ("flags for the compiler", f"-I{get_include()}"),
    "includes": ("the same as cflags", f"-I{get_include()}"),
    "cmakedir": ("the folder of the CMake package, for arrayhub_DIR", os.path.join(_PACKAGE, "cmake")),
    "pkgconfigdir": ("the folder of arrayhub.pc, for PKG_CONFIG_PATH", os.path.join(_PACKAGE, "pkgconfig")),
}
