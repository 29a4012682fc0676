"""Test import through the binsparse protocol, with valid and invalid descriptors."""

import numpy as np
import pytest
import torch
from sparse_arrays import addresses, matrix

import arrayhub as ah


class Producer:
    """Producer with the two methods of the binsparse protocol."""

    def __init__(self, format, arrays, shape=(6, 8), **changes):
        self.facts = {
            "version": "0.1",
            "format": format,
            "shape": list(shape),
            "number_of_stored_values": len(arrays["values"]),
            "data_types": {name: str(array.dtype) for name, array in arrays.items()},
            **changes,
        }
        self.arrays = arrays

    def __binsparse_descriptor__(self):
        return {"binsparse": self.facts, "original_source": "a test"}

    def __binsparse__(self):
        return self.arrays


def arrays_of(given):
    if given.format == "coo":
        return {"values": given.data, "indices_0": given.row, "indices_1": given.col}
    return {"values": given.data, "indices_1": given.indices, "pointers_to_1": given.indptr}


ROWS = {
    "level_desc": "dense",
    "rank": 1,
    "level": {"level_desc": "sparse", "rank": 1, "level": {"level_desc": "element"}},
}
POINTS = {"level_desc": "sparse", "rank": 2, "level": {"level_desc": "element"}}


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("csr", "CSR"),
        ("csc", "CSC"),
        ("coo", "COO"),
        ("coo", "COOR"),
        ("csr", {"custom": {"level": ROWS}}),
        ("csr", {"custom": {"transpose": [0, 1], "level": ROWS}}),
        ("csc", {"custom": {"transpose": [1, 0], "level": ROWS}}),
    ],
)
def test_objects_with_the_protocol_are_imported_on_their_memory(format, name):
    given = matrix(format)
    x = ah.assparse(Producer(name, arrays_of(given)))
    assert x.format == format and addresses(x) == addresses(ah.assparse(given))
    assert ah.as_scipy(x).toarray().tolist() == given.toarray().tolist()


def test_coordinates_in_one_array_are_imported_without_a_copy():
    tensor = torch.from_numpy(matrix().toarray()).to_sparse_coo()
    arrays = {"values": tensor.values(), "indices_1": tensor.indices()}
    producer = Producer({"custom": {"level": POINTS}}, arrays, data_types={})
    x = ah.assparse(producer)
    assert ah.as_torch(x).indices().data_ptr() == tensor.indices().data_ptr()
    assert ah.as_torch(producer).to_dense().tolist() == matrix().toarray().tolist()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": "1.0"}, "version is '1.0'"),
        ({"version": None}, "version is None"),
        ({"format": "CSF"}, "format is 'CSF'; accepted: 'COO'"),
        ({"format": None}, "format is None"),
        ({"format": {"custom": {"level": {}}}}, "format is"),
        ({"format": {"custom": {"transpose": [3, 4], "level": ROWS}}}, "format is"),
        ({"format": {"custom": {"transpose": 7, "level": ROWS}}}, "format is"),
        ({"shape": None}, "shape is None"),
        ({"shape": [6, -1]}, r"shape is \[6, -1\]"),
        ({"shape": [6, "8"]}, "shape is"),
        ({"shape": [5, 8]}, "shape of indptr"),
        ({"data_types": {"values": "float32"}}, r"data_types\['values'\] is 'float32'; accepted: float64"),
    ],
)
def test_errors_name_the_invalid_key_of_the_descriptor(changes, text):
    producer = Producer("CSR", arrays_of(matrix()))
    producer.facts.update(changes)
    with pytest.raises(ah.InterfaceError, match=text):
        ah.assparse(producer).to_dense()


def test_errors_name_the_missing_array():
    arrays = arrays_of(matrix())
    del arrays["pointers_to_1"]
    with pytest.raises(ah.InterfaceError, match="__binsparse__: pointers_to_1 is None; accepted: an array"):
        ah.assparse(Producer("CSR", arrays))


def test_nonzero_fill_values_are_rejected():
    arrays = arrays_of(matrix())
    with pytest.raises(BufferError, match="fill value is not 0"):
        ah.assparse(Producer("CSR", {**arrays, "fill_value": np.ones(1)}, fill=True))
    assert ah.assparse(Producer("CSR", {**arrays, "fill_value": np.zeros(1)}, fill=True)).nnz


def test_errors_contain_the_message_of_the_producer():
    class Broken:
        def __binsparse_descriptor__(self):
            raise RuntimeError("no descriptor today")

        def __binsparse__(self):
            return {}

    with pytest.raises(BufferError, match="no descriptor today"):
        ah.assparse(Broken())


@pytest.mark.parametrize("result", [None, [], {"binsparse": 3}, {}])
def test_descriptors_that_are_not_dicts_are_rejected(result):
    class Strange:
        def __binsparse_descriptor__(self):
            return result

        def __binsparse__(self):
            return {}

    with pytest.raises(ah.InterfaceError, match="accepted: a dict"):
        ah.assparse(Strange())
