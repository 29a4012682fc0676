"""Import libraries that the extra `test` does not install, at the top of a test file."""

import importlib
import importlib.util
import types

import pytest


class Absent(types.ModuleType):
    """A stand-in for a library that is not installed. Access to one of its attributes skips the test."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.skip(f"could not import {self.__name__!r}", allow_module_level=True)


def optional(name):
    """Import a module. Return an `Absent` if the module's library is not installed.

    Unlike `pytest.importorskip` at the top of a file, this skips only the tests that use the library.
    """
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        return Absent(name)
    return importlib.import_module(name)
