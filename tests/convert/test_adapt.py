"""Test `adapt`, with which functions for one library accept and return arrays of other libraries."""

import asyncio
import collections
import copy
import functools
import os
import pickle
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from children import python
from dlpack_by_hand import Handmade

import arrayhub as ah


class Pair(NamedTuple):
    low: Any
    high: Any


@pytest.mark.parametrize(
    ("library", "make", "kept"),
    [
        ("pandas", "Series", False), ("polars", "Series", False), ("pyarrow", "array", False),
        ("awkward", "Array", False), ("numpy", "array", True), ("torch", "tensor", True), ("jax.numpy", "array", True),
        ("arrayhub", "asarray", True),
    ],
)  # fmt: skip
def test_0d_results_are_arrays_if_the_library_has_such_arrays_and_numpy_scalars_otherwise(library, make, kept):
    x = getattr(pytest.importorskip(library), make)([1.0, 2.0])
    assert type(ah.adapt("numpy")(np.sort)(x)) is (np.ndarray if library == "pandas" else type(x))
    scalar = ah.adapt("numpy")(lambda x: x.mean())(x)
    assert isinstance(scalar, np.floating) and scalar == 1.5
    result = ah.adapt("numpy")(lambda x: np.asarray(x.mean()))(x)
    assert type(result) is (type(x) if kept else np.float64) and float(result) == 1.5


def test_lists_of_numbers_are_converted_if_the_call_does_not_have_an_array():
    seen = ah.adapt("numpy")(lambda *args, **kwargs: (args, kwargs))

    def received(*args):
        return seen(*args)[0]

    for numbers in ([], [1, 2.5], [[1, 2], [3, 4]], [(1, 2), [3, 4]], [True, None], [np.float32(1)], [1j]):
        if None not in numbers:
            (x,) = received(numbers)
            assert type(x) is np.ndarray and x.tolist() == np.asarray(numbers).tolist()
        assert received(np.ones(1), numbers)[1] is numbers
    assert [type(x) for x in received([1.0], [0, 1], (2, 3), 4)] == [np.ndarray, np.ndarray, tuple, int]
    unchanged = [
        (1, 2), range(3), ["a"], b"ab", [None], [None, "a"], [{"a": 1}], [slice(0, 1)], [len], [object()],
        [np.dtype("f4")], {"a": [1, 2]}, {}, (), [(0, "a")], [["a"]], {1, 2}, [{1}], [np.dtype("f4"), 1], [[1], "a"],
    ]  # fmt: skip
    for value in unchanged:
        assert received(value)[0] is value and received(np.ones(1), value)[1] is value
        assert seen(np.ones(1), option=value)[1]["option"] is value


def test_adapt_fills_missing_values_with_its_argument_missing():
    pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    double = ah.adapt("numpy", copy=None, missing=0)(lambda x: x * 2)
    assert double(pl.Series("n", [1, None])).to_list() == [2, 0]
    assert double(pd.Series([1, None], index=["a", "b"], dtype="Int64")).tolist() == [2, 0]
    assert double(np.ones(2)).tolist() == [2, 2] and double([1, None]).tolist() == [2, 0]
    total = ah.adapt("numpy", copy=None, missing=0)(np.add)(ah.ones(2), ah.asarray(np.array(2.0)))
    assert total.tolist() == [3, 3]
    mean = ah.adapt("numpy", copy=None, missing="nan")(np.nanmean)
    assert mean(pa.array([1, None, 3])) == 2
    dates = np.array(["2020-01-01", "NaT"], "M8[D]")
    assert ah.adapt("numpy", copy=None, missing=dates[0])(lambda x: x)(dates).tolist() == [dates[0].item()] * 2
    filled = ah.adapt(pa.Table, copy=None, missing=0)(lambda table: [*table.column_names, type(table)])
    assert filled(pl.DataFrame({"a": [1, None]})) == ["a", pa.Table]


def test_invalid_missing_raises_at_decoration():
    def f(x: Annotated[np.ndarray, ah.Request("float64")]):
        return x

    with pytest.raises(ValueError, match="adapt: missing is 'mask'.*accepted: None, 'nan' or a value"):
        ah.adapt("numpy", missing="mask")
    with pytest.raises(
        ValueError, match=r"missing is 0, but x has a request; accepted: None\. Pass arrayhub\.as_numpy\(x, missing=0\)"
    ):
        ah.adapt("numpy", missing=0)(f)


