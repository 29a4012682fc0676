"""Classes of the rows in the tables of libraries, and functions that test a row."""

import builtins
import functools
import gc
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import arrayhub as ah


class View(NamedTuple):
    """An object that `asarray` imports as a view.

    Attributes
    ----------
    what : str
        Name of the object in docs/libraries.md.
    make : callable
        Creates an object with more than one element, given the library's module.
    shown : callable
        Returns an ndarray that shares the object's memory, using only functions of the library.
    access : str
        Expected `USMArray.access`.
    note : str
        Remark for docs/libraries.md.
    """

    what: str
    make: Callable[[Any], Any]
    shown: Callable[[Any], Any]
    access: str = "readwrite"
    note: str = ""


class Refused(NamedTuple):
    """An object that `asarray` rejects, and the call that the error names.

    Attributes
    ----------
    call : str
        Call in the error text.
    why : str
        Reason for docs/libraries.md.
    instead : callable or None
        Makes the call. `asarray` must import the result, or each item if the result is a tuple. If None, the text
        `call` is evaluated.
    """

    what: str
    make: Callable[[Any], Any]
    call: str
    why: str
    instead: Callable[[Any], Any] | None = None


class Out(NamedTuple):
    """Import of a USMArray by a library, for host memory and for shared USM.

    Attributes
    ----------
    what : str
        The call, for docs/libraries.md.
    take : callable or None
        Converts a USMArray of eight float32, aligned to 64 bytes, to the library's array. If None, the text `what` is
        evaluated.
    copies : bool
        Whether the library copies the memory.
    usm : str
        Call to make for shared USM, if the library rejects it, or "".
    """

    what: str
    take: Callable[[Any], Any] | None = None
    copies: bool = False
    usm: str = ""
    note: str = ""


class _Names(dict):
    """The namespace of a call that is given as text. A name that is not in the dict is imported as a module."""

    def __missing__(self, name):
        return importlib.import_module(name)


def called(call, x):
    """Evaluate the expression `call`, which uses the name `x`."""
    return eval(call, {}, _Names(vars(builtins), x=x, convert=ah.convert))


def check(row, module):
    """Test a `View` or `Refused` row with an object of the library."""
    (_check_view if isinstance(row, View) else _check_refused)(row, module)


def _check_view(row, module):
    obj = row.make(module)
    shown = np.asarray(row.shown(obj))
    a = ah.asarray(obj, copy=False)
    said = (a.ptr, a.shape, a.byte_strides, a.dtype, a.access)
    expected = (shown.ctypes.data, shown.shape, shown.strides, shown.dtype, row.access)
    assert said == expected, f"{said}, expected {expected}"
    if row.access == "readwrite":
        before = shown.tobytes()
        ah.as_numpy(a)[...] = np.frombuffer(bytes([1]) * a.itemsize, a.dtype)[0]
        assert shown.tobytes() == a.tobytes() != before, "a write to the view does not change the object"
    before = a.tobytes()
    del obj, shown
    gc.collect()
    ballast = [np.full(a.nbytes, 255, "u1") for _ in range(64)]  # reuses and overwrites freed memory
    assert a.tobytes() == before, "the memory is freed while the view exists"
    assert ballast


def _check_refused(row, module):
    obj = row.make(module)
    try:
        a = ah.asarray(obj)
    except (TypeError, BufferError, ah.InterfaceError) as error:
        said = str(error)
    else:
        raise AssertionError(f"asarray accepts the object: {a}")
    assert row.call in said, f"the error does not name {row.call!r}: {said}"
    given = row.instead(obj) if row.instead else called(row.call, obj)
    for part in given if type(given) is tuple else (given,):
        ah.asarray(part)


def check_out(row, memory):
    """Test an `Out` row with `memory`, a USMArray."""
    take = row.take or functools.partial(called, row.what)
    on_usm = memory.device.type == "oneapi"
    if on_usm and row.usm:
        try:
            take(memory)
        except Exception:
            memory = memory.to_host()
        else:
            raise AssertionError("shared USM is accepted")
    taken = take(memory)
    back = ah.asarray(taken)
    assert back.tolist() == ah.as_numpy(memory).tolist()
    assert (back.ptr != memory.ptr) == row.copies, f"{row.what} copies: {not row.copies}"
