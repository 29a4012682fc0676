"""Test the arguments copy, dtype, device and missing of `asarray`, `convert` and the ``as_*`` functions."""

import ctypes
import inspect
import io
import mmap
import pickle
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

import arrayhub as ah

awkward = pytest.importorskip("awkward")
jax = pytest.importorskip("jax")
numba = pytest.importorskip("numba")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
scipy_sparse = pytest.importorskip("scipy.sparse")
strict = pytest.importorskip("array_api_strict")
torch = pytest.importorskip("torch")
xarray = pytest.importorskip("xarray")

# The exports, with the libraries that have a dense array in host memory first.
DENSE = ["numpy", "torch", "jax", "numba"]
NESTED = ["arrow", "polars", "pandas", "awkward"]
TO_COLUMNS = ["as_arrow", "as_polars", "as_pandas", "as_awkward", "asnested"]


def on_device(values):
    pytest.importorskip("dpctl")
    return ah.to_device(values, "oneapi:0")


def export(x, library, **keywords):
    return ah.convert(x, library, **keywords)


# --------------------------------------------------------------------------------------------------------- signatures

EXPORTS = [getattr(ah, name) for name in dir(ah) if name.startswith("as_") and name != "as_mpi"]
FUNCTIONS = [ah.asarray, ah.asnested, ah.convert, *EXPORTS]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_imports_and_exports_take_the_same_keywords(function):
    parameters = inspect.signature(function).parameters
    assert parameters["copy"].default is False
    for name in ("dtype", "device", "missing"):
        assert parameters[name].default is None and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name


# -------------------------------------------------------------------------------------------------------------- dtype

