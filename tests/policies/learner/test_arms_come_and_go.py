"""Arms that are added, retired and reopened: what was learnt is kept, and old decisions can still be told."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import NamesError, SettingError
from driftsack.game.state_growth import grow
from tests.policies.test_policy_contract import LEARNERS, Recipe, built
from tests.support.constant_contexts import asked, with_features

ROUNDS = 240


def problem_of(recipe: Recipe, arms: int, **settings: Any) -> ds.Problem:
    """A problem with named arms; one resource for the policy that takes one only."""
    budget = {"usd": 90.0} if recipe is ds.policies.Exp3BwK else {"usd": 90.0, "seconds": 100.0}
    names = ["small", "medium", "large", "xl"][:arms]
    return ds.Problem(horizon=ROUNDS, arms=names, budget=budget, cost_max=1.0, **settings)


def outcome(learner: ds.Learner, t: int, arm: int) -> tuple[float, list[float]]:
    """An outcome that depends on the round and the arm only; the added arm is the best."""
    rng = np.random.default_rng([t, arm])
    reward = float((0.9 if arm == 3 else 0.5) * rng.random())
    return reward, (0.6 * rng.random(learner.problem.resources)).tolist()


def play(learner: ds.Learner, rounds: int) -> list[Any]:
    """Play on with feedback that is a few rounds late; return every decision."""
    made: list[Any] = []
    for _ in range(rounds):
        decision = asked(learner)
        made.append((decision.arm, decision.mix[:3].tolist(), decision.mix[3:].sum(), decision.prices.tolist()))
        for late in learner.pending[:-3]:
            learner.tell(late, *outcome(learner, late.round, late.arm))
    return made


@LEARNERS
def test_an_added_arm_is_one_that_was_closed_from_the_start(recipe: Recipe) -> None:
    """Bit for bit, if there is room for the arm; with decisions of before told after, and through a file."""
    if recipe is ds.PlanWithForecast:
        with pytest.raises(SettingError, match="the forecast must have the problem's 240 rounds, 4 arms"):
            built(recipe, problem_of(recipe, 3)).start(problem_of(recipe, 3, slots=4))
        return
    policy = built(recipe, problem_of(recipe, 4))
    later = policy.start(with_features(policy, problem_of(recipe, 3, slots=4)), seed=5)
    twin = policy.start(with_features(policy, problem_of(recipe, 4)), seed=5)
    twin.retire_arm("xl")
    assert play(later, 100) == play(twin, 100)
    later.add_arm("xl")
    twin.reopen_arm("xl")
    later = ds.Learner.from_bytes(later.to_bytes())
    assert later.problem.arm_names == twin.problem.arm_names
    decisions = play(later, 60)
    assert decisions == play(twin, 60)
    for learner in (later, twin):
        learner.retire_arm("small")
    retired = play(later, 40)
    assert retired == play(twin, 40)
    assert all(arm != 0 and mix[0] == 0.0 for arm, mix, *_ in retired)
    if recipe.__name__ not in ("AlwaysArm", "InTurn"):
        assert any(added > 0.0 for _, _, added, _ in decisions), "the added arm is never used"


@LEARNERS
def test_a_state_grows_if_there_is_no_room(recipe: Recipe) -> None:
    """The learner goes on with what it knows: estimates of the old arms are those of before."""
    policy = built(recipe, problem_of(recipe, 3))
    learner = policy.start(with_features(policy, problem_of(recipe, 3)), seed=5)
    play(learner, 100)
    known = learned(learner)
    if recipe is ds.PlanWithForecast:
        with pytest.raises(SettingError, match="the forecast must have the problem's 240 rounds, 4 arms"):
            learner.add_arm("xl")
        assert learner.open_arms == ("small", "medium", "large")
        return
    assert learner.add_arm("xl", cost_max=0.9 if recipe is ds.policies.Exp3BwK else None) == 3
    assert learner.open_arms == ("small", "medium", "large", "xl")
    for name, value in learned(learner).items():
        np.testing.assert_allclose(value, known[name], rtol=1e-12, err_msg=name)
    before = learner.pending
    decisions = play(learner, 80)
    assert before[0] not in learner.pending
    restored = ds.Learner.from_bytes(learner.to_bytes())
    assert play(restored, 10) == play(learner, 10)
    if recipe.__name__ not in ("AlwaysArm", "InTurn", "BanditOverBandit"):  # the last explores little in short blocks
        assert any(added > 0.0 for _, _, added, _ in decisions), "the added arm is never used"


def learned(learner: ds.Learner) -> dict[str, Any]:
    """What a policy knows about each arm, for those that keep it in arrays with one row per arm."""
    state, found = learner.state, {}
    for path in (
        "belief.mean",
        "means.pulls",
        "means.sums",
        "mean",
        "pulls",
        "rewards.pulls",
        "posterior.outcomes.pulls",
    ):
        part: Any = state
        for name in path.split("."):
            part = getattr(part, name, None)
        if isinstance(part, np.ndarray):
            found[path] = part.reshape(len(part), -1).tolist()[:3]
    return found


def test_the_flagship_finds_a_better_arm_that_is_added() -> None:
    """As a model that is added in the second week; the competitor that never looks at it earns less."""
    rewards, pulls = {}, 0
    for added in (True, False):
        problem = ds.Problem(horizon=2_000, arms=["small", "large"], budget={"usd": 400.0}, cost_max={"usd": 1.0})
        learner, rng, total = ds.Adaptive().start(problem, seed=1), np.random.default_rng(2), 0.0
        for t in range(2_000):
            if t == 700 and added:
                learner.add_arm("new")
            decision = learner.ask()
            if decision.skipped:
                continue
            mean = {"small": 0.3, "large": 0.5, "new": 0.9}[str(decision.name)]
            reward = float(rng.random() < mean)
            total += reward
            pulls += decision.name == "new"
            learner.tell(decision, reward, 0.4 * rng.random())
        rewards[added] = total
    assert pulls > 800
    assert rewards[True] > 1.3 * rewards[False]


def test_a_window_of_another_length_keeps_its_rounds() -> None:
    """The paper's windows depend on the number of arms: outcomes that are still in the longer window stay there."""
    policy = ds.SlidingWindowUCB(variation=(3.0, 3.0), scale=0.1)
    old_problem = problem_of(ds.SlidingWindowUCB, 3)
    learner = policy.start(old_problem, seed=0)
    play(learner, 150)
    before = learner.state.means
    learner.add_arm("xl")
    after = learner.state.means
    for window, earlier in ((after.rewards, before.rewards), (after.costs, before.costs)):
        assert window.length[0] != earlier.length[0]
        assert window.pulls[:3].tolist() == earlier.pulls.tolist()
        np.testing.assert_allclose(window.sums[:3] / window.grid[0], earlier.sums / earlier.grid[0], atol=1e-9)
    play(learner, 60)
    ds.Learner.from_bytes(learner.to_bytes())  # the sums are checked against the ring


