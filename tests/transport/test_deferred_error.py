"""The placeholder for an array that could not be sent or restored raises the original error in any use as an array."""

import math
import operator
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from arrayhub.adapters.table import PROTOCOLS
from arrayhub.transport import deferred_error
from arrayhub.transport.deferred_error import Refused

COMPARISONS = ("lt", "le", "eq", "ne", "ge", "gt")
ARITHMETIC = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
    *("lshift", "rshift", "and_", "xor", "or_"),
)
BINARY = {name: getattr(operator, name) for name in (*COMPARISONS, *ARITHMETIC)} | {"divmod": divmod}
IN_PLACE = {f"i{name.rstrip('_')}": getattr(operator, f"i{name.rstrip('_')}") for name in ARITHMETIC}
UNARY = {
    **{name: getattr(operator, name) for name in ("neg", "pos", "abs", "invert", "index", "truth")},
    **{function.__name__: function for function in (len, iter, list, reversed, int, float, complex)},
    **{function.__name__: function for function in (math.floor, math.ceil, np.asarray, np.negative, np.sum)},
}
CALLS = {
    **UNARY,
    **{f"x {name} 3": lambda x, call=call: call(x, 3) for name, call in {**BINARY, **IN_PLACE}.items()},
    **{f"3 {name} x": lambda x, call=call: call(3, x) for name, call in BINARY.items()},
    **{f"x {name} x": lambda x, call=call: call(x, Refused("other")) for name, call in BINARY.items()},
    **{f"ndarray {name} x": lambda x, call=call: call(np.arange(3), x) for name, call in BINARY.items()},
    "x[0]": lambda x: x[0],
    "x[0] = 3": lambda x: operator.setitem(x, 0, 3),
    "del x[0]": lambda x: operator.delitem(x, 0),
    "3 in x": lambda x: 3 in x,
    "x in [3]": lambda x: x in [3],
    "x()": lambda x: x(),
    "x.shape": lambda x: x.shape,
    "pow(x, 3, 2)": lambda x: pow(x, 3, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_use_as_an_array_raises_the_error(name):
    with pytest.raises(pickle.PicklingError, match="the memory is on a device"):
        CALLS[name](Refused("the memory is on a device"))


def test_placeholder_defines_the_special_methods_of_ndarray():
    methods = {name for name in dir(np.ndarray) if callable(getattr(np.ndarray, name)) and name.startswith("__")}
    in_place = {name for name in methods if name.startswith("__i") and f"__{name[3:]}" in methods}
    elsewhere = {"__class_getitem__", "__copy__", "__deepcopy__", "__setstate__", "__hash__"}
    probed = {name for name in methods if name.startswith(("__array_", "__dlpack"))}
    assert methods - in_place - elsewhere - probed <= set(dir(Refused))


@pytest.mark.parametrize("attribute", [attribute for row in PROTOCOLS for attribute in row.attributes])
def test_protocol_attributes_raise_the_error(attribute):
    with pytest.raises(pickle.PicklingError, match="the memory is on a device"):
        getattr(Refused("the memory is on a device"), attribute)


def test_private_names_page_lists_each_module_that_is_compared():
    page = (Path(__file__).resolve().parents[2] / "docs" / "private_names.md").read_text()
    names = re.findall(r'"((?:distributed|multiprocessing)\.[\w.]+)"', Path(deferred_error.__file__).read_text())
    assert len(names) > 8
    assert [name for name in names if f"`{name}`" not in page] == []


def test_placeholders_are_not_hashable():
    """`hash` raises a TypeError, because dask does not catch other exceptions of `hash`."""
    with pytest.raises(TypeError, match="unhashable type"):
        hash(Refused("the memory is on a device"))


def test_placeholder_is_found_in_a_list_by_identity():
    x = Refused("the memory is on a device")
    assert x in [x]
    assert repr(x) == str(x) == f"{x}" == "<an array that was not sent: the memory is on a device>"
