"""Test labels (dims, origin, halo, aligned index) of views and copies, and labels of imported objects."""

import gc
import math
import operator
import sys

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, note
from hypothesis import strategies as st

import arrayhub as ah
from arrayhub._core.descriptor import label


def labels(a):
    return a.dims, a.origin, a.halo, a.aligned_index


@pytest.fixture
def field():
    """Return a C-ordered array with all four labels. K is the fastest-varying dimension."""
    a = ah.asarray(np.arange(10 * 12 * 20.0).reshape(10, 12, 20))
    return label(a, dims="IJK", origin=(1, 2, 0), halo=(1, (2, 3), 0), aligned_index=(1, 2, 4))


# -------------------------------------------------------------------------------------------------------------- views


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda a: a, ("IJK", (1, 2, 0), ((1, 1), (2, 3), (0, 0)), (1, 2, 4))),
        (lambda a: a[...], ("IJK", (1, 2, 0), ((1, 1), (2, 3), (0, 0)), (1, 2, 4))),
        (lambda a: a[1:], ("IJK", (0, 2, 0), ((0, 1), (2, 3), (0, 0)), (0, 2, 4))),
        (lambda a: a[:, -10:-1], ("IJK", (1, 0, 0), ((1, 1), (0, 2), (0, 0)), (1, 0, 4))),
        (lambda a: a[4:6], ("IJK", (-3, 2, 0), ((0, 0), (2, 3), (0, 0)), (-3, 2, 4))),
        (lambda a: a[:, 10:], ("IJK", (1, -8, 0), ((1, 1), (0, 2), (0, 0)), (1, -8, 4))),
        (lambda a: a[:, :1], ("IJK", (1, 2, 0), ((1, 1), (1, 0), (0, 0)), (1, 2, 4))),
        (lambda a: a[:, 3:3], ("IJK", (1, -1, 0), ((1, 1), (0, 0), (0, 0)), (1, -1, 4))),
        (lambda a: a[::1, 0:99], ("IJK", (1, 2, 0), ((1, 1), (2, 3), (0, 0)), (1, 2, 4))),
        (lambda a: a[3], ("JK", (2, 0), ((2, 3), (0, 0)), (2, 4))),
        (lambda a: a[:, -1, 2:], ("IK", (1, -2), ((1, 1), (0, 0)), (1, 2))),
        (lambda a: a[..., 4], ("IJ", (1, 2), ((1, 1), (2, 3)), (1, 2))),
        (lambda a: a[..., -16], ("IJ", (1, 2), ((1, 1), (2, 3)), (1, 2))),
        (lambda a: a[..., 5], ("IJ", (1, 2), ((1, 1), (2, 3)), None)),
        (lambda a: a[0, 0, 0], ("", (), (), None)),
        (lambda a: a[::2], ("IJK", None, None, None)),
        (lambda a: a[:, ::-1], ("IJK", None, None, None)),
        (lambda a: a[::2][0], ("JK", None, None, None)),
        (lambda a: a[:, None, 2:], (None, (1, 0, 0, 0), ((1, 1), (0, 0), (0, 3), (0, 0)), (1, 0, 0, 4))),
        (lambda a: a.T, ("KJI", (0, 2, 1), ((0, 0), (2, 3), (1, 1)), (4, 2, 1))),
        (lambda a: a.transpose(1, 2, 0), ("JKI", (2, 0, 1), ((2, 3), (0, 0), (1, 1)), (2, 4, 1))),
        (lambda a: a.T[4], ("JI", (2, 1), ((2, 3), (1, 1)), (2, 1))),
        (lambda a: a.T[3], ("JI", (2, 1), ((2, 3), (1, 1)), None)),
        (lambda a: a.reshape(-1), (None, None, None, None)),
        (lambda a: a.reshape(10, 12, 20), (None, None, None, None)),
    ],
)
def test_views_have_labels_of_their_dimensions(field, view, expected):
    dims, *others = expected
    assert labels(view(field)) == (None if dims is None else tuple(dims), *others)
    assert view(field).memory is field.memory


