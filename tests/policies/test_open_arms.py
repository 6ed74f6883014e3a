"""Which arms are open, and what they may cost: masks, caps, and what ``safe`` closes, for every policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import InfeasibleError, NamesError, OutOfRangeError, OverrunWarning, SettingError, ShapeError
from driftsack.lp.step import new_step_lp
from driftsack.numerics.simplex import column_changed, solve
from driftsack.policies.parts.open_arms import close_column
from tests.policies.test_policy_contract import LEARNERS, Recipe, built, started
from tests.support.constant_contexts import asked, with_features

PROBLEM = ds.Problem(horizon=400, arms=4, budget=[150.0, 160.0], cost_max=1.0)
NAMED = ds.Problem(
    horizon=200, arms=["small", "large"], budget={"usd": 5.0, "seconds": 90.0}, cost_max={"usd": 0.5, "seconds": 2.0}
)
POLICY = ds.NaiveUCB(scale=0.1)


def outcome(learner: ds.Learner, arm: int, rng: np.random.Generator) -> tuple[float, Any]:
    """The third arm is the best one."""
    reward = float(0.2 * rng.random() + (0.6 if arm == 2 else 0.2))
    return reward, 0.5 * rng.random(learner.problem.resources)


def play_with_masks(learner: ds.Learner, rounds: int = 300) -> np.ndarray[Any, Any]:
    """Play with random masks; return (rounds, 2): the probability and the number of choices outside the mask."""
    rng, astray = np.random.default_rng(4), []
    for _ in range(rounds):
        mask = rng.random(learner.problem.arms) < 0.5
        decision = asked(learner, open=mask)
        astray.append((decision.mix[~mask].sum(), not decision.skipped and not mask[decision.arm]))
        assert decision.mix.sum() <= 1.0 + 1e-9
        assert decision.skipped or decision.mix[decision.arm] > 0.0
        if not decision.skipped:
            learner.tell(decision, *outcome(learner, decision.arm, rng))
        if learner.done:
            break
    return np.array(astray)


@LEARNERS
def test_nothing_outside_the_mask_has_a_probability(recipe: Recipe) -> None:
    learner = started(recipe, PROBLEM, seed=3)
    astray = play_with_masks(learner)
    assert len(astray) > 50
    assert not astray.any()


@dataclass(frozen=True)
class Mixed(ds.policies.UniformRandom):
    """The planted fault: uniform over all arms, whichever are open."""

    def new_state(self, problem: ds.Problem) -> Any:
        from tests.support.mask_ignoring_policy import new_state

        return new_state(problem)


def test_a_policy_that_ignores_the_mask_is_found() -> None:
    """Closed arms are never pulled, but they have a probability, which importance weights would rely on."""
    astray = play_with_masks(Mixed().start(PROBLEM, seed=3))
    assert astray[:, 0].any()
    assert not astray[:, 1].any()


@LEARNERS
def test_the_open_arms_are_still_used(recipe: Recipe) -> None:
    """The trivial competitor skips every round. With one arm open, it is pulled unless the policy wants another."""
    learner, rng, pulls = started(recipe, PROBLEM, seed=3), np.random.default_rng(0), np.zeros(4)
    for t in range(120):
        decision = asked(learner, open=[t % 4])
        if not decision.skipped:
            pulls[decision.arm] += 1
            learner.tell(decision, *outcome(learner, decision.arm, rng))
    if recipe in (ds.policies.AlwaysArm, ds.policies.LagrangeBwK, ds.policies.DualDescent):
        assert pulls.sum() > 5
    else:
        assert pulls.sum() > 20
        assert (pulls > 0).sum() >= (1 if recipe.__name__ == "InTurn" else 3)


@pytest.mark.parametrize("policy", [ds.policies.LagrangeBwK(), ds.policies.DualDescent(), ds.policies.Exp3BwK()])
def test_importance_weights_stay_right(policy: ds.Policy) -> None:
    """The probability that is learnt from is the frequency of the arm under the mask, within 4 standard errors."""
    problem = ds.Problem(horizon=100, arms=3, budget=[90.0], cost_max=1.0)
    counts, expected, trials = np.zeros(3), np.zeros(3), 2_000
    for seed in range(trials):
        learner = policy.start(problem, seed=seed)
        first = learner.ask()
        if not first.skipped:
            learner.tell(first, 0.9, 0.1)
        decision = learner.ask(open=[0, 2])
        expected += decision.mix
        if not decision.skipped:
            counts[decision.arm] += 1
    error = np.sqrt(np.maximum(expected / trials * (1 - expected / trials), 1e-9) / trials)
    assert (np.abs(counts - expected) / trials <= 4 * error).all()
    assert counts[1] == 0
    assert (counts[[0, 2]] > 0.1 * trials).all()


def test_a_closed_column_is_one_that_is_not_there() -> None:
    """The LP with closed columns has the value, prices and mix of the LP without them."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        arms, rate = int(rng.integers(2, 7)), rng.random(2)
        rewards, costs = rng.normal(0.5, 0.5, arms), rng.normal(0.3, 0.5, (2, arms))
        closed = rng.random(arms) < 0.4
        lp = new_step_lp(arms, rate)
        lp.objective[:arms], lp.columns[:-1, :arms] = rewards, costs
        solve(lp)
        for arm in np.flatnonzero(closed):
            close_column(lp, int(arm))
            column_changed(lp, int(arm))
        solve(lp)
        assert not lp.solution[closed].any()
        if (~closed).any():
            best = ds.lp.step_lp(rewards[~closed], costs[:, ~closed], rate)
            assert lp.objective[:arms] @ lp.solution == pytest.approx(best.value, abs=1e-9)


