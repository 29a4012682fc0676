"""GT4Py stencils compute the same values from USMArrays as NumPy, interpreted (numpy) and compiled (gt:cpu_ifirst).

The compiled stencils require a C++ compiler and take about half a minute each. Each stencil is built once.
"""

import contextlib
import itertools
import shutil
import warnings

import numpy as np
import pytest
import setuptools

import arrayhub as ah

gtscript = pytest.importorskip("gt4py.cartesian.gtscript")
from gt4py.cartesian import config  # noqa: E402
from gt4py.cartesian.gtscript import IJ, IJK, PARALLEL, Field, computation, interval  # noqa: E402

COMPILED = pytest.param(
    "gt:cpu_ifirst", marks=pytest.mark.skipif(shutil.which("g++") is None, reason="GT4Py compiles with g++")
)
SHAPE = {"I": 8, "J": 7, "K": 5, "0": 3}
FACTOR = 0.1

# GT4Py warns about fields without the backend's preferred layout. The warning is an error here.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("error:The layout of the field")]


# GT4Py parses the source of these functions.


def smooth(inp: Field[float], weight: Field[IJ, float], out: Field[float], total: Field[float], factor: float):
    with computation(PARALLEL), interval(...):
        out = inp + factor * weight * (inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 2, 0] - 4.0 * inp)
        total = total + out


