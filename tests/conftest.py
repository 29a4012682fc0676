"""Imported before any test file: arrayhub finds the SYCL CPU runtime, which dpctl would not if it came first."""

import importlib.util
import re

import arrayhub

# isort: split
import pytest


@pytest.fixture(scope="session", autouse=True)
def _sycl_first():
    """The CPU runtime and its TBB are loaded before OpenVINO brings an older one, whichever test comes first."""
    if importlib.util.find_spec("dpctl") is not None:
        importlib.import_module("dpctl").get_devices()


@pytest.fixture(scope="session")
def sycl():
    """For what takes a SYCL device."""
    if not pytest.importorskip("dpctl").get_devices():
        pytest.skip("dpctl finds no device")


@pytest.fixture
def dpctl():
    """dpctl, where it has a device that is always there, the CPU."""
    dpctl = pytest.importorskip("dpctl")
    pytest.importorskip("dpctl.memory")
    if not dpctl.has_cpu_devices():
        pytest.skip("no SYCL CPU device")
    return dpctl


@pytest.fixture
def policy():
    """Set the default policy of pickling."""
    with arrayhub.pickling(device="refuse", arrive="restore"):
        yield


def pytest_make_parametrize_id(val):
    """Name a test case by its value, without addresses, so that all processes of a run agree."""
    if isinstance(val, (str, bytes, bool, float, type, type(None))) or callable(val):
        return None  # pytest's own names
    return re.sub(r"0x[0-9a-f]{6,}|\b\d{13,16}\b", "address", repr(val))[:80]
