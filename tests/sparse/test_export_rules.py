"""The libraries follow the rules in the table of docs/sparse.md. Each row of the table has a test."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.sparse
import torch
from jax.experimental import sparse as jax_sparse
from matrix.sparse import SPARSE_PRODUCERS, aligned
from sparse_arrays import matrix

import arrayhub as ah
from arrayhub.sparse.export import conform
from arrayhub.sparse.libraries import RULES

pytestmark = pytest.mark.slow

pydata_sparse = pytest.importorskip("sparse")

LIBRARIES = ("scipy", "torch", "jax", "pydata_sparse")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sparse.md").read_text()


def dense(made):
    """Return the values of a sparse array of any library as nested lists."""
    if isinstance(made, torch.Tensor):
        return made.to_dense().tolist()
    return np.asarray(made.todense()).tolist()


def compressed(indices="int32", columns=(5, 1, 2), values=(1.0, 2.0, 3.0), width=8, dtype="float32"):
    """Return a csr array of one row."""
    made = scipy.sparse.csr_array((1, width), dtype=dtype)
    made.data = np.array(values, dtype)
    made.indices, made.indptr = np.array(columns, indices), np.array([0, len(columns)], indices)
    return made


def row_of_page(name):
    """Return the cells of a row of the table in docs/sparse.md."""
    found = re.search(rf"^\| {name} \| (.+) \|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in found[1].split(" | ")]


def test_page_lists_the_formats():
    formats = [", ".join(RULES[library].formats) for library in ("scipy", "torch", "jax", "cupy", "pydata_sparse")]
    assert row_of_page("formats") == formats


# The index types that each library shares, and some that it copies on request.
INDICES = {
    ("csr", "scipy"): ("int32 int64", "int16"),
    ("csr", "torch"): ("int32 int64", "int16 uint32"),
    ("csr", "jax"): ("int32", "int64"),
    ("csr", "pydata_sparse"): ("int32 int64 uint8", ""),
    ("coo", "scipy"): ("int32 int64", "int16"),
    ("coo", "torch"): ("int64", "int32 uint8"),
    ("coo", "jax"): ("int32", "int64"),
    ("coo", "pydata_sparse"): ("int32 int64 uint8", ""),
}


def with_indices(format, dtype):
    """Return an array with indices of a type, on the aligned memory that jax requires."""
    if format == "coo":
        coords = aligned(np.array([[0, 1, 2], [3, 0, 1]], dtype))
        values = aligned(np.ones(3, "float32"))
        return pydata_sparse.COO(coords, values, shape=(4, 4), has_duplicates=False, sorted=True)
    given = compressed(dtype, (1, 2, 5))
    given.indices, given.indptr, given.data = map(aligned, (given.indices, given.indptr, given.data))
    return given


@pytest.mark.parametrize(
    ("format", "library", "indices", "shared"),
    [
        (format, library, indices, shared)
        for (format, library), names in INDICES.items()
        for shared, column in zip((True, False), names, strict=True)
        for indices in column.split()
    ],
)
def test_index_types_are_shared_or_copied(format, library, indices, shared):
    x = ah.assparse(with_indices(format, indices))
    if not shared:
        with pytest.raises(BufferError, match=rf"indices of {indices} are not supported") as raised:
            ah.convert(x, library)
        assert dense(eval(raised.value.call, {"arrayhub": ah, "x": x})) == x.to_dense().tolist()
    made = ah.convert(x, library, copy=False if shared else None)
    assert dense(made) == x.to_dense().tolist()
    back = ah.assparse(made)
    kept, given = (back.coords[0], x.coords[0]) if format == "coo" else (back.indices, x.indices)
    assert back.data.ptr == x.data.ptr
    assert (kept.ptr == given.ptr) is (kept.dtype == indices) is shared


def test_read_only_memory_is_exported_to_torch_on_request():
    given = compressed(columns=(1, 2, 5))
    for part in (given.data, given.indices, given.indptr):
        part.flags.writeable = False
    made = ah.as_torch(given, allow_readonly=True)
    assert made.values().data_ptr() == given.data.ctypes.data


@pytest.mark.parametrize("columns", [(5, 1, 2), (1, 1, 5)], ids=["unsorted", "duplicates"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_unsorted_and_repeated_csr_indices_are_exported_or_rejected(library, columns):
    x = ah.assparse(compressed(columns=columns))
    expected = x.to_dense().tolist()
    refused = "csr" in RULES[library].canonical
    assert refused is (library in ("torch", "pydata_sparse"))
    if refused:
        with pytest.raises(BufferError, match="unsorted or repeated") as raised:
            ah.convert(x, library)
        assert dense(eval(raised.value.call, {"arrayhub": ah, "x": x})) == expected
    made = ah.convert(x, library, copy=None)
    assert dense(made) == expected
    assert ah.assparse(made).canonical is refused


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (3, 4)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_matrices_without_stored_values_are_exported(library, shape):
    made = ah.convert(scipy.sparse.csr_array(shape, dtype="float32"), library, copy=None)
    assert tuple(made.shape) == shape and ah.assparse(made).nnz == 0


@pytest.mark.parametrize("library", ["scipy", "torch", "pydata_sparse"])
def test_shapes_beyond_31_bits_are_exported(library):
    wide = 2**33
    x = ah.assparse(compressed("int64", (1, 2, 2**32 + 5), width=wide))
    made = ah.convert(x, library)
    assert tuple(made.shape) == (1, wide)
    back = ah.assparse(made)
    assert back.indices.ptr == x.indices.ptr and back.indices.tolist() == [1, 2, 2**32 + 5]


def test_shapes_beyond_31_bits_require_x64_for_jax():
    x = ah.assparse(compressed("int64", (1, 2, 2**32 + 5), width=2**33))
    with pytest.raises(BufferError, match="needs indices of int64"):
        ah.as_jax(x, copy=None)
    with jax.enable_x64(True):
        assert ah.as_jax(x, copy=None).indices.tolist() == [1, 2, 2**32 + 5]


def test_narrow_indices_of_a_wide_shape_are_valid():
    """A dimension may be longer than the range of the index type if all indices are within the range."""
    x = ah.assparse(compressed("int32", (1, 2, 5), width=2**40))
    assert ah.as_torch(x).shape[1] == 2**40
    assert x.to_format("coo").coords[1].tolist() == [1, 2, 5]


def test_int64_indices_of_scipy_are_not_narrowed():
    """int64 indices are shared. SciPy's constructors would copy int64 indices to int32 if the values fit."""
    given = matrix("csr")
    given.indices, given.indptr = given.indices.astype("int64"), given.indptr.astype("int64")
    for made in (ah.as_scipy(given), ah.like(given, scipy.sparse.csr_matrix((1, 1)))):
        assert made.indices.dtype == "int64" and np.shares_memory(made.indices, given.indices)
        assert made.toarray().tolist() == given.toarray().tolist()


