"""The contract of every policy. Policies are discovered, so a new one is tested as soon as it is imported."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import SettingError
from driftsack.game import trial_loop
from driftsack.game.ledger import open_ledger
from driftsack.numerics.sampling import ROUNDING
from driftsack.policies import from_spec
from driftsack.policies.oracles import Oracle
from driftsack.policies.policy import recipes
from tests.support.constant_contexts import asked, with_contexts, with_features
from tests.support.forms import interpret
from tests.support.in_turn import InTurn
from tests.support.paths import ROOT
from tests.support.rounding_policy import Rounding

Recipe = type[ds.Policy]


def flat_forecast(problem: ds.Problem) -> ds.Instance:
    """A forecast that fits the problem: every mean is a third of its maximum."""
    rewards = np.full(problem.arms, problem.reward_max / 3)
    costs = np.tile(np.asarray(problem.cost_max)[:, None] / 3, (1, problem.arms))
    phase = np.zeros(problem.horizon, dtype=np.int32)
    return ds.Instance(problem, rewards[None], costs[None], phase)


# Settings of policies without defaults, by name; a function computes them from the problem.
NEEDED: dict[str, dict[str, Any]] = {
    "SlidingWindowUCB": {"windows": (30, 40)},
    "BanditOverBandit": {"block": 200},  # fixed, so that the memory does not grow with the horizon
    "PlanWithForecast": {"forecast": flat_forecast},
}


@dataclasses.dataclass(frozen=True)
class TwoSpeedThompson(ds.ThompsonBwK):
    """Thompson sampling with the budget rule that has a state of its own."""

    budget_rule: Literal["fixed", "remaining", "two-speed"] = "two-speed"


def found() -> list[Recipe]:
    """Every policy of the library, a second state of one of them, and the policy that CONTRIBUTING.md shows."""
    ours = [recipe for recipe in recipes() if recipe.__module__.startswith("driftsack.policies.")]
    names = {recipe.__name__ for recipe in ours}
    shown = [recipe for recipe in (InTurn,) if recipe.__name__ not in names]  # it may have been pasted into the library
    return [*shown, TwoSpeedThompson, *(recipe for recipe in ours if not inspect.isabstract(recipe))]


def built(recipe: Recipe, problem: ds.Problem, **settings: Any) -> ds.Policy:
    """The policy with its needed settings, and those of ``settings`` that it has."""
    needed = NEEDED.get(recipe.__name__, {})
    names = {setting.name for setting in dataclasses.fields(recipe)}
    chosen = {name: value(problem) if inspect.isfunction(value) else value for name, value in needed.items()}
    return recipe(**chosen | {name: value for name, value in settings.items() if name in names})


def started(recipe: Recipe, problem: ds.Problem, seed: int) -> ds.Learner:
    """A learner; for a policy that takes one resource only, on the problem's first one."""
    if recipe is ds.policies.Exp3BwK:
        problem = ds.Problem(problem.horizon, problem.arms, problem.budget[0], problem.reward_max, problem.cost_max[0])
    policy = built(recipe, problem)
    return policy.start(with_features(policy, problem), seed=seed)


def world_for(recipe: Recipe, world: ds.Instance) -> ds.Instance:
    """The world, or its first resource alone for a policy that takes one only."""
    if recipe is not ds.policies.Exp3BwK:
        return world
    problem = ds.Problem(world.horizon, world.arms, world.problem.budget[0])
    return ds.Instance(problem, world.rewards, world.costs[:, :1], world.phase, world.noise)


def test_the_search_finds_policies() -> None:
    assert {recipe.__name__ for recipe in found()} >= {"SlidingWindowUCB", "NaiveUCB", "DynamicOracle"}


ALL = pytest.mark.parametrize("recipe", found(), ids=lambda recipe: recipe.__name__)
LEARNERS = pytest.mark.parametrize(
    "recipe", [recipe for recipe in found() if not issubclass(recipe, Oracle)], ids=lambda recipe: recipe.__name__
)

HARD_PROBLEMS = [
    ds.Problem(horizon=50, arms=1, budget=[20.0]),  # one arm, one resource
    ds.Problem(horizon=1, arms=3, budget=[1.0, 1.0]),  # one round
    ds.Problem(horizon=50, arms=2, budget=[0.4]),  # a budget below one round's cost
    ds.Problem(horizon=50, arms=2, budget=[0.0]),  # no budget at all
    ds.Problem(horizon=50, arms=2, budget=[1e9, 5.0]),  # a budget that never binds
    ds.Problem(horizon=80, arms=7, budget=[30.0, 20.0, 40.0], reward_max=9.0, cost_max=[3.0, 0.5, 1.0]),
]


