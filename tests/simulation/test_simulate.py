"""The simulator: the paper's stop rule, hard budgets, reproducibility for any number of threads, plain policies."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

import driftsack as ds
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.core.instance import NOISES
from driftsack.core.seeding import trial_seeds
from driftsack.game.ledger import open_ledger
from driftsack.game.state_tree import programs
from driftsack.numerics.curves import curve_times
from tests.support import naive
from tests.support.in_turn import InTurn
from tests.support.invalid_arm_policy import Astray

POLICIES = [
    ds.SlidingWindowUCB(windows=(40, 60), scale=0.1),
    ds.NaiveUCB(scale=0.1),
    ds.SlidingWindowUCB(variation=(0.5, 1.0), budget_rule="remaining"),
    ds.SlidingWindowUCB(windows=(50, 50), scale=0.05, clip=True),
]
WORLDS = [
    ds.instances.example_1,
    ds.instances.example_2,
    partial(ds.instances.example_3, 0.4),
    partial(ds.instances.example_4, 5),
    ds.instances.nonbinding,
    ds.instances.motivating,
    partial(ds.instances.step_change, 200),
]


def same(one: ds.Run, two: ds.Run, trials: int) -> bool:
    names = ("reward", "stopping_time", "spent", "overshoot", "pulls", "curve", "lp_rescues")
    return all(np.array_equal(getattr(one, n)[:trials], getattr(two, n)[:trials]) for n in names)


def test_same_bits_for_any_threads_and_any_number_of_trials() -> None:
    world = ds.instances.example_2(horizon=600)
    for policy in POLICIES:
        runs = [
            ds.simulate(world, policy, trials=n, seed=4, threads=k) for n, k in ((6, 1), (6, 2), (12, 2), (6, None))
        ]
        assert all(same(runs[0], other, 6) for other in runs[1:])
    other_seed = ds.simulate(world, POLICIES[0], trials=6, seed=5)
    assert not same(ds.simulate(world, POLICIES[0], trials=6, seed=4), other_seed, 6)  # the planted fault


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("build", WORLDS)
@pytest.mark.parametrize("safe", [False, True])
def test_budgets_are_hard(noise: str, build: Any, safe: bool) -> None:
    """Spent before the stopping time never exceeds a budget; safe trials never overspend at all."""
    world = build(horizon=500, noise=noise)
    for policy in POLICIES:
        run = ds.simulate(world, policy, trials=8, seed=1, safe=safe)
        assert (run.spent <= np.asarray(world.problem.budget)).all()
        assert (run.overshoot >= 0).all()
        if safe:
            assert not run.overshoot.any()
            assert (run.stopping_time == 501).all()
        else:
            np.testing.assert_array_equal(run.overshoot.any(axis=1), run.stopping_time <= 500)


def test_a_loop_that_overspends_would_be_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a ledger that allows twice the budget. The excess is reported, not clipped."""
    module = sys.modules["driftsack.simulation.simulate"]

    def generous(problem: ds.Problem) -> Any:
        ledger = open_ledger(problem)
        return ledger._replace(budget=2 * ledger.budget, granted=2 * ledger.granted)

    monkeypatch.setattr(module, "open_ledger", generous)
    world = ds.instances.example_1(horizon=500)
    run = ds.simulate(world, ds.NaiveUCB(), trials=4)
    assert (run.spent > np.asarray(world.problem.budget)).all()


@dataclass(frozen=True)
class Script:
    """A policy in plain Python that plays a given list of arms."""

    arms: tuple[int, ...]

    def start(self, problem: ds.Problem, seed: SeedSequence) -> _ScriptLearner:
        assert isinstance(seed, SeedSequence)
        return _ScriptLearner(list(self.arms), problem)