FRAME = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
DTYPES = {  # spellings of float32
    "string": "float32", "short": "f4", "numpy": np.float32, "dtype": np.dtype("f4"), "torch": torch.float32,
    "jax": jax.numpy.float32, "polars": polars.Float32, "pyarrow": pyarrow.float32(), "pandas": pandas.Float32Dtype(),
    "numba": numba.float32, "array_api_strict": strict.float32,
}  # fmt: skip
SOURCES = {
    "ndarray": np.arange(6.0).reshape(2, 3), "reversed ndarray": np.arange(6.0)[::-1],
    "big-endian ndarray": np.arange(3, dtype=">i4"), "object ndarray": np.array([[1, 2.5], [True, 4]], object),
    "tensor": torch.arange(3), "jax": jax.numpy.arange(3), "Series": pandas.Series([1, 2]),
    "frame of several types": FRAME, "polars frame": polars.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
    "Table": pyarrow.table({"a": [1, 2], "b": [0.5, 1.5]}), "chunks": pyarrow.chunked_array([[1, 2], [3]]),
    "booleans of Arrow": pyarrow.array([True, False]), "list": [[1, 2], [3, 4]], "number": 7, "range": range(3),
    "read-only": np.broadcast_to(np.float64(3), (2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("copy", [False, None, True])
@pytest.mark.parametrize("library", ["arrayhub", *DENSE])
@pytest.mark.parametrize("source", SOURCES)
def test_dtype_converts_every_source_for_every_dense_library(source, library, copy):
    x = SOURCES[source]
    made = export(x, library, dtype="float32", copy=copy)
    assert ah.asarray(made).dtype == "f4"
    expected = np.asarray(x.to_pandas() if hasattr(x, "to_pandas") else x).astype("f4")
    assert np.array_equal(ah.as_numpy(made), expected)


@pytest.mark.parametrize("library", NESTED)
@pytest.mark.parametrize("source", ["reversed ndarray", "tensor", "Series", "chunks", "booleans of Arrow", "list"])
def test_dtype_converts_for_libraries_of_columns(source, library):
    x = SOURCES[source]
    made = export(x, library, dtype="float32")
    assert "float" in str(ah.asnested(made).type) and "32" in str(ah.asnested(made).type)
    assert ah.asnested(made).to_list() == ah.asnested(export(x, "numpy", dtype="float32")).to_list()


@pytest.mark.parametrize("spelling", DTYPES)
def test_dtype_takes_the_types_of_every_library(spelling):
    for library in ("numpy", "torch", "jax", "polars"):
        assert ah.asarray(export(np.arange(3), library, dtype=DTYPES[spelling])).dtype == "f4"
    assert ah.asarray(FRAME, dtype=DTYPES[spelling]).dtype == "f4"


@pytest.mark.parametrize("library", ["numpy", "torch", "arrayhub", "numba"])
def test_memory_is_shared_if_dtype_and_device_change_nothing(library):
    x = np.arange(3.0)
    for keywords in (dict(dtype="f8"), dict(device="cpu"), dict(dtype=torch.float64, device="cpu")):
        assert ah.asarray(export(x, library, **keywords)).ptr == x.ctypes.data
        assert ah.asarray(export(x, library, copy=True, **keywords)).ptr != x.ctypes.data


CHANGES = ({"dtype": "f4"}, {"dtype": "f8"}, {"dtype": "i8"}, {"device": "cpu"})


@pytest.mark.parametrize("keywords", CHANGES, ids=str)
def test_a_copy_with_other_keywords_shares_no_part(keywords):
    """Parts that `dtype` and `device` do not change, such as offsets and indices, are copied, too."""
    rows, equal = awkward.Array([[1.0, 2.0], [3.0]]), pyarrow.array([[1.0, 2.0], [3.0, 4.0]])
    offsets = np.asarray(rows.layout.offsets)
    tensor = ah.as_torch(rows, copy=True, **keywords)
    assert not np.shares_memory(tensor.offsets().numpy(), offsets)
    assert not np.shares_memory(tensor.values().numpy(), rows.layout.content.data)
    dense = ah.as_numpy(equal, copy=True, **keywords)
    assert dense.flags.writeable and not np.shares_memory(dense, equal.values.to_numpy())
    matrix = scipy_sparse.csr_array(np.eye(3))
    for library in (ah.as_scipy, ah.as_torch, ah.assparse):
        made = ah.as_scipy(library(matrix, copy=True, **keywords))
        assert not any(np.shares_memory(getattr(made, k), getattr(matrix, k)) for k in ("data", "indices", "indptr"))
    column = pandas.Series([1, 2], dtype="Int64")
    made = ah.as_pandas(column, copy=True, **keywords)
    column.iloc[0] = 9
    assert made.tolist() == [1, 2]


def test_a_cast_tensor_is_not_copied_again():
    cast = ah.as_torch(torch.ones(2, requires_grad=True), dtype="f8", copy=True)
    assert cast.grad_fn.name() == "ToCopyBackward0"


def test_dtype_converts_rows_of_different_lengths():
    for x in ([[1, 2], [3]], pyarrow.array([[1, 2], [3]]), awkward.Array([[1, 2], [3]]), polars.Series([[1, 2], [3]])):
        made = ah.as_torch(x, dtype=torch.float32)
        assert made.is_nested and made.dtype == torch.float32
        assert ah.as_arrow(x, dtype="f4").type.value_type == pyarrow.float32()
    with pytest.raises(TypeError, match="dtype"):
        ah.as_arrow(["a"], dtype="f4")


def test_dtype_of_labelled_data_keeps_the_labels():
    series = pandas.Series([1, 2], index=["a", "b"], name="n")
    made = ah.as_pandas(series, dtype="f4")
    assert made.dtype == "f4" and made.index.tolist() == ["a", "b"] and made.name == "n"
    frame = ah.as_pandas(pandas.DataFrame({"u": [1, 2]}, index=["a", "b"]), dtype="f4")
    assert frame.dtypes.tolist() == [np.dtype("f4")] and frame.index.tolist() == ["a", "b"]
    made = ah.as_polars(polars.DataFrame({"u": [1, 2]}), dtype=polars.Float32)
    assert made.schema == {"u": polars.Float32}


@pytest.mark.parametrize("library", ["scipy", "torch", "jax"])
def test_dtype_converts_sparse_arrays(library):
    x = scipy_sparse.random_array((4, 3), density=0.5, format="csr")
    made = export(x, library, dtype="float32", copy=None)
    assert ah.asarray(ah.assparse(made).data).dtype == "f4"


# ------------------------------------------------------------------------------------------------------------- device


@pytest.mark.parametrize("copy", [False, None, True])
@pytest.mark.parametrize("library", [*DENSE, *NESTED])
def test_device_moves_whatever_copy_says(library, copy):
    x = on_device(np.arange(3.0, dtype="f4"))
    assert ah.as_numpy(export(x, library, device="cpu", copy=copy), copy=None).tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", [*DENSE, *NESTED])
def test_a_device_is_left_only_on_request(library):
    x = on_device(np.arange(3.0, dtype="f4"))
    for copy in (False, None):
        with pytest.raises(ah.Refusal) as raised:
            export(x, library, copy=copy)
        assert "device='cpu'" in raised.value.call
        assert ah.as_numpy(eval(raised.value.call, {"arrayhub": ah, "x": x}), copy=None).tolist() == [0, 1, 2]
    assert ah.as_numpy(export(x, library, copy=True), copy=None).tolist() == [0, 1, 2]


def test_host_memory_reaches_a_device_only_on_request():
    dpnp = pytest.importorskip("dpnp")
    on_device(np.ones(1))
    x = np.arange(3.0)
    for copy in (False, None):
        with pytest.raises(ah.Refusal) as raised:
            ah.as_dpnp(x, copy=copy)
        assert raised.value.call == ah.explain(x, "dpnp").call == "arrayhub.as_dpnp(x, device='oneapi:0')"
    there = dict(device="oneapi:0")
    for made in (ah.as_dpnp(x, copy=True), ah.as_dpnp(x, **there), ah.as_dpnp(x, dtype="f4", **there)):
        assert isinstance(made, dpnp.ndarray) and dpnp.asnumpy(made).tolist() == [0, 1, 2]
    narrow = ah.as_dpnp(ah.as_dpnp(x, copy=True), dtype="f4")
    assert narrow.dtype == "f4" and dpnp.asnumpy(narrow).tolist() == [0, 1, 2]
    swapped = on_device(x.astype(">f4"))
    assert dpnp.asnumpy(ah.as_dpnp(swapped, copy=True)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("keywords", [{}, {"copy": None}, {"copy": True}, {"dtype": "f4"}])
def test_lists_are_built_on_the_device_whatever_copy_says(keywords):
    dpnp = pytest.importorskip("dpnp")
    on_device(np.ones(1))
    for make in (ah.as_dpnp, lambda x, **keywords: ah.convert(x, "dpnp", **keywords)):
        for values in ([1.5, 2.5], np.array([1.5, 2.5], object))[: 1 + bool(keywords)]:
            assert dpnp.asnumpy(make(values, **keywords)).tolist() == [1.5, 2.5]


# ------------------------------------------------------------------------------------------------------------ missing


@pytest.mark.parametrize("library", ["arrayhub", *DENSE])
def test_missing_and_dtype_together(library):
    x = pandas.DataFrame({"a": pandas.array([1, None], "Int64"), "b": [0.5, 1.5]})
    made = ah.as_numpy(export(x, library, missing="nan", dtype="f4"))
    assert made.dtype == "f4" and np.array_equal(made, [[1, 0.5], [np.nan, 1.5]], equal_nan=True)
    assert ah.as_numpy(export(pyarrow.array([1, None]), library, missing=7, dtype="f4")).tolist() == [1, 7]


def test_mask_keeps_its_type_beside_dtype():
    x = pyarrow.array([1, None])
    values, mask = ah.as_torch(x, missing="mask", dtype=torch.float32, copy=None)
    assert (values.dtype, mask.dtype, mask.tolist()) == (torch.float32, torch.bool, [False, True])
    masked = ah.as_numpy(x, missing="mask", dtype="f4")
    assert masked.dtype == "f4" and masked.tolist() == [1, None]
    assert [(len(x), x.dtype) for x in ah.as_torch({}, missing="mask")] == [(0, torch.float64), (0, torch.bool)]


@pytest.mark.parametrize("values", [[1, None, 0], pandas.array([True, None, False]), np.array([1, None, 0], object)])
def test_masks_do_not_depend_on_the_address_of_the_values(values):
    with jax.enable_x64(True):
        made = [ah.as_jax(values, missing="mask") for _ in range(10)]  # jax shares only memory at multiples of 64 bytes
    assert {tuple(mask.tolist()) for _, mask in made} == {(False, True, False)}


# ----------------------------------------------------------------------------------- lazy conjugate and negative bits


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("library", ["arrayhub", "numpy", "jax", "numba", "awkward", "from_dlpack", "via"])
def test_lazy_bits_of_torch_are_resolved_by_copies(library, copy):
    calls = {"from_dlpack": ah.from_dlpack, "via": lambda t, **named: ah.asarray(t, via="dlpack", **named)}
    call = calls.get(library, lambda t, **named: export(t, library, **named))
    t = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj()
    for tensor, expected in ((t, [1 - 2j, 3 + 1j]), (t.imag, [-2, 1])):
        assert ah.as_numpy(call(tensor, copy=copy)).tolist() == expected
        remedy = r"resolve_" if library in calls else "x, copy="
        with pytest.raises(ah.Refusal, match=rf"is_(conj|neg)\(\) is True.*{remedy}"):
            call(tensor, copy=False)
    if library not in calls:
        dtype = "complex64" if library == "jax" else "complex128"
        for request in ({"dtype": dtype}, {"device": "cpu"}, {"missing": 0}):
            assert ah.as_numpy(export(t, library, **request)).tolist() == [1 - 2j, 3 + 1j], request


@pytest.mark.parametrize("copy", [False, None, True])
def test_lazy_bits_of_tensors_in_lists_are_resolved_whatever_copy_says(copy):
    t = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj()
    for tensor, values in ((t, [1 - 2j, 3 + 1j]), (t.imag, [-2, 1])):
        for call in (ah.asarray, ah.as_numpy, ah.as_torch, ah.as_jax):
            assert call([tensor, tensor], copy=copy).tolist() == [values, values]
        assert ah.asnested([tensor, tensor[1:]], copy=copy).to_list() == [values, values[1:]]
        assert ah.from_array(tensor).tolist() == values
        for given in (tensor, [tensor]):
            x = ah.zeros((1, 2), dtype="complex64")
            x[...] = given
            assert x.tolist() == [values]


# ----------------------------------------------------------------------------------------------------------- identity

UNCHANGED = {
    "torch": [
        torch.ones(2), torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2)), torch.ones(2).conj(),
        torch.eye(2).to_sparse(), torch.ones(3)[::2], torch.tensor([1 + 1j]).conj(),
        torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged),
    ],
    "jax": [jax.numpy.ones(2), jax.random.key(0)],
    "numpy": [np.ones(2), np.ones((2, 2))[::-1], np.ones(2, ">f4"), np.broadcast_to(1.0, (2, 2))],
    "pandas": [pandas.Series([1, None]), pandas.DataFrame({"a": [1], "b": ["x"]})],
    "polars": [polars.Series([1, None]), polars.DataFrame({"a": [1]}), polars.Series(["a"])],
    "arrow": [pyarrow.array([1, None]), pyarrow.array(["a"]), pyarrow.chunked_array([[1], [2]])],
    "awkward": [awkward.Array([[1], [2, 3]])],
    "scipy": [scipy_sparse.eye_array(3)],
    "arrayhub": [ah.asarray(np.ones(2))],
}  # fmt: skip


@pytest.mark.parametrize("library", UNCHANGED)
def test_objects_of_the_library_are_returned_unchanged(library):
    for x in UNCHANGED[library]:
        for copy in (False, None):
            assert export(x, library, copy=copy) is x
            if library != "arrayhub":
                assert getattr(ah, f"as_{library}")(x, copy=copy) is x
                assert ah.convert(x, type(x), copy=copy) is x
        assert export(x, library, copy=True) is not x


def test_tracers_are_returned_unchanged():
    seen = []
    assert jax.jit(lambda x: seen.append(ah.as_jax(x) is x) or x * 2)(jax.numpy.ones(2)).tolist() == [2, 2]
    assert jax.grad(lambda x: ah.as_jax(x).sum())(jax.numpy.ones(2)).tolist() == [1, 1]
    assert seen == [True]


def test_a_copy_of_a_tensor_stays_in_the_graph():
    t = torch.ones(2, requires_grad=True)
    ah.as_torch(t, copy=True).sum().backward()
    assert t.grad.tolist() == [1, 1]
    t = torch.tensor([1, 2], dtype=torch.uint8).view(torch.int4)  # torch does not clone integers of less than 8 bits
    assert ah.as_torch(t, copy=True).view(torch.uint8).tolist() == [1, 2]


# -------------------------------------------------------------------------------------------------- bytes and objects

PACKED = np.array([1.5, -2.0], "f4").tobytes()


def shared(data):
    block = SharedMemory(create=True, size=len(data))
    block.buf[: len(data)] = data
    block.unlink()
    return block


def mapped(data):
    memory = mmap.mmap(-1, len(data))
    memory.write(data)
    return memory


UNTYPED = {
    "bytes": bytes, "bytearray": bytearray, "memoryview": memoryview,
    "memoryview of chars": lambda data: memoryview(data).cast("c"),
    "chars of ctypes": lambda data: (ctypes.c_char * len(data))(*data), "mmap": mapped, "shared memory": shared,
    "BytesIO": io.BytesIO, "PickleBuffer": pickle.PickleBuffer, "pyarrow.Buffer": pyarrow.py_buffer,
}  # fmt: skip


@pytest.mark.parametrize("source", UNTYPED)
@pytest.mark.parametrize("function", ["asarray", "from_array", "as_numpy", "as_torch", "as_jax", "like", *TO_COLUMNS])
def test_bytes_with_a_wider_dtype_raise_and_name_view(function, source):
    x = UNTYPED[source](PACKED)
    take = (lambda x, **options: ah.like(x, np.zeros(1), **options)) if function == "like" else getattr(ah, function)
    with pytest.raises(TypeError, match="bytes without a type") as raised:
        take(x, dtype="f4")
    call = raised.value.call
    # Break the cycle of traceback and frame. CPython 3.13 and later report a BytesIO that is in a cycle with its view.
    del raised
    assert call == "arrayhub.asarray(x).view('f4')"
    assert eval(call, {"arrayhub": ah, "x": x}).tolist()[:2] == [1.5, -2]
    if "chars" not in source and function != "from_array":
        assert ah.as_numpy(take(x, dtype="u1", copy=None)).tolist()[:8] == list(PACKED)


OBJECTS = {
    "one dimension": np.array([1, 2.5], object), "two dimensions": np.array([[1, 2.5, True], [3, 4.5, False]], object),
    "three dimensions": np.ones((2, 2, 2)).astype(object), "no dimension": np.array(3, object),
    "integers": np.array([1, 2], object), "complex": np.array([1j, 2], object),
}  # fmt: skip


@pytest.mark.parametrize("library", ["arrayhub", *DENSE])
@pytest.mark.parametrize("case", OBJECTS)
def test_object_arrays_of_numbers_behave_as_lists(case, library):
    x = OBJECTS[case]
    for keywords in (dict(copy=None), dict(copy=True), dict(dtype="c8"), dict(missing=0)):
        keywords = dict(dtype="c8", **keywords) if library == "jax" and "dtype" not in keywords else keywords
        made = ah.asarray(export(x, library, **keywords))
        expected = np.array(x.tolist(), keywords.get("dtype"))
        assert made.shape == x.shape and made.dtype == expected.dtype and np.array_equal(ah.as_numpy(made), expected)
    with pytest.raises(TypeError):
        export(x, library)


def test_object_arrays_of_lists_behave_as_lists():
    rows = np.empty(2, object)
    rows[:] = [[1, 2], [3, 4]]
    assert ah.as_torch(rows, copy=True).shape == (2, 2)
    for library in NESTED:
        expected = ah.asnested(export(rows.tolist(), library)).type
        assert {ah.asnested(export(rows, library, copy=copy)).type for copy in (False, None, True)} == {expected}
    rows[:] = [[1, 2], [3]]
    assert ah.as_torch(rows, copy=True).is_nested


LISTS = {
    "pyarrow": lambda rows: pyarrow.array(rows), "chunks": lambda rows: pyarrow.chunked_array([rows]),
    "polars": lambda rows: polars.Series(rows), "awkward": lambda rows: awkward.Array(rows),
    "NestedArray": lambda rows: ah.asnested(rows),
    "Series": lambda rows: pandas.Series(rows, dtype=pandas.ArrowDtype(pyarrow.list_(pyarrow.int64()))),
    "list views": lambda rows: pyarrow.array(rows, pyarrow.list_view(pyarrow.int64())),
}  # fmt: skip


@pytest.mark.parametrize("keywords", [{"copy": None}, {"copy": True}, {"dtype": "f8"}, {"missing": 0}], ids=str)
@pytest.mark.parametrize("producer", LISTS)
def test_lists_of_variable_length_always_become_a_jagged_tensor(producer, keywords):
    calls = [ah.as_torch, lambda x, **named: ah.convert(x, torch.Tensor, **named)]
    if "dtype" not in keywords:
        calls.append(lambda x, **named: ah.like(x, torch.ones(1), **named))
    missing = [[1, None], [3]] if "missing" in keywords and producer != "awkward" else [[1, 5], [3]]
    for rows in ([[1, 2], [3, 4]], [[1, 2], [3]], missing):
        for call in calls:
            t = call(LISTS[producer](rows), **keywords)
            assert t.is_nested and [row.tolist() for row in t.unbind()] == [[v or 0 for v in row] for row in rows]
    bits = call(pyarrow.array([[True], [False, True]]), **keywords)
    assert [row.tolist() for row in bits.unbind()] == [[True], [False, True]]


def test_lists_of_a_fixed_length_always_become_a_dense_tensor():
    fixed = pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int64(), 2))
    for x in (fixed, polars.Series([[1, 2], [3, 4]], dtype=polars.Array(polars.Int64, 2)), ah.asnested(fixed)):
        for copy in (None, True):
            assert ah.as_torch(x, copy=copy).tolist() == [[1, 2], [3, 4]] and not ah.as_torch(x, copy=copy).is_nested