def test_view_labels_do_not_change_the_source(field):
    before = labels(field)
    field[1:, 2].T.with_dims("xy")
    assert labels(field) == before


COARSE = 64  # alignment in bytes of the arrays that `fields` draws


@st.composite
def fields(draw):
    """Draw an array, its strides, and its fastest-varying dimension.

    Like `empty`, pad the array so that all elements with its aligned index are aligned.
    """
    nd = draw(st.integers(1, 4))
    shape = draw(st.lists(st.integers(1, 11), min_size=nd, max_size=nd))
    order = draw(st.permutations(range(nd)))  # dimensions from the largest stride to the smallest
    aligned_index = [draw(st.integers(0, length - 1)) for length in shape]
    fastest, per_boundary = order[-1], COARSE // 8
    padded = [math.ceil(n / per_boundary) * per_boundary if k == fastest else n for k, n in enumerate(shape)]
    strides = [math.prod(padded[k] for k in order[order.index(axis) + 1 :]) for axis in range(nd)]
    offset = -aligned_index[fastest] % per_boundary
    a = ah.USMArray(tuple(shape), "f8", "cpu", tuple(strides), offset)
    halo = []
    for length in shape:
        lower = draw(st.integers(0, length))
        halo.append((lower, draw(st.integers(0, length - lower))))
    origin = [draw(st.integers(-3, 12)) for _ in shape]
    names = [str(axis) for axis in range(nd)]
    return label(a, dims=names, origin=origin, halo=halo, aligned_index=aligned_index), tuple(strides), fastest


