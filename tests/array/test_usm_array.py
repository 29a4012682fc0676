"""Compare indexing, transpose and reshape with NumPy, and test the memory that views share."""

import operator
import pickle
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy_release import NUMPY
from producers import lives

import arrayhub

# ---- generators ----------------------------------------------------------------


@st.composite
def arrays(draw, max_dims=5, max_side=4):
    """Draw an int16 array over distinct values, possibly sliced, reversed, transposed, broadcast or empty."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=max_dims, min_side=0, max_side=max_side))
    array = np.arange(np.prod(shape, dtype=int) * 2, dtype="i2").reshape((2, *shape))[draw(st.integers(0, 1)), ...]
    if draw(st.booleans()):
        array = numpys_view(array, draw(hnp.basic_indices(array.shape, allow_newaxis=True, max_dims=max_dims + 1)))
    if draw(st.booleans()):
        array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return array


def assert_same(view, expected, source):
    """Assert that `view` has the values, layout and address of NumPy's `expected`, and the memory of `source`."""
    assert view.shape == expected.shape
    assert view.dtype == expected.dtype
    assert view.size == expected.size
    assert view.nbytes == expected.nbytes
    assert view.flags.c_contiguous == expected.flags.c_contiguous
    assert view.flags.f_contiguous == expected.flags.f_contiguous
    assert view.memory is source.memory
    if view.size:
        assert view.ptr == expected.__array_interface__["data"][0]
        for k, length in enumerate(view.shape):
            if length > 1:
                assert view.byte_strides[k] == expected.strides[k]
    assert np.array_equal(arrayhub.as_numpy(view), expected)
    assert all(view.byte_strides[k] == c_step(view, k) for k in range(view.ndim) if view.shape[k] == 1)


def c_step(a, k):
    """Return the byte stride that makes dimension `k` contiguous with dimension ``k + 1``."""
    if k == a.ndim - 1:
        return a.itemsize
    return a.byte_strides[k + 1] * max(a.shape[k + 1], 1)


def numpys_view(array, key):
    """Return ``array[key]`` as a view. An added ellipsis prevents NumPy from returning a scalar."""
    keys = key if isinstance(key, tuple) else (key,)
    return array[keys if any(part is ... for part in keys) else (*keys, ...)]


def outcome(function, *arguments):
    try:
        return function(*arguments), None
    except Exception as error:
        return None, error


# ---- indexing ----------------------------------------------------------------


wild = st.one_of(
    st.none(),
    st.just(...),
    st.integers(-6, 6),
    st.sampled_from([2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**64, -(2**70)]),
    st.builds(
        slice,
        *[
            st.one_of(
                st.none(), st.integers(-7, 7), st.sampled_from([2**62, -(2**62), 2**63, -(2**63), 2**70, -(2**70)])
            )
        ]
        * 3,
    ),
)


@given(arrays(), st.lists(wild, max_size=7).map(tuple))
@example(np.zeros((1, 0)), (slice(None, None, 0), 2**64))  # the step of 0 is reported first
@example(np.zeros((1, 0)), (slice(None, None, 0), 2**63 - 1))
def test_index_results_and_errors_equal_numpy(array, key):
    a = arrayhub.asarray(array)
    expected, error = outcome(numpys_view, array, key)
    got, ours = outcome(lambda: a[key])
    if error is None:
        assert ours is None
        assert_same(got, expected, a)
    else:
        assert type(ours) is type(error)


@given(arrays(), st.data())
def test_views_of_views_equal_numpy(array, data):
    a = source = arrayhub.asarray(array)
    for _ in range(4):
        key = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, max_dims=7))
        array = numpys_view(array, key)
        a = a[key]
        assert_same(a, array, source)


@pytest.mark.parametrize(
    "key",
    [
        1.0, "a", b"a", [0, 1], np.array([0, 1]), np.array([True, False]), True, False, np.True_,
        pytest.param(object(), id="object"), {}, (0, [1]), 1j, range(2),
    ],
)  # fmt: skip
def test_error_for_advanced_indexing_lists_accepted_indices(key):
    with pytest.raises(IndexError, match="accepted: integers, slices"):
        arrayhub.asarray(np.zeros((3, 2)))[key]