@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")  # a budget is below cost_max
@pytest.mark.parametrize("problem", HARD_PROBLEMS)
@LEARNERS
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_handles_hard_problems_with_valid_mixes(recipe: Recipe, problem: ds.Problem, value: float) -> None:
    """Rewards of 0 with costs of 1, rewards of 1 with costs of 0, and in between."""
    learner = started(recipe, problem, seed=0)
    problem = learner.problem
    rounds, spent = 0, np.zeros(problem.resources)
    while not learner.done:
        decision = asked(learner)
        rounds += 1
        assert decision.round == rounds
        assert decision.mix.shape == (problem.arms,)
        assert decision.prices.shape == (problem.resources,)
        assert_distribution(decision.mix)
        assert (decision.prices >= 0).all()
        assert decision.skipped or decision.mix[decision.arm] > 0
        if not decision.skipped:
            costs = (1 - value) * np.asarray(problem.cost_max)
            learner.tell(decision, value * problem.reward_max, costs)
            spent += costs
    broken = (spent > np.asarray(problem.budget) * (1 + 1e-9)).any()
    assert rounds == problem.horizon or broken, "it ended although rounds and budgets were left"
    np.testing.assert_allclose(learner.remaining, np.asarray(problem.budget) - spent, atol=1e-9)


def assert_distribution(mix: Any) -> None:
    """Probabilities in [0, 1] whose sum exceeds 1 by no more than rounding explains."""
    assert mix.min() >= 0
    assert mix.max() <= 1
    assert math.fsum(mix) <= 1 + ROUNDING


def play_on_two_resources(recipe: Recipe) -> tuple[Any, ...]:
    """The mixes of 400 rounds with two resources that both limit the plan, and random outcomes."""
    problem = ds.Problem(horizon=400, arms=3, budget=[60.0, 90.0])
    learner, rng = started(recipe, problem, seed=3), np.random.default_rng(0)
    means = np.array([[0.8, 0.9, 0.3], [0.5, 0.2, 0.6], [0.4, 0.1, 0.1]])
    mixes = []
    while not learner.done:
        decision = asked(learner)
        mixes.append(decision.mix)
        if not decision.skipped:
            reward, *costs = rng.random(3) < means[decision.arm]
            learner.tell(decision, float(reward), np.asarray(costs, dtype=float)[: learner.problem.resources])
    return tuple(mixes)


@LEARNERS
def test_mixes_are_distributions_on_two_resources(recipe: Recipe) -> None:
    for mix in play_on_two_resources(recipe):
        assert_distribution(mix)


