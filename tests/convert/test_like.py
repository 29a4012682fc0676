"""Test `like` with each pair of producers, labels, devices, element types, and models that are not arrays."""

import re

import numpy as np
import pytest
from matrix.elements import ELEMENTS
from matrix.layouts import LAYOUTS
from matrix.producers import PRODUCERS, installed

import arrayhub as ah

PREFERRED = ["float32", "uint8", "int8", "bfloat16", "record"]
NUMPY = "numpy.ndarray"

# Result types by the producer of the model. For models of other producers, the result is a NumPy array.
RESULTS = {
    "torch": "torch.Tensor",
    "jax": "jax.Array",
    "tvm-ffi": "tvm_ffi.Tensor",
    "array_api_strict": "array_api_strict._array_object.Array",
    "pyarrow.Array": "pyarrow.Array",
    "pyarrow.Buffer": "pyarrow.Array",
    "pyarrow.Tensor": "pyarrow.Tensor",
    **{f"{name} ({kind})": "dpnp.ndarray" for name in ("dpnp",) for kind in ("device", "shared", "host")},
    **{f"usm_ndarray ({kind})": "dpnp.tensor.usm_ndarray" for kind in ("device", "shared", "host")},
    **{f"MemoryUSM{kind}": "dpnp.ndarray" for kind in ("Device", "Shared", "Host")},
}


def type_named(name):
    module, _, attribute = name.rpartition(".")
    return getattr(__import__(module, fromlist=[attribute]), attribute)


def made(producer):
    element = next(name for name in PREFERRED if name in producer.elements)
    layout = next(name for name in ("C", "1-d", "0-d") if (element, name) in producer.pairs())
    return element, producer.make(ELEMENTS[element], LAYOUTS[layout])


def refused(element, shape, expected):
    """Return whether the array type `expected` cannot represent the element type or the shape."""
    if element == "record":
        return expected != NUMPY
    if element == "bfloat16":
        return expected not in (NUMPY, "torch.Tensor", "jax.Array", "tvm_ffi.Tensor")
    # see test_error_for_0d_arrays_as_columns_suggests_a_working_call
    return shape == () and expected == "pyarrow.Array"


@pytest.mark.parametrize("source", PRODUCERS, ids=lambda row: row.name)
@pytest.mark.parametrize("target", PRODUCERS, ids=lambda row: row.name)
def test_like_converts_each_producer_to_each_producer(source, target):
    for row in (source, target):
        if not installed(row):
            pytest.skip(f"could not import {row.library!r}")
    if target.name.startswith("MemoryUSM"):  # the result is an array of dpnp
        pytest.importorskip("dpnp")
    element, given = made(source)
    _, model = made(target)
    expected = RESULTS.get(target.name, NUMPY)
    try:
        if refused(element, given.shape, expected):
            with pytest.raises((BufferError, TypeError)):
                ah.like(given.obj, model.obj, copy=None)
            return
        result = ah.like(given.obj, model.obj, copy=None)
        assert isinstance(result, type_named(expected))
        back = ah.asarray(result)
        assert back.to_host().to_numpy().tobytes() == given.values
        assert back.shape == given.shape
        assert back.device.type == ("oneapi" if target.memory in ("device", "shared", "host") else "cpu")
        del back, result
    finally:
        given.obj = None
        given.root = None
        given.close()
        model.obj = None
        model.root = None
        model.close()


# -------------------------------------------------------------------------------------------------------------- labels


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def _import(name):
    return pytest.importorskip("pyarrow" if name == "arrow" else name)


