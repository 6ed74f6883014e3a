"""One HTML page that needs nothing but itself: no network, no scripts; figures are inside."""

from __future__ import annotations

import base64
import html
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from driftsack.core.release import __version__

STYLE: Final = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 62rem; margin: 2rem auto;
       padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
p.lead { color: #444; margin-top: 0; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: #444; font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th { background: #f4f4f4; } td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.verdict { font-weight: 600; white-space: nowrap; }
.holds { color: #00664b; } .fails { color: #a53b00; } .undecided { color: #555; }
"""
MARKS: Final = {"holds": "✓ holds", "fails": "✗ fails", "undecided": "? undecided"}


def page(title: str, lead: str, parts: Iterable[str]) -> str:
    """A whole document."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f'<h1>{html.escape(title)}</h1>\n<p class="lead">{html.escape(lead)}</p>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def heading(text: str) -> str:
    """A heading."""
    return f"<h2>{html.escape(text)}</h2>"


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(text)}</p>"


def picture(path: Path, caption: str) -> str:
    """A PNG as part of the page."""
    data = base64.b64encode(path.read_bytes()).decode()
    words = html.escape(caption)
    return f'<figure><img alt="{words}" src="data:image/png;base64,{data}"><figcaption>{words}</figcaption></figure>'


def grid(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; verdicts carry a mark and a colour, numbers stand to the right. No columns: no head."""
    names = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    head = f"<thead><tr>{names}</tr></thead>" if names else ""
    body = "\n".join(f"<tr>{''.join(_field(value) for value in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def _field(value: Any) -> str:
    if value in MARKS:
        return f'<td class="verdict {value}">{MARKS[value]}</td>'
    if isinstance(value, (int, float)):
        return f'<td class="number">{spelled(value)}</td>'
    return f"<td>{html.escape('' if value is None else str(value))}</td>"


def spelled(value: float) -> str:
    """A number as people read it."""
    if isinstance(value, int) or abs(value) >= 1000:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.4g}"


def numbers_in_words(numbers: dict[str, float]) -> str:
    """Numbers with their standard errors: ``SW-UCB 4,935 ± 1``."""
    return ", ".join(
        f"{name} {spelled(value)}" + (f" ± {numbers[f'{name} ±']:.2g}" if numbers.get(f"{name} ±") else "")
        for name, value in numbers.items()
        if not name.endswith(" ±")
    )


def versions() -> dict[str, str]:
    """What the results were computed with."""
    found = {"driftsack": __version__, "Python": platform.python_version(), "machine": platform.machine()}
    return found | {name: version(name) for name in ("numpy", "numba", "scipy", "highspy", "polars", "matplotlib")}
