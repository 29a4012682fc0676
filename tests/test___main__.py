"""Commands of the command line print the right output and return the right exit status."""

import json
import os
import pathlib
import re
import sys

import pytest
from children import ROOT, finished, python

import arrayhub
from arrayhub.__main__ import COMMANDS
from arrayhub.inspection import doctor
from arrayhub.inspection.doctor import LIBRARIES

pytestmark = pytest.mark.slow


def run(*arguments, **options):
    return finished(sys.executable, "-m", "arrayhub", *arguments, **options)


@pytest.mark.parametrize("arguments", [[], ["demo"], ["doctor"], ["explain"]])
def test_help_prints_the_usage(tmp_path, arguments):
    done = run(*arguments, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(" ".join(["usage: python -m arrayhub", *arguments]))
    if not arguments:
        assert all(command in done.stdout for command in ("demo", "doctor", "explain"))


def test_missing_command_prints_the_commands(tmp_path):
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("--help", cwd=tmp_path).stdout
    for command, purpose in (("config", "headers"), ("demo", "every installed library"), ("trace", "run a script")):
        assert re.search(rf"^ +{command} +.*{purpose}", done.stdout, re.MULTILINE)


def test_installed_script_runs_the_same_commands(tmp_path):
    script = pathlib.Path(sys.executable).with_name("arrayhub")
    if not script.exists():
        pytest.skip("arrayhub is not installed in this environment")
    done = finished(script, "--help", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, run("--help", cwd=tmp_path).stdout)


@pytest.fixture
def library(tmp_path):
    """Return a folder with modules of a user, in which the command runs."""
    (tmp_path / "mylib.py").write_text(
        "import numpy\nclass images:\n    first = numpy.zeros((2, 3))\n    last = b'abc'\n"
        "def fail(array):\n    raise ImportError('not installed')\n"
    )
    (tmp_path / "broken.py").write_text("raise RuntimeError('on purpose')\n")
    (tmp_path / "script.py").write_text("raise SystemExit(0)\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["draw"], "'demo', 'doctor', 'explain'"),
        (["doctor", "--yaml"], "unrecognized arguments: --yaml"),
        (["explain"], "required: object"),
        (["explain", "numpy"], "'numpy' is a module; accepted: package.module:object"),
        (["explain", "numpy:linalg"], "'numpy:linalg' is a module; accepted: package.module:object"),
        (["explain", ":pi"], "':pi': ValueError: "),
        (["explain", "numpy.arange(3)[::"], "'numpy.arange(3)[::': SyntaxError: "),
        (["explain", "np.arange(3)"], "'np.arange(3)': ModuleNotFoundError: No module named 'np'"),
        (["explain", "numpy.arange('a')"], "Error: "),
        (["explain", "numpy.no_such_name"], "AttributeError: module 'numpy' has no attribute 'no_such_name'"),
        (["explain", "exit()"], "'exit()': "),
        (["explain", "no_such_module:a"], "'no_such_module:a': ModuleNotFoundError"),
        (["explain", "..:a"], "'..:a': ValueError"),
        (["explain", "numpy:linalg.inverse"], "'numpy:linalg.inverse': AttributeError"),
        (["explain", "numpy:pie"], "has no attribute 'pie'"),
        (["explain", "numpy:pi", "--to", "fortran"], "argument --to: "),
        (["conformance", "mylib:images.first"], "is not callable; accepted: a function of one argument"),
        (["explain", "script:a"], "'script:a': SystemExit: 0"),
        (["explain", ""], "argument object: '': SyntaxError"),
        (["explain", "mylib.py:images"], "No module named 'mylib.py'"),
        (["explain", "broken:a"], "'broken:a': RuntimeError: on purpose"),
    ],
)
def test_invalid_arguments_print_one_error(library, arguments, words):
    done = run(*arguments, cwd=library)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error: ") == 1


def test_explain_prints_type_and_verdicts(library):
    done = run("explain", "mylib:images.first", cwd=library)
    assert done.returncode == 0, done.stderr
    assert "numpy.ndarray" in done.stdout
    assert "zero-copy" in done.stdout


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("numpy.arange(3)[::-1]", "numpy.ndarray: 3 * int64"),
        ("mylib.images.first", "numpy.ndarray: 2 * 3 * float64"),
        ("pack.data.values", "numpy.ndarray: 2 * int64"),
        ("[numpy.float32(i) for i in range(2)]", "list"),
        ("numpy.fromiter(map(lambda value: value + 1, [1, 2]), int)", "numpy.ndarray: 2 * int64"),
    ],
)
def test_explain_evaluates_an_expression(library, expression, name):
    (library / "pack").mkdir()
    (library / "pack" / "__init__.py").touch()
    (library / "pack" / "data.py").write_text("import numpy\nvalues = numpy.arange(2)\n")
    done = run("explain", expression, "--to", "numpy", cwd=library)
    assert done.returncode == 0, done.stderr
    assert f"\n{name}" in done.stdout


