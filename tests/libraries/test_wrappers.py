"""Objects of real libraries that contain an array are imported as views, or raise an error that names a call."""

import collections
import gc
import http
import io
import signal
import types

import numpy as np
import pytest
from libraries.rows import called

import arrayhub as ah

pd = pytest.importorskip("pandas")


def assert_view(obj, memory):
    """Check that `obj` is imported as a view of the ndarray `memory`, with equal type and access."""
    a = ah.asarray(obj)
    assert (a.ptr, a.shape, a.byte_strides) == (memory.ctypes.data, memory.shape, memory.strides)
    assert a.dtype == memory.dtype
    assert a.flags.writeable == memory.flags.writeable
    assert not a.is_copy
    assert ah.asarray(obj, copy=False).ptr == a.ptr
    copied = ah.asarray(obj, copy=True)
    assert copied.is_copy and copied.ptr != a.ptr


def assert_refused(obj, call):
    """Assert that the error names the call to make instead, and that no protocol of the object bypasses the error."""
    with pytest.raises((TypeError, BufferError)) as raised:
        ah.asarray(obj)
    assert call in str(raised.value)
    with pytest.raises((TypeError, BufferError)):
        ah.as_numpy(obj)
    for via in ("dlpack", "buffer", "array_interface"):
        with pytest.raises((TypeError, BufferError)):
            ah.asarray(obj, via=via)


ASTROPY = "the unit is not included. Call arrayhub.asarray(x.value)"
MASKED = np.ma.masked_array([1.0, 2.0], [False, True])
MASK = np.array([False, True, False])


def nddata(name, **keywords):
    return lambda: getattr(pytest.importorskip("astropy.nddata"), name)(np.arange(3.0), **keywords)


def astropy_masked(unit=1):
    return pytest.importorskip("astropy.utils.masked").Masked(np.arange(3.0) * unit, mask=MASK)


def pint(value):
    return pytest.importorskip("pint").UnitRegistry().Quantity(value, "m")


def picked_by_warp(warp):
    return warp.zeros(6, device="cpu")[warp.array([1, 3], dtype=warp.int32, device="cpu")]


