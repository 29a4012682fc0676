"""What the three interface dicts share: how keys are found, whatever objects they are and whatever runs meanwhile."""

import sys
import types

import arrayhub as ah  # before dpctl: it finds the CPU runtime

# isort: split
import dpctl.memory as dpm
import numpy as np
import pytest
from exporters import has_driver
from hypothesis import given
from hypothesis import strategies as st

from arrayhub import InterfaceError

HOST = np.arange(64, dtype="u1")
USM = dpm.MemoryUSMShared(64)
AT = HOST.ctypes.data
COMMON = {"data": (AT, True), "shape": (2, 3), "strides": (24, 8), "typestr": "<i4", "version": 3}
DESCR = [("", "<i4")]
EVERY = {
    "array_interface": {**COMMON, "mask": None, "offset": 0, "descr": DESCR},
    "cuda": {**COMMON, "mask": None, "stream": 1, "descr": DESCR},
    "sycl": {
        **COMMON,
        "data": (USM._pointer, True),
        "strides": (6, 2),  # elements
        "version": 1,
        "syclobj": USM.sycl_queue,
        "offset": 1,
        "typedescr": DESCR,
    },
}
# CUDA's is left out where a driver would look at the pointer: the way is the same, and tests/gpu has real ones.
PROTOCOLS = {"array_interface": "__array_interface__", "sycl": "__sycl_usm_array_interface__"}
PROTOCOLS |= {} if has_driver() else {"cuda": "__cuda_array_interface__"}


class Text(str):
    """A string that no name in source code is."""


def other_string(key):
    """A string of the same characters in another object."""
    copy = "".join(list(key))
    assert copy is not key
    return copy


def take(protocol, keys, **more):
    return ah.asarray(types.SimpleNamespace(**{PROTOCOLS[protocol]: keys}, owner=USM), via=protocol, **more)


def fields(u):
    return u.ptr, u.shape, u.byte_strides, u.dtype, u.flags.writeable


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
def test_order_identity_and_company_of_the_keys_do_not_matter(protocol, data):
    expected = fields(take(protocol, EVERY[protocol]))
    assert expected[1:3] == ((2, 3), (24, 8)) and not expected[4]
    others = st.one_of(st.integers(), st.text(), st.none()).filter(lambda key: key not in EVERY[protocol])
    spelling = st.sampled_from([str, other_string, Text])
    keys = [(data.draw(spelling)(key), value) for key, value in EVERY[protocol].items()]
    keys += [(key, None) for key in data.draw(st.lists(others, max_size=3))]
    spelt = dict(data.draw(st.permutations(keys)))
    assert fields(take(protocol, spelt)) == expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("key", ["data", "shape", "typestr", "version"])
@pytest.mark.parametrize("spelling", [str, other_string, Text])
def test_every_key_is_read(protocol, key, spelling):
    """Whichever object the key is: a wrong value is found."""
    keys = {k: v for k, v in EVERY[protocol].items() if k != key} | {spelling(key): 1.5}
    with pytest.raises((InterfaceError, TypeError), match=key):
        take(protocol, keys)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_keys_of_the_other_protocols_mean_nothing(protocol):
    foreign = {k: object() for other in EVERY.values() for k in other if k not in EVERY[protocol]}
    assert foreign
    assert fields(take(protocol, EVERY[protocol] | foreign)) == fields(take(protocol, EVERY[protocol]))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_read_is_held_while_the_dict_is_cleared(protocol):
    """An ``__index__`` that empties the dict leaves what it said before, and nothing of it is freed too early."""

    class Length:
        def __index__(self):
            keys.clear()
            return 2

    keys = {k: (*v,) if isinstance(v, tuple) else v for k, v in EVERY[protocol].items()}
    keys["shape"] = (Length(), 3)
    assert fields(take(protocol, keys)) == fields(take(protocol, EVERY[protocol]))
    assert not keys


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_that_clears_the_dict_as_it_is_compared(protocol):
    class Key:
        def __hash__(self):
            return hash(missing)

        def __eq__(self, other):
            if armed:
                keys.clear()
            return False

    missing = "typedescr" if protocol == "sycl" else "descr"
    armed = []
    keys = {Key(): 1, **{k: v for k, v in EVERY[protocol].items() if k != missing}}
    armed.append(True)
    assert fields(take(protocol, keys)) == fields(take(protocol, EVERY[protocol]))
    assert not keys


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("wrong", ["raises", "version", "shape", "typestr", "strides", "data"])
def test_an_error_lets_everything_go(protocol, wrong):
    """What an error leaves behind is counted: neither the dict nor a value of it is kept."""

    class Key:
        def __hash__(self):
            return hash("strides")

        def __eq__(self, other):
            raise ZeroDivisionError

    shape, data = (*EVERY[protocol]["shape"],), (AT, False)
    keys = {**EVERY[protocol], "shape": shape, "data": data, wrong: [object()]}
    if wrong == "raises":
        keys = {k: v for k, v in keys.items() if k != "strides"} | {Key(): 1}
    before = sys.getrefcount(shape), sys.getrefcount(data), sys.getrefcount(keys)
    for _ in range(10):
        with pytest.raises((InterfaceError, TypeError, ZeroDivisionError)):
            take(protocol, keys)
    assert (sys.getrefcount(shape), sys.getrefcount(data), sys.getrefcount(keys)) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("power", [0, 14, 15, 29, 30, 31, 32, 59, 60])
def test_integers_of_every_size(protocol, power):
    """Python keeps small and large integers differently; lengths of an array without elements may be any of them."""
    for number in (2**power - 1, 2**power, 2**power + 1):
        assert take(protocol, EVERY[protocol] | {"shape": (number, 0), "strides": None}).shape == (number, 0)
        with pytest.raises(InterfaceError, match=f"shape.*{-number}" if number else "version"):
            take(protocol, EVERY[protocol] | ({"shape": (-number, 0)} if number else {"version": -1}))