def test_explain_prints_one_consumer_as_json(library):
    done = run("explain", "mylib:images.last", "--to", "torch", "--json", cwd=library)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["type_name"] == "bytes"
    assert [(verdict["consumer"], verdict["verdict"]) for verdict in found["verdicts"]] == [("torch", "copy=True")]


def test_check_reports_faults_by_its_exit_status(library):
    done = run("check", "mylib:images.first", cwd=library)
    assert (done.returncode, done.stdout) == (0, "the descriptions agree\n")
    (library / "mylib.py").write_text(
        "import numpy\nclass Liar:\n    a = numpy.zeros(3)\n    __array_interface__ = {**a.__array_interface__}\n"
        "    __array_struct__ = numpy.zeros(4).__array_struct__\nx = Liar()\n"
    )
    done = run("check", "mylib:x", cwd=library)
    assert done.returncode == 1
    assert "shape" in done.stdout
    done = run("check", "builtins:print", cwd=library)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_conformance_fails_if_the_function_never_returns_an_array(library):
    done = run("conformance", "mylib:fail", "--dtypes", "float64", "--layouts", "C", cwd=library)
    assert (done.returncode, done.stderr) == (1, "")
    assert "values: no array was exported: ImportError: not installed" in done.stdout


def test_page_describes_every_command():
    page = (ROOT / "docs/reference/command_line.md").read_text()
    described = re.findall(r"^\| `arrayhub (\w+)[^|]*\| ([^|]*) \|", page, re.MULTILINE)
    assert [(name, f"{purpose.capitalize()}.") for name, purpose in described] == [
        (command.__name__, command.__doc__.partition("\n")[0]) for command in COMMANDS
    ]


