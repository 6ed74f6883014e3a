"""Late outcomes and loose maxima in ``simulate``, against a live learner that is told late, bit for bit."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.world import draw_outcome, world_of
from driftsack.simulation import Feedback
from tests.simulation.test_simulate import InPython, Script, same

POLICIES = [ds.NaiveUCB(scale=0.1), ds.Adaptive()]


def small_world() -> ds.Instance:
    rng = np.random.default_rng(2)
    return ds.Instance.piecewise(rng.random((3, 4)), rng.random((3, 2, 4)), [100, 80, 90], budget=[40.0, 50.0])


def live(policy: ds.Policy, world: ds.Instance, delay: int, loose: float, safe: bool) -> tuple[float, list[int], bool]:
    """The twin: reward, arms and whether a budget was exceeded, with a learner that is told ``delay`` rounds late."""
    problem = ds.Problem(world.horizon, world.arms, world.problem.budget, reward_max=loose, cost_max=loose)
    nature, own = trial_seeds(9, 0)
    learner, rng, means = policy.start(problem, seed=own, safe=safe), generator(nature), world_of(world)
    pending, arms, reward = deque[tuple[ds.Decision, float, np.ndarray]](), list[int](), 0.0
    left, costs = np.array(problem.budget), np.zeros(world.resources)
    for t in range(world.horizon):
        decision = learner.ask()
        if decision.arm != ds.SKIP:
            gain = draw_outcome(means, t, decision.arm, costs, rng)
            if (costs > left).any():
                return reward, arms, True
            left -= costs
            reward += gain
            pending.append((decision, gain, costs.copy()))
        arms.append(decision.arm)
        while pending and pending[0][0].round <= t + 1 - delay:
            learner.tell(*pending.popleft())
    return reward, arms, False


@pytest.mark.parametrize("policy", POLICIES, ids=["NaiveUCB", "Adaptive"])
@pytest.mark.parametrize(("delay", "loose"), [(0, 10.0), (1, 1.0), (30, 10.0), (10**6, 1.0)])
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")
def test_a_delayed_trial_equals_a_learner_that_is_told_late(
    policy: ds.Policy, delay: int, loose: float, safe: bool
) -> None:
    world = small_world()
    run = ds.simulate(world, policy, trials=1, seed=9, feedback=Feedback(delay, loose), safe=safe)
    reward, arms, exceeded = live(policy, world, delay, loose, safe)
    assert run.reward[0] == reward
    assert run.pulls[0].tolist() == [arms.count(arm) for arm in range(world.arms)]
    assert (run.stopping_time[0] <= world.horizon) == exceeded
    assert not (safe and exceeded)
    if not safe:
        plain = ds.simulate(world, InPython(policy), trials=1, seed=9, feedback=Feedback(delay, loose))
        assert same(run, plain, 1)


def test_the_round_of_arrival_matters() -> None:
    """The planted fault is an outcome that is one round early; being told on time or never gives other results too."""
    world, policy = small_world(), ds.NaiveUCB(scale=0.1)
    runs = [
        ds.simulate(world, policy, trials=4, seed=9, feedback=Feedback(delay=delay)) for delay in (30, 29, 0, 10**6)
    ]
    assert not any(same(runs[0], other, 4) for other in runs[1:])
    assert runs[2].reward.mean() > runs[0].reward.mean() > runs[3].reward.mean()  # which cannot learn at all


def test_outcomes_arrive_in_the_round_that_is_said() -> None:
    """A script notes how many outcomes it has been told before each decision."""
    told: list[int] = []

    class Noting(Script):
        def start(self, problem: ds.Problem, seed: np.random.SeedSequence) -> object:  # type: ignore[override]
            learner = super().start(problem, seed)
            ask = learner.ask

            def noting() -> int:
                told.append(len(learner.outcomes))
                return ask()

            learner.ask = noting  # type: ignore[method-assign]
            return learner

    world = ds.Instance.stationary([0.5], [[0.1]], horizon=8, budget=8.0, noise="deterministic")
    ds.simulate(world, Noting((0, -1, 0, 0, 0, 0, 0, 0)), trials=1, feedback=Feedback(delay=3))
    assert told == [0, 0, 0, 0, 1, 1, 2, 3]


def test_loose_maxima_change_what_is_told_and_not_the_outcomes() -> None:
    """``Adaptive`` does not read the maxima, printed radii do; arms that are given in advance earn the same."""
    world = ds.instances.piecewise_random(horizon=1_000, noise="lognormal", cost_range=(0.01, 0.1), rate=0.03, seed=3)
    for policy, equal in ((ds.Adaptive(), True), (ds.NaiveUCB(scale=0.1), False), (ds.policies.DynamicOracle(), True)):
        tight, loose = (
            ds.simulate(world, policy, trials=3, seed=1, feedback=Feedback(loose=factor)) for factor in (1.0, 64.0)
        )
        assert same(tight, loose, 3) == equal
    script = Script((0,) * 1_000)
    assert same(
        ds.simulate(world, script, trials=1), ds.simulate(world, script, trials=1, feedback=Feedback(loose=64.0)), 1
    )


def test_bad_conditions_are_refused() -> None:
    world = small_world()
    with pytest.raises(OutOfRangeError, match="delay must be at least 0, got -1"):
        ds.simulate(world, POLICIES[0], feedback=Feedback(delay=-1))
    with pytest.raises(OutOfRangeError, match=r"loose must be at least 1, got 0\.5; maxima that are smaller"):
        ds.simulate(world, POLICIES[0], feedback=Feedback(loose=0.5))
    with pytest.raises(SettingError, match="safe with delay or loose needs a policy of the library"):
        ds.simulate(world, Script((0,) * 270), feedback=Feedback(delay=5), safe=True)
