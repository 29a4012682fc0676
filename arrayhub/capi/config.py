"""``python -m arrayhub config``: where compilers and build systems find what they need."""

import os

from arrayhub._core.include import get_include

_PACKAGE = os.path.dirname(get_include())

# One row per option: its name, what it prints, in words, and what it is.
OPTIONS = {
    "cflags": ("flags for the compiler", f"-I{get_include()}"),
    "includes": ("the same", f"-I{get_include()}"),
    "cmakedir": ("the folder of the CMake package, for arrayhub_DIR", os.path.join(_PACKAGE, "cmake")),
    "pkgconfigdir": ("the folder of arrayhub.pc, for PKG_CONFIG_PATH", os.path.join(_PACKAGE, "pkgconfig")),
}