def test_objects_with_index_method_are_accepted_as_indices():
    class Two:
        def __index__(self):
            return 2

    class Failing:
        def __index__(self):
            raise ZeroDivisionError("mine")

    a = arrayhub.asarray(np.arange(5))
    assert int(np.asarray(a[Two()])) == int(np.asarray(a[np.int8(2)])) == int(np.asarray(a[np.array(2)])) == 2
    assert a[Two() :: Two()].shape == (2,)
    with pytest.raises(ZeroDivisionError, match="mine"):
        a[Failing()]
    with pytest.raises(ZeroDivisionError, match="mine"):
        a[Failing() :]
    with pytest.raises(ValueError):
        a[::0]
    with pytest.raises(TypeError):
        a["a":]


def test_empty_view_keeps_its_address():
    """The strides of an empty array can have any value, so indexing does not add them to the address."""
    array = np.lib.stride_tricks.as_strided(np.zeros(1), (0, 5, 3), (2**61, 2**61, -(2**62)))
    a = arrayhub.asarray(array)
    for key in ((slice(None), 4), (slice(None), slice(None, None, -1)), (..., 2), (slice(None), slice(1, 5, 3), -1)):
        assert a[key].shape == array[key].shape
        assert a[key].ptr == a.ptr
    assert a.reshape(3, 0, 7).shape == (3, 0, 7)


# ---- transpose and reshape ----------------------------------------------------------------


@given(arrays(), st.data())
def test_transpose_equals_numpy(array, data):
    a = arrayhub.asarray(array)
    assert_same(a.T, array.T, a)
    assert_same(a.transpose(), array.transpose(), a)
    axes = data.draw(st.permutations(range(array.ndim)))
    axes = [axis - array.ndim if data.draw(st.booleans()) else axis for axis in axes]
    assert_same(a.transpose(tuple(axes)), array.transpose(axes), a)
    if axes:
        assert_same(a.transpose(*axes), array.transpose(*axes), a)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (-3, 0), (2**70, 0), ()])
def test_invalid_permutations_raise(axes):
    array = np.zeros((2, 3))
    with pytest.raises(ValueError):
        array.transpose(axes)
    with pytest.raises(ValueError, match="not a permutation of the 2 dimensions|integers that fit in 64 bits"):
        arrayhub.asarray(array).transpose(axes)
    with pytest.raises(TypeError):
        arrayhub.asarray(array).transpose(0.0, 1.0)


@st.composite
def shapes_of_size(draw, size):
    """Draw a shape of `size` elements, with at most one length of -1."""
    if size == 0:
        shape = [0, *draw(st.lists(st.integers(0, 4), max_size=3))]
    else:
        shape = []
        while size > 1:
            factor = draw(st.sampled_from([f for f in range(2, size + 1) if size % f == 0]))
            shape.append(factor)
            size //= factor
    shape += [1] * draw(st.integers(0, 2))
    shape = list(draw(st.permutations(shape)))
    if shape and 0 not in shape and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    return tuple(shape)


@pytest.mark.skipif(NUMPY < (2, 1), reason="ndarray.reshape accepts copy= since NumPy 2.1")
@given(st.data())
def test_reshape_equals_numpys_view_or_raises_buffer_error(data):
    array = data.draw(arrays())
    shape = data.draw(shapes_of_size(array.size))
    a = arrayhub.asarray(array)
    expected, needs_copy = outcome(lambda: array.reshape(shape, copy=False))
    got, error = outcome(a.reshape, shape)
    if needs_copy is None:
        assert error is None
        assert_same(got, expected, a)
    else:
        assert type(error) is BufferError
        assert "copy()" in str(error)


@given(arrays(), st.lists(st.integers(-1, 9), max_size=5).map(tuple))
def test_reshape_to_random_shapes_equals_numpy_or_raises(array, shape):
    a = arrayhub.asarray(array)
    expected, error = outcome(array.reshape, shape)
    got, ours = outcome(a.reshape, shape)
    if error is not None:
        assert type(ours) is ValueError
    elif ours is None:
        assert_same(got, expected, a)
    else:
        assert type(ours) is BufferError
        assert not np.shares_memory(expected, array)