def test_a_safe_learner_closes_the_arms_that_do_not_fit() -> None:
    """Where the large arm may cost more than is left, the small one is still used; a skip would be the easy way out."""
    most = {"usd": {"small": 0.1, "large": 3.0}}
    problem = ds.Problem(horizon=400, arms=["small", "large"], budget={"usd": 10.0}, cost_max=most)
    learner, pulls = ds.policies.UniformRandom().start(problem, seed=0, safe=True), {"small": 0, "large": 0}
    after = 0
    while not learner.done:
        closes, left = learner.remaining[0] < 3.0, learner.remaining[0]
        decision = learner.ask()
        if decision.skipped:
            assert left < 0.1
            continue
        pulls[str(decision.name)] += 1
        after += closes
        assert not (closes and decision.name == "large")
        assert decision.mix[1] == (0.0 if closes else 0.5)
        assert decision.reserved[0] == (0.1 if decision.name == "small" else 3.0)
        learner.tell(decision, 0.5, 0.1 if decision.name == "small" else 2.0)
    assert min(pulls.values()) > 0
    assert after >= 10
    assert 0.0 <= learner.remaining[0] < 0.1


def test_caps_are_what_is_reserved() -> None:
    learner = ds.Adaptive().start(NAMED, seed=0, safe=True)
    decision = learner.ask(open=["small"], caps={"usd": 0.05})
    assert decision.name == "small"
    assert decision.reserved.tolist() == learner.reserved.tolist() == [0.05, 2.0]
    plain = learner.ask()
    assert plain.reserved.tolist() == [0.5, 2.0]  # the caps were for one request
    by_arm = learner.ask(open=["large"], caps={"usd": {"small": 0.01, "large": 0.02}})
    assert by_arm.reserved.tolist() == [0.02, 2.0]
    assert learner.ask(caps=[9.0, 9.0]).reserved.tolist() == [0.5, 2.0]  # cost_max is the least upper bound
    restored = ds.Learner.from_bytes(learner.to_bytes())
    assert [own.reserved.tolist() for own in restored.pending] == [own.reserved.tolist() for own in learner.pending]


