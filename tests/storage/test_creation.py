"""Storage functions return the layouts, alignments and kinds of memory that their arguments and backends specify."""

import datetime
import enum
import importlib.util
import math
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from children import python, resident
from exporters import has_driver
from optional import optional
from pickled_arrays import packed_int4

import arrayhub
from arrayhub import empty
from arrayhub.storage import layout_for, layouts, plan
from arrayhub.storage.creation import Options

layout_registry = optional("gt4py.storage.cartesian.layout_registry")
gt4py_layout = optional("gt4py.storage.cartesian.layout")
gt4py_utils = optional("gt4py.storage.cartesian.utils")

USM = ("usm_host", "usm_shared", "usm_device")
HERE = ("cpu", *USM)

FACTS = [  # arguments (shape, dtype, aligned index, layout, alignment), results (strides, offset, buffer size in bytes)
    ((10, 12, 20), "f8", (1, 1, 0), (2, 1, 0), 64, (1, 16, 192), 7, 30783),
    ((10, 12, 20), "f8", (1, 1, 0), (2, 1, 0), 8, (1, 10, 120), 0, 19207),
    ((10, 12, 20), "f8", (1, 1, 3), (0, 1, 2), 64, (288, 24, 1), 5, 23103),
    ((4, 6), "f4", (1, 2), (1, 0), 16, (1, 4), 3, 111),
]


def host(x):
    """Return the elements of an array in any memory as an ndarray."""
    return np.asarray(arrayhub.to_host(x))


def address(x):
    return x.__array_interface__["data"][0]


# ------------------------------------------------------------------------------------------------------------ plan


@pytest.mark.parametrize(("shape", "dtype", "index", "layout", "alignment", "strides", "offset", "nbytes"), FACTS)
def test_plan_and_empty_match_known_values(shape, dtype, index, layout, alignment, strides, offset, nbytes):
    made = plan(shape, dtype, layout=layout, alignment=alignment, aligned_index=index)
    assert (made.strides, made.offset, made.nbytes, made.alignment) == (strides, offset, nbytes, alignment)
    assert made.shape == shape and made.dtype == np.dtype(dtype) and made.layout == layout
    x = empty(shape, dtype, layout=layout, alignment=alignment, aligned_index=index)
    assert x.strides == strides and x.ptr % alignment == offset * x.itemsize % alignment


def random_case(rng):
    nd = int(rng.integers(0, 6))
    shape = tuple(int(n) for n in rng.integers(1, 13, nd))
    dtype = np.dtype(str(rng.choice(["b1", "i1", "u2", "f4", "i8", "f8", "c16"])))
    alignment = int(rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 256, 3 * dtype.itemsize, 5 * dtype.itemsize]))
    layout = tuple(int(rank) for rank in rng.permutation(nd))
    return shape, dtype, alignment, layout, tuple(int(rng.integers(0, n)) for n in shape)


def test_plan_agrees_with_gt4py():
    rng = np.random.default_rng(1)
    for _ in range(3000):
        shape, dtype, alignment, layout, index = case = random_case(rng)
        buffer, array = gt4py_utils.allocate_cpu(shape, layout, dtype, alignment, index)
        made = plan(shape, dtype, layout=layout, alignment=alignment, aligned_index=index)
        assert tuple(step * dtype.itemsize for step in made.strides) == array.strides, case
        assert made.nbytes == buffer.nbytes, case
        assert (address(array) - made.offset * dtype.itemsize) % alignment == 0, case
        in_buffer = (made.offset * dtype.itemsize - address(buffer)) % alignment
        assert address(array) == address(buffer) + in_buffer, case


def test_every_element_with_the_aligned_index_is_aligned():
    rng = np.random.default_rng(2)
    for _ in range(1000):
        shape, dtype, alignment, layout, index = case = random_case(rng)
        x = empty(shape, dtype, layout=layout, alignment=alignment, aligned_index=index)
        if not shape:
            assert x.ptr % alignment == 0
            continue
        fastest = layout.index(len(shape) - 1)
        distances = np.zeros(1, np.intp)
        for axis, (length, step) in enumerate(zip(shape, x.byte_strides, strict=True)):
            steps = np.array([index[axis]]) if axis == fastest else np.arange(length)
            distances = (distances[:, None] + steps * step).ravel()
        assert not ((x.ptr + distances) % alignment).any(), case
        assert x.ptr % min(dtype.itemsize, alignment) == 0, case
        end = x.ptr + sum((n - 1) * step for n, step in zip(x.shape, x.byte_strides, strict=True)) + x.itemsize
        assert x.memory.address <= x.ptr and end <= x.memory.address + x.memory.nbytes, case