# Objects of libraries, and the call that the error names.
REFUSED = {
    "xarray, mask": (lambda: pytest.importorskip("xarray").NamedArray(("a",), MASKED), "x.data.filled(value)"),
    "xarray, dataset": (lambda: pytest.importorskip("xarray").Dataset({"a": ("x", np.zeros(3))}), "x.to_array()"),
    "xarray, time zone": (
        lambda: pytest.importorskip("xarray").DataArray(pd.date_range("2020", periods=3, tz="UTC")),
        "arrayhub.asnested(x.data)",
    ),
    "pint": (lambda: pint(np.arange(3.0)), "x.magnitude"),
    "pint, mask": (lambda: pint(MASKED), "x.magnitude"),
    "pint, gradient": (lambda: pint(pytest.importorskip("torch").zeros(3, requires_grad=True)), "x.magnitude"),
    "pint, tensor": (lambda: pint(pytest.importorskip("torch").zeros(3)), "x.magnitude"),
    "pint, number": (lambda: pint(3.0), "x.magnitude"),
    "astropy, unit": (lambda: np.arange(3.0) * pytest.importorskip("astropy.units").m, ASTROPY),
    "astropy, number": (lambda: 3 * pytest.importorskip("astropy.units").m, ASTROPY),
    "astropy, angle": (lambda: pytest.importorskip("astropy.coordinates").Angle([1.0, 2.0], "deg"), ASTROPY),
    "astropy, mask": (astropy_masked, "x."),
    "astropy, mask and unit": (lambda: astropy_masked(pytest.importorskip("astropy.units").m), "x."),
    **{
        f"astropy, {name}, {'mask' if mask is not None else 'no mask'}": (nddata(name, mask=mask, unit="adu"), "x.data")
        for name in ("NDData", "CCDData")
        for mask in (None, MASK)
    },
    "blosc2": (lambda: pytest.importorskip("blosc2").asarray(np.arange(10)), "x[:]"),
    "warp, picked elements": (lambda: picked_by_warp(pytest.importorskip("warp")), "x.contiguous()"),
    **{
        f"scipy, {kind}_{family}": (
            lambda name=f"{kind}_{family}": getattr(pytest.importorskip("scipy.sparse"), name)(np.eye(3)),
            "arrayhub.assparse(x.tocoo())" if kind in ("dia", "dok", "lil") else "arrayhub.assparse(x)",
        )
        for kind in ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
        for family in ("matrix", "array")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_objects_that_are_more_than_an_array_are_rejected(name):
    make, call = REFUSED[name]
    x = make()
    assert_refused(x, call)
    if name.startswith("scipy"):
        assert eval(call, {"arrayhub": ah, "x": x}).shape == (3, 3)


# -------------------------------------------------------------------------------------------------------------- pandas


@pytest.mark.parametrize(
    "obj",
    [
        pd.Series([1.0, 2.0]),
        pd.Series([1.0, 2.0, 3.0, 4.0])[::2],
        pd.Series(pd.date_range("2020", periods=3)),
        pd.Index([1, 2, 3]),
        pd.date_range("2020", periods=3),
        pd.DataFrame(np.zeros((2, 3))),
        pd.DataFrame(np.zeros((2, 3)))[[1, 2]],
    ],
    ids=["series", "slice", "dates", "index", "date index", "frame", "frame of columns"],
)
def test_pandas_on_numpy_is_viewed(obj):
    assert_view(obj, obj.values)


def test_writes_through_writable_pandas_memory_are_visible():
    series = pd.Series(np.arange(3.0), copy=False)
    a = ah.asarray(series)
    if a.access == "readwrite":  # before pandas 3
        ah.as_numpy(a)[0] = 7
        assert series[0] == 7
    else:
        assert a.access == "readonly"


def named(obj):
    return f"{type(obj).__name__} {getattr(obj, 'dtype', 'frame')}"


@pytest.mark.parametrize(
    "obj",
    [
        pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}),
        pd.concat([pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"b": [3.0, 4.0]})], axis=1),
        pd.DataFrame(),
        pd.DataFrame({"a": pd.Series([1, 2], dtype="Int64")}),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, 2], dtype="category"),
        pd.Series(pd.arrays.SparseArray([0, 0, 1])),
        pd.array([1, None], dtype="Int64"),
        pd.Series([True, False], dtype="bool[pyarrow]"),
        pd.arrays.SparseArray([0, 0, 1]),
    ],
    ids=named,
)
def test_errors_for_pandas_data_that_needs_a_copy_suggest_to_numpy(obj):
    assert_refused(obj, "x.to_numpy()")
    assert ah.asarray(obj.to_numpy()).shape == obj.shape


ON_ARROW = [
    pd.Series([1, 2, 3], dtype="int64[pyarrow]"),
    pd.Series([1.5, 2.5], dtype="double[pyarrow]"),
    pd.Series([], dtype="int64[pyarrow]"),
    pd.Series([1, 2, 3], dtype="int64[pyarrow]")[1:],
    pd.Series(pd.date_range("2020", periods=3), dtype="timestamp[ns][pyarrow]"),
]


@pytest.mark.parametrize("series", ON_ARROW, ids=lambda series: f"{len(series)} {series.dtype}")
def test_pandas_arrow_columns_without_missing_values_are_viewed(series):
    pa = pytest.importorskip("pyarrow")
    for obj in (series, series.array, pd.Index(series)):
        a = ah.asarray(obj, copy=False)
        assert a.tolist() == series.to_numpy().tolist() and not a.is_copy and a.access != "readwrite"
        chunks = pa.chunked_array(obj.array.__arrow_array__() if obj is not series.array else obj.__arrow_array__())
        if len(series):
            assert a.ptr == chunks.chunk(0).buffers()[1].address + chunks.chunk(0).offset * a.itemsize


ENCODED = (
    *("Int64 missing", "object numbers", "strings missing", "arrow strings", "string array", "object lists"),
    *("decimals", "datetime zone", "categorical", "categorical index", "categorical array", "frame missing"),
    *("frame strings", "frame bools", "boolean missing", "period", "zone index", "zone array", "index of strings"),
)


