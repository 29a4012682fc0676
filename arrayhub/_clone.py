"""Find the installed package if Python imports the source tree instead, as ``python -m`` does in a clone.

``import arrayhub`` imports this module only from a source tree.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder


def find_compiled(package_path: list[str]) -> None:
    """Replace the path of the package by that of an installation, unless the modules of the source tree are compiled.

    The module finder of an editable installation finds the compiled modules by itself. Raise ImportError if there are
    no compiled modules, as in a fresh clone.
    """
    compiled = (os.path.join(package_path[0], "_core", f"descriptor{suffix}") for suffix in EXTENSION_SUFFIXES)
    root = os.path.realpath(os.path.dirname(package_path[0]))
    if not any(map(os.path.exists, compiled)):
        others = [entry for entry in sys.path if os.path.realpath(entry) != root]
        installed = PathFinder.find_spec("arrayhub", others)
        package_path[:] = (installed and installed.submodule_search_locations) or package_path
    try:
        import_module("arrayhub._core.descriptor")
    except ModuleNotFoundError as error:
        if error.name != "arrayhub._core.descriptor":
            raise
        raise ImportError(
            f"arrayhub: the sources in {root} are not compiled; run `pip install .`, which takes minutes, or"
            " `python tools/build_inplace.py` in this folder"
        ) from error
