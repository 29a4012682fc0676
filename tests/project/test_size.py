"""The package and its tests do not grow unnoticed.

The numbers are ceilings. A change that makes a part smaller lowers its ceiling. To raise a ceiling is a decision, whose
reason the commit states.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = {".py", ".pyx", ".pxd", ".pxi", ".pyi", ".h", ".hpp"}
LINES = {
    "arrayhub": 800,
    "arrayhub/_core": 4285,
    "arrayhub/adapters": 6295,
    "arrayhub/array": 2411,
    "arrayhub/capi": 1500,
    "arrayhub/convert": 4690,
    "arrayhub/include": 1900,
    "arrayhub/inspection": 2771,
    "arrayhub/libraries": 4119,
    "arrayhub/nested": 7534,
    "arrayhub/runtimes": 2183,
    "arrayhub/sparse": 1500,
    "arrayhub/storage": 1000,
    "arrayhub/testing": 1100,
    "arrayhub/transfer": 3456,
    "arrayhub/transport": 2189,
    "tests": 58_044,
}
FILES, PARTICIPLES, READS = 197, 10, 5
DEFINITION = re.compile(r"^[ \t]*(?:async )?(?:def|cdef|cpdef)\b[^\n(=]*?(\w+)[ \t]*\(", re.MULTILINE)
# A function is named by a verb and a noun, such as `resolve_labels`, and not by a participle alone, such as `settled`.
PARTICIPLE = re.compile(
    r"_?(?!embed|feed|need|seed|shed|speed|bed|red|open|token|children|listen|flatten|widen)[a-z]+(ed|en)"
)
READ_BACK = re.compile(r"removeprefix\(|in str\((?:error|why|refusal|exc|e)\)|str\((?:error|why|refusal|exc)\)\.")


def sources(folder):
    return [path for path in sorted(folder.rglob("*")) if path.suffix in SOURCE and "slate" not in path.parts]


def code():
    return [path.read_text() for path in sources(ROOT / "arrayhub") if path.suffix not in (".h", ".hpp", ".pyi")]


def lines_of(paths):
    return sum(path.read_text().count("\n") for path in paths)


def in_folder(name):
    """Return the sources of a folder in LINES. "arrayhub" stands for the modules at the top."""
    folder = ROOT / name
    if name == "arrayhub":
        return [path for path in sources(folder) if path.parent == folder]
    return sources(folder)


@pytest.mark.parametrize("folder", LINES)
def test_folders_have_at_most_their_number_of_lines(folder):
    assert lines_of(in_folder(folder)) <= LINES[folder]


def test_each_folder_of_the_package_has_a_ceiling():
    counted = [path for folder in LINES if folder != "tests" for path in in_folder(folder)]
    assert sorted(counted) == sources(ROOT / "arrayhub")


def test_number_of_files_is_limited():
    assert len(sources(ROOT / "arrayhub")) <= FILES


def test_functions_named_by_a_participle_are_limited():
    names = {name for text in code() for name in DEFINITION.findall(text)}
    assert len({name for name in names if PARTICIPLE.fullmatch(name)}) <= PARTICIPLES


def test_texts_of_errors_that_code_reads_are_limited():
    """Code reads the fields of a refusal, and not its text."""
    assert sum(len(READ_BACK.findall(text)) for text in code()) <= READS


def test_lines_and_names_are_counted(tmp_path):
    (tmp_path / "a.py").write_text("def settled():\n    pass\n\n\ndef resolve_labels(): ...\n")
    (tmp_path / "a.c").write_text("\n" * 9)
    assert lines_of(sources(tmp_path)) == 5
    names = DEFINITION.findall((tmp_path / "a.py").read_text())
    assert [name for name in names if PARTICIPLE.fullmatch(name)] == ["settled"]
    assert READ_BACK.search("if 'copy' in str(error):") and not READ_BACK.search("raise Refusal(str(error))")