def test_a_growth_that_forgets_is_noticed() -> None:
    """The planted fault: a state that starts again instead of growing."""
    problem, larger = problem_of(ds.NaiveUCB, 3), problem_of(ds.NaiveUCB, 4)
    learner = ds.NaiveUCB(scale=0.1).start(problem, seed=5)
    play(learner, 100)
    forgotten, grown = learner.policy.new_state(larger), learner.policy.new_state(larger)
    grow(grown, learner.state)
    assert grown.means.rewards.pulls[:3].tolist() == learner.state.means.rewards.pulls.tolist()
    assert forgotten.means.rewards.pulls[:3].tolist() != learner.state.means.rewards.pulls.tolist()


def test_misuses_change_nothing() -> None:
    problem = problem_of(ds.NaiveUCB, 3)
    learner = ds.NaiveUCB(scale=0.1).start(problem, seed=5)
    play(learner, 20)
    before = learner.state_hash()
    misuses: list[tuple[Any, type[Exception], str]] = [
        (lambda: learner.add_arm("small"), NamesError, "the name of a new arm must differ"),
        (lambda: learner.add_arm("xl", cost_max=[2.0, 1.0]), SettingError, "start it with a larger cost_max"),
        (lambda: learner.add_arm("xl", cost_max={"euro": 1.0}), NamesError, "cost_max"),
        (lambda: learner.retire_arm("xl"), NamesError, "arm must be one of"),
    ]
    for misuse, error, words in misuses:
        with pytest.raises(error, match=words):
            misuse()
        assert learner.state_hash() == before
    serving = ds.NaiveUCB().start(dataclasses.replace(problem, fallback=0))
    with pytest.raises(SettingError, match="'small' is the fallback, which answers every request"):
        serving.retire_arm("small")


def test_an_arm_may_cost_more_than_the_others_if_the_policy_needs_no_maxima() -> None:
    learner = ds.Adaptive().start(problem_of(ds.Adaptive, 3), seed=5, safe=True)
    play(learner, 30)
    learner.add_arm("xl", cost_max={"usd": 7.0, "seconds": 0.9})
    while True:
        decision = learner.ask(open=["xl"])
        if not decision.skipped:
            break
    assert decision.reserved.tolist() == [7.0, 0.9]
    learner.tell(decision, 0.5, {"usd": 6.0, "seconds": 0.1})
    assert learner.overruns.decisions == 0
    restored = ds.Learner.from_bytes(learner.to_bytes())
    assert restored.state_hash() == learner.state_hash()
    assert play(restored, 20) == play(learner, 20)
