"""The answers of arrayhub do not depend on its caller, and importing arrayhub does not change the process."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from children import python

import arrayhub as ah

PACKAGE = Path(ah.__file__).parent


def test_package_does_not_read_frames_or_native_stacks():
    questions = re.compile(
        r"_getframe|PyEval_GetFrame|currentframe|f_back|_Unwind_Backtrace|dladdr|backtrace\(|inspect\.stack"
    )
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".pyx", ".pxi", ".pxd", ".h", ".hpp"}]
    assert [str(path) for path in sources if questions.search(path.read_text())] == []


CONSUMERS = [
    "torch.utils.dlpack", "libtorch_python", "awkward.operations.ak_from_dlpack", "awkward._nplikes.array_module",
    "polars._utils.pycapsule", "multiprocessing.reduction", "joblib.hashing", "distributed.scheduler",
    "distributed.protocol.pickle", "concurrent.futures.process",
]  # fmt: skip
ANSWERS = """
import numpy as np, pickle
def answers(x):
    capsule = x.__arrow_c_array__()
    return [
        x.__dlpack_device__(),
        type(x.__dlpack__()).__name__,
        bytes(memoryview(x)),
        x.__array_interface__["typestr"],
        pickle.dumps(x),
        type(capsule).__name__,
        pyarrow.array(x).type,
    ]
"""


@pytest.mark.parametrize("name", CONSUMERS)
def test_protocols_give_one_answer_to_every_module(name):
    pyarrow = pytest.importorskip("pyarrow")
    here = {"__name__": __name__, "pyarrow": pyarrow}
    there = {"__name__": name, "pyarrow": pyarrow}
    for scope in (here, there):
        exec(compile(ANSWERS, name, "exec"), scope)
    x = ah.asarray(np.arange(6.0).reshape(2, 3))
    assert here["answers"](x) == there["answers"](x)


@pytest.mark.parametrize("memory", ["shared", "host"])
def test_device_of_host_readable_usm_is_the_same_for_every_module(memory, dpctl):
    x = ah.USMArray((3,), "f4", buffer=memory)
    for name in ("__main__", "awkward.operations.ak_from_dlpack", "awkward._nplikes.array_module"):
        assert eval("x.__dlpack_device__()", {"__name__": name, "x": x}) == (14, 0)


@pytest.mark.slow
def test_import_changes_neither_the_environment_nor_other_modules():
    """Modules that exist before the import have the same attributes, registries and functions afterwards."""
    program = """
        import json, os, sys
        import copyreg, pickle, warnings, multiprocessing.reduction, numpy
        for name in ("dpctl", "distributed.protocol", "joblib", "pyarrow", "pandas"):
            try:
                __import__(name)
            except ImportError:
                pass

        def picture(value):
            if isinstance(value, dict):
                return {repr(key): id(item) for key, item in list(value.items())}
            return list(map(id, value)) if isinstance(value, (list, set)) else id(value)

        def state():
            found = {}
            for name in before:
                for key, value in list(vars(sys.modules[name]).items()):
                    if key not in ("__builtins__", "__warningregistry__"):
                        found[f"{name}.{key}"] = picture(value)
            found["ForkingPickler"] = picture(multiprocessing.reduction.ForkingPickler._extra_reducers)
            return found

        before = [name for name in sys.modules if name.partition(".")[0] in (
            "os", "copyreg", "pickle", "warnings", "multiprocessing", "numpy", "dpctl", "distributed", "joblib",
            "concurrent", "threading", "signal", "atexit",
        )]
        environ, first = dict(os.environ), state()
        import arrayhub
        second = state()
        changed = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
        print(json.dumps([changed, environ == dict(os.environ)]))
    """
    changed, kept = json.loads(python(program))
    assert kept
    # Python itself sets a submodule that is imported as an attribute of its package, and NumPy loads some names lazily.
    lazy = re.compile(r"numpy\.(?:[a-z_]+|lib\.[a-z_]+|_core\.[a-z_]+)$")
    assert [key for key in changed if not lazy.match(key)] == []


@pytest.mark.slow
def test_sycl_runtime_is_looked_for_on_first_use_of_sycl(dpctl):
    program = """
        import os
        os.environ.pop("OCL_ICD_FILENAMES", None)
        import arrayhub, numpy
        arrayhub.asarray(numpy.arange(3)).copy()
        print(os.environ.get("OCL_ICD_FILENAMES"), arrayhub.sycl_runtime.status()["action"])
        print(arrayhub.zeros(3, memory="usm_shared").tolist())
    """
    first, second = python(program).splitlines()
    assert first == "None left"
    assert second == "[0.0, 0.0, 0.0]"