def test_caps_let_a_safe_learner_use_the_last_of_a_budget() -> None:
    problem = ds.Problem(horizon=100, arms=1, budget=[1.0], cost_max=[0.7])
    learner = ds.policies.AlwaysArm(0).start(problem, safe=True)
    learner.tell(learner.ask(), 1.0, 0.7)
    assert learner.ask().skipped
    learner.tell(learner.ask(caps=[0.25]), 1.0, 0.25)
    assert learner.ask(caps=[0.1]).skipped
    decision = learner.ask(caps=0.05)
    assert not decision.skipped
    assert learner.remaining[0] == learner.reserved[0] == 0.05


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"open": ["medium"]}, NamesError, "open must be one of"),
        ({"open": "small"}, SettingError, "open must be a list of arms or a mask"),
        ({"open": 1}, SettingError, r"got 1; pass \[1\]"),
        ({"open": [[0], [0, 1]]}, SettingError, r"list of arms such as \['small', 'large'\], or a mask of 2 arms"),
        ({"open": [["small"]]}, SettingError, "list of arms such as"),
        ({"open": {"small": True}}, SettingError, "list of arms such as"),
        ({"open": True}, ShapeError, "open must be a mask of 2 arms"),
        ({"open": {"medium"}}, NamesError, "open must be one of"),
        ({"open": [2]}, OutOfRangeError, "open must be at least 0 and at most 1, got 2"),
        ({"open": np.array([True])}, ShapeError, "open must be a mask of 2 arms"),
        ({"caps": {"euro": 1.0}}, NamesError, r"caps must be for some of the resources \['usd', 'seconds'\]"),
        ({"caps": {"usd": -0.1}}, OutOfRangeError, "caps must be 0 or more"),
        ({"caps": [1.0]}, ShapeError, "caps"),
    ],
)
def test_wrong_masks_and_caps_change_nothing(options: dict[str, Any], error: type[Exception], words: str) -> None:
    learner = POLICY.start(NAMED, seed=0, safe=True)
    learner.tell(learner.ask(), 0.5, [0.1, 0.1])
    before = learner.state_hash()
    for ask in (learner.ask, lambda **settings: learner.ask_many(3, **settings)):
        with pytest.raises(error, match=words):
            ask(**options)
    assert learner.state_hash() == before
    assert not learner.ask().skipped


def with_local(budget: float, most: float) -> ds.Problem:
    """A problem with an arm that costs nothing, or little."""
    maxima = {"usd": {"local": most, "large": 1.0}}
    return ds.Problem(horizon=40, arms=["local", "large"], budget={"usd": budget}, cost_max=maxima)


@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")  # of the large arm
@LEARNERS
def test_a_free_arm_is_used_where_no_other_can_be_paid(recipe: Recipe) -> None:
    """The budget covers neither the large arm nor the competitor of the free one.

    Three policies skip, by their algorithms, when a budget cannot pay for the most expensive arm.
    """
    stops = recipe in (ds.policies.DualDescent, ds.policies.BanditOverBandit, ds.policies.WindowPacing)
    for most in (0.0, 0.6):
        problem = with_local(0.5, most)
        policy = built(recipe, problem)
        learner, arms = policy.start(with_features(policy, problem), seed=0, safe=True), []
        for t in range(30):
            decision = asked(learner)
            arms.append(decision.arm)
            assert np.isfinite([*decision.mix, *decision.prices]).all()
            if not decision.skipped:
                learner.tell(decision, 0.5, 0.0)
            if t == 9:
                learner = ds.Learner.from_bytes(learner.to_bytes())
        assert set(arms) <= {ds.SKIP, 0}
        assert (0 in arms) == (most == 0.0 and not stops)


def test_a_free_arm_reserves_nothing_and_outlasts_the_budget() -> None:
    learner = ds.Adaptive().start(replace(with_local(3.0, 0.0), fallback=0), seed=0, safe=True)
    while not learner.done:
        decision = learner.ask()
        assert not decision.skipped
        learner.tell(decision, 0.5, float(decision.arm))
    assert learner.round == 40
    assert learner.remaining[0] >= 0.0
    with pytest.raises(InfeasibleError):  # one that may cost a little cannot answer every request
        ds.Adaptive().start(replace(with_local(3.0, 0.1), fallback=0), safe=True)
    always = ds.policies.UniformRandom().start(ds.Problem(9, ["large"], {"usd": 2.0}, cost_max={"usd": 1}), safe=True)
    assert always.add_arm("local", cost_max={"usd": 0}) == 1
    for _ in range(2):
        always.tell(always.ask(open=["large"]), 0.5, 1.0)
    decision = always.ask()
    assert (decision.name, decision.reserved.tolist()) == ("local", [0.0])
    with pytest.warns(OverrunWarning, match="cost more than was reserved for it"):
        always.tell(decision, 0.5, 0.25)  # it was not free after all


def test_a_set_of_arms_is_as_good_as_a_list() -> None:
    for arms in ({"large"}, frozenset({"large"}), {"large": 0.1}.keys(), {1}, ["large"]):
        assert POLICY.start(NAMED, seed=0).ask(open=arms).name == "large"


def test_no_open_arm_means_to_skip() -> None:
    for policy in (POLICY, ds.Adaptive(), ds.policies.Exp3BwK(), ds.policies.UniformRandom()):
        learner = policy.start(ds.Problem(horizon=20, arms=2, budget=[9.0], cost_max=1.0))
        for _ in range(3):
            decision = learner.ask(open=[])
            assert decision.skipped
            assert not decision.mix.any()
        assert not learner.ask().skipped
