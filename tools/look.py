"""Look at every page of the built site in a browser, at the width of a desktop and of a phone.

``python tools/look.py SITE SHOTS`` saves a screenshot of each page and lists what does not fit: a page or a table that
is wider than its column, a missing picture, a script error, a request to another host.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.chromium import browsing

WIDTHS = ((1280, 900), (390, 844))
FAULTS = """() => {
  const faults = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) faults.push(`page: ${root.scrollWidth} > ${root.clientWidth} px`);
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap"))
    if (table.scrollWidth > table.clientWidth + 1)
      faults.push(`table: ${table.scrollWidth} > ${table.clientWidth} px: ${table.innerText.slice(0, 40)}`);
  for (const picture of document.querySelectorAll(".md-content img"))
    if (!picture.naturalWidth) faults.push(`picture: ${picture.src}`);
  return faults;
}"""


def look_at(page: Any, file: Path, shot: Path) -> list[str]:
    """Open a page, save a screenshot and return its faults."""
    found: list[str] = []

    def error(raised: Any) -> None:
        found.append(f"script: {raised}")

    def request(made: Any) -> None:
        if not made.url.startswith(("file:", "data:", "blob:")):
            found.append(f"fetched: {made.url}")

    page.on("pageerror", error)
    page.on("request", request)
    page.goto(file.as_uri())
    page.wait_for_timeout(100)  # Material wraps tables by a script
    page.screenshot(path=str(shot))
    page.remove_listener("pageerror", error)
    page.remove_listener("request", request)
    return found + [str(fault) for fault in page.evaluate(FAULTS)]


def main(site: Path, shots: Path) -> int:
    """Look at all pages; return the number of faults."""
    shots.mkdir(parents=True, exist_ok=True)
    pages = sorted(site.absolute().rglob("*.html"))
    faults = 0 if pages else 1
    with browsing() as browser:
        for width, height in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": height})
            for file in pages:
                name = "_".join(file.relative_to(site.absolute()).with_suffix("").parts)
                for fault in look_at(page, file, shots / f"{name}_{width}.png"):
                    faults += 1
                    print(f"{width} px, {name}: {fault}")
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, {faults} faults")
    return faults


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])) > 0)
