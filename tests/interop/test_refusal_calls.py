"""The call in a refusal is the call of `explain`, and it works: for every producer of dense and nested arrays."""

import contextlib
import datetime
import functools
import importlib
import io
import subprocess
import sys
import textwrap
import time
import tracemalloc
import types

import numpy as np
import pytest
from matrix.elements import ELEMENTS
from matrix.layouts import LAYOUTS
from matrix.nested import KINDS
from matrix.nested import PRODUCERS as NESTED_PRODUCERS
from matrix.producers import PRODUCERS, installed

import arrayhub as ah

pytestmark = pytest.mark.slow

DENSE_TARGETS = ("numpy", "torch", "jax", "cupy", "dpnp", "numba")
IMPORTS = {"arrayhub": ah.asarray, "arrayhub.NestedArray": ah.asnested, "arrayhub.SparseArray": ah.assparse}
TARGETS = (*DENSE_TARGETS, "arrow", "polars", "pandas", "awkward", "xarray", *IMPORTS)


def called(call, x):
    """Return the result of a call that a refusal names for `x`."""
    names = ("jax", "numpy", "polars", "pyarrow", "scipy", "xarray")
    modules = {name: importlib.import_module(name) for name in names if f"{name}." in call}
    return eval(call, {"arrayhub": ah, "x": x, **modules})


def refusal_of(function, x):
    try:
        function(x)
    except (BufferError, TypeError, ValueError) as error:
        return error.with_traceback(None)  # whose frames keep the array alive
    return None


def faults_of(make, targets):
    """Return the faults of the refusals of an object that ``make()`` creates."""
    faults = []
    for to in targets:
        functions = functools.partial(ah.convert, to=to), IMPORTS.get(to) or getattr(ah, f"as_{to}", None)
        try:
            refusals = [refusal_of(function, make()) for function in filter(None, functions)]
        except ImportError:
            continue
        explained = ah.explain(make(), to)
        for refusal in filter(None, refusals):
            if not hasattr(refusal, "call"):
                faults.append(f"{to}: {type(refusal).__name__} without fields: {refusal}")
            elif refusal.call != explained.call:
                faults.append(f"{to}: error.call is {refusal.call!r}, explain(x, to).call is {explained.call!r}")
            elif not refusal.reason or refusal.reason not in str(refusal) or refusal.call not in str(refusal):
                faults.append(f"{to}: the text {refusal} lacks a field")
        if explained.call:
            try:
                assert called(explained.call, make()) is not None
            except Exception as error:
                faults.append(f"{to}: {explained.call} raises {type(error).__name__}: {error}")
    return faults


@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda producer: producer.name)
def test_calls_for_dense_arrays_work(producer):
    if not installed(producer) or "capsule" in producer.name:
        pytest.skip("the library is not installed, or the array can be imported once")
    faults = []
    for element, layout in producer.pairs():
        kept = producer.make(ELEMENTS[element], LAYOUTS[layout])  # one object, because the address decides for jax
        faults += [f"{element} {layout} {fault}" for fault in faults_of(lambda kept=kept: kept.obj, TARGETS)]
        close = kept.close
        del kept
        with contextlib.suppress(BufferError):
            close()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("producer", NESTED_PRODUCERS, ids=lambda producer: producer.name)
def test_calls_for_nested_arrays_work(producer, request):
    pytest.importorskip(producer.library)
    if "USM" in producer.name:
        request.getfixturevalue("sycl")
    faults = []
    for kind in producer.kinds:
        faults += [f"{kind} {fault}" for fault in faults_of(lambda kind=kind: producer.make(KINDS[kind]).obj, TARGETS)]
    assert not faults, "\n".join(faults)


def test_calls_for_the_sources_of_nested_data_work():
    sources = pytest.importorskip("nested_sources").SOURCES
    faults = [f"{name} {fault}" for name, make in sources.items() for fault in faults_of(make, TARGETS)]
    assert not faults, "\n".join(faults)


def test_calls_of_refused_copies_of_nested_data_work():
    sources = pytest.importorskip("nested_sources").SOURCES
    refused = []
    for name, make in sources.items():
        for to in set(TARGETS) - {"cupy", "arrayhub.SparseArray"}:  # without a GPU, no call creates arrays of cupy
            try:
                ah.convert(make(), to, copy=True)
            except ImportError:
                continue
            except (BufferError, TypeError, ValueError) as error:
                refused.append((name, to, error.call))
    assert refused
    without = {(name, to) for name, to, call in refused if not call}
    times = ("pa time", "pa timestamp", "pd datetime", "np times of 10 s", "np durations in another byte order")
    assert without <= {(name, "jax") for name in times}  # jax has no times
    for name, to, call in refused:
        assert (name, to) in without or called(call, sources[name]()) is not None, (name, to)