# ------------------------------------------------------------------------------------------------- convert to a class

CLASSES = {
    pyarrow.Array: np.arange(3.0),
    pyarrow.DoubleArray: np.arange(3.0),
    pyarrow.ChunkedArray: np.arange(3.0),
    pyarrow.Tensor: np.arange(6.0).reshape(2, 3),
    pyarrow.FixedShapeTensorArray: np.arange(6.0).reshape(2, 3),
    pyarrow.Table: np.arange(6.0).reshape(2, 3),
    pyarrow.RecordBatch: np.arange(6.0).reshape(2, 3),
    pandas.Series: np.arange(3.0),
    pandas.DataFrame: np.arange(6.0).reshape(2, 3),
    pandas.Index: np.arange(3.0),
    pandas.DatetimeIndex: np.arange(3).astype("M8[us]"),
    polars.Series: np.arange(3.0),
    polars.DataFrame: np.arange(6.0).reshape(2, 3),
    polars.LazyFrame: np.arange(6.0).reshape(2, 3),
    np.ndarray: torch.arange(3),
    np.matrix: torch.ones(2, 3),
    np.ma.MaskedArray: torch.ones(2, 3),
    torch.Tensor: np.arange(3.0),
    torch.nn.Parameter: np.arange(3.0),
    jax.Array: np.arange(3, dtype="f4"),
    awkward.Array: np.arange(3.0),
    ah.USMArray: np.arange(3.0),
    ah.NestedArray: np.arange(3.0),
}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
def test_convert_gives_an_instance_of_the_class(cls):
    x = CLASSES[cls]
    made = ah.convert(x, cls, copy=None)
    assert isinstance(made, cls)
    assert ah.convert(made, cls) is made
    for source in (polars.Series([1.0, 2.0]), pandas.Series([1.0, 2.0]), [1.0, 2.0], np.ones((2, 2))):
        try:
            made = ah.convert(source, cls, copy=None, dtype="f4" if cls is jax.Array else None)
        except (BufferError, TypeError, ValueError):
            continue
        assert isinstance(made, cls)