def test_version_is_printed(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"arrayhub {arrayhub.__version__}\n"


def test_closed_pipe_is_not_an_error(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = run("explain", "numpy:pi", cwd=tmp_path, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


# ------------------------------------------------------------------------------------------------- the doctor

TEXT = (str, type(None))
SCHEMA = {
    "arrayhub": {"version": str, "location": str},
    "python": {"version": str, "implementation": str, "executable": str, "platform": str},
    "libraries": {
        name: {"status": str, "version": TEXT, "protocols": [str], "asarray": TEXT, "error": TEXT, "fix": TEXT}
        for name in LIBRARIES
    },
    "plugins": dict,
    "sycl": {
        "platforms": [
            {"name": str, "version": str, "backend": str, "devices": [{"name": str, "kind": str, "driver": str}]}
        ],
        "runtime": {"action": str, "reason": str, "library": TEXT, "fix": str},
        "error": TEXT,
    },
    "cuda": {"driver": TEXT, "devices": [{"name": str, "nbytes": int}], "error": TEXT},
    "problems": [{"what": str, "fix": str}],
}


def check(value, schema):
    if isinstance(schema, dict):
        assert list(value) == list(schema)
        for key, part in schema.items():
            check(value[key], part)
    elif isinstance(schema, list):
        for part in value:
            check(part, schema[0])
    else:
        assert isinstance(value, schema)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    done = run("doctor", "--json", cwd=tmp_path_factory.mktemp("doctor"))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_doctor_report_has_the_documented_keys(report):
    check(report, SCHEMA)


def test_doctor_report_states_facts(report):
    import numpy

    libraries = report["libraries"]
    assert libraries["numpy"]["version"] == numpy.__version__
    assert libraries["numpy"]["asarray"] == "array_interface"
    assert {"buffer", "__array_interface__", "__dlpack__"} <= set(libraries["numpy"]["protocols"])
    assert libraries["torch"]["protocols"] == ["__dlpack_c_exchange_api__", "__dlpack__"]
    assert libraries["dpnp"]["asarray"] == "sycl"
    assert libraries["polars"]["protocols"] == ["__arrow_c_stream__"]
    assert libraries["polars"]["asarray"] == "array_interface"  # of the view that its to_numpy returns
    assert "__arrow_c_array__" in libraries["pyarrow"]["protocols"]
    assert {libraries[name]["status"] for name in ("pandas", "awkward")} == {"works"}
    assert "cpu" in {device["kind"] for entry in report["sycl"]["platforms"] for device in entry["devices"]}
    assert report["problems"] == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("raise ImportError('libtorch.so: cannot open')", "ImportError: libtorch.so: cannot open"),
        ("import os; os.abort()", "the import ended the process with exit status -6"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os._exit(0)", "the import ended the process with exit status 0"),
        ("import sys; sys.stdout.close()", "the import ended the process with exit status "),
        ("", "AttributeError: module 'torch' has no attribute 'arange'"),
    ],
)
def test_broken_library_is_reported(tmp_path, monkeypatch, text, error):
    (tmp_path / "torch.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    entry = doctor.verdict("torch", doctor.probe("torch"), LIBRARIES["torch"].install)
    check(entry, SCHEMA["libraries"]["torch"])
    assert entry["status"] == "broken"
    assert entry["error"].startswith(error)
    assert entry["fix"] == "pip install --force-reinstall torch"


def test_output_of_libraries_does_not_disturb_the_report(tmp_path, monkeypatch):
    (tmp_path / "numba.py").write_text(
        "import atexit\n__version__ = '9'\nprint('{}')\natexit.register(lambda: print('[1]'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor.verdict("numba", doctor.probe("numba"), LIBRARIES["numba"].install)["version"] == "9"


@pytest.mark.parametrize("name", ["dpctl", "numpy"])
def test_fix_for_a_broken_library_installs_only_the_library(name):
    """The fix does not name an extra, which would also reinstall arrayhub, perhaps in a different version."""
    entry = doctor.verdict(name, {"error": "broken"}, LIBRARIES[name].install)
    assert entry["fix"] == f"pip install --force-reinstall {name}"


@pytest.mark.parametrize(("driver", "extra"), [("12.8", "cuda12"), ("13.0", "cuda13"), (None, None)])
def test_fix_for_cupy_matches_the_driver(monkeypatch, driver, extra):
    answers = {"cuda": {"driver": driver, "devices": []}}
    monkeypatch.setattr(doctor, "probe", lambda name: answers.get(name, {"error": "not asked"}))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor.examine()["libraries"]["cupy"]["fix"] == (extra and f"pip install 'arrayhub[{extra}]'")


def test_every_fix_is_a_pip_command():
    assert all(re.fullmatch(r"pip install ('[^' ]+'|[\w-]+)", row.install) for row in LIBRARIES.values())


def test_doctor_works_without_package_metadata(tmp_path):
    """Copies and build folders of the package lack metadata, so the doctor must not need them."""
    program = (
        "import importlib.metadata as metadata, sys\n"
        "def absent(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.distribution = absent\n"
        "from arrayhub.inspection import doctor\n"
        "print(doctor.examine()['arrayhub']['version'])\n"
    )
    assert python(program, options=["-P"], cwd=tmp_path) == f"{arrayhub.__version__}\n"


def test_missing_library_is_reported():
    entry = doctor.verdict("dpctl", None, LIBRARIES["dpctl"].install)
    check(entry, SCHEMA["libraries"]["dpctl"])
    assert (entry["status"], entry["fix"]) == ("missing", "pip install 'arrayhub[sycl]'")


def test_one_broken_library_does_not_end_the_report(tmp_path):
    (tmp_path / "torch.py").write_text("import os; os.abort()\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run("doctor", "--json", cwd=tmp_path, PYTHONPATH=paths)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    check(report, SCHEMA)
    assert report["libraries"]["numpy"]["status"] == "works"
    assert [problem["what"].partition(":")[0] for problem in report["problems"]] == ["torch cannot be used"]


def test_missing_sycl_device_is_reported_with_a_fix(tmp_path):
    done = run("doctor", cwd=tmp_path, OCL_ICD_FILENAMES="", OCL_ICD_VENDORS=str(tmp_path))
    assert done.returncode == 1
    assert "PROBLEM  SYCL: dpctl finds no device; OCL_ICD_FILENAMES is set" in done.stdout
    assert "fix  unset OCL_ICD_FILENAMES, or name a driver in it" in done.stdout
    assert done.stdout.endswith("1 problem\n")


def test_fix_for_a_disabled_runtime_unsets_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)  # set in this process by the import of arrayhub
    done = run("doctor", cwd=tmp_path, ARRAYHUB_SYCL_RUNTIME="off")
    assert "ARRAYHUB_SYCL_RUNTIME=off disables the detection" in done.stdout
    assert "fix  unset ARRAYHUB_SYCL_RUNTIME" in done.stdout


def test_doctor_report_as_text_lists_every_library(tmp_path, report):
    done = run("doctor", cwd=tmp_path)
    assert done.returncode == 0
    assert f"arrayhub {report['arrayhub']['version']}" in done.stdout
    assert "no problems" in done.stdout
    for name, library in report["libraries"].items():
        assert f"\n  {name} " in done.stdout
        assert (library["version"] or library["fix"] or "") in done.stdout  # there may be no fix for this machine