CATEGORIES = {
    "numbers": ([30, 10, 30], "numpy"),
    "fractions with a missing one": ([1.5, None, 0.5], "numpy"),
    "numbers for torch": ([30, 10, 30], "torch"),
    "times": (np.array(["2020-01-01", "2021-01-01"], "M8[us]").tolist(), "numpy"),
}


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
@pytest.mark.parametrize("name", CATEGORIES)
def test_call_for_categories_that_are_numbers_returns_them(name, library):
    pandas, pyarrow, _ = map(pytest.importorskip, ("pandas", "pyarrow", "torch"))
    values, to = CATEGORIES[name]
    x = pandas.Series(values).astype("category") if library == "pandas" else pyarrow.array(values).dictionary_encode()
    refusal = refusal_of(functools.partial(ah.convert, to=to), x)
    made = called(refusal.call, x).tolist()
    assert refusal.call == ah.explain(x, to).call and [None if v != v else v for v in made] == values


def test_fields_of_a_refusal():
    torch = pytest.importorskip("torch")
    with pytest.raises(ah.Refusal) as raised:
        ah.as_torch(np.arange(3)[::-1])
    error = raised.value
    assert isinstance(error, BufferError)
    assert (error.subject, error.reason, error.accepted) == ("torch", "negative strides are not supported", "")
    assert str(error) == "torch: negative strides are not supported. Call arrayhub.as_torch(x, copy=True)"
    assert torch.equal(called(error.call, np.arange(3)[::-1]), torch.tensor([2, 1, 0]))


def test_errors_of_other_classes_have_the_same_fields():
    with pytest.raises(TypeError) as raised:
        ah.as_numpy(object())
    assert isinstance(raised.value, ah.Refusal) and raised.value.reason and raised.value.call == ""

    class Producer:
        @property
        def __array_interface__(self):
            return {"version": 3, "shape": (2,), "typestr": "<f8", "data": (-8, False)}

    with pytest.raises(ah.InterfaceError) as raised:
        ah.asarray(Producer())
    error = raised.value
    assert error.subject == "__array_interface__" and error.accepted == "an address from 0 to 2**63 - 1"


def first_hours():
    """Return objects of new users for which an error named a call that failed, by description."""
    pd, pa, _ = map(pytest.importorskip, ("pandas", "pyarrow", "torch"))
    import decimal

    zoned = pd.Series(pd.to_datetime(["2020-01-01", None])).dt.tz_localize("UTC")
    return {
        "a frame of bool and float": pd.DataFrame({"age": [22.0, 38.0], "male": [True, False]}),
        "decimals": pd.Series([decimal.Decimal("1.5"), None]),
        "zoned times": zoned,
        "several chunks": pa.chunked_array([[1], [2]]),
        "ragged lists with a missing value": pa.array([[1.0, None], [2.0]]),
        "equal lists with a missing value": pa.array([[1.0, None], [2.0, 3.0]]),
        "structured": np.zeros(2, [("a", "i4"), ("b", "f8")]),
        "categories": pd.Series(["a", "b"], dtype="category"),
        "categories of Arrow": pa.array(["a", "b"]).dictionary_encode(),
        "objects": np.array([1, None], object),
        "64 bits": np.arange(3.0),
    }


@pytest.mark.parametrize("to", ["numpy", "torch", "jax"])
def test_calls_for_the_objects_of_new_users_work(to):
    for name, x in first_hours().items():
        if name == "zoned times" and to == "jax":
            continue  # jax has neither times nor, by default, integers of 64 bits
        explained = ah.explain(x, to)
        assert explained.call, (name, explained)
        assert called(explained.call, x) is not None
        assert f"as_{to}(" in explained.call or to == "jax", (name, explained.call)


def without_call():
    """Return objects that no call converts to a library, and the library, by description."""
    astropy = pytest.importorskip("astropy.utils.masked")
    pd = pytest.importorskip("pandas")
    return {
        "integers beyond 64 bits": (np.array([2**70], object), "numpy"),
        "integers beyond 64 bits to Arrow": (np.array([2**70], object), "arrow"),
        "integers of two signs beyond 63 bits": ([2**63, -1], "arrow"),
        "a list of Series": ([pd.Series([1]), pd.Series([2])], "polars"),
        "a mask without missing values": (astropy.Masked(np.ones(2), [True, False]), "numpy"),
        "an integer among floats": ([2**53 + 1, 0.5], "torch"),
    }


def test_no_call_is_named_if_none_works():
    for name, (x, to) in without_call().items():
        for copy in (False, None, True):
            with pytest.raises((BufferError, TypeError, ValueError, OverflowError)) as raised:
                ah.convert(x, to, copy=copy)
            assert raised.value.call == "", (name, raised.value.call)


def test_call_on_sparse_array_with_another_fill_value_is_dense():
    sparse = pytest.importorskip("sparse")
    x = sparse.COO([[0], [0]], [5.0], (2, 2), fill_value=1.0)
    with pytest.raises(BufferError) as raised:
        ah.as_numpy(x)
    assert raised.value.call == ah.explain(x, "numpy").call == "arrayhub.as_numpy(x.todense())"
    assert called(raised.value.call, x).tolist() == [[5, 1], [1, 1]]


