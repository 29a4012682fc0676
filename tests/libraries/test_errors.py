"""Errors name a call that works for the object. These tests make the calls."""

import ctypes
import datetime
import decimal
import re
import sys
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from libraries.rows import called

import arrayhub as ah

CHOSEN = {"value": "0", "i": "0", "dtype": "str"}  # values of the arguments that the caller must choose


def module(name):
    return pytest.importorskip(name)


def refusal(obj):
    """Return the text of the error of `asarray`."""
    with pytest.raises((TypeError, BufferError)) as raised:
        ah.asarray(obj)
    return str(raised.value)


def assert_helps(obj, *calls):
    """Assert that the error for `obj` names these calls, and that each call returns one or more arrays."""
    said = refusal(obj)
    for call in calls:
        assert call in said
        given = called(re.sub(r"\b(value|i|dtype)(?=\))", lambda name: CHOSEN[name[0]], call), obj)
        for part in given if type(given) is tuple else (given,):
            assert isinstance(part, ah.NestedArray) or isinstance(ah.asarray(part), ah.USMArray)


# ----------------------------------------------------------------------------------------------- calls of many objects

NESTED, COPY, LIST, TEXT = "arrayhub.asnested(x)", "arrayhub.asarray(x, copy=None)", "list(x)", "x.astype(str)"
BUILD, FILL, DATA = "arrayhub.asarray(x.tolist())", "x.filled(value)", "numpy.ma.getdata(x)"


def jagged(*shapes, **kwargs):
    return torch.nested.nested_tensor([torch.ones(shape) for shape in shapes], **kwargs)


def holes():
    offsets, lengths = torch.tensor([0, 3, 6, 10]), torch.tensor([2, 1, 3])
    return torch.nested.nested_tensor_from_jagged(torch.arange(10.0), offsets, lengths)


def masked_record(mask=0):
    return np.ma.array([(1, 2.0)], dtype="i4,f8", mask=[(0, mask)])


def quantity():
    return module("pint").UnitRegistry().Quantity(np.arange(3.0), "m")


def h5py_references():
    h5py = module("h5py")
    file = h5py.File("references", driver="core", backing_store=False, mode="w")
    dataset = file.create_dataset("r", (2,), dtype=h5py.ref_dtype)
    dataset[0] = file.ref
    return dataset[...]


def objects(*values):
    made = np.empty(len(values), object)
    made[:] = values
    return made


