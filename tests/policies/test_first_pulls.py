"""First pulls: arms in turn before the LP decides, whatever is closed, late or skipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import driftsack as ds
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import choose, learn
from driftsack.game.records import new_outcome, new_terms, open_round

PROBLEM = ds.Problem(horizon=300, arms=3, budget=[90.0, 90.0])
# The bound of an untried arm is about 0.06, so that the first arm that earns something is always pulled.
POLICIES = pytest.mark.parametrize(
    "policy",
    [
        ds.SlidingWindowUCB(windows=(40, 50), scale=0.01, first_pulls=2),
        ds.NaiveUCB(scale=0.01, radius="bernstein", cost_scale=0.001, first_pulls=2),
        ds.policies.DiscountedUCB(scale=0.01, first_pulls=2),
    ],
    ids=lambda policy: type(policy).__name__,
)


def pulled(policy: ds.Policy, opened: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> list[int]:
    """The arms that are chosen if row t of ``opened`` has the open arms of round t, and every pull earns 1."""
    state, terms, ledger = policy.new_state(PROBLEM), new_terms(PROBLEM), open_ledger(PROBLEM)
    rng, mix, prices, arms = np.random.default_rng(0), np.zeros(3), np.zeros(2), []
    for t, row in enumerate(opened):
        terms.open[:] = row
        arms.append(int(choose(state, open_round(t, ledger, terms), rng, mix, prices)))
        learn(state, new_outcome(terms, t, arms[-1], 1.0, 1.0, np.full(2, 0.3)))
    return arms


@POLICIES
def test_arms_are_pulled_in_turn_and_then_the_lp_decides(policy: ds.Policy) -> None:
    """With 2 first pulls the first 6 rounds are known; without them, one arm is pulled in all of them."""
    arms = pulled(policy, np.ones((12, 3), dtype=bool))
    assert arms[:6] == [0, 1, 2] * 2
    assert arms[6:9] != [0, 1, 2]
    without = ds.NaiveUCB(scale=0.01)
    assert len(set(pulled(without, np.ones((6, 3), dtype=bool)))) == 1


@POLICIES
def test_closed_arms_are_not_forced_before_they_open(policy: ds.Policy) -> None:
    """Arm 0 is closed in the first 20 rounds, arm 2 in the first 3."""
    opened = np.ones((24, 3), dtype=bool)
    opened[:20, 0] = opened[:3, 2] = False
    arms = pulled(policy, opened)
    assert arms[:2] == [1, 1]
    assert arms[3:5] == [2, 2]
    assert arms[20:22] == [0, 0]
    assert pulled(policy, np.ones((24, 3), dtype=bool))[:2] == [0, 1]  # without the mask


@POLICIES
def test_decisions_count_although_their_feedback_is_late(policy: ds.Policy) -> None:
    learner = policy.start(PROBLEM, seed=0)
    decisions = [learner.ask() for _ in range(7)]
    assert [decision.arm for decision in decisions[:6]] == [0, 1, 2] * 2
    for decision in decisions[:6]:
        assert decision.mix[decision.arm] == 1.0
        assert decision.mix.sum() == 1.0
        assert not decision.prices.any()


@POLICIES
def test_first_pulls_that_no_budget_can_pay_are_repeated(policy: ds.Policy) -> None:
    """Budgets for two pending decisions; when their outcomes arrive, the first pulls continue where they stopped."""
    learner = policy.start(ds.Problem(horizon=300, arms=3, budget=[2.5, 2.5], cost_max=1.0), seed=0, safe=True)
    decisions = [learner.ask() for _ in range(6)]
    assert [decision.arm for decision in decisions] == [0, 1, *[ds.SKIP] * 4]
    for decision in decisions[:2]:
        learner.tell(decision, 0.5, [0.01, 0.01])
    assert [learner.ask().arm for _ in range(2)] == [2, 0]


@POLICIES
def test_a_learner_saved_during_first_pulls_continues(policy: ds.Policy, tmp_path: Path) -> None:
    """A learner that was started again instead would begin with arm 0."""
    first, rng = policy.start(PROBLEM, seed=4), np.random.default_rng(0)
    for _ in range(4):
        first.tell(first.ask(), rng.random(), rng.random(2))
    first.save(tmp_path / "learner")
    second = ds.Learner.load(tmp_path / "learner")
    for _ in range(60):
        one, two = first.ask(), second.ask()
        assert (one.arm, one.mix.tolist(), one.prices.tolist()) == (two.arm, two.mix.tolist(), two.prices.tolist())
        if not one.skipped:
            reward, costs = rng.random(), 0.4 * rng.random(2)
            first.tell(one, reward, costs)
            second.tell(two, reward, costs)
        assert one.round > 6 or one.arm == (one.round - 1) % 3
