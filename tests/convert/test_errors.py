"""Test that typical first calls work, or raise errors that name a working call."""

import importlib.util
import os
import re
import sys

import ml_dtypes
import numpy as np
import pytest
from children import finished, python
from exporters import has_driver

import arrayhub as ah


def without(libraries, statement):
    """Run `statement` in a process in which `libraries` cannot be imported."""
    code = (
        "import sys, importlib.machinery as machinery; find = machinery.PathFinder.find_spec\n"
        f"machinery.PathFinder.find_spec = lambda name, *rest: None if name in {libraries} else find(name, *rest)\n"
        f"import arrayhub as ah; {statement}"
    )
    return finished(sys.executable, "-c", code)


@pytest.mark.slow
def test_error_for_bfloat16_without_ml_dtypes_does_not_suggest_a_copy():
    pytest.importorskip("torch")
    done = without(["ml_dtypes"], "import torch; ah.as_arrow(torch.ones(2, dtype=torch.bfloat16))")
    reason = done.stderr.splitlines()[-1]
    assert "install ml_dtypes" in reason and "copy=True" not in reason
    done = without(
        ["ml_dtypes"], "import torch; print(ah.as_arrow(torch.ones(2, dtype=torch.bfloat16).float()).to_pylist())"
    )
    assert done.stdout.strip() == "[1.0, 1.0]"


def test_align_accepts_one_letter_names_as_one_string():
    x = ah.asarray(np.zeros((2, 3, 4))).with_dims("IJK")
    assert x.align("KJI").dims == ("K", "J", "I")
    assert ah.asarray(np.zeros(2)).with_dims(["row"]).align("row").dims == ("row",)
    with pytest.raises(ValueError, match="align: names are"):
        x.align("KJ")


def test_device_equals_its_name():
    device = ah.asarray(np.zeros(2)).device
    assert device == "cpu" == device
    assert device != "cuda:0" and device != "cpu:1" and device != "no device"
    assert {device: 1}["cpu"] == 1
    assert ah.Device("cuda:1") == "cuda:1" and ah.Device("cuda") == "cuda:0"


@pytest.mark.parametrize("name", ["cpu", "cpu:0", "cuda", "cuda:0", "cuda:00", "oneapi:1"])
def test_device_has_the_hash_of_an_equal_string(name):
    device = ah.Device(name)
    assert device != name or hash(device) == hash(name)
    assert device == str(device) and device == ah.Device(name)


CREATORS = {
    "ones": lambda **wrong: ah.ones(2, **wrong),
    "full": lambda **wrong: ah.full(2, 1, **wrong),
    "zeros": lambda **wrong: ah.zeros(2, **wrong),
    "from_array": lambda **wrong: ah.from_array(np.zeros(2), **wrong),
}


@pytest.mark.parametrize("name", CREATORS)
def test_unexpected_keyword_error_names_the_called_function(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'dytpe'"):
        CREATORS[name](dytpe="f4")


@pytest.mark.slow
def test_dtype_names_of_ml_dtypes_require_ml_dtypes():
    code = "import arrayhub as ah; print(ah.zeros(2, 'bfloat16').dtype)"  # ml_dtypes is not imported yet
    assert python(code) == "bfloat16\n"
    assert ah.zeros(2, "float8_e4m3fn").dtype == ml_dtypes.float8_e4m3fn
    done = without(["ml_dtypes"], "ah.zeros(2, 'bfloat16')")
    assert "NumPy does not have bfloat16; install ml_dtypes, which has it" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="cupy is installed")
def test_missing_library_is_reported_before_other_errors():
    advice = (
        ": pip install" if has_driver() else ", and is not installed; arrays of cupy need a CUDA device, which .* lacks"
    )
    with pytest.raises(ImportError, match=f"cupy is needed to create its arrays{advice}") as raised:
        ah.as_cupy(np.zeros(2))
    assert has_driver() or str(raised.value).endswith("For host memory, call arrayhub.as_numpy(x)")