class _ScriptLearner:
    def __init__(self, arms: list[int], problem: ds.Problem) -> None:
        self.arms, self.problem = arms, problem
        self.outcomes: list[tuple[int, float]] = []

    def ask(self) -> int:
        return self.arms.pop(0)

    def tell(self, decision: int, reward: float, costs: Any) -> None:
        assert np.shape(costs) == (self.problem.resources,)
        self.outcomes.append((decision, reward))


def test_stop_rule_equals_the_twin() -> None:
    """Random instances on a grid of quarters, where sums are exact."""
    rng = np.random.default_rng(0)
    stopped = 0
    for _ in range(100):
        horizon, arms, resources = 40, 3, 2
        rewards = rng.integers(0, 5, (horizon, arms)) / 4
        costs = rng.integers(0, 5, (horizon, resources, arms)) / 4
        played = rng.integers(-1, arms, horizon).tolist()
        budget = rng.integers(0, 60, resources) / 4
        world = ds.Instance.from_arrays(rewards, costs, budget, noise="deterministic")
        run = ds.simulate(world, Script(tuple(played)), trials=1)
        reward, tau, spent, pulls = naive.trial(rewards, costs, played, budget)
        assert run.reward[0] == reward
        assert run.stopping_time[0] == tau
        np.testing.assert_array_equal(run.spent[0], spent)
        np.testing.assert_array_equal(run.pulls[0], pulls)
        gains = [naive.trial(rewards, costs, played[:t], budget)[0] for t in range(1, horizon + 1)]
        np.testing.assert_array_equal(run.curve[0], gains)
        stopped += tau <= horizon
    assert 20 < stopped < 100


def test_reaching_a_budget_exactly_does_not_stop() -> None:
    world = ds.Instance.stationary([1.0], [[1.0]], horizon=5, budget=3.0, noise="deterministic")
    run = ds.simulate(world, Script((0, 0, 0, -1, 0)), trials=1)
    assert (run.reward[0], run.stopping_time[0], run.spent[0, 0], run.overshoot[0, 0]) == (3.0, 5, 3.0, 1.0)
    safe = ds.simulate(world, Script((0, 0, 0, -1, 0)), trials=1, safe=True)
    assert (safe.reward[0], safe.stopping_time[0], safe.spent[0, 0]) == (3.0, 6, 3.0)


def test_decimal_costs_use_up_a_budget_exactly() -> None:
    """Ten rounds of 0.1 fit into 1.0 and thirty into 3.0, despite rounding errors."""
    for budget, rounds in ((0.3, 3), (1.0, 10), (3.0, 30), (0.7, 7)):
        world = ds.Instance.stationary([1.0], [[0.1]], horizon=100, budget=budget, noise="deterministic")
        run = ds.simulate(world, Script((0,) * 100), trials=1)
        assert run.reward[0] == rounds
        assert run.stopping_time[0] == rounds + 1
        assert run.spent[0, 0] <= budget


@dataclass(frozen=True)
class InPython:
    """One of the library's policies, started by plain ``start``, so that ``simulate`` runs it round by round."""

    policy: ds.Policy

    def start(self, problem: ds.Problem, seed: SeedSequence) -> ds.Learner:
        return self.policy.start(problem, seed=seed)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("safe", [False, True])
def test_compiled_loop_equals_ask_and_tell(policy: ds.Policy, safe: bool) -> None:
    """Both ways use the same kernels and give the same results, also in natural units."""
    rng = np.random.default_rng(2)
    world = ds.Instance.piecewise(
        40 * rng.random((3, 4)),
        rng.random((3, 2, 4)) * [[0.5], [3.0]],
        [100, 80, 90],
        budget=[30.0, 150.0],
        noise="uniform",
        reward_max=40.0,
        cost_max=[0.5, 3.0],
    )
    fast = ds.simulate(world, policy, trials=3, seed=9, safe=safe)
    slow = ds.simulate(world, InPython(policy), trials=3, seed=9, safe=safe)
    np.testing.assert_array_equal(fast.pulls, slow.pulls)
    np.testing.assert_array_equal(fast.stopping_time, slow.stopping_time)
    np.testing.assert_allclose(fast.curve, slow.curve, rtol=1e-12)
    np.testing.assert_allclose(fast.spent, slow.spent, rtol=1e-12)


