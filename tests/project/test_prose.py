"""tools/prose.py counts excluded phrases in each kind of text, and reports by its exit status."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "prose.py"


def counted(folder, name, text):
    """Run the program on one file. Return the exit status and the listed lines."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    command = [sys.executable, str(PROGRAM), "--list", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()[:-1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/page.md", "Nobody reads the buffer.\n"),
        ("docs/page.md", "The array is said to be read-only.\n"),
        ("arrayhub/module.py", "x = 1  # a list that has no elements\n"),
        ("arrayhub/module.pyx", 'raise ValueError("the array goes out unchanged")\n'),
        ("arrayhub/module.py", 'def f():\n    """Whether the array is empty."""\n'),
        ("arrayhub/include/header.h", "/* What goes back to the caller as it is. */\n"),
        ("tests/test_x.py", "# arrays of which a copy is made\n"),
    ],
)
def test_counter_reports_excluded_phrases(tmp_path, name, text):
    status, places = counted(tmp_path, name, text)
    assert places
    assert all(place.startswith(f"{name}:") for place in places)
    assert status == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/page.md", "Return the array.\n\n```python\n# nobody\n```\n\n    nobody\n"),
        ("docs/page.md", "The buffer is no longer valid.\n"),
        ("arrayhub/module.py", 'nobody = "short"\n'),
        ("arrayhub/module.py", 'def f():\n    """Return whether the array is empty."""\n'),
        ("docs/matrix.md", "Nobody.\n"),
    ],
)
def test_counter_ignores_code_and_plain_sentences(tmp_path, name, text):
    status, places = counted(tmp_path, name, text)
    assert places == []
    assert status == 0


def test_group_fails_only_above_its_limit(tmp_path):
    clean = "Return the array.\n" * 499
    assert counted(tmp_path, "docs/page.md", clean + "Nobody\n")[0] == 0  # 2 per 1,000
    assert counted(tmp_path, "docs/page.md", clean + "Nobody, nobody, nobody\n")[0] == 1  # 6 per 1,000