def test_times_that_a_library_would_cast_are_refused_without_copy():
    for to in ("pandas", "xarray"):
        pytest.importorskip(to)
        for times in (np.array(["2020-01-01"], "M8[D]"), np.array([1, 2], ">m8[ns]"), np.array([1], "M8[10s]")):
            with pytest.raises(BufferError) as raised:
                ah.convert(times, to)
            assert raised.value.call == ah.explain(times, to).call
            for made in (called(raised.value.call, times), ah.convert(times, to, copy=None)):
                assert made.dtype.isnative and (np.asarray(made) == times).all()


def table_of(*integers):
    return pytest.importorskip("pyarrow").table({"a": integers, "b": [0.5] * len(integers)})


# Objects whose values decide about a conversion, and the library, by description.
OUT_OF_RANGE = {
    "days beyond date32": (lambda: np.array(["6000000-01-01"], "M8[D]"), "arrow"),
    "days beyond date32, polars": (lambda: np.array(["6000000-01-01"], "M8[D]"), "polars"),
    "a table that float64 would round": (lambda: table_of(2**62 + 1), "numpy"),
    "a long table": (lambda: table_of(*[0] * 3000, 2**62 + 1), "numpy"),
    "a table for torch": (lambda: table_of(2**62 + 1), "torch"),
    "numbers beyond int32": (lambda: [2**40, 1], "jax"),
    "many numbers beyond int32": (lambda: [*[1] * 3000, 2**40], "jax"),
    "numbers beyond float32": (lambda: [1e300], "jax"),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_errors_about_values_have_fields_and_a_call_that_works_or_none(name):
    make, to = OUT_OF_RANGE[name]
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    x = make()
    if to == "jax" and sys.modules["jax"].config.jax_enable_x64:
        pytest.skip("jax has 64 bits")
    with pytest.raises(OverflowError) as raised:
        ah.convert(x, to, copy=True)
    error = raised.value
    assert isinstance(error, ah.Refusal) and error.reason
    if error.call:
        assert called(error.call, x) is not None
    if error.call != ah.explain(x, to).call:  # the type, the layout and the first values do not show the obstacle
        (verdict,) = ah.explain(x, to).verdicts
        assert "OverflowError" in verdict.reason or "are refused" in verdict.reason


def test_time_zones_that_polars_does_not_know_are_refused_by_both():
    pa, _ = map(pytest.importorskip, ("pyarrow", "polars"))
    for zone in ("No/Where", "-05:30"):
        x = pa.array([1, 2], pa.timestamp("us", zone))
        for copy in (False, True):
            with pytest.raises(ah.Refusal) as raised:
                ah.as_polars(x, copy=copy)
            assert raised.value.call == ah.explain(x, "polars").call == "arrayhub.as_arrow(x)"
            assert called(raised.value.call, x).equals(x)


def test_modules_that_are_known_by_from_dlpack_have_no_call(monkeypatch):
    def refuse(x):
        raise RuntimeError("no arrays today")

    module = types.ModuleType("refusing_module")
    module.from_dlpack = refuse
    monkeypatch.setitem(sys.modules, "refusing_module", module)
    for x in (np.zeros(3), [1.0, 2.0]):
        for copy in (False, None, True):
            with pytest.raises(ah.Refusal, match="refusing_module.from_dlpack rejects .*: no arrays today") as raised:
                ah.convert(x, module, copy=copy)
            (verdict,) = ah.explain(x, to=module).verdicts
            assert raised.value.call == ah.explain(x, to=module).call == verdict.call == ""
            assert verdict.verdict == "not tried" and "from_dlpack decides" in verdict.reason


def test_calls_for_lazy_objects_compute_them():
    xr, da = pytest.importorskip("xarray"), pytest.importorskip("dask.array")
    lazy = da.ones((2, 3))
    assert ah.explain(lazy, to="torch").call == "arrayhub.as_torch(x.compute())"
    assert called(ah.explain(lazy, to="torch").call, lazy).shape == (2, 3)
    dataset = xr.Dataset({"a": ("x", [1.0, 2.0]), "b": ("x", [3.0, 4.0])})
    for x in (lazy, dataset):
        for to in ("numpy", "torch", "jax", "pandas"):
            with pytest.raises(ah.Refusal) as raised:
                ah.convert(x, to)
            assert raised.value.call == ah.explain(x, to).call != ""
        assert called(ah.explain(x, "numpy").call, x).shape == (2, 3 if x is lazy else 2)


def test_explain_does_not_read_elements():
    """The page of the array cannot be read, so reading an element would end the process."""
    code = """
    import ctypes, mmap
    import numpy as np
    import arrayhub as ah

    page = mmap.mmap(-1, mmap.PAGESIZE)
    memory = np.frombuffer(page, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(memory.ctypes.data), mmap.PAGESIZE, 0) == 0
    for dtype in ("S3", "U3", "f4", "M8[D]", "i4,f8", "?"):
        x = np.ndarray((2, 2), dtype, page) if dtype == "S3" else np.ndarray(4, dtype, page)
        print(ah.explain(x))
        for to in ("numpy", "torch", "jax", "arrow", "polars", "pandas", "awkward", "xarray"):
            ah.explain(x, to)
    print("alive")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stdout.endswith("alive\n"), done.stderr


def test_explain_does_not_copy_or_convert():
    pa = pytest.importorskip("pyarrow")
    row = pa.array([[1, None, 3], None])
    many = pa.concat_arrays([row] * 100_000)
    before = pa.total_allocated_bytes()
    ah.explain(many, "numpy")
    with ah.trace() as events:
        started = time.perf_counter()
        for to in ("numpy", "torch", "arrow", "awkward"):
            ah.explain(many, to)
        assert time.perf_counter() - started < 10  # no limit on speed, but a conversion of all rows takes longer
    assert pa.total_allocated_bytes() - before < 100_000
    assert not [event for event in events.events if event.kind == "copy"]


def awkward_option(n):
    """Return an awkward array of n elements in which every other element is missing."""
    ak = pytest.importorskip("awkward")
    index = ak.index.Index64(np.where(np.arange(n) % 2, -1, np.arange(n)))
    return ak.Array(ak.contents.IndexedOptionArray(index, ak.contents.NumpyArray(np.ones(n))))


# Objects of n elements, and a limit on the bytes that `explain` allocates for an element. A mask takes one.
ALLOCATED = {
    "Int64": (lambda pd, n: pd.Series(pd.array([1, None] * (n // 2), dtype="Int64")), 4),
    "Int64, last missing": (lambda pd, n: pd.Series(pd.array([1] * (n - 1) + [None], dtype="Int64")), 1.5),
    "boolean": (lambda pd, n: pd.Series(pd.array([True, None] * (n // 2), dtype="boolean")), 4),
    "frame": (lambda pd, n: pd.DataFrame({"a": np.arange(n), "b": np.ones(n)}), 4),
    "strings and numbers": (lambda pd, n: pd.DataFrame({"a": np.arange(n), "b": ["x"] * n}), 4),
    "awkward": (lambda pd, n: awkward_option(n), 0.5),
}


@pytest.mark.parametrize("name", ALLOCATED)
def test_explain_allocates_less_than_a_copy(name):
    n, (make, limit) = 500_000, ALLOCATED[name]
    x = make(pytest.importorskip("pandas"), n)
    ah.explain(x)
    pool = pytest.importorskip("pyarrow").system_memory_pool()
    tracemalloc.start()
    try:
        ah.explain(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak + pool.bytes_allocated() < limit * n


REFUSED_VALUES = {
    "None": lambda: [1, None],
    "rows": lambda: [[1], [1, 2]],
    "dicts": lambda: [{"a": 1}],
    "times": lambda: [datetime.datetime(2020, 1, 1)],
    "objects": lambda: np.array([1, 2], object),
    "mask": lambda: np.ma.masked_array([1.0, 2.0], [False, True]),
    "masked records": lambda: np.ma.array([(1, 2.0)], mask=[(0, 1)], dtype="i4,f8"),
    "masked number": lambda: np.ma.array(1.0, mask=True),
    "numbers and strings": lambda: [1, None, "a"],
    "dicts and numbers": lambda: [{"a": 1}, 3],
    "times and numbers": lambda: [datetime.datetime(2020, 1, 1), 1],
    "rows and numbers": lambda: [[1], 2],
    "integers beyond 64 bits and 1": lambda: [2**70, 1],
    "integers below 64 bits and 1": lambda: [-(2**63) - 1, 1],
    "objects beyond 64 bits and 1": lambda: np.array([2**70, 1], object),
    "objects of two signs and 64 bits": lambda: np.array([2**63, -1], object),
    "rows of integers beyond 64 bits and 1": lambda: [[1], [2**70, 2]],
    "dicts and their keys that are integers": lambda: [{1: 2}],
    "times and dates": lambda: [datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)],
}


@pytest.mark.parametrize("name", REFUSED_VALUES)
def test_values_that_asarray_refuses_have_the_call_of_explain(name):
    x = REFUSED_VALUES[name]()
    with pytest.raises(ah.Refusal) as raised:
        ah.asarray(x)
    assert raised.value.call == ah.explain(x, to="arrayhub").call
    assert bool(raised.value.call) == (" and " not in name and not name.startswith("masked"))
    if raised.value.call:
        assert len(called(raised.value.call, x)) == len(x)


def test_bytes_of_whole_elements_have_a_call_for_the_elements():
    for n in (7, 8):
        for function in (ah.asarray, ah.as_numpy, ah.asnested):
            with pytest.raises(ah.Refusal) as raised:
                function(bytes(n), dtype="f4")
            call = "arrayhub.asarray(x).view('f4')" if n == 8 else f"arrayhub.{function.__name__}(x)"
            assert raised.value.call == call and called(call, bytes(n)) is not None
    assert called("arrayhub.asarray(x).view('f4')", bytes(8)).shape == (2,)
    backwards = memoryview(bytes(8))[::-1]
    refusal = refusal_of(functools.partial(ah.asarray, dtype="f4"), backwards)
    assert called(refusal.call, backwards).shape == (2,)


def test_no_call_is_named_for_awkward_arrays_without_values():
    ak = pytest.importorskip("awkward")
    for values in ([[1, 2], [3]], [1, 2]):
        x = ak.Array(ak.to_layout(ak.Array(values)).to_typetracer())
        for function in (ah.asarray, ah.asnested, ah.as_numpy, ah.as_torch, ah.as_arrow):
            with pytest.raises(ah.Refusal) as raised:
                function(x)
            assert raised.value.call == "" and "arrayhub.asnested(x)" not in str(raised.value), function


@pytest.mark.parametrize("to", ["numpy", "torch", "jax", "arrow"])
def test_calls_for_types_that_only_polars_or_pandas_defines_work(to):
    pl, pd, xr = map(pytest.importorskip, ("polars", "pandas", "xarray"))
    for x in (*(pl.Series([1, y], dtype=pl.Int128) for y in (2, None)), xr.DataArray(pd.arrays.SparseArray([0, 1]))):
        with pytest.raises((ah.Refusal, TypeError)) as raised:
            ah.convert(x, to)
        assert raised.value.call == ah.explain(x, to).call
        assert len(called(raised.value.call, x)) == 2


def test_errors_of_missing_have_fields():
    for function, missing in ((ah.asarray, "mask"), (ah.asnested, "mask"), (ah.asnested, "nan"), (ah.asnested, "a")):
        with pytest.raises(ah.Refusal) as raised:
            function([1, None], missing=missing)
        assert raised.value.subject == "missing" and raised.value.reason and raised.value.accepted


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what NumPy 2.5 deprecates
def test_times_that_xarray_refuses_have_no_call():
    pytest.importorskip("xarray")
    for dtype in ("m8", "M8"):
        with pytest.raises(ah.Refusal) as raised:
            ah.convert(np.array(["NaT"], dtype), "xarray")
        assert raised.value.call == ""


def _sparse_column(fill):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(pandas.arrays.SparseArray([0, 1, 1], fill_value=fill))


def _meter():
    return pytest.importorskip("astropy.units").m


def _dask_frame(**columns):
    frame = pytest.importorskip("pandas").DataFrame({"a": [1, 2], **columns})
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=1)


# Objects for which an error named a call that fails, or no call where one works: the call for each library.
REFUSED = {
    "field of packed records": (
        lambda: np.zeros(3, [("a", "f4"), ("b", "i2")])["a"],
        dict.fromkeys(("torch", "jax", "arrow", "polars"), "arrayhub.as_{to}(x, copy=True)"),
    ),
    "integers of two signs beyond 63 bits": (
        lambda: [2**63, -1],
        dict.fromkeys(("arrow", "polars", "pandas", "awkward"), ""),
    ),
    "number and array of no dimension": (lambda: [np.array(1.0), 2], dict.fromkeys(("arrow", "polars"), "")),
    "sparse tensor of 0 dimensions": (
        lambda: pytest.importorskip("torch").tensor(3.0).to_sparse(),
        {"scipy": "arrayhub.assparse(x).to_dense()"},
    ),
    "sparse array of pandas": (
        lambda: pytest.importorskip("pandas").arrays.SparseArray([0, 1]),
        {"scipy": "arrayhub.as_scipy(arrayhub.as_pandas(x).to_frame().sparse.to_coo())"},
    ),
    "text that ends in NUL": (lambda: ["a\0"], {"numpy": "arrayhub.as_numpy(arrayhub.asnested(x), copy=True)"}),
    "text with surrogates": (lambda: ["\ud800"], dict.fromkeys(("arrow", "polars"), "")),
    "list of arrays with missing elements": (
        lambda: [pytest.importorskip("pyarrow").array([1, None])] * 2,
        {"arrow": "arrayhub.as_arrow(arrayhub.asnested([arrayhub.asnested(row).to_list() for row in x]))"},
    ),
    "sparse matrix of pyarrow": (
        lambda: pytest.importorskip("pyarrow").SparseCSRMatrix.from_dense_numpy(np.eye(2, dtype="f4")),
        {"numpy": "arrayhub.as_numpy(x.to_tensor())", "jax": "arrayhub.as_jax(x.to_tensor(), copy=True)", "scipy": ""},
    ),
    "sparse matrix of pyarrow, float64": (
        lambda: pytest.importorskip("pyarrow").SparseCSRMatrix.from_dense_numpy(np.eye(2)),
        {"jax": "arrayhub.as_jax(x.to_tensor(), dtype='float32')"},
    ),
    "sparse matrix with too many columns": (
        lambda: pytest.importorskip("scipy.sparse").coo_array(([1.0], ([0], [2**40])), shape=(2, 2**41)),
        {**dict.fromkeys(("jax", "numpy", "arrow"), ""), "torch": "arrayhub.as_torch(x, copy=True)"},
    ),
    "image of bits": (
        lambda: pytest.importorskip("PIL.Image").new("1", (3, 2)),
        {**dict.fromkeys(("numpy", "torch", "jax", "arrow"), "arrayhub.as_{to}(x, copy=True)"), "scipy": ""},
    ),
    "frame of sparse columns": (
        lambda: _sparse_column(0).to_frame("a"),
        {
            **dict.fromkeys(("numpy", "torch"), "arrayhub.as_{to}(x.to_numpy(copy=True))"),
            **dict.fromkeys(("arrow", "polars"), "arrayhub.as_{to}(x.sparse.to_dense())"),
            "scipy": "arrayhub.as_scipy(x.sparse.to_coo())",
        },
    ),
    "sparse column": (
        lambda: _sparse_column(0),
        {"numpy": "arrayhub.as_numpy(x.to_numpy())", "scipy": "arrayhub.as_scipy(x.to_frame().sparse.to_coo())"},
    ),
    "sparse column with another fill value": (
        lambda: _sparse_column(1),
        {"numpy": "arrayhub.as_numpy(x.to_numpy())", "scipy": ""},
    ),
    "quantity with a mask": (
        lambda: pytest.importorskip("astropy.utils.masked").Masked([1.0, 2.0], mask=[True, False]) << _meter(),
        dict.fromkeys(("numpy", "torch", "polars"), ""),
    ),
    "table with masked columns": (
        lambda: pytest.importorskip("astropy.table").Table({"a": np.ma.masked_array([1, 2], [0, 1])}),
        dict.fromkeys(("numpy", "torch", "polars"), ""),
    ),
    "table of strings": (
        lambda: pytest.importorskip("astropy.table").Table({"a": ["x", "y"]}),
        {"torch": "arrayhub.asnested(x.as_array())"},
    ),
    "column of dask": (
        lambda: _dask_frame()["a"],
        {"polars": "arrayhub.as_polars(x.compute())", "torch": "arrayhub.as_torch(x.compute(), copy=True)"},
    ),
    "index of several levels": (
        lambda: pytest.importorskip("pandas").MultiIndex.from_product([[1, 2], ["a"]]),
        {**dict.fromkeys(("polars", "arrow", "pandas"), "arrayhub.as_{to}(x.to_frame(index=False))"), "numpy": ""},
    ),
    "query of narwhals": (
        lambda: pytest.importorskip("narwhals").from_native(pytest.importorskip("polars").LazyFrame({"a": [1.0]})),
        {"polars": "arrayhub.as_polars(x.collect())", "arrow": "arrayhub.as_arrow(x.collect())"},
    ),
    "record": (lambda: {"a": 1}, {"arrow": "arrayhub.as_arrow(arrayhub.asnested([x]))"}),
    "frame of dask": (
        lambda: _dask_frame(),
        {"pandas": "arrayhub.as_pandas(x.compute())", "jax": "arrayhub.like(x.compute(), jax.numpy.zeros(0))"},
    ),
    "frame of dask with text": (lambda: _dask_frame(b=["x", "y"]), {"torch": "arrayhub.asnested(x.compute())"}),
    "image of bits for dpnp": (
        lambda: pytest.importorskip("PIL.Image").new("1", (3, 2)),
        {"dpnp": "arrayhub.as_dpnp(x, device='oneapi:0')"},
    ),
    "frame of PyAV": (
        lambda: pytest.importorskip("av").VideoFrame(5, 4, "yuv420p"),
        {"torch": "arrayhub.as_torch(x.to_ndarray(format='rgb24'))"},
    ),
    "null image of Qt": (lambda: pytest.importorskip("PySide6.QtGui").QImage(), {"numpy": ""}),
    "strings of zarr": (
        lambda: pytest.importorskip("zarr").create_array({}, shape=2, dtype="str"),
        {"torch": "arrayhub.asnested(x[...])"},
    ),
    "jax, integers of four bits": (
        lambda: pytest.importorskip("jax.numpy").array([1, -2], "int4"),
        {
            "numpy": "arrayhub.as_numpy(numpy.asarray(x))",
            **dict.fromkeys(("torch", "arrow", "polars"), "arrayhub.as_{to}(numpy.asarray(x), dtype='int8')"),
        },
    ),
    "list of arrays on a device": (
        lambda: [ah.ones(2, memory=pytest.importorskip("dpctl") and "usm_device")] * 2,
        dict.fromkeys(("numpy", "torch"), "arrayhub.asnested([arrayhub.to_host(row) for row in x])"),
    ),
    "list of numbers with units": (
        lambda: [pytest.importorskip("pint").Quantity(n, unit) for n, unit in ((1.0, "m"), (2.0, "cm"))],
        dict.fromkeys(("numpy", "torch", "polars", "arrayhub"), ""),
    ),
    "list of lists of tensors with a gradient": (
        lambda: [[pytest.importorskip("torch").ones(2, requires_grad=True)]] * 2,
        dict.fromkeys(("numpy", "torch", "polars", "arrayhub"), ""),
    ),
    "torch, layout of mkldnn": (
        lambda: pytest.importorskip("torch").ones(2).to_mkldnn(),
        {"numpy": "arrayhub.as_numpy(x.to_dense())", "jax": "arrayhub.as_jax(x.to_dense(), copy=True)"},
    ),
    "torch, zero tensor": (
        lambda: pytest.importorskip("torch")._efficientzerotensor((2,)),
        dict.fromkeys(("numpy", "arrow", "polars"), "arrayhub.as_{to}(x.clone())"),
    ),
    "quantity without dimensions": (
        lambda: pytest.importorskip("pint").Quantity(1.0, "m"),
        {
            "numpy": "arrayhub.as_numpy(x.magnitude)",
            **dict.fromkeys(("arrow", "polars"), "arrayhub.as_{to}(arrayhub.asarray(x.magnitude).reshape(-1))"),
        },
    ),
    "table of astropy": (
        lambda: pytest.importorskip("astropy.table").Table({"a": [1, 2], "b": [1.0, 2.0]}),
        dict.fromkeys(("arrow", "polars"), "arrayhub.as_{to}(x.as_array(), copy=True)"),
    ),
    "data of astropy": (
        lambda: pytest.importorskip("astropy.nddata").NDData(np.ones(2)),
        {"torch": "arrayhub.as_torch(x.data)", "jax": "arrayhub.as_jax(x.data, dtype='float32')"},
    ),
    "group of netCDF4": (
        lambda: pytest.importorskip("netCDF4").Dataset("x.nc", "w", memory=100),
        dict.fromkeys(("numpy", "pandas"), ""),
    ),
    "empty dataset of h5py": (
        lambda: pytest.importorskip("h5py").File(io.BytesIO(), "w").create_dataset("x", dtype="f4"),
        dict.fromkeys(("numpy", "torch"), ""),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_objects_have_this_call(name):
    make, calls = REFUSED[name]
    for to, call in calls.items():
        pytest.importorskip("pyarrow" if to == "arrow" else to)
        x = make()
        refusal, call = refusal_of(functools.partial(ah.convert, to=to), x), call.format(to=to)
        assert refusal.call == ah.explain(x, to).call == call, to
        assert not call or called(call, x) is not None, to


class Stored:
    """Array of a library such as zarr or h5py: no protocol exports it, and its slices are ndarrays."""

    shape, dtype, ndim = (2,), np.dtype(float), 1

    def __len__(self):
        return 2

    def __getitem__(self, key):
        return np.ones(2)[key]


# Columns of a dict, and whether a call exports the dict.
COLUMNS = {
    "several types": (lambda: [1, "x"], False),
    "integers beyond 64 bits": (lambda: [2**64], False),
    "objects": (lambda: np.array([object(), 1], object), False),
    "set": (lambda: {1, 2}, False),
    "generator": (lambda: (k for k in range(2)), False),
    "array in a file": (Stored, False),
    "number of no dimension": (lambda: np.array(1.0), False),
    "number": (lambda: 1, True),
    "complex": (lambda: [1j], True),
    "reversed": (lambda: np.arange(3)[::-1], True),
    "torch, gradient": (lambda: sys.modules["torch"].ones(2, requires_grad=True), False),
    "torch, without memory": (lambda: sys.modules["torch"].ones(2, device="meta"), False),
    "torch, conjugate": (lambda: sys.modules["torch"].tensor([1j]).conj(), True),
    "torch, negative": (lambda: sys.modules["torch"].tensor([1j]).conj().imag, True),
    "torch, bfloat16": (lambda: sys.modules["torch"].ones(2, dtype=sys.modules["torch"].bfloat16), True),
    "pyarrow, chunks": (lambda: sys.modules["pyarrow"].chunked_array([range(1500), range(1500)]), True),
    "dask": (lambda: sys.modules["dask.array"].ones(2), False),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_refused_columns_of_a_dict_have_a_call_that_works_or_none(name):
    make, works = COLUMNS[name]
    pytest.importorskip("dask.array" if name == "dask" else name.partition(",")[0] if "," in name else "numpy")
    for to in ("polars", "arrow", "pandas", "awkward", "numpy", "torch", "xarray"):
        pytest.importorskip("pyarrow" if to == "arrow" else to)
        assert faults_of(lambda: {"a": make()}, [to]) == []
        refusal = refusal_of(functools.partial(ah.convert, to=to), {"a": make()})
        assert refusal is None or bool(refusal.call) == works, (to, refusal)


def test_adapt_proposes_copies_of_a_field_of_packed_records():
    pytest.importorskip("torch")
    with pytest.raises(BufferError, match="copy=None"):
        ah.adapt("torch", copy=False)(lambda x: x)(np.zeros(3, [("a", "f4"), ("b", "i2")])["a"])


@pytest.mark.parametrize("to", ["arrow", "polars", "pandas", "awkward"])
def test_calls_of_refused_devices_work(to, sycl):
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    for x in (np.ones(2), [1, 2], ah.asnested([[1], [2, 3]])):
        with pytest.raises(ah.Refusal) as raised:
            ah.convert(x, to, device="oneapi:0")
        assert raised.value.call == ah.explain(x, to).call == f"arrayhub.as_{to}(x)"


def test_integers_that_a_table_rounds_have_no_call_with_missing():
    pl = pytest.importorskip("polars")
    x = pl.DataFrame({"a": [2**53 + 1, None], "b": [1.5, 2]})
    for missing in (0, "mask", "nan"):
        with pytest.raises(OverflowError) as raised:
            ah.as_numpy(x, missing=missing)
        assert raised.value.call == ""
    for column, missing in ((x["a"], "nan"), (pl.Series([1, None], dtype=pl.Float32), 1e300)):
        with pytest.raises(OverflowError) as raised:
            ah.as_numpy(column, missing=missing)
        assert called(raised.value.call, column) is not None


# Objects that only a copy converts to a class, and the class.
CLASSES = {
    "Array": lambda pa, pl, sp: (pa.chunked_array([[1], [2]]), pa.Array),
    "Int64Array": lambda pa, pl, sp: (pa.chunked_array([[1], [2]]), pa.Int64Array),
    "RecordBatch": lambda pa, pl, sp: (pa.concat_tables([pa.table({"a": [1]})] * 2), pa.RecordBatch),
    "csr_array": lambda pa, pl, sp: (sp.coo_array(np.eye(2)), sp.csr_array),
    "csc_matrix": lambda pa, pl, sp: (sp.csr_array(np.eye(2)), sp.csc_matrix),
    "DataFrame": lambda pa, pl, sp: (np.ones((2, 3)), pl.DataFrame),
    "LazyFrame": lambda pa, pl, sp: (np.ones((2, 3)), pl.LazyFrame),
}


@pytest.mark.parametrize("name", CLASSES)
def test_objects_that_a_copy_converts_to_a_class_have_this_call(name):
    x, cls = CLASSES[name](*map(pytest.importorskip, ("pyarrow", "polars", "scipy.sparse")))
    with pytest.raises(ah.Refusal) as raised:
        ah.convert(x, cls)
    call = raised.value.call
    assert call.endswith(f".{name}, copy=True)") and isinstance(called(call, x), cls)


def test_objects_that_no_copy_converts_to_a_class_raise_type_error():
    pa, sp = map(pytest.importorskip, ("pyarrow", "scipy.sparse"))
    for x, cls in ((pa.chunked_array([[1], [2]]), pa.StringArray), (sp.coo_array(np.ones((2, 2, 2))), sp.csr_array)):
        for copy in (False, None):
            with pytest.raises((TypeError, ValueError)):
                ah.convert(x, cls, copy=copy)
    assert ah.convert(pa.chunked_array([], pa.int64()), pa.Array).type == pa.int64()


@pytest.mark.parametrize("to", ["arrow", "polars", "pandas", "awkward"])
@pytest.mark.parametrize("dtype", ["U3", "S2", "M8[us]", "M8[10s]", "f4", ">i4"])
def test_calls_for_arrays_without_dimensions_work(dtype, to):
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    for make in (lambda: np.zeros((), dtype), lambda: ah.asarray(np.zeros((), dtype))):
        assert faults_of(make, [to]) == []
        assert ah.explain(make(), to).call


def test_no_call_converts_a_dense_object_to_a_sparse_array():
    torch, image = map(pytest.importorskip, ("torch", "PIL.Image"))
    for x in (torch.ones(2, requires_grad=True), image.new("1", (3, 2)), _dask_frame()):
        refusal = refusal_of(functools.partial(ah.convert, to=ah.SparseArray), x)
        assert refusal.call == ah.explain(x, ah.SparseArray).call == ""


LATE = {  # values after those that the search for a call reads
    "objects of two types": lambda: np.array([1] * 3000 + ["a"], object),
    "objects beyond 64 bits": lambda: np.array([1] * 3000 + [2**70], object),
    "objects of unequal rows": lambda: np.array([[1]] * 3000 + [[1, 2]], object),
    "column of two types": lambda: sys.modules["pandas"].Series([1] * 3000 + ["a"], dtype=object),
    "missing element": lambda: sys.modules["awkward"].Array([1] * 3000 + [None]),
    "texts and a number": lambda: ["a"] * 3000 + [1],
}


@pytest.mark.parametrize("name", LATE)
def test_refusal_does_not_name_the_call_that_failed(name):
    for library in ("awkward", "pandas", "polars", "torch", "jax"):
        pytest.importorskip(library)
    for to in set(TARGETS) - {"cupy", "dpnp", "arrayhub.SparseArray"}:
        function = IMPORTS[to].__name__ if to in IMPORTS else "convert" if to == "xarray" else f"as_{to}"
        for way in ("", "copy=None", "copy=True", "missing='nan'", "missing='nan', copy=True", "dtype='float64'"):
            made = ", ".join(filter(None, ("x", "'xarray'" if to == "xarray" else "", way)))
            refusal = refusal_of(functools.partial(called, f"arrayhub.{function}({made})"), LATE[name]())
            assert refusal is None or refusal.call != f"arrayhub.{function}({made})"
            assert refusal is None or refusal.subject != "asnested" or refusal.call != "arrayhub.asnested(x)"