# Objects, and calls that their errors name.
HELPS = {
    "jagged": (lambda: jagged((2, 4), (3, 4), layout=torch.jagged), NESTED, "x.to_padded_tensor(0.0)"),
    "transposed": (
        lambda: jagged((2, 4), (3, 4), layout=torch.jagged).transpose(1, 2),
        "x.to_padded_tensor(0.0)",
    ),
    "holes": (holes, NESTED, "x.values()"),
    "strided": (lambda: jagged((2, 4), (3, 5)), "x.to_padded_tensor(0.0)"),
    "masked tensor": (
        lambda: torch.masked.masked_tensor(torch.arange(3.0), torch.tensor([True, False, True])),
        "x.to_tensor(value)",
        "x.get_data()",
    ),
    "bits8": (lambda: torch.zeros(2, dtype=torch.uint8).view(torch.bits8), "x.view(torch.uint8)"),
    "storage": (lambda: torch.arange(3.0).untyped_storage(), "torch.empty(0, dtype=torch.uint8).set_(x)"),
    "packed": (lambda: torch.nn.utils.rnn.pack_sequence([torch.arange(3.0), torch.arange(2.0)]), NESTED),
    "requires grad in a list": (lambda: [torch.ones(2, requires_grad=True)], "x[0].detach()"),
    "sparse in a list": (lambda: [[torch.eye(2).to_sparse()]], "x[0][0].to_dense()"),
    "mask, nothing hidden": (lambda: np.ma.array([1.0, 2.0], mask=[0, 0]), COPY),
    "mask, one hidden": (lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), FILL, DATA),
    "masked records": (masked_record, FILL, DATA),
    "masked record": (lambda: masked_record()[0], FILL, DATA),
    "masked record, one hidden": (lambda: masked_record(1)[0], FILL, DATA),
    "astropy, masked": (lambda: module("astropy.utils.masked").Masked(np.arange(2.0), mask=[0, 0]), FILL, "x.unmasked"),
    "astropy, nothing hidden": (lambda: module("astropy.table").MaskedColumn([1, 2]), COPY),
    "astropy, one hidden": (lambda: module("astropy.table").MaskedColumn([1, 2], mask=[0, 1]), FILL, DATA),
    "quantity in xarray": (lambda: module("xarray").DataArray(quantity()), "arrayhub.asarray(x.data.magnitude)"),
    "quantity in a list": (lambda: [quantity()], "x[0].magnitude"),
    "quantity in a row": (lambda: [[1.0], [quantity()]], "x[1][0].magnitude"),
    "categories in a list": (lambda: [pd.Categorical([3, 1])], "arrayhub.asnested(x[0])"),
    "mask in a row": (
        lambda: [[np.ma.array([1.0], mask=[1])]],
        "x[0][0]: ",
        "x[0][0].filled(value)",
        "numpy.ma.getdata(x[0][0])",
    ),
    "awkward lists": (lambda: module("awkward").Array([[1], [2, 3]]), NESTED),
    "awkward missing": (lambda: module("awkward").Array([1, None]), NESTED),
    "awkward layout": (lambda: module("awkward").Array([[1], [2, 3]]).layout, "arrayhub.asnested(awkward.Array(x))"),
    "awkward union": (lambda: module("awkward").Array([1, "a"]), NESTED),
    "awkward record": (lambda: module("awkward").Record({"a": 1}),),
    "polars decimals": (lambda: pl.Series([decimal.Decimal("1.1")]), "arrayhub.as_arrow(x).cast('float64')"),
    "polars Int128": (lambda: pl.Series([2**100], dtype=pl.Int128), "x.cast(float)"),
    "polars objects": (lambda: pl.Series([object()], dtype=pl.Object), "x.to_list()"),
    "polars lists": (lambda: pl.Series([[1], [2, 3]]), NESTED),
    "polars strings": (lambda: pl.Series(["a", None]), NESTED),
    "polars missing": (lambda: pl.Series([1, None]), NESTED),
    "polars query": (lambda: pl.LazyFrame({"a": [1]}), "x.collect()"),
    "polars frame": (lambda: pl.DataFrame({"name": [1.0], "b": [decimal.Decimal("1.1")]}), NESTED),
    "set": (lambda: {1, 2}, LIST),
    "frozenset": (lambda: frozenset([1, 2]), LIST),
    "map": (lambda: map(int, [1, 2]), LIST),
    "generator": (lambda: (n for n in [1, 2]), LIST),
    "keys": (lambda: {1: 2}.keys(), LIST),
    "dict of a column": (lambda: {"a": ["x", "y"]}, NESTED),
    "dict of a number": (lambda: {"a": 1}, "arrayhub.asnested([x])"),
    "dict of text": (lambda: {"a": "text"}, "arrayhub.asnested([x])"),
    "dict of lists of two lengths": (lambda: {"a": [1], "b": [1, 2]}, "arrayhub.asnested([x])"),
    "dict of a list and a number": (lambda: {"a": [1], "b": 2}, "arrayhub.asnested([x])"),
    **{
        f"pyarrow.{name}": (lambda name=name: getattr(pa, name).from_dense_numpy(np.eye(3)), "x.to_tensor()")
        for name in ("SparseCOOTensor", "SparseCSRMatrix", "SparseCSCMatrix", "SparseCSFTensor")
    },
    "object without dimensions": (lambda: np.array(1, object), TEXT),
    "references of h5py": (h5py_references, TEXT),
    "unknown objects": (lambda: objects(Opaque()), TEXT),
    "mixed objects": (lambda: objects(1, "a"), TEXT),
    "decimals": (lambda: objects(decimal.Decimal(1)), TEXT),
    "unknown objects after None": (lambda: objects(None, Opaque()), TEXT),
    "objects of ctypes": (lambda: (ctypes.py_object * 2)(1, 2), LIST),
    "objects, numbers": (lambda: np.array([1, 2.5, True], object), BUILD, COPY),
    "objects, strings": (lambda: np.array(["a", "bc"], object), BUILD, NESTED),
    "objects, lists": (lambda: np.array([[1], [2, 3]], object), NESTED),
    "objects, dicts": (lambda: np.array([{"a": 1}, {"a": 2}], object), NESTED),
    "objects, numbers and None": (lambda: np.array([1, None, 3], object), NESTED),
    "objects, rows and None": (lambda: np.array([[1, None], [3, 4]], object), NESTED),
    "objects, strings and None": (lambda: np.array(["a", None], object), NESTED),
}
# Words that errors do not contain, because the calls would fail.
ABSENT = {
    "holes": ["to_padded_tensor"],
    "polars objects": ["x.cast"],
    "polars lists": ["numpy.asarray"],
    "polars strings": ["numpy.asarray"],
    "polars missing": ["numpy.asarray"],
    "objects of ctypes": ["asnested", "astype"],
}
# Parts of errors that are not a call that returns an array.
NOT_CALLS = ["x[0][0]: ", "x.to_list()", "x.collect()"]
NOT_NESTED = ["transposed", "awkward record"]