# Models with labels, made of their values: vectors of two elements, or matrices of two columns.
AB = ["a", "b"]
LABELLED = {
    "pandas.Series": (1, lambda pd, v: pd.Series(v, index=AB, name="n")),
    "pandas.Series, Arrow": (1, lambda pd, v: pd.Series(v, index=AB, name="n", dtype="double[pyarrow]")),
    "pandas.Index": (1, lambda pd, v: pd.Index(v, name="n")),
    "pandas.DataFrame": (2, lambda pd, v: pd.DataFrame(v, columns=AB, index=[7, 8])),
    "xarray.DataArray": (2, lambda xr, v: xr.DataArray(v, dims=AB, coords={"a": [10, 20]}, name="n")),
    "xarray.Variable": (2, lambda xr, v: xr.Variable(AB, v)),
    "polars.Series": (1, lambda pl, v: pl.Series("n", v)),
    "polars.DataFrame": (2, lambda pl, v: pl.DataFrame(v, AB, orient="row")),
    "pyarrow.Table": (2, lambda pa, v: pa.Table.from_arrays(list(v.T), AB)),
    "pyarrow.RecordBatch": (2, lambda pa, v: pa.RecordBatch.from_arrays([pa.array(column) for column in v.T], AB)),
    "pyarrow.ChunkedArray": (1, lambda pa, v: pa.chunked_array([v])),
    "arrayhub.USMArray": (2, lambda ah, v: ah.asarray(v).with_dims(AB)),
}


def shown(x):
    """Return the dims, or the representation without an address, which shows labels and elements."""
    return x.dims if isinstance(x, ah.USMArray) else re.sub(" at 0x[0-9a-f]+", "", repr(x))


@pytest.mark.parametrize("name", LABELLED)
def test_result_has_the_labels_of_the_model_on_request_if_the_shapes_are_equal(name):
    ndim, make = LABELLED[name]
    module = pytest.importorskip(name.partition(".")[0])
    values = np.array([1.5, 2.5]) if ndim == 1 else np.asfortranarray([[1.5, 2.5], [3.5, 4.5]])
    model = make(module, np.zeros_like(values))
    result = ah.like(values, model, labels=True)
    assert type(result) is type(model) and shown(result) == shown(make(module, values))
    if name == "pandas.Series, Arrow":  # without labels, the result has memory of Arrow too
        return
    if name.partition(".")[0] in ("pandas", "xarray", "arrayhub"):
        assert ah.asarray(result).ptr == values.ctypes.data
    longer = np.ones((3,) * ndim, order="F")
    for labels, x in ((False, values), (False, longer), (True, longer)):
        assert shown(ah.like(x, model, labels=labels)) == shown(ah.convert(x, type(model)))


def test_vectors_do_not_get_the_labels_of_matrices(pandas):
    xarray = pytest.importorskip("xarray")
    assert type(ah.like(np.ones(2), pandas.DataFrame(np.eye(2)), labels=True)) is pandas.Series
    assert ah.like(np.ones(4), xarray.DataArray(np.eye(2), dims=AB), labels=True).dims == ("dim_0",)
    assert ah.like(np.ones(2), ah.zeros((2, 3), dims=AB), labels=True).dims is None


def test_names_of_columns_are_kept_beside_the_index_of_the_model(pandas):
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    model = pandas.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}, index=["x", "y"])
    columns = {"b": [3.0, 4], "a": [1.0, 2]}
    records = np.array([(3, 1), (4, 2)], [("b", float), ("a", float)])
    for given in (model[["b", "a"]], columns, pl.DataFrame(columns), pa.table(columns), records, ah.asnested(columns)):
        result = ah.like(given, model, copy=None, labels=True)
        pandas.testing.assert_frame_equal(result, model[["b", "a"]], check_dtype=False)
        if given is not records:
            assert ah.like(given, pl.DataFrame(model), copy=None, labels=True).columns == ["b", "a"]
    assert ah.like(model["a"].rename("q"), model["b"], labels=True).name == "q"


def test_labels_that_differ_raise(pandas):
    model = pandas.Series([1.0, 2.0], index=["x", "y"])
    xarray = pytest.importorskip("xarray").DataArray([1.0, 2.0], dims="t", coords={"t": ["y", "x"]})
    for given, other in ((model[::-1], model), (model.to_frame()[::-1], model.to_frame()), (model, xarray)):
        with pytest.raises(ValueError, match="dimension 0 of obj .* and dimension 0 of model .* differ"):
            ah.like(given, other, copy=None, labels=True)


def test_data_array_keeps_the_array_library_of_its_data(torch):
    xarray = pytest.importorskip("xarray")
    strict = pytest.importorskip("array_api_strict")
    model = xarray.DataArray(strict.zeros((2,)), dims=("x",))
    assert type(ah.like(torch.ones(2), model, labels=True).data) is type(model.data)


