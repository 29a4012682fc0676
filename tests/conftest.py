"""Fixtures and hooks. Importing arrayhub here, before dpctl, makes the SYCL CPU device available."""

import collections
import gc
import importlib.util
import re
import sys

import arrayhub

# isort: split
import pytest

arrayhub.sycl_runtime.configure()  # tests use dpctl and dpnp directly, also in child processes

# Files and tests that are slow, or that start processes, compilers or clusters. `pytest -m "not slow"` omits them.
SLOW = (
    "adapters/arrow/test_emit.py::test_random_arrays_equal_the_ndarray_in_each_library",
    "adapters/arrow/test_parse.py::test_inspection_does_not_read_offsets_of_empty_arrays",
    "adapters/arrow/test_parse.py::test_schema_with_too_many_shared_children_raises",
    "adapters/arrow/test_stream.py::test_reader_keeps_all_rows_after_explain",
    "adapters/interface_dict/test_sycl_usm.py::test_mocks_of_dpctl_classes_are_rejected",
    "adapters/test_dlpack.py::test_torch_and_jax_from_dlpack_share_memory",
    "adapters/test_dlpack.py::test_invalid_tensor_raises_and_is_freed_once",
    "adapters/test_dlpack.py::test_tensors_are_freed_during_and_after_finalization",
    "adapters/interface_dict/test_sycl_usm.py::test_pointers_that_are_not_usm_of_the_context_raise",
    "adapters/interface_dict/test_sycl_usm.py::test_usm_of_another_context_raises",
    "adopters/",
    "array/test_assignment.py",
    "capi/test_table.py::test_each_source_file_of_an_extension_imports_the_api",
    "capi/test_table.py::test_repeated_calls_do_not_leak_references_or_memory",
    "convert/test_errors.py::test_error_for_a_library_that_fails_to_import_contains_the_cause",
    "convert/test_errors.py::test_error_for_bfloat16_without_ml_dtypes_does_not_suggest_a_copy",
    "convert/test_functions.py::test_inspection_of_a_type_may_import_objects_of_other_types",
    "convert/test_functions_nested.py",
    "docs/test_c_interface.py",
    "docs/test_conformance.py",
    "docs/test_data_frames.py",
    "docs/test_docs.py::test_demo_requires_a_device_if_dpctl_is_installed",
    "docs/test_docs.py::test_examples_run",
    "docs/test_docs.py::test_the_demo",
    "docs/test_extension_authors.py",
    "docs/test_notebooks.py::test_notebooks_show",
    "docs/test_standalone.py",
    "docs/test_tutorials.py",
    "gpu/",
    "inspection/test_explain.py::test_explain_does_not_access_memory",
    "inspection/test_printout.py::test_element_types_of_ml_dtypes_are_shown_without_ml_dtypes",
    "inspection/test_printout.py::test_memory_blocks_of_all_producers_are_described",
    "interop/",
    "libraries/test_torch_as_consumer.py",
    "libraries/test_dpctl_usm_ndarray.py::test_arrays_of_another_release_are_read_by_a_safe_method",
    "libraries/test_known.py::test_call_imports_only_the_modules_that_it_needs",
    "libraries/test_numba.py",
    "libraries/test_plugins.py::test_installed_plugin_is_used_by_every_function",
    "libraries/test_torch.py::test_tensors_inside_a_transformed_function_are_rejected",
    "libraries/test_torch.py::test_tensors_with_a_state_that_memory_lacks_are_rejected",
    "libraries/test_torch_storage.py",
    "nested/test_advice.py",
    "nested/test_array_chunks.py",
    "nested/test_array_memory.py::test_offsets_rewritten_after_validation_raise",
    "nested/test_asnested_roundtrip.py",
    "nested/test_from_torch.py",
    "nested/test_pickling.py::test_array_is_sent_to_another_process",
    "project/test_benchmarks.py",
    "project/test_builds.py",
    "robustness/",
    "sparse/test_conversion.py",
    "sparse/test_jax.py",
    "sparse/test_pickling.py::test_another_process_reads_a_pickle",
    "sparse/test_pickling.py::test_dask_passes_sparse_arrays_to_tasks_and_frames",
    "sparse/test_pydata_sparse.py",
    "sparse/test_rules.py",
    "sparse/test_rules_matrix.py",
    "sparse/test_torch.py::test_error_suggests_coalesce_without_the_private_names",
    "storage/test_creation.py::test_builtin_presets_do_not_import_gt4py",
    "test_cli.py",
    "test_sycl_runtime.py",
    "testing/test_report.py::test_class_that_ends_the_process_fails_only_one_layout",
    "testing/test_report.py::test_function_that_cannot_be_imported_runs_in_a_fork",
    "testing/test_report.py::test_each_rule_of",
    "transfer/test_host.py::test_interrupt",
    "transport/test_dask.py",
    "transport/test_ipc.py",
    "transport/test_mpi.py",
    "transport/test_shared_memory.py",
)


def pytest_collection_modifyitems(config, items):
    slow = tuple(f"tests/{name}" for name in SLOW)
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Exclude the objects of imported libraries from garbage collection, which makes each collection 0.5 s faster."""
    gc.collect()
    gc.freeze()


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
