"""Suitable versions of Cython are required, and one compiled the modules. All files state one version."""

import re
import tomllib

import pytest
from children import ROOT

import arrayhub
import arrayhub.transfer.host_copies as compiled

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]


@pytest.mark.parametrize("requirements", [PYPROJECT["build-system"]["requires"], EXTRAS["test"], EXTRAS["dev"]])
def test_requirements_exclude_cython_3_3(requirements):
    """Cython 3.3 frees the items of a list comprehension twice if memory is exhausted (cython/cython#7748)."""
    assert (
        [one for one in requirements if one.lower().startswith("cython>")]
        == [one for one in requirements if re.fullmatch(r"cython>=3\.1,<3\.3", one.lower())]
        != []
    )


def test_modules_were_compiled_by_a_required_cython():
    """The module name of the type of Cython functions contains the version of Cython."""
    version = re.fullmatch(r"_cython_(\d+)_(\d+)_\d+\w*", type(compiled.gather).__module__)
    assert (3, 1) <= (int(version[1]), int(version[2])) < (3, 3)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("arrayhub/pkgconfig/arrayhub.pc", r"^Version: (\S+)$"),
        ("packaging/conda/recipe.yaml", r'^  version: "(\S+)"$'),
        ("CITATION.cff", r"^version: (\S+)$"),
        ("CHANGELOG.md", r"^## (\S+) \("),
    ],
)
def test_files_state_the_version_of_the_package(name, line):
    assert re.search(line, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)[1] == arrayhub.__version__
