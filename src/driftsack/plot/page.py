"""Build self-contained HTML pages with embedded figures, without scripts or network access."""

from __future__ import annotations

import base64
import html
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from driftsack.core.release import __version__
from driftsack.core.text import number

STYLE: Final = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 62rem; margin: 2rem auto;
       padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
p.lead { font-size: 1.2rem; margin-top: .4rem; } ol { padding-left: 1.4rem; } li { margin: .3rem 0; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: #444; font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th { background: #f4f4f4; } td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.badge { font-weight: 600; white-space: nowrap; }
.good { color: #00664b; } .bad { color: #a53b00; } .neutral { color: #555; }
"""


class Badge(NamedTuple):
    """A highlighted table cell: a short string in the colour of its tone."""

    text: str  # the content of the cell
    tone: Literal["good", "bad", "neutral"]  # the CSS class: ``"good"``, ``"bad"`` or ``"neutral"``


def page(title: str, lead: str, parts: Iterable[str]) -> str:
    """Build the whole document from an unescaped title and lead (the sentence below it), and the parts as HTML."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f'<h1>{html.escape(title)}</h1>\n<p class="lead">{html.escape(lead)}</p>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def heading(text: str) -> str:
    """The HTML of a heading."""
    return f"<h2>{html.escape(text)}</h2>"


def paragraph(text: str) -> str:
    """The HTML of a paragraph."""
    return f"<p>{html.escape(text)}</p>"


def numbered(items: Iterable[str]) -> str:
    """The HTML of a numbered list."""
    return f"<ol>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ol>"


def picture(path: Path, caption: str) -> str:
    """The HTML of a figure with an embedded PNG file."""
    data = base64.b64encode(path.read_bytes()).decode()
    text = html.escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The HTML of a table.

    Numbers are formatted and aligned to the right, a :class:`Badge` is coloured, None is empty and everything else is
    converted to a string. Without ``columns`` the table has no header.
    """
    titles = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    head = f"<thead><tr>{titles}</tr></thead>" if titles else ""
    body = "\n".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, Badge):
        return f'<td class="badge {value.tone}">{html.escape(value.text)}</td>'
    if isinstance(value, (int, float)):
        return f'<td class="number">{number(value)}</td>'
    return f"<td>{html.escape('' if value is None else str(value))}</td>"


def versions() -> str:
    """A line with the versions of the library and its main dependencies."""
    found = {"driftsack": __version__, "Python": platform.python_version(), "machine": platform.machine()}
    found |= {name: version(name) for name in ("numpy", "numba", "scipy", "highspy", "polars", "matplotlib")}
    return ", ".join(f"{name} {value}" for name, value in found.items())