@pytest.mark.parametrize("name", ENCODED)
def test_errors_for_pandas_data_of_objects_suggest_asnested(name):
    obj = pytest.importorskip("nested_sources").SOURCES[f"pd {name}"]()
    with pytest.raises((TypeError, BufferError)) as raised:
        ah.as_torch(obj)
    assert raised.value.call and called(raised.value.call, obj) is not None
    with pytest.raises(TypeError) as raised:
        ah.asarray(obj)
    assert len(called(raised.value.call, obj)) == len(obj)
    assert_refused(obj, raised.value.call)


# --------------------------------------------------------------------------------------------------- scipy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "make", "call"),
    [
        ("scipy.sparse", lambda sparse: sparse.csr_array(np.array([1.0, 0.0])), "arrayhub.assparse(x.tocoo())"),
        ("sparse", lambda sparse: sparse.DOK.from_numpy(np.eye(2)), "arrayhub.assparse(x.asformat('coo'))"),
        ("sparse", lambda sparse: sparse.GCXS(np.ones((2, 2, 2))), "arrayhub.assparse(x.asformat('coo'))"),
        ("sparse", lambda sparse: sparse.COO(np.eye(2), fill_value=1.0), "x.todense()"),
    ],
)  # fmt: skip
def test_sparse_arrays_that_assparse_rejects_name_a_call_that_works(module, make, call):
    x = make(pytest.importorskip(module))
    assert_refused(x, call)
    assert eval(call, {"arrayhub": ah, "x": x}).shape == x.shape
    with pytest.raises(ah.Refusal) as raised:
        ah.assparse(x)
    assert raised.value.call in (call, "")


# -------------------------------------------------------------------------------------------------------------- xarray


def test_objects_in_xarray_are_imported_as_objects_of_numpy():
    xarray = pytest.importorskip("xarray")
    for wrap in (xarray.DataArray, lambda values: xarray.Variable("n", values)):
        words = wrap(np.array(["a", "b", np.nan], object))
        assert ah.asnested(words).to_list() == ["a", "b", None]
        numbers = wrap(np.array([1, 2], object))
        assert ah.as_numpy(numbers, copy=None).tolist() == ah.asarray(numbers, dtype="f4").tolist() == [1, 2]
        for x in (words, numbers, wrap(np.array([1, "a"], object))):
            with pytest.raises(ah.Refusal) as raised:
                ah.as_numpy(x)
            call = raised.value.call
            assert not call if 1 in x.data and "a" in x.data else len(eval(call, {"arrayhub": ah, "x": x})) == len(x)
    for data in (np.array([1, "a"], object), pd.Categorical(["a", "b"])):
        x = xarray.DataArray(data)
        assert ah.explain(x, "xarray").verdicts[0].verdict == "zero-copy" and ah.convert(x, "xarray") is x
        made = ah.convert(x, "xarray", copy=True)
        assert made is not x and made.data is not x.data and made.equals(x)
    with pytest.raises(ah.Refusal) as raised:
        ah.datashape.of(pd.Series([1, "a"], dtype=object))
    assert not raised.value.call
    with pytest.raises(ah.Refusal, match=r"xarray\.CFTimeIndex is not imported"):
        ah.as_torch(xarray.CFTimeIndex([pytest.importorskip("cftime").DatetimeNoLeap(2000, 1, 1)]))


def test_xarray_objects_are_imported_as_views():
    xarray = pytest.importorskip("xarray")
    values = np.arange(6.0).reshape(2, 3)
    for obj in (
        xarray.DataArray(values, dims=("a", "b")),
        xarray.Variable(("a", "b"), values),
        xarray.NamedArray(("a", "b"), values),
    ):
        assert_view(obj, values)
        assert ah.asarray(obj).dims == ("a", "b")
        assert ah.as_torch(obj).data_ptr() == values.ctypes.data
    index = xarray.DataArray(values, dims=("a", "b"), coords={"a": [5, 6]}).a
    assert_view(index, index.data)