def test_a_policy_defined_outside_the_package_runs_compiled() -> None:
    """Its kernels are found in the file of its state and are not loaded from the package's cache."""
    world = ds.Instance.stationary([1.0, 0.5, 0.0], [[1.0, 1.0, 1.0]], horizon=30, budget=25.0, noise="deterministic")
    run = ds.simulate(world, InTurn(), trials=2)
    assert run.pulls.tolist() == [[9, 8, 8]] * 2
    assert run.reward.tolist() == [13.0, 13.0]
    learner = InTurn().start(world.problem)
    assert [learner.ask().arm for _ in range(4)] == [0, 1, 2, 0]


def test_ask_of_a_plain_policy_is_checked() -> None:
    world = ds.instances.example_1(horizon=10)
    for wrong in (2, -2, 0.5, None, True):
        with pytest.raises(OutOfRangeError, match=r"ask must return an arm in \[0, 1\].*in round 1 it returned"):
            ds.simulate(world, Script((wrong,) * 10), trials=1)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="must be a driftsack policy or have a start method"):
        ds.simulate(world, "UCB", trials=1)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"did you mean NaiveUCB\(\)\?"):
        ds.simulate(world, ds.NaiveUCB, trials=1)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="instance must be a driftsack Instance"):
        ds.simulate(world.problem, ds.NaiveUCB())  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="safe must be True or False, got 1"):
        ds.simulate(world, ds.NaiveUCB(), safe=1)  # type: ignore[arg-type]


def test_an_arm_that_does_not_exist_is_refused() -> None:
    """A compiled policy that chooses arm 2 of 2 must not index beyond the arrays."""
    world = ds.instances.example_1(horizon=10)
    with pytest.raises(OutOfRangeError, match=r"choose of Astray.* must return an arm in \[0, 1\].*in round 1 "):
        ds.simulate(world, Astray(), trials=1)
    with pytest.raises(OutOfRangeError, match=r"choose of Astray.* it returned 2"):
        Astray().start(world.problem).ask()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"trials": 0}, OutOfRangeError, "trials must be at least 1"),
        ({"seed": -1}, OutOfRangeError, "seed must be at least 0"),
        ({"threads": 0}, OutOfRangeError, "threads must be at least 1"),
        ({"trials": 1.5}, SettingError, "trials must be an integer"),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.simulate(ds.instances.example_1(horizon=10), ds.NaiveUCB(), **options)


