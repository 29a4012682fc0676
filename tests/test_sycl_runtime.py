"""`sycl_runtime` finds the OpenCL CPU runtime that pip installs, and does not change a user's configuration.

`configure` has an effect once per process, before SYCL is used, so most tests run a separate process.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
from children import python

from arrayhub import sycl_runtime

pytestmark = pytest.mark.slow

MODULE = Path(sycl_runtime.__file__)
RUNTIME = sycl_runtime._find_runtime(sys.path)

needs_runtime = pytest.mark.skipif(
    RUNTIME is None or importlib.util.find_spec("dpctl") is None, reason="needs pip install '.[sycl]'"
)
# If the administrator has installed a CPU runtime, `configure` does not set OCL_ICD_FILENAMES.
needs_choice = pytest.mark.skipif(
    sycl_runtime._system_cpu_runtime(sycl_runtime.SYSTEM_VENDOR_FOLDER) is not None,
    reason="the vendor folder of the system already has a CPU runtime",
)


def run(code, *options, **settings):
    """Run `code` in a new process whose only SYCL settings are `settings`, and return the JSON that it prints."""
    steering = (*sycl_runtime.LOADER_VARIABLES, sycl_runtime.SWITCH, "ONEAPI_DEVICE_SELECTOR")
    environ = {name: value for name, value in os.environ.items() if name not in steering}
    settings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(MODULE.parents[1]), environ.get("PYTHONPATH")]))
    return json.loads(python(code, options=options, env=environ, **settings).splitlines()[-1])


@needs_runtime
@needs_choice
def test_error_names_an_older_tbb_that_was_loaded_first():
    """The CPU runtime needs a newer TBB than OpenVINO's, so the error names OpenVINO's TBB if it was loaded first."""
    pytest.importorskip("openvino")
    said, devices = run("""
        import json, openvino, arrayhub, dpctl
        try:
            arrayhub.empty(3, memory="usm_shared")
            said = ""
        except Exception as error:
            said = str(error)
        print(json.dumps([said, len(dpctl.get_devices())]))
    """)
    if devices:
        pytest.skip("this OpenVINO's TBB is as recent as the CPU runtime's")
    assert "openvino/libs/libtbb.so" in said
    assert "call arrayhub.sycl_runtime.configure() and dpctl.get_devices() before" in said
    devices, works = run("""
        import json, arrayhub, dpctl
        arrayhub.sycl_runtime.configure()
        dpctl.get_devices()
        import openvino
        print(json.dumps([len(dpctl.get_devices()), len(openvino.Core().available_devices)]))
    """)
    assert devices and works


@needs_runtime
@pytest.mark.parametrize("settings", [{sycl_runtime.SWITCH: "off"}, {"OCL_ICD_FILENAMES": "/opt/other/libintelocl.so"}])
def test_error_does_not_name_tbb_if_a_setting_is_the_cause(settings):
    """The TBB of the pip-installed runtime conflicts only with other TBBs, and only if this runtime is selected."""
    tbb = Path(RUNTIME).with_name("libtbb.so.12")
    if not tbb.exists():
        pytest.skip(f"{tbb} does not exist")
    cause = run(
        f"""
        import ctypes, json, arrayhub
        ctypes.CDLL({str(tbb)!r})
        arrayhub.sycl_runtime.configure()
        print(json.dumps(arrayhub.sycl_runtime.cause()))
        """,
        **settings,
    )
    assert "TBB" not in cause
    assert next(iter(settings)) in cause


CONFIGURE = """
    import json, os
    from arrayhub import sycl_runtime
    sycl_runtime.configure()
    print(json.dumps([sycl_runtime.status(), os.environ.get("OCL_ICD_FILENAMES")]))
"""

DEVICES = """
    import json
    from arrayhub import sycl_runtime
    sycl_runtime.configure()
    import dpctl
    print(json.dumps([[d.sycl_platform.name, d.name, d.device_type.name] for d in dpctl.get_devices()]))