def test_lazily_indexed_xarray_is_rejected():
    xarray = pytest.importorskip("xarray")
    from xarray.core import indexing

    class OnDisk(indexing.NumpyIndexingAdapter):
        def __getitem__(self, indexer):
            return super().__getitem__(indexer).copy()

    lazy = indexing.LazilyIndexedArray(OnDisk(np.arange(4.0)))
    assert_refused(xarray.Variable("x", lazy), "x.to_numpy()")
    loaded = xarray.Variable("x", indexing.MemoryCachedArray(lazy))
    assert_view(loaded, loaded.data)


@pytest.mark.slow
def test_fields_of_gt4py_next_are_viewed():
    gtx = pytest.importorskip("gt4py.next")
    field = gtx.as_field({gtx.Dimension("K"): 2, gtx.Dimension("I"): 3}, np.zeros((2, 3)))
    assert_view(field, field.ndarray)


# --------------------------------------------------------------------------------------------------- units and masks


def test_masked_marray_arrays_are_rejected():
    marray = pytest.importorskip("marray")
    x = marray.numpy.asarray(np.arange(3.0), mask=np.array([False, True, False]))
    assert_refused(x, "x.data")
    with pytest.raises(TypeError, match="x.mask"):
        ah.from_dlpack(x)


def test_masked_arrays_are_rejected_by_every_protocol():
    assert_refused(MASKED, "x.filled(value), or numpy.ma.getdata(x)")
    assert_refused(MASKED.view(np.ma.mrecords.MaskedRecords) if hasattr(np.ma, "mrecords") else MASKED, "x.filled")
    bare = np.ma.masked_array([1.0, 2.0])
    assert ah.asarray(bare).ptr == ah.asarray(bare, via="buffer").ptr == bare.ctypes.data


class Marked(np.ndarray):
    """A subclass of ndarray with an attribute `mask`."""

    mask = None


def test_masks_of_subclasses_are_rejected():
    x = np.arange(3.0).view(Marked)
    assert ah.asarray(x).ptr == x.ctypes.data
    x.mask = np.array([True, False, False])
    assert_refused(x, "x.view(numpy.ndarray)")
    x.mask = None
    assert ah.asarray(x).base is x


def test_field_named_mask_is_not_a_mask():
    records = np.rec.array([(1, 2.0)], dtype=[("mask", "i4"), ("b", "f8")])
    assert ah.asarray(records).ptr == records.ctypes.data


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what NumPy 2.5 deprecates
def test_mask_property_is_read_before_shape_and_dtype():
    class Shifty(np.ndarray):
        @property
        def mask(self):
            self.dtype = "i4"
            self.shape = (2, 3)

    x = np.arange(3, dtype="i8").view(Shifty)
    a = ah.asarray(x)
    assert (a.shape, a.dtype) == ((2, 3), np.dtype("i4"))
    assert a.byte_strides == x.strides and a.nbytes == x.nbytes


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what NumPy 2.5 deprecates
def test_subclasses_of_ndarray_are_viewed():
    records = np.rec.array([(1, 2.0)], dtype="i4,f8")
    for x in (np.matrix([[1, 2], [3, 4]]), records, np.char.asarray(["a", "b"]), np.arange(4.0).view(Marked)):
        assert_view(x, x)
        assert ah.asarray(x).base is x


# ----------------------------------------------------------------------------------------------------- other libraries


def test_openvino_tensors_of_numpy_types_are_viewed():
    ov = pytest.importorskip("openvino")
    for name in ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean"):
        x = ov.Tensor(getattr(ov.Type, name), [2, 3])
        assert_view(x, x.data)
    for name in ("i4", "u4", "u1", "nf4", "string"):
        assert_refused(ov.Tensor(getattr(ov.Type, name), [2, 4]), "x.data")