@pytest.mark.parametrize("shape", [(-2, 3), (2**70, 3), (2**40, 2**40), (0, 2**63), (0, 2**62, 2**62), (2**62, 0, 4)])
@pytest.mark.parametrize("size", [0, 6])
def test_reshape_to_invalid_shapes_raises(size, shape):
    with pytest.raises((ValueError, OverflowError)):
        arrayhub.asarray(np.zeros(size)).reshape(shape)


def test_reshape_accepts_strides_near_the_address_limit():
    """The address of an element after the last one would overflow."""
    far = np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (2**62,))
    a = arrayhub.asarray(far)
    assert a.reshape(1, 2, 1).byte_strides[1] == 2**62
    with pytest.raises(ValueError):
        arrayhub.asarray(np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (2**63 - 8,)))


# ---- dimensions, strides ----------------------------------------------------------------


@pytest.mark.parametrize("nd", [0, 1, 5, 6, 7, 8, 20, 63, 64])
def test_views_of_up_to_64_dimensions_equal_numpy(nd):
    array = np.arange(4.0)[:2].reshape((1,) * (nd - 1) + (2,)) if nd else np.array(3.0)
    a = arrayhub.asarray(array)
    assert a.ndim == nd
    assert_same(a, array, a)
    assert_same(a.T, array.T, a)
    assert_same(a.reshape(-1), array.reshape(-1), a)
    assert_same(a[...], array[...], a)
    assert a.reshape((1,) * (nd - 1) + array.shape[-1:]).ndim == nd
    if nd == 64:
        with pytest.raises(IndexError, match="65 dimensions"):
            a[None]
        with pytest.raises(ValueError, match="65 dimensions"):
            a.reshape((1,) * 64 + (2,))
        assert_same(a[None, 0], array[None, 0], a)
    else:
        assert_same(a[None], array[None], a)


def test_strides_of_dimensions_of_length_one_are_normalized():
    array = np.lib.stride_tricks.as_strided(np.arange(12.0), (1, 3, 1, 2), (999, 16, -5, 8))
    a = arrayhub.asarray(array)
    assert a.byte_strides == (48, 16, 16, 8)
    assert a.strides == (6, 2, 2, 1)
    assert a[:, 1:2].byte_strides == (16, 16, 16, 8)
    assert a.flags.c_contiguous


RECORDS = np.zeros((3, 4), [("tag", "i1"), ("value", "<f8")])
COLUMN = np.zeros(64, RECORDS.dtype)["value"]


def test_strides_raises_if_byte_strides_are_not_multiples_of_the_item_size():
    a = arrayhub.asarray(RECORDS["value"])
    assert a.byte_strides == (36, 9)
    with pytest.raises(ValueError, match=r"\(36, 9\) are not multiples of the item size 8; use byte_strides"):
        _ = a.strides
    assert not (a.flags.aligned)
    assert not (a.flags.c_contiguous)
    assert_same(a[::2, 1:], RECORDS["value"][::2, 1:], a)
    assert_same(a.T, RECORDS["value"].T, a)
    assert_same(a.reshape(12), RECORDS["value"].reshape(12), a)
    assert a[1, 2].strides == ()
    assert a[:1, :1].strides == (1, 1)
    assert a[::, ::8].byte_strides == (36, 8)
    assert np.from_dlpack(arrayhub.asarray(COLUMN)[::8]).strides == (72,)  # 8 times 9 bytes, a multiple of 8


def test_aligned_flag_depends_on_address_and_strides():
    raw = np.zeros(65, "u1")
    for start in range(9):
        for step in (8, 9, 16):
            array = np.ndarray((3,), "f8", raw, start, (step,))
            assert arrayhub.asarray(array).flags.aligned == array.flags.aligned
            assert arrayhub.asarray(array)[1:2].flags.aligned == array[1:2].flags.aligned


