"""Test that random layouts and types survive import through one protocol and export through another.

``ARRAYHUB_TEST_EXAMPLES=5000`` increases the number of examples.
"""

import os

import ml_dtypes
import numpy as np
import pytest
from exporters import Shows
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from numpy_release import FROM_DLPACK_WRITES, HAS_DLPACK_1

import arrayhub as ah

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("ARRAYHUB_TEST_EXAMPLES", "250"))
moderate = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
OTHERS = ["g", "G", ">i2", ">f8", ">c8", ">u4", "M8[ns]", "m8[3s]", "S5", "U3", "i4,f8", "u1,i4,(2,)f4"]
OWN = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float4_e2m1fn", "int4", "uint2"]
DTYPES = [np.dtype(name) for name in NUMBERS + OTHERS] + [np.dtype(getattr(ml_dtypes, name)) for name in OWN]

PROTOCOLS = ["array_interface", "array_struct", "buffer", *(["dlpack"] if HAS_DLPACK_1 else [])]


# ------------------------------------------------------------------------------------------------------------- arrays


@st.composite
def slices(draw, length):
    """Draw a slice of a dimension, or an index into the dimension."""
    bound = st.none() | st.integers(-length - 1, length + 1)
    step = st.sampled_from([None, 1, 2, 3, -1, -2])
    if length and draw(st.integers(0, 5)) == 0:
        return draw(st.integers(-length, length - 1))
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def views(draw, compact):
    """Draw a view of an array: sliced, reversed, transposed, broadcast, with dimensions added and dropped."""
    view = compact
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["slice", "transpose", "newaxis", "broadcast"]))
        if kind == "slice":
            # The Ellipsis keeps an array where NumPy would return a scalar.
            view = view[(*(draw(slices(length)) for length in view.shape), ...)]
        elif kind == "transpose":
            view = view.transpose(draw(st.permutations(range(view.ndim))))
        elif kind == "newaxis" and view.ndim < 5:
            view = np.expand_dims(view, draw(st.integers(0, view.ndim)))
        elif kind == "broadcast" and view.ndim < 5:
            writeable = view.flags.writeable
            view = np.lib.stride_tricks.as_strided(
                view, (draw(st.integers(0, 3)), *view.shape), (0, *view.strides), writeable=writeable
            ) if view.dtype.num < 256 else view  # fmt: skip
    return view


@st.composite
def arrays(draw, dtypes=DTYPES):
    """Draw an ndarray of any type and layout, which may be misaligned, a field of packed records, or read-only."""
    dtype = draw(st.sampled_from(dtypes))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    misfit = draw(st.sampled_from([0, 0, 1, 3]))
    gap = draw(st.sampled_from([0, 0, 0, 1, 4]))  # bytes of another field between the elements
    size = int(np.prod(shape))
    raw = np.arange(size * (dtype.itemsize + gap) + misfit + 16, dtype=np.uint64).astype(np.uint8)
    if dtype.kind == "b":
        raw %= 2
    elif dtype.kind == "U":
        raw[:] = 0  # arbitrary bytes may not be valid code points
    strides = np.ndarray(shape, f"V{dtype.itemsize + gap}", raw, misfit).strides
    compact = np.ndarray(shape, dtype, raw, misfit, strides)
    view = draw(views(compact))
    if draw(st.booleans()):
        view.flags.writeable = False
    return view


# -------------------------------------------------------------------------------------------------------------- facts


def whole_strides(x):
    """Return whether the strides are multiples of the item size, as DLPack requires."""
    return not x.size or all(
        step % x.itemsize == 0 for step, length in zip(x.strides, x.shape, strict=True) if length > 1
    )


def can_say(protocol, x):
    """Return whether a protocol, as NumPy exports it, can express the type and the layout of an ndarray.

    Return None if the result is uncertain. ``__array_struct__`` describes units and fields only with `descr`, and NumPy
    reads the item size of text as a number of characters.
    """
    own = x.dtype.num >= 256
    if protocol == "dlpack":
        return (
            not own and x.dtype.kind in "biufc" and x.dtype.char not in "gG" and x.dtype.isnative and whole_strides(x)
        )
    if protocol == "buffer":
        return not own and x.dtype.kind not in "mM"
    if protocol == "array_struct" and x.dtype.kind in "mMVU" and not own:
        return None
    return not own


