"""Make the SYCL CPU device that pip installed visible, before dpctl is first imported.

``pip install 'arrayhub[sycl]'`` brings Intel's OpenCL CPU runtime along, but no loader finds it: the vendor file that
pip installs next to it names a folder that does not exist, and the loader would not read that file in a virtual
environment anyway. Naming the library in ``OCL_ICD_FILENAMES`` is the loader's own way to add one. ``import arrayhub``
does that through `configure`, unless the user has decided otherwise; docs/sycl_runtime.md has the rules.

Only ``os`` and ``sys`` are imported here, since every ``import arrayhub`` pays for this module.
"""

import os
import sys

__all__ = ["cause", "configure", "status"]


def __dir__():
    return __all__


SWITCH = "ARRAYHUB_SYCL_RUNTIME"
SWITCHED_ON = ("", "on", "1", "true", "yes")
SWITCHED_OFF = ("off", "0", "false", "no")

# What makes an OpenCL loader look elsewhere. Khronos' loader (the one that pip installs) reads the first two, ocl-icd
# (the one of most Linux distributions) all three; Intel's setvars.sh sets the first.
LOADER_VARIABLES = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")

SYSTEM_VENDOR_FOLDER = "/etc/OpenCL/vendors"

INSTALL = "pip install 'arrayhub[sycl]'"

_status = {"action": "left", "reason": "configure() has not run", "library": None, "fix": "call configure()"}


def configure():
    """Name the pip-installed OpenCL CPU runtime in ``OCL_ICD_FILENAMES``, if nobody else has decided.

    Called once by ``import arrayhub``. It never raises, and never changes a variable that is already set; `status`
    says what came of it. Calling it again is harmless.
    """
    if _status["action"] == "set":
        # What a second call would find in the environment is our own setting, not the user's.
        return
    if "dpctl" in sys.modules:
        library, reason = None, "dpctl was imported first, and may have loaded its devices already"
        fix = "import arrayhub before dpctl and dpnp"
    else:
        library, reason, fix = _decide(os.environ, sys.path, SYSTEM_VENDOR_FOLDER)
    if library is not None:
        os.environ["OCL_ICD_FILENAMES"] = library
    _status.update(action="left" if library is None else "set", reason=reason, library=library, fix=fix)


def status():
    """Say what `configure` did, and why.

    Returns
    -------
    dict
        ``action`` is 'set' or 'left', ``reason`` a sentence for people, and ``library`` the path that was written to
        ``OCL_ICD_FILENAMES`` (None where the environment was left as it was). ``fix`` is what helps where no device is
        found all the same, for people.
    """
    return dict(_status)


def cause():
    """Say in one sentence why dpctl may find no device, and what helps."""
    other = _foreign_tbb(os.environ.get("OCL_ICD_FILENAMES", ""))
    if other is not None:
        return (
            f"the CPU runtime cannot be loaded beside {other}, an older TBB that another library has brought;"
            " call dpctl.get_devices() before that library is imported"
        )
    return f"{_status['reason']}; {_status['fix']}"


def _foreign_tbb(runtime):
    """Return the path of a loaded TBB that is not the one beside the CPU runtime, where there is one, else None."""
    own = os.path.dirname(os.path.realpath(runtime))
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            loaded = {line.split(None, 5)[-1].strip() for line in maps if "/libtbb.so" in line}
    except OSError:
        return None
    return next((path for path in sorted(loaded) if os.path.dirname(path) != own), None)


def _decide(environ, search_path, vendor_folder):
    """Return ``(library, reason, fix)``; the library is None where the environment is to be left alone."""
    switch = environ.get(SWITCH, "").strip().lower()
    if switch in SWITCHED_OFF:
        return None, f"{SWITCH}={environ[SWITCH]} switches it off", f"unset {SWITCH}"
    if switch not in SWITCHED_ON:
        # A value we do not know was meant to change something, so do the least.
        return (
            None,
            f"{SWITCH}={environ[SWITCH]} is not understood; use on, 1, true, yes, or off, 0, false, no",
            f"unset {SWITCH}",
        )

    for name in LOADER_VARIABLES:
        # Set but empty is a setting too: it is how a shell says "none of them".
        if name in environ:
            return (
                None,
                f"{name} is set, and whoever set it chose the OpenCL drivers",
                f"unset {name}, or name a driver in it",
            )

    selector = environ.get("ONEAPI_DEVICE_SELECTOR", "")
    if _selects_by_number(selector):
        return (
            None,
            f"ONEAPI_DEVICE_SELECTOR={selector} counts devices, and one more would change the numbers",
            "unset ONEAPI_DEVICE_SELECTOR",
        )

    system = _system_cpu_runtime(vendor_folder)
    if system is not None:
        return (
            None,
            f"the system's vendor folder already provides {system}",
            "repair that driver, or remove its file in the folder",
        )

    library = _find_runtime(search_path)
    if library is None:
        return None, "no OpenCL CPU runtime is installed by pip; pip install 'arrayhub[sycl]' brings one", INSTALL
    if os.pathsep in library:
        return (
            None,
            f"the loader cannot be given {library}: it takes the {os.pathsep!r} for the start of a second name",
            f"move the environment to a path without {os.pathsep!r}",
        )
    return library, "this is the OpenCL CPU runtime that pip installed", "pip install --force-reinstall intel-opencl-rt"


def _find_runtime(search_path):
    """Return the path of the first pip-installed CPU runtime that belongs to a folder of ``search_path``, or None.

    pip unpacks the runtime beside ``site-packages``, two levels up, where dpctl's own RPATH looks for SYCL too. So the
    import path leads to it in a virtual environment, in the user's site and in the system's Python, and in the order in
    which they count.
    """
    for folder in search_path:
        if os.path.basename(folder) not in ("site-packages", "dist-packages"):
            continue
        library = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(folder))), "libintelocl.so")
        if os.path.isfile(library):
            return library
    return None


def _system_cpu_runtime(vendor_folder):
    """Return the Intel CPU runtime that the system's vendor folder names, if it exists, else None.

    A second copy would show the same CPU as a second device, and put itself before the administrator's choice.
    """
    try:
        names = sorted(os.listdir(vendor_folder))
    except OSError:
        return None
    for name in names:
        if not name.endswith(".icd"):
            continue
        try:
            with open(os.path.join(vendor_folder, name), encoding="utf-8", errors="replace") as file:
                library = file.readline().strip()
        except OSError:
            continue
        # The dot leaves out libintelocl_emu.so, the FPGA emulator, which is no CPU device. An entry without a folder
        # is not counted: finding out whether it can be loaded would take loading it.
        if os.path.basename(library).startswith("libintelocl.") and os.path.isabs(library) and os.path.isfile(library):
            return library
    return None


def _selects_by_number(selector):
    """Tell whether ``ONEAPI_DEVICE_SELECTOR`` counts OpenCL devices, as ``*:0`` and ``!opencl:1`` do.

    The loader puts the added runtime first, so such a number would come to mean another device. Other backends' devices
    (``level_zero:0``) and device types (``*:gpu``) stay what they are.
    """
    for term in selector.split(";"):
        backend, _, devices = term.strip().lstrip("!").partition(":")
        if backend.lower() in ("*", "opencl") and any(device.strip()[:1].isdigit() for device in devices.split(",")):
            return True
    return False
