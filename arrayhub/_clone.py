"""In the root of a clone, ``python -m`` finds the sources before the installed package; this finds the latter."""

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import PathFinder


def compiled_path(package_path: Iterable[str]) -> list[str]:
    """Return where the package's modules are to be looked for.

    Parameters
    ----------
    package_path : iterable of str
        ``arrayhub.__path__``.

    Returns
    -------
    list of str
        The same, or the installed package's folder where the given one is that of the sources, which alone have a
        ``meson.build`` and no compiled modules. An editable installation finds its modules by itself.
    """
    here = list(package_path)
    if not os.path.exists(os.path.join(here[0], "meson.build")):
        return here
    root = os.path.realpath(os.path.dirname(here[0]))
    installed = PathFinder.find_spec("arrayhub", [entry for entry in sys.path if os.path.realpath(entry) != root])
    return list(installed.submodule_search_locations or here) if installed is not None else here


def check_compiled() -> None:
    """See that the package's modules are compiled, which those of a clone are not at first.

    Raises
    ------
    ImportError
        They are not; the message says how that is done.
    """
    try:
        import_module("arrayhub._core.device")
    except ModuleNotFoundError as error:
        if error.name != "arrayhub._core.device":
            raise
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        raise ImportError(
            f"arrayhub: the sources in {root} are not compiled; there, run `pip install .`, which takes minutes, or"
            " `python tools/build_inplace.py`"
        ) from error
