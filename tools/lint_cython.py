"""Run cython-lint on all compiled code, including .pxi files.

    python tools/lint_cython.py [FILE ...]

cython-lint (0.22) parses ``.pyx`` and ``.pxd`` files, but checks only line lengths and white space in ``.pxi`` files.
Each ``.pxi`` file is therefore copied to a file that is named as a ``.pyx``, and the copy is checked. Without a FILE,
the whole package is checked. The exit status is cython-lint's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = (".pyx", ".pxd", ".pxi")
PART = "__part.pyx"


def lint(names):
    """Run cython-lint on copies of files. Return its output, with the original file names, and its exit status."""
    copies = {name: name[: -len(".pxi")] + PART if name.endswith(".pxi") else name for name in names}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "pyproject.toml", folder)
        for name, copied in copies.items():
            target = Path(folder, copied)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # cython-lint calls pycodestyle
        done = subprocess.run(
            ["cython-lint", *copies.values()],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        return done.stdout.replace(f"{folder}/", "").replace(PART, ".pxi"), done.returncode


def main():
    """Lint the given files, or the package."""
    package = (path for path in (ROOT / "arrayhub").rglob("*") if path.suffix in SUFFIXES)
    output, status = lint(sys.argv[1:] or sorted(str(path.relative_to(ROOT)) for path in package))
    print(output, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
