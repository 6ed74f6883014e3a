"""The theory pages, errata.md and calibration.md render: fences, tables and headings."""

from __future__ import annotations

import re

import markdown
import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
PAGES = ("theory.md", "theory-paper.md", "theory-new.md", "theory-adaptive.md", "errata.md", "calibration.md")


def faults(text: str) -> list[str]:
    """What is wrong with a page once it is rendered."""
    page = markdown.markdown(text, extensions=["fenced_code", "tables"])
    blocks = re.findall(r"<pre>.*?</pre>", page, re.DOTALL)
    outside = re.sub(r"<pre>.*?</pre>", "", page, flags=re.DOTALL)
    found = []
    if len(blocks) != len(re.findall(r"^```\w+$", text, re.MULTILINE)):
        found.append("not every fence is a block of code")
    if "```" in outside or "&gt;&gt;&gt;" in outside:
        found.append("code outside of a block")
    if any(re.search(r"^#+ ", block, re.MULTILINE) for block in blocks):
        found.append("a heading inside a block of code")
    if len(re.findall(r"<h\d>", page)) != len(re.findall(r"^#+ ", text, re.MULTILINE)):
        found.append("a heading is missing")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    if len(re.findall(r"<tr>", outside)) != len(rows):
        found.append("a row of a table is missing")
    if re.search(r"^\| ", re.sub(r"<[^>]+>", "", outside), re.MULTILINE):
        found.append("a row of a table is shown as text")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_the_page_renders(name: str) -> None:
    assert faults((DOCS / name).read_text()) == []


def test_planted_faults_are_found() -> None:
    text = (DOCS / "errata.md").read_text()
    last = text.rindex("\n```")
    assert faults(text[:last] + text[last + 4 :])  # the last fence is never closed
    middle = text.index("\n```\n\n## ")
    assert "a heading inside a block of code" in faults(text[:middle] + text[middle + 4 :])
    assert faults(text.replace("| --- | --- | --- |", "", 1))


@pytest.mark.parametrize("name", PAGES)
def test_links_to_headings_exist(name: str) -> None:
    """Links within these pages lead to a heading."""
    for page, anchor in re.findall(r"\]\((?:([a-z]+\.md))?#([\w-]+)\)", (DOCS / name).read_text()):
        text = (DOCS / (page or name)).read_text()
        slugs = {
            re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-")
            for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert anchor in slugs, (name, page, anchor)