def test_plan_is_immutable_and_hashable():
    one, other = (plan([3, np.int64(4)], float, alignment=64) for _ in range(2))
    assert one == other and hash(one) == hash(other) and len({one, other}) == 1
    with pytest.raises(AttributeError):
        one.offset = 3
    assert plan((3, 5), "f4", alignment=16).padded_shape == (3, 8)
    assert plan((), "f4").strides == () and plan(7, "f4").strides == (1,)
    assert plan((2, 0, 3), "f4").nbytes == 63


# --------------------------------------------------------------------------------------------------------- layouts

LAYOUTS = {
    ("gt:cpu_kfirst", "IJK"): (0, 1, 2), ("gt:cpu_kfirst", "KJI"): (2, 1, 0), ("gt:cpu_kfirst", "KI"): (1, 0),
    ("gt:cpu_kfirst", "IJK0"): (1, 2, 3, 0), ("gt:cpu_ifirst", "IJK"): (2, 1, 0), ("gt:cpu_ifirst", "KJI"): (0, 1, 2),
    ("gt:cpu_ifirst", "IJK0"): (3, 2, 1, 0), ("dace:cpu", "IJK"): (1, 2, 0), ("dace:cpu", "KJI"): (0, 2, 1),
    ("dace:cpu", "IJK0"): (2, 3, 1, 0), ("numpy", "10K"): (1, 0, 2),
}  # fmt: skip


@pytest.mark.parametrize(("backend", "dimensions"), LAYOUTS)
def test_layout_depends_on_dimension_names(backend, dimensions):
    assert layout_for(dimensions, backend) == LAYOUTS[backend, dimensions]


@pytest.mark.parametrize("dimensions", ["I", "J", "K", "IJ", "IK", "JK", "IJK", "IJK0", "IJK01", "K0", "IJ01"])
def test_layouts_match_gt4py_in_canonical_order(dimensions):
    assert len(layout_registry.REGISTRY) > 5
    for backend, info in layout_registry.REGISTRY.items():
        assert layout_for(dimensions, backend) == tuple(info["layout_map"](tuple(dimensions))), backend
        shape = (3, 4, 5, 6, 7)[: len(dimensions)]
        array = np.asarray(empty(shape, "f4", backend=backend, dimensions=dimensions))
        assert info["is_optimal_layout"](array, tuple(dimensions)), backend


def test_presets_pad_rows_like_gt4py():
    x = empty((10, 3), "f4", backend="gt:gpu", dimensions="IJ", aligned_index=(1, 0))
    assert x.strides == (1, 32) and (x.ptr + 4) % 128 == 0
    assert empty((10, 3), "f4", backend="gt:gpu", alignment=16).strides == (1, 12)
    assert empty((10, 3), "f4", backend="gt:gpu", layout="C").strides == (32, 1)


@pytest.fixture
def registered():
    """Yield two names for presets. After the test, remove them from the registries of arrayhub and GT4Py."""
    names = ("test:mine", "test:theirs")
    yield names
    for name in names:
        layouts._presets.pop(name, None)
        if "gt4py.storage.cartesian.layout_registry" in sys.modules:
            layout_registry.register(name, None)


def test_register_rejects_0d_arrays():
    with pytest.raises(TypeError, match="is not a sequence; accepted: integers, one per dimension"):
        layouts.register("zz", np.array(3))


def test_registered_presets_are_used(registered):
    mine, _ = registered
    with pytest.raises(
        ValueError, match=r"'test:mine' is not registered; accepted: .*gt:cpu_ifirst.*layouts\.register"
    ):
        empty((2, 3), backend=mine)
    layouts.register(mine, (2, 0, 1), alignment=4)
    assert mine in layouts.names()
    assert layout_for("IJK0", mine) == (3, 1, 2, 0)
    assert empty((5, 6, 7), "f4", backend=mine).strides == (1, 56, 8)
    layouts.register(mine, lambda dimensions: range(len(dimensions)))  # of I, J, K
    assert empty((7, 5, 6), "f4", dims="KIJ", backend=mine).strides == (1, 42, 7)  # the cached layout is invalidated
    layouts.register(mine, lambda dimensions: (0,) * len(dimensions))
    with pytest.raises(ValueError, match="layout: .*permutation"):
        empty((5, 6), backend=mine)


def test_presets_registered_with_gt4py_are_used(registered):
    _, theirs = registered
    for base, strides in (((2, 0, 1), (1, 35, 5)), ((0, 1, 2), (42, 7, 1))):
        maker = gt4py_layout.layout_maker_factory(base)
        info = gt4py_layout.LayoutInfo(
            alignment=1, device="cpu", layout_map=maker, is_optimal_layout=gt4py_layout.layout_checker_factory(maker)
        )
        layout_registry.register(theirs, info)
        assert empty((5, 6, 7), backend=theirs).strides == strides


