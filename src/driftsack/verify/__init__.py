"""Check the statements of the paper and of the theory page on ``Adaptive``: ``driftsack verify``."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from driftsack.core.errors import SettingError
from driftsack.core.extras import require

require("scipy", "highspy")  # before the modules that need them

from driftsack.simulation.simulate import cores
from driftsack.verify import (
    adaptive_belief,
    adaptive_plan,
    adaptive_rates,
    benchmark_chain,
    concentration,
    definitions,
    frontier,
    hard_violation,
    lp_inequalities,
    minimax,
    minimisers_in_hull,
    online_convex,
    own_theorems,
    regret_bounds,
    two_point,
    w_min,
)
from driftsack.verify.statement import (
    CONSISTENT,
    FAILS,
    HOLDS,
    LEAST_POWER,
    VACUOUS,
    WEAK,
    Case,
    Effort,
    Finding,
    Rate,
    Statement,
)

__all__ = ["STATEMENTS", "Case", "Effort", "Finding", "Rate", "Statement", "judge", "select_statements", "verify"]

STATEMENTS: tuple[Statement, ...] = (
    *definitions.STATEMENTS,
    *lp_inequalities.STATEMENTS,
    *benchmark_chain.STATEMENTS,
    *w_min.STATEMENTS,
    *minimisers_in_hull.STATEMENTS,
    *concentration.STATEMENTS,
    *regret_bounds.STATEMENTS,
    *minimax.STATEMENTS,
    *two_point.STATEMENTS,
    *own_theorems.STATEMENTS,
    *frontier.STATEMENTS,
    *online_convex.STATEMENTS,
    *hard_violation.STATEMENTS,
    *adaptive_plan.STATEMENTS,
    *adaptive_belief.STATEMENTS,
    *adaptive_rates.STATEMENTS,
)


def select_statements(only: str | None) -> list[Statement]:
    """Select statements by a part of their name.

    Args:
        only: A substring of the name; None selects all statements.

    Raises:
        SettingError: If no name contains ``only``.
    """
    selected = [statement for statement in STATEMENTS if only is None or only in statement.name]
    if not selected:
        raise SettingError(f"only must be a part of one of {', '.join(s.name for s in STATEMENTS)}, got {only!r}.")
    return selected


def judge(statement: Statement, effort: Effort) -> Finding:
    """Check a statement, and whether the same check rejects the trivial competitors and small faults.

    Args:
        statement: The statement.
        effort: The number of instances and trials, and the seed.

    Returns:
        The finding; its verdict is *vacuous at this horizon* if a competitor passes, and *weak* if the statement holds
        but the check would notice only a fault by a factor of ten or more.
    """
    finding = statement.check(effort, Case.STATEMENT)
    if finding.verdict is FAILS:
        return finding
    if statement.check(effort, Case.TRIVIAL).verdict is not FAILS:
        return finding._replace(verdict=VACUOUS, note=f"{statement.competitor} pass too; {finding.note}")
    if finding.power < LEAST_POWER and finding.verdict in (HOLDS, CONSISTENT):
        return finding._replace(verdict=WEAK)
    return finding


def verify(
    effort: Effort, only: str | None = None, progress: Callable[[str, int, int], None] | None = None
) -> list[dict[str, Any]]:
    """Check statements of the paper; a full run checks as many at once as there are cores.

    Args:
        effort: The number of instances and trials, and the seed.
        only: A substring of the names of the statements to check; None checks all.
        progress: Called with the name of the first incomplete check, its position and the number of checks.

    Returns:
        One row per statement: verdict, worst margin, number of tries and the competitor that must be rejected.

    >>> verify(Effort(quick=True), only="step-change")[0]["verdict"]
    'holds'
    """
    statements, rows = select_statements(only), []
    workers = 1 if effort.quick else cores()  # long kernels release the GIL; short checks only wait for each other
    with ThreadPoolExecutor(workers) as pool:
        pending = [pool.submit(_row, statement, effort) for statement in statements]
        try:
            for position, (statement, row) in enumerate(zip(statements, pending, strict=True)):
                if progress is not None:
                    progress(statement.name, position, len(statements))
                rows.append(row.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return rows


def _row(statement: Statement, effort: Effort) -> dict[str, Any]:
    """Judge a statement and measure the time taken."""
    begun = time.perf_counter()
    finding = judge(statement, effort)
    return {
        "name": statement.name,
        "source": statement.source,
        "says": statement.says,
        "verdict": finding.verdict.value,
        "expected": statement.expected.value,
        "competitor": statement.competitor,
        "as_documented": finding.verdict == statement.expected,
        "tried": finding.tried,
        "margin": finding.margin,
        "power": finding.power,
        "scaled": statement.scaled,
        "seed": effort.seed,
        "seconds": time.perf_counter() - begun,
        "note": finding.note,
        "margins": finding.margins,
        "rates": [rate._asdict() for rate in finding.rates],
    }