def project(vectors: Field[IJK, (float, (3,))], out: Field[float]):
    with computation(PARALLEL), interval(...):
        out = vectors[0, 0, 0][0] + 2.0 * vectors[0, 0, 0][1] + 3.0 * vectors[0, 0, 0][2]  # noqa: F841


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a function that builds a stencil for a backend. Each stencil is built once."""
    built = {}
    # GT4Py modifies the dict of distutils' configuration variables in place. This call creates the dict.
    setuptools.distutils.sysconfig.get_config_vars()
    config.cache_settings["root_path"] = str(tmp_path_factory.mktemp("gt_cache"))

    def stencil(definition, backend):
        if (definition, backend) not in built:
            # A new folder, because setuptools reads a pyproject.toml in the current folder.
            with contextlib.chdir(tmp_path_factory.mktemp("gt_build")):
                built[definition, backend] = gtscript.stencil(backend=backend, definition=definition)
        found = built[definition, backend]
        found.clean_call_args_cache()  # GT4Py checks layouts only on the first call with the same shapes and origins
        return found

    return stencil


def allocated(dims, backend, origin=None, *, shape=SHAPE, seed=None):
    """Return a USMArray in the layout of a backend, aligned at its origin, with random values or zeros."""
    lengths = [shape[name] for name in dims]
    a = ah.empty(lengths, dims=dims, origin=origin, aligned_index=origin, backend=backend, alignment=64)
    np.asarray(a)[...] = 0 if seed is None else np.random.default_rng(seed).random(a.shape)
    return a


def values(a, order):
    """Return an ndarray copy of a labeled array, with its dimensions in the given order."""
    return np.array(a.align(*order))


def smoothed(inp, weight):
    """Return the expected output of `smooth`, without the boundary elements that `smooth` does not write."""
    middle = inp[1:-1, 1:-2]
    return middle + FACTOR * weight[1:-1, 1:-2, None] * (
        inp[:-2, 1:-2] + inp[2:, 1:-2] + inp[1:-1, :-3] + inp[1:-1, 3:] - 4.0 * middle
    )


# ------------------------------------------------------------------------------------------------ cartesian stencils


@pytest.mark.parametrize("order", ["IJK", "KJI", "JKI"])
@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_stencil_with_halo_accepts_any_order_of_dimensions(build, backend, order):
    inp, out, total = (allocated(order, backend, seed=seed) for seed in (1, 2, 3))
    weight = allocated("JI", backend, seed=4)
    before = [values(a, "IJK") for a in (inp, out, total)]
    expected = smoothed(before[0], values(weight, "IJ"))
    build(smooth, backend)(inp, weight, out, total, FACTOR, origin=(1, 1, 0), domain=(6, 4, 5))
    after = [values(a, "IJK") for a in (inp, out, total)]
    assert np.array_equal(after[0], before[0])
    assert np.allclose(after[1][1:-1, 1:-2], expected, rtol=1e-14)
    assert np.allclose(after[2][1:-1, 1:-2], before[2][1:-1, 1:-2] + expected, rtol=1e-14)
    rim = np.ones(before[0].shape, bool)
    rim[1:-1, 1:-2] = False
    for k in (1, 2):
        assert np.array_equal(after[k][rim], before[k][rim])


@pytest.mark.parametrize("orders", [*itertools.product(["IJK", "KJI", "KIJ"], ["IJ", "JI"])], ids="-".join)
@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_fields_have_their_own_origins(build, backend, orders):
    """The entries of each origin differ, so an origin in the wrong order changes the result."""
    order, plane = orders
    shape = {"I": 9, "J": 8, "K": 6}
    origins = {
        "inp": {"I": 2, "J": 1, "K": 3},
        "out": {"I": 0, "J": 3, "K": 1},
        "total": {"I": 1, "J": 0, "K": 2},
        "weight": {"I": 3, "J": 0},
    }
    fields = {
        name: allocated(dims, backend, [origin[d] for d in dims], shape=shape, seed=seed)
        for seed, (name, origin) in enumerate(origins.items())
        for dims in [plane if name == "weight" else order]
    }
    before = {name: values(a, "IJK"[: a.ndim]) for name, a in fields.items()}
    domain = (5, 4, 3)
    build(smooth, backend)(**fields, factor=FACTOR, domain=domain)

    def at(name, i=0, j=0):
        o = origins[name]
        moved = before[name][o["I"] + i :, o["J"] + j :]
        return moved[:5, :4, o["K"] : o["K"] + 3] if "K" in o else moved[:5, :4, None]

    expected = at("inp") + FACTOR * at("weight") * (
        at("inp", -1) + at("inp", 1) + at("inp", 0, -1) + at("inp", 0, 2) - 4.0 * at("inp")
    )
    for name, wanted in (("out", expected), ("total", at("total") + expected)):
        o = origins[name]
        inside = tuple(slice(o[d], o[d] + n) for d, n in zip("IJK", domain, strict=True))
        after = values(fields[name], "IJK")
        assert np.allclose(after[inside], wanted, rtol=1e-14)
        after[inside] = before[name][inside]
        assert np.array_equal(after, before[name])


@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_origin_of_a_view_is_the_same_element(build, backend):
    """A stencil computes the same elements for fields with an origin and for slices of these fields."""
    whole = {name: allocated("KJI", backend, (0, 1, 1), seed=seed) for seed, name in enumerate(("inp", "out", "total"))}
    cut = {name: allocated("KJI", backend, (0, 1, 1), seed=seed) for seed, name in enumerate(("inp", "out", "total"))}
    weight = allocated("IJ", backend, (1, 1), seed=7)
    stencil = build(smooth, backend)
    stencil(**whole, weight=weight, factor=FACTOR, domain=(6, 4, 5))
    cut["out"] = view = cut["out"][:, 1:, 1:].align("J", "K", "I")
    assert (view.origin, view.__gt_origin__) == ((0, 0, 0), (0, 0, 0))
    cut["total"] = cut["total"][:, :-1, 1:]
    assert cut["total"].__gt_origin__ == (0, 1, 0)
    stencil(**cut, weight=weight[:-1], factor=FACTOR, domain=(6, 4, 5))
    assert np.array_equal(values(view, "KJI"), np.asarray(whole["out"])[:, 1:, 1:])
    assert np.array_equal(np.asarray(cut["total"]), np.asarray(whole["total"])[:, :-1, 1:])


@pytest.mark.parametrize("dims", [("I", "J", "K", "0"), ("0", "K", "J", "I"), ("K", "0", "I", "J")], ids="".join)
@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_data_dimension_may_have_any_position(build, backend, dims):
    vectors = allocated(dims, backend, seed=1)
    out = allocated("KJI", backend)
    build(project, backend)(vectors, out)
    assert np.allclose(values(out, "IJK"), values(vectors, "IJK0") @ [1.0, 2.0, 3.0], rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_frozen_stencils_accept_usm_arrays(build, backend):
    """Frozen stencils ignore dimension names, and use `__array_interface__` or the buffer protocol."""
    inp, out, total = (allocated("IJK", backend, seed=seed) for seed in (1, 2, 3))
    weight = allocated("IJ", backend, seed=4)
    before = np.array(total)
    corner = (1, 1, 0)
    origin = {"inp": corner, "weight": (1, 1), "out": corner, "total": corner}
    frozen = build(smooth, backend).freeze(domain=(6, 4, 5), origin=origin)
    frozen(inp=inp, weight=weight, out=out, total=total, factor=FACTOR)
    expected = smoothed(np.asarray(inp), np.asarray(weight))
    assert np.allclose(np.asarray(out)[1:-1, 1:-2], expected, rtol=1e-14)
    assert np.allclose(np.asarray(total)[1:-1, 1:-2], before[1:-1, 1:-2] + expected, rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_unknown_dims_are_not_exported_to_gt4py(build, backend):
    """GT4Py assigns I, J and K, in this order, to the dimensions of an array that exports no dimension names."""
    vectors, out = allocated(("I", "J", "K", "0"), backend, seed=1), allocated("IJK", backend)
    build(project, backend)(vectors.with_dims(("lon", "lat", "level", "part")), out.with_dims(("lon", "lat", "level")))
    assert np.allclose(np.asarray(out), np.asarray(vectors) @ [1.0, 2.0, 3.0], rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_stencils_reject_device_memory(build, sycl, backend):
    host, out = allocated("IJK0", backend, seed=1), allocated("IJK", backend)
    there = host.to_device("oneapi:0")
    with pytest.raises(TypeError, match=r"the memory is on oneapi:0, .*arrayhub.to_host\(x\)"):
        build(project, backend)(there, out)
    with warnings.catch_warnings(action="ignore"):  # about the layout: to_host creates compact copies in C order
        build(project, backend)(there.to_host(), out)
    assert np.allclose(out, np.asarray(host) @ [1.0, 2.0, 3.0], rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", COMPILED])
def test_shared_usm_is_accepted(build, sycl, backend):
    """Stencils accept USM that the host can read, as input and as output."""
    vectors = ah.from_array(allocated("KJI0", backend, seed=1), memory="usm_shared", backend=backend)
    out = ah.empty((8, 7, 5), dims="IJK", memory="usm_host", backend=backend)
    build(project, backend)(vectors, out)
    assert (vectors.usm_type, out.usm_type) == ("shared", "host")
    assert np.allclose(np.asarray(out), values(vectors, "IJK0") @ [1.0, 2.0, 3.0], rtol=1e-14)


def test_layout_of_another_backend_warns(build):
    """A field in a different backend's layout causes a warning, which is an error in all other tests of this file."""
    vectors, out = allocated("IJK0", "gt:cpu_ifirst"), allocated("IJK", "numpy")
    with pytest.warns(UserWarning, match="The layout of the field 'vectors' is not recommended"):
        build(project, "numpy")(vectors, out)


