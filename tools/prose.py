"""Count wordings that make the project's text hard to read, and fail where a group of files has too many.

    python tools/prose.py [--list] [FILE ...]

``--list`` prints each place and what to write instead. Docstrings, comments and error texts of code are searched, and
the paragraphs of pages. Code blocks of pages and generated pages are left out. A group fails if its count per 1,000
lines exceeds its limit. The count only finds sentences to look at: a sentence without any of the wordings can still be
unclear.

Without a FILE, all files that git tracks are searched. The exit status is 1 if a group exceeds its limit.
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple


class Wording(NamedTuple):
    """A pattern and the wording to use instead."""

    pattern: re.Pattern
    instead: str


class Group(NamedTuple):
    """Files, and how many wordings 1,000 of their lines may have."""

    name: str
    paths: re.Pattern
    limit: float


def wording(pattern, instead):
    return Wording(re.compile(pattern, re.IGNORECASE), instead)


ANYWHERE = (
    wording(r"\b(?:no|some|any|every)body\b|\bwhoever\b", "name the producer, the consumer or the caller"),
    wording(r"\bthose who\b|\bwho (?:(?:ask|read|write|listen|know|take|give|want|call)s?|has)\b", "the same"),
    wording(r"\b(?:is|are|was|were|be|been) (?:told|said|heard)\b", "the specification's verb"),
    wording(r"\b(?:is|are|was|were|has|have|had) (?:no|none)\b(?! (?:longer|more)\b)", "'is not a', 'without'"),
    wording(r"\b(?:com(?:es?|ing)|came|go(?:es|ing)?|went) (?:in|out|back)\b(?! to be\b)", "import, export, return"),
    wording(r"\bas (?:it|they) (?:is|are|was|were)\b", "unchanged, without conversion"),
    wording(r"\bof (?:which|whom|whose)\b", "a sentence of its own"),
)  # fmt: skip
OPENING = wording(
    r"(?:what|whether|how|where|which|who(?:ever)?|the same|that|those|such|of|so)\b",
    "start with a verb: 'Return ...', 'Import ...'",
)

GROUPS = (
    Group("package", re.compile(r"arrayhub/"), 3),
    Group("pages", re.compile(r"(?:docs/.*|[A-Z]+)\.md$"), 4),
    Group("tests", re.compile(r"(?:tests|benchmarks|tools)/"), 4),
)
PYTHON = {".py", ".pyx", ".pxd", ".pyi", ".pxi"}
C = {".h", ".hpp", ".c", ".cpp"}
# Written by tests.support.matrix and tests.support.libraries, and the names that a page about names has to show.
LEFT_OUT = {"docs/matrix.md", "docs/libraries.md", "docs/glossary.md", "tools/prose.py"}

DOCSTRING = re.compile(r'^[ \t]*[rRuU]?("""|\'\'\')(?P<text>.*?)\1', re.DOTALL | re.MULTILINE)
TRIPLE = re.compile(r'("""|\'\'\').*?\1', re.DOTALL)
REMARK = re.compile(r"(?:^|\s)#(?![:!])\s?(?P<text>(?!---|type:|noqa|fmt:|cython:|distutils:).*)")
SENTENCE = re.compile(r'"(?P<text>[^"\n]{15,})"')
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def paragraphs(text):
    """Yield line numbers and lines of a page outside of its code blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line, False


def remarks(text):
    """Yield line numbers and texts of the comments of a C or C++ file."""
    for match in C_COMMENT.finditer(text):
        yield line_of(text, match.start()), match[0], False


def sentences(text):
    """Yield line numbers and texts of docstrings, comments and strings; True marks a docstring."""
    for match in DOCSTRING.finditer(text):
        yield line_of(text, match.start()), match["text"].strip(), True
    rest = TRIPLE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(rest.splitlines(), 1):
        remark = REMARK.search(line)
        if remark:
            yield number, remark["text"], False
        for match in SENTENCE.finditer(line.partition("#")[0]):
            yield number, match["text"], False


def texts_of(path):
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        return paragraphs(text)
    return remarks(text) if path.suffix in C else sentences(text)


def found_in(path):
    """Yield line numbers, the words that were found, and what to write instead."""
    for number, text, docstring in texts_of(path):
        if docstring and (match := OPENING.pattern.match(text)):
            yield number, match[0], OPENING.instead
        for one in ANYWHERE:
            for match in one.pattern.finditer(text):
                yield number, match[0], one.instead


def group_of(name):
    return next((group for group in GROUPS if group.paths.match(name)), None)


def tracked():
    """Return the files that git tracks, or in a copy without git all files of the groups."""
    done = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout.splitlines()
    folders = (Path(name) for name in ("arrayhub", "benchmarks", "docs", "tests", "tools"))
    return [path.as_posix() for path in (*Path().glob("*.md"), *(path for one in folders for path in one.rglob("*.*")))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print each place with a wording to use instead")
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    counts, lines = defaultdict(int), defaultdict(int)
    for name in arguments.files or tracked():
        path, group = Path(name), group_of(name)
        if group is None or name in LEFT_OUT or path.suffix not in PYTHON | C | {".md"} or not path.is_file():
            continue
        lines[group] += path.read_bytes().count(b"\n")
        for number, words, instead in found_in(path):
            counts[group] += 1
            if arguments.list:
                print(f"{name}:{number}: {words}: {instead}")
    failed = False
    for group in lines:
        rate = 1000 * counts[group] / max(lines[group], 1)
        over = rate > group.limit
        failed |= over
        print(
            f"{group.name}: {counts[group]} in {lines[group]} lines, {rate:.1f} per 1,000, limit {group.limit}"
            f"{': too many' if over else ''}"
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