@st.composite
def part(draw, length):
    """Draw an integer or a slice, usually with a step of 1."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.integers(-length, length - 1))
    start, stop = sorted(draw(st.tuples(st.integers(0, length), st.integers(0, length))))
    if start == stop:
        start, stop = 0, length
    return slice(start, stop, draw(st.sampled_from([None, None, None, 1, 1, 2, -1])))


@given(st.data())
def test_labels_of_random_views_match_their_elements(data):
    """The labels of a view describe the position of its first element in the source.

    `where` contains the flat index in the source of each element of the view.
    """
    source, strides, fastest = data.draw(fields())
    view, where = source, np.arange(source.size).reshape(source.shape)
    stepped = False
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            axes = data.draw(st.permutations(range(view.ndim)))
            view, where = view.transpose(axes), where.transpose(axes)
        else:
            key = (*(data.draw(part(length)) for length in view.shape), ...)
            note(f"{view.shape} {view.dims} [{key}]")
            stepped |= any(isinstance(p, slice) and p.step not in (None, 1) for p in key)
            view, where = view[key], where[key]
        if where.size == 0:
            return
    start = np.unravel_index(where.reshape(-1)[0], source.shape)  # index in `source` of the first element of the view
    axes = [int(name) for name in view.dims]
    assert len(axes) == view.ndim
    for k, axis in enumerate(axes):
        if view.shape[k] > 1:
            assert view.strides[k] % strides[axis] == 0
    assert (view.origin is None, view.halo is None) == (stepped, stepped)
    if stepped:
        assert view.aligned_index is None
        return
    for k, axis in enumerate(axes):
        assert start[axis] + view.origin[k] == source.origin[axis]
        on_grid = range(start[axis], start[axis] + view.shape[k])
        domain = range(source.halo[axis][0], source.shape[axis] - source.halo[axis][1])
        lower, upper = view.halo[k]
        assert [i in domain for i in on_grid] == [lower <= i < view.shape[k] - upper for i in range(view.shape[k])]
        assert 0 <= lower <= lower + upper <= view.shape[k]
    if view.aligned_index is not None:
        index = list(start)
        for k, axis in enumerate(axes):
            index[axis] += view.aligned_index[k]
        assert (source.ptr + 8 * sum(i * step for i, step in zip(index, strides, strict=True))) % COARSE == 0
        if fastest in axes:  # otherwise, all elements of the view are aligned
            k = axes.index(fastest)
            view = view[(slice(None),) * k + (slice(max(view.aligned_index[k], 0), max(view.aligned_index[k] + 1, 0)),)]
        assert all(address % COARSE == 0 for address in addresses(view))


def addresses(view):
    return [view.ptr + sum(map(operator.mul, index, view.byte_strides)) for index in np.ndindex(view.shape)]


# ------------------------------------------------------------------------------------------------------------- copies


def test_copies_keep_dims_origin_and_halo(field):
    kept = (field.dims, field.origin, field.halo, None)
    for copied in (
        field.copy(),
        field.copy("F"),
        field.to_host(copy=True),
        ah.asarray(field, copy=True),
        ah.asarray(field, dtype="f4"),
    ):
        assert labels(copied) == kept
    assert ah.asarray(field) is field
    assert labels(ah.asarray(field, copy=False)) == labels(field)


def test_copies_to_other_memory_keep_labels(field, sycl):
    there = field.to_device("oneapi:0")
    back = there[1:].to_host()
    assert there.usm_type == "device"
    assert labels(there) == (field.dims, field.origin, field.halo, None)
    assert labels(back) == (field.dims, (0, 2, 0), ((0, 1), (2, 3), (0, 0)), None)
    assert np.array_equal(back, np.asarray(field)[1:])


def test_host_view_of_shared_usm_keeps_labels(sycl):
    shared = label(ah.USMArray((4, 6), "f8", "shared"), dims="IJ", origin=(1, 1), aligned_index=(0, 0))
    host = shared.to_host()
    assert host.ptr == shared.ptr
    assert labels(host) == labels(shared)


# ---------------------------------------------------------------------------------------------- align, with_dims, repr


def test_align_transposes_dimensions_by_name(field):
    aligned = field.align("K", "J", "I")
    assert (aligned.dims, aligned.shape, aligned.strides) == (("K", "J", "I"), (20, 12, 10), (1, 20, 240))
    assert labels(aligned.align(("I", "J", "K"))) == labels(field)
    assert field.align(*"KIJ").origin == (0, 1, 2)
    assert np.shares_memory(np.asarray(aligned), np.asarray(field))


@pytest.mark.parametrize(
    "names",
    [("I",), ("I", "J"), ("I", "J", "J"), ("I", "J", "X"), ("I", "J", "K", "K"), ("IJ",), (5,), (["I"], "J", "K")],
)
def test_align_requires_all_dimension_names(field, names):
    with pytest.raises(ValueError, match="align: names are .*; accepted: a permutation of .*'I', 'J', 'K'"):
        field.align(*names)


def test_align_requires_an_array_with_dims():
    with pytest.raises(ValueError, match="align: the dimensions do not have names; call with_dims"):
        ah.asarray(np.zeros(3)).align("I")


def test_with_dims_returns_a_view():
    a = ah.asarray(np.zeros((2, 3)))
    b = a.with_dims(("I", "J"), origin=(1, -1))
    assert labels(b) == (("I", "J"), (1, -1), None, None)
    assert labels(a) == (None,) * 4
    assert (b.memory, b.ptr, b.byte_strides) == (a.memory, a.ptr, a.byte_strides)
    assert labels(b.with_dims({"J": "K"})) == (("I", "K"), (1, -1), None, None)
    assert labels(b.with_dims({"I": "J", "J": "I"})) == (("J", "I"), (1, -1), None, None)
    assert labels(b.with_dims("xy", [0, 0])) == (("x", "y"), (0, 0), None, None)


def test_with_dims_keeps_the_other_labels(field):
    assert labels(field.with_dims("abc")) == (tuple("abc"), *labels(field)[1:])


def test_padded_arrays_may_have_dims():
    import ml_dtypes

    padded = ah.asarray(np.zeros((2, 4), ml_dtypes.int4)).with_dims("IJ")
    assert padded.dims == ("I", "J")


def test_repr_contains_the_dims(field):
    assert repr(field).startswith("USMArray(shape=(10, 12, 20), dims=('I', 'J', 'K'), dtype=")
    assert "dims" not in repr(field.reshape(-1))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(dims="IJ"), ValueError, r"dims: \('I', 'J'\) has 2 entries; accepted: 3 names"),
        (dict(dims=("I", "J", "I")), ValueError, "dims: .* repeats a name"),
        (dict(dims=("I", "J", 0)), TypeError, "dims: 0 is not a name; accepted: strings"),
        (dict(dims=3), TypeError, "dims: 3 is not a sequence"),
        (dict(dims="IJK", origin=(0, 1)), ValueError, "origin: .* has 2 entries; accepted: 3 integers"),
        (dict(dims="IJK", origin=(0, 1, 0.5)), TypeError, "origin has 0.5 of type float; accepted: integers"),
        (dict(dims="IJK", origin=(0, 1, True)), TypeError, "origin has True of type bool; accepted: integers"),
        (
            dict(dims="IJK", origin=(0, 1, 2**63)),
            ValueError,
            "origin has 9223372036854775808; .* 64 bits",
        ),
        (dict(dims="IJK", origin=1), TypeError, "origin: 1 is not a sequence"),
        (dict(dims={"x": "y"}), ValueError, r"'x' is not the name of a dimension \(dims is None\); accepted"),
        (dict(halo=(1, 1)), ValueError, "halo: .* has 2 entries; accepted: 3 widths"),
        (dict(halo=(1, 1, -1)), ValueError, "halo: -1 for dimension 2 of length 4; accepted: nonnegative widths"),
        (dict(halo=(1, 1, (2, 3))), ValueError, r"halo: \(2, 3\) for dimension 2 of length 4"),
        (dict(halo=(1, 1, (2,))), ValueError, r"halo: \(2,\) is not a width"),
        (dict(halo=(1, 1, "2")), TypeError, "halo has '2' of type str; accepted: integers"),
        (dict(aligned_index=(1, 1)), ValueError, "aligned_index: .* has 2 entries"),
        (dict(aligned_index=(1, 1, None)), TypeError, "aligned_index has None of type NoneType; accepted: integers"),
    ],
)
def test_invalid_labels_raise(given, error, message):
    a = ah.asarray(np.zeros((2, 3, 4)))
    with pytest.raises(error, match=message):
        a.with_dims(**given) if "dims" in given else label(a, **given)


def test_with_dims_rejects_an_unknown_dimension(field):
    with pytest.raises(ValueError, match="dims: 'L' is not the name of a dimension .* from current"):
        field.with_dims({"L": "M"})


# ----------------------------------------------------------------------------------------------------------- lifetime


def test_labels_are_freed_with_their_arrays():
    dims = ("a name in the labels", "J")
    a = ah.asarray(np.zeros((2, 3)))
    name = dims[0]
    before = sys.getrefcount(name)
    for _ in range(200):
        label(ah.asarray(np.zeros((2, 3))), dims=dims)[1:].T.copy().with_dims("xy")
        a = a.with_dims(dims)
    a = a.reshape(-1)
    gc.collect()
    assert sys.getrefcount(name) == before
    assert all(ah.asarray(np.zeros(3)).dims is None for _ in range(200))  # arrays that reuse freed memory


# -------------------------------------------------------------------------------------------------- foreign objects


class Producer:
    """An object with an array and the given attributes."""

    def __init__(self, array, **attributes):
        self.array = array
        self.__dict__.update(attributes)

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


def test_gt_dims_are_read_from_the_type_and_from_the_instance():
    array = np.zeros((2, 3))

    class OnType(Producer):
        __gt_dims__ = ("I", "J")
        __gt_origin__ = (1, 2)

    for obj in (OnType(array), Producer(array, __gt_dims__=("I", "J"), __gt_origin__=[1, np.int8(2)])):
        for a in (ah.asarray(obj), ah.asarray(obj, via="array_interface")):
            assert labels(a) == (("I", "J"), (1, 2), None, None)
            assert a.ptr == array.ctypes.data
    assert ah.asarray(Producer(array, dims=("x", "y"))).dims == ("x", "y")
    assert ah.asarray(Producer(array, dims=("x", "y"), __gt_dims__=("J", "I"))).dims == ("J", "I")


def test_gt_origin_property_is_read_without_dims():
    class Shifted(Producer):
        @property
        def __gt_origin__(self):
            return self.start

    assert labels(ah.asarray(Shifted(np.zeros((2, 3)), start=(1, 2)))) == (None, (1, 2), None, None)


def test_dims_are_read_from_subclasses_of_known_types():
    class Field(np.ndarray):
        pass

    array = np.zeros((2, 3)).view(Field)
    assert ah.asarray(array).dims is None
    array.__gt_dims__ = ("J", "I")
    assert ah.asarray(array).dims == ("J", "I")
    assert ah.asarray(array, via="buffer").dims == ("J", "I")

    class Tensor(torch.Tensor):
        dims = ("x", "y")

    tensor = torch.zeros(2, 3).as_subclass(Tensor)
    assert ah.asarray(tensor).dims == ("x", "y")
    assert ah.asarray(torch.zeros(2, 3)).dims is None


def test_dims_property_added_to_a_type_later_is_read():
    class Later:
        __slots__ = ("__array_interface__",)

    obj = Later()
    array = np.zeros((2, 3))
    obj.__array_interface__ = array.__array_interface__
    assert ah.asarray(obj).dims is None
    Later.dims = ("x", "y")
    assert ah.asarray(obj).dims == ("x", "y")


class Loud(str):
    """A string whose methods all raise."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    __hash__ = __eq__ = __str__ = __len__ = __iter__ = lambda self, *_: 1 / 0