@pytest.mark.slow
def test_builtin_presets_do_not_import_gt4py():
    """Only the lookup of a name that is not built in imports gt4py."""
    pytest.importorskip("gt4py")
    program = (
        "import sys, arrayhub\n"
        "assert not any(name.startswith('arrayhub.storage') for name in sys.modules)\n"
        "x = arrayhub.empty((4, 5, 6), backend='gt:cpu_ifirst')\n"
        "assert x.strides == (1, 4, 20), x.strides\n"
        "assert 'gt4py' not in sys.modules\n"
        "try:\n    arrayhub.empty(3, backend='not:registered')\n"
        "except ValueError as error:\n    assert 'dace:gpu_IJK' in str(error)\n"
        "assert 'gt4py' in sys.modules\n"
    )
    python(program)


# ------------------------------------------------------------------------------------------------------ allocation


@pytest.mark.parametrize("memory", HERE)
@pytest.mark.parametrize("shape", [(), 5, (3, 4, 5), (3, 0, 5), (2,) * 9])
def test_default_arrays_are_contiguous_and_aligned(memory, shape):
    kept = [empty(shape, "f4", memory=memory) for _ in range(5)]
    for x in kept:
        assert x.flags.c_contiguous and x.flags.writeable and x.access == "readwrite"
        assert x.size == 0 or x.ptr % 64 == 0
        assert x.shape == (shape if isinstance(shape, tuple) else (shape,)) and x.dtype == np.float32
    assert len({x.ptr for x in kept}) == len(kept)


@pytest.mark.parametrize("memory", HERE)
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16"])
def test_memory_size_excludes_alignment_bytes(memory, dtype):
    x = empty((3, 5), dtype, memory=memory)
    assert x.memory.nbytes == x.nbytes == 15 * x.itemsize
    assert empty((3, 5), dtype, memory=memory, alignment=4096).memory.nbytes == 3 * 4096
    assert empty((3, 0), dtype, memory=memory).memory.nbytes == 0


ON_BOUNDARIES = {
    "plain": {},
    "F": {"layout": "F"},
    "rows": {"alignment": 64},
    "a halo": {"alignment": 64, "halo": (1, 2)},
    "an origin": {"alignment": 32, "origin": (1, 1)},
    "an index": {"alignment": 128, "aligned_index": (2, 3), "layout": "F"},
    "one byte": {"alignment": 1},
    "a page": {"alignment": 4096, "aligned_index": (0, 2)},
    "a huge page": {"alignment": 2 << 20, "aligned_index": (0, 2)},
    "not a power of two": {"alignment": 48},
    "not a power of two, and an index": {"alignment": 48, "aligned_index": (1, 2)},
}


@pytest.mark.parametrize("memory", USM)
@pytest.mark.parametrize("options", ON_BOUNDARIES.values(), ids=ON_BOUNDARIES.keys())
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16"])
def test_dpnp_imports_usm_of_all_layouts(memory, options, dtype):
    """dpnp requires that the size of an allocation is a multiple of the item size."""
    import dpnp

    kept = []
    for shape in ((3, 5), (3, 5), (3, 5), (0, 5), (3, 0)):
        if 0 in shape:
            options = {**options, "aligned_index": (0, 0), "halo": None}
        x = arrayhub.ones(shape, dtype, memory=memory, **options)
        made, index = options.get("alignment", 1), x.aligned_index
        if x.size and index is None:
            assert x.ptr % 64 == 0 or x.ptr % made == 0
        elif x.size:
            assert x[index].ptr % made == 0
        kept.append(arrayhub.as_dpnp(x))
        assert dpnp.asnumpy(kept[-1]).tolist() == np.ones(shape, dtype).tolist()
        assert kept[-1].tolist() == np.ones(shape, dtype).tolist()
    assert dpnp.asnumpy(kept[0][1:, 2]).tolist() == [1, 1]


@pytest.mark.parametrize(
    "options",
    [{}, {"dims": "abc"}, {"layout": "F"}, {"layout": (1, 0, 2)}, {"alignment": 1}]
    + [{"backend": backend, "halo": (1, 1, 0)} for backend in ("numpy", "gt:cpu_ifirst", "dace:cpu")],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "f8", "i8", "c16", "?"])