def test_rounding_errors_of_a_policy_do_not_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault is in the policy: 1.0000000000000007, -1e-17, and a sum of 1.00000001."""
    interpret(monkeypatch)
    problem = ds.Problem(horizon=50, arms=2, budget=[50.0, 50.0])
    learner = Rounding().start(problem, seed=0)
    for t in range(20):
        decision = learner.ask()
        assert_distribution(decision.mix)
        assert t % 2 == 1 or decision.mix.tolist() == [1.0, 0.0]
        learner.tell(decision, 1.0, [0.5, 0.5])
    assert learner.state.rounds[0] == 0
    world = ds.Instance.stationary([0.5, 0.5], [[0.1, 0.1]] * 2, 40, [40.0, 40.0])
    log = ds.gather(world, Rounding(), seed=0)
    assert log.propensity is not None
    assert log.propensity.max() <= 1.0


@LEARNERS
def test_saved_midway_equals_never_saved(recipe: Recipe, tmp_path: Path) -> None:
    problem = ds.Problem(horizon=120, arms=3, budget=[50.0, 60.0])
    rng = np.random.default_rng(0)
    outcomes = rng.random((120, 3, 3)) * 0.6
    uninterrupted, saved = (started(recipe, problem, seed=5) for _ in range(2))
    for t in range(90):
        if t == 45:
            saved.save(tmp_path / "learner.npz")
            saved = ds.Learner.load(tmp_path / "learner.npz")
        one, two = asked(uninterrupted), asked(saved)
        assert (one.arm, one.mix.tolist()) == (two.arm, two.mix.tolist())
        for learner, decision in ((uninterrupted, one), (saved, two)):
            if not decision.skipped:
                reward, *costs = outcomes[t, decision.arm]
                learner.tell(decision, reward, costs[: learner.problem.resources])


@ALL
def test_is_a_value_and_survives_a_spec(recipe: Recipe) -> None:
    policy = built(recipe, HARD_PROBLEMS[-1])
    assert from_spec(json.loads(json.dumps(policy.to_spec()))) == policy
    assert len({policy, from_spec(policy.to_spec())}) == 1
    with pytest.raises(AttributeError):
        policy.anything = 1  # type: ignore[attr-defined]


@ALL
def test_deterministic_and_within_budget(recipe: Recipe) -> None:
    world = world_for(recipe, ds.instances.example_2(horizon=400))
    policy = built(recipe, world.problem)
    given = with_contexts(policy, world)
    one, two = (ds.simulate(given, policy, trials=4, seed=3, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.curve, two.curve)
    assert_within_budget(recipe)


def assert_within_budget(recipe: Recipe) -> None:
    """With deterministic outcomes the spending follows from the pulls alone, without the ledger."""
    costs = np.array([[0.5, 0.9, 0.3], [0.7, 0.2, 0.6]])
    world = world_for(recipe, ds.Instance.stationary([0.4, 0.9, 0.5], costs, 300, [70.0, 60.0], "deterministic"))
    policy = built(recipe, world.problem)
    run = ds.simulate(with_contexts(policy, world), policy, trials=4, seed=0)
    used = run.pulls @ costs[: world.resources].T
    assert (used <= np.asarray(world.problem.budget) * (1 + 1e-9)).all()
    np.testing.assert_allclose(run.spent, used, rtol=1e-12)


def test_a_ledger_that_overspends_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: budgets count double, so trials continue for too long."""

    def generous(problem: ds.Problem) -> Any:
        return open_ledger(dataclasses.replace(problem, budget=tuple(2 * amount for amount in problem.budget)))

    monkeypatch.setattr(sys.modules["driftsack.simulation.simulate"], "open_ledger", generous)
    with pytest.raises(AssertionError):
        assert_within_budget(ds.policies.UniformRandom)


@LEARNERS
def test_late_and_shuffled_feedback(recipe: Recipe) -> None:
    """With up to ten pending decisions, reported in any order or cancelled, mixes stay valid until the end."""
    learner, rng = started(recipe, HARD_PROBLEMS[-1], seed=1), np.random.default_rng(0)
    problem = learner.problem
    while not learner.done:
        decision = asked(learner)
        assert_distribution(decision.mix)
        pending = list(learner.pending)
        while pending and (rng.random() < 0.6 or len(pending) > 10):
            late = pending.pop(int(rng.integers(len(pending))))
            if rng.random() < 0.1:
                learner.cancel(late)
            else:
                learner.tell(late, problem.reward_max * rng.random(), 0.3 * np.asarray(problem.cost_max) * rng.random())
    assert learner.round > 20


def end_reward(recipe: Recipe, first: tuple[float, float], **settings: Any) -> float:
    """Reward per round in the last tenth, if the mean rewards of the arms are ``first`` and then (0, 0.5)."""
    horizon = 20_000
    costs = [[[0.1, 0.1]]] * 2
    lengths = [12_000, 8_000]
    world = ds.Instance.piecewise([first, (0.0, 0.5)], costs, lengths, float(horizon), noise="deterministic")
    policy = built(recipe, world.problem, **settings)
    curve = ds.simulate(with_contexts(policy, world), policy, trials=8, seed=0).curve.mean(axis=0)
    tenth = curve.size // 10
    return float((curve[-1] - curve[-1 - tenth]) / (horizon / 10))


FORGETTING: list[tuple[Recipe, dict[str, Any]]] = [
    (recipe, {}) for recipe in found() if not issubclass(recipe, Oracle)
] + [
    (ds.ThompsonBwK, {"windows": 500}),
    (ds.PlanWithForecast, {"windows": (500, 500)}),
    (ds.SpendingPlan, {"base": ds.policies.DiscountedUCB(scale=0.05)}),
]