WAYS_OUT = {
    "array_interface": lambda u: np.asarray(Shows(__array_interface__=u.__array_interface__)),
    "array_struct": lambda u: np.asarray(Shows(__array_struct__=u.__array_struct__)),
    "buffer": lambda u: np.asarray(memoryview(u)),
    **({"dlpack": np.from_dlpack} if HAS_DLPACK_1 else {}),
}


def effective(x):
    """Return the strides, with 0 for dimensions of length 1, or None for an array without elements."""
    return tuple(step if length > 1 else 0 for step, length in zip(x.strides, x.shape, strict=True)) if x.size else None


def has_negative_strides(x):
    return any(step < 0 for step in effective(x) or ())


def same(out, x, may_write=True):
    """Assert that two ndarrays have equal memory, layout, type and values, and that `out` has the right access."""
    assert out.shape == x.shape
    assert out.dtype == x.dtype
    assert effective(out) == effective(x)
    if x.size:
        assert out.ctypes.data == x.ctypes.data
        assert out.flags.writeable == (x.flags.writeable and may_write)
    assert out.tobytes() == x.tobytes()


# -------------------------------------------------------------------------------------------------------------- tests


@moderate
@given(arrays())
def test_every_pair_of_protocols_keeps_memory_and_layout(x):
    note(f"{x.dtype!r} shape {x.shape} byte strides {x.strides} writeable {x.flags.writeable} at {x.ctypes.data % 16}")
    for way_in in PROTOCOLS:
        if x.dtype.num >= 256 and way_in.startswith("array"):
            pass  # NumPy's dict describes types of ml_dtypes incorrectly, so arrayhub reads `dtype`
        elif can_say(way_in, x) is False:
            with pytest.raises((BufferError, TypeError, ValueError)):
                ah.asarray(x, via=way_in)
            continue
        note(f"in by {way_in}")
        try:
            u = ah.asarray(x, via=way_in)
        except BufferError:  # NumPy's DLPack export also checks the strides of dimensions of length 1
            assert way_in == "dlpack"
            assert any(step % x.itemsize for step in x.strides)
            continue
        assert u.protocol in (way_in, "array_interface")
        describes(u, x)
        for way_out, read in WAYS_OUT.items():
            note(f"out by {way_out}")
            said = can_say(way_out, x)
            if said is False or (way_out == "dlpack" and has_negative_strides(x)):
                with pytest.raises((AttributeError, BufferError, RuntimeError, TypeError)):
                    read(u)
                continue
            try:
                out = read(u)
            except AttributeError:
                assert said is None
                continue
            same(out, x, may_write=way_out != "dlpack" or FROM_DLPACK_WRITES)


def describes(u, x):
    """Assert that a USMArray has the properties of the ndarray that it views."""
    assert (u.shape, u.dtype, u.itemsize, u.size, u.ndim) == (x.shape, x.dtype, x.itemsize, x.size, x.ndim)
    assert u.flags.writeable == x.flags.writeable
    assert u.flags.c_contiguous == x.flags.c_contiguous
    assert u.flags.f_contiguous == x.flags.f_contiguous
    if x.size:
        assert u.ptr == x.ctypes.data
        assert effective(np.asarray(u)) == effective(x)
        if whole_strides(x):
            assert tuple(step * u.itemsize for step in u.strides) == u.byte_strides
        else:
            with pytest.raises(ValueError, match="strides"):
                _ = u.strides


@moderate
@given(arrays())
def test_numpy_views_the_imported_ndarray(x):
    """Import an ndarray through the fast path, and export it through the first protocol that NumPy tries."""
    u = ah.asarray(x)
    describes(u, x)
    same(np.asarray(u), x)
    same(ah.as_numpy(u), x)


@moderate
@given(arrays(), st.sampled_from("CFK"))
def test_copies_equal_those_of_numpy(x, order):
    for copied in (ah.asarray(x).copy(order), ah.asarray(x, copy=True)):
        out = np.asarray(copied)
        assert copied.access == "readwrite"
        assert (out.shape, out.dtype) == (x.shape, x.dtype)
        assert out.tobytes() == x.tobytes()
        assert not np.shares_memory(out, x) or not x.size
    assert order != "F" or ah.asarray(x).copy(order).flags.f_contiguous
    assert order != "C" or ah.asarray(x).copy(order).flags.c_contiguous