"""


@needs_runtime
@needs_choice
class TestWithTheRuntimeInstalled:
    def test_cpu_device_works(self):
        done = run(
            """
            import json
            from arrayhub import sycl_runtime
            sycl_runtime.configure()
            import dpctl, dpctl.memory
            queue = dpctl.SyclQueue("cpu")
            source, target = (dpctl.memory.MemoryUSMDevice(8, queue=queue) for _ in range(2))
            source.copy_from_host(b"arrayhub")
            queue.memcpy(target, source, 8)
            queue.wait()
            is_cpu = queue.sycl_device.is_cpu
            print(json.dumps([sycl_runtime.status(), is_cpu, target.copy_to_host().tobytes().decode()]))
            """
        )
        expected = {
            "action": "set",
            "library": RUNTIME,
            "reason": "this is the OpenCL CPU runtime that pip installed",
            "fix": "pip install --force-reinstall intel-opencl-rt",
        }
        assert done == [expected, True, "arrayhub"]

    def test_without_configure_the_runtime_is_not_found(self):
        """If this test fails, loaders find pip's runtime themselves, and `sycl_runtime` is no longer needed."""
        platforms = [platform for platform, _, _ in run(DEVICES, **{sycl_runtime.SWITCH: "off"})]
        assert "Intel(R) OpenCL" not in platforms

    def test_drivers_of_the_system_stay_visible(self):
        before = run(DEVICES, **{sycl_runtime.SWITCH: "off"})
        after = run(DEVICES)
        assert [device for device in after if device in before] == before
        assert len(after) == len(before) + 1

    @pytest.mark.parametrize(
        "filenames", [RUNTIME, "/nowhere/libnothing.so"], ids=["the same driver", "a missing driver"]
    )
    def test_the_loader_adds_the_named_driver_to_the_vendor_folder(self, filenames, tmp_path):
        """The loader also reads the vendor folder, and loads a driver once even if it is named twice."""
        tmp_path.joinpath("cpu.icd").write_text(f"{RUNTIME}\n")
        devices = run(DEVICES, OCL_ICD_FILENAMES=str(filenames), OCL_ICD_VENDORS=str(tmp_path))
        assert [kind for platform, _, kind in devices if platform == "Intel(R) OpenCL"] == ["cpu"]

    def test_second_call_has_no_effect(self):
        first, filenames = run(CONFIGURE)
        second, again = run(CONFIGURE.replace("configure()", "configure(); sycl_runtime.configure()"))
        assert (first, filenames) == (second, again)
        assert first["action"] == "set"

    def test_selector_by_type_finds_the_cpu_device(self):
        assert [kind for _, _, kind in run(DEVICES, ONEAPI_DEVICE_SELECTOR="*:cpu")].count("cpu") >= 1

    @pytest.mark.parametrize("order", ["import dpctl, arrayhub", "import arrayhub, dpctl"])
    def test_import_does_not_change_the_environment(self, order):
        done, filenames = run(f"""
            import json, os
            {order}
            from arrayhub import sycl_runtime
            print(json.dumps([sycl_runtime.status(), os.environ.get("OCL_ICD_FILENAMES")]))
        """)
        assert (done["action"], filenames) == ("left", None)
        assert "configure() has not run" in done["reason"] and "sycl_runtime.configure()" in done["fix"]

    @pytest.mark.parametrize("order", ["import dpctl, arrayhub", "import arrayhub, dpctl"])
    @pytest.mark.parametrize("use", ["arrayhub.zeros(3, memory='usm_shared')", "arrayhub.sycl_runtime.configure()"])
    def test_first_use_finds_the_device_after_the_import_of_dpctl(self, order, use):
        """dpctl searches for devices when it is first used, not when it is imported."""
        devices = run(f"""
            import json
            {order}
            {use}
            print(json.dumps([device.name for device in dpctl.get_devices()]))
        """)
        assert devices

    @pytest.mark.parametrize(
        "call",
        [
            "arrayhub.USMArray(3)",
            "arrayhub.to_device(b'abc', 'oneapi:0')",
            "arrayhub.as_dpnp(b'abc', copy=True)",
            "arrayhub.Device('opencl:cpu')",
        ],
    )
    def test_failure_after_a_search_without_the_runtime_names_the_cause(self, call):
        said = run(
            f"""
            import json, os
            import dpctl
            import arrayhub
            dpctl.get_devices()
            try:
                {call}
            except (BufferError, ValueError) as error:
                assert "OCL_ICD_FILENAMES" not in os.environ
                print(json.dumps(str(error)))
            else:
                print("null")
            """
        )
        if said is None:
            pytest.skip("there is another SYCL device")
        assert "OpenCL was used first" in said
        assert "call arrayhub.sycl_runtime.configure() before the first use of dpctl" in said