@pytest.mark.parametrize("name", HELPS)
@pytest.mark.filterwarnings("ignore")
def test_errors_name_calls_that_work(name):
    make, *calls = HELPS[name]
    try:
        obj = make()
    except AttributeError as error:  # the installed torch lacks the dtype
        pytest.skip(str(error))
    said = refusal(obj)
    assert all(words in said for words in calls) and not any(words in said for words in ABSENT.get(name, ()))
    if TEXT in calls or name in NOT_NESTED:
        assert "asnested" not in said
    assert_helps(obj, *[call for call in calls if call not in NOT_CALLS])


# --------------------------------------------------------------------------------------------------------------- Arrow


ARROW = (
    *("interval", "run_end", "map", "dense union", "lists", "lists of strings", "records", "null", "ints missing"),
    *("fixed lists missing", "bools", "bools missing", "strings", "date32", "timestamp zone", "decimal", "dictionary"),
)


@pytest.mark.parametrize("chunks", [0, 1, 2], ids=["array", "one chunk", "two chunks"])
@pytest.mark.parametrize("name", ARROW)
def test_errors_for_arrow_arrays_that_are_not_dense_suggest_asnested(name, chunks):
    one = module("nested_sources").SOURCES[f"pa {name}"]()  # requires the other libraries
    x = pa.chunked_array([one] * chunks) if chunks else one
    with pytest.raises(ah.Refusal) as raised:
        ah.asarray(x)
    call = raised.value.call
    assert call == ah.explain(x, to="arrayhub").call and call in (
        "arrayhub.asnested(x)",
        "arrayhub.asarray(x, copy=None)",
    )
    assert len(called(call, x)) == len(ah.asnested(x, copy=None)) == len(x)


def test_empty_chunks_are_ignored():
    full = pa.array([1, 2])
    for chunks in ([full, full[:0]], [full[:0], full], [full[:0], full[:0]]):
        x = pa.chunked_array(chunks)
        assert ah.as_numpy(x).tolist() == x.to_pylist()
    assert ah.asarray(pa.chunked_array([full[:0], full])).ptr == full.buffers()[1].address


# -------------------------------------------------------------------------------------------------------------- pandas


@pytest.mark.parametrize("obj", [pd.Series([1, "a"]), pd.DataFrame({"a": [1, "a"]})], ids=["mixed", "mixed frame"])
def test_errors_for_pandas_objects_that_asnested_rejects_have_no_call(obj):
    with pytest.raises((TypeError, BufferError)):
        ah.asnested(obj)
    with pytest.raises(ah.Refusal, match=r"x\.to_numpy\(\) copies") as raised:
        ah.asarray(obj)
    assert raised.value.call == ""


# --------------------------------------------------------------------------------------------------------------- torch


@pytest.mark.filterwarnings("ignore")
def test_uninitialized_torch_parameters_name_materialize():
    parameter = torch.nn.UninitializedParameter()
    assert "x.materialize(shape), and then x.detach()" in refusal(parameter)
    parameter.materialize((2,))
    assert ah.asarray(parameter.detach()).shape == (2,)
    assert "x.materialize(shape)" in refusal(torch.nn.UninitializedBuffer())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda: jagged((2, 4), (3, 4), layout=torch.jagged).transpose(1, 2), "arrayhub.asnested(x.transpose(1, 2))"),
        (lambda: jagged((2, 4), (3, 5)), "x.to_padded_tensor(0.0)"),
        (
            lambda: jagged((2, 4), (3, 4)),
            "arrayhub.asnested(torch.nested.nested_tensor(list(x.unbind()), layout=torch.jagged))",
        ),
    ],
    ids=["transposed", "ragged twice", "strided"],
)
def test_asnested_errors_for_torch_suggest_working_calls(make, call):
    obj = make()
    with pytest.raises(BufferError) as raised:
        ah.asnested(obj)
    assert call.removeprefix("arrayhub.asnested(")[:-1] in str(raised.value)
    given = called(call, obj)
    assert isinstance(given, ah.NestedArray) or ah.asarray(given).ndim == 3