def test_jax_imports_new_arrays_without_a_copy(dtype, options):
    import jax

    with jax.enable_x64(True):
        for shape in ((3, 5, 7), (2, 2, 1), (64, 3, 2)):
            x = empty(shape, dtype, **options)
            assert arrayhub.as_jax(x).unsafe_buffer_pointer() == x.ptr
            assert jax.dlpack.from_dlpack(x).unsafe_buffer_pointer() == x.ptr


@pytest.mark.parametrize("options", [{"alignment": 64}, {"alignment": 64, "layout": "F", "aligned_index": (1, 0)}])
def test_as_jax_rejects_padded_rows(options):
    """jax cannot represent padded rows, so as_jax requires copy=True."""
    x = arrayhub.ones((3, 5), "f4", **options)
    with pytest.raises(BufferError, match="copy=True"):
        arrayhub.as_jax(x)
    assert arrayhub.as_jax(x, copy=True).sum() == 15


def test_new_arrays_have_the_given_labels():
    x = empty(
        (10, 12, 20), "f8", backend="gt:cpu_ifirst", alignment=64, halo=((1, 2), 1, 0), dims="IJK", origin=(1, 1, 0)
    )
    assert (x.dims, x.origin, x.halo) == (("I", "J", "K"), (1, 1, 0), ((1, 2), (1, 1), (0, 0)))
    assert x.aligned_index == (1, 1, 0) and (x.ptr + 8) % 64 == 0 and x.strides == (1, 16, 192)
    assert x[1:].ptr % 64 == 0
    assert empty((3, 4), dimensions=("J", "K")).dims == ("J", "K")
    assert empty((3, 4), dims=("x", "y")).dims == ("x", "y")
    plain = empty((3, 4), backend="gt:cpu_ifirst")
    assert (plain.dims, plain.origin, plain.halo, plain.aligned_index) == (None,) * 4


def test_gtscript_axes_are_accepted_as_names():
    gtscript = pytest.importorskip("gt4py.cartesian.gtscript")
    axes = [gtscript.K, gtscript.J, gtscript.I]
    assert empty((3, 4, 5), dimensions=axes).dims == ("K", "J", "I")
    assert layout_for(axes, "gt:cpu_kfirst") == (2, 1, 0)


def test_repeated_calls_return_equal_layouts_on_new_memory():
    call = dict(shape=[4, 5], dtype="f4", layout=[1, 0], alignment=np.int64(32), halo=[[1, 0], 2], dims=["a", "b"])
    first, second = empty(**call), empty(**call)
    other = empty((4, 5), np.dtype(">f4"), layout=(1, 0), alignment=32, halo=((1, 0), 2), dims="ab")
    for x in (second, other):
        assert (x.strides, x.halo, x.dims) == (first.strides, first.halo, first.dims)
        assert x.ptr != first.ptr
    assert other.dtype == np.dtype(">f4") and first.dtype == np.dtype("<f4")


def test_enumeration_members_are_accepted_as_names():
    """The value of a str enumeration member is used as the name, because `str(member)` includes the class name."""

    class Axis(str, enum.Enum):  # noqa: UP042
        I = "I"  # noqa: E741
        J = "J"

    assert empty((2, 3), dims=list(Axis)).dims == ("I", "J")
    x = empty((2, 3), dimensions=list(Axis), backend="gt:cpu_ifirst")
    assert x.dims == ("I", "J") and x.strides == (1, 2)


def test_calls_that_exceed_the_cache_return_the_right_arrays():
    for length in range(2000):
        assert empty((length, 2), "i1").shape == (length, 2)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident size is read from /proc")
def test_large_zeros_do_not_occupy_pages():
    before = resident()
    x = arrayhub.zeros((1 << 30,), "u1", alignment=64, aligned_index=(3,))
    assert x.memory.release_function == "free"
    assert resident() - before < 1 << 26
    assert np.asarray(x)[:: 1 << 24].sum() == 0


@pytest.mark.parametrize("memory", HERE)
@pytest.mark.parametrize(
    "layout", [dict(), dict(layout="F"), dict(backend="gt:cpu_ifirst", alignment=64, halo=(1, 1, 0))]
)
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c8"])
def test_fill_functions_and_from_array_use_the_given_layout(memory, layout, dtype):
    call = dict(shape=(3, 4, 5), dtype=dtype, memory=memory, **layout)
    strides = empty(**call).strides
    seven = arrayhub.full(fill_value=np.array(7, dtype), **call)
    for x, value in (arrayhub.zeros(**call), 0), (arrayhub.ones(**call), 1), (seven, 7):
        assert (host(x) == np.full((3, 4, 5), value, dtype)).all() and x.strides == strides
    data = np.random.default_rng(0).integers(0, 2, (3, 4, 5)).astype(dtype)
    for source in (data, data.copy("F"), data[::-1][::-1]):
        x = arrayhub.from_array(source, memory=memory, **layout)
        assert x.dtype == data.dtype and (host(x) == data).all()
        assert x.strides == strides