class Silent:
    def __index__(self):
        raise KeyError("no")

    __repr__ = __str__ = __index__


WRONG_NAMES = [
    ("I",), ("I", "J", "K"), ("I", "I"), ("I", 1), ["I", "J"], "IJ", 42, {"I": 1, "J": 2}, (b"I", b"J"), Silent(),
    len,
]  # fmt: skip
WRONG_ORIGINS = [
    (1,), (1, 2, 3), (1, 2.0), (1, "2"), (True, False), (1, 2**64), (1, -(2**63) - 1), (1, Silent()), 7, "12",
]  # fmt: skip


@pytest.mark.parametrize("names", WRONG_NAMES, ids=lambda x: type(x).__name__)
def test_invalid_dims_are_ignored(names):
    for attribute in ("dims", "__gt_dims__"):
        assert labels(ah.asarray(Producer(np.zeros((2, 3)), **{attribute: names}))) == (None,) * 4
    assert ah.asarray(Producer(np.zeros((2, 3)), __gt_dims__=names, dims=("x", "y"))).dims == ("x", "y")


@pytest.mark.parametrize("origin", WRONG_ORIGINS, ids=range(len(WRONG_ORIGINS)))
def test_invalid_origins_are_ignored(origin):
    a = ah.asarray(Producer(np.zeros((2, 3)), __gt_origin__=origin, dims=("I", "J")))
    assert labels(a) == (("I", "J"), None, None, None)


