"""Costs that are listed for a request: what is learnt, what is planned, what is kept, and who can use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError, ShapeError
from tests.policies.test_policy_contract import LEARNERS, Recipe, built
from tests.support.constant_contexts import asked, with_features
from tests.support.learner_parts import terms_of

NAMES = ["small", "large"]


def problem(horizon: int = 400, budget: float = 40.0, **settings: Any) -> ds.Problem:
    return ds.Problem(horizon, NAMES, {"usd": budget}, cost_max=1.0, **settings)


def listed(small: float, large: float) -> dict[str, dict[str, float]]:
    return {"usd": {"small": small, "large": large}}


@LEARNERS
def test_a_policy_uses_listed_costs_or_refuses_by_name(recipe: Recipe) -> None:
    """What it declares is what happens; and a saved learner continues bit for bit."""
    policy = built(recipe, problem())
    learner = policy.start(with_features(policy, problem()), seed=1, safe=True)
    before, rng = learner.state_hash(), np.random.default_rng(0)
    if not policy.known_costs:
        with pytest.raises(SettingError, match=f"{type(policy).__name__} cannot use listed costs"):
            asked(learner, costs=listed(0.1, 0.2))
        assert learner.state_hash() == before
        return
    for t in range(120):
        prices = np.exp(0.3 * rng.standard_normal(2)) * [0.1, 0.3]
        if t == 60:
            again = ds.Learner.from_bytes(learner.to_bytes())
            assert again.state_hash() == learner.state_hash()
            learner = again
        decision = asked(learner, costs=listed(*prices.tolist()) if t % 4 else None)
        if not decision.skipped and t % 5:
            learner.tell(decision, float(rng.random()), float(prices[decision.arm]))
    again = ds.Learner.from_bytes(learner.to_bytes())
    one, two = asked(learner), asked(again)
    assert (one.arm, one.mix.tolist()) == (two.arm, two.mix.tolist())


def earned(policy: ds.Policy, seed: int, lists: bool) -> float:
    """The reward where each arm is at times expensive; what is paid is the list, or part of it."""
    learner, rng, total = policy.start(problem(), seed=seed, safe=True), np.random.default_rng(seed), 0.0
    for t in range(400):
        prices = np.array([0.15, 0.3]) * (3.0 if t // 20 % 2 else 0.5) ** np.array([1.0, -1.0])
        decision = learner.ask(costs=prices[None] if lists else None)
        if not decision.skipped:
            reward = float(rng.random() < (0.6, 0.7)[decision.arm])
            learner.tell(decision, reward, float(prices[decision.arm] * (0.5 if rng.random() < 0.2 else 1.0)))
            total += reward
    assert learner.remaining[0] >= 0.0
    return total


@pytest.mark.parametrize("policy", [ds.Adaptive(), ds.ThompsonBwK(budget_rule="two-speed")], ids=str)
def test_listed_costs_earn_more(policy: ds.Policy) -> None:
    with_lists, without = (np.mean([earned(policy, seed, lists) for seed in range(3)]) for lists in (True, False))
    assert with_lists > 1.1 * without


def test_costs_are_learnt_relative_to_the_list() -> None:
    """Prices rise tenfold, and what is paid stays four fifths of them: there is nothing to learn."""
    learner = ds.Adaptive().start(problem(budget=400.0), seed=0)
    for t in range(100):
        price = 0.05 if t < 60 else 0.5
        decision = learner.ask(open=[NAMES[t % 2]], costs=listed(price, 2.0 * price))
        learner.tell(decision, 0.5, 0.8 * price * (1 + decision.arm))
    belief = learner.state.belief
    assert belief.changes[0] == 0.0
    np.testing.assert_allclose(belief.mean[:, 1] / belief.mean[0, 1], 1.0, rtol=0.05)  # both arms share a reference


def test_a_late_outcome_counts_at_the_list_of_its_own_request() -> None:
    prompt, late = (ds.Adaptive().start(problem(budget=400.0), seed=0) for _ in range(2))
    cheap = [learner.ask(open=["small"], costs=listed(0.1, 0.2)) for learner in (prompt, late)]
    prompt.tell(cheap[0], 0.5, 0.1)
    for learner in (prompt, late):
        dear = learner.ask(open=["small"], costs=listed(0.8, 0.9))
        if learner is late:
            learner.tell(cheap[1], 0.5, 0.1)
        learner.tell(dear, 0.5, 0.8)
    assert prompt.state.belief.mean[0, 1] == late.state.belief.mean[0, 1]


def test_a_list_may_leave_out_resources_and_arms() -> None:
    two = ds.Problem(100, NAMES, {"usd": 10.0, "seconds": 50.0})
    learner = ds.Adaptive().start(two, seed=0)
    both = [[0.1, 0.2], [0.5, 0.5]]
    given: list[Any] = [{"usd": {"small": 0.1}}, {"seconds": 0.5}, {"usd": [0.1, 0.2]}, both, {"usd": {}}]
    for costs in given:
        learner.ask(costs=costs)
    prices = terms_of(learner).prices
    assert prices.lists.tolist() == [[3.0, 2.0], [2.0, 2.0]]
    before = learner.state_hash()
    with pytest.raises(NamesError, match="costs must be of some of the resources"):
        learner.ask(costs={"euros": {"small": 0.1}})
    with pytest.raises(NamesError, match="costs of 'usd' must be one of"):
        learner.ask(costs={"usd": {"medium": 0.1}})
    with pytest.raises(OutOfRangeError, match="0 or more"):
        learner.ask(costs={"usd": {"small": -0.1}})
    with pytest.raises(ShapeError):
        learner.ask(costs=[0.1, 0.2])
    assert learner.state_hash() == before


def test_an_arm_that_is_listed_as_free_is_planned_as_free() -> None:
    learner = ds.Adaptive().start(problem(budget=20.0), seed=0)
    rng = np.random.default_rng(0)
    for t in range(300):
        decision = learner.ask(costs=listed(0.0 if t % 2 else 0.4, 0.5))
        if not decision.skipped:
            free = t % 2 and decision.arm == 0
            learner.tell(decision, float(rng.random() < 0.5), 0.0 if free else (0.4, 0.5)[decision.arm])
    names = [learner.ask(costs=listed(0.0, 0.5), open=["small"]).name for _ in range(10)]
    assert names.count("small") >= 9


def test_what_was_learnt_without_a_list_keeps_its_meaning() -> None:
    """The first list of an arm is its reference; requests without a list cost what they usually do."""
    learner = ds.Adaptive().start(problem(budget=400.0), seed=0)
    for _ in range(60):
        decision = learner.ask()
        learner.tell(decision, 0.5, (0.1, 0.3)[decision.arm])
    before = learner.state.belief.mean[:, 1].copy()
    for _ in range(60):
        decision = learner.ask(costs=listed(0.1, 0.3))
        learner.tell(decision, 0.5, (0.1, 0.3)[decision.arm])
    np.testing.assert_allclose(learner.state.belief.mean[:, 1], before, rtol=0.1)
    np.testing.assert_allclose(terms_of(learner).prices.usual, 1.0)


@pytest.mark.parametrize("policy", [ds.Adaptive(), ds.ThompsonBwK(), ds.policies.NaiveUCB(scale=0.1)], ids=str)
def test_an_announced_change_counts_at_once(policy: ds.Policy) -> None:
    """The cheap arm becomes ten times as expensive: it is left at once, without paying for the news."""
    shares = []
    for announced in (True, False):
        learner, rng = policy.start(problem(1_000, 100.0), seed=0, safe=True), np.random.default_rng(0)
        chosen = 0
        for t in range(540):
            if t == 500 and announced:
                learner.announce("small", cost_factor=10.0)
            decision = learner.ask()
            chosen += t >= 500 and decision.name == "small"
            if not decision.skipped:
                cost = (0.08 * (10.0 if t >= 500 else 1.0), 0.2)[decision.arm]
                learner.tell(decision, float(rng.random() < (0.5, 0.55)[decision.arm]), cost)
        shares.append(chosen)
    assert shares[0] <= shares[1]
    assert shares[0] <= 6


def test_a_policy_without_factors_refuses_an_announcement() -> None:
    with pytest.raises(SettingError, match="DualDescent cannot use an announcement"):
        ds.policies.DualDescent().start(problem()).announce("small", 2.0)


def test_new_arms_and_seasons_keep_the_lists() -> None:
    learner = ds.Adaptive().start(problem(100), seed=0)
    learner.tell(learner.ask(costs=listed(0.1, 0.2)), 0.5, 0.1)
    learner.add_arm("medium")
    prices = {"usd": {"small": 0.1, "medium": 0.15, "large": 0.2}}
    learner.tell(learner.ask(costs=prices, open=["medium"]), 0.5, 0.15)
    learner.renew(budget=3.0)
    learner.tell(learner.ask(costs=prices, must=True), 0.5, 0.15)
    kept = terms_of(learner).prices
    assert (kept.reference == kept.common).all()  # a new arm has the reference of the others
    assert ds.Learner.from_bytes(learner.to_bytes()).state_hash() == learner.state_hash()
