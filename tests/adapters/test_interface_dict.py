"""Test keys, invalid values and lifetimes of the NumPy, SYCL and CUDA interface dicts."""

import re
import sys
import types
import weakref

import arrayhub as ah  # imported before dpctl, so that dpctl finds the CPU runtime

# isort: split
import numpy as np
import pytest
from exporters import Index, has_driver
from hypothesis import given
from hypothesis import strategies as st
from optional import Absent, optional
from producers import lives

from arrayhub import InterfaceError

HOST = np.arange(64, dtype="u1")
dpm = optional("dpctl.memory")
USM = None if isinstance(dpm, Absent) else dpm.MemoryUSMShared(64)
AT = HOST.ctypes.data
COMMON = {"data": (AT, True), "shape": (2, 3), "strides": (24, 8), "typestr": "<i4", "version": 3}
DESCR = [("", "<i4")]
EVERY = {
    "array_interface": {**COMMON, "mask": None, "offset": 0, "descr": DESCR},
    "cuda": {**COMMON, "mask": None, "stream": 1, "descr": DESCR},
}
if USM is not None:
    EVERY["sycl"] = {
        **COMMON,
        "data": (USM._pointer, True),
        "strides": (6, 2),  # elements
        "version": 1,
        "syclobj": USM.sycl_queue,
        "offset": 1,
        "typedescr": DESCR,
    }
# With a CUDA driver, the CUDA dict is skipped, because the driver rejects these host pointers. tests/gpu tests valid
# pointers.
PROTOCOLS = {"array_interface": "__array_interface__"}
PROTOCOLS |= {} if USM is None else {"sycl": "__sycl_usm_array_interface__"}
PROTOCOLS |= {} if has_driver() else {"cuda": "__cuda_array_interface__"}


class Text(str):
    """A subclass of str, whose instances are not interned."""


def other_string(key):
    """Return a different string object with the same characters."""
    copy = "".join(list(key))
    assert copy is not key
    return copy


def take(protocol, keys, **more):
    return ah.asarray(types.SimpleNamespace(**{PROTOCOLS[protocol]: keys}, owner=USM), via=protocol, **more)


def fields(u):
    return u.ptr, u.shape, u.byte_strides, u.dtype, u.flags.writeable


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
def test_order_and_identity_of_keys_and_extra_keys_do_not_matter(protocol, data):
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
def test_each_key_is_read_for_each_spelling(protocol, key, spelling):
    """A key may be any object that equals the name, so its invalid value is reported."""
    keys = {k: v for k, v in EVERY[protocol].items() if k != key} | {spelling(key): 1.5}
    with pytest.raises((InterfaceError, TypeError), match=key):
        take(protocol, keys)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_keys_of_other_protocols_are_ignored(protocol):
    foreign = {k: object() for other in EVERY.values() for k in other if k not in EVERY[protocol]}
    assert foreign
    assert fields(take(protocol, EVERY[protocol] | foreign)) == fields(take(protocol, EVERY[protocol]))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_import_holds_values_if_the_dict_is_cleared(protocol):
    """If ``__index__`` of a length clears the dict, the import uses the values that it has already read."""

    class Length:
        def __index__(self):
            keys.clear()
            return 2

    keys = {k: (*v,) if isinstance(v, tuple) else v for k, v in EVERY[protocol].items()}
    keys["shape"] = (Length(), 3)
    assert fields(take(protocol, keys)) == fields(take(protocol, EVERY[protocol]))
    assert not keys


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dict_may_be_cleared_by_a_comparison_of_its_keys(protocol):
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
def test_error_releases_all_references(protocol, wrong):
    """After an error, no references to the dict and its values remain."""

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
def test_lengths_near_powers_of_two_are_read_correctly(protocol, power):
    """CPython represents small and large integers differently. A length can be large if another length is 0."""
    for number in (2**power - 1, 2**power, 2**power + 1):
        assert take(protocol, EVERY[protocol] | {"shape": (number, 0), "strides": None}).shape == (number, 0)
        with pytest.raises(InterfaceError, match=f"shape.*{-number}" if number else "version"):
            take(protocol, EVERY[protocol] | ({"shape": (-number, 0)} if number else {"version": -1}))


# ---------------------------------------------------------------------------------------------------- invalid values