@pytest.mark.parametrize(("recipe", "settings"), FORGETTING, ids=lambda value: getattr(value, "__name__", None))
def test_forgets_or_not_as_it_declares(recipe: Recipe, settings: dict[str, Any]) -> None:
    """Long after the best arm became bad, a policy that forgets earns as much as if it had always been bad."""
    chosen: dict[str, Any] = {"scale": 0.05, "clip": True} | settings
    policy = built(recipe, HARD_PROBLEMS[0], **chosen)
    if policy.forgets is None:
        one, two = (policy.start(HARD_PROBLEMS[0], seed=2) for _ in range(2))
        for t in range(15):
            decisions = one.ask(), two.ask()
            assert decisions[0].arm == decisions[1].arm
            one.tell(decisions[0], t % 2, [0.3])
            two.tell(decisions[1], 1.0, [0.9])
        return
    share = end_reward(recipe, (1.0, 0.5), **chosen) / end_reward(recipe, (0.0, 0.5), **chosen)
    message = f"forgets is {policy.forgets}, but after a change it earns {share:.0%} of what it would without a past"
    assert (share > 0.8) == policy.forgets, f"{message}; a policy that learns nothing has forgets None"


class WronglyDeclared(ds.NaiveUCB):
    """The planted fault: it never forgets but declares that it does."""

    @property
    def forgets(self) -> bool:
        return True


def test_a_false_declaration_is_detected() -> None:
    with pytest.raises(AssertionError):
        test_forgets_or_not_as_it_declares(WronglyDeclared, {})


@ALL
def test_memory_does_not_grow_with_the_horizon(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peak memory of a trial at T = 10^5 and 10^6, beyond the instance itself and what the policy was given.

    Without pauses, because Numba keeps up to 0.1 MB of arguments of the calls between them.
    """
    monkeypatch.setattr(trial_loop, "ROUNDS_AT_ONCE", 10_000_000)
    peaks = []
    for horizon in (100_000, 1_000_000):
        world = world_for(recipe, ds.instances.example_2(horizon=horizon))
        policy = built(recipe, world.problem)
        given = with_contexts(policy, world)
        ds.simulate(given, policy, trials=1, threads=1)
        tracemalloc.start()
        ds.simulate(given, policy, trials=1, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 10_000


FLOORED = ds.Problem(horizon=150, arms=["small", "large"], minimise="usd", floor=0.8)


@LEARNERS
def test_keeps_floors_or_refuses_them_by_name(recipe: Recipe) -> None:
    policy = built(recipe, FLOORED)
    if policy.keeps_floors:
        assert_keeps_floors(policy)
        return
    with pytest.raises(SettingError, match=f"{type(policy).__name__} maximises the reward and cannot keep the floor"):
        policy.start(with_features(policy, FLOORED))


def assert_keeps_floors(policy: ds.Policy) -> None:
    """Every request is answered, 60% of them by the dear arm: more of it would be a waste."""
    learner = policy.start(with_features(policy, FLOORED), seed=0)
    while not learner.done:
        decision = asked(learner)
        assert not decision.skipped
        learner.tell(decision, *((0.5, 0.1) if decision.arm == 0 else (1.0, 0.9)))
    assert learner.floors["reward"].reached == pytest.approx(0.8, abs=0.02)


@dataclasses.dataclass(frozen=True)
class IgnoresFloors(InTurn):
    """Pulls the arms in turn, whatever the floor."""

    @property
    def keeps_floors(self) -> bool:
        """True, which is false."""
        return True


def test_a_policy_that_ignores_the_floor_is_detected() -> None:
    with pytest.raises(AssertionError):
        assert_keeps_floors(IgnoresFloors())


def test_the_policy_in_contributing_is_the_one_that_is_tested() -> None:
    """The code in CONTRIBUTING.md is exactly ``tests/support/in_turn.py``."""
    assert (ROOT / "tests/support/in_turn.py").read_text() in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("recipe", [r for r in found() if not issubclass(r, (Oracle, ds.policies.AlwaysArm))])
def test_the_order_of_arms_does_not_matter(recipe: Recipe) -> None:
    """Mean rewards of 40 trials with the arms in reverse agree within 4.5 standard errors; a tie is no preference."""
    means = np.array([[0.9, 0.6, 0.3, 0.1]])
    costs = np.array([[[0.5, 0.5, 0.5, 0.5], [0.4, 0.4, 0.4, 0.4]]])
    earned = []
    for order in (slice(None), slice(None, None, -1)):
        world = world_for(recipe, ds.Instance.piecewise(means[:, order], costs[:, :, order], [600], [180.0, 200.0]))
        policy = built(recipe, world.problem)
        earned.append(ds.simulate(with_contexts(policy, world), policy, trials=40, seed=1).reward)
    error = math.hypot(*(rewards.std(ddof=1) / math.sqrt(len(rewards)) for rewards in earned))
    assert abs(earned[0].mean() - earned[1].mean()) <= 4.5 * error + 1e-9, [rewards.mean() for rewards in earned]