def test_arrays_in_containers_of_the_result_are_converted():
    torch = pytest.importorskip("torch")

    @ah.adapt("numpy", copy=None)
    def parts(x, label=None):
        return Pair(x.min(keepdims=True), [x, {"max": x, "label": label}]), 3, "text"

    pair, number, text = parts(torch.ones(2), label="a")
    assert type(pair) is Pair
    assert isinstance(pair.low, torch.Tensor)
    assert isinstance(pair.high[1]["max"], torch.Tensor)
    assert (pair.high[1]["label"], number, text) == ("a", 3, "text")


class Sealed(dict):
    def __setitem__(self, key, value):
        raise TypeError("sealed")


class Measured(Pair):
    unit = "m"


def with_unit(x):
    pair = Measured(x, 1)
    pair.unit = "s"
    return copy.copy(pair)


# Functions of `x` with a container in the result, the type of this container, and what it has beside the array `x`.
CONTAINERS = {
    "defaultdict": (lambda x: collections.defaultdict(list, a=x, b=3), collections.defaultdict, dict(b=3)),
    "OrderedDict": (lambda x: collections.OrderedDict(b=2, a=x, c=1), collections.OrderedDict, dict(b=2, c=1)),
    "Counter": (lambda x: collections.Counter(a=x, b=2), collections.Counter, dict(b=2)),
    "a mapping that cannot be changed": (lambda x: Sealed(a=x, b=3), dict, dict(b=3)),
    "a tuple with an attribute": (with_unit, Measured, dict(high=1, unit="s")),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_types_of_containers_in_the_result_are_kept(name):
    function, kind, others = CONTAINERS[name]
    x = pytest.importorskip("torch").ones(2)
    made = ah.adapt("numpy", copy=None)(function)(x)
    assert type(made) is kind and getattr(made, "default_factory", list) is list
    items = dict(made) if isinstance(made, dict) else {"a": made.low, "high": made.high, "unit": made.unit}
    assert type(items.pop("a")) is type(x) and items == others and list(items) == list(others)


def test_containers_of_torch_are_kept_for_callers_of_other_libraries():
    torch = pytest.importorskip("torch")
    adapted = ah.adapt("torch", copy=None)
    for x in (torch.tensor([2, 1]), np.array([2, 1])):
        found = adapted(lambda x: torch.sort(x))(x)
        assert type(found) is torch.return_types.sort and type(found.values) is type(x)
        assert found.values.tolist() == [1, 2] and found.indices.tolist() == [1, 0]
        given = {"a": torch.ones(2), "b": 3}
        made = adapted(lambda x, given=given: given)(x)
        assert type(made["a"]) is type(x) and type(given["a"]) is torch.Tensor


@pytest.mark.parametrize("make", [lambda: collections.Counter("abca"), lambda: os.stat("."), lambda: Pair(1, 2)])
def test_containers_without_arrays_are_returned_unchanged(make):
    value = make()
    assert ah.adapt("numpy")(lambda x: value)(pytest.importorskip("torch").ones(2)) is value


def refused(x, library="numpy"):
    """Return the error text of an adapted function. It must be the same with copy=False and with copy=None."""
    errors = []
    for options in ({"copy": False}, {"copy": None}):
        with pytest.raises(ah.Refusal, match="^<lambda>: x: ") as raised:
            ah.adapt(library, **options)(lambda x: x)(x)
        errors.append(str(raised.value))
        call = raised.value.call
        assert not call or eval(call, {"arrayhub": ah, "x": x}) is not None
    assert errors[0] == errors[1]
    return errors[0]


def test_error_does_not_suggest_copy_if_a_copy_fails_too():
    torch, pa = pytest.importorskip("torch"), pytest.importorskip("pyarrow")
    assert "has 1 missing value" in refused(pa.array([1, None]))
    assert "requires_grad" in refused(torch.ones(3, requires_grad=True))
    assert "does not have a code" in refused(np.zeros(3, "M8[s]"), "torch")
    sparse = refused(torch.eye(3).to_sparse_csr().requires_grad_())
    assert "requires_grad" in sparse and "copy=" not in sparse


def sparse_with_int32_indices():
    x = pytest.importorskip("scipy.sparse").random_array((3, 3), density=0.9, format="coo", rng=1)
    x.coords = tuple(part.astype("int32") for part in x.coords)
    return x


@pytest.mark.parametrize(
    "make", [lambda: np.arange(3)[::-1], lambda: np.arange(3, dtype=">i4"), sparse_with_int32_indices]
)
def test_error_suggests_copy_if_a_copy_succeeds(make):
    pytest.importorskip("torch")
    x = make()
    with pytest.raises(BufferError, match="Pass copy=None to arrayhub.adapt"):
        ah.adapt("torch", copy=False)(lambda x: x)(x)
    result = ah.adapt("torch", copy=None)(lambda x: x + x)(x)
    assert type(result) is type(x)
    assert (result == 2 * x).all() if isinstance(x, np.ndarray) else np.array_equal(result.todense(), 2 * x.todense())


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_results_for_jax_without_x64_are_narrowed(name):
    jnp = pytest.importorskip("jax.numpy")
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}[name]
    x = jnp.arange(3)
    for function in (lambda x: np.array([1, 2, 3], name), lambda x: (np.array([[1, 2, 3]], name).T[::-1], 1)[0]):
        result = ah.adapt("numpy")(function)(x)
        assert isinstance(result, type(x)) and result.dtype == narrow
        assert result.tolist() == function(x).tolist()
    assert ah.like(np.array([1, 2], name), x).dtype == narrow and ah.like([1, 2], x).dtype == "int32"
    assert ah.placement(x).convert(np.array([1, 2], name)).dtype == narrow
    values, mask = ah.like(np.ma.array([1, 2], dtype=name, mask=[False, True]), x, missing="mask")
    assert values.dtype == narrow and values.tolist()[0] == 1 and mask.tolist() == [False, True]
    large = {"int64": 2**31, "uint64": 2**32}.get(name, 1e300)
    for convert in (
        ah.adapt("numpy")(lambda x: np.array([large], name)),
        lambda x: ah.like(np.array([large], name), x),
    ):
        with pytest.raises(OverflowError, match="^(<lambda>: the result: |like: ).*out of the range of"):
            convert(x)