# ---------------------------------------------------------------------------------------------- models without an array


@pytest.mark.parametrize("model", [[1.0], (1,), 3, 2.5, np.float32(1), range(2), b"x", bytearray(2), np, np.ndarray])
def test_lists_and_numbers_as_models_mean_numpy(model):
    values = np.arange(3.0)
    result = ah.like(ah.asarray(values), model)
    assert type(result) is np.ndarray
    assert np.shares_memory(result, values)


@pytest.mark.parametrize("model", [None, object(), {}, "torch", len, object])
def test_invalid_models_raise(model):
    with pytest.raises(TypeError, match=r"like: the model .*; accepted: an array of numpy, torch"):
        ah.like(np.ones(2), model)


@pytest.mark.parametrize("name", ["torch", "pytorch", "np", "pyarrow"])
def test_error_for_a_library_name_as_the_model_suggests_convert(name):
    x = np.ones(3)
    with pytest.raises(TypeError, match="like: the model .* is of type str") as raised:
        ah.like(x, name)
    call = str(raised.value).rpartition("Call ")[2]
    assert call == f"arrayhub.convert(x, {name!r})"
    pytest.importorskip({"pytorch": "torch", "np": "numpy"}.get(name, name))
    assert eval(call, {"arrayhub": ah, "x": x}) is not None


def test_element_types_and_devices_are_rejected_as_models(torch):
    for model in (torch.float32, torch.device("cpu"), np.dtype("f8")):
        with pytest.raises(TypeError, match="like: the model .* accepted: an array"):
            ah.like(np.ones(3), model)


def test_modules_and_types_can_be_models(torch):
    x = np.ones(2)
    for model, cls in ((torch, torch.Tensor), (torch.Tensor,) * 2, (torch.nn.Parameter,) * 2):
        assert type(ah.like(x, model)) is cls
    assert type(ah.like(torch.ones(2), ah.USMArray)) is ah.USMArray
    assert type(ah.like([[1], [2, 3]], ah.NestedArray)) is ah.NestedArray
    with pytest.raises(TypeError, match="the array is a torch.NestedTensor"):
        ah.like([[1], [2, 3]], type("Own", (torch.Tensor,), {}))
    assert ah.like(x[::-1], _import("pyarrow").Tensor).to_numpy().tolist() == [1, 1]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "xarray", "awkward", "jax", "dpnp"])
def test_array_types_of_libraries_can_be_models(library):
    module = pytest.importorskip(library)
    names = {"pandas": "Series", "polars": "Series", "xarray": "DataArray", "dpnp": "ndarray"}
    cls = getattr(module, names.get(library, "Array"))
    assert isinstance(ah.like(np.ones(2, "f4"), cls), cls)
    assert type(ah.like(np.ones(2, "f4"), module)).__module__.partition(".")[0].startswith(library)


def test_array_of_the_models_type_is_returned_itself(torch):
    model = torch.ones(3, requires_grad=True)
    result = model * 2
    assert ah.like(result, model) is result
    x = np.ones(2)
    assert ah.like(x, np.zeros(3)) is x
    assert ah.like(x, np.zeros(3), copy=True) is not x


# ----------------------------------------------------------------------------------------------- copies, types, devices


def test_copy_determines_whether_like_views_or_copies(torch):
    x = np.ones(3)
    x.flags.writeable = False
    with pytest.raises(BufferError, match="copy=True"):
        ah.like(x, torch.zeros(1), copy=False)
    copy = ah.like(x, torch.zeros(1), copy=None)
    assert copy.data_ptr() != x.ctypes.data
    y = np.ones(3)
    assert ah.like(y, torch.zeros(1), copy=None).data_ptr() == y.ctypes.data
    assert ah.like(y, torch.zeros(1), copy=True).data_ptr() != y.ctypes.data
    assert ah.like([1.0], torch.zeros(1), copy=False).tolist() == [1.0]


