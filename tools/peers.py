"""Run other projects' interoperability tests unchanged and through arrayhub, and compare the outcomes case by case.

    python tools/peers.py [SUITE ...] [--list] [--show]

pip installs these tests with NumPy, pyarrow, pandas, dpctl, dpnp and others. Each suite runs twice in separate
processes. In the second run, `peers_plugin.py` inserts arrayhub between the producers and the consumers of the test
modules. Every difference requires a row with a reason in ``peers.toml``. The exit status is 1 if

* the outcome of a case differs and no row explains the difference,
* a row explains cases whose outcomes no longer differ,
* arrayhub imported no array in a suite, or
* a run ends without a report.

A suite is skipped with a message if its library is not installed. A row is ignored if the installed release does not
have the cases that the row names.
"""

import argparse
import collections
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import arrayhub

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent
TIMEOUT = 1800  # maximum seconds for one run of a suite


@dataclasses.dataclass(frozen=True)
class Suite:
    """Test files of an installed library, and the calls whose arguments or results are passed through arrayhub.

    Parameters
    ----------
    files : tuple of str
        Paths relative to the folder of installed packages.
    consumers : tuple of str
        Expressions of functions in the tests whose first argument arrayhub imports, such as "np.asarray".
    attributes : tuple of str
        Protocol attributes that the tests read from arrayhub's array instead of the original object.
    producers : tuple of str
        Expressions of functions in the tests whose results `asnested` imports and exports to pyarrow again.
    importer : str
        Function of arrayhub that imports the objects of `consumers` and `attributes`.
    select : str
        Expression for pytest's ``-k``.
    """

    files: tuple
    consumers: tuple = ()
    attributes: tuple = ()
    producers: tuple = ()
    importer: str = "asarray"
    select: str = ""