def test_lazy_frames_have_the_columns_of_frames():
    for x in (np.ones((2, 3)), np.ones(2), {"a": [1]}, polars.Series("b", [1])):
        made = ah.convert(x, polars.LazyFrame, copy=None)
        assert made.collect().equals(ah.convert(x, polars.DataFrame, copy=None))


NO_INSTANCE = [
    (pyarrow.Int64Array, np.arange(3.0)), (pandas.DatetimeIndex, np.arange(3.0)),
    (pandas.CategoricalIndex, np.arange(3.0)), (np.float64, np.arange(3.0)),
    (pandas.arrays.IntegerArray, np.arange(3.0)), (np.matrix, np.ones((2, 2, 2))),
    (pandas.RangeIndex, [1.0, 5.0]), (scipy_sparse.csr_array, np.ones(3)),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "x"), NO_INSTANCE, ids=lambda value: getattr(value, "__name__", ""))
def test_convert_raises_if_it_cannot_give_an_instance_of_the_class(cls, x):
    with pytest.raises((BufferError, TypeError, ValueError)):
        ah.convert(x, cls, copy=None)


# ---------------------------------------------------------------------------------------------------- dict of columns


def columns():
    return {"a": torch.arange(2), "b": [0.5, 1.5], "c": np.array([True, False]), "d": ["x", "y"]}


