"""Statistical reservations on a few seasons: the short form of ``python -m lab reserves``."""

from __future__ import annotations

import pytest

from driftsack.policies import Adaptive, UniformRandom
from lab.reserves import WORLDS, reserve_rows, season, summary, to_markdown

ROUNDS, DELAY, SEASONS = 1_000, 100, 6


@pytest.mark.parametrize("kind", WORLDS)
def test_budgets_hold_almost_always(kind: str) -> None:
    """Without pacing, every season ends at its reservations; hard ones leave much more unspent."""
    ours, hard = (
        [season(WORLDS[kind], DELAY, UniformRandom(), safe, seed, ROUNDS) for seed in range(SEASONS)]
        for safe in ("statistical", True)
    )
    row = summary(ours, hard)
    assert row["hard over"] == 0
    assert row["largest"] <= (0.05 if kind == "late jump" else 0.02)
    assert row["spent"] > row["hard spent"] + 0.1
    assert row["blocked"] < row["hard blocked"]


def test_outcomes_that_are_late_are_what_makes_it_hard() -> None:
    """Without reservations for pending decisions, budgets are exceeded by far."""
    world = WORLDS["lognormal, sd 1"]
    free = [season(world, DELAY, UniformRandom(), False, seed, ROUNDS) for seed in range(SEASONS)]
    assert min(one.over for one in free) > 0.05


def test_a_policy_that_paces_spends_the_budget() -> None:
    one = season(WORLDS["coins"], DELAY, Adaptive(), "statistical", 0, ROUNDS)
    assert one.over <= 0.02
    assert one.spent > 0.8


def test_the_page() -> None:
    rows = reserve_rows(1, (20,), 100)
    assert len(rows) == 2 * len(WORLDS)
    assert "| UniformRandom | coins | 20 | 1 |" in to_markdown(rows, "python -m lab reserves 1")
