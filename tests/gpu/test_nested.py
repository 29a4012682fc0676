"""Test nested arrays on a CUDA device: torch's jagged tensors, leaves in cupy's memory, and exports to nanoarrow."""

import numpy as np
import pytest
from arrow_by_hand import given

import arrayhub as ah
from arrayhub.nested.to_device import compact, map_arrays

RAGGED = [[1.0], [2.0, 3.0, 4.0], [], [5.0, 6.0]]
SOURCES = {
    "lists": RAGGED,
    "missing lists": [[1, None], None, [3]],
    "strings": ["This", None, "a string of more than twelve bytes"],
    "records": [{"x": 1, "y": ["a"]}, {"x": 2, "y": []}],
}
CUDA = 2  # the device type in Arrow and DLPack


@pytest.fixture
def nanoarrow():
    pytest.importorskip("nanoarrow")
    return pytest.importorskip("nanoarrow.device")


def on_cuda(cp, node):
    return map_arrays(compact(node), lambda array: ah.asarray(cp.asarray(ah.as_numpy(array))))


@pytest.mark.parametrize("name", SOURCES)
def test_cupy_leaves_are_copied_to_the_host_and_back(cp, name):
    source = SOURCES[name]
    x = on_cuda(cp, ah.asnested(source))
    assert x.device.type == "cuda"
    assert x.to_host().to_list() == source
    assert x[1:].to_host().to_list() == source[1:]
    with pytest.raises(BufferError, match=r"to_host\(\)"):
        x.to_list()
    assert not hasattr(x, "__arrow_c_array__")
    assert not hasattr(x, "__arrow_c_stream__")
    there = ah.asnested(source).to_device("cuda:0")
    assert there.device == x.device
    assert there.to_host().to_list() == source


@pytest.mark.parametrize("name", SOURCES)
def test_nanoarrow_reads_device_arrays(cp, nanoarrow, name):
    x = on_cuda(cp, ah.asnested(SOURCES[name]))
    taken = nanoarrow.c_device_array(x)
    assert (taken.device_type_id, taken.device_id) == (CUDA, 0)
    back = ah.asnested(taken)
    assert back.device == x.device
    assert str(back.type).replace("?", "") == str(x.type).replace("?", "")
    assert back.to_host().to_list() == SOURCES[name]


def test_nanoarrow_device_array_shares_the_memory_of_leaves(cp, nanoarrow):
    values = cp.arange(6.0)
    x = on_cuda(cp, ah.asnested(RAGGED))
    taken = nanoarrow.c_device_array(x)
    assert taken.array.child(0).buffers[1] == x.content.ptr
    dense = nanoarrow.c_device_array(ah.asarray(values))
    assert dense.array.buffers[1] == values.data.ptr


def test_reader_of_a_device_array_waits_for_pending_work(cp, nanoarrow):
    """The sync event of the exported struct is recorded after the pending work on the producer's stream."""
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        values = cp.zeros(1 << 24)
        for _ in range(50):
            values += 1
        x = ah.asarray(values)
        capsules = x.__arrow_c_device_array__()
    back = ah.asarray(given("__arrow_c_device_array__", capsules), via="arrow")
    assert back.ptr == values.data.ptr
    assert float(np.asarray(ah.to_host(back)).min()) == 50.0


def test_torch_jagged_tensor_is_viewed(torch, nanoarrow):
    rows = [torch.arange(float(n), device="cuda") for n in (1, 3, 2)]
    jagged = torch.nested.nested_tensor(rows, layout=torch.jagged)
    x = ah.asnested(jagged)
    assert x.content.ptr == jagged.values().data_ptr()
    assert x.offsets.ptr == jagged.offsets().data_ptr()
    assert x.to_host().to_list() == [row.tolist() for row in rows]
    again = ah.as_torch(x)
    assert again.is_cuda
    assert again.values().data_ptr() == x.content.ptr
    taken = nanoarrow.c_device_array(x)
    assert taken.device_type_id == CUDA
    assert taken.array.child(0).buffers[1] == x.content.ptr


def test_times_on_a_device_are_not_exported_because_of_nat(cp):
    times = ah.asarray(np.arange(3).astype("M8[s]")).to_device("cuda:0")
    with pytest.raises(AttributeError, match=r"NaT.*to_host\(\)"):
        times.__arrow_c_device_array__  # noqa: B018


@pytest.mark.parametrize("library", ["polars", "awkward"])
def test_exports_to_host_libraries_require_a_copy(cp, library):
    pytest.importorskip(library)
    x = on_cuda(cp, ah.asnested(RAGGED))
    with pytest.raises(BufferError, match=rf"{library}: .*cuda:0.*device='cpu'"):
        ah.convert(x, library)
    assert ah.convert(x, library, copy=True).to_list() == RAGGED


