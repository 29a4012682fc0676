"""Run the Python blocks of the README and of docs/, and test links, packaging files and the demo.

The blocks of each document run in order in one process.
"""

import ast
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from children import finished
from pages import BLOCK, needs_cuda

import arrayhub
from arrayhub import sycl_runtime
from arrayhub.transport.device_placement import _SETTINGS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
INSTALL = re.compile(r"pip install ([^`\n#&]+)")
TOCTREE = re.compile(r"^```{toctree}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
PROGRAM = re.compile(r"^```(?!{).*?^```$", re.MULTILINE | re.DOTALL)  # code blocks, whose brackets are not links


def program_of(document):
    """Join the Python blocks of a document into one program, and keep the line numbers of the document."""
    text = document.read_text()
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[start : start + len(code)] = code
    return "\n".join(lines)


def run(*arguments, **options):
    return finished(sys.executable, *arguments, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [d for d in DOCUMENTS if BLOCK.search(d.read_text()) and not needs_cuda(d)],
    ids=lambda d: d.relative_to(ROOT).as_posix(),
)
def test_examples_run(document, tmp_path):
    program = tmp_path / f"{document.stem}.py"
    program.write_text(program_of(document))
    done = run("-P", str(program), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


BROUGHT = {  # modules of extras and packages
    "[sycl]": {"dpctl"},
    "apache-tvm-ffi": {"tvm_ffi"},
    "cupy-cuda13x": {"cupy"},
    "numba-cuda": {"numba"},
    "pillow": {"PIL"},
    "pygame-ce": {"pygame"},
}


@pytest.mark.parametrize(
    "document", [d for d in DOCUMENTS if BLOCK.search(d.read_text())], ids=lambda d: d.relative_to(ROOT).as_posix()
)
def test_pages_name_the_packages_that_their_examples_import(document):
    """The pip commands on a page install each imported package except arrayhub and NumPy."""
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(program_of(document)))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    installed = set().union(*(re.findall(r"\[?[\w-]+\]?", line) for line in INSTALL.findall(document.read_text())))
    installed |= {name.strip("[]").replace("-", "_") for name in installed}
    brought = set().union(*(names for extra, names in BROUGHT.items() if extra in installed))
    missing = imported - {"arrayhub", "numpy"} - sys.stdlib_module_names - installed - brought
    assert not missing, f"add `pip install {' '.join(sorted(missing))}` to the page"


@pytest.mark.slow
def test_readme_comments_contain_the_printed_output(tmp_path):
    """A comment beside or below each call of print contains the printed output, or a part of it."""
    pytest.importorskip("dpctl")  # the README's program uses it
    program = tmp_path / "readme.py"
    program.write_text(program_of(ROOT / "README.md"))
    shown = re.findall(r"^ *print\(.*\)(?:  # (.*)|\n((?:# .*\n)+))", program.read_text(), re.MULTILINE)
    assert len(shown) >= 4
    done = run("-P", str(program), cwd=tmp_path)
    printed = " ".join(done.stdout.split())
    for beside, below in shown:
        assert " ".join((beside or below.replace("# ", "")).split()) in printed, done.stdout + done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_relative_links_point_to_existing_files(document):
    text = PROGRAM.sub("", document.read_text())
    missing = [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    assert not missing


def test_reference_lists_and_describes_each_public_name_once():
    """Each public name is in one autosummary table and in one autodoc directive."""
    folder = ROOT / "docs" / "reference"
    pages = "".join(page.read_text() for page in folder.glob("*.md"))
    described = re.findall(r"^\.\. auto(?!summary)\w+:: ([\w.]+)$", pages, re.MULTILINE)
    tables = re.findall(r"^\.\. autosummary::\n   :nosignatures:\n\n((?:   [\w.]+\n)+)", pages, re.MULTILINE)
    listed = " ".join(tables).split()
    assert sorted(listed) == sorted(name.removeprefix("arrayhub.") for name in described)
    assert {name for name in listed if "." not in name} == {*arrayhub.__all__}


def test_reference_lists_each_environment_variable():
    sources = [path.read_text() for kind in ("py", "pyx", "pxi") for path in (ROOT / "arrayhub").rglob(f"*.{kind}")]
    read = {name for text in sources for name in re.findall(r'environ(?:\.get\(|\[)"(\w+)"', text)}
    read |= {sycl_runtime.SWITCH, *sycl_runtime.LOADER_VARIABLES, *(row[0] for row in _SETTINGS.values())}
    page = (ROOT / "docs/reference/environment.md").read_text()
    assert read and not {name for name in read if f"`{name}`" not in page}


def test_each_page_is_in_one_table_of_contents():
    """Each page except the index is listed in exactly one toctree."""
    docs = ROOT / "docs"
    pages = {
        page.relative_to(docs).with_suffix("").as_posix()
        for kind in ("md", "ipynb")
        for page in docs.rglob(f"*.{kind}")
    }
    listed = [
        (page.parent / line).resolve().relative_to(docs).as_posix()
        for page in docs.rglob("*.md")
        for contents in TOCTREE.findall(page.read_text())
        for line in contents.splitlines()
        if line and not line.startswith(":") and "genindex" not in line  # generated by Sphinx
    ]
    assert sorted(listed) == sorted(pages - {"index"})


def test_first_page_links_to_the_repository_and_issues():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    page = (ROOT / "docs" / "index.md").read_text()
    assert urls["Repository"] in page
    assert urls["Issues"] in page


@pytest.mark.slow
def test_the_demo_passes(tmp_path):
    done = run("-m", "arrayhub", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout
    for producer in ("numpy ndarray", "torch Tensor", "jax ArrayImpl", "dpctl MemoryUSMShared"):
        assert re.search(rf"^{re.escape(producer)} .*\bnumpy\b", table, re.MULTILINE), table
    assert "0 failures" in table


@pytest.mark.slow
def test_the_demo_reports_a_failure(tmp_path):
    """If a consumer returns wrong values, the demo prints a failure and exits with status 1."""
    program = (
        "import sys, numpy, arrayhub\n"
        "from arrayhub import demo\n"
        "arrayhub.convert = lambda x, library, copy=None: numpy.zeros(x.shape)\n"
        "sys.exit(demo.run())\n"
    )
    done = run("-P", "-c", program, cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED  numpy ndarray: numpy has the array at a different address" in done.stdout


@pytest.mark.slow
def test_demo_requires_a_device_if_dpctl_is_installed(tmp_path):
    no_drivers = {"OCL_ICD_FILENAMES": "", "OCL_ICD_VENDORS": str(tmp_path), "ONEAPI_DEVICE_SELECTOR": "opencl:cpu"}
    done = run("-m", "arrayhub", "demo", cwd=tmp_path, **no_drivers)
    assert done.returncode == 1
    assert "FAILED  SYCL: dpctl finds no device" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_package_can_be_imported_from_the_root_of_a_clone():
    """In the root of a clone, Python finds the uncompiled sources before the installed package."""
    done = run("-c", "import arrayhub; print(arrayhub.asarray(b'abc').shape)", cwd=ROOT)
    assert done.stdout == "(3,)\n", done.stderr


@pytest.mark.slow
def test_import_of_uncompiled_sources_suggests_pip_install(tmp_path):
    sources = shutil.ignore_patterns("*.so", "*.c", "*.c.dep", "__pycache__")
    shutil.copytree(ROOT / "arrayhub", tmp_path / "arrayhub", ignore=sources)
    done = run("-S", "-c", "import arrayhub", cwd=tmp_path, PYTHONPATH="")
    assert done.returncode == 1
    assert "are not compiled; run `pip install .`" in done.stderr


def test_each_public_name_is_importable():
    assert all(hasattr(arrayhub, name) for name in arrayhub.__all__)


def test_version_is_defined_once():
    """Files of the build do not repeat the version. test_build_requirements.py compares the files that repeat it."""
    others = ("pyproject.toml", "meson.build", "docs/conf.py", "arrayhub/cmake/arrayhub-config-version.cmake")
    assert not [file for file in others if arrayhub.__version__ in (ROOT / file).read_text()]


def tools_of(file, word):
    """Return the first two words that follow `word` in each line of `file` that begins with it. Skip options."""
    lines = re.findall(rf"^ *{word} (.+)$", (ROOT / file).read_text(), re.MULTILINE)
    return {" ".join([part for part in line.split() if not part.startswith("-")][:2]) for line in lines}


def test_pre_commit_hooks_run_the_checks_of_ci():
    """CONTRIBUTING.md states that the hooks run all checks except the tests."""
    hooks, checks = tools_of(".pre-commit-config.yaml", "entry:"), tools_of(".ci/run", "check")
    assert {"ruff check", "mypy", "python mypy.stubtest"} <= hooks
    assert {hook for hook in hooks if any(check.startswith(hook) for check in checks)} == hooks
    assert {check for check in checks if any(check.startswith(hook) for hook in hooks)} == checks
