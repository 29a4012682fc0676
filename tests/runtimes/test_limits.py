"""Test that types and allocations beyond the limits of a SYCL device are rejected.

The available devices support fp64, so the tests substitute the limits of devices without it.
"""

import arrayhub as ah

# isort: split
import numpy as np
import pytest

from arrayhub.libraries.dpctl import can_pack
from arrayhub.runtimes import limits
from arrayhub.runtimes.limits import Limits, check_size, check_type

ARC = Limits("Arc A770", frozenset({"fp16"}), 4 << 30)
CPU = Limits("CPU", frozenset({"fp64"}), 12 << 30)


@pytest.mark.parametrize(
    ("device", "element", "aspect", "other"),
    [
        (ARC, "float64", "fp64", "float32"),
        (ARC, "complex128", "fp64", "complex64"),
        (CPU, "float16", "fp16", "float32"),
        (CPU, "complex32", "fp16", "complex64"),
    ],
)
def test_types_that_a_device_lacks_are_rejected(device, element, aspect, other):
    message = f"f: dtype is {element}, which {device.name} does not support .*{aspect}.*Pass dtype='{other}'"
    with pytest.raises(TypeError, match=message):
        check_type(device, element, "f")


@pytest.mark.parametrize("element", ["float32", "complex64", "int64", "bool", "bfloat16", "float8_e5m2"])
def test_types_that_every_device_has_are_accepted(element):
    check_type(Limits("none", frozenset(), 0), element, "f")
    check_type(ARC, "float16", "f")
    check_type(CPU, "float64", "f")


def test_sizes_and_alignments_above_the_limit_are_rejected():
    check_size(ARC, 4 << 30, 4096, "device")
    accepted = f"accepted: at most {4 << 30} bytes in one allocation of Arc A770"
    with pytest.raises(MemoryError, match=f"cannot allocate {(4 << 30) + 1} bytes of USM-device memory; {accepted}"):
        check_size(ARC, (4 << 30) + 1, 64, "device")
    with pytest.raises(MemoryError, match=f"memory with an alignment of {1 << 50} bytes; {accepted}"):
        check_size(ARC, 1, 1 << 50, "shared")


def test_limits_of_a_device_are_those_that_dpctl_reports(dpctl):
    device = dpctl.SyclDevice()
    facts = limits.limits_of(device)
    assert ("fp64" in facts.aspects, "fp16" in facts.aspects) == (device.has_aspect_fp64, device.has_aspect_fp16)
    assert facts.most == device.max_mem_alloc_size


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_allocation_above_the_limit_raises(dpctl, kind):
    """The size is checked before the allocation, because the error of the runtime does not state the limit."""
    most = dpctl.SyclDevice().max_mem_alloc_size
    with pytest.raises(
        MemoryError, match=f"allocate {most + 1} bytes of USM-{kind} memory; accepted: at most {most} bytes"
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
    monkeypatch.setattr(limits, "limits_of", lambda device: ARC)
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
    monkeypatch.setattr(limits, "limits_of", lambda device: ARC)
    assert limits.has_type("complex128", out.base.sycl_queue) is False
    assert not can_pack(out)
    out[:, ::2] = given
    assert out[:, ::2].to_host().to_numpy().tobytes() == given.tobytes()
