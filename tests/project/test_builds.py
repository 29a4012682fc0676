"""Test in-place builds and sanitized builds, compiler flags, and the tools that report C warnings and lint Cython."""

import importlib.machinery
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from children import finished, run

import arrayhub._core.descriptor

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(arrayhub._core.descriptor.__file__).parents[1]  # the folder of the compiled modules
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
FILES = "import arrayhub, arrayhub._core.descriptor as core; print(arrayhub.__file__, core.__file__, sep='\\n')"


@pytest.fixture
def tool(monkeypatch):
    """Return a function that imports a script of tools/."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return import_tool


def import_tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clone_and_site(tmp_path):
    """Create a clone and an installation folder with links to the package's files. Return both paths."""
    for folder in ("clone", "site"):
        shutil.copytree(
            PACKAGE,
            tmp_path / folder / "arrayhub",
            copy_function=os.symlink,
            ignore=shutil.ignore_patterns("__pycache__", "meson.build"),
        )
    (tmp_path / "clone" / "arrayhub" / "meson.build").touch()
    return tmp_path / "clone", tmp_path / "site"


def compiled(clone):
    """Leave the compiled modules in the clone, as if tools/build_inplace.py had run."""


def not_compiled(clone):
    """Remove the compiled modules, as if tools/build_inplace.py had not run."""
    for module in clone.rglob(f"*{SUFFIX}"):
        module.unlink()


def compiled_for_another_python(clone):
    """Rename the compiled modules as if tools/build_inplace.py had run with another interpreter."""
    for module in clone.rglob(f"*{SUFFIX}"):
        module.rename(module.with_name(module.name.removesuffix(SUFFIX) + ".cpython-35m-x86_64-linux-gnu.so"))


@pytest.mark.parametrize(
    ("state", "imported"),
    [(compiled, "clone"), (not_compiled, "site"), (compiled_for_another_python, "site")],
    ids=["compiled", "not-compiled", "compiled-for-another-python"],
)
def test_clone_imports_its_own_compiled_modules_if_they_exist(clone_and_site, state, imported):
    clone, site = clone_and_site
    state(clone)
    paths = os.pathsep.join(map(str, (clone, site, *filter(None, [os.environ.get("PYTHONPATH")]))))
    package, module = run(sys.executable, "-P", "-c", FILES, PYTHONPATH=paths).splitlines()
    assert Path(package).is_relative_to(clone)
    assert Path(module).is_relative_to(clone if imported == "clone" else site)


def test_sanitizer_reports_modules_imported_from_elsewhere(clone_and_site, tool):
    clone, site = clone_and_site
    sanitize = tool("sanitize")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (clone, site)))}
    assert sanitize.imported_elsewhere(clone, environ) == []
    not_compiled(clone)
    assert sanitize.imported_elsewhere(clone, environ) == [str(site / "arrayhub" / "_core" / f"descriptor{SUFFIX}")]
    (clone / "arrayhub").rename(clone / "moved")
    assert len(sanitize.imported_elsewhere(clone, environ)) == 2


REJECTED_BY_GCC_14 = {
    "implicit-function-declaration": "int f(void) { return g(); }",
    "implicit-int": "static x; int f(void) { return x; }",
    "incompatible-pointer-types": "long *f(int *x) { return x; }",
    "int-conversion": "int *f(int x) { return x; }",
    "return-(type|mismatch)": "int f(void) { return; }",  # -Wreturn-mismatch is a part of -Wreturn-type since GCC 14
}


@pytest.mark.parametrize("warning", REJECTED_BY_GCC_14)
def test_builds_reject_warnings_that_are_errors_in_gcc_14(tool, tmp_path, warning):
    build_inplace = tool("build_inplace")
    flags = build_inplace.commands("_core/tree", (ROOT / "arrayhub" / "meson.build").read_text())[1][:-3]
    source = tmp_path / "source.c"
    source.write_text(REJECTED_BY_GCC_14[warning])
    done = finished(*flags, "-c", source, "-o", tmp_path / "source.o", cwd=ROOT)
    assert done.returncode != 0
    assert re.search(rf"\[-W(error=)?{warning}\]", done.stderr)  # GCC 14 and later do not print "error="