def cell(row, library):
    """Return the cell of a library in a row of the table of docs/sparse.md."""
    return row_of_page(row)[("scipy", "torch", "jax", "cupy", "pydata_sparse").index(library)]


@pytest.mark.parametrize("columns", [(2, 0, 1), (1, 1, 0)], ids=["unsorted", "duplicates"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_unsorted_and_repeated_coordinates_follow_the_table(library, columns):
    given = scipy.sparse.coo_array((2, 3), dtype="float32")
    given.data = np.ones(3, "float32")
    given.coords = np.zeros(3, "int32"), np.array(columns, "int32")
    made = ah.convert(given, library, copy=None)
    assert dense(made) == given.toarray().tolist()
    sorted_here = "coo" in RULES[library].canonical
    assert ah.assparse(made).canonical is sorted_here is (cell("unsorted or repeated indices", library)[:6] == "sorted")


@pytest.mark.parametrize("library", LIBRARIES)
def test_explicit_zeros_are_kept(library):
    for cls in (scipy.sparse.coo_array, scipy.sparse.csr_array):
        given = cls(scipy.sparse.coo_array((np.array([0, 1], "float32"), ([0, 1], [0, 1])), shape=(3, 4)))
        made = ah.convert(given, library, copy=None)
        assert ah.assparse(made).nnz == 2 and tuple(made.shape) == (3, 4)


@pytest.mark.parametrize("library", LIBRARIES)
def test_extra_sparse_dense_and_batch_dimensions_follow_the_table(library):
    """Each library accepts coo arrays of three dimensions. Only torch and jax accept dense dimensions and batches."""
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    made = ah.convert(scipy.sparse.coo_array(values), library, copy=None)
    assert dense(made) == values.tolist()
    tensor = torch.from_numpy(values)
    for given, words in ((tensor.to_sparse(2), "dense dimensions"), (torch.ones(2, 3, 4).to_sparse_csr(), "batches")):
        if library in ("torch", "jax"):
            assert dense(ah.convert(given, library, copy=None)) == given.to_dense().tolist()
        else:
            with pytest.raises(BufferError, match=words):
                ah.convert(given, library, copy=None)


@pytest.mark.parametrize("indices", ["int8", "uint16", "int32", "uint32"])
def test_jax_receives_the_given_index_type(indices):
    given = compressed(indices, (1, 2, 5))
    made = ah.as_jax(given, copy=None)
    assert made.indices.dtype == indices and dense(made) == given.toarray().tolist()


@pytest.mark.parametrize(
    ("library", "dtype"),
    [("torch", "longdouble"), ("torch", "S3"), ("jax", "longdouble"), ("jax", "float64"), ("jax", "datetime64[s]")],
)
def test_value_types_that_a_library_lacks_are_rejected(library, dtype):
    given = compressed(columns=(1, 2, 5))
    given.data = np.ones(3, dtype)
    with pytest.raises((BufferError, TypeError), match="does not have a code|with jax_enable_x64"):
        ah.convert(given, library, copy=None)


def sparse_arrays(dtype):
    """Return sparse arrays of NumPy's `dtype` in each format and with all kinds of dimensions, by name."""
    values, made = np.array([[1, 0, 1], [0, 1, 0]], dtype), {}
    for name in ("coo", "csr", "csc", "bsr"):
        array = made[f"scipy {name}"] = getattr(scipy.sparse, f"{name}_array")(values.astype("float64"))
        array.data = array.data.astype(dtype)  # SciPy's constructors reject some types
    made["pydata coo"] = pydata_sparse.COO.from_numpy(np.stack([values, values]))
    if dtype not in (">f4", "longdouble"):
        tensor = torch.from_numpy(values)
        for layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
            options = {} if layout in (torch.sparse_csr, torch.sparse_csc) else {"blocksize": (1, 1)}
            made[f"{layout}"] = tensor.to_sparse(layout=layout, **options)
            made[f"{layout} batch"] = torch.stack([tensor, tensor]).to_sparse(layout=layout, **options)
            made[f"{layout} dense"] = torch.stack([tensor, tensor], -1).to_sparse(layout=layout, dense_dim=1, **options)
        made["torch coo dense"] = torch.stack([tensor, tensor], -1).to_sparse(2)
    if dtype == "float32":
        uneven = jax.numpy.stack([values, values * 0])
        for cls in (jax_sparse.BCOO, jax_sparse.BCSR):
            made[f"{cls.__name__} batch"] = cls.fromdense(uneven, n_batch=1)
        for producer in SPARSE_PRODUCERS:
            made |= {f"{producer.name} {format}": producer.make(format) for format in producer.formats}
    return made


def values_of(array):
    """Return the values of a sparse or dense array as a dense NumPy array."""
    try:
        return ah.as_numpy(ah.assparse(array).to_dense(), copy=None)
    except TypeError:
        return ah.as_numpy(array, copy=None)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32", "float64", "complex128", "longdouble", ">f4"])
def test_call_of_each_refusal_works(dtype):
    failed = []
    for name, x in sparse_arrays(dtype).items():
        for library in (*LIBRARIES, "numpy", "arrow", "pandas"):
            call = ah.explain(x, to=library).call
            assert eval(call, {"arrayhub": ah, "x": x}) is not None, (name, library, call)
            for copy in (False, None, True):
                try:
                    ah.convert(x, library, copy=copy)
                except ah.Refusal as error:
                    failed.append((name, library, copy, x, error, call))
    assert failed
    for name, library, copy, x, error, call in failed:
        assert copy is not False or error.call == call, (name, library)
        assert error.reason and error.reason in str(error) and error.call in str(error), (name, library, copy)
        made = eval(error.call, {"arrayhub": ah, "x": x})
        if library not in ("arrow", "pandas"):  # which store rows as lists
            assert np.array_equal(values_of(made), values_of(x)), (name, library, copy, error.call)


def test_values_of_non_native_byte_order_are_copied_for_scipy():
    given = compressed(columns=(1, 2, 5))
    given.data = np.array([1.5, 2, 3], np.dtype("f8").newbyteorder())
    x = ah.assparse(given)
    with pytest.raises(ah.Refusal, match="values of .f8 are not in native byte order") as raised:
        ah.as_scipy(x)
    assert raised.value.call == "arrayhub.as_scipy(x, copy=True)"
    assert ah.explain(x, to="scipy").verdicts[0].verdict == "copy=True"
    for copy in (None, True):
        made = ah.as_scipy(x, copy=copy)
        assert made.dtype == "float64" and made.dtype.isnative and made.data.tolist() == [1.5, 2, 3]
        assert made.toarray().sum() == 6.5
        assert np.shares_memory(made.indices, given.indices) == (copy is None)


@pytest.mark.parametrize("char", RULES["scipy"].values["coo"])
def test_scipy_supports_the_values_of_its_rule(char):
    for cls in (scipy.sparse.csr_array, scipy.sparse.coo_array):
        x = ah.assparse(cls(np.ones((2, 2), char)))
        assert ah.as_scipy(x).toarray().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float32", "complex64"])
def test_value_types_are_kept(library, dtype):
    given = compressed(columns=(1, 2, 5), dtype=dtype)
    made = ah.assparse(ah.convert(given, library, copy=None))
    assert made.dtype == dtype and made.data.tolist() == given.data.tolist()


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bsr"])
def test_as_scipy_and_like_return_the_right_scipy_class(kind, format):
    cls = getattr(scipy.sparse, f"{format}_{kind}")
    given = cls(matrix(format))
    assert ah.as_scipy(given) is given
    assert type(ah.as_scipy(ah.assparse(given))) is getattr(scipy.sparse, f"{format}_array")
    assert type(ah.like(ah.assparse(given), cls)) is cls


# These rules for CuPy do not need a GPU. tests/gpu/test_sparse.py tests the other rules.


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (matrix("bsr"), r"bsr is not supported; accepted: coo, csr, csc"),
        (matrix(dtype="int32"), "values of int32 are not supported; accepted: bool, float32, float64, complex64"),
        (scipy.sparse.coo_array(np.ones((2, 3, 4))), r"has 3 dimensions; accepted: 2"),
        (torch.ones(2, 3, 4).to_sparse_csr(), r"batches, which are not supported"),
        (torch.ones(2, 3, 4).to_sparse(2), r"dense dimensions, which are not supported"),
        (compressed("int64", (1, 2, 2**32 + 5), width=2**33), "needs indices of int64; accepted: int32"),
    ],
    ids=["bsr", "int32 values", "three dimensions", "batches", "dense dimensions", "wide"],
)
def test_arrays_that_cupy_lacks_are_rejected(given, words):
    with pytest.raises(BufferError, match=f"cupy: .*{words}"):
        conform(ah.assparse(given), "cupy", True)


def test_indices_are_narrowed_to_int32_for_cupy():
    x = ah.assparse(compressed("int64", (5, 1, 1)))
    with pytest.raises(BufferError, match="indices of int64 are not supported; accepted: int32"):
        conform(x, "cupy", False)
    made = conform(x, "cupy", True)
    assert made.indices.dtype == made.indptr.dtype == "int32" and made.data is x.data and not made.canonical