# ------------------------------------------------------------------------------------------------------- gt4py.next


def test_fields_of_gt4py_next_are_imported_with_dims_and_origin():
    gtx = pytest.importorskip("gt4py.next")
    field = gtx.as_field({gtx.Dimension("K"): (2, 6), gtx.Dimension("I"): (3, 8)}, np.arange(20.0).reshape(4, 5))
    a = ah.asarray(field)
    assert (a.dims, a.origin) == (("K", "I"), (-2, -3))
    assert a.__gt_origin__ == (-3, -2)
    assert a.ptr == field.ndarray.ctypes.data
    assert a[1:, 0].dims == ("K",)
    assert ah.as_numpy(field).ctypes.data == field.ndarray.ctypes.data
    plain = ah.asarray(gtx.as_field({gtx.Dimension("Edge"): 3}, np.zeros(3)))
    assert (plain.dims, plain.origin, hasattr(plain, "__gt_dims__")) == (("Edge",), (0,), False)


def test_fields_of_gt4py_next_are_imported_without_a_copy():
    gtx = pytest.importorskip("gt4py.next")
    from gt4py.next import common

    a = ah.asarray(np.arange(6.0).reshape(2, 3))
    domain = common.domain({gtx.Dimension("I"): (0, 2), gtx.Dimension("J"): (0, 3)})
    field = common._field(ah.as_numpy(a), domain=domain)
    assert ah.asarray(field).ptr == a.ptr