def test_a_dict_of_columns_is_a_table():
    expected = [{"a": 0, "b": 0.5, "c": True, "d": "x"}, {"a": 1, "b": 1.5, "c": False, "d": "y"}]
    assert ah.asnested(columns()).to_list() == expected
    x = np.arange(3.0)
    assert ah.asnested({"a": x})["a"].ptr == x.ctypes.data
    assert ah.as_polars(columns()).to_dicts() == ah.convert(columns(), polars.DataFrame).to_dicts() == expected
    assert ah.as_pandas(columns()).to_dict("records") == expected
    assert ah.as_arrow(columns()).to_pylist() == ah.convert(columns(), pyarrow.Table).to_pylist() == expected


def test_columns_with_different_labels_are_not_combined_by_position():
    x = pandas.Series([1, 2, 3])
    for other in (pandas.Series([4, 5, 6], [2, 1, 0]), xarray.DataArray([4, 5, 6], {"n": [2, 1, 0]})):
        with pytest.raises(ValueError, match="labels of dimension 0 of column 'a'.* column 'c'.*differ"):
            ah.as_polars({"a": x, "b": np.ones(3), "c": other})
    assert ah.as_polars({"a": x, "b": x.to_numpy(), "c": x.copy()}).shape == (3, 3)


def test_error_for_a_dict_names_the_key():
    with pytest.raises(ValueError, match="'b'.*3.*2"):
        ah.as_polars({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(TypeError, match="'b'"):
        ah.asnested({"a": [1, 2], "b": object()})
    with pytest.raises(TypeError, match="3"):
        ah.asnested({3: [1, 2]})


def test_sparse_memory_leaves_a_device_only_on_request():
    x = ah.assparse(scipy_sparse.eye_array(3, format="csr")).to_device(str(on_device(np.ones(1)).device))
    for copy in (False, None):
        with pytest.raises(BufferError, match="the memory is on oneapi:0"):
            ah.as_scipy(x, copy=copy)
    for keywords in (dict(copy=True), dict(device="cpu"), dict(device="cpu", dtype="f4")):
        assert ah.as_scipy(x, **keywords).diagonal().tolist() == [1, 1, 1]


def test_dtype_of_a_parameter_is_changed_by_torch():
    parameter = torch.nn.Parameter(torch.ones(2))
    wide = ah.as_torch(parameter, dtype="float64")
    wide.sum().backward()
    assert wide.dtype == torch.float64 and parameter.grad.tolist() == [1, 1]
    assert ah.as_torch(parameter, dtype=torch.float32, device="cpu") is parameter


REFUSED_BY_LIBRARIES = {
    "meta": ("torch", lambda: torch.ones(1, device="meta"), {"device": "cpu"}),
    "quantized": ("torch", lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), {"dtype": "f4"}),
    "key": ("jax", lambda: pytest.importorskip("jax").random.key(0), {"dtype": "f4"}),
}


@pytest.mark.parametrize("name", REFUSED_BY_LIBRARIES)
def test_errors_of_a_library_that_changes_its_own_array_are_refusals(name):
    library, make, keywords = REFUSED_BY_LIBRARIES[name]
    with pytest.raises(ah.Refusal) as raised:
        ah.convert(make(), library, **keywords)
    assert raised.value.subject == library and raised.value.reason


def test_dtype_of_pandas_objects_is_cast_as_by_numpy_and_keeps_missing_values():
    pd = pytest.importorskip("pandas")
    nullable = ah.as_pandas(pd.Series([1, None], dtype="Int64", index=[5, 6], name="q"), dtype="int8")
    assert nullable.isna().tolist() == [False, True] and nullable.dtype.numpy_dtype == np.int8
    assert nullable.index.tolist() == [5, 6] and nullable.name == "q"
    assert ah.as_pandas(pd.Series([-1.5]), dtype="uint8").tolist() == [255]
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert ah.as_pandas(pd.Series([1.5, np.nan]), dtype="int8").dtype == np.int8
    mixed = pd.DataFrame({"a": np.ones(2, "f4"), "b": [1, 2]})  # one column has the type
    copied = ah.as_pandas(mixed, dtype="f4", copy=True)
    assert not np.shares_memory(copied["a"].to_numpy(), mixed["a"].to_numpy())
    frame = ah.as_pandas(pd.DataFrame([[1, 2.5]], columns=["a", "a"], index=[7]), dtype="f4")
    assert frame.dtypes.tolist() == [np.float32] * 2 and frame.index.tolist() == [7] and frame.shape == (1, 2)
    for text in (pd.Series(["1"]), pd.Series(["1"], dtype="category"), pd.DataFrame({"a": [1], "b": ["x"]})):
        with pytest.raises(ah.Refusal, match="accepted: numbers, and times"):
            ah.as_pandas(text, dtype="int8")


@pytest.mark.parametrize("function", ["as_numpy", "as_torch", *TO_COLUMNS])
def test_python_integers_out_of_the_range_of_dtype_raise(function):
    take = getattr(ah, function)
    nested = [[[1], [300, 2]], [{"a": 300}], {"a": np.array([1]), "b": [300]}] if function in TO_COLUMNS else []
    for values in ([300], *nested):
        with pytest.raises(OverflowError, match="300 is out of the range of int8"):
            take(values, dtype="int8")
    with pytest.raises(OverflowError, match="300 is out of the range of int8"):
        take([300, None], dtype="int8", missing=0)
    wrapped = take(np.array([300, -1]), dtype="uint8")  # as ndarray.astype does
    assert ah.as_numpy(wrapped).tolist() == [44, 255]
    if nested:
        assert ah.asnested(take({"a": np.array([300])}, dtype="int8")).to_list() == [{"a": 44}]


BUILT = {
    "numbers": [1.5, 2.0], "booleans": [True, False], "number": 1.5, "boolean": True,
    "other byte order": [np.array([1.0, 2.0], ">f4")], "days": [np.datetime64("2020-01-01")],
}  # fmt: skip


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("library", ["numpy", "torch", "jax", *NESTED])
def test_lists_and_numbers_are_built_whatever_copy_says(library, name):
    if (name == "days" and library in ("torch", "jax")) or (np.ndim(BUILT[name]) == 0 and library in NESTED):
        pytest.skip("the library does not have such arrays")
    made = [ah.convert(BUILT[name], library, copy=copy) for copy in (False, None, True)]
    assert len({repr(each).partition(" at 0x")[0] for each in made}) == 1


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", *NESTED, "xarray", "arrayhub"])
def test_requests_that_change_nothing_return_the_object(library):
    if library == "xarray":
        pytest.importorskip("xarray")
    own = ah.convert(np.array([1.5, 2.0], "f4"), library, copy=None)
    requests = [{"dtype": "float32"}, {"device": "cpu"}, {"dtype": "float32", "device": "cpu"}]
    for request in [*requests, {"missing": 0}] if library not in ("pandas", "xarray") else requests:
        for copy in (False, None):
            assert ah.convert(own, library, copy=copy, **request) is own, request


def test_requests_that_change_nothing_share_the_memory():
    text, records = np.array(["a", "bc"]), np.array([(1, 2.5)], "i4,f8")
    for x, missing in ((text, "x"), (text.astype("S"), b"x"), (records, 0)):
        assert ah.as_numpy(x, missing=missing) is x and ah.asarray(x, missing=missing).ptr == x.ctypes.data
        assert ah.asnested(x, dtype=x.dtype).to_list() == ah.asnested(x).to_list()
    assert ah.as_arrow(np.array(["1", "2"]), dtype="i4").to_pylist() == [1, 2]
    booleans, floats = pandas.Series([True, False]), pandas.Series([1.5, None])
    assert ah.asarray(booleans, missing=False).ptr == booleans.to_numpy().ctypes.data
    assert ah.asarray(floats, missing="nan").ptr == floats.to_numpy().ctypes.data
    assert ah.as_arrow(floats, dtype="f8").buffers()[1].address == floats.to_numpy().ctypes.data


@pytest.mark.parametrize("function", ["asarray", "as_numpy", "as_torch", *TO_COLUMNS])
def test_dtype_with_missing_is_the_type_of_the_value(function):
    for missing in (300, 1.5):
        filled = getattr(ah, function)(pyarrow.array([1, None], pyarrow.int8()), dtype="f8", missing=missing)
        assert ah.as_numpy(filled).tolist() == [1, missing]