# ---------------------------------------------------------------------------------------------------------------- USM


@pytest.fixture(scope="module")
def tensor(sycl):
    return pytest.importorskip("dpnp.tensor")


@st.composite
def element_layouts(draw):
    """Draw a compact ndarray in native byte order, a view of it that a usm_ndarray can represent, and its access."""
    dtype = np.dtype(draw(st.sampled_from(NUMBERS)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    compact = np.zeros(shape, dtype)
    compact.reshape(-1)[:] = (np.arange(compact.size) % 7).astype(dtype)
    return compact, draw(views(compact)), draw(st.booleans())


def laid_over_usm(tensor, compact, view, writeable, kind):
    """Return a usm_ndarray with this layout in new memory, and the offset of its first element, counted in elements."""
    import dpctl.memory

    memory = getattr(dpctl.memory, f"MemoryUSM{kind.capitalize()}")(max(compact.nbytes, 1))
    if compact.size:
        memory.copy_from_host(compact.reshape(-1).view(np.uint8))
    offset = (view.ctypes.data - compact.ctypes.data) // view.itemsize if view.size else 0
    strides = tuple(step // view.itemsize for step in view.strides)
    layout = {"strides": strides, "offset": offset} if view.size else {}
    array = tensor.usm_ndarray(view.shape, dtype=view.dtype, buffer=memory, **layout)
    array.flags.writable = writeable
    return array, offset


def same_usm(out, array, view, offset):
    """Assert that `out` views the USM of `array` with the layout and values of `view`."""
    import dpnp.tensor

    assert (out.shape, out.dtype) == (view.shape, view.dtype)
    assert out.usm_type == array.usm_type
    if view.size:
        interface = out.__sycl_usm_array_interface__
        address = interface["data"][0] + interface["offset"] * view.itemsize
        assert address == array.usm_data._pointer + offset * view.itemsize
        assert [s for s, n in zip(out.strides, out.shape, strict=True) if n > 1] == [
            s // view.itemsize for s, n in zip(view.strides, view.shape, strict=True) if n > 1
        ]
        assert out.flags.writable == array.flags.writable
    assert dpnp.tensor.asnumpy(out).tobytes() == view.tobytes()


@moderate
@given(layout=element_layouts(), kind=st.sampled_from(["device", "shared", "host"]))
def test_usm_round_trip_keeps_memory_and_layout(tensor, layout, kind):
    compact, view, writeable = layout
    array, offset = laid_over_usm(tensor, compact, view, writeable, kind)
    # dpnp exports every 0-d array as read-only by DLPack, and does not read negative strides from a dict.
    flags_are_right = view.ndim > 0
    negative = any(step < 0 for step, length in zip(view.strides, view.shape, strict=True) if length > 1)
    for way_in in (None, "sycl", "dlpack"):
        note(f"{view.dtype} {view.shape} {view.strides} {kind} in by {way_in}")
        u = ah.asarray(array, via=way_in)
        assert (u.shape, u.dtype, u.usm_type) == (view.shape, view.dtype, kind)
        if way_in == "dlpack" and not flags_are_right:
            continue
        assert u.flags.writeable == writeable
        same_usm(u.__usm_ndarray__, array, view, offset)
        same_usm(ah.as_dpnp(u).get_array(), array, view, offset)
        if view.size and not negative:  # dpnp does not import the null pointer of an array without elements by DLPack
            same_usm(tensor.from_dlpack(u), array, view, offset)
        if not negative:
            same_usm(
                tensor.asarray(Shows(__sycl_usm_array_interface__=u.__sycl_usm_array_interface__)),
                array,
                view,
                offset,
            )
        if kind != "device":
            out = np.asarray(u)
            assert out.flags.writeable == writeable or not view.size
            assert effective(out) == effective(view)
            assert out.tobytes() == view.tobytes()
        assert ah.as_numpy(u, copy=True).tobytes() == view.tobytes()
