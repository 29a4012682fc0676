"""Draw the pictures of the README and the site: ``python tools/draw_pictures.py``.

The picture of an array's layout is written as SVG. The pictures of a notebook, one light and one dark, are screenshots
of an HTML page. They require Chromium (Debian: ``apt-get install chromium``) and Pillow.
"""

import ast
import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import arrayhub

STATIC = Path(__file__).resolve().parents[1] / "docs" / "_static"
CELLS = (
    'a = np.arange(24, dtype="f4").reshape(4, 6)\nx = arrayhub.asarray(a)\nx[::2, ::-1]',
    'arrayhub.asarray(np.broadcast_to(np.array([1, 2, 3], "i8"), (4, 3)))',
    "# a view that leaves its buffer\narrayhub.picture((2, 3), (3, 1), offset=2, size=6)",
    "arrayhub.explain(a[:, ::-1])",
)
THEMES = {  # colors of the page, of its text, of code cells, of their frames, and of the prompts beside them
    "light": ("#ffffff", "#1f2328", "#f6f8fa", "#d5d9de", "#6e7781"),
    "dark": ("#111418", "#e2e6ea", "#1b1f25", "#343a42", "#8b949e"),
}
WIDTH = 960  # width of the screenshots in pixels


PHONE = 358  # width in pixels of the site's text on a screen of 390 pixels


def front_picture() -> str:
    """Return the README's picture as SVG: every second row of a matrix in reverse. The width fits on a phone."""
    x = arrayhub.asarray(np.arange(24, dtype="f4").reshape(4, 6))[::2, ::-1]
    return x.picture.svg(width=PHONE) + "\n"


def notebook(theme: str) -> str:
    """Run the code in `CELLS`, and return an HTML page that shows the cells and their output as a notebook does."""
    page, words, code, frame, beside = THEMES[theme]
    names = {"np": np, "arrayhub": arrayhub}
    body = "".join(_cell(number, source, names) for number, source in enumerate(CELLS, 1))
    return (
        f"<!doctype html><meta charset=utf-8><title>arrayhub</title><style>body{{background:{page};color:{words};"
        f"font:14px/1.45 system-ui,'DejaVu Sans',sans-serif;margin:18px;width:{WIDTH - 36}px}}"
        f"pre{{background:{code};border:1px solid {frame};border-radius:4px;padding:8px 12px;margin:0;"
        f"font:13px/1.45 'DejaVu Sans Mono',monospace}}"
        f".cell{{display:grid;grid-template-columns:64px 1fr;margin:8px 0}}"
        f".beside{{color:{beside};font:12px/2.6 'DejaVu Sans Mono',monospace}}</style>{body}"
    )


def _cell(number: int, source: str, names: dict[str, object]) -> str:
    *statements, last = ast.parse(source).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return (
        f'<div class="cell"><span class="beside">In [{number}]:</span><pre>{html.escape(source)}</pre></div>'
        f'<div class="cell"><span class="beside">Out[{number}]:</span><div>{shown._repr_html_()}</div></div>'
    )


def photograph(page: str, target: Path) -> None:
    """Write a screenshot of a page, without the empty part at the bottom."""
    with tempfile.TemporaryDirectory() as folder:
        source, screenshot = Path(folder, "page.html"), Path(folder, "page.png")
        source.write_text(page)
        browser = shutil.which("chromium") or sys.exit("chromium is needed: apt-get install chromium")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},2400"]
        command = [browser, *options, f"--screenshot={screenshot}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        with Image.open(screenshot) as image:
            picture = image.convert("RGB")
        background = Image.new("RGB", picture.size, picture.getpixel((0, picture.height - 1)))
        seen = np.flatnonzero((np.asarray(picture) != np.asarray(background)).any(axis=(1, 2)))
        cut = picture.crop((0, 0, picture.width, min(picture.height, int(seen[-1]) + 20)))
        cut.quantize(128).save(target, optimize=True)


def main() -> None:
    (STATIC / "layout.svg").write_text(front_picture())
    for theme in THEMES:
        photograph(notebook(theme), STATIC / f"notebook-{theme}.png")


if __name__ == "__main__":
    main()
