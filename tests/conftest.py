"""Fixtures and hooks. Importing arrayhub here, before dpctl, makes the SYCL CPU device available."""

import collections
import gc
import importlib.util
import re
import sys

import arrayhub

# isort: split
import hypothesis
import pytest

arrayhub.sycl_runtime.configure()  # tests use dpctl and dpnp directly, also in child processes


def pytest_configure(config):
    """Collect without garbage collection, in two thirds of the time, and draw fewer examples without slow tests."""
    gc.disable()
    is_fast = config.option.markexpr == "not slow"
    hypothesis.settings.register_profile("arrayhub", max_examples=60 if is_fast else 400, deadline=None)
    hypothesis.settings.load_profile("arrayhub")


FROZEN = [0]  # the number of imported modules when the last objects were frozen


def freeze_libraries():
    """Exclude the objects of imported libraries from garbage collection, which makes each collection 0.5 s faster."""
    if len(sys.modules) > FROZEN[0] + 100:
        FROZEN[0] = len(sys.modules)
        gc.collect()
        gc.freeze()


def pytest_collection_finish():
    freeze_libraries()
    gc.enable()


def skip_without_library(error):
    """Skip a test that failed because a library is not installed. The summary of the run counts such tests."""
    while error is not None:
        if isinstance(error, ImportError):
            needed = re.match(r"(\w+) is needed", str(error))
            library = needed[1] if needed else (error.name or "").partition(".")[0]
            if library and importlib.util.find_spec(library) is None:
                pytest.skip(f"could not import {library!r}")
        error = error.__context__


def pytest_runtest_setup():
    """Restore the default types of JAX, because some libraries set jax_enable_x64 when they are imported."""
    freeze_libraries()
    jax = sys.modules.get("jax")
    if jax is not None and jax.config.jax_enable_x64:
        jax.config.update("jax_enable_x64", False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    try:
        return (yield)
    except Exception as error:
        skip_without_library(error)
        raise


pytest_fixture_setup = pytest_pyfunc_call  # the same wrapper


ABSENT = re.compile(r"could not import '(\w+)")


def pytest_terminal_summary(terminalreporter):
    """List the libraries that are not installed, with the number of tests or files that were skipped for each."""
    absent = collections.Counter(
        library[1]
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple) and (library := ABSENT.search(report.longrepr[2]))
    )
    terminalreporter.section("libraries that are not installed")
    for library, skipped in absent.most_common():
        terminalreporter.write_line(f"{library}: {skipped} skipped")
    if absent:
        terminalreporter.write_line(
            "pip install '.[test-all]' installs all of them, except those that need a GPU or another operating system."
        )
    else:
        terminalreporter.write_line("none: all libraries that the selected tests use are installed")


@pytest.fixture(scope="session", autouse=True)
def _sycl_first():
    """Load the CPU runtime and its TBB before OpenVINO loads an older TBB."""
    if importlib.util.find_spec("dpctl") is not None:
        importlib.import_module("dpctl").get_devices()


@pytest.fixture(scope="session")
def sycl():
    """Skip the test if dpctl does not find a SYCL device."""
    if not pytest.importorskip("dpctl").get_devices():
        pytest.skip("dpctl finds no device")


@pytest.fixture
def dpctl():
    """Return dpctl. Skip the test if dpctl does not find a CPU device."""
    dpctl = pytest.importorskip("dpctl")
    pytest.importorskip("dpctl.memory")
    if not dpctl.has_cpu_devices():
        pytest.skip("no SYCL CPU device")
    return dpctl


@pytest.fixture
def policy():
    """Set the default pickling policy during the test."""
    with arrayhub.transport.pickling(device="refuse", arrive="restore"):
        yield


def pytest_make_parametrize_id(val):
    """Name a test case by its value. Omit addresses, which differ between the processes of a parallel run."""
    if isinstance(val, (str, bytes, bool, float, type, type(None))) or callable(val):
        return None  # pytest chooses the name
    return re.sub(r"0x[0-9a-f]{6,}|\b\d{13,16}\b", "address", repr(val))[:80]
