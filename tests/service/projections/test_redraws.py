"""Propensities over the draws of a campaign's policy, from a replay of its journal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from driftsack.service.domain import messages as ms
from driftsack.service.domain.config import Limit
from driftsack.service.projections import what_if
from driftsack.service.projections.export import outcomes
from driftsack.service.projections.redraws import redrawn_propensities
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.campaigns import small
from tests.support.journals import Written

ROUNDS = 120


def played(path: Path) -> None:
    """A campaign with Thompson sampling, in which most outcomes are cancelled, so that it remains undecided."""
    config = small(policy={"policy": "ThompsonBwK"}, budget={"usd": "100"}, horizon=1000, explore=0.05)
    one = Written(SQLiteStore(path), "chat", config)
    for k in range(ROUNDS):
        found = one.owned.campaign.handle(ms.Ask(), one.now)
        good = found.arm == "large" or k % 2 == 0
        one.owned.campaign.handle(ms.Tell(float(good), {"usd": "0.01"}), one.now, number=found.decision)
    one.commit()


def test_a_journal_is_answered_from_propensities_over_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie between those of the draws, their weights add up within 4 standard errors, and what-if uses them."""
    played(tmp_path / "s.db")
    with closing(SQLiteStore(tmp_path / "s.db", read_only=True)) as store:
        chances = redrawn_propensities(store, "chat", draws=10)
        assert redrawn_propensities(store, "chat", draws=10) == chances
        recorded = [row[3] for row in outcomes(store, "chat").rows]
        rows = outcomes(store, "chat", chances).rows
        monkeypatch.setattr(what_if, "redrawn_propensities", lambda store, name: chances)
        found, own = what_if.what_if(store, "chat", {"policy": "AlwaysArm", "arm": 1})
    assert {round(float(str(chance)), 6) for chance in recorded} == {0.025, 0.975}
    assert len(chances) == ROUNDS
    assert len({round(chance, 6) for chance in chances.values()}) > 5
    assert min(chances.values()) >= 0.025 - 1e-12
    weights = np.array([1 / float(str(row[3])) for row in rows if row[1] == "large"])
    assert abs(weights.sum() - ROUNDS) < 4 * np.sqrt((weights * (weights - 1)).sum())
    assert found.method.endswith("propensities by redraws")
    assert abs(found.reward - 1.0) < 4 * found.reward_se + 0.05
    assert own > 0.4


def test_an_arm_that_a_limit_left_alone_has_the_propensity_one(tmp_path: Path) -> None:
    limits = [Limit("user", {"usd": "0.07"}, "day")]
    most = {"usd": {"small": "0.05", "large": "0.1"}}
    with closing(SQLiteStore(tmp_path / "store.db")) as store:
        written = Written(store, "chat", small(limits=limits, cost_max=most, budget={"usd": "100"}))
        for number in range(5):
            written.do(ms.Ask(labels={"user": f"user {number}"}))
        assert set(redrawn_propensities(store, "chat").values()) == {1.0}