def test_dims_of_string_subclasses_become_plain_strings():
    a = ah.asarray(Producer(np.zeros((2, 3)), dims=(Loud("I"), Loud("J"))))
    assert a.dims == ("I", "J")
    assert [type(name) for name in a.dims] == [str, str]
    assert a[0].dims == ("J",)


@pytest.mark.parametrize("digits", ["٣", "00", "-1", "9" * 5000, "²"])
def test_digits_that_are_not_an_ascii_index_are_not_gt4py_data_dimensions(digits):
    a = ah.asarray(Producer(np.zeros((2, 3)), dims=(digits, "I"), __gt_origin__=(1, 2)))
    assert a.dims == (digits, "I")
    assert a.__gt_origin__ == (1, 2)
    assert not hasattr(a, "__gt_dims__")


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, OSError, NotImplementedError, AttributeError, ZeroDivisionError]
)
def test_label_properties_that_raise_are_ignored(error):
    class Hostile(Producer):
        @property
        def dims(self):
            raise error("no")

        __gt_dims__ = __gt_origin__ = dims

    properties = {name: vars(Hostile)[name] for name in ("dims", "__gt_dims__", "__gt_origin__")}
    subclass = type("Hostile", (np.ndarray,), properties)
    for obj in (Hostile(np.zeros((2, 3))), np.zeros((2, 3)).view(subclass)):
        assert labels(ah.asarray(obj)) == (None,) * 4
    assert ah.storage.get_dims(Hostile(np.zeros((2, 3)))) is None
    assert ah.storage.get_origin(Hostile(np.zeros((2, 3)))) is None


