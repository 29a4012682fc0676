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


@ah.adapt("numpy", copy=None)
def blur(x, width=3):
    """Return the moving average."""
    assert type(x) is np.ndarray
    return np.convolve(x, np.ones(width) / width, "same")


@pytest.mark.parametrize(
    ("library", "make", "cls"),
    [
        ("torch", "rand", "Tensor"), ("pyarrow", "array", "Array"), ("polars", "Series", "Series"),
        ("jax.numpy", "ones", "ndarray"), ("arrayhub", "ones", "USMArray"),
    ],
)  # fmt: skip
def test_result_has_the_array_type_of_the_argument(library, make, cls):
    module = pytest.importorskip(library)
    x = getattr(module, make)(8) if make in ("rand", "ones") else getattr(module, make)([1.0, 2.0, 3.0])
    assert isinstance(blur(x), getattr(module, cls))


def test_result_keeps_labels_of_the_argument_on_request():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0, 3.0], index=list("abc"), name="n")
    assert type(blur(series)) is np.ndarray
    result = ah.adapt("numpy", labels=True)(blur)(series)
    assert result.index is series.index and result.name == "n"


def test_lists_are_passed_as_numpy_arrays():
    assert type(blur([1.0, 2.0])) is np.ndarray


@pytest.mark.parametrize(
    ("library", "make"),
    [("pandas", "Series"), ("polars", "Series"), ("pyarrow", "array"), ("awkward", "Array"), ("numpy", "array")],
)
def test_0d_results_for_columns_are_numpy_scalars(library, make):
    module = pytest.importorskip(library)

    @ah.adapt("numpy")
    def mean(x):
        return np.asarray(x.mean())

    result = mean(getattr(module, make)([1.0, 2.0]))
    assert type(result) is (np.ndarray if library == "numpy" else np.float64) and result == 1.5


@pytest.mark.parametrize(("library", "make"), [("torch", "ones"), ("jax.numpy", "ones"), ("arrayhub", "ones")])
def test_0d_arrays_are_returned_as_arrays_and_numpy_scalars_as_scalars(library, make):
    x = getattr(pytest.importorskip(library), make)(3)
    adapted = ah.adapt("numpy", copy=None)
    scalar = adapted(lambda x: x.mean())(x)
    assert isinstance(scalar, np.floating) and scalar == 1
    array = adapted(lambda x: np.asarray(x.mean()))(x)
    assert type(array) is type(x) and array.shape == () and float(array) == 1


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


def test_adapted_function_keeps_its_metadata():
    assert blur.__name__ == "blur"
    assert blur.__doc__ == "Return the moving average."


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


def refused(x, library="numpy"):
    """Return the error text of an adapted function. It must be the same with copy=False and with copy=None."""
    errors = []
    for options in ({"copy": False}, {"copy": None}):
        with pytest.raises(BufferError) as raised:
            ah.adapt(library, **options)(lambda x: x)(x)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]
    return errors[0]


def test_error_does_not_suggest_copy_if_a_copy_fails_too():
    torch, pa = pytest.importorskip("torch"), pytest.importorskip("pyarrow")
    assert "has 1 missing value" in refused(pa.array([1, None]))
    assert "requires_grad" in refused(torch.ones(3, requires_grad=True))
    assert "does not have a code" in refused(np.zeros(3, "M8[s]"), "torch")