DLPACK = ("__dlpack__", "__dlpack_device__")
ARROW = ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__")
ARROW_CLASSES = tuple(
    f"pa.{name}"
    for name in (
        "array",
        "chunked_array",
        "record_batch",
        "table",
        "RecordBatch.from_arrays",
        "RecordBatch.from_pydict",
        "RecordBatch.from_pylist",
        "Table.from_arrays",
        "Table.from_batches",
        "Table.from_pydict",
        "Table.from_pylist",
    )
)
SUITES = {
    "numpy_dlpack": Suite(("numpy/_core/tests/test_dlpack.py",), consumers=("np.from_dlpack",), attributes=DLPACK),
    "numpy_buffers": Suite(
        ("numpy/_core/tests/test_multiarray.py", "numpy/_core/tests/test_scalarbuffer.py"),
        consumers=("memoryview", "get_buffer_info", "_multiarray_tests.get_buffer_info", "np.array", "np.asarray"),
        attributes=("__array_interface__", "__array_struct__"),
        select="NewBufferProtocol or PEP3118 or ArrayInterface or array_interface or test_interface",
    ),
    "numpy_ctypes": Suite(
        ("numpy/tests/test_ctypeslib.py",),
        consumers=("as_array", "np.ctypeslib.as_array"),
        attributes=("__array_interface__",),
    ),
    "numpy_stride_tricks": Suite(
        ("numpy/lib/tests/test_stride_tricks.py",),
        consumers=("memoryview", "np.asarray"),
        attributes=("__array_interface__",),
    ),
    "pyarrow_capsules": Suite(("pyarrow/tests/test_cffi.py",), attributes=ARROW, importer="asnested"),
    "pyarrow_dlpack": Suite(("pyarrow/tests/test_dlpack.py",), consumers=("np.from_dlpack",), attributes=DLPACK),
    "pyarrow_array": Suite(("pyarrow/tests/test_array.py", "pyarrow/tests/test_scalars.py"), producers=ARROW_CLASSES),
    "pyarrow_table": Suite(("pyarrow/tests/test_table.py",), producers=ARROW_CLASSES),
    "pyarrow_compute": Suite(("pyarrow/tests/test_compute.py",), producers=ARROW_CLASSES),
    "pyarrow_convert": Suite(("pyarrow/tests/test_convert_builtin.py",), producers=ARROW_CLASSES),
    "pyarrow_pandas": Suite(
        ("pyarrow/tests/test_pandas.py",), producers=(*ARROW_CLASSES, "pa.Table.from_pandas", "pa.Array.from_pandas")
    ),
    "pygame": Suite(
        ("pygame/tests/bufferproxy_test.py", "pygame/tests/surfarray_test.py"),
        consumers=("BufferProxy", "pygame.surfarray.make_surface"),
        attributes=("__array_interface__", "__array_struct__"),
    ),
    "onedal": Suite(("onedal/datatypes/tests/test_data.py",), consumers=("to_table",)),
    "numba": Suite(("numba/tests/test_buffer_protocol.py",), consumers=("jitfunc",)),
    "pandas": Suite(
        ("pandas/tests/series/test_arrow_interface.py", "pandas/tests/frame/test_arrow_interface.py"),
        consumers=(
            "pa.chunked_array",
            "pa.table",
            "pa.RecordBatchReader.from_stream",
            "pd.Series.from_arrow",
            "pd.DataFrame.from_arrow",
        ),
        attributes=ARROW,
        importer="asnested",
    ),
    "dpctl_memory": Suite(
        ("dpctl/tests/test_sycl_usm.py",),
        consumers=("as_usm_memory", "MemoryUSMShared", "MemoryUSMDevice", "MemoryUSMHost"),
    ),
    "dpnp_dlpack": Suite(
        (
            "dpnp/tests/test_dlpack.py",
            "dpnp/tests/third_party/cupy/core_tests/test_dlpack.py",
            "dpnp/tests/tensor/test_usm_ndarray_dlpack.py",
        ),
        consumers=(
            "cupy.from_dlpack",
            "dpnp.from_dlpack",
            "dpt.from_dlpack",
            "xp.from_dlpack",
            "np.from_dlpack",
            "numpy.from_dlpack",
        ),
        attributes=(*DLPACK, "__sycl_usm_array_interface__"),
    ),
    "dpnp_asarray": Suite(("dpnp/tests/tensor/test_tensor_asarray.py",), consumers=("dpt.asarray",)),
    "warp": Suite(
        ("warp/tests/interop/test_dlpack.py",),
        consumers=("wp.from_dlpack", "torch.utils.dlpack.from_dlpack", "jax.dlpack.from_dlpack"),
        attributes=DLPACK,
    ),
    "array_api_strict": Suite(
        ("array_api_strict/tests/test_array_object.py", "array_api_strict/tests/test_creation_functions.py"),
        consumers=("from_dlpack",),
        attributes=DLPACK,
        select="dlpack",
    ),
}


def site_packages():
    """Return the folder in which packages are installed."""
    return pathlib.Path(importlib.util.find_spec("numpy").origin).parents[1]


def missing(suite):
    """Return the files of a suite that are not installed."""
    return [file for file in suite.files if not (site_packages() / file).exists()]


def load_rows(path=TOOLS / "peers.toml"):
    """Return {suite: rows} from ``peers.toml``."""
    return tomllib.loads(path.read_text())


def child_environment(settings):
    """Return the environment variables for a run, without the caller's settings of pytest and arrayhub."""
    in_place = [str(ROOT)] if list((ROOT / "arrayhub" / "_core").glob("descriptor.*.so")) else []
    paths = [str(TOOLS), *in_place, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ARRAYHUB_"))},
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SDL_VIDEODRIVER": "dummy",  # pygame's tests open no window
        "ARRAYHUB_PEERS": json.dumps(settings),
    }


