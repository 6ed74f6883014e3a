"""Hooks of the site's build: pages from the root of the project and from the commands, formulas, and a check of both.

MkDocs calls these functions by their names (``hooks`` in mkdocs.yml). A warning fails a strict build.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.page_math import rendered, unrendered
from tools.page_tables import label_cells

log = logging.getLogger("mkdocs.hooks.site")
FROM_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md", "security.md": "SECURITY.md"}
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


def relink(text: str) -> str:
    """Let the links of a page from the root lead to pages of the site; files that are not part of it are only named.

    >>> relink("[FAQ](docs/faq.md), [a policy](tests/support/in_turn.py)")
    '[FAQ](faq.md), a policy (`tests/support/in_turn.py`)'
    """
    names = {name: page for page, name in FROM_ROOT.items()}

    def place(found: re.Match[str]) -> str:
        label, target = found.groups()
        if target in names:
            return f"[{label}]({names[target]})"
        if target.startswith("docs/") and target.endswith(".md"):
            return f"[{label}]({target.removeprefix('docs/')})"
        return f"`{target}`" if label.strip("`") == target else f"{label} (`{target}`)"

    return LINK.sub(place, text)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of the directory docs/."""
    from tools.cli_reference import reference

    for page, name in FROM_ROOT.items():
        files.append(File.generated(config, page, content=relink((ROOT / name).read_text(encoding="utf-8"))))
    files.append(File.generated(config, "cli.md", content=reference()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Convert formulas."""
    return rendered(markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Warn about formulas that were not converted, and label the cells of tables."""
    for piece in unrendered(html):
        log.warning("%s shows the source of a formula: %s", page.file.src_uri, piece)
    return label_cells(html)