def test_error_suggests_copy_if_a_copy_succeeds():
    pytest.importorskip("torch")
    same = ah.adapt("torch", copy=None)(lambda x: x)
    with pytest.raises(BufferError, match="Pass copy=None to arrayhub.adapt"):
        ah.adapt("torch", copy=False)(lambda x: x)(np.arange(3)[::-1])
    assert same(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    with pytest.raises(BufferError, match="Pass copy=None to arrayhub.adapt"):
        ah.adapt("torch", copy=False)(lambda x: x)(np.arange(3, dtype=">i4"))
    assert same(np.arange(3, dtype=">i4")).tolist() == [0, 1, 2]


def test_error_suggests_copy_for_sparse_arguments():
    sparse, torch = pytest.importorskip("scipy.sparse"), pytest.importorskip("torch")
    given = sparse.random_array((3, 3), density=0.9, format="coo", rng=1)
    given.coords = tuple(part.astype("int32") for part in given.coords)
    with pytest.raises(BufferError, match="Pass copy=None to arrayhub.adapt"):
        ah.adapt("torch", copy=False)(lambda x: x)(given)
    assert type(ah.adapt("torch", copy=None)(lambda x: x + x)(given)) is type(given)
    with pytest.raises(BufferError, match="requires_grad") as raised:
        ah.adapt("numpy")(lambda x: x)(torch.eye(3).to_sparse_csr().requires_grad_())
    assert "copy=" not in str(raised.value)


def test_error_for_unknown_library_starts_with_adapt():
    with pytest.raises(ValueError, match="^adapt: to is 'foo'"):
        ah.adapt("foo")


def test_decorator_without_parentheses_raises():
    with pytest.raises(TypeError, match=r'adapt: to is <function .*Write @arrayhub\.adapt\("numpy"\)'):

        @ah.adapt
        def blur(x):
            return x


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
        with pytest.raises(OverflowError, match="out of the range of"):
            convert(x)
    with pytest.raises(OverflowError, match="^far: the result: "):
        ah.adapt("numpy")(far)(x)


def far(x):
    return np.array([2**40])


def test_index_results_reach_callers_of_jax():
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.array([3.0, 1.0, 2.0])
    assert ah.adapt("numpy")(np.argsort)(x).tolist() == [1, 2, 0]
    (found,) = ah.adapt("numpy")(np.nonzero)(x)
    assert isinstance(found, type(x)) and found.tolist() == [0, 1, 2]
    assert ah.adapt("numpy")(np.mean)(x) == 2


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


@pytest.mark.parametrize("call", ["f(x, w=w)", "f(x=x, w=w)", "f(w=w, x=x)", "f(x, 2, w=w)", "f(x, k=2, w=w)"])
def test_requests_are_found_by_position_and_keyword(call):
    R = Annotated[np.ndarray, ah.Request("n * float64", may="build")]

    @ah.adapt("numpy")
    def f(x: R, k=1, *, w: R):
        assert type(x) is type(w) is np.ndarray
        return x * w

    assert eval(call, {"f": f, "x": [1.0, 2.0], "w": [3.0, 4.0]}).tolist() == [3.0, 8.0]


def test_invalid_arguments_raise_the_error_of_the_function():
    @ah.adapt("numpy")
    def f(x: Annotated[np.ndarray, ah.Request("float64")]):
        return x

    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'x'"):
        f()
    with pytest.raises(TypeError, match=r"f\(\) got an unexpected keyword argument 'y'"):
        f(np.ones(2), y=1)


def test_tuples_beside_an_array_pass_through():
    torch = pytest.importorskip("torch")

    @ah.adapt("numpy")
    def total(x, axis=None, weights=None):
        return x.sum(axis=axis) if weights is None else (x * weights).sum(axis=axis)

    assert total(torch.ones(2, 3), axis=(0, 1)) == 6
    weighted = total(torch.ones(2, 3), (0,), weights=[np.float64(1.0), 2.0, 3.0])
    assert isinstance(weighted, torch.Tensor) and weighted.tolist() == [2, 4, 6]


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


def test_methods_and_async_functions_can_be_adapted():
    torch = pytest.importorskip("torch")

    class Model:
        @ah.adapt()
        def double(self, x):
            return x * 2

    @ah.adapt()
    async def later(x):
        return x

    assert isinstance(Model().double(torch.ones(2)), torch.Tensor)
    assert isinstance(asyncio.run(later(torch.ones(2))), torch.Tensor)


def test_objects_that_are_not_plain_functions_raise_at_decoration():
    def generator(x):
        yield x

    async def async_generator(x):
        yield x

    for what in (generator, async_generator, int, 3):
        with pytest.raises(TypeError, match="adapt: .*accepted: functions"):
            ah.adapt()(what)
    with pytest.raises(ValueError, match="accepted: numpy"):
        ah.adapt("numpi")
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

    def unknown(x: "Annotated[np.ndarray, Missing('float64')]", y: "Absent"):  # noqa: F821
        return x

    for function, parameter in ((several, r"\*xs: .*"), (listed, "xs: list.*"), (classes, "x: .*Request.*")):
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


def test_masked_arrays_are_returned_unchanged_to_callers_of_numpy():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    adapted = ah.adapt("numpy", copy=None)(lambda x: (masked, x))
    for x in (np.ones(2), [1.0, 2.0], memoryview(np.ones(2)), ah.asarray(np.ones(2)).__array__()):
        assert adapted(x)[0] is masked
    pl = pytest.importorskip("polars")
    assert adapted(pl.Series([1.0, 2.0]))[0].to_list() == [1.0, None]


def test_error_for_missing_values_names_missing_of_adapt():
    pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    ak = pytest.importorskip("awkward")
    numbers = [
        pl.Series([1, None]), pa.array([1, None]), ak.Array([1, None]), [1, None], pd.Series([1, None], dtype="Int64"),
        ah.asnested([1, None]), pl.DataFrame({"a": [1, None]}),
    ]  # fmt: skip
    hint = "Pass missing='nan' or missing=value to arrayhub.adapt, which replaces missing values$"
    for options in ({}, {"copy": None}):
        for x in numbers:
            with pytest.raises((TypeError, ValueError, BufferError), match=f"^<lambda>: x: .*{hint}"):
                ah.adapt("numpy", **options)(lambda x: x)(x)
    numbers.append(np.ma.masked_array([1.0, 2.0], [False, True]))
    for x in numbers:
        assert ah.adapt("numpy", copy=None, missing=0)(lambda x: x.ravel().tolist())(x) == [1, 0]
    ragged = pl.Series([[1], None])  # "nan" cannot replace a list
    with pytest.raises(BufferError) as raised:
        ah.adapt("numpy", copy=None)(lambda x: x)(ragged)
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


def test_lazy_results_are_returned_unchanged():
    lazy = pytest.importorskip("dask.array").ones(3)
    assert ah.adapt("numpy", copy=None)(lambda x: lazy)(np.ones(3)) is lazy


def test_types_of_containers_in_the_result_are_kept():
    torch = pytest.importorskip("torch")
    adapted = ah.adapt("torch", copy=None)
    for x in (torch.tensor([2, 1]), np.array([2, 1])):
        found = adapted(lambda x: torch.sort(x))(x)
        assert type(found) is torch.return_types.sort and type(found.values) is type(x)
        assert found.values.tolist() == [1, 2] and found.indices.tolist() == [1, 0]
        given = collections.defaultdict(list, a=torch.ones(2), b=3)
        made = adapted(lambda x, given=given: given)(x)
        assert type(made) is collections.defaultdict and made.default_factory is list and list(made) == ["a", "b"]
        assert type(made["a"]) is type(x) and made["b"] == 3
        assert type(given["a"]) is torch.Tensor
        ordered = adapted(lambda x: collections.OrderedDict(b=x, a=x))(x)
        assert type(ordered) is collections.OrderedDict and list(ordered) == ["b", "a"]


def test_xarray_functions_receive_and_return_coordinates():
    xr = pytest.importorskip("xarray")
    array = xr.DataArray(np.arange(3.0), dims="t", coords={"t": [10, 20, 30]}, name="n", attrs={"unit": "m"})
    made = ah.convert(array, "xarray")
    assert made.identical(array) and np.shares_memory(made.values, array.values)
    assert ah.adapt("xarray")(lambda x: x[::-1])(array).identical(array[::-1])
    assert ah.adapt("xarray")(lambda x: x.sel(t=[30, 10]))(array).coords["t"].values.tolist() == [30, 10]


def test_values_of_a_counter_in_the_result_are_kept():
    torch = pytest.importorskip("torch")
    counts = collections.Counter("abca")
    assert ah.adapt("numpy")(lambda x: counts)(torch.ones(2)) is counts
    made = ah.adapt("numpy")(lambda x: collections.Counter(a=x, b=2))(torch.ones(2))
    assert type(made) is collections.Counter and type(made["a"]) is torch.Tensor and made["b"] == 2


def test_attributes_of_tuples_are_kept():
    torch = pytest.importorskip("torch")
    pair = type("Measured", (Pair,), {})(torch.ones(2), 1)
    pair.unit = "m"
    made = ah.adapt("numpy")(copy.copy)(pair)
    assert made is not pair and type(made.low) is torch.Tensor and made.unit == "m"


class Sealed(dict):
    def __setitem__(self, key, value):
        raise TypeError("sealed")


def test_mapping_in_the_result_that_cannot_be_changed_becomes_a_dict():
    torch = pytest.importorskip("torch")
    made = ah.adapt("numpy")(lambda x: Sealed(a=x))(torch.ones(2))
    assert type(made) is dict and type(made["a"]) is torch.Tensor


def test_struct_sequence_without_arrays_is_returned_unchanged():
    torch = pytest.importorskip("torch")
    status = os.stat(".")
    assert ah.adapt("numpy")(lambda x: status)(torch.ones(2)) is status


def test_errors_have_the_fields_of_the_refusal():
    torch = pytest.importorskip("torch")
    same = ah.adapt("numpy")(lambda x: x)
    with pytest.raises(ah.Refusal) as raised:
        same(torch.ones(2, requires_grad=True))
    refusal = raised.value
    assert refusal.subject.startswith("<lambda>: x") and "requires_grad" in refusal.reason
    assert eval(refusal.call, {"arrayhub": ah, "x": torch.ones(2, requires_grad=True)}).tolist() == [1, 1]


def test_request_does_not_detach_a_tensor_of_another_library():
    torch = pytest.importorskip("torch")

    @ah.adapt("numpy")
    def double(x: Annotated[Any, ah.Request("n * float64")]):
        return x * 2

    with pytest.raises(ah.Refusal, match="double: x: torch: requires_grad is True"):
        double(torch.ones(2, dtype=torch.float64, requires_grad=True))