def test_fill_functions_accept_strings_times_and_records():
    assert (host(arrayhub.full(3, "ab", "U2")) == "ab").all()
    assert (host(arrayhub.zeros(3, "M8[s]")).view("i8") == 0).all()
    record = np.dtype([("a", "i2"), ("b", "f8")])
    assert host(arrayhub.full((2, 2), (1, 2.5), record))["b"].tolist() == [[2.5, 2.5]] * 2
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert host(arrayhub.ones((3, 3), ml_dtypes.bfloat16)).astype(float).sum() == 9


def test_fill_values_on_a_device_are_copied_to_the_host_first():
    value = arrayhub.ones((), memory="usm_device")
    for x, name in ((value, "x"), ([value], "x[0]")):
        with pytest.raises(ValueError, match=rf"^full: .*Call arrayhub\.to_host\({re.escape(name)}\)$"):
            arrayhub.full(3, x)
    assert arrayhub.full(3, arrayhub.to_host(value)).tolist() == [1, 1, 1]


def test_from_array_copies_with_the_same_dtype():
    data = np.arange(6, dtype="i2").reshape(2, 3)
    x = arrayhub.from_array(data)
    data[0, 0] = 100
    assert x.dtype == np.dtype("i2") and host(x)[0, 0] == 0
    assert host(arrayhub.from_array(data, dtype="f4")).dtype == np.float32
    assert host(arrayhub.from_array([[1.5, 2], [3, 4]])).tolist() == [[1.5, 2], [3, 4]]
    assert arrayhub.from_array(empty((2, 3), dims="IJ")).dims == ("I", "J")
    assert arrayhub.from_array(empty((2, 3), dims="IJ"), dims="xy").dims == ("x", "y")


def test_from_array_keeps_the_labels():
    x = arrayhub.ones((4, 5), dims="IJ", origin=(1, -2), halo=(1, (0, 2)))
    for call in (arrayhub.from_array, lambda x, **options: arrayhub.ones(like=x, **options)):
        copy = call(x, origin=None, halo=None, dims=None, layout=None)
        assert (copy.dims, copy.origin, copy.halo) == (x.dims, x.origin, x.halo)
        other = call(x, origin=(0, 0), halo=(1, 1), dimensions="JK")
        assert (other.dims, other.origin, other.halo) == (("J", "K"), (0, 0), ((1, 1), (1, 1)))
    on_device = arrayhub.from_array(x, memory="usm_device", alignment=64)
    assert on_device.origin == (1, -2) and (on_device[1:].ptr - on_device.ptr) % 64 == 0


def test_from_array_selects_data_or_device_data():
    near, far = np.ones(3), arrayhub.full(3, 2.0, memory="usm_device")
    assert host(arrayhub.from_array(near))[0] == 1
    assert host(arrayhub.from_array(device_data=far))[0] == 2
    assert host(arrayhub.from_array(near, far))[0] == 1
    assert host(arrayhub.from_array(near, far, memory="usm_device"))[0] == 2
    assert host(arrayhub.from_array(near, None, memory="usm_device"))[0] == 1
    assert host(arrayhub.from_array(device_data=far, dtype="i4", memory="usm_device")).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="data and device_data are both None"):
        arrayhub.from_array()


# The functions with `like=`, and the value of the elements.
LIKE = {
    "empty": (arrayhub.empty, None),
    "zeros": (arrayhub.zeros, 0),
    "ones": (arrayhub.ones, 1),
    "full": (lambda **options: arrayhub.full(fill_value=9, **options), 9),
}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("memory", HERE)
def test_like_without_a_shape_keeps_all_properties(memory, name):
    function, value = LIKE[name]
    x = empty((4, 5), "f4", layout="F", dims="IJ", origin=(1, 0), halo=(1, 0), memory=memory)
    nothing = dict.fromkeys(Options.__annotations__.keys() - {"like"})
    for like in (function(like=x), function(like=x, **nothing), function(shape=None, dtype=None, like=x)):
        assert value is None or (host(like) == value).all()
        for attribute in ("shape", "strides", "dtype", "dims", "origin", "halo", "device", "usm_type", "aligned_index"):
            assert getattr(like, attribute) == getattr(x, attribute), attribute
    other = function(like=x, dtype="i8", layout="C", dims="KJ")
    assert (other.dims, other.strides, other.dtype) == (("K", "J"), (5, 1), np.int64)
    with pytest.raises(TypeError, match="memory: 'cpu' is given with like="):
        function(like=x, memory="cpu", device="cuda:0")


