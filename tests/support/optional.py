"""Libraries that the extra `test` does not install, for the import section of a test file."""

import importlib
import importlib.util
import types

import pytest


class Absent(types.ModuleType):
    """A stand-in for a library that is not installed. A test that uses one of its names is skipped."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.skip(f"could not import {self.__name__!r}", allow_module_level=True)


def optional(name):
    """Return a module, or an `Absent` if its library is not installed.

    Unlike `pytest.importorskip` at the top of a file, this skips only the tests that use the library.
    """
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        return Absent(name)
    return importlib.import_module(name)
