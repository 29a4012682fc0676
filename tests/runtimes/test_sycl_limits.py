"""Test that types and allocations beyond the limits of a SYCL device are rejected.

The available devices support fp64, so the tests substitute the limits of devices without it.
"""

import arrayhub as ah

# isort: split
from types import SimpleNamespace

import numpy as np
import pytest

from arrayhub.libraries.dpctl import can_pack
from arrayhub.runtimes import sycl


def queue_of(name, most, *aspects):
    """Return an object with the attributes of a queue on a device with a name, a maximum size and aspects."""
    has = {f"has_aspect_{aspect}": aspect in aspects for aspect in ("fp64", "fp16")}
    return SimpleNamespace(sycl_device=SimpleNamespace(name=name, max_mem_alloc_size=most, **has))


ARC = queue_of("Arc A770", 4 << 30, "fp16")
CPU = queue_of("CPU", 12 << 30, "fp64")


@pytest.mark.parametrize(
    ("queue", "element", "aspect", "other"),
    [
        (ARC, "float64", "fp64", "float32"),
        (ARC, "complex128", "fp64", "complex64"),
        (CPU, "float16", "fp16", "float32"),
        (CPU, "complex32", "fp16", "complex64"),
    ],
)
def test_types_that_a_device_lacks_are_rejected(queue, element, aspect, other):
    message = f"f: dtype is {element}, which {queue.sycl_device.name} does not support .*{aspect}.*Pass dtype='{other}'"
    with pytest.raises(TypeError, match=message):
        sycl.check_element(ah.empty(1, element), queue, "f")


@pytest.mark.parametrize("element", ["float32", "complex64", "int64", "bool", "bfloat16", "float8_e5m2"])
def test_types_that_every_device_has_are_accepted(element):
    sycl.check_element(ah.empty(1, element), queue_of("none", 0), "f")
    sycl.check_element(ah.empty(1, "float16"), ARC, "f")
    sycl.check_element(ah.empty(1, "float64"), CPU, "f")


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_allocation_above_the_limit_raises(dpctl, kind):
    """The error names the limit, which the error of the runtime does not state."""
    most = dpctl.SyclDevice().max_mem_alloc_size
    with pytest.raises(
        MemoryError, match=f"allocate {most + 1} bytes of USM-{kind} memory .*; accepted: at most {most} bytes"
    ):
        ah.USMArray((most + 1,), "u1", kind)
    with pytest.raises(MemoryError, match=f"at most {most} bytes in one allocation"):
        ah.empty(most + 1, "u1", memory=f"usm_{kind}")


@pytest.mark.parametrize("call", ["memory", "like"])
def test_alignment_above_the_limit_is_rejected(dpctl, call):
    most = dpctl.SyclDevice().max_mem_alloc_size
    options = {"memory": "usm_device"} if call == "memory" else {"like": ah.empty(3, memory="usm_device")}
    with pytest.raises(MemoryError, match=f"accepted: at most {most} bytes in one allocation"):
        ah.empty(3, "f4", alignment=1 << 50, **options)


CALLS = {
    "empty": lambda: ah.empty(3, memory="usm_device"),
    "zeros": lambda: ah.zeros(3, memory="usm_shared"),
    "USMArray": lambda: ah.USMArray((3,)),
    "to_device": lambda: ah.to_device(np.zeros(3), "oneapi:0"),
    "asarray": lambda: ah.asarray(np.zeros(3, "c16"), device="oneapi:0"),
    "like": lambda: ah.empty(3, "f8", like=ah.empty(3, "f4", memory="usm_device")),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_allocating_function_checks_the_limits(dpctl, monkeypatch, call):
    """Each function that allocates checks the limits, here those of a device without fp64."""
    monkeypatch.setattr(sycl, "device_of_queue", lambda queue: ARC.sycl_device)
    with pytest.raises(TypeError, match="dtype is (float64|complex128), which Arc A770 does not support .*Pass dtype="):
        CALLS[call]()
    assert ah.zeros(3, "f4", memory="usm_device").to_host().to_numpy().tolist() == [0, 0, 0]
    assert ah.asarray(np.zeros(3), dtype="f4", device="oneapi:0").dtype == "f4"


def test_16_byte_elements_are_copied_without_fp64(dpctl, monkeypatch):
    """Without fp64, 16-byte elements are not copied by dpnp's kernel, which would narrow complex128."""
    pytest.importorskip("dpnp.tensor")
    queue = dpctl.SyclQueue(dpctl.SyclDevice("cpu"))  # new, because the result of can_pack is kept for a queue
    out = ah.to_device(np.zeros((4, 6), "V16"), queue)
    given = np.arange(4 * 3 * 16, dtype="u1").view("V16").reshape(4, 3)
    monkeypatch.setattr(sycl, "device_of_queue", lambda queue: ARC.sycl_device)
    assert sycl.has_type("complex128", out.base.sycl_queue) is False
    assert not can_pack(out)
    out[:, ::2] = given
    assert out[:, ::2].to_host().to_numpy().tobytes() == given.tobytes()