def test_like_keeps_the_labels_of_views():
    """The new array has the halo and origin of the view, which may refer to elements outside of the view."""
    x = empty((10, 12), "f4", halo=(2, 1), alignment=64, origin=(2, 1), aligned_index=(2, 1))
    for part in (x[5:], x[:1], x[:, 3:0], x[::3], x[4], x.T):
        like = arrayhub.zeros(like=part)
        assert (like.shape, like.halo, like.origin) == (part.shape, part.halo, part.origin)
        assert like.ptr % 64 == 0


def test_shape_or_like_is_required():
    for function, _ in LIKE.values():
        with pytest.raises(TypeError, match="shape"):
            function()


def test_halo_that_covers_the_array_aligns_the_first_element():
    assert empty((2, 3), halo=((2, 0), 0), alignment=64).aligned_index == (0, 0)


@pytest.mark.parametrize("options", [{}, {"layout": "F"}, {"backend": "gt:cpu_ifirst"}], ids=str)
def test_no_index_is_aligned_without_an_alignment(options):
    for given in ({"halo": (1, 1)}, {"aligned_index": (1, 1)}):
        assert empty((3, 4), **options, **given).aligned_index is None
        assert empty((3, 4), alignment=64, **options, **given).aligned_index == (1, 1)


def test_like_accepts_arrays_of_other_libraries():
    import torch

    x = arrayhub.ones(like=torch.zeros(3, 4, dtype=torch.bfloat16).T)
    assert x.shape == (4, 3) and x.strides == (1, 4) and str(x.dtype) == "bfloat16"
    assert arrayhub.zeros(like=np.ones((2, 3))[:, None]).strides == (3, 3, 1)


@pytest.mark.parametrize("name", LIKE)
def test_like_with_packed_elements_requires_a_type(name):
    x = packed_int4()
    with pytest.raises(TypeError, match=r"^like: .*int4.*dtype='int8'.*x\.copy\(\)"):
        LIKE[name][0](like=x)
    y = LIKE[name][0](like=x, dtype="int8")
    assert (y.shape, y.dtype, y.strides) == ((5,), "int8", (1,))
    assert x.copy().typenum == x.typenum


def test_from_array_rejects_packed_elements():
    x = packed_int4()
    for dtype in (None, x.dtype):
        with pytest.raises(TypeError, match=r"^from_array: .*int4.*x\.copy\(\)"):
            arrayhub.from_array(x, dtype=dtype)


def test_memory_is_allocated_on_the_requested_device():
    queue = pytest.importorskip("dpctl").SyclQueue()
    x = empty((3, 4), "f4", memory="usm_shared", device=queue)
    assert x.usm_type == "shared" and x.base.sycl_queue == queue
    for device in ("oneapi:0", arrayhub.Device("oneapi:0"), queue.sycl_device, "opencl:cpu"):
        assert empty(3, memory="usm_device", device=device).device == arrayhub.Device("oneapi:0")
    assert empty(3, device="cpu").device == arrayhub.Device("cpu")


# -------------------------------------------------------------------------------------------------------- bad input