def test_element_type_is_kept_unless_another_is_requested(torch):
    x = np.arange(3.0)
    model = torch.nn.Parameter(torch.zeros(1))
    assert ah.like(x, model).dtype == torch.float64 and type(ah.like(x, model)) is torch.Tensor
    assert ah.like(x, model, dtype="model").dtype == torch.float32 and not ah.like(x, model).requires_grad
    assert ah.like(x, model, dtype=torch.int16).tolist() == [0, 1, 2]
    assert ah.like([1, 2], model, dtype="model").dtype == torch.float32
    with pytest.raises(TypeError, match="cannot be cast to .*int32.* according to the rule same_kind"):
        ah.like(x, torch.zeros(1, dtype=torch.int32), dtype="model")
    with pytest.raises(ValueError, match="the model is a module or a type"):
        ah.like(x, torch, dtype="model")


def test_result_is_on_the_device_of_the_model():
    dpnp = pytest.importorskip("dpnp")
    model = dpnp.zeros(1)
    x = np.ones(3)
    with pytest.raises(BufferError, match=r"the memory is on cpu, but the model is on oneapi:0; .* Pass copy=None"):
        ah.like(x, model, copy=False)
    with pytest.raises(BufferError, match="like: the memory is on oneapi:0"):
        ah.like(dpnp.ones(3, usm_type="device"), x, copy=False)
    result = ah.like(x, model)
    assert isinstance(result, dpnp.ndarray)
    back = ah.like(result, x)
    assert type(back) is np.ndarray
    assert back.tolist() == [1, 1, 1]
    assert isinstance(ah.like([1, 2], model), dpnp.ndarray)
    assert ah.like(result, model, dtype="f4").dtype == "f4"
    assert ah.like(result, model, dtype="f4").usm_type == result.usm_type


@pytest.mark.parametrize("name", ["polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch"])
def test_contiguous_columns_are_shared_with_the_frame(name):
    library, _, cls = name.partition(".")
    model = getattr(pytest.importorskip(library), cls)
    x = np.arange(6.0).reshape(2, 3)
    with pytest.raises(BufferError, match=rf"^{library}: the columns of the array, .*\(x, {name}, copy=True\)$"):
        ah.like(x, model, copy=False)
    assert ah.as_numpy(ah.like(x, model, copy=True), copy=True).tolist() == x.tolist()
    cast = ah.like(x, model, copy=True, dtype="f4")
    assert ah.as_numpy(cast, copy=True).dtype == "f4" and ah.as_numpy(cast, copy=True).tolist() == x.tolist()
    columns = np.asfortranarray(x)
    first = ah.like(columns, model)[:, 0] if library == "polars" else ah.like(columns, model).column(0)
    assert ah.asarray(first).ptr == columns.ctypes.data


