"""Build the package with GCC 12 and with Debian's newest GCC and clang, and test each build.

    python tools/compilers.py [--root FOLDER] [--mirror URL] [--jobs N] [COMPILER ...]

The script requires Linux, root (for chroot and mount), debootstrap, git, and access to Debian's archive. The first run
installs Debian sid in the folder --root (build/sid by default, 2 GB). Later runs reuse this system. Nothing outside
this folder is changed. A COMPILER is a Debian package (``gcc-13``, ``clang-21``).

For each compiler, with Debian's Python, NumPy and Cython:

1. tools/c_warnings.py copies the working tree, except for ignored files, and compiles the copy with -Wall -Wextra. The
   step fails if there is a warning about hand-written C or C++ code.
2. pytest runs the files in `TESTS` with the compiled modules.

The last lines of the output state the result for each compiler. The exit status is the number of compilers with a
failure.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from every_python import ROOT, copy_tree

OLDEST = "gcc-12"
PACKAGES = ("python3-dev", "python3-numpy", "cython3", "python3-ml-dtypes", "python3-hypothesis", "libc6-dev",
            "python3-pytest", "python3-pytest-timeout", "python3-pybind11", "python3-nanobind")  # fmt: skip
# Files of tests/: those of check_wheel.py, and tests of DLPack and of scalars.
TESTS = (
    "adapters/interface_dict/test_array_interface",
    "adapters/test_buffer",
    "adapters/test_dlpack",
    "adapters/test_format_language",
    "array/test_usm_array_elements",
    "array/test_usm_array",
)
CLOSING = re.compile(r"^.*\b(?:passed|failed|error).* in [\d.]+s.*$", re.MULTILINE)


class Debian:
    """A Debian sid system in a folder. Commands run in this system through chroot."""

    def __init__(self, root, mirror):
        """Create the system with debootstrap if necessary, and update its list of packages."""
        self.root = root
        if not (root / "var/lib/dpkg/status").exists() or (root / "debootstrap").exists():
            subprocess.run(["debootstrap", "--variant=minbase", "sid", str(root), mirror], check=True)
        shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
        # Accept expired package lists, because a mirror can be a snapshot of the archive.
        self.run("apt-get", "--quiet=2", "--option=Acquire::Check-Valid-Until=false", "update", check=True)

    def run(self, *command, folder="/", check=False, **variables):
        """Run a command in the system, with /proc mounted. Print its output, and return its output and status."""
        inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -c \'cd "$0" && exec "$@"\' "$@"'
        environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **variables}
        environ["DEBIAN_FRONTEND"] = "noninteractive"
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", inside, str(self.root), folder, *map(str, command)],
            env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        if process.wait() and check:
            raise SystemExit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
        return "".join(lines), process.returncode

    def newest(self, name):
        """Return the name of the package with the newest release of a compiler, such as ``gcc-16``."""
        found, _ = self.run("apt-cache", "search", "--names-only", f"^{name}-[0-9]+$", check=True)
        return max(re.findall(rf"^{name}-\d+", found, re.MULTILINE), key=lambda package: int(package.split("-")[1]))


def test(debian, compiler, jobs):
    """Build and test with one compiler. Return whether all steps passed, and a line that states the results."""
    tree = debian.root / "src" / compiler
    shutil.rmtree(tree, ignore_errors=True)
    copy_tree(tree)
    name, release = compiler.split("-")
    environ = {"CC": compiler, "CXX": f"{'g++' if name == 'gcc' else 'clang++'}-{release}"}
    steps = {
        "build": ("tools/c_warnings.py", "--in-place", "--jobs", jobs),
        "tests": ("-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{name}.py" for name in TESTS)),
    }
    results, failed = [], False
    for step, command in steps.items():
        print(f"\n== {compiler}: {step}", flush=True)
        output, status = debian.run("python3", *command, folder=f"/src/{compiler}", **environ)
        closing = CLOSING.findall(output)
        results.append(f"{step} {'passed' if not status else 'FAILED'}" + (f" ({closing[-1]})" if closing else ""))
        failed = failed or status != 0
    return not failed, f"{compiler:10} {', '.join(results)}"


def main():
    """Build and test with each compiler in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT / "build" / "sid")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("compilers", nargs="*", metavar="COMPILER")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("compilers.py: root and debootstrap are required; run apt-get install debootstrap, then sudo python"
                 " tools/compilers.py")  # fmt: skip
    options.root.mkdir(parents=True, exist_ok=True)
    debian = Debian(options.root.resolve(), options.mirror)
    compilers = options.compilers or [OLDEST, debian.newest("gcc"), debian.newest("clang")]
    cpp = [name.replace("gcc", "g++") for name in compilers if name.startswith("gcc")]
    install = ("apt-get", "--quiet=2", "--yes", "--no-install-recommends", "install")
    debian.run(*install, *PACKAGES, *compilers, *cpp, check=True)
    results = [test(debian, compiler, options.jobs) for compiler in compilers]
    print("", *(line for _, line in results), sep="\n")
    return sum(not passed for passed, _ in results)


if __name__ == "__main__":
    sys.exit(main())
