"""Functions and classes of the compiled modules raise an exception for invalid arguments, and do not crash."""

import importlib
import importlib.machinery
import importlib.util
import pkgutil
import sys

import numpy as np
import pytest
from children import python

import arrayhub

pytestmark = pytest.mark.slow

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


def compiled_modules():
    found = pkgutil.walk_packages(arrayhub.__path__, "arrayhub.")
    return sorted(m.name for m in found if (importlib.util.find_spec(m.name).origin or "").endswith(SUFFIX))


MODULES = compiled_modules()

WALK = '''
import importlib, inspect, itertools, os, sys
import numpy as np
import arrayhub

try:
    import dpctl.memory
except ImportError:
    dpctl = None

name = sys.argv[1]
module = importlib.import_module(name)
# Functions that are not called: `_after_fork` makes the process reject later calls, as in a forked child. A second
# `acquire` of a Lock would wait forever. The error of the enumeration Trait shows the value, and crashes for an empty
# `_Memory`.
LEFT_OUT = {"_after_fork", "Lock", "Trait"}
made = arrayhub.asarray(np.arange(6.0).reshape(2, 3))
values = [None, 0, -1, 99, 2**70, 1.5, "x", b"x", object(), int, (), [None], {}, made, np.zeros((3, 3)),
          np.zeros(2, "u1"), lambda *a: None]
if dpctl is not None:
    base = dpctl.memory._memory._Memory     # its subclasses allocate in __new__
    values.append(base.__new__(base))
calls = 0


def call(what, function, *arguments):
    """Make the call. If the process crashes, the last line of stdout names the call."""
    global calls
    calls += 1
    sys.stdout.write(f"{what}\\n")
    sys.stdout.flush()
    try:
        result = function(*arguments)
    except Exception as error:
        wrong = SystemError if "__getitem__" in what or "__setitem__" in what else (KeyError, SystemError)
        assert not isinstance(error, wrong), f"{what}: {error!r}"
        return None
    if type(result).__module__.partition(".")[0] == "dpctl":
        return result       # repr of a dpctl Memory object without memory crashes the process
    try:
        repr(result)
    except Exception as error:
        assert not isinstance(error, (KeyError, SystemError)), f"{what}: repr: {error!r}"
    return result


def parameters(function):
    try:
        kinds = [p for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return 1, 1
    required = [p for p in kinds if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = [p for p in kinds if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(required), len(most)


def attack(what, function):
    required, most = parameters(function)
    for count in {0, 1, required, min(most, required + 1)}:
        if count == 0:
            call(f"{what}()", function)
        elif count == 1:
            for value in values:
                call(f"{what}({type(value).__name__})", function, value)
        else:
            for k, value in itertools.product(range(count), values):
                for filler in (None, made, 1):
                    arguments = [filler] * count
                    arguments[k] = value
                    call(f"{what}({k}: {type(value).__name__}, {type(filler).__name__})", function, *arguments)


def attack_instance(what, instance):
    for attribute in dir(type(instance)):
        if attribute in ("__class__", "__del__", "__dict__", "__getattribute__", "__init_subclass__", "__new__",
                         "__setattr__", "__delattr__", "__subclasshook__", "__sizeof__", "__dir__"):
            continue
        value = call(f"{what}.{attribute}", getattr, instance, attribute)
        call(f"{what}.{attribute} = False", setattr, instance, attribute, False)
        if callable(value):
            attack(f"{what}.{attribute}", value)
    for function in (repr, str, hash, len, iter, bool, memoryview, np.asarray, arrayhub.asarray, arrayhub.as_numpy):
        call(f"{function.__name__}({what})", function, instance)


for key, value in list(vars(module).items()):
    if getattr(value, "__module__", None) != name or key in LEFT_OUT or not callable(value):
        continue
    attack(key, value)
    if isinstance(value, type):
        instance = call(f"{key}.__new__({key})", value.__new__, value)
        if instance is not None:
            attack_instance(f"bare {key}", instance)
            values.append(instance)
# Repeat the calls with the uninitialized instances that the first loop added to the values.
for key, value in list(vars(module).items()):
    if getattr(value, "__module__", None) == name and key not in LEFT_OUT and callable(value):
        attack(key, value)
print(calls, "calls")
'''


def test_compiled_modules_are_found():
    assert "arrayhub._core.dtypes" in MODULES
    assert "arrayhub.runtimes.sycl" in MODULES
    assert len(MODULES) > 25


@pytest.mark.parametrize("module", MODULES)
def test_invalid_arguments_raise(module):
    assert python(WALK, module).strip().endswith("calls")


def test_none_in_place_of_an_array_is_rejected():
    """Functions reject None in place of an array, because its C fields would be arbitrary memory."""
    python("""
import arrayhub._core.descriptor, arrayhub.libraries.cupy, arrayhub.nested.array, pytest
for function in (
    arrayhub._core.descriptor.slowest_first, arrayhub._core.descriptor.name_of_elements, arrayhub.libraries.cupy.emit,
    arrayhub.nested.array.valid_mask, arrayhub.nested.array.unpack_bits,
):
    with pytest.raises(TypeError, match="got NoneType"):
        function(None)
""")


# ------------------------------------------------------------------------------------ arguments that once caused faults


def test_flags_without_an_array_raise():
    kind = type(arrayhub.asarray(np.zeros(3)).flags)
    for make in (kind, lambda: kind.__new__(kind)):
        flags = make()
        with pytest.raises(TypeError, match=r"use x\.flags"):
            flags.writeable = False
        for name in ("c_contiguous", "f_contiguous", "aligned", "writeable"):
            with pytest.raises(TypeError, match=r"use x\.flags"):
                getattr(flags, name)