PLAIN = {  # the same array without optional keys
    protocol: {k: v for k, v in EVERY[protocol].items() if k not in ("descr", "typedescr", "mask", "stream", "offset")}
    | {"strides": None, "data": (keys["data"][0], False)}
    for protocol, keys in EVERY.items()
}
MISSING = object()
HERE = object()  # placeholder for the address
BIG = 2**62
BAD = {
    "shape": [
        MISSING, None, 3, [2, 3], "23", (2.0, 3), (True, 3), ("2", 3), (None, 3), (None,), (-1, 2), (2, -3), (-1,),
        (2, -(2**63)), (-(2**63), 1), (2**63,), (2**63, 1), (2**64, 1), (2**200,), (2**63 - 1,), (BIG, 4), (2**61,),
        (2**32, 2**32), (2**31, 2**31, 2**31), (1,) * 65, {2: 2}, {2, 3}, b"23", (b"2",), ((2, 2),), (2, (3,)), (1j,),
        (np.float64(2), 2), (np.True_, 2), (np.array([2, 2]),),
    ],
    "typestr": [
        MISSING, None, "", "<", "i", "4", "<i", "<f", "<i3", "<f3", "<i16", "i4i4", "f4" * 100, "<i4 ", " <i4", "<<i4",
        "!i4", "@i4", "?<f4", "<i-4", "<V-1", "<i4.0", "<z4", "<x4", "O", "|O", "|O8", "StringDType()", "float",
        "float64", "StringDType(na_object=None)", "f", "<f1", "|f0", "|f99", "<f12", "<b2", "<c4", "<c1", "<t1",
        "<f4,<f4", "(2,)f4", "{'names': ['a']}", "<M7", "<M8[", "<M8[]", "<M8[parsec]", "<M8[ns]]", "<m8[ns/0]",
        "<M4[s]", "<U9999999999", "<S99999999999999999999", "<f99999999999999", "<i\u0664", "\u0663", "<i4\0", "\udcff",
        "\ud800f4", b"<i4", 4, ("f4",), ["<i4"], np.dtype("i4"), int,
    ],
    "data": [
        (), (HERE,), (HERE, False, 0), (0, False), (0,), 0, (-1, False), (2**63, False), (2**64 - 4, False),
        (2**64, False), (2**70, False), (2**63 - 1, False), (2**63 - 4, False), (2**63 - 8, False), (1.0, False),
        ("0x10", False), (str(AT), False), (float(AT), False), (True, False), (None, False), (object(), False),
        (HERE, None), (HERE, "no"), (HERE, 2), (HERE, 0.0), (HERE, []), 1.5, {}, "data",
    ],
    "strides": [
        (), (8,), (8, 4, 4), 8, [8, 4], "84", b"84", {8: 4}, (8.0, 4), (np.float32(8), 4), (True, 4), ("8", 4),
        (None, 4), (2**63 - 1, 4), (2**63, 4), (2**64, 4), (-(2**63), 4), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)),
        (-BIG, -BIG - 1), (-AT - 1, 4),
    ],
    "version": ["1", "3", 1.0, 3.0, True, -1, -(2**63), 2**64, 2**80, (3,), [1], np.array(3.0)],
}  # fmt: skip
ALSO = {
    "array_interface": {
        "data": [AT, [AT, False]],
        "version": [0],
        "mask": [False, True, np.zeros((2, 2), bool), object(), ()],
        "offset": [1, -1, "0", 0.0, 2**64, False],
    },
    "cuda": {
        "data": [MISSING, None, AT, [AT, False], b"bytes"],
        "version": [MISSING, None],
        "mask": [object(), np.ones(6, bool), False, 0],
        "stream": [0, -1, -2, 1.0, "1", True, False, 2**63, 2**64, object(), (1,), -(2**63), Index(0)],
    },
    "sycl": {
        "data": [MISSING, None, (1, False), b"bytes"],
        "version": [MISSING, None, 0, 2],
        "offset": [1.0, "1", (1,), 2**63, -(2**63), BIG, True, 2**60, -(2**60), 2**61 - 1, [0], 10**30],
        "strides": [(BIG, 4), (2**61, 1), (2**60, 1), (-(2**60), 1)],
        "typedescr": [3, [3], [("", "|f4"), ("", "|f4")]],
        "syclobj": ["cuda:99", "gpu:99:1" * 1000, [USM and USM.sycl_queue], dpm],
    },
}  # fmt: skip
WRONG = [
    pytest.param(protocol, key, value, id=f"{protocol}-{key}-{number}")
    for protocol in PROTOCOLS
    for key in {**BAD, **ALSO[protocol]}
    for number, value in enumerate(BAD.get(key, []) + ALSO[protocol].get(key, []))
]


