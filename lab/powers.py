"""Write the power of every check of `driftsack verify` into the table of docs/theory.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from driftsack.verify import Effort, verify
from driftsack.verify.statement import LEAST_POWER

PAGE: Final = Path("docs/theory.md")


def cell(power: float) -> str:
    """Format a power; one that would round up to the limit is rounded down.

    >>> cell(0.0996), cell(0.5), cell(0.031)
    ('0.09, weak', '0.50', '0.03, weak')
    """
    return f"{int(power * 100) / 100:.2f}, weak" if power < LEAST_POWER else f"{power:.2f}"


def with_powers(text: str, powers: Mapping[str, float]) -> str:
    """Return the page with the powers of the rows in their column; other rows stay.

    >>> with_powers("| `x` | a | b | 0 | ? | holds |", {"x": 0.5})
    '| `x` | a | b | 0 | 0.50 | holds |'
    """

    def written(row: re.Match[str]) -> str:
        name = row["name"]
        return f"{row['start']} {cell(powers[name])} |{row['verdict']}|" if name in powers else row[0]

    pattern = r"^(?P<start>\| `(?P<name>[a-z0-9-]+)` \|.*\|) [^|]+ \|(?P<verdict>[^|]+)\|$"
    return re.sub(pattern, written, text, flags=re.MULTILINE)


def write_powers(progress: Callable[[str, int, int], None]) -> dict[str, float]:
    """Run the quick checks and write the powers; return them by name."""
    powers = {row["name"]: row["power"] for row in verify(Effort(quick=True), progress=progress)}
    PAGE.write_text(with_powers(PAGE.read_text(), powers))
    return powers