@pytest.mark.slow
@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver with a device")
def test_error_for_cupy_without_a_device_suggests_another_library():
    code = (
        "import sys, types, arrayhub as ah\n"
        "sys.modules['cupy'] = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=None))\n"
        "ah.as_cupy(b'ab', allow_readonly=True)"
    )
    done = finished(sys.executable, "-c", code)
    last = done.stderr.splitlines()[-1]
    assert last == "arrayhub.Refusal: cupy: arrays of cupy need a CUDA device, which this machine lacks", done.stderr


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver with a device")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_copies_to_a_cuda_device_require_a_driver_before_cupy(device):
    with pytest.raises(BufferError, match="^CUDA: this machine does not have a CUDA driver with a device"):
        ah.to_device(np.zeros(2), device)
    assert ah.to_device(np.zeros(2), "cpu").tolist() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("missing", [["dpnp"], ["dpnp", "dpctl"]])
@pytest.mark.parametrize("call", ["as_dpnp([1.0])", "as_dpnp([1.0], copy=True)", "convert([1.0], 'dpnp', copy=True)"])
def test_as_dpnp_without_dpnp_raises_import_error(missing, call):
    done = without(missing, f"ah.{call}")
    assert "ImportError: dpnp is needed to create its arrays: pip install dpnp" in done.stderr


BROKEN_WAYS = {
    "torch": "as_torch(x)",
    "jax": "as_jax(x)",
    "dpnp": "as_dpnp(x, copy=True)",
    "cupy": "as_cupy(x)",
    "dpctl": "zeros(2, memory='usm_host')",
    "xarray": "asarray(x).to_xarray()",
    "polars": "as_polars(x)",
    "sparse": "convert(__import__('scipy.sparse').sparse.eye_array(2).tocsr(), 'pydata_sparse')",
    "mpi4py": "transport.as_mpi(x)",
    "distributed": "transport.register_dask()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN_WAYS)
def test_error_for_a_library_that_fails_to_import_contains_the_cause(tmp_path, name):
    """The error for a library that is installed but fails to import does not suggest ``pip install``."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("import what_it_needs")
    done = finished(
        *(sys.executable, "-c", f"import arrayhub as ah, numpy; x = numpy.zeros(2); ah.{BROKEN_WAYS[name]}"),
        PYTHONPATH=os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])),
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {name} is needed"), done.stderr
    assert "cannot be imported (No module named 'what_it_needs')" in last


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sparse", "mpi4py", "distributed"])
def test_error_for_a_missing_library_suggests_its_installation(name):
    pytest.importorskip("scipy")
    call = f"sys.modules[{name!r}] = None; x = numpy.zeros(2); ah.{BROKEN_WAYS[name]}"
    done = finished(sys.executable, "-c", f"import sys, arrayhub as ah, numpy; {call}")
    assert re.match(rf"ImportError: {name} is needed .*: pip install {name}", done.stderr.splitlines()[-1]), done.stderr


def test_repr_of_an_explanation_is_its_text():
    found = ah.explain(np.zeros(2))
    assert repr(found) == str(found) and "zero-copy" in repr(found)


def test_repr_describes_unusual_layouts():
    x = ah.asarray(np.zeros((2, 3)))
    assert "strides" not in repr(x)
    assert "byte_strides=(-24, -8)" in repr(x[::-1, ::-1])
    assert "halo=((1, 1), (0, 0))" in repr(ah.zeros((4, 3), halo=(1, 0)))


def test_debug_repr_shows_size_halo_and_negative_strides():
    field = ah.zeros((1000, 300), dims="IJ", halo=(1, 0))
    for shown in (field.picture.svg(), field.picture.text()):
        assert "2.289 MiB on cpu" in shown
        assert "dims (&#x27;I&#x27;, &#x27;J&#x27;)" in shown or "dims ('I', 'J')" in shown
        assert "halo ((1, 1), (0, 0))" in shown
    text = ah.asarray(np.zeros((2, 3)))[::-1, ::-1].picture.text()
    assert "strides: (-3, -1)" in text and "dimension 1 steps by -1 element; compact would be 1." in text


def test_text_that_is_too_short_for_a_time_is_refused():
    for call in (ah.asarray, ah.as_numpy):
        with pytest.raises(ValueError, match=r"^dtype: .* too short, with length 3"):
            call(np.array(["2020"], "M8[s]"), dtype="S3")