DTYPES = ["?", "i1", "u8", "f2", "c16", "g", ">f4", "M8[us]", "m8[D]", "S3", "U2", "V5", "f4,i2", "S0", "V0"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_each_element_type_can_be_viewed(dtype):
    array = np.zeros((4, 3), dtype)
    a = arrayhub.asarray(array)
    assert_same(a[::-2, 1:], array[::-2, 1:], a)
    assert_same(a.T, array.T, a)
    assert a[1:].dtype == array.dtype


# ---- what views share ----------------------------------------------------------------


def test_views_share_one_memory_object():
    a = arrayhub.asarray(np.arange(24.0).reshape(2, 3, 4))
    views = [a[1], a[...], a.T, a.reshape(-1), a[None], a[:, 1:][0].T[::-1]]
    assert all(view.memory is a.memory for view in views)
    assert all(view.base is a.base for view in views)
    assert (a.memory.address, a.memory.nbytes) == (a.ptr, 192)
    assert a[1, 1].offset == 16
    count = a.memory.refcount
    del views
    assert a.memory.refcount < count


@pytest.mark.parametrize("via", [None, "array_interface", "dlpack", "buffer"])
def test_producer_is_freed_with_the_last_view(via):
    owner = np.zeros((4, 6))
    alive = weakref.ref(owner)
    a = arrayhub.asarray(owner, via=via)
    view = a[1:].T.reshape(6, 3)[::2, None]
    del owner, a
    assert lives(alive)
    view = view[0]
    assert lives(alive)
    del view
    assert not lives(alive)


def test_reference_cycle_through_an_array_is_collected():
    class Owner(np.ndarray):
        pass

    owner = np.zeros(3).view(Owner)
    owner.itself = arrayhub.asarray(owner)[1:]
    alive = weakref.ref(owner)
    del owner
    assert not lives(alive)


def test_writeable_flag_is_cleared_permanently_for_one_array():
    array = np.zeros(4)
    a = arrayhub.asarray(array)
    view, earlier = a[1:], a[2:]
    view.flags.writeable = False
    assert (a.flags.writeable, view.flags.writeable, earlier.flags.writeable) == (True, False, True)
    for derived in (view, view[:], view.T, view.reshape(3, 1), view[..., None]):
        assert not derived.flags.writeable
        assert derived.access == "readonly"
        assert not np.asarray(derived).flags.writeable
        with pytest.raises(ValueError, match=r"cannot be made writeable; use x\.copy\(\)"):
            derived.flags.writeable = True
    a.flags.writeable = True
    assert a.flags.writeable
    assert array.flags.writeable


def test_init_does_not_change_an_imported_array():
    a = arrayhub.asarray(np.zeros(3))
    a.__init__((4,), buffer="cpu")
    assert a.shape == (3,)
    with pytest.raises(TypeError):
        type(a.memory)()


def test_index_method_is_called_once():
    """A second call could return another index, so that the labels of a view would not match its address."""

    class Index:
        asked = 0

        def __index__(self):
            self.asked += 1
            return self.asked

    i = Index()
    a = arrayhub.asarray(np.arange(12.0).reshape(3, 4)).with_dims("xy", origin=(0, 0))
    row = a[i]
    assert i.asked == 1
    assert (row.ptr, row.dims) == (a.ptr + 32, ("y",))


# ----------------------------------------------------------------------------------- subclasses of the usual arguments


class Pair(NamedTuple):
    """A named tuple that serves as a shape or an index."""

    row: int
    column: int


def test_arguments_may_be_instances_of_subclasses():
    a = np.arange(6.0).reshape(2, 3)
    x = arrayhub.asarray(a, via=np.str_("array_interface"))
    np.testing.assert_array_equal(x[Pair(1, 2)], a[1, 2])
    np.testing.assert_array_equal(x[Pair(slice(None), 0)], a[:, 0])
    np.testing.assert_array_equal(x.reshape(Pair(3, 2)), a.reshape(3, 2))
    np.testing.assert_array_equal(x.transpose(Pair(1, 0)), a.T)
    assert x.copy(np.str_("F")).flags.f_contiguous
    assert x.to_device(np.str_("cpu")) is x
    assert arrayhub.Device(Pair(1, 0)) == arrayhub.Device(np.str_("cpu"))
    assert arrayhub.USMArray(Pair(2, 3), np.str_("f8"), np.str_("cpu"), order=np.str_("F")).shape == (2, 3)
    assert arrayhub.convert(a, np.str_("numpy")) is not None


@pytest.mark.parametrize("truth", [True, np.True_])
def test_dlpack_device_pairs_reject_bool(truth):
    x = arrayhub.asarray(np.arange(6.0))
    for pair in ((truth, 0), (1, truth), (truth, truth), (2, not truth)):
        for call in (arrayhub.Device, x.to_device, lambda pair: x.__dlpack__(dl_device=pair)):
            with pytest.raises(TypeError, match="is not a DLPack pair; accepted: two integers"):
                call(pair)


def test_integer_arrays_and_iterators_are_accepted_as_shapes_and_axes():
    x = arrayhub.asarray(np.arange(6.0))
    assert x.reshape(np.array([2, 3])).shape == (2, 3)
    assert x.reshape(iter([3, 2])).shape == (3, 2)
    assert x.reshape(np.array(6)).shape == (6,)
    assert x.reshape(2, 3).transpose(np.array([1, 0])).shape == (3, 2)


PAST_64_BITS = "accepted: integers that fit in 64 bits"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.reshape("ab"), TypeError, "reshape: shape has 'a' of type str"),
        (lambda x: x.reshape(None), TypeError, "reshape: shape has None of type NoneType"),
        (lambda x: x.reshape(2.0, 3), TypeError, "reshape: shape has 2.0 of type float"),
        (lambda x: x.reshape(0, -(2**70)), ValueError, rf"reshape: shape has -\d+.*; {PAST_64_BITS}"),
        (lambda x: x[:0].reshape(2**63), ValueError, rf"reshape: shape has \d+.*; {PAST_64_BITS}"),
        (lambda x: x.transpose("a"), TypeError, "transpose: axes has 'a' of type str"),
        (lambda x: x.transpose(0.0), TypeError, "transpose: axes has 0.0 of type float"),
        (lambda x: x[2**63], IndexError, r"index \d+.* is out of bounds"),
        (lambda x: x[..., -(2**63) - 1], IndexError, r"index -\d+.* is out of bounds"),
        (lambda x: x[0, 0], IndexError, "the array has 1 dimension, but 2 were indexed"),
        (lambda x: x.transpose(0, 0), ValueError, "a permutation of the 1 dimension$"),
    ],
)
def test_error_names_the_integer_that_is_not_accepted(call, error, message):
    with pytest.raises(error, match=message):
        call(arrayhub.asarray(np.zeros(6)))