def test_unchanged_c_files_keep_their_time_stamp(tmp_path):
    def translate():
        names = ("first.c", "second.c", "first.pyx", "second.pyx")
        return finished(sys.executable, ROOT / "tools" / "cythonize.py", "all.d", *names, "-3", cwd=tmp_path)

    def times():
        return [(tmp_path / name).stat().st_mtime_ns for name in ("first.c", "second.c")]

    (tmp_path / "first.pyx").write_text("x = 1\n")
    (tmp_path / "second.pyx").write_text('include "part.pxi"\n')
    (tmp_path / "part.pxi").write_text("y = 2\n")
    assert translate().returncode == 0
    target, _, depends = (tmp_path / "all.d").read_text().partition(":")
    assert target == "first.c"
    assert {"first.pyx", "second.pyx", "part.pxi"} <= {Path(name).name for name in depends.split()}
    before = times()
    (tmp_path / "part.pxi").write_text("y = 3\n")
    assert translate().returncode == 0
    after = times()
    assert after[0] == before[0]
    assert after[1] > before[1]
    (tmp_path / "part.pxi").write_text("y =\n")
    failed = translate()
    assert failed.returncode == 1
    assert "part.pxi:1:" in failed.stderr


BLOCK = '''cdef extern from *:
    """
    #include <stdlib.h>
    static inline int with_an_unused_variable(void) {
        int unused;
        return 0;
    }
    """
    int with_an_unused_variable()


def call():
    return with_an_unused_variable()
'''


def test_warnings_name_the_line_of_the_c_block(tool, tmp_path, monkeypatch):
    c_warnings = tool("c_warnings")
    monkeypatch.setattr(c_warnings, "ROOT", tmp_path)
    (tmp_path / "arrayhub").mkdir()
    (tmp_path / "arrayhub" / "block.pyx").write_text(BLOCK)
    run(sys.executable, "-m", "cython", "--depfile", "arrayhub/block.pyx", "-o", "block.c", cwd=tmp_path)
    generated = tmp_path / "block.c"
    compiler = ["gcc", "-Wall", "-Wextra", "-I", sysconfig.get_path("include"), "-c", generated, "-o", os.devnull]
    assert c_warnings.own_diagnostics(c_warnings.run(compiler)[0]) == []
    c_warnings.mark(generated)
    (warning,) = c_warnings.own_diagnostics(c_warnings.run(compiler)[0])
    assert warning.startswith("arrayhub/block.pyx:5:13: warning: unused variable")


def test_c_block_missing_from_the_generated_file_raises(tool, tmp_path, monkeypatch):
    c_warnings = tool("c_warnings")
    monkeypatch.setattr(c_warnings, "ROOT", tmp_path)
    (tmp_path / "arrayhub").mkdir()
    (tmp_path / "arrayhub" / "block.pyx").write_text(BLOCK)
    (tmp_path / "block.c").write_text("int other;")
    (tmp_path / "block.c.dep").write_text("block.c: \\\n  arrayhub/block.pyx\n")
    with pytest.raises(ValueError, match="arrayhub/block.pyx:2: the C block is not in block.c"):
        c_warnings.mark(tmp_path / "block.c")


def test_parts_are_linted_like_modules(tool, tmp_path, monkeypatch):
    pytest.importorskip("cython_lint")
    lint_cython = tool("lint_cython")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(lint_cython, "ROOT", tmp_path)
    (tmp_path / "part.pxi").write_text("from libc.math cimport fabs\n")
    assert lint_cython.lint(["part.pxi"]) == ("part.pxi:1:24: 'fabs' imported but unused\n", 1)


def test_the_header_compiles_without_warnings_in_c_and_cpp(tool):
    done = finished(sys.executable, ROOT / "tools" / "c_warnings.py", "arrayhub/include/arrayhub.h")
    said = "3 units compiled, 0 failed, 0 warnings or errors in hand-written code\n"
    assert (done.returncode, done.stdout) == (0, said)


def test_describe_distinguishes_free_threaded_interpreters(tool):
    free_threaded = [sys.executable, "-c", "import sys; sys.abiflags = 't'; exec(sys.argv[2])"]
    describe = tool("build_wheels").describe
    machine, version = describe(sys.executable)
    assert describe(*free_threaded) == (machine, f"{version}t")


def test_written_pyconfig_agrees_with_this_interpreter(tool, tmp_path):
    """tools/cross_compile.py writes pyconfig.h for other systems. Here, its sizes are those of the interpreter."""
    lines = tool("cross_compile").PYCONFIG
    sizes = {name: sysconfig.get_config_var(name) for name in set(re.findall(r"\w+OF_\w+", lines)) if "__" not in name}
    assert sizes["SIZEOF_LONG"] and sizes["SIZEOF_WCHAR_T"]
    checks = [f'_Static_assert({name} == {size}, "{name}");' for name, size in sizes.items() if size is not None]
    (tmp_path / "checks.c").write_text("\n".join([lines, *checks]))
    run("gcc", "-std=c11", "-fsyntax-only", tmp_path / "checks.c")
