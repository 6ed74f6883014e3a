"""Every statement of the paper as a check that runs: ``driftsack verify``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from driftsack.core.errors import SettingError
from driftsack.verify import chance, convex, exact, hulls, rates
from driftsack.verify.statement import Effort, Statement

STATEMENTS: tuple[Statement, ...] = (
    *exact.STATEMENTS,
    *hulls.STATEMENTS,
    *chance.STATEMENTS,
    *rates.STATEMENTS,
    *convex.STATEMENTS,
)


def chosen(only: str | None) -> list[Statement]:
    """All statements, or those whose name contains ``only``."""
    found = [statement for statement in STATEMENTS if only is None or only in statement.name]
    if not found:
        raise SettingError(f"only must be a part of one of {', '.join(s.name for s in STATEMENTS)}, got {only!r}.")
    return found


def verify(
    effort: Effort, only: str | None = None, progress: Callable[[str, int, int], None] | None = None
) -> list[dict[str, Any]]:
    """Run the checks; a row a statement. ``progress`` hears the name of the check that begins, its place and how many.

    >>> verify(Effort(quick=True), only="step-change")[0]["verdict"]
    'holds'
    """
    rows = []
    statements = chosen(only)
    for place, statement in enumerate(statements):
        if progress is not None:
            progress(statement.name, place, len(statements))
        begun = time.perf_counter()
        finding = statement.check(effort, False)
        rows.append(
            {
                "name": statement.name,
                "source": statement.source,
                "says": statement.says,
                "verdict": finding.verdict,
                "expected": statement.expected,
                "as_documented": finding.verdict == statement.expected,
                "tried": finding.tried,
                "margin": finding.margin,
                "seed": effort.seed,
                "seconds": time.perf_counter() - begun,
                "note": finding.note,
                "margins": finding.margins,
                "rates": [rate._asdict() for rate in finding.rates],
            }
        )
    return rows