COLUMNS = {
    "pandas.Series": lambda m: m.Series([1.0]),
    "pandas.DataFrame": lambda m: m.DataFrame({"a": [1.0]}),
    "pandas.Index": lambda m: m.Index([1.0]),
    "polars.Series": lambda m: m.Series([1.0]),
    "polars.DataFrame": lambda m: m.DataFrame({"a": [1.0]}),
    "pyarrow.Array": lambda m: m.array([1.0]),
    "pyarrow.ChunkedArray": lambda m: m.chunked_array([[1.0]]),
    "pyarrow.Table": lambda m: m.table({"a": [1.0]}),
    "pyarrow.Scalar": lambda m: m.scalar(1.0),
    "awkward.Array": lambda m: m.Array([1.0]),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("make", [np.array, float], ids=["array", "number"])
def test_error_for_0d_arrays_as_columns_suggests_a_working_call(name, make):
    library = name.partition(".")[0]
    model = COLUMNS[name](pytest.importorskip(library))
    x = make(1.5)
    with pytest.raises(TypeError, match="has 0 dimensions") as found:
        ah.like(x, model, copy=None)
    assert len(eval(found.value.call, {"arrayhub": ah, "x": x})) == 1
    assert ah.like(x, np, copy=None) == 1.5


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_empty_arrays_get_the_usm_type_of_the_model(usm_type):
    dpnp = pytest.importorskip("dpnp")
    model = dpnp.ones(2, usm_type=usm_type)
    for copy in (None, True):
        result = ah.like(np.zeros((0, 4)), model, copy=copy)
        assert type(result) is dpnp.ndarray and result.shape == (0, 4) and result.usm_type == usm_type


def test_models_and_arrays_that_are_not_dense():
    pa = pytest.importorskip("pyarrow")
    model = pa.array(["a", None])
    assert ah.like(np.arange(2), model).to_pylist() == [0, 1]
    assert ah.like(["u", "v"], model).to_pylist() == ["u", "v"]
    assert ah.like(model, ["x"], copy=None) is not None
    with pytest.raises(TypeError, match="accepted: numbers, and times"):
        ah.like(["u", "v"], model, dtype="f4")


MODELS = {
    "numpy": lambda np: np.zeros(1),
    "torch": lambda torch: torch.zeros(1),
    "arrow": lambda pa: pa.array([1]),
    "polars": lambda pl: pl.Series([1]),
    "pandas": lambda pd: pd.Series([1]),
    "awkward": lambda ak: ak.Array([1]),
    "xarray": lambda xr: xr.DataArray([1]),
}
SAMPLES = {
    "numbers": lambda: np.array([1.5, 2.0]),
    "text of numbers": lambda: np.array(["1.5", "2"]),
    "rows": lambda: [[1, 2], [3, 4]],
    "ragged rows": lambda: [[1], [2, 3]],
    "lists of a column": lambda: _import("arrow").array([[1, 2], [3, 4]]),
    "missing": lambda: _import("arrow").array([1, None]),
    "chunks": lambda: _import("arrow").chunked_array([[1], [2]]),
    "one chunk": lambda: _import("arrow").chunked_array([[1, 2]]),
    "table": lambda: _import("pandas").DataFrame({"a": [1, 2], "b": [3.0, 4.0]}),
    "NaN of pandas": lambda: _import("pandas").Series([1.0, np.nan]),
    "index": lambda: _import("pandas").Index([1, 2], name="n"),
    "objects": lambda: np.array([1, 2.5], dtype=object),
    "mask": lambda: np.ma.array([1.0, 2.0], mask=[False, True]),
    "gradient": lambda: _import("torch").ones(2, requires_grad=True),
    "bytes": lambda: b"\0\0\x80?",
}


def outcome(function):
    """Return the type of the result and its elements, or the type of the error."""
    try:
        made = function()
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        kinds = (OverflowError, TypeError, ValueError, BufferError)
        return next(kind for kind in kinds if isinstance(error, kind))
    if hasattr(made, "is_nested") and made.is_nested:
        return type(made), made.dtype, [row.tolist() for row in made.unbind()]
    return type(made), str(getattr(made, "dtype", getattr(made, "type", ""))), repr(made).partition(" at 0x")[0]


@pytest.mark.parametrize("library", MODELS)
@pytest.mark.parametrize("keywords", [{}, {"dtype": "float32"}, {"missing": 0}], ids=str)
@pytest.mark.parametrize("copy", [False, None, True])
def test_like_placement_and_convert_give_the_same_object(library, keywords, copy):
    model = MODELS[library](_import(library))
    faults = []
    for name, make in SAMPLES.items():
        expected = outcome(lambda make=make: ah.convert(make(), library, copy=copy, **keywords))
        for function in (ah.like, lambda x, model, **options: ah.placement(model).convert(x, **options)):
            found = outcome(lambda make=make, function=function: function(make(), model, copy=copy, **keywords))
            if found != expected:
                faults.append(f"{name}: {found}, and convert gives {expected}")
    assert not faults, "\n".join(faults)


def test_the_element_type_of_the_model_keeps_tables():
    pd, pl, pa = map(_import, ("pandas", "polars", "pyarrow"))
    assert ah.like([1], pa.chunked_array([[1.5], [None]]), dtype="model").to_pylist() == [1.0]
    made = ah.like(pd.DataFrame({"a": [1], "b": [2]}), pl.Series([1.0], dtype=pl.Float32), dtype="model")
    assert isinstance(made, pl.DataFrame) and made.columns == ["a", "b"] and made.dtypes == [pl.Float32] * 2
    with pytest.raises(OverflowError, match="like: 1e\\+300 is out of the range of float32"):
        ah.like(pd.DataFrame({"a": [1e300]}), pl.Series([1.0], dtype=pl.Float32), dtype="model")


def test_missing_elements_fit_the_element_type_of_the_model():
    pl, pa = map(_import, ("polars", "pyarrow"))
    model = pa.array([1], pa.int16())
    for x in (pa.array([1, None]), pl.Series([1, None]), np.ma.MaskedArray([1, 2], [0, 1]), [1, None]):
        assert ah.like(x, model, dtype="model").equals(pa.array([1, None], pa.int16()))
    with pytest.raises(OverflowError, match="like: 70000 is out of the range of int16"):
        ah.like(pa.array([70000, None]), model, dtype="model")
    with pytest.raises(ah.Refusal) as raised:
        ah.like(pa.array([1, None]), np.ones(1, "i2"), dtype="model")
    assert raised.value.call == "arrayhub.as_numpy(x, missing='mask')"


@pytest.mark.parametrize("library", ["numpy", "jax", "pyarrow"])
def test_streams_that_can_be_read_once_are_read_once(library):
    pa, jnp = _import("pyarrow"), pytest.importorskip("jax.numpy")
    model = {"numpy": np.ones(1, "f4"), "jax": jnp.ones(1, "f4"), "pyarrow": pa.array([1], pa.float32())}[library]
    table = pa.table({"a": [1, 2]})
    for dtype in ("model", None):
        made = ah.like(table.to_reader(), model, dtype=dtype)
        assert ah.as_numpy(made.field(0) if library == "pyarrow" else made[:, 0]).tolist() == [1, 2]
    assert ah.like(table.to_reader(), table) == table


def test_model_whose_attributes_raise_is_on_the_host(torch):
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise RuntimeError("loud")

    made = ah.like(np.ones(2), torch.zeros(2).as_subclass(Loud))
    assert type(made) is torch.Tensor and made.tolist() == [1.0, 1.0]


def test_data_of_xarray_is_narrowed_for_jax():
    xr, jax = pytest.importorskip("xarray"), pytest.importorskip("jax")
    model = xr.DataArray(jax.numpy.ones(2), dims="t", coords={"t": [5, 6]})
    for labels in (False, True):
        made = ah.like(np.arange(2), model, labels=labels)
        assert isinstance(made.data, jax.Array) and made.dtype == "int32" and ("t" in made.coords) == labels
        assert np.asarray(ah.adapt("numpy", labels=labels)(np.argsort)(model)).tolist() == [0, 1]
    assert ah.like(np.ones(2), model.variable).dtype == "float32"
    with pytest.raises(OverflowError, match="int32"):
        ah.like(np.array([2**40]), model)


def test_results_are_on_devices_of_the_model_that_dlpack_does_not_distinguish():
    strict = pytest.importorskip("array_api_strict")
    model = strict.ones(2, device=strict.Device("device1"))
    out = strict.zeros(2, device=model.device)
    for made in (
        *(ah.like(x, model) for x in (np.ones(2), strict.ones(2), [1.0, 2.0])),
        ah.adapt("numpy")(np.sqrt)(model),
        ah.adapt("numpy")(lambda x, out: np.add(x, 1, out=out))(model, out),
        ah.placement(np.ones(2), model).convert(np.ones(2)),
    ):
        assert made.device == model.device
        assert (made + model).device == model.device
    assert ah.like(model, model) is model
    with pytest.raises(BufferError, match="the model is on .*device1"):
        ah.like(np.ones(2), model, copy=False)


@pytest.mark.parametrize("name", ["polars.DataFrame", "pandas.DataFrame"])
def test_model_without_an_element_type_is_named(name):
    library, _, cls = name.partition(".")
    model = getattr(pytest.importorskip(library), cls)({"a": [1.0], "b": ["x"]})
    with pytest.raises(TypeError, match=rf"^dtype: 'model' requires .*, and {name} has ") as raised:
        ah.like(np.ones(1), model, dtype="model")
    assert raised.value.call == f"arrayhub.as_{library}(x)"


def test_call_of_a_refusal_for_a_device_is_for_the_argument(sycl):
    model = pytest.importorskip("dpnp").ones(1)
    x = np.array([1.5], pytest.importorskip("ml_dtypes").bfloat16)
    with pytest.raises(BufferError, match="bfloat16") as raised:
        ah.like(x, model)
    assert raised.value.call == ah.explain(x, "dpnp").call == "arrayhub.as_dpnp(x, dtype='float32', device='oneapi:0')"