SWITCH = sycl_runtime.SWITCH
# Settings, and for each: the action, OCL_ICD_FILENAMES afterwards, and a part of the reason.
SETTINGS = [
    *(({SWITCH: value}, "set", RUNTIME, "") for value in ("on", "YES", "1", "")),
    *(({SWITCH: value}, "left", None, "disables the detect") for value in ("off", "OFF", " Off ", "0", "false", "No")),
    ({SWITCH: "gpu"}, "left", None, "ARRAYHUB_SYCL_RUNTIME is gpu; accepted"),
    ({"ONEAPI_DEVICE_SELECTOR": "*:0"}, "left", None, "ONEAPI_DEVICE_SELECTOR=*:0"),
    ({"OCL_ICD_FILENAMES": RUNTIME}, "left", RUNTIME, "OCL_ICD_FILENAMES is set"),  # of a parent process
    *(
        ({name: value}, "left", value if name == "OCL_ICD_FILENAMES" else None, f"{name} is set")
        for name in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
        for value in ("/some/driver", "")
    ),
]


@pytest.mark.parametrize(("settings", "action", "filenames", "reason"), SETTINGS, ids=str)
def test_settings_of_the_user_decide(settings, action, filenames, reason):
    if action == "set" or None in settings.values() or "ONEAPI_DEVICE_SELECTOR" in settings:
        for needs in (needs_runtime, needs_choice):
            if needs.args[0]:
                pytest.skip(needs.kwargs["reason"])
    done, after = run(CONFIGURE, **settings)
    assert (done["action"], done["library"], after) == (action, RUNTIME if action == "set" else None, filenames)
    assert reason in done["reason"]
    if "disables" in reason:
        assert done["fix"] == "unset ARRAYHUB_SYCL_RUNTIME"


class TestWithoutTheRuntime:
    def test_python_without_site_packages_is_supported(self):
        """With ``-I -S``, Python finds no installed package, so the module is loaded from its file."""
        done, filenames, imported = run(
            f"""
            import importlib.util, json, os, sys
            spec = importlib.util.spec_from_file_location("sycl_runtime", {str(MODULE)!r})
            sycl_runtime = importlib.util.module_from_spec(spec)
            os.environ.pop("OCL_ICD_FILENAMES", None)
            before = set(sys.modules)
            spec.loader.exec_module(sycl_runtime)
            sycl_runtime.configure()
            imported = sorted(set(sys.modules) - before)
            print(json.dumps([sycl_runtime.status(), os.environ.get("OCL_ICD_FILENAMES"), imported]))
            """,
            "-I",
            "-S",
        )
        assert (done["action"], done["library"], filenames) == ("left", None, None)
        if sycl_runtime._system_cpu_runtime(sycl_runtime.SYSTEM_VENDOR_FOLDER) is None:
            assert "pip has not installed" in done["reason"]
            assert done["fix"] == "pip install 'arrayhub[sycl]'"
        # This module must import little, because every import of arrayhub imports it.
        assert imported == []