def test_dims_of_a_class_with_an_invalid_module_name_are_read():
    Nameless = type("Nameless", (Producer,), {"__module__": 5})
    assert ah.asarray(Nameless(np.zeros((2, 3)), dims=("x", "y"))).dims == ("x", "y")


def test_recursive_dims_property_raises_recursion_error():
    class Mirror(Producer):
        @property
        def dims(self):
            return ah.asarray(self).dims

    with pytest.raises(RecursionError):
        ah.asarray(Mirror(np.zeros((2, 3))))


def test_import_of_a_wrapper_does_not_change_the_wrapped_array():
    xarray = pytest.importorskip("xarray")
    inner = ah.asarray(np.zeros((2, 3)))
    outer = ah.asarray(xarray.NamedArray(("x", "y"), inner))
    assert outer.dims == ("x", "y")
    assert inner.dims is None
    assert outer.ptr == inner.ptr
    assert ah.asarray(xarray.NamedArray(("a", "b"), outer)).dims == ("a", "b")
    assert outer.dims == ("x", "y")


# ------------------------------------------------------------------------------------------------ get_dims, get_origin


@pytest.mark.slow
def test_get_dims_prefers_dims_of_the_array_to_the_annotation():
    array = np.zeros((2, 3))
    assert ah.storage.get_dims(array) is None
    assert ah.storage.get_dims(array, "IJ") == ("I", "J")
    assert ah.storage.get_dims(array, ["x", "y"]) == ("x", "y")
    assert ah.storage.get_dims(Producer(array, __gt_dims__=("J", "I")), "IJ") == ("J", "I")
    assert ah.storage.get_dims(ah.asarray(array).with_dims("JI"), "IJ") == ("J", "I")
    assert ah.storage.get_dims(xr.DataArray(array, dims=("x", "y"))) == ("x", "y")
    assert ah.storage.get_dims(None) is None
    with pytest.raises(TypeError, match="get_dims: annotation is 5; accepted: GT4Py's Field"):
        ah.storage.get_dims(array, 5)


@pytest.mark.slow
def test_get_dims_reads_a_gt4py_field_annotation():
    gtscript = pytest.importorskip("gt4py.cartesian.gtscript")
    Field = gtscript.Field
    assert ah.storage.get_dims(np.zeros((2, 3, 4)), Field[float]) == ("I", "J", "K")
    assert ah.storage.get_dims(np.zeros((2, 3)), Field[gtscript.IJ, float]) == ("I", "J")
    assert ah.storage.get_dims(np.zeros(2), Field[gtscript.K, float]) == ("K",)
    assert ah.storage.get_dims(np.zeros((2, 3, 4, 2, 3)), Field[gtscript.IJK, (float, (2, 3))]) == (
        "I",
        "J",
        "K",
        "0",
        "1",
    )
    assert ah.storage.get_dims(Producer(np.zeros((2, 3)), __gt_dims__=("J", "I")), Field[gtscript.IJ, float]) == (
        "J",
        "I",
    )


def test_get_origin_returns_the_dimension_order_of_gt4py():
    a = ah.asarray(np.zeros((2, 3, 4, 5))).with_dims(("1", "K", "I", "0"), origin=(1, 2, 3, 4))
    assert (a.__gt_dims__, a.__gt_origin__) == (("1", "K", "I", "0"), (3, 2, 4, 1))
    assert ah.storage.get_origin(a) == (3, 2, 4, 1)
    assert ah.storage.get_origin(np.zeros(3)) is None
    assert ah.storage.get_origin(Producer(np.zeros((2, 3)), __gt_origin__=[1, 2])) == (1, 2)
    again = ah.asarray(Producer(np.zeros((2, 3, 4, 5)), __gt_dims__=a.__gt_dims__, __gt_origin__=a.__gt_origin__))
    assert (again.dims, again.origin) == (a.dims, a.origin)