# ---------------------------------------------------------------------------------------------------- masks and objects


@pytest.mark.parametrize("values", [[1.0, 2.0], []])
def test_masked_arrays_that_hide_nothing_are_shared_unless_copies_are_forbidden(values):
    x = np.ma.array(values, mask=np.zeros(np.shape(values), bool))
    with pytest.raises(ah.Refusal) as raised:
        ah.asarray(x)
    made = eval(raised.value.call, {"arrayhub": ah, "x": x})
    assert made.ptr == x.data.ctypes.data and made.tolist() == values
    with pytest.raises(ah.Refusal) as raised:
        ah.as_numpy(x)
    made = eval(raised.value.call, {"arrayhub": ah, "x": x})
    assert made.tolist() == values and type(made) is np.ndarray and not np.shares_memory(made, x.data)


@pytest.mark.parametrize(
    "values",
    [["a", None], [[1], [2, 3]], [1, 2], [np.zeros(2), np.zeros(3)]],
    ids=["strings", "lists", "ints", "arrays"],
)
def test_numpy_object_arrays_are_imported_as_lists(values):
    objects = np.empty(len(values), object)
    objects[:] = values
    assert_helps(objects, ah.explain(objects, to="arrayhub").call)
    assert ah.asnested(objects).to_list() == ah.asnested(values).to_list()
    records = np.zeros(len(values), [("a", object)])
    records["a"] = objects
    assert_helps(records, "arrayhub.asnested(x)")


# ------------------------------------------------------------------------------------------- objects inside of objects


def test_list_of_unreadable_objects_is_not_reported_as_ragged():
    x = [torch.empty(2, device="meta")]
    assert "equal lengths" not in refusal(x) and "without memory" in refusal(x)
    for ragged in ([[1.0], [1.0, 2.0]], [np.ones((2, 3)), np.ones((2, 4))]):
        text = refusal(ragged)
        assert "inhomogeneous" not in text and text.endswith("arrays of equal shapes. Call arrayhub.asnested(x)")


# ------------------------------------------------------------------------------------------------------ other libraries


def test_regular_lists_of_awkward_are_viewed():
    ak = module("awkward")
    for x in (ak.to_regular(ak.Array([[1, 2], [3, 4]])), ak.to_regular(ak.Array([[1, 2], [3, 4]])).layout):
        a = ah.asarray(x)
        assert a.tolist() == [[1, 2], [3, 4]]
        assert a.ptr == getattr(x, "layout", x).content.data.ctypes.data


def test_errors_for_fits_tables_suggest_working_calls():
    """FITS tables are rejected, because their memory has unscaled integers, and letters in place of booleans."""
    fits = module("astropy.io.fits")
    columns = [
        fits.Column("name", "I", bzero=32768, array=np.array([1, 40000], "u2")),
        fits.Column("b", "L", array=[True, False]),
    ]
    x = fits.BinTableHDU.from_columns(columns).data
    assert_helps(x, "arrayhub.asarray(arrayhub.asnested(x), copy=None)")
    assert ah.asnested(x).to_list() == [{"name": 1, "b": True}, {"name": 40000, "b": False}]
    for via in ("buffer", "array_interface"):
        with pytest.raises(TypeError, match="FITS_rec"):
            ah.asarray(x, via=via)


class Converts:
    """A class of an unknown library whose methods have the names of other libraries' conversion methods."""

    def __init__(self):
        self.data = self.values = "something else"

    def to_numpy(self):
        raise TypeError

    numpy = collect = toarray = get_data = to_numpy


def test_calls_are_named_only_for_known_types():
    said = refusal(Converts())
    assert "x." not in said
    assert "if its library has a method that returns a NumPy array, pass the method's result" in said


@pytest.mark.parametrize("x", [[1, "a"], [decimal.Decimal(1), 2], [2**70]])
def test_errors_for_lists_of_mixed_values_suggest_a_dtype(x):
    call = re.search(r"numpy\.asarray\(x, [^)]*\)", refusal(x))[0]
    assert len(ah.asarray(eval(call, {"numpy": np, "x": x, "str": str, "float": float}))) == len(x)


