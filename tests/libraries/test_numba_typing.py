"""Test `as_numba`, and njit functions whose arguments are USMArrays."""

import sys
import weakref

import numpy as np
import pytest
from children import run

import arrayhub

pytestmark = pytest.mark.slow

numba = pytest.importorskip("numba")
numba.core.entrypoints.init_all()  # `njit` calls this before its first compilation, but `typeof` does not


@numba.njit
def add_one(x):
    for i in range(x.shape[0]):
        x[i] += 1
    return x.sum()


@numba.njit
def total(x):
    return x.sum()


@numba.njit
def elements(x):
    return x.copy()


@pytest.mark.parametrize(
    ("view", "layout"),
    [
        (np.zeros((3, 4)), "C"),
        (np.zeros((3, 4)).T, "F"),
        (np.zeros((3, 4))[:, ::2], "A"),
        (np.zeros(4)[::-1], "A"),
        (np.zeros(()), "C"),
        (np.zeros((0, 3)), "C"),
        (np.frombuffer(bytes(16)), "C"),
    ],
    ids=["C", "F", "sliced", "negative", "0-d", "empty", "read-only"],
)
def test_numba_type_equals_that_of_the_ndarray(view, layout):
    ours, theirs = numba.typeof(arrayhub.asarray(view)), numba.typeof(view)
    assert isinstance(ours, numba.types.Array) and ours.layout == layout
    assert (ours.dtype, ours.ndim, ours.layout, ours.mutable, ours.aligned) == (
        theirs.dtype,
        theirs.ndim,
        theirs.layout,
        theirs.mutable,
        theirs.aligned,
    )


def _shrinking(a):
    while a.shape[0] > 1:
        a = a[1:]
    return a[0]


def _either(a):
    b = a if a[0] > 5 else np.ones(3)
    return b[2]


def _in_a_list(a):
    several = [np.zeros(2), a]
    several.append(a)
    return several[1][2]


@pytest.mark.parametrize("function", [_shrinking, _either, _in_a_list])
@pytest.mark.parametrize("step", [1, 2])
def test_functions_accept_ndarrays_and_usm_arrays(function, step):
    """A variable of a compiled function may hold a USMArray first and a Numba array later, or the reverse."""
    compiled = numba.njit(function)
    x = np.arange(6.0)[::step] + 3
    assert compiled(arrayhub.asarray(x)) == compiled(x)
    x.flags.writeable = False
    assert compiled(arrayhub.asarray(x)) == compiled(x)


def test_typed_lists_and_jitclasses_accept_usm_arrays():
    a = np.arange(3.0)
    several = numba.typed.List([np.zeros(2)])
    several.append(arrayhub.asarray(a))
    several[1][0] = 7
    assert a[0] == 7

    @numba.experimental.jitclass([("held", numba.float64[::1])])
    class Holder:
        def __init__(self, held):
            self.held = held

    assert Holder(arrayhub.asarray(a)).held.tolist() == a.tolist()


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f4", "f8", "c8", "c16", "M8[ns]", "m8[s]", "S3", "U2"])
def test_njit_functions_read_all_element_types(dtype):
    a = np.array([0, 1, 2]).astype(dtype)
    np.testing.assert_array_equal(elements(arrayhub.asarray(a)), a)


def test_njit_functions_read_fields_of_records():
    @numba.njit
    def field(x):
        return x[1].b

    a = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
    assert field(arrayhub.asarray(a)) == 4.5


def test_njit_functions_read_all_layouts():
    a = np.arange(24.0).reshape(2, 3, 4)
    unaligned = np.arange(25, dtype="u1")[1:].view("f8")
    assert not numba.typeof(arrayhub.asarray(unaligned)).aligned
    for view in (a, a.T, a[::-1, :, ::2], a[..., 1], np.broadcast_to(a[0], (5, 3, 4)), unaligned):
        np.testing.assert_array_equal(elements(arrayhub.asarray(view)), view)


