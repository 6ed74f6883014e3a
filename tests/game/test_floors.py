"""The account of floors, and ledgers of resources without a budget."""

from __future__ import annotations

import numpy as np
import pytest

import driftsack as ds
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.floors import needed, new_floor_account, note_answer
from driftsack.game.ledger import add_cost, is_broken, open_ledger, units_of_cost
from driftsack.game.records import MUST_SERVE, new_terms
from driftsack.numerics.compiled import interpreted

PROBLEM = ds.Problem(100, ["a", "b"], minimise="usd", floor={"reward": 3.0, "share:b": 0.25}, reward_max=4.0)


def test_what_is_short_of_a_floor_is_spread_over_the_remaining_rounds() -> None:
    account = new_floor_account(PROBLEM)
    for arm, reward in [(0, 0.5), (0, 0.6), (1, 1.0)]:
        interpreted(note_answer)(account, arm, reward)
    assert account.gained.tolist() == pytest.approx([2.1, 1.0])
    for rounds_left in (97.0, 1.0):
        quality, share = (interpreted(needed)(account, f, 0.0, 0.0, rounds_left) for f in range(2))
        assert (2.1 + quality * rounds_left) / (3 + rounds_left) == pytest.approx(0.75)
        assert (1.0 + share * rounds_left) / (3 + rounds_left) == pytest.approx(0.25)
    # Two pending decisions that are expected to earn the floor change nothing, better ones leave less to be done.
    assert interpreted(needed)(account, 0, 1.5, 2.0, 10.0) == pytest.approx(interpreted(needed)(account, 0, 0, 0, 10.0))
    assert interpreted(needed)(account, 0, 2.0, 2.0, 10.0) < interpreted(needed)(account, 0, 0, 0, 10.0)


def test_requests_are_answered_only_for_a_floor() -> None:
    assert new_terms(PROBLEM).skip_cost[0] == MUST_SERVE
    assert new_terms(ds.Problem(100, 2, 5.0)).skip_cost[0] == 0.0


@pytest.mark.parametrize("cost_max", [None, 1e-6, 1e6])
def test_a_resource_without_a_budget_is_charged_exactly_and_never_broken(cost_max: float | None) -> None:
    problem = ds.Problem(10**6, 2, minimise="usd", floor=0.5, cost_max=cost_max)
    ledger, most = open_ledger(problem), problem.cost_max[0]
    for _ in range(3):
        interpreted(add_cost)(ledger, 0, interpreted(units_of_cost)(ledger, 0, 0.1), 0.1)
    assert ledger.charged[0] == interpreted(units_of_cost)(ledger, 0, 0.3)  # exactly three tenths
    assert ledger.granted[0] == MOST_UNITS
    assert ledger.granted[0] / ledger.per_cost[0] >= 1e9, "too few rounds at the maximum cost"
    assert not interpreted(is_broken)(ledger)
    assert np.isfinite(new_terms(problem).rate).all()
    assert most > 0.0