@pytest.mark.parametrize(("protocol", "key", "value"), WRONG)
def test_invalid_values_raise_and_all_references_are_released(protocol, key, value):
    keys = PLAIN[protocol]
    first = value[0] if isinstance(value, tuple) and value else None
    if first is HERE:
        value = (keys["data"][0], *value[1:])
    keys = {k: v for k, v in {**keys, key: value}.items() if v is not MISSING}
    producer = types.SimpleNamespace(**{PROTOCOLS[protocol]: keys})
    before = sys.getrefcount(producer), sys.getrefcount(USM)
    said = interface_error_of(producer, protocol)
    assert said.startswith(f"{PROTOCOLS[protocol]}: ") and "; accepted: " in said and len(said) < 1000
    # If several values are invalid only in combination, the error may name another key.
    assert key in said or (key in ("strides", "offset", "data") and re.search(": (shape|strides|data)", said)), said
    assert (sys.getrefcount(producer), sys.getrefcount(USM)) == before


def interface_error_of(producer, protocol):
    """Return the message of the InterfaceError that an import raises. `pytest.raises` keeps a reference cycle."""
    try:
        ah.asarray(producer, via=protocol)
    except InterfaceError as error:
        return str(error)
    pytest.fail("no InterfaceError was raised")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [None, (), [], [("shape", (2,))], "dict", b"", 3, {"shape"}, pytest.param(object(), id="object"), np.ones(3)],
    ids=repr,
)
def test_attribute_must_be_a_dict(protocol, value):
    on_the_class = type("Odd", (), {PROTOCOLS[protocol]: value})
    for producer in (types.SimpleNamespace(**{PROTOCOLS[protocol]: value}), on_the_class()):
        with pytest.raises((InterfaceError, TypeError)):
            ah.asarray(producer, via=protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError])
def test_error_raised_by_a_property_propagates(protocol, error):
    def fail(self):
        raise error("call .detach() first")

    producer = type("Fails", (), {PROTOCOLS[protocol]: property(fail)})()
    with pytest.raises(error, match="detach"):
        ah.asarray(producer, via=protocol)
    with pytest.raises((error, BufferError), match="detach"):
        ah.asarray(producer)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_property_that_raises_attribute_error_is_treated_as_missing(protocol):
    def fail(self):
        raise AttributeError("not today")

    with pytest.raises((TypeError, InterfaceError)):
        ah.asarray(type("Lacks", (), {PROTOCOLS[protocol]: property(fail)})(), via=protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_property_with_the_dict_is_read_once(protocol):
    reads = []
    counting = property(lambda self: reads.append(1) or EVERY[protocol])
    producer = type("Counts", (), {PROTOCOLS[protocol]: counting, "owner": USM})()
    assert fields(ah.asarray(producer, via=protocol)) == fields(take(protocol, EVERY[protocol]))
    assert len(reads) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_integer_values_may_be_objects_with_index(protocol):
    """Lengths, strides, offset, pointer and flag may be NumPy scalars and other objects with ``__index__``."""
    of = EVERY[protocol]
    address, steps = of["data"][0], of["strides"]
    keys = of | {"shape": (Index(2), np.int64(3)), "strides": (Index(steps[0]), np.int32(steps[1]))}
    keys |= {"data": (np.uint64(address), np.True_), "version": np.int8(of["version"])}
    keys |= {"offset": np.uint8(of["offset"])} if "offset" in of else {}
    assert fields(take(protocol, keys)) == fields(take(protocol, of))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_view_keeps_the_producer_alive(protocol):
    producer = type("Producer", (), {PROTOCOLS[protocol]: EVERY[protocol], "owner": USM})()
    died = weakref.ref(producer)
    view = ah.asarray(producer, via=protocol)[1:]
    del producer
    assert lives(died)
    del view
    assert not lives(died)
