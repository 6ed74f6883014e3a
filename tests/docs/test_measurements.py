"""Every table of measurements says when and at which commit it was recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGES = sorted((ROOT / "docs" / "measurements").glob("*.md"))
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7}\b")


def faults(page: str) -> list[str]:
    """What a page does not say: a date, a commit, or the commit of a paragraph that has a date."""
    missing = [f"no {what}" for what, pattern in (("date", DATE), ("commit", COMMIT)) if not pattern.search(page)]
    paragraphs = [text for text in page.split("\n\n") if DATE.search(text) and not COMMIT.search(text)]
    named = re.search(r"each \w+ names its commits?", page)
    return missing + [f"no commit: {text[:60]}" for text in paragraphs if named is None or named[0] not in text]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_names_its_dates_and_commits(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("Recorded on 2026-11-18 (commit 20993e4).\n\n| a |", []),
        ("Recorded recently (commit 20993e4).", ["no date"]),
        ("Recorded on 2026-11-18.", ["no commit", "no commit: Recorded on 2026-11-18."]),
        ("Recorded on 2026-11-18 (commit 20993e4).\n\nAgain on 2026-11-19.", ["no commit: Again on 2026-11-19."]),
    ],
)
def test_a_table_without_a_commit_is_found(page: str, found: list[str]) -> None:
    assert faults(page) == found