def pytest_run(suite, routed):
    """Run a suite's tests in a separate process. Return the plugin's report, or None if it is missing."""
    packages = site_packages()
    files = [str(packages / file) for file in suite.files]
    with tempfile.TemporaryDirectory(prefix="arrayhub-peers-") as folder:
        report = pathlib.Path(folder, "report.json")
        settings = {**dataclasses.asdict(suite), "files": files, "report": str(report), "routed": routed}
        command = [sys.executable, "-m", "pytest", "-p", "peers_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
        command += [f"--rootdir={packages}", "-q", "--tb=no", *(("-k", suite.select) if suite.select else ()), *files]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=child_environment(settings),
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"  the run did not end within {TIMEOUT} s")
            return None
        if not report.exists() or done.returncode not in (0, 1):
            print(f"  exit status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
            return None
        return json.loads(report.read_text())


def names(row, case):
    """Return whether a row of ``peers.toml`` names a case, with or without its parameters."""
    name = case.partition("::")[2]
    return any(name == known or name.startswith(f"{known}[") for known in row["cases"])


def explains(row, case, message):
    """Return whether a row explains the different outcome of a case that failed with `message`."""
    return names(row, case) and bool(re.search(row["message"], message))


def compare(name, plain, routed, rows):
    """Compare the reports of two runs. Return a line for each fault, and the number of explained differences."""
    faults = [] if routed["arrays"] else [f"{name}: arrayhub imported no array"]
    cases = sorted(plain["outcomes"].keys() | routed["outcomes"].keys())
    used = collections.Counter()
    for case in cases:
        before, after = (report["outcomes"].get(case, ["absent", ""]) for report in (plain, routed))
        if before[0] == after[0]:
            continue
        number = next((i for i, row in enumerate(rows) if explains(row, case, after[1])), None)
        if number is None:
            faults.append(f"{name}: {case}: {before[0]} becomes {after[0]}: {after[1][:300]}")
        else:
            used[number] += 1
    for i, row in enumerate(rows):
        if not used[i] and any(names(row, case) for case in cases):
            faults.append(f"{name}: unused row: {row['cases'][0]}, {row['message']!r}; no changed test matches it")
    return faults, used.total()


def run(name, rows, show):
    """Run a suite unchanged and through arrayhub. Return the faults."""
    suite = SUITES[name]
    if absent := missing(suite):
        print(f"{name}: not installed: {', '.join(absent)}")
        return []
    plain, routed = pytest_run(suite, False), pytest_run(suite, True)
    if plain is None or routed is None:
        return [f"{name}: a run ended without a report"]
    faults, explained = compare(name, plain, routed, rows)
    total = collections.Counter(outcome for outcome, _ in plain["outcomes"].values())
    words = ", ".join(f"{count} {outcome}" for outcome, count in sorted(total.items()))
    print(
        f"{name}: {len(plain['outcomes'])} cases ({words}); {routed['arrays']} arrays imported by arrayhub,"
        f" {routed['refused']} rejected or not routed; {explained} differences explained, {len(faults)} faults",
        flush=True,
    )
    if show:
        for case, (outcome, message) in sorted(routed["outcomes"].items()):
            if outcome != plain["outcomes"].get(case, [""])[0]:
                print(f"  {case}: {outcome}: {message}")
    for fault in faults:
        print(f"  {fault}", flush=True)
    return faults


def main():
    """Run the named suites, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="*", help="names of suites (default: all)")
    parser.add_argument("--list", action="store_true", help="list the suites, and exit")
    parser.add_argument("--show", action="store_true", help="print every difference with its message")
    parser.add_argument("--rows", type=pathlib.Path, help="file of rows to use instead of tools/peers.toml")
    options = parser.parse_args()
    unknown = [name for name in options.suite if name not in SUITES]
    if unknown:
        parser.error(f"suite: {unknown[0]}; accepted: {', '.join(SUITES)}")
    if options.list:
        print(*SUITES, sep="\n")
        return 0
    arrayhub.sycl_runtime.configure()  # the runs inherit the variables with which dpctl finds pip's OpenCL runtime
    rows = load_rows(options.rows) if options.rows else load_rows()
    faults = [fault for name in options.suite or SUITES for fault in run(name, rows.get(name, []), options.show)]
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