@pytest.mark.parametrize("strides", [(3, 3, 3), (3, 8, 8), (8, 4, 1)])
@pytest.mark.parametrize("shape", [(0, 2**62, 4), (2**40, 2**40, 0), (2**62, 0, 2**62)])
def test_empty_array_with_overflowing_compact_strides_is_consistent(shape, strides):
    said = {"version": 3, "typestr": "<f8", "shape": shape, "strides": strides, "data": (4096, False)}
    x = arrayhub.asarray(type("Producer", (), {"__array_interface__": said})())  # NumPy itself rejects such an array
    assert (x.size, x.nbytes, x.shape) == (0, 0, shape)
    assert x.byte_strides == tuple(8 * stride for stride in x.strides)
    assert x.flags.c_contiguous and x.flags.f_contiguous and x.flags.aligned
    assert memoryview(x).strides == x.byte_strides
    y = x[:, :1]
    assert y.byte_strides == tuple(8 * stride for stride in y.strides)


def test_numpy_rejects_strides():
    """`strides` counts elements. Code for ndarrays, such as skimage's view_as_blocks, would use it as bytes."""
    x = arrayhub.asarray(np.arange(16).reshape(4, 4))
    assert x.strides == (4, 1) and repr(x.strides) == "(4, 1)" and type(x.strides[0]) is int and hash(x.strides)
    for compute in (
        np.array,
        lambda s: s * np.array((2, 2)),
        lambda s: np.array((2, 2)) * s,
        lambda s: np.multiply(s, 8),
    ):
        with pytest.raises(TypeError, match=r"byte_strides, arrayhub\.as_numpy\(x\)"):
            compute(x.strides)
    assert type(pickle.loads(pickle.dumps(x.strides))) is tuple


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda s: operator.add(s, (1,)), (4, 1, 1)), (lambda s: operator.add((1,), s), (1, 4, 1)),
        (lambda s: s + s, (4, 1, 4, 1)), (lambda s: s * 2, (4, 1, 4, 1)), (lambda s: 2 * s, (4, 1, 4, 1)),
        (lambda s: s[:1], (4,)), (lambda s: s[2:], ()), (lambda s: s[::-1], (1, 4)),
    ],
)  # fmt: skip
def test_numpy_rejects_tuples_derived_from_strides(make, expected):
    made = make(arrayhub.asarray(np.arange(16).reshape(4, 4)).strides)
    assert made == expected and isinstance(made, tuple)
    with pytest.raises(TypeError, match="byte_strides"):
        np.array(made)


