"""Make the pip-installed SYCL CPU device visible to dpctl, before SYCL is used.

``pip install 'arrayhub[sycl]'`` installs Intel's OpenCL CPU runtime, but OpenCL loaders do not find it. The vendor file
of the package names a folder that does not exist, and loaders do not read vendor files in a virtual environment.
`configure` therefore writes the path of the library to ``OCL_ICD_FILENAMES``. arrayhub calls `configure` before its
first use of SYCL. ``import arrayhub`` does not change the environment. The variable is not set if the user has
configured OpenCL, and in the other cases that docs/sycl_runtime.md lists.

This module imports only ``os`` and ``sys``, because every ``import arrayhub`` imports it.
"""

import os
import sys

__all__ = ["cause", "configure", "status"]


def __dir__():
    return __all__


SWITCH = "ARRAYHUB_SYCL_RUNTIME"
SWITCHED_ON = ("", "on", "1", "true", "yes")
SWITCHED_OFF = ("off", "0", "false", "no")

# Variables that configure OpenCL loaders. Khronos' loader, which pip installs, reads the first two. ocl-icd, the loader
# of most Linux distributions, reads the last two, and in releases after 2.3.1 also the first. Intel's setvars.sh sets
# the first.
LOADER_VARIABLES = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")

SYSTEM_VENDOR_FOLDER = "/etc/OpenCL/vendors"
INSTALL = "pip install 'arrayhub[sycl]'"
CALL = "call arrayhub.sycl_runtime.configure() before the first use of dpctl or dpnp"

_status = {"action": "left", "reason": "configure() has not run", "library": None, "fix": CALL}


def configure():
    """Write the path of the pip-installed OpenCL CPU runtime to ``OCL_ICD_FILENAMES``, unless OpenCL is configured.

    Call this function before dpctl or dpnp searches for devices, which happens when they are first used, not when they
    are imported. arrayhub itself calls it before it uses SYCL. The function does not raise exceptions, and does not
    change variables that are already set. After a call that has set ``OCL_ICD_FILENAMES``, further calls do nothing.
    `status` returns the result.
    """
    if _status["action"] == "set":
        return  # OCL_ICD_FILENAMES is set because of an earlier call, not by the user
    library, reason, fix = _decide(os.environ, sys.path, SYSTEM_VENDOR_FOLDER)
    if library is not None and _mapped_files("/libOpenCL.so"):
        library, reason, fix = None, "OpenCL was used first, and reads its drivers only once", CALL
    if library is not None:
        os.environ["OCL_ICD_FILENAMES"] = library
    _status.update(action="left" if library is None else "set", reason=reason, library=library, fix=fix)


def status():
    """Return what `configure` has done, and why.

    Returns
    -------
    dict
        Texts: ``action`` is ``"set"`` if `configure` has set ``OCL_ICD_FILENAMES``, else ``"left"``. ``reason`` is the
        reason for the action. ``library`` is the path that was written to ``OCL_ICD_FILENAMES``, or None. ``fix`` is
        the remedy to try if dpctl does not find a device.
    """
    return dict(_status)


def cause():
    """Return the probable reason why dpctl does not find a device, and the remedy, as text."""
    runtime = os.environ.get("OCL_ICD_FILENAMES")
    if runtime is not None and runtime == _find_runtime(sys.path):
        # pip installs the runtime and its TBB in one folder. The TBB of another runtime can be anywhere.
        own = os.path.dirname(os.path.realpath(runtime))
        for path in _mapped_files("/libtbb.so"):
            if os.path.dirname(path) != own:
                reason = f"the CPU runtime cannot be loaded, because another library has loaded {path}, a different TBB"
                call = "call arrayhub.sycl_runtime.configure() and dpctl.get_devices()"
                return f"{reason}; {call} before that library is imported"
    return f"{_status['reason']}; {_status['fix']}"


def _mapped_files(part):
    """Return the paths of the loaded libraries whose path contains `part`, sorted."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return sorted({line.split(None, 5)[-1].strip() for line in maps if part in line})
    except OSError:
        return []


def _decide(environ, search_path, vendor_folder):
    """Return ``(library, reason, fix)``. The library is None if the environment is to be left unchanged."""
    for reason, fix in _obstacles(environ, vendor_folder):
        return None, reason, fix
    library = _find_runtime(search_path)
    if library is None:
        return None, "pip has not installed an OpenCL CPU runtime", INSTALL
    if os.pathsep in library:
        reason = f"the path {library} contains {os.pathsep!r}, which separates paths in OCL_ICD_FILENAMES"
        return None, reason, f"move the environment to a path without {os.pathsep!r}"
    return library, "this is the OpenCL CPU runtime that pip installed", "pip install --force-reinstall intel-opencl-rt"


def _obstacles(environ, vendor_folder):
    """Yield each reason to leave the environment unchanged, and its remedy."""
    switch = environ.get(SWITCH, "").strip().lower()
    if switch in SWITCHED_OFF:
        yield f"{SWITCH}={environ[SWITCH]} disables the detection of the CPU device", f"unset {SWITCH}"
    elif switch not in SWITCHED_ON:  # may be meant to disable the detection
        yield f"{SWITCH} is {environ[SWITCH]}; accepted: on, 1, true, yes, off, 0, false, no", f"unset {SWITCH}"
    for name in LOADER_VARIABLES:
        if name in environ:  # also an empty value, which disables all drivers
            yield f"{name} is set, which selects the OpenCL drivers", f"unset {name}, or name a driver in it"
    selector = environ.get("ONEAPI_DEVICE_SELECTOR", "")
    if _selects_by_number(selector):
        reason = f"ONEAPI_DEVICE_SELECTOR={selector} selects devices by number, and an added device changes the numbers"
        yield reason, "unset ONEAPI_DEVICE_SELECTOR"
    system = _system_cpu_runtime(vendor_folder)
    if system is not None:
        reason = f"the system's vendor folder already provides {system}"
        yield reason, "repair this driver, or remove its file from the vendor folder"


def _find_runtime(search_path):
    """Return the path of the pip-installed CPU runtime, or None.

    pip installs the runtime two levels above ``site-packages``, where dpctl's RPATH also searches for SYCL. The first
    folder of the import path with a runtime wins, so a virtual environment takes precedence over the user's site and
    the system.
    """
    sites = [folder for folder in search_path if os.path.basename(folder) in ("site-packages", "dist-packages")]
    libraries = (os.path.abspath(os.path.join(site, os.pardir, os.pardir, "libintelocl.so")) for site in sites)
    return next(filter(os.path.isfile, libraries), None)


def _system_cpu_runtime(vendor_folder):
    """Return the path of the Intel CPU runtime in the system's vendor folder, or None.

    A second runtime would add the same CPU as a second device, which the loader would list before the system's device.
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
        # The dot excludes libintelocl_emu.so, the FPGA emulator, which is not a CPU device. Paths without a folder are
        # ignored, because only loading them would show whether the library exists.
        if os.path.basename(library).startswith("libintelocl.") and os.path.isabs(library) and os.path.isfile(library):
            return library
    return None


def _selects_by_number(selector):
    """Return whether ``ONEAPI_DEVICE_SELECTOR`` selects OpenCL devices by number, as in ``*:0`` and ``!opencl:1``.

    The loader lists the added runtime first, so the number would select a different device. Other backends
    (``level_zero:0``) and device types (``*:gpu``) are not affected.
    """
    for term in selector.split(";"):
        backend, _, devices = term.strip().lstrip("!").partition(":")
        if backend.lower() in ("*", "opencl") and any(device.strip()[:1].isdigit() for device in devices.split(",")):
            return True
    return False