def test_global_arrays_and_defaults_are_refused():
    """numba creates constants of these from the attribute `strides`, which counts elements."""
    x = arrayhub.asarray(np.arange(6.0).reshape(2, 3))
    several = (x, x)
    for function in (lambda: x.sum(), lambda: several[1].sum(), lambda y=x: y.sum()):
        with pytest.raises((numba.core.errors.TypingError, ValueError), match="pass it as an argument, or .*as_numba"):
            numba.njit(function)()


@pytest.mark.parametrize(("dtype", "words"), [(">f8", "byte-swapped"), ("g", "is not supported")])
def test_njit_functions_reject_other_element_types(dtype, words):
    with pytest.raises(TypeError, match=words):
        total(arrayhub.asarray(np.zeros(3, dtype)))


def test_the_memory_outlives_the_array():
    @numba.njit
    def identity(x):
        return x

    a = np.arange(4.0)
    watch = weakref.ref(a)
    result = identity(arrayhub.asarray(a))
    address = a.ctypes.data
    del a
    assert watch() is not None and result.ctypes.data == address and result.tolist() == [0, 1, 2, 3]
    del result
    assert watch() is None


def test_njit_functions_write_to_host_readable_usm():
    dpnp = pytest.importorskip("dpnp")
    x = dpnp.arange(5.0, usm_type="shared")
    assert add_one(arrayhub.asarray(x)) == 15.0
    assert dpnp.asnumpy(x).tolist() == [1, 2, 3, 4, 5]


def test_njit_functions_and_as_numba_reject_device_memory():
    dpnp = pytest.importorskip("dpnp")
    x = arrayhub.asarray(dpnp.arange(5.0))
    with pytest.raises(TypeError, match="to_host"):
        total(x)
    with pytest.raises(BufferError, match="numba cannot read") as raised:
        arrayhub.as_numba(x)
    assert eval(raised.value.call, {"arrayhub": arrayhub, "x": x}).tolist() == [0, 1, 2, 3, 4]


def test_as_numba_returns_an_ndarray_on_the_same_memory():
    a = np.arange(3.0)
    assert arrayhub.as_numba(a) is a
    assert arrayhub.as_numba(arrayhub.asarray(a)[1:]).ctypes.data == a[1:].ctypes.data


def test_njit_functions_wait_for_pending_work():
    dpnp = pytest.importorskip("dpnp")
    smallest = numba.njit(lambda x: x.min())
    smallest(arrayhub.asarray(np.ones(3, "f4")))
    for _ in range(5):
        x = dpnp.ones(1_000_000, dtype="f4", usm_type="shared")
        for _ in range(4):
            x = x * 2 + 1
        assert smallest(arrayhub.asarray(x)) == 31


def test_arrays_of_one_type_are_compiled_once():
    @numba.njit
    def count(pair, other):
        return pair[0].size + pair[1].size + other.size

    for n in range(3, 6):
        x = arrayhub.asarray(np.zeros(n))
        assert count((x, x), np.zeros(n)) == 3 * n
    assert len(count.signatures) == 1


def test_explicit_signatures_accept_the_result_of_as_numba():
    @numba.njit("f8(f8[:])")
    def signed(x):
        return x.sum()

    x = arrayhub.asarray(np.arange(4.0))
    assert signed(arrayhub.as_numba(x)) == 6
    with pytest.raises(TypeError):
        signed(x)


def test_numba_loads_the_extension_and_caches_compiled_functions(tmp_path):
    script = tmp_path / "cached.py"
    script.write_text(
        "import arrayhub, numba, numpy\n@numba.njit(cache=True)\ndef f(x):\n    return x.sum()\n"
        "assert f(arrayhub.asarray(numpy.arange(4.0))) == 6\nprint(sum(f.stats.cache_hits.values()))\n"
    )
    assert [run(sys.executable, script) for _ in range(2)] == ["0\n", "1\n"]
