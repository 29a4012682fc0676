"""Functions of other libraries return the same result for a USMArray as for a NumPy array, or raise an error."""

import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def axes():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    return Figure().subplots()


def column(pd, x):
    frame = pd.DataFrame({"a": [1, 2, 3]})
    frame["c"] = x
    return frame


PANDAS = {
    "column": column,
    "assign": lambda pd, x: pd.DataFrame({"a": [1, 2, 3]}).assign(c=x),
    "Series": lambda pd, x: pd.Series(x),
    "Series of floats": lambda pd, x: pd.Series(x, dtype="f8"),
    "Index": lambda pd, x: pd.Index(x),
    "index": lambda pd, x: pd.Series(["a", "b", "c"], index=x),
    "columns": lambda pd, x: pd.DataFrame({"a": x, "b": x}, index=x),
    "rows": lambda pd, x: pd.DataFrame([x, x]),
    "crosstab": lambda pd, x: pd.crosstab(x, x),
    "cut": lambda pd, x: pd.Series(pd.cut(x, 2)),
    "map": lambda pd, x: pd.Series([1, 2, 3]).map(dict(zip(x, x, strict=True))),
    "zip": lambda pd, x: pd.DataFrame(list(zip(x, x, strict=True))),
    "isin": lambda pd, x: pd.Series([1, 5]).isin(x),
    "take": lambda pd, x: pd.Series([3, 4, 5, 6]).take(x),
    "compared": lambda pd, x: pd.Series([1, 0, 3]) == x,
    "added": lambda pd, x: x + pd.Series([1, 0, 3]),
    "dummies": lambda pd, x: pd.get_dummies(x),
    "isna": lambda pd, x: pd.Series(pd.isna(x)),
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_functions_return_the_same_as_for_ndarrays(name, pandas):
    a = np.array([1, 2, 3])
    ours, theirs = (PANDAS[name](pandas, x) for x in (ah.asarray(a), a))
    assert type(ours) is type(theirs)
    assert ours.equals(theirs) and repr(ours) == repr(theirs)


def test_pandas_stores_0d_arrays_as_objects_and_items_as_numbers(pandas):
    """pandas stores a 0-d USMArray as an object. It stores the result of `item` as a number."""
    x = ah.asarray(np.array([1, 2, 3]))
    assert column(pandas, x[0])["c"].dtype == object
    assert column(pandas, x.item(0))["c"].dtype == column(pandas, x[0].item())["c"].dtype == np.int64


PLOTS = {
    "hist": lambda axes, x: axes.hist(x)[:2],
    "hist of two": lambda axes, x: axes.hist([x, x])[:2],
    "hist of columns": lambda axes, x: axes.hist(x.reshape(2, 3))[:2],
    "bins": lambda axes, x: axes.hist(x, bins=x, weights=x)[:2],
    "boxplot": lambda axes, x: [line.get_ydata() for line in axes.boxplot(x)["medians"]],
    "boxplot of columns": lambda axes, x: [line.get_ydata() for line in axes.boxplot(x.reshape(2, 3))["medians"]],
    "violinplot": lambda axes, x: [body.get_paths()[0].vertices for body in axes.violinplot(x)["bodies"]],
    "plot": lambda axes, x: [line.get_xydata() for line in axes.plot(x, x)],
    "bar": lambda axes, x: [bar.get_height() for bar in axes.bar(x, x, yerr=x)],
    "scatter": lambda axes, x: axes.scatter(x, x, c=x, s=x).get_array(),
    "imshow": lambda axes, x: axes.imshow(x.reshape(2, 3)).get_array(),
    "pie": lambda axes, x: [(wedge.theta1, wedge.theta2) for wedge in axes.pie(x)[0]],
    "eventplot": lambda axes, x: [events.get_positions() for events in axes.eventplot(x)],
    "ticks": lambda axes, x: [axes.set_xticks(x), axes.get_xticks()][1],
}


@pytest.mark.parametrize("name", PLOTS)
def test_matplotlib_draws_the_same_as_for_ndarrays(name, axes):
    a = np.array([1.0, 2.0, 4.0, 8.0, 8.0, 9.0]) if name != "bins" else np.arange(6.0)
    ours, theirs = PLOTS[name](axes, ah.asarray(a)), PLOTS[name](axes, a)
    np.testing.assert_equal(ours, theirs)


SIZES = {
    "zeros": lambda n, a: np.zeros(n).shape,
    "shape": lambda n, a: np.zeros((n, n)).shape,
    "full": lambda n, a: np.full(n, n),
    "random": lambda n, a: np.random.default_rng(0).random(n),
    "integers": lambda n, a: np.random.default_rng(0).integers(n, size=n),
    "choice": lambda n, a: np.random.default_rng(0).choice(n),
    "old random": lambda n, a: np.random.RandomState(0).rand(n, n),
    "tile by two": lambda n, a: np.tile(a, np.array([n, n])),
    "repeat": lambda n, a: np.repeat(a, n),
    "linspace": lambda n, a: np.linspace(0, 1, n),
    "roll": lambda n, a: np.roll(a, n),
    "index": lambda n, a: (np.arange(9)[n], np.arange(9)[:n], list(range(9))[n]),
    "reshape": lambda n, a: np.arange(9).reshape(n, n),
    "range": lambda n, a: list(range(n)),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("dtype", ["u1", "i8"])
def test_0d_arrays_are_accepted_as_sizes_and_indices(name, dtype):
    n, a = np.array(3, dtype), np.array([4, 5, 6])
    np.testing.assert_equal(SIZES[name](ah.asarray(n), ah.asarray(a)), SIZES[name](n, a))


@pytest.mark.parametrize("call", [np.arange, np.eye, lambda n: np.tile([1], n), lambda n: np.split(np.arange(6), n)])
def test_functions_that_compute_with_the_size_raise_type_error(call):
    n = ah.asarray(np.array(3))
    with pytest.raises(TypeError, match=r"arrayhub\.as_numpy\(x\)|USMArray'"):
        call(n)
    np.testing.assert_equal(call(n.item()), call(3))


def test_skimage_rejects_element_strides():
    util = pytest.importorskip("skimage.util")
    a = np.arange(16.0).reshape(4, 4)
    x = ah.asarray(a)
    with pytest.raises(TypeError, match=r"byte_strides, arrayhub\.as_numpy\(x\)"):
        util.view_as_blocks(x, (2, 2))
    np.testing.assert_array_equal(util.view_as_blocks(ah.as_numpy(x), (2, 2)), util.view_as_blocks(a, (2, 2)))


def test_sliding_windows_equal_those_of_the_ndarray():
    x = ah.asarray(np.arange(16.0).reshape(4, 4))
    view = np.lib.stride_tricks.sliding_window_view
    np.testing.assert_array_equal(view(x[::-1], (2, 2)), view(ah.as_numpy(x)[::-1], (2, 2)))


def test_f2py_overwrites_arguments_that_are_not_ndarrays():
    """With overwrite_a=0, f2py copies only ndarrays. The calls that docs/protocols.md names preserve the memory."""
    lapack = pytest.importorskip("scipy.linalg.lapack")
    linalg = pytest.importorskip("scipy.linalg")
    values = [[4.0, 3.0], [6.0, 3.0]]
    for overwritten in (memoryview, ah.asarray):
        memory = np.asfortranarray(values)
        lapack.dgetrf(overwritten(memory), overwrite_a=0)
        assert memory.tolist() != values
    memory = np.asfortranarray(values)
    x = ah.asarray(memory)
    assert np.array_equal(lapack.dgetrf(ah.as_numpy(x))[0], linalg.lu_factor(x)[0])
    assert memory.tolist() == values
