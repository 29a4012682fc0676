"""Find the installed package if Python imports the source tree instead, as ``python -m`` does in a clone.

``import arrayhub`` imports this module only from a source tree.
"""

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder


def compiled_path(package_path: Iterable[str]) -> list[str]:
    """Return the folders of the package's compiled modules, given ``arrayhub.__path__``.

    These are `package_path` itself if the source tree contains modules compiled for this interpreter, or if no other
    installation is found, else the folder of the installed package. For editable installations, the result is
    `package_path`, because their module finder finds the compiled modules.
    """
    here = list(package_path)
    compiled = (os.path.join(here[0], "_core", f"descriptor{suffix}") for suffix in EXTENSION_SUFFIXES)
    if any(map(os.path.exists, compiled)):
        return here
    root = os.path.realpath(os.path.dirname(here[0]))
    installed = PathFinder.find_spec("arrayhub", [entry for entry in sys.path if os.path.realpath(entry) != root])
    return list(installed.submodule_search_locations or here) if installed is not None else here


def check_compiled() -> None:
    """Raise ImportError with instructions if the package's modules are not compiled, as in a fresh clone."""
    try:
        import_module("arrayhub._core.descriptor")
    except ModuleNotFoundError as error:
        if error.name != "arrayhub._core.descriptor":
            raise
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        raise ImportError(
            f"arrayhub: the sources in {root} are not compiled; run `pip install .`, which takes minutes, or"
            " `python tools/build_inplace.py` in this folder"
        ) from error