def test_native_rejects_overlapping_fields():
    """Swapping the bytes of one field would change the other field."""
    inner = {"names": ["a", "b"], "formats": [">i4", ">i2"], "offsets": [0, 0], "itemsize": 4}
    for dtype in (np.dtype(inner), np.dtype([("x", "u1"), ("y", inner)])):
        with pytest.raises(TypeError, match="share bytes"):
            arrayhub.asarray(np.zeros(2, dtype)).native()
    apart = np.zeros(2, {"names": ["a", "b"], "formats": [">i4", ">i2"], "offsets": [2, 0], "itemsize": 6})
    apart["a"] = 0x01020304
    assert arrayhub.as_numpy(arrayhub.asarray(apart).native())["a"][0] == 0x01020304


FIELDS = np.dtype([("a", "i4"), ("b", "f8", (2, 3)), ("c", [("d", "i2"), ("e", "S3")]), (("title", "t"), "M8[s]")])


@pytest.mark.parametrize("index", [slice(None), slice(None, None, -2), (slice(None), 1), (0, 0)], ids=str)
@pytest.mark.parametrize("align", [False, True])
def test_field_of_records_is_a_view(index, align):
    dtype = np.dtype(FIELDS.descr, align=align)
    n = np.zeros((4, 3), dtype)
    n.view("u1")[...] = np.arange(n.view("u1").size, dtype="u1").reshape(n.view("u1").shape) if not align else 0
    x = arrayhub.asarray(n)[index]
    for name in (*dtype.names, "title"):
        field, expected = x[name], n[index][name]
        assert (field.shape, field.dtype, field.access) == (expected.shape, expected.dtype, "readwrite")
        assert np.shares_memory(arrayhub.as_numpy(field), n)
        assert repr(arrayhub.as_numpy(field).tolist()) == repr(expected.tolist())
    assert x["c"]["d"].tolist() == n[index]["c"]["d"].tolist()
    x["a"][...] = 7
    x["b"] = 2.5
    assert (n[index]["a"] == 7).all() and (n[index]["b"] == 2.5).all()


def test_field_of_empty_and_read_only_records():
    assert arrayhub.asarray(np.zeros((0, 3), FIELDS))["b"].shape == (0, 3, 2, 3)
    n = np.zeros(2, FIELDS)
    n.flags.writeable = False
    x = arrayhub.asarray(n)["a"]
    assert x.access == "readonly"
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


def test_unknown_fields_raise():
    with pytest.raises(KeyError, match=r"'z' is not a field; accepted: 'a', 'b', 'c', 't'"):
        arrayhub.asarray(np.zeros(2, FIELDS))["z"]
    with pytest.raises(IndexError, match="index 'a' is not supported"):
        arrayhub.asarray(np.zeros(2))["a"]
