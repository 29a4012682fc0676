"""Test new arrays in CUDA's three kinds of memory: layout, alignment, values, device, and stream order."""

import numpy as np
import pytest

import arrayhub

KINDS = ("cuda", "cuda_host", "cuda_managed")
OPTIONS = {
    "compact": {},
    "F": dict(layout="F"),
    "padded": dict(backend="gt:gpu", halo=(1, 1, 0)),
    "aligned": dict(layout=(1, 2, 0), alignment=256, aligned_index=(2, 1, 0)),
}

pytestmark = pytest.mark.usefixtures("cp")


def host(x):
    return np.asarray(arrayhub.to_host(x))


@pytest.mark.parametrize("memory", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "f4", "f8", "c16"])
def test_new_arrays_have_the_requested_values(memory, options, dtype):
    call = dict(shape=(3, 4, 5), dtype=dtype, memory=memory, **OPTIONS[options])
    for make, value in (
        (arrayhub.zeros, 0),
        (arrayhub.ones, 1),
        (lambda **call: arrayhub.full(fill_value=np.array(7, dtype), **call), 7),
    ):
        x = make(**call)
        assert x.device.type == memory and x.access == "readwrite"
        assert (host(x) == np.full((3, 4, 5), value, dtype)).all()
    data = np.random.default_rng(0).integers(0, 2, (3, 4, 5)).astype(dtype)
    x = arrayhub.from_array(data, memory=memory, **OPTIONS[options])
    assert x.dtype == data.dtype and (host(x) == data).all()
    assert x.strides == arrayhub.empty(**{**call, "memory": "cpu"}).strides


@pytest.mark.parametrize("memory", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_layout_equals_the_layout_of_plan_and_of_host_memory(memory, options):
    call = dict(shape=(6, 4, 5), dtype="f4", **OPTIONS[options])
    x, plain = arrayhub.empty(memory=memory, **call), arrayhub.empty(**call)
    assert (x.strides, x.halo, x.aligned_index) == (plain.strides, plain.halo, plain.aligned_index)
    made = arrayhub.storage.plan(
        (6, 4, 5),
        "f4",
        layout=OPTIONS[options].get("layout", (2, 1, 0) if "backend" in OPTIONS[options] else None),
        alignment=128 if "backend" in OPTIONS[options] else OPTIONS[options].get("alignment"),
        aligned_index=x.aligned_index,
    )
    assert x.strides == made.strides and x.ptr % made.alignment == made.offset * 4 % made.alignment
    assert (x.memory.nbytes, x.memory.address) == (plain.memory.nbytes, x.ptr)


def test_full_supports_records_and_strings():
    record = np.dtype([("a", "i2"), ("b", "f8")])
    x = arrayhub.full((2, 3), (1, 2.5), record, memory="cuda", layout="F")
    assert host(x)["b"].tolist() == [[2.5] * 3] * 2
    assert (host(arrayhub.full((3, 2), "abc", "S3", memory="cuda", layout="F")) == b"abc").all()


@pytest.mark.parametrize("memory", KINDS)
def test_from_array_copies_device_data(cp, memory):
    there = cp.arange(24, dtype="f4").reshape(4, 6)
    for source in (there, there.T, there[::2, 1:], there[::-1]):
        x = arrayhub.from_array(device_data=source, memory=memory, backend="gt:gpu")
        assert (host(x) == source.get()).all()
    assert (host(arrayhub.from_array(device_data=there, dtype="f8")) == there.get()).all()
    near = np.ones((4, 6), "f4")
    assert host(arrayhub.from_array(near, there, memory=memory)).sum() == (24 if memory == "cuda_host" else 276)


def test_from_array_copies_data_aligned_to_four_bytes(cp):
    """Data whose address is not a multiple of eight bytes is copied in smaller words."""
    there = cp.arange(25, dtype="f4")[1:].reshape(4, 6)
    x = arrayhub.from_array(device_data=arrayhub.asarray(there), memory="cuda", layout="F", alignment=64)
    assert (host(x) == there.get()).all()
    pairs = cp.arange(26, dtype="f4")[1:25].view("f4").reshape(4, 6)[:, ::2]
    assert (host(arrayhub.from_array(device_data=pairs, memory="cuda")) == pairs.get()).all()


@pytest.mark.parametrize("memory", KINDS)
def test_full_with_like_keeps_memory_layout_and_labels(memory):
    x = arrayhub.ones((4, 5), "f4", memory=memory, layout="F", dims="IJ", origin=(1, 0))
    like = arrayhub.full(fill_value=9, like=x)
    assert (like.device, like.strides, like.dims, like.origin) == (x.device, x.strides, x.dims, x.origin)
    assert (host(like) == 9).all()


def test_zeros_with_like_accepts_a_cupy_array(cp):
    x = arrayhub.zeros(like=cp.ones((3, 4), "f2").T)
    assert str(x.device) == "cuda:0" and x.strides == (1, 4) and (host(x) == 0).all()


@pytest.mark.parametrize("memory", KINDS)
def test_cupy_writes_to_new_arrays(cp, memory):
    x = arrayhub.ones((3, 4), "f4", memory=memory, backend="gt:gpu")
    a = arrayhub.as_cupy(x)
    a += 1
    cp.cuda.get_current_stream().synchronize()
    assert a.data.ptr == x.ptr and (host(x) == 2).all()
    assert arrayhub.check(x) == []


def test_fill_runs_after_earlier_work_on_the_stream(cp, spin):
    """cupy's pool reuses the memory of `old` for `fresh`, while the copy of `old` is still pending."""
    ours = cp.cuda.Stream(non_blocking=True)
    with ours:
        old = cp.full(1 << 20, 5.0)
        spin()
        seen = old.copy()
        del old
        fresh = arrayhub.full(1 << 20, 6.0, memory="cuda")
    # `host` waits for the stream of `fresh`, unlike a copy by cupy on the current stream.
    assert (host(fresh) == 6).all()
    assert (seen.get(stream=ours) == 5).all()


def test_arrays_without_elements_or_dimensions_are_created():
    for memory in KINDS:
        assert host(arrayhub.zeros((0, 3), memory=memory)).shape == (0, 3)
        assert host(arrayhub.full((), 4.0, memory=memory)) == 4


def test_device_argument_must_match_the_memory():
    for device in ("cuda:0", arrayhub.Device("cuda:0"), (2, 0)):
        assert str(arrayhub.empty(3, memory="cuda", device=device).device) == "cuda:0"
    assert str(arrayhub.empty(3, memory="cuda_host", device="cuda:0").device) == "cuda_host:0"
    for memory in KINDS:
        with pytest.raises(ValueError, match=f"memory: '{memory}' with device 'cuda:99'"):
            arrayhub.empty(3, memory=memory, device="cuda:99")
        with pytest.raises(ValueError, match="a CUDA device such as 'cuda:0'"):
            arrayhub.empty(3, memory=memory, device="cpu")


def test_too_large_device_allocation_raises():
    with pytest.raises(MemoryError):
        arrayhub.empty((1 << 50,), "u1", memory="cuda")


def test_memory_is_released(cp):
    pool = cp.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.used_bytes()
    for _ in range(50):
        arrayhub.zeros((1 << 24,), "f4", memory="cuda")
    assert pool.used_bytes() == before


def test_check_accepts_cupy_arrays(cp):
    assert arrayhub.check(cp.arange(12).reshape(3, 4)[:, ::2]) == []