class TestFinding:
    @staticmethod
    def environment(folder, *, library="lib/libintelocl.so", packages="lib/python3.11/site-packages"):
        """Create an environment with pip's runtime. Return the paths of its package folder and of the runtime."""
        for name in (library, f"{packages}/dpctl.py"):
            folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(name).touch()
        return str(folder / packages), str(folder / library)

    @pytest.mark.parametrize("name", ["site-packages", "dist-packages"])
    def test_runtime_is_found_beside_the_packages(self, name, tmp_path):
        packages, library = self.environment(tmp_path, packages=f"lib/python3.11/{name}")
        assert sycl_runtime._find_runtime([str(tmp_path), packages]) == library

    def test_folders_are_searched_in_the_order_of_sys_path(self, tmp_path):
        user, _ = self.environment(tmp_path / "user")
        system, _ = self.environment(tmp_path / "system")
        assert sycl_runtime._find_runtime([user, system]).startswith(str(tmp_path / "user"))
        assert sycl_runtime._find_runtime([system, user]).startswith(str(tmp_path / "system"))

    def test_relative_path_is_made_absolute(self, tmp_path, monkeypatch):
        _, library = self.environment(tmp_path)
        monkeypatch.chdir(tmp_path)
        assert sycl_runtime._find_runtime(["lib/python3.11/site-packages"]) == library

    def test_none_is_returned_without_a_runtime(self, tmp_path):
        packages = tmp_path / "lib/python3.11/site-packages"
        packages.mkdir(parents=True)
        assert sycl_runtime._find_runtime(["", str(packages), "/nowhere/site-packages"]) is None

    def test_path_that_the_loader_would_split_is_rejected(self, tmp_path):
        packages, library = self.environment(tmp_path / "a:b")
        found, reason, _ = sycl_runtime._decide({}, [packages], str(tmp_path))
        assert found is None
        assert library in reason


class TestTheSystemsVendorFolder:
    def test_runtime_of_the_administrator_is_kept(self, tmp_path):
        library = tmp_path / "libintelocl.so"
        library.touch()
        tmp_path.joinpath("intel-cpu.icd").write_text(f"{library}\n")
        assert sycl_runtime._system_cpu_runtime(str(tmp_path)) == str(library)
        found, reason, _ = sycl_runtime._decide({}, sys.path, str(tmp_path))
        assert found is None
        assert str(library) in reason

    @pytest.mark.parametrize(
        "line",
        [
            "/opt/anaconda1anaconda2anaconda3/lib/libintelocl.so",  # the content of the vendor file that pip installs
            "libigdrcl.so",
            "libintelocl.so",
            "{folder}/libintelocl_emu.so",
            "",
        ],
        ids=["missing", "a GPU driver", "without a folder", "the FPGA emulator", "empty"],
    )
    def test_other_icd_files_are_ignored(self, line, tmp_path):
        tmp_path.joinpath("libintelocl_emu.so").touch()
        tmp_path.joinpath("driver.icd").write_text(line.format(folder=tmp_path))
        assert sycl_runtime._system_cpu_runtime(str(tmp_path)) is None

    def test_files_with_other_suffixes_and_folders_are_ignored(self, tmp_path):
        library = tmp_path / "libintelocl.so"
        library.touch()
        tmp_path.joinpath("intel-cpu.icd.disabled").write_text(str(library))
        tmp_path.joinpath("folder.icd").mkdir()
        assert sycl_runtime._system_cpu_runtime(str(tmp_path)) is None

    def test_missing_folder_is_ignored(self, tmp_path):
        assert sycl_runtime._system_cpu_runtime(str(tmp_path / "missing")) is None


@pytest.mark.parametrize(
    ("selector", "counts"),
    [
        ("", False), ("*:gpu", False), ("opencl:cpu", False), ("level_zero:0", False), ("cuda:*", False),
        ("level_zero:0;*:cpu", False), ("*:0", True), ("opencl:0,1", True), ("opencl:gpu,1", True),
        ("OpenCL:0", True), ("level_zero:gpu; opencl:1", True), ("*:gpu;!opencl:0", True), ("opencl:0.1", True),
    ],
)  # fmt: skip
def test_numbered_opencl_selectors_are_recognized(selector, counts):
    assert sycl_runtime._selects_by_number(selector) is counts