def test_errors_for_frames_of_several_types_name_two_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0], "n": [1, 2], "s": ["x", "y"]})
    assert "several types (column 'a': float64, column 'n': int64)" in refusal(frame)
    assert "several types (column 's': str, column 'n': int64)" in refusal(frame[["s", "n"]])


CATEGORIES = {  # call in the error that returns the codes
    "pandas.Series": (lambda: pd.Series(["a", "b", "a"], dtype="category"), None),
    "missing in pandas.Series": (lambda: pd.Series(["a", "b", None], dtype="category"), None),
    "polars.Categorical": (lambda: module("polars").Series(["a", "b"], dtype=module("polars").Categorical), None),
    "polars.Enum": (lambda: module("polars").Series(["a"], dtype=module("polars").Enum(["a", "b"])), None),
    "missing in polars": (lambda: module("polars").Series(["a", None], dtype=module("polars").Categorical), None),
    "pyarrow": (lambda: pa.array(["a", "b"]).dictionary_encode(), "arrayhub.asnested(x).indices"),
}


@pytest.mark.parametrize("name", CATEGORIES)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_errors_for_categories_suggest_a_call_for_their_codes(name, library):
    make, codes = CATEGORIES[name]
    x = make()
    with pytest.raises((TypeError, BufferError)) as raised:
        ah.convert(x, library)
    if codes is not None:
        assert codes in str(raised.value)
        assert ah.convert(called(codes, x), library, copy=True).tolist()[:1] == [0]
    y = ah.asnested(x)
    with pytest.raises(ah.Refusal, match=f"^{library}: the elements are categories") as raised:
        ah.convert(y, library)
    assert raised.value.call.startswith(f"arrayhub.as_{library}(")
    codes = [-1 if value is None else code for code, value in zip(y.indices.tolist(), y.to_list(), strict=True)]
    assert called(raised.value.call, y).tolist() == codes


def test_errors_for_categories_in_tables_suggest_a_call_for_their_codes():
    pl = module("polars")
    frame = pl.DataFrame({"c": pl.Series(["b", "b"], dtype=pl.Categorical), "n": [1, 2]})
    missing = pd.Series(["a", None], dtype="category")
    for x, arguments in (
        (frame, {"copy": True}),
        (missing, {"missing": "a"}),
        (pl.from_pandas(missing), {"missing": "a"}),
    ):
        for export in (ah.as_numpy, ah.as_torch):
            with pytest.raises(BufferError, match="the elements are categories") as raised:
                export(x, **arguments)
            given = called(raised.value.call, x)
            codes = given["c"].indices if isinstance(given, ah.NestedArray) else given
            assert ah.as_numpy(codes).tolist()[0] == 0
            assert isinstance(given, ah.NestedArray) == ("column 'c'" in str(raised.value))


@pytest.mark.parametrize("arguments", [{}, {"copy": True}, {"missing": ""}])
def test_errors_for_strings_do_not_suggest_arguments_that_torch_lacks(arguments):
    for x in (ah.asnested(["a", "b"]), ah.asnested(["a", None])):
        with pytest.raises(ah.Refusal, match="^torch: strings are not supported") as raised:
            ah.as_torch(x, **arguments)
        assert "as_torch" not in str(raised.value) and called(raised.value.call, x) == x.to_list()
    assert ah.as_numpy(x, copy=None).tolist() == ["a", None] and ah.as_numpy(x, missing="").tolist() == ["a", ""]


def test_errors_for_missing_arrow_strings_suggest_an_argument_that_works():
    for x in (pa.array(["a", None]), module("polars").Series(["a", None])):
        assert "missing='nan'" not in refusal(x)
        assert ah.as_numpy(x, missing="").tolist() == ["a", ""]


def test_lists_of_openvino_shapes_are_imported():
    """asarray rejects a single openvino Shape, and its error names ``list(x)``, but accepts lists of Shapes."""
    shape = module("openvino").Shape
    assert ah.asarray([shape([1, 2]), shape([3, 4])]).tolist() == [[1, 2], [3, 4]]


# ------------------------------------------------------------------------------------------------------ Python objects


class Opaque:
    """A class that arrayhub does not know."""