def test_devices_are_immutable():
    host = arrayhub.asarray(np.zeros(3)).device
    host.__init__("cuda:3")
    assert str(host) == "cpu"
    assert str(arrayhub.asarray(b"x").device) == "cpu"
    assert arrayhub.Device.__new__(arrayhub.Device, "cuda:3") == arrayhub.Device("cuda:3")
    with pytest.raises(ValueError, match="device"):
        arrayhub.Device.__new__(arrayhub.Device, "nonsense")


def test_unknown_type_number_raises():
    from arrayhub._core.dtypes import numpy_dtype

    for number in (99, -1, 4095, 5000):
        with pytest.raises(TypeError, match="element_types"):
            numpy_dtype(number)


def test_device_of_a_memory_block_does_not_depend_on_the_first_view(dpctl):
    """The memory block of USM has the USM's device, even if a host view requests the block first."""
    for first in range(2):
        x = arrayhub.asarray(dpctl.memory.MemoryUSMShared(64))
        described = type("P", (), {"__sycl_usm_array_interface__": x.__sycl_usm_array_interface__, "keep": x})()
        for array in (x, arrayhub.asarray(described)):
            views = [array, array.to_host()]
            assert views[1].device == arrayhub.Device("cpu")
            for view in (views[first], views[1 - first], views[first]):
                assert view.memory.device.type == "oneapi"
                assert view.memory.device.id == x.device.id


@pytest.mark.skipif("dpctl" not in sys.modules and not importlib.util.find_spec("dpctl"), reason="needs dpctl")
def test_dpctl_memory_objects_without_memory_are_rejected():
    import dpctl.memory

    base = dpctl.memory._memory._Memory  # its subclasses allocate in __new__
    bare = base.__new__(base)
    with pytest.raises((BufferError, TypeError, ValueError)):
        arrayhub.asarray(bare)
    with pytest.raises((BufferError, TypeError, ValueError)):
        arrayhub.asarray(bare, via="sycl")
    with pytest.raises((BufferError, TypeError, ValueError)):
        arrayhub.USMArray(1, "u1", buffer=bare)


def test_errors_do_not_call_foreign_representations():
    """Errors do not call a foreign object's ``__repr__``, which may crash the process or copy from a device."""
    from arrayhub._core.errors import show

    asked = []

    class Foreign:
        def __repr__(self):
            asked.append(self)
            return "values"

    class Tuple(tuple):
        __slots__ = ()
        __repr__ = Foreign.__repr__
        __iter__ = __getitem__ = __len__ = None

    class Text(str):
        __slots__ = ()
        __repr__ = __str__ = __len__ = __getitem__ = Foreign.__repr__

    x = Foreign()
    objects = np.array([x, None])
    name = f"{__name__}.test_errors_do_not_call_foreign_representations.<locals>.Foreign object"
    for value in (x, [x], (1, [x]), {"a": x}, {x}, frozenset([x]), slice(x), Tuple([x])):
        assert name in show(value), value
    for value in (objects, objects[:1].reshape(()), [objects], x.__repr__, ValueError(x), {"a": x}.values()):
        assert "values" not in show(value).replace("dict_values", ""), value
    assert not asked
    assert show(Text("words")) == "'words'"
    assert (
        show((1, 2.5, "x", None, True, slice(1, None), ...)) == "(1, 2.5, 'x', None, True, slice(1, None, None), ...)"
    )
    assert show(np.dtype("f4")) == "dtype('float32')"
    assert "3" in show(np.int64(3))
    assert show(arrayhub.Device("cuda:1")) == "Device('cuda:1')"
    assert show(b"x" * 10**6).startswith("b'xxx")


@pytest.mark.parametrize("make", ["asarray", "empty", "zeros", "USMArray"])
def test_repr_of_invalid_dtypes_is_not_called(make):
    class Foreign:
        def __repr__(self):
            raise AssertionError

    with pytest.raises(TypeError, match="Foreign object> is not a data type"):
        getattr(arrayhub, make)((1,), dtype=Foreign())


def test_tuples_do_not_construct_internal_classes():
    """Cython's pickling functions are disabled, because they would set C fields to arbitrary values."""
    for module in map(importlib.import_module, MODULES):
        for value in vars(module).values():
            if isinstance(value, type):
                assert not hasattr(value, "__setstate_cython__"), value
                assert not hasattr(value, "__reduce_cython__"), value


@pytest.mark.parametrize("bit", [-1, 6, 1 << 62])
def test_bit_offsets_outside_a_bitmap_raise(bit):
    """Bit offsets outside of a bitmap are rejected, because null_count would read memory beyond the buffer."""
    from arrayhub.nested.array import cover_missing, make

    node, bitmap = arrayhub.asarray(np.arange(3.0)), arrayhub.asarray(np.array([7], "u1"))
    assert cover_missing(node, bitmap, 5).null_count == 3
    for call in (
        lambda: cover_missing(node, bitmap, bit),
        lambda: make("bits", 3, content=bitmap, bit=bit),
        lambda: make("flat", 3, content=node, validity=bitmap, bit=bit),
        lambda: cover_missing(node, node, 0),
    ):
        with pytest.raises(ValueError, match=r"NestedArray: .*accepted: contiguous bytes"):
            call()
