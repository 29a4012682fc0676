"""Test that invalid indices and pointers raise an InterfaceError that names the invalid entry."""

import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from sparse_arrays import matrix

import arrayhub as ah


def damaged(format, part, index, value):
    """Return a SciPy array in which one index or pointer is replaced by an invalid value."""
    given = matrix(format)
    getattr(given, part)[index] = value
    return given


USES = {
    "to_dense": lambda x: x.to_dense(),
    "to_format": lambda x: x.to_format("coo"),
    "as_torch": lambda x: ah.as_torch(x, copy=None),
    "as_scipy": ah.as_scipy,
    "canonical": lambda x: x.canonical,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("format", "part", "index", "value", "text"),
    [
        ("csr", "indices", 3, 8, r"indices\[3\] is 8; accepted: 0 to 7, the columns of shape \(6, 8\)"),
        ("csr", "indices", 0, -1, r"indices\[0\] is -1; accepted: 0 to 7"),
        ("csc", "indices", 2, 2**31 - 1, r"indices\[2\] is 2147483647; accepted: 0 to 5, the rows"),
        ("bsr", "indices", 1, 100, r"indices\[1\] is 100; accepted: 0 to 7, the blocks of columns"),
        ("csr", "indptr", 0, 1, r"indptr\[0\] is 1; accepted: 0"),
        ("csr", "indptr", 2, -5, r"indptr\[2\] is -5; accepted: \d+ or more, because pointers of rows must not"),
        ("csr", "indptr", 2, 10**9, r"indptr\[3\] is \d+; accepted: 1000000000 or more"),
        ("csr", "indptr", -1, 10**9, r"indptr\[6\] is 1000000000; accepted: \d+, the length of indices"),
        ("csr", "indptr", 2, -(2**31), r"indptr\[2\] is -2147483648"),
        ("coo", "row", 4, 6, r"coords\[0\]\[4\] is 6; accepted: 0 to 5"),
        ("coo", "col", 4, -2, r"coords\[1\]\[4\] is -2; accepted: 0 to 7"),
    ],
)
def test_errors_name_the_invalid_index(use, format, part, index, value, text):
    x = ah.assparse(damaged(format, part, index, value))
    for _ in range(2):  # also on the second use, because an invalid result is not cached
        with pytest.raises(ah.InterfaceError, match=f"assparse: {text}"):
            USES[use](x)


def tensor(pointers, indices, shape, values=None, make=torch.sparse_csr_tensor):
    """Return a compressed tensor whose pointers and indices torch does not validate."""
    pointers, indices = torch.tensor(pointers), torch.tensor(indices)
    values = torch.ones(indices.shape) if values is None else values
    return make(pointers, indices, values, shape, check_invariants=False)


TENSORS = {
    "csr": (tensor([0, 1, 2], [0, 9], (2, 3)), r"indices\[1\] is 9; accepted: 0 to 2"),
    "bsc": (
        tensor([0, 1, 2], [0, 2], (4, 6), torch.ones(2, 2, 3), torch.sparse_bsc_tensor),
        r"indices\[1\] is 2; accepted: 0 to 1, the blocks of rows",
    ),
    "batches": (tensor([[0, 1, 2]] * 2, [[0, 1], [0, 7]], (2, 2, 3)), r"indices\[1, 1\] is 7"),
    "pointers of batches": (
        tensor([[0, 1, 2], [0, 9, 2]], [[0, 1]] * 2, (2, 2, 3)), r"indptr\[1, 2\] is 2; accepted: 9 or more"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "text"), TENSORS.values(), ids=TENSORS)
def test_errors_name_the_invalid_index_of_a_tensor(given, text):
    with pytest.raises(ah.InterfaceError, match=f"assparse: {text}"):
        ah.assparse(given).to_dense()


@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ("indptr", np.zeros(3, np.int32), r"shape of indptr is \(3,\); accepted: \(7,\), one more than the number"),
        ("indptr", np.zeros((7, 1), np.int32), "shape of indptr"),
        ("indices", np.zeros(2, np.int32), "shape of indices"),
        ("data", np.zeros(2), "shape of indices"),
        ("data", np.zeros(()), "shape of data"),
        ("indices", np.zeros((13, 1), np.int32), "shape of indices"),
    ],
)
def test_import_rejects_contradicting_shapes(part, value, text):
    given = matrix()
    setattr(given, part, value)
    with pytest.raises(ah.InterfaceError, match=f"scipy.sparse: {text}"):
        ah.assparse(given)


@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("dtype", ["float64", "bool", ">i4", "m8[s]"])
def test_indices_of_other_types_are_rejected(part, dtype):
    given = matrix()
    setattr(given, part, getattr(given, part).astype(dtype))
    with pytest.raises(ah.InterfaceError, match=f"dtype of {part} is"):
        ah.as_scipy(ah.assparse(given))


def test_excess_elements_of_scipy_arrays_are_ignored():
    given = matrix()
    dense = given.toarray()
    given.data = np.append(given.data, [7.0, 8.0])
    given.indices = np.append(given.indices, np.array([99, -1], np.int32))
    x = ah.assparse(given)
    assert x.nnz == given.nnz == len(x.indices)
    assert x.to_dense().tolist() == dense.tolist()
    assert ah.as_torch(x).to_dense().tolist() == dense.tolist()