BAD = {
    "not a permutation": (dict(layout=(0, 0)), r"layout: \(0, 0\).*permutation"),
    "a layout of another length": (dict(layout=(0, 1, 2)), r"layout: \(0, 1, 2\)"),
    "an unknown layout": (dict(layout="K"), "layout: 'K'.*'C', 'F'"),
    "a dimension twice": (dict(dimensions="II"), r"dimensions: \('I', 'I'\); accepted: .* each once"),
    "a name twice": (dict(dims=("x", "x")), "dims: .*repeats a name"),
    "an unknown dimension": (dict(dimensions=("I", "X")), r"dimensions: \('I', 'X'\); accepted: 'I', 'J', 'K'"),
    "a dimension with a leading zero": (dict(dimensions=("I", "01")), r"dimensions: \('I', '01'\)"),
    "a digit of another script": (dict(dimensions=("I", "٣")), r"dimensions: \('I', '٣'\)"),
    "a number with too many digits": (dict(dimensions=("I", "9" * 5000)), r"dimensions: \('I', '999.*'I', 'J', 'K'"),
    "a dimension that the backend lacks": (dict(dims=("I", "X"), backend="numpy"), r"dimensions: \('I', 'X'\)"),
    "too few dimensions": (dict(dimensions="I"), "dims: .*1 entries.*accepted: 2"),
    "dims differ from dimensions": (
        dict(dimensions="IJ", dims="JI"),
        r"dims: .*differs from dimensions \('I', 'J'\).*Pass only dims='JI'",
    ),
    "an alignment that is not a multiple": (dict(alignment=12), "alignment: 12 bytes for elements of 8 bytes"),
    "an alignment that overflows": (dict(alignment=2**62), r"2\*\*63"),
    "a zero alignment": (dict(alignment=0), "alignment: 0 bytes"),
    "a negative alignment": (dict(alignment=-8), "alignment: -8 bytes"),
    "an index out of bounds": (dict(aligned_index=(0, 4)), r"aligned_index: \(0, 4\) for shape \(3, 4\)"),
    "a negative index": (dict(aligned_index=(-1, 0)), r"aligned_index: \(-1, 0\)"),
    "an index of another length": (dict(aligned_index=(0,)), r"aligned_index"),
    "a halo that is too wide": (dict(halo=(2, 0)), "halo: 2 for dimension 0 of length 3"),
    "an unregistered backend": (
        dict(backend="gt:quantum"),
        "backend: 'gt:quantum' is not registered; accepted: .*numpy",
    ),
    "an unknown memory": (dict(memory="gpu"), "memory: 'gpu'; accepted: cpu, usm_host.*cuda_managed"),
    "host memory on a CUDA device": (
        dict(device="cuda:0"),
        "device: 'cuda:0' does not have memory 'cpu'.* pass memory='cuda' or 'cuda_host'",
    ),
    "host memory on a SYCL device": (
        dict(device="oneapi:0"),
        "device: 'oneapi:0' does not have memory 'cpu'.*'usm_device'",
    ),
    "USM on a CUDA device": (
        dict(memory="usm_host", device="cuda:0"),
        "memory: 'usm_host' with device 'cuda:0'",
    ),
    "USM on a missing device": (dict(memory="usm_host", device="oneapi:7"), "memory: .*oneapi:7"),
    "CUDA memory on the host": (dict(memory="cuda", device="cpu"), "memory: 'cuda' with device 'cpu'"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_arguments_raise(case):
    options, words = BAD[case]
    for _ in range(2):  # the second call also fails, because failed calls are not cached
        with pytest.raises(ValueError, match=words):
            empty((3, 4), "f8", **options)


OVERFLOWS = [(2**62, 2), (2**31, 2**31, 2), (2**60,), (2**63,), (2**70,), (0, 2**62, 4)]
SHAPES = [(shape, r"shape: .*2\*\*63|shape has .*64 bits") for shape in OVERFLOWS]


@pytest.mark.parametrize(("shape", "words"), [*SHAPES, ((-1, 2), r"shape: \(-1, 2\)"), ((1,) * 65, "at most 64")])
def test_invalid_shapes_raise(shape, words):
    for call in (plan, empty, arrayhub.zeros):
        with pytest.raises(ValueError, match=words):
            call(shape, "f8")


def test_allocation_failure_raises_memory_error():
    with pytest.raises(MemoryError, match="cannot allocate"):
        empty((2**59,), "f8")


def endless():
    one = []
    one.append(one)
    return one


WRONG_TYPES = [
    dict(shape=(True, 3)), dict(shape=(1.0, 3)), dict(alignment=8.0), dict(layout=(False, True)), dict(layout=(0.5, 1)),
    dict(shape={3, 4}), dict(dims={"I", "J"}), dict(dimensions=frozenset("IJ")), dict(layout={0, 1}),
    dict(shape=endless()), dict(halo=endless()), dict(alignment="8x"), dict(shape=None),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_TYPES, ids=lambda wrong: next(iter(wrong)))
def test_arguments_of_other_types_are_rejected(wrong):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        empty(**{"shape": (1, 3), "layout": (0, 1), "alignment": 8, **wrong})


def test_sets_are_rejected_as_dimensions():
    for call in (
        lambda: plan({3, 4}),
        lambda: layout_for({"I", "J"}, "numpy"),
        lambda: layout_for(3, "numpy"),
        lambda: empty((3, 4)).with_dims({"I", "J"}),
    ):
        with pytest.raises(TypeError, match="(no|not a) sequence; accepted: "):
            call()


@pytest.mark.parametrize("backend", [None, 5, [], b"numpy"])
def test_backends_that_are_not_strings_are_rejected(backend):
    with pytest.raises(ValueError, match="backend: .* is not registered; accepted: .*numpy"):
        layout_for("IJK", backend)


@pytest.mark.parametrize("base", [(0, 1), (0, 0, 1), (1, 2, 3), (0, 1, 2, 3)])
def test_register_rejects_invalid_base_layouts(base):
    with pytest.raises(ValueError, match=r"base_layout: \(.*; accepted: (3 integers|.* the ranks \(0, 1, 2\))"):
        layouts.register("test:mine", base)
    assert "test:mine" not in layouts.names()


def test_invalid_dtypes_raise():
    pairs = np.dtype((np.float64, (3,)))
    for call in (
        lambda: empty(3, pairs),
        lambda: arrayhub.full(3, 1, pairs),
        lambda: arrayhub.from_array(np.ones(3), dtype=pairs),
        lambda: arrayhub.zeros(like=np.ones(3), dtype=pairs),
        lambda: plan(3, pairs),
    ):
        with pytest.raises(TypeError, match="sub-array"):
            call()
    with pytest.raises(TypeError, match="one byte or more"):
        empty(3, "V0")
    with pytest.raises(TypeError, match="Python objects"):
        empty(3, object)
    with pytest.raises(TypeError, match="USM"):
        empty(3, "M8[s]", memory="usm_shared")


def test_invalid_fill_values_raise():
    with pytest.raises(ValueError, match=r"full: fill_value is \[1, 2\]"):
        arrayhub.full(2, [1, 2])
    for value, dtype, words in (  # tests/array/test_casting.py tests more values
        ("x", "f8", "same_kind"), (np.complex128(1j), "f8", "same_kind"), (None, "f8", "same_kind"),
        (np.timedelta64(5, "s"), "i8", "same_kind"), (1.5, "?", "same_kind"), (1e300, "f4", "out of the range"),
        (7, "?", "out of the range"), (-1, "?", "out of the range"),
    ):  # fmt: skip
        with pytest.raises(
            ValueError, match=rf"full: fill_value is {re.escape(repr(value))}; accepted: one value of dtype.*{words}"
        ):
            arrayhub.full(2, value, dtype)
    with pytest.raises(ValueError, match="full: fill_value is 2.7"):
        arrayhub.full(fill_value=2.7, like=np.zeros(2, "i4"))
    for value, dtype in (
        (True, "?"), (7, "f2"), (True, "i4"), (float("inf"), "f4"), (datetime.datetime(2020, 1, 2), "M8[s]"),
        (datetime.timedelta(1), "m8[h]"), (1, "complex64"), (np.float32(2), "f8"), ([3], "f8"),
    ):  # fmt: skip
        assert host(arrayhub.full(2, value, dtype)).tolist() == np.full(2, value, dtype).tolist()


@pytest.mark.parametrize("memory", ["cuda", "cuda_host", "cuda_managed"])
def test_cuda_memory_without_cupy_or_driver_raises(memory):
    """Without a CUDA driver, ValueError is raised. Without cupy, ImportError is raised, which names the extra."""
    if not has_driver():
        with pytest.raises(ValueError, match=f"memory: '{memory}'.*this machine does not have a CUDA driver"):
            empty(3, memory=memory)
    elif importlib.util.find_spec("cupy") is None:
        with pytest.raises(ImportError, match=r"arrayhub\[cuda13\]"):
            empty(3, memory=memory)


@pytest.mark.slow
def test_sycl_memory_without_a_device_raises(tmp_path):
    pytest.importorskip("dpctl")
    program = (
        "import arrayhub\n"
        "for device in (None, 'oneapi:0'):\n"
        "    try:\n        arrayhub.empty(3, memory='usm_shared', device=device)\n"
        "    except ValueError as error:\n        assert 'usm_shared' in str(error) and 'doctor' in str(error), error\n"
        "    else:\n        raise SystemExit('memory was allocated')\n"
    )
    python(program, OCL_ICD_FILENAMES="", OCL_ICD_VENDORS=str(tmp_path), ONEAPI_DEVICE_SELECTOR="opencl:cpu")


@pytest.mark.parametrize("nbytes", [100_000, 1 << 24])
def test_tracemalloc_counts_zeros_until_they_are_released(nbytes):
    arrayhub.zeros(nbytes, "u1")  # what the first call computes is not counted
    tracemalloc.start()
    try:
        x = arrayhub.zeros(nbytes, "u1")
        assert tracemalloc.get_traced_memory()[0] >= nbytes
        del x
        assert tracemalloc.get_traced_memory()[0] < nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_is_released():
    """A loop allocates 8 GiB in total. An ndarray keeps the memory of a deleted array alive."""
    x = np.asarray(arrayhub.full((1 << 20,), 3.0))
    for _ in range(64):
        y = arrayhub.zeros((1 << 24,), "f8")
        np.asarray(y)[:: 1 << 18] = 1
    assert math.isclose(x.sum(), 3 * (1 << 20))