def test_requests_of_parameters_share_symbolic_lengths():
    torch = pytest.importorskip("torch")
    R = Annotated[np.ndarray, ah.Request("n * float64", may="cast")]

    @ah.adapt("numpy")
    def weighted(x: R, w: R | None = None, bias=0.0):  # `bias` is converted as usual
        assert not isinstance(bias, torch.Tensor)
        return x if w is None else x * w + bias

    assert isinstance(weighted(torch.ones(3)), torch.Tensor)
    assert weighted(torch.ones(3), torch.ones(3), torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="weighted: n is 3 in x, and 2 in w; accepted: equal lengths"):
        weighted(torch.ones(3), torch.ones(2))
    with pytest.raises((TypeError, ValueError), match="weighted: x"):
        weighted(torch.ones((3, 3)))
    for keywords, words in (({}, "missing 1 required"), ({"x": np.ones(2), "y": 1}, "unexpected keyword argument 'y'")):
        with pytest.raises(TypeError, match=rf"weighted\(\) .*{words}"):
            weighted(**keywords)
    with pytest.raises(ah.Refusal, match="weighted: x: torch: requires_grad is True"):
        weighted(torch.ones(2, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("call", ["f(x, w=w)", "f(x=x, w=w)", "f(w=w, x=x)", "f(x, 2, w=w)", "f(x, k=2, w=w)"])
def test_requests_are_found_by_position_and_keyword(call):
    torch = pytest.importorskip("torch")
    R = Annotated[np.ndarray, ah.Request("n * float64", may="build")]

    @ah.adapt("numpy")
    def f(x: R, k=1, *, w: R):
        assert type(x) is type(w) is np.ndarray
        return x * w

    assert eval(call, {"f": f, "x": [1.0, 2.0], "w": [3.0, 4.0]}).tolist() == [3.0, 8.0]
    made = f([torch.tensor(2.0, dtype=torch.float64)], w=[3.0])  # the array in the list determines the library
    assert isinstance(made, torch.Tensor) and made.tolist() == [6.0]


def test_error_for_conflicting_devices_names_the_arguments():
    first, second = [ah.from_dlpack(Handmade(device=(2, k), announced=(2, k))) for k in (0, 1)]
    R = Annotated[ah.USMArray, ah.Request(where="any")]

    @ah.adapt("arrayhub")
    def f(x, n, y):
        return x

    with pytest.raises(ValueError, match="^f: x is on cuda:0, and y on cuda:1; accepted: one device. Move one"):
        f(first, 3, y=second)

    @ah.adapt("arrayhub")
    def g(x: R, y: R):
        return x

    with pytest.raises(ValueError, match="^g: x is on cuda:0, and y on cuda:1; accepted: one device"):
        g(first, second)


def test_async_functions_can_be_adapted():
    torch = pytest.importorskip("torch")

    @ah.adapt()
    async def later(x):
        """Return x."""
        return x + 1

    assert isinstance(asyncio.run(later(torch.ones(2))), torch.Tensor)
    assert (later.__name__, later.__doc__) == ("later", "Return x.")


def test_objects_that_are_not_plain_functions_raise_at_decoration():
    def generator(x):
        yield x

    async def async_generator(x):
        yield x

    for what in (generator, async_generator, int, 3):
        with pytest.raises(TypeError, match="adapt: .*accepted: functions"):
            ah.adapt()(what)
    for what in (generator, functools.partial(generator)):
        with pytest.raises(TypeError, match=r"adapt: .* is a generator function; .* yield arrayhub\.like\(row, x\)"):
            ah.adapt()(what)
    with pytest.raises(ValueError, match="^adapt: to is 'numpi'.*accepted: numpy"):
        ah.adapt("numpi")
    with pytest.raises(TypeError, match=r'adapt: to is <function .*Write @arrayhub\.adapt\("numpy"\)'):
        ah.adapt(lambda x: x)  # a decorator without parentheses
    for wrapped in (staticmethod(len), classmethod(len)):
        with pytest.raises(TypeError, match="Write @staticmethod and @classmethod above @arrayhub.adapt"):
            ah.adapt()(wrapped)


def test_self_of_a_method_is_not_converted():
    class Signal:
        __array_interface__ = np.arange(3.0).__array_interface__

        @ah.adapt("numpy")
        def mix(self, other):
            assert type(self) is Signal
            return self, other

    x, torch = Signal(), pytest.importorskip("torch")
    mixed, other = x.mix(torch.ones(3))
    assert mixed is x and isinstance(other, torch.Tensor)


def test_adapted_functions_of_a_script_are_sent_by_value():
    """A function of `__main__` does not exist in the process of a dask or joblib worker."""
    sent = python("""
        import cloudpickle, numpy, arrayhub
        @arrayhub.adapt("numpy", missing=0)
        def power(x, n: int):
            return x if n == 1 else x * power(x, n - 1)
        print(cloudpickle.dumps((power, lambda x: power(x, 2), arrayhub.placement(numpy.ones(1)))).hex())
    """)
    power, square, place = pickle.loads(bytes.fromhex(sent))
    x = pytest.importorskip("torch").tensor([2.0])
    assert (power(x, 3).tolist(), square(x).tolist(), place.convert([1]).tolist()) == ([8], [4], [1])


def test_unsupported_requests_raise_at_decoration():
    def several(*xs: Annotated[np.ndarray, ah.Request("float64")]):
        return xs

    def listed(xs: list[Annotated[np.ndarray, ah.Request("float64")]] | None):
        return xs

    def classes(x: Annotated[Any, ah.Request]):
        return x

    def united(x: Annotated[Any, ah.Request("uint8")] | Annotated[Any, ah.Request("float64")]):
        return x

    def unknown(x: "Annotated[np.ndarray, Missing('float64')]", y: "Absent"):  # noqa: F821
        return x

    named = ((several, r"\*xs: .*"), (listed, "xs: list.*"), (classes, "x: .*Request.*"), (united, "x: .*uint8.*"))
    for function, parameter in named:
        with pytest.raises(TypeError, match=f"adapt: {function.__name__}: {parameter} has a request; accepted: "):
            ah.adapt()(function)
    with pytest.raises(TypeError, match="adapt: unknown: the annotation .* of x cannot be evaluated .*'Missing'"):
        ah.adapt()(unknown)


def test_annotations_of_other_parameters_need_not_be_evaluated():
    @ah.adapt()
    def f(x: "Annotated[np.ndarray, ah.Request('float64', may='cast')]", y: "Absent" = None):  # noqa: F821
        return x

    def bare(y, x: ah.Request("float64", may="cast")):
        return x

    assert f(np.ones(2, "f4")).dtype == "f8"
    assert ah.adapt()(functools.partial(bare, 0))(np.ones(2, "f4")).dtype == "f8"


def test_result_of_the_callers_library_keeps_its_own_labels():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    series = pd.Series([3, 1, 2], index=list("abc"), name="x")
    frame = pd.DataFrame({"k": [1, 2, 1], "v": [1.0, 2.0, 3.0]}, index=list("abc"))
    in_order = ah.adapt("pandas")(lambda x: x.sort_values())
    assert in_order(series).to_dict() == {"b": 1, "c": 2, "a": 3}
    renamed = ah.adapt("pandas")(lambda x: [x.rename(columns={"v": "w"}), x.groupby("k")["v"].sum()])
    first, second = renamed(frame)
    assert list(first.columns) == ["k", "w"] and list(first.index) == list("abc")
    assert second.to_dict() == {1: 4.0, 2: 2.0} and second.index.name == "k"
    assert ah.adapt("polars")(lambda x: x.sort().alias("y"))(pl.Series("x", [2, 1])).name == "y"


def test_masked_and_lazy_arrays_are_returned_unchanged_to_callers_of_numpy():
    masked, lazy = np.ma.masked_array([1.0, 2.0], [False, True]), pytest.importorskip("dask.array").ones(3)
    adapted = ah.adapt("numpy", copy=None)(lambda x: (masked, lazy, x))
    for x in (np.ones(2), [1.0, 2.0], memoryview(np.ones(2)), ah.asarray(np.ones(2)).__array__()):
        assert adapted(x)[0] is masked and adapted(x)[1] is lazy
    pl = pytest.importorskip("polars")
    assert ah.adapt("numpy")(lambda x: masked)(pl.Series([1.0, 2.0])).to_list() == [1.0, None]


def test_error_for_missing_values_names_missing_of_adapt():
    pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    ak = pytest.importorskip("awkward")
    numbers = [
        pl.Series([1, None]), pa.array([1, None]), ak.Array([1, None]), [1, None], pd.Series([1, None], dtype="Int64"),
        ah.asnested([1, None]), pl.DataFrame({"a": [1, None]}),
    ]  # fmt: skip
    hint = "Pass missing='nan' or missing=value to arrayhub.adapt, which replaces missing values$"
    for x in numbers:
        with pytest.raises((TypeError, ValueError, BufferError), match=f"^<lambda>: x: .*{hint}"):
            ah.adapt("numpy")(lambda x: x)(x)
    numbers.append(np.ma.masked_array([1.0, 2.0], [False, True]))
    for x in numbers:
        assert ah.adapt("numpy", copy=None, missing=0)(lambda x: x.ravel().tolist())(x) == [1, 0]
    # "nan" cannot replace a list, torch lacks times, and scipy needs a sparse array.
    lists, days = pl.Series([[1], None]), pa.array([None], pa.date64())
    for to, x in ("numpy", lists), ("torch", days), ("scipy", days):
        with pytest.raises(BufferError) as raised:
            ah.adapt(to)(lambda x: x)(x)
        assert "arrayhub.adapt" not in str(raised.value)


def test_error_for_the_result_says_that_x_is_the_result():
    torch = pytest.importorskip("torch")
    for function in (lambda x: np.zeros(2, "M8[s]"), lambda x: np.ma.masked_array([1.0, 2.0], [False, True])):
        function.__name__ = "dates"
        with pytest.raises(
            (BufferError, TypeError),
            match="^dates: the result: .* In this message, x is the value that dates returns. Convert",
        ):
            ah.adapt("numpy", copy=None)(function)(torch.ones(2))
    with pytest.raises(BufferError, match="Pass copy=None to arrayhub.adapt to allow copies$"):
        ah.adapt("numpy", copy=False)(lambda x: np.arange(2, dtype=">i4"))(torch.ones(2))


def test_xarray_functions_receive_and_return_coordinates():
    xr = pytest.importorskip("xarray")
    array = xr.DataArray(np.arange(3.0), dims="t", coords={"t": [10, 20, 30]}, name="n", attrs={"unit": "m"})
    made = ah.convert(array, "xarray")
    assert made.identical(array) and np.shares_memory(made.values, array.values)
    assert ah.adapt("xarray")(lambda x: x[::-1])(array).identical(array[::-1])
    assert ah.adapt("xarray")(lambda x: x.sel(t=[30, 10]))(array).coords["t"].values.tolist() == [30, 10]