def test_streams_of_bytes_are_viewed():
    """An array that views a stream's memory prevents closing of the stream, as a memoryview does."""
    x = io.BytesIO(b"abc")
    a = ah.asarray(x)
    assert (a.dtype, a.shape, a.access) == (np.dtype("u1"), (3,), "readwrite")
    ah.as_numpy(a)[0] = 66
    assert x.getvalue() == b"Bbc"
    with pytest.raises(BufferError):
        x.close()
    del a
    gc.collect()
    x.close()
    with pytest.raises(ValueError, match="closed"):
        ah.asarray(x)


def test_openvino_constants_with_a_wrong_format_are_corrected():
    ov = pytest.importorskip("openvino")
    half = ov.op.Constant(ov.Type.f16, ov.Shape([3]), [1.0, 2.0, 3.0])
    assert memoryview(half).format == "H"
    assert ah.as_numpy(half).tolist() == [1, 2, 3]
    assert_refused(ov.op.Constant(ov.Type.u4, ov.Shape([4]), [1, 0, 1, 0]), "x.data")


# ------------------------------------------------------------------------------------------ types of unknown libraries


@pytest.mark.parametrize(
    ("obj", "call"),
    [
        (types.SimpleNamespace(data=np.arange(3)), "if its library has a method that returns a NumPy array"),
        (collections.UserList([1, 2]), "if its library has a method that returns a NumPy array"),
        (np.poly1d([1, 2]), "numpy.asarray(x)"),
    ],
    ids=["data", "UserList", "__array__"],
)
def test_unknown_types_are_not_unwrapped(obj, call):
    with pytest.raises(TypeError, match="does not support an array protocol") as raised:
        ah.asarray(obj)
    assert call in str(raised.value)


def test_properties_of_unknown_types_are_not_read():
    asked = []

    class Holder:
        values = property(lambda self: asked.append("values"))

    with pytest.raises(TypeError) as raised:
        ah.asarray(Holder())
    assert asked == [] and "x.values" not in str(raised.value)


def test_explain_describes_wrappers():
    why = ah.explain(pd.Series([1.0])).why
    assert why == "it is a wrapper; asarray imports its .values through array_interface"
    assert "x.magnitude" in ah.explain(pint(np.zeros(3))).call


# ---------------------------------------------------------------------------------- wrappers inside lists and as values


class MaskInTheDict:
    memory = np.arange(2.0)

    @property
    def __array_interface__(self):
        return {**self.memory.__array_interface__, "mask": np.array([True, False])}


@pytest.mark.parametrize(
    "values",
    [[MASKED], [1.0, np.ma.masked], ([MASKED], [MASKED]), [MaskInTheDict()]],
    ids=["array", "element", "nested", "dict"],
)
def test_lists_with_masked_members_are_rejected(values):
    """Lists reject masked members, because NumPy would silently drop the mask."""
    for take in (ah.asarray, ah.as_numpy, lambda v: ah.zeros((2, 1, 2)).__setitem__(..., v)):
        with pytest.raises((TypeError, ValueError), match="mask is|is missing"):
            take(values)


class Celsius(float):
    """A number whose instances have a __dict__, which could contain a protocol attribute."""


@pytest.mark.parametrize(
    "value", [http.HTTPStatus.OK, signal.SIGINT, Celsius(3), type("Text", (str,), {})("7")], ids=repr
)
def test_subclasses_of_numbers_and_strings_are_values(value):
    plain = np.asarray(value)
    for given in ([value], (value, value), [[value], [value]], *(() if isinstance(value, str) else (value,))):
        assert ah.asarray(given).tolist() == np.asarray(given).tolist()
    assert ah.full(2, value, plain.dtype).tolist() == [plain.item()] * 2
    x = ah.zeros(2, plain.dtype)
    x[0] = value
    x[1:] = [value]
    assert x.tolist() == [plain.item()] * 2


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.masked_array(5.0, mask=True)])
def test_masked_values_cannot_be_assigned(value):
    for fill in (lambda: ah.full(2, value), lambda: ah.full(fill_value=value, like=np.zeros(2))):
        with pytest.raises(ValueError, match="mask"):
            fill()


