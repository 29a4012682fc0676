"""Check the layout of every page of the site in a browser: ``python tools/look_at_site.py SITE PICTURES``.

SITE is the output folder of sphinx-build. The script takes screenshots of each page at widths of 1400 and 390 pixels,
with the light and the dark theme, and writes them to the folder PICTURES for a reviewer. It prints the following
faults, and exits with status 1 if it finds one:

- A page is wider than its window.
- A table is wider than its column in a window of 1400 pixels.
- A picture is drawn at less than nine tenths of its width.

The script requires Chromium (Debian: ``apt-get install chromium``) and ``pip install playwright``.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WIDE, PHONE = 1400, 390  # pixels
SEEN = """(wide) => {
  const found = [];
  for (const place of document.querySelectorAll("html, .bd-article-container"))
    if (place.scrollWidth > place.clientWidth)
      found.push(`the page is ${place.scrollWidth} pixels wide, but only ${place.clientWidth} fit`);
  for (const table of document.querySelectorAll("article table")) {
    const place = table.parentElement, text = table.innerText.replace(/\\s+/g, " ").slice(0, 40);
    if (wide && place.scrollWidth > place.clientWidth + 1)
      found.push(`a table is ${place.scrollWidth} pixels wide, but only ${place.clientWidth} fit: ${text}`);
  }
  for (const image of document.querySelectorAll("article img"))
    if (image.width < 0.9 * image.naturalWidth)
      found.push(`${image.src.split("/").pop()} is ${image.naturalWidth} pixels wide, but is drawn at ${image.width}`);
  return found;
}"""


def look(page: Page, address: str, picture: Path, width: int) -> list[str]:
    """Take a screenshot of a page, and return the page's faults."""
    page.goto(address)
    page.wait_for_timeout(100)  # until the theme's scripts have changed the layout
    page.screenshot(path=picture, full_page=True)
    found: list[str] = page.evaluate(SEEN, width == WIDE)
    return found


def main(site: Path, pictures: Path) -> int:
    """Check all pages. Return 1 if a page has a fault."""
    chromium = shutil.which("chromium") or sys.exit("chromium is needed: apt-get install chromium")
    pictures.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in (WIDE, PHONE):
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page = context.new_page()
                for source in sorted(set(site.rglob("*.html")) - set(site.glob("_static/**/*"))):
                    name = source.relative_to(site).with_suffix("").as_posix()
                    picture = pictures / f"{name.replace('/', '-')}-{width}-{scheme}.png"
                    for fault in look(page, source.resolve().as_uri(), picture, width):
                        wrong += 1
                        print(f"{name}, {width} pixels, {scheme}: {fault}")
                context.close()
        browser.close()
    return min(wrong, 1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