@pytest.mark.parametrize("name", SOURCES)
def test_device_stream_is_read_without_a_copy(cp, name):
    """No Python library imports device streams yet, so arrayhub imports its own capsule here."""
    x = on_cuda(cp, ah.asnested(SOURCES[name]))
    back = ah.asnested(given("__arrow_c_device_stream__", x.__arrow_c_device_stream__()))
    assert back.device == x.device
    assert back.to_host().to_list() == SOURCES[name]


def test_exported_device_stream_waits_for_the_producers_stream(cp):
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        values = cp.zeros(1 << 22)
        for _ in range(50):
            values += 1
        x = ah.asarray(values, stream=stream.ptr)
    back = ah.asarray(given("__arrow_c_device_stream__", x.__arrow_c_device_stream__()))
    assert back.ptr == x.ptr
    assert (cp.asarray(back) == 50).all()


def test_fields_of_numpy_records_are_copied_to_the_device(cp):
    """The stride of field `b`, 12 bytes, is not a multiple of its item size."""
    records = np.array([(1, 2.5), (2, 3.5)], [("a", "i4"), ("b", "f8")])
    there = ah.asnested(records).to_device("cuda:0")
    assert there.device == ah.Device("cuda:0")
    assert there.to_host().to_list() == [{"a": 1, "b": 2.5}, {"a": 2, "b": 3.5}]


# ------------------------------------------------------------------------------------------------------ several chunks

CHUNKS = {
    "numbers": [[1.0, 2.0], [3.0]],
    "missing numbers": [[1, None], [3]],
    "lists": [[[1.0], [2.0, 3.0]], [[], None]],
    "strings": [["a", None], ["a string of more than twelve bytes"]],
}


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_are_copied_to_the_device_and_back(cp, pa, name):
    column = pa.chunked_array(CHUNKS[name])
    x = ah.asnested(column).to_device("cuda:0")
    assert x.kind == "chunked" and x.device.type == "cuda" and len(x.chunks) == len(x[1:].chunks) == 2
    assert x.to_host().to_list() == column.to_pylist() and x[1:].to_host().to_list() == column.to_pylist()[1:]
    mask = x.is_null()
    assert mask.device == x.device and cp.asarray(mask).tolist() == [value is None for value in column.to_pylist()]
    back = ah.asnested(given("__arrow_c_device_stream__", x.__arrow_c_device_stream__()))
    assert len(back.chunks) == 2 and back.device == x.device and back.to_host().to_list() == column.to_pylist()
    assert not hasattr(x, "__arrow_c_device_array__") and not hasattr(x, "__arrow_c_stream__")
    for call in (ah.as_arrow, ah.as_pandas):
        with pytest.raises(BufferError, match="cuda:0.*device='cpu'"):
            call(x)
        assert len(call(x, copy=True)) == len(column)


def test_copies_of_chunks_stay_on_the_device(cp, pa, torch):
    x = ah.asnested(pa.chunked_array(CHUNKS["numbers"])).to_device("cuda:0")
    assert ah.as_cupy(x, copy=True).tolist() == [1, 2, 3]
    tensor = ah.as_torch(x, copy=True)
    assert tensor.is_cuda and tensor.tolist() == [1, 2, 3]
    assert ah.as_numpy(x, copy=True).tolist() == ah.as_numpy(x, device="cpu").tolist() == [1, 2, 3]
    assert ah.as_cupy(x, copy=None).tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="copy=True"):
        ah.as_numpy(x, copy=None)
    for call in (ah.as_cupy, ah.as_torch, ah.as_numpy):
        with pytest.raises(BufferError, match="copy=True"):
            call(x)
    last = x[2:]  # all elements are in one chunk, so a view is possible
    assert ah.as_cupy(last, copy=None).data.ptr == x.chunks[1].content.ptr
    jagged = ah.as_torch(ah.asnested(pa.chunked_array([[[1.0]], [[2.0, 3.0]]])).to_device("cuda:0"), copy=True)
    assert jagged.is_cuda and [row.tolist() for row in jagged.unbind()] == [[1.0], [2.0, 3.0]]


def test_missing_values_of_chunks_are_replaced_on_the_device(cp, pa):
    x = ah.asnested(pa.chunked_array(CHUNKS["missing numbers"])).to_device("cuda:0")
    assert ah.as_cupy(x, missing=0, copy=True).tolist() == [1, 0, 3]
    values, mask = ah.as_cupy(x, missing="mask", copy=True)
    assert mask.tolist() == [False, True, False] and values[~mask].tolist() == [1, 3]


def test_chunks_on_a_device_are_pickled(cp, pa):
    import pickle

    x = ah.asnested(pa.chunked_array(CHUNKS["lists"])).to_device("cuda:0")
    with ah.transport.pickling(device="host"):
        back = pickle.loads(pickle.dumps(x, 5))
    assert len(back.chunks) == 2 and back.to_host().to_list() == x.to_host().to_list()