def test_asnested_rejects_objects_for_which_astype_is_suggested():
    for x in (objects(Opaque()), objects(1, "a"), objects(decimal.Decimal(1)), objects(None, Opaque())):
        with pytest.raises(TypeError):
            ah.asnested(x)


def test_errors_for_records_of_unknown_objects_name_the_field():
    records = np.zeros(1, [("name", object), ("a", "f8")])
    records["name"][0] = Opaque()
    with pytest.raises(TypeError):
        ah.asnested(records)
    assert "asnested" not in refusal(records)
    assert "x['name']" in refusal(records)


# ------------------------------------------------------------------------------- errors that name calls for nested data


def test_errors_for_times_with_a_zone_suggest_asnested_of_the_whole_list():
    x = [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)]
    said = refusal(x)
    assert "arrayhub.asnested keeps the time zone" in said and "asnested(x[0])" not in said
    assert ah.asnested(x).to_list() == x
    call = "x[0].astimezone(datetime.timezone.utc).replace(tzinfo=None)"
    assert call in said
    without_zone = [x[0].astimezone(datetime.UTC).replace(tzinfo=None)]
    assert ah.asarray(without_zone, dtype="M8[us]").tolist() == without_zone


def test_errors_for_pandas_missing_values_in_a_list_suggest_missing():
    for mark in (pd.NA, pd.NaT):
        said = refusal([1, mark])
        assert f"pandas.{mark!r}".replace("<", "").replace(">", "") in said
        assert "missing=value, and for strings copy=None" in said and "pass all values to arrayhub.asnested" in said
        assert ah.as_numpy([1, mark], missing=0, copy=None).tolist() == [1, 0]
        assert np.isnan(ah.as_numpy([1, mark], missing="nan")[1])
        assert ah.as_numpy([1, mark], missing="mask").mask.tolist() == [False, True]
        assert ah.asnested([1, mark]).to_list() == [1, None]


@pytest.mark.parametrize("value", [decimal.Decimal("1.5"), datetime.time(1)])
def test_errors_for_decimals_and_times_of_day_suggest_pyarrow(value):
    x = [value, None]
    with pytest.raises(TypeError, match=r"is of type (Decimal|time); .*Call arrayhub\.asnested\(pyarrow\.array\(x\)\)"):
        ah.asnested(x)
    assert ah.asnested(pa.array(x)).to_list() == x


def test_error_describes_a_list_element_of_an_unknown_type_once():
    with pytest.raises(TypeError, match="^asnested: (?!.*among).*is of type UUID; accepted: None, and elements"):
        ah.asnested([uuid.UUID(int=1)])


def test_errors_for_copies_of_nested_arrays_suggest_the_method():
    x = ah.asnested([[1, 2], [3]])
    with pytest.raises(
        BufferError, match=r"^to_host: arrayhub\.NestedArray is not a dense array.* Call x\.to_host\(\)$"
    ):
        ah.to_host(x)
    assert x.to_host().to_list() == [[1, 2], [3]]
    with pytest.raises(BufferError, match=r"^to_device: .* Call x\.to_device\(device\)$"):
        ah.to_device(x, "cpu")
    assert x.to_device("cpu").to_list() == [[1, 2], [3]]


def test_errors_suggest_a_conversion_for_dtypes_that_arrow_lacks():
    pytest.importorskip("ml_dtypes")
    x = torch.ones(2, dtype=torch.bfloat16)
    for x, arguments in (
        (torch.arange(3).to(torch.bfloat16), "dtype='float32'"),
        (np.arange(3, dtype=">i4"), "copy=True"),
        (np.arange(3, dtype="g"), "dtype='float64'"),
    ):
        with pytest.raises(ah.Refusal, match="^Arrow: no format for dtype") as raised:
            ah.as_arrow(x)
        assert raised.value.call == f"arrayhub.as_arrow(x, {arguments})"
        assert called(raised.value.call, x).to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(("values", "value"), [(["a", None], ""), ([1, None], 0)], ids=str)
def test_errors_for_lists_with_none_suggest_a_value(values, value):
    said = refusal(values)
    assert "pass missing=value, and for strings copy=None. Call arrayhub.asnested(x)" in said
    assert ah.as_numpy(values, missing=value, copy=None).tolist() == [values[0], value]
    assert ah.asnested(values).to_list() == values