def test_missing_coordinates_are_rejected():
    given = scipy.sparse.coo_array((2, 3))
    given.coords = ()
    with pytest.raises(ah.InterfaceError, match="shape is .*; accepted: 0 sparse dimensions"):
        ah.assparse(given)


def test_index_into_an_empty_dimension_is_rejected():
    given = scipy.sparse.coo_array((2, 0))
    given.data, given.coords = np.ones(1), (np.zeros(1, np.int32), np.zeros(1, np.int32))
    with pytest.raises(ah.InterfaceError, match=r"coords\[1\]\[0\] is 0; accepted: no index"):
        ah.assparse(given).to_dense()


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_error_names_a_negative_index_of_a_long_dimension(dtype):
    length = 1 << 40
    given = scipy.sparse.coo_array((2, length))
    given.data, given.coords = np.ones(2), (np.array([0, 1], dtype), np.array([0, -1], dtype))
    with pytest.raises(ah.InterfaceError, match=rf"coords\[1\]\[1\] is -1; accepted: 0 to {length - 1}"):
        _ = ah.assparse(given).canonical
    given.coords = (given.coords[0], np.array([0, 127], dtype))
    assert ah.assparse(given).canonical


@pytest.mark.parametrize("format", ["coo", "csr", "csc"])
def test_canonical_order_is_detected(format):
    assert ah.assparse(matrix(format)).canonical
    given = scipy.sparse.csr_array(([1.0, 2.0], [5, 1], [0, 2, 2, 2, 2, 2, 2]), shape=matrix().shape)
    assert not ah.assparse(given).canonical
    given.indices[0] = 1
    for dtype in ("f8", ">f8", "i1", "m8[s]"):
        given.data = given.data.astype(dtype)
        x, y = ah.assparse(given), ah.assparse(given).to_format(format)
        assert y.canonical and not x.canonical and np.asarray(y.data).tobytes() == np.array([3], dtype).tobytes()


@pytest.mark.parametrize("repeated", [False, True])
def test_canonical_order_on_a_device_is_cached(dpctl, repeated):
    given = matrix("coo")
    if repeated:
        given.coords[0][1], given.coords[1][1] = given.coords[0][0], given.coords[1][0]
    x = ah.assparse(given).to_device(dpctl.SyclQueue("cpu"))
    with ah.trace() as events:
        assert x.canonical is not repeated
    assert [event.kind for event in events.events].count("copy") == 3
    with ah.trace() as events:
        assert x.canonical is not repeated
    assert not events.events


def test_canonical_rows_may_start_below_the_last_index_of_the_previous_row():
    given = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [7, 0, 3], [0, 1, 1, 3]), shape=(3, 8))
    assert ah.assparse(given).canonical


def test_exports_do_not_validate_trusted_indices():
    """After ``assparse(validate=False)``, exports do not validate the indices, but methods that use the indices do."""
    given = damaged("csr", "indices", 3, 8)
    x = ah.assparse(given, validate=False)
    assert ah.as_scipy(x).indices[3] == ah.as_torch(x).col_indices()[3] == 8
    for use in ("to_dense", "to_format", "canonical"):
        with pytest.raises(ah.InterfaceError, match=r"indices\[3\] is 8"):
            USES[use](x)
    assert "indices[3] is 8" in ah.check(x)[0]
    with pytest.raises(ah.InterfaceError, match=r"indices\[3\] is 8"):
        ah.as_torch(given)


@pytest.mark.parametrize("derive", [lambda x: x.T, lambda x: x.copy(), lambda x: ah.assparse(x), lambda x: x.to_host()])
def test_arrays_derived_from_trusted_arrays_are_trusted(derive):
    x = derive(ah.assparse(damaged("csr", "indices", 3, 8), validate=False))
    assert ah.as_scipy(x).indices[3] == 8


def test_other_arrays_on_trusted_indices_are_validated():
    x = ah.assparse(damaged("csr", "indices", 3, 8))
    trusted = ah.assparse(x, validate=False)
    assert trusted is not x and trusted.indices is x.indices
    assert ah.assparse(x, copy=True, validate=False).indices.ptr != x.indices.ptr
    for made in (x, pickle.loads(pickle.dumps(trusted))):  # pickles are not trusted
        with pytest.raises(ah.InterfaceError, match=r"indices\[3\] is 8"):
            ah.as_scipy(made)


def test_trusted_coordinates_are_exported_as_coalesced_only_if_known():
    tensor = torch.eye(3).to_sparse_coo()
    x = ah.assparse(tensor, validate=False)
    assert not ah.as_torch(x).is_coalesced()
    assert x.canonical
    assert ah.as_torch(x).is_coalesced()


@pytest.mark.parametrize("validate", [None, 0, "no"])
def test_invalid_values_of_validate_raise(validate):
    with pytest.raises(TypeError, match="assparse: validate is .*; accepted: True, False"):
        ah.assparse(matrix(), validate=validate)