def test_arrays_with_units_are_rejected():
    """Subclasses of ndarray with a unit are rejected like pint's quantities, and so are lists of them."""
    metre, none = (pytest.importorskip("quantities").Quantity([1.0, 2.0], unit) for unit in ("m", "dimensionless"))
    kilometre = metre.rescale("km")
    column = pytest.importorskip("astropy.table").Column(np.ones(2), unit="m")
    for single in (metre, column):
        for export in (ah.asarray, ah.as_numpy, ah.as_torch, ah.as_polars, ah.asnested):
            with pytest.raises(ah.Refusal, match=r"units? is '(1.0 )?m'") as caught:
                export(single)
            assert "numpy.asarray(x)" in caught.value.call
        assert ah.as_numpy(np.asarray(single)).ctypes.data == single.ctypes.data
    assert ah.asarray(none).ptr == none.ctypes.data
    for take in (ah.asarray, ah.asnested, lambda v: ah.zeros((2, 2)).__setitem__(..., v)):
        with pytest.raises(TypeError, match="units is '1.0 m'"):
            take([metre, kilometre])
    with pytest.raises(TypeError, match="units is"):
        ah.asarray([metre[0], kilometre[0]])
    assert ah.asarray([none, none]).tolist() == [[1.0, 2.0]] * 2


def test_values_with_a_unit_or_a_time_zone_are_rejected():
    with pytest.raises(TypeError, match="unit"):
        ah.as_numpy([pint(np.arange(2.0))])
    with pytest.raises(ValueError, match="unit"):
        ah.full(2, pint(2.0))
    with pytest.raises(TypeError, match=r"Int64|pandas"):
        ah.asarray([pd.Series([1, None], dtype="Int64")])
    moment = pd.Timestamp("2020", tz="Europe/Zurich")
    times = ah.zeros(2, "M8[ns]")
    with pytest.raises(TypeError, match="time zone"):
        times[:] = [moment] * 2
    with pytest.raises(ValueError, match="time zone"):
        ah.full(2, moment, "M8[ns]")


def test_types_without_a_module_are_imported_or_rejected():
    import ctypes

    made = eval("(ctypes.c_double * 4)()", {"ctypes": ctypes})
    assert ah.asarray(made).shape == (4,)
    with pytest.raises(TypeError, match="does not support an array protocol"):
        ah.asarray(eval("type('P', (), {})()", {}))


# ---- libraries of units and buffers of bits


def test_openmm_quantities_are_rejected():
    """A quantity is rejected, although its ``__getattr__`` returns the array interface of its ndarray."""
    unit = pytest.importorskip("openmm.unit")
    for x in (np.arange(3.0) * unit.nanometer, unit.Quantity(np.ones((2, 3)), unit.kelvin)):
        assert_refused(x, "x.value_in_unit(x.unit)")
        assert_refused([x, x], "value_in_unit")
        assert np.array_equal(ah.as_numpy(x.value_in_unit(x.unit)), x / x.unit)


def test_errors_for_nanoarrow_bit_buffers_suggest_a_call_that_unpacks():
    """Buffers of packed booleans are rejected. Their own ``__dlpack__`` also raises an error."""
    na = pytest.importorskip("nanoarrow")
    pa = pytest.importorskip("pyarrow")
    for x in (
        na.c_array(pa.array([True, False, True])).view().buffer(1),
        na.c_array(pa.array([1, None, 3])).view().buffer(0),
        na.c_buffer([True, False, True], na.bool_()),
    ):
        with pytest.raises(
            TypeError, match=r"booleans are packed, eight per byte.*numpy\.fromiter\(x\.elements\(\), bool\)"
        ):
            ah.asarray(x)
        assert ah.asarray(np.fromiter(x.elements(), bool)).tolist()[:3] == [True, False, True]
    assert ah.asarray(na.c_array(pa.array([1, 2])).view().buffer(1)).tolist() == [1, 2]
    assert ah.asarray(na.c_buffer([1, 2], na.uint8())).tolist() == [1, 2]
    unpacked = na.c_array(pa.array([True, False])).view().buffer(1).unpack_bits()
    assert ah.asarray(unpacked).tolist()[:2] == [True, False]
