"""Label every cell of a table with the title of its column, so that CSS can stack the cells on a phone."""

from __future__ import annotations

import re
from html import escape

TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
TITLE = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
CELL = re.compile(r"<td\b")
TAG = re.compile(r"<[^>]+>")


def label_row(row: str, titles: list[str]) -> str:
    """Label the cells of one row in their order."""
    names = iter(titles)
    return CELL.sub(lambda _: f'<td data-label="{escape(next(names, ""))}"', row)


def label_cells(html: str) -> str:
    """Label the cells of every table of a page.

    >>> label_cells("<table><tr><th>name</th></tr><tr><td>b</td></tr></table>")
    '<table><tr><th>name</th></tr><tr><td data-label="name">b</td></tr></table>'
    """

    def labelled(found: re.Match[str]) -> str:
        titles = [TAG.sub("", title).strip() for title in TITLE.findall(found[0])]
        return ROW.sub(lambda row: label_row(row[0], titles), found[0])

    return TABLE.sub(labelled, html)