@pytest.mark.parametrize(
    "policy",
    [ds.SlidingWindowUCB(windows=(20, 30), scale=0.1), ds.ThompsonBwK(budget_rule="two-speed")],
    ids=["step LP", "two-speed LP"],
)
def test_uncertified_programs_fall_back_to_highs_and_are_counted(
    policy: ds.Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a planted failure in every program, the run continues with HiGHS and reports it."""
    world = ds.instances.example_2(horizon=60)
    original = type(policy).new_state

    def failing(self: ds.Policy, problem: ds.Problem) -> Any:
        state = original(self, problem)
        for program in programs(state):
            program.columns[:, program.solution.size :] = np.nan  # every basis holds a slack: none can be certified
        return state

    right = ds.simulate(world, policy, trials=2, seed=0)
    assert not right.lp_rescues.any()
    monkeypatch.setattr(type(policy), "new_state", failing)
    with pytest.warns(RuntimeWarning, match="could not be certified and were solved by HiGHS"):
        rescued = ds.simulate(world, policy, trials=2, seed=0)
    assert (rescued.lp_rescues >= np.minimum(rescued.stopping_time, 60)).all()
    assert rescued.summary()["lp_rescues"] == rescued.lp_rescues.sum()
    assert abs(rescued.reward.mean() - right.reward.mean()) < 10


def test_summary_regret_and_text_of_a_run() -> None:
    world = ds.instances.example_1(horizon=2_000)
    seen: list[int] = []
    run = ds.simulate(world, ds.NaiveUCB(), trials=5, seed=0, progress=seen.append)
    assert seen == [1, 2, 3, 4, 5]
    assert run.trials == 5
    np.testing.assert_array_equal(run.regret(np.float64(1000.0)), 1000.0 - run.reward)
    np.testing.assert_array_equal(run.regret(ds.benchmarks.lp_static(world)), 2000 / 3 - run.reward)
    np.testing.assert_array_equal(run.curve[:, -1], run.reward)
    assert (np.diff(run.curve, axis=1) >= 0).all()
    assert run.times.size == 512
    assert run.summary()["reward_se"] == pytest.approx(run.reward.std(ddof=1) / np.sqrt(5))
    assert "5 trials of 2,000 rounds" in str(run)
    assert ds.simulate(world, ds.NaiveUCB(), trials=1).summary()["reward_se"] == 0.0


@pytest.mark.parametrize("horizon", [1, 2, 511, 512, 513, 1000, 12_345])
def test_curve_times(horizon: int) -> None:
    times = curve_times(horizon)
    assert times.size == min(horizon, 512)
    assert times[-1] == horizon
    assert times[0] >= 1
    assert (np.diff(times) >= 1).all()


def test_a_block_of_trials_is_that_block_of_the_whole() -> None:
    """Simulating in blocks gives the same results as one call; a block with another first trial would not."""
    world, policy = ds.instances.example_2(horizon=300), ds.NaiveUCB(scale=0.1)
    whole = ds.simulate(world, policy, trials=6, seed=3)
    block = ds.simulate(world, policy, trials=range(2, 6), seed=3)
    for name in ("reward", "stopping_time", "spent", "overshoot", "pulls", "curve"):
        np.testing.assert_array_equal(getattr(whole, name)[2:], getattr(block, name))
    assert (whole.curve[:4] != block.curve).any()
    with pytest.raises(OutOfRangeError, match="the first trial must be at least 0, got -1"):
        ds.simulate(world, policy, trials=range(-1, 0))
    with pytest.raises(OutOfRangeError, match="the number of trials must be at least 1"):
        ds.simulate(world, policy, trials=range(0))


def test_pulls_of_the_first_half_are_those_of_ask_and_tell() -> None:
    """Counted by ask and tell with the same seeds; the pulls of the complete run differ."""
    world, policy = ds.instances.example_1(horizon=300, noise="deterministic"), ds.NaiveUCB(scale=0.3)
    run = ds.simulate(world, policy, trials=3, seed=5)
    for trial in range(3):
        learner, pulls = policy.start(world.problem, seed=trial_seeds(5, trial)[1]), np.zeros(2, dtype=np.int64)
        for t in range(150):
            decision = learner.ask()
            if not decision.skipped:
                pulls[decision.arm] += 1
                row = world.phase[t]
                learner.tell(decision, world.rewards[row, decision.arm], world.costs[row, :, decision.arm])
        assert run.pulls_first_half[trial].tolist() == pulls.tolist()
    assert (run.pulls_first_half < run.pulls).any()


def test_a_kernel_with_the_wrong_parameters_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that was written for an earlier protocol."""

    def old_learn(state: Any, t: int, arm: int, chance: float, reward: float, costs: Any) -> None:
        """The parameters of an earlier release."""

    monkeypatch.setattr(sys.modules[InTurn.__module__], "learn", old_learn)
    with pytest.raises(
        SettingError, match=r"learn of tests.support.in_turn must take \(state, outcome\), got \(state, t, arm"
    ):
        InTurn().start(ds.Problem(horizon=9, arms=2, budget=[3.0]))