def test_gt4py_attributes_exist_for_gt4py_dimensions():
    a = ah.asarray(np.zeros((2, 3)))
    for missing in (a, a.with_dims("xy"), a.with_dims(("I", "lat"))):
        assert not hasattr(missing, "__gt_dims__")
        assert not hasattr(missing, "__gt_origin__")
    with pytest.raises(AttributeError, match=r"__gt_dims__: dims is \('x', 'y'\); accepted by GT4Py: 'I', 'J', 'K'"):
        _ = a.with_dims("xy").__gt_dims__
    with pytest.raises(AttributeError, match=r"__gt_origin__: the array does not have an origin"):
        _ = a.with_dims("IJ").__gt_origin__
    assert a.with_dims("IJ").__gt_dims__ == ("I", "J")
    assert a.with_dims("KJ", (1, 2))[1:].__gt_origin__ == (2, 0)
    assert a.with_dims("xy", (1, 2)).T.__gt_origin__ == (2, 1)


# ------------------------------------------------------------------------------------------------------------- xarray


def test_xarray_round_trip_shares_memory():
    data = np.arange(6.0).reshape(2, 3)
    x = xr.DataArray(data, dims=("lat", "lon"), coords={"lat": [1, 2]})
    a = ah.asarray(x)
    assert (a.dims, a.ptr, a.access) == (("lat", "lon"), data.ctypes.data, "readwrite")
    assert not hasattr(a, "__gt_dims__")
    back = a.T[1:].to_xarray()
    assert isinstance(back, xr.DataArray)
    assert back.dims == ("lon", "lat")
    assert back.values.ctypes.data == data.ctypes.data + 8
    back[0, 0] = -1
    assert data[0, 1] == -1
    assert ah.asarray(x.variable).dims == ("lat", "lon")
    assert ah.asarray(x[0]).dims == ("lon",)


def test_preset_error_names_the_dims_keyword():
    """If a preset rejects the dims of an array, the error names `dims=`, and this call succeeds."""
    x = xr.DataArray(np.arange(12.0).reshape(3, 4), dims=("lat", "lon"))
    with pytest.raises(ValueError, match=r"'lat', 'lon'.*pass dims=\('I', 'J', \.\.\.\)"):
        ah.from_array(x, backend="gt:cpu_ifirst")
    u = ah.from_array(x, backend="gt:cpu_ifirst", dims=("I", "J"))
    assert u.dims == ("I", "J")
    np.testing.assert_array_equal(u, x)


def test_xarray_uses_the_dims_of_an_array():
    a = ah.asarray(np.arange(6.0).reshape(2, 3))
    named = xr.DataArray(a.with_dims("xy"))
    assert named.dims == ("x", "y")
    assert named.values.ctypes.data == a.ptr
    assert xr.DataArray(a).dims == a.to_xarray().dims == ("dim_0", "dim_1")
    assert a.with_dims((None, "x")).to_xarray().dims == ("dim_0", "x")


def test_to_xarray_keeps_memory_read_only():
    x = ah.asarray(b"abcd").with_dims(("n",)).to_xarray()
    assert not x.values.flags.writeable
    assert x.dims == ("n",)


def test_to_xarray_rejects_device_memory(sycl):
    a = ah.USMArray((2, 3), "f8", "device").with_dims("xy")
    with pytest.raises(BufferError, match=r"xarray: the memory is on oneapi:0, .*Call arrayhub\.to_host\(x\)"):
        a.to_xarray()
    assert a.to_host().to_xarray().dims == ("x", "y")


def test_dims_may_contain_none():
    """`dims` may contain None for a dimension without a name, as in Arrow's tensors."""
    x = ah.asarray(np.zeros((2, 3, 4))).with_dims((None, "y", None))
    assert x.dims == (None, "y", None)
    assert x[0].dims == ("y", None)
    assert ah.empty(like=x).dims == x.dims
    with pytest.raises(ValueError, match="repeats a name"):
        x.with_dims((None, "y", "y"))