def test_errors_for_times_in_a_list_suggest_the_dtype():
    x = [datetime.datetime(2020, 1, 1, 12)]
    assert "Pass dtype='M8[us]' for dates and times" in refusal(x)
    assert ah.asarray(x, dtype="M8[us]").tolist() == x == ah.asnested(x).to_list()


def test_a_missing_day_is_filled_with_nat():
    x = [datetime.date(2020, 1, 1), None]
    assert "missing=value" in refusal(x)
    for days in (x, pa.array(x), pl.Series(x), pa.array([x, x])):
        filled = ah.as_numpy(days, missing="nan")
        assert filled.dtype == "M8[D]" and np.isnat(filled).ravel().tolist()[-2:] == [False, True]


@pytest.mark.parametrize("kind", ["timestamp", "duration", "date32", "int64"])
def test_errors_for_missing_times_do_not_suggest_torch(kind):
    column = pa.array([1, None], pa.int32() if kind == "date32" else pa.int64())
    column = column.cast(getattr(pa, kind)("s") if kind in ("timestamp", "duration") else getattr(pa, kind)())
    masked = ah.as_numpy(column, missing="mask", copy=None)
    for x in (column, masked, column.to_pylist()):
        with pytest.raises((BufferError, TypeError)) as raised:
            ah.as_torch(x)
        assert ("dtype='int64'" in raised.value.call) == (kind != "int64")  # torch does not have times
        assert np.isnan(ah.as_numpy(x, missing="nan", copy=None)).tolist() == [False, True]


def test_errors_for_maps_of_strings_do_not_suggest_a_matrix():
    x = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(ah.Refusal, match="the lists have records with strings") as raised:
        ah.as_numpy(x)
    assert raised.value.call == "arrayhub.asnested(x)"
    assert ah.as_numpy(x.items).tolist() == [1] and ah.as_numpy(x.keys, copy=True).tolist() == ["a"]
    with pytest.raises(ah.Refusal, match="strings") as raised:
        ah.as_numpy(ah.asnested(x))
    assert len(called(raised.value.call, ah.asnested(x))) == 1


def test_errors_for_integers_above_64_bits_suggest_floats():
    with pytest.raises(TypeError, match=r"as in arrayhub\.asnested\(\[float\(value\) for value in x\]\)$"):
        ah.asnested([2**70])
    assert ah.asnested([float(value) for value in [2**70]]).to_list() == [2.0**70]


@pytest.mark.parametrize("columns", [{0: [1, 2]}, {"a": [1], "b": [1, 2]}, {"a": [1, 2], "b": 3}, {"a": 1}], ids=str)
@pytest.mark.parametrize("library", ["numpy", "arrow", "polars"])
def test_the_call_for_a_dict_that_is_not_a_table_works(columns, library):
    pytest.importorskip("pyarrow" if library == "arrow" else library)
    with pytest.raises(ah.Refusal) as raised:
        ah.convert(columns, library)
    call = raised.value.call
    assert call == ah.explain(columns, to=library).call
    assert not call or eval(call, {"arrayhub": ah, "x": columns}) is not None


WITH_CALLS = {
    "arrays of different lengths": lambda: [np.ones(2), np.ones(3)],
    "records with text": lambda: np.zeros(2, [("a", "i4"), ("b", "U2")]),
    "lists of booleans": lambda: pa.array([[True], [False, True]]),
    "scalar of pyarrow": lambda: pa.scalar(1),
    "string of pyarrow": lambda: pa.scalar("hi"),  # whose buffer is writable
    "dask": lambda: pytest.importorskip("dask.array").ones(2),
    "key of jax": lambda: pytest.importorskip("jax").random.key(0),
    "Dataset": lambda: pytest.importorskip("xarray").Dataset({"a": ("x", [1])}),
}


@pytest.mark.parametrize("name", WITH_CALLS)
@pytest.mark.parametrize(
    "library", ["numpy", "torch", "jax", "arrow", "polars", "pandas", "xarray", "arrayhub", "scipy"]
)
def test_the_call_of_a_refusal_works(name, library):
    pytest.importorskip({"arrow": "pyarrow"}.get(library, library))
    x, refusal = WITH_CALLS[name](), None
    try:
        ah.convert(x, library)
    except ah.Refusal as error:
        refusal = error
    call = ah.explain(x, to=library).call
    assert refusal is None or refusal.call == call
    if call:
        assert eval(call, {"arrayhub": ah, "numpy": np, "jax": sys.modules.get("jax"), "x": x}) is not None
