"""``benchmarks.present``: a slow twin with SciPy, closed forms, its bound, and edge cases."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy.optimize import linprog

import driftsack as ds
from driftsack import benchmarks
from driftsack.benchmarks.present import Course
from driftsack.core.arrays import Floats, Phase
from driftsack.core.errors import SettingError
from driftsack.numerics.simplex import Simplex
from tests.support.two_speed_twin import SlowTwoSpeed

present_file = importlib.import_module("driftsack.benchmarks.present")  # the package has a function of the same name


def drifting_world(seed: int, rounds: int = 150, arms: int = 3, resources: int = 2, scale: float = 1.0) -> ds.Instance:
    """Means that wander from phase to phase, in units of ``scale``; both budgets bind at times."""
    rng = np.random.default_rng(seed)
    phases = rounds // 10
    rewards, costs = rng.random((phases, arms)), rng.uniform(0.1, 1.0, (phases, resources, arms))
    return ds.Instance.piecewise(
        scale * rewards,
        3.0 * scale * costs,
        [10] * phases,
        budget=3.0 * scale * 0.3 * rounds,
        reward_max=scale,
        cost_max=3.0 * scale,
    )


def maximise(objective: Floats, rows: Floats, limits: Floats) -> tuple[Floats, Floats]:
    """An optimal x >= 0 with rows @ x <= limits, and the prices of the rows, by SciPy."""
    found = linprog(-objective, A_ub=rows, b_ub=limits, method="highs")
    assert found.status == 0
    return found.x, -found.ineqlin.marginals


def slow_even(world: ds.Instance, rate_of_round_one: bool = False) -> float:
    """The twin of the even pace: a step LP in each round at what is left per round left."""
    left, total = np.array(world.problem.budget), 0.0
    for t, k in enumerate(world.phase):
        rate = (
            np.array(world.problem.rate) * world.problem.cost_max if rate_of_round_one else left / (world.horizon - t)
        )
        mix, _ = maximise(world.rewards[k], np.vstack([world.costs[k], np.ones(world.arms)]), np.append(rate, 1.0))
        total += float(world.rewards[k] @ mix)
        left = left - world.costs[k] @ mix
    return total


def slow_two_speed(world: ds.Instance, largest_step: float = 0.4) -> float:
    """The twin of two speeds: the LP of the slow pacer in each round, in units of the budget rate."""
    rate = np.asarray(world.problem.rate)
    pacer = SlowTwoSpeed(world.horizon, world.resources, largest_step)
    left, total, seen = np.full(world.resources, float(world.horizon)), 0.0, 0.0
    largest = np.concatenate([[1.0], 1.0 / rate])
    for t, k in enumerate(world.phase):
        means = np.column_stack([world.unit_rewards[k], (world.unit_costs[k] / rate[:, None]).T])
        pace, seen = left / (world.horizon - t), seen + means[:, 0].mean()
        pacer.follow(means, pace, seen / (t + 1))
        objective, rows, limits = pacer.program(means, pace, largest)
        if t == world.horizon - 1:
            limits[world.resources + 1 :] = 0.0
        found, duals = maximise(objective, rows, limits)
        if pacer.even:
            pacer.average(duals[: world.resources] / largest[1:])
        mix = found[: world.arms]
        total += float(means[:, 0] @ mix)
        left = left - mix @ means[:, 1:]
    return total * world.problem.reward_max


@pytest.mark.parametrize("seed", range(4))
def test_both_values_equal_the_twin(seed: int) -> None:
    world = drifting_world(seed)
    found = benchmarks.present(world)
    assert found.even == found.value == pytest.approx(slow_even(world), rel=1e-8)
    assert found.two_speed == pytest.approx(slow_two_speed(world), rel=1e-8)


def test_the_twin_detects_planted_faults() -> None:
    """A rate that is not corrected for past spending, and a price that moves less, give other values."""
    world = drifting_world(0)
    found = benchmarks.present(world)
    assert abs(found.even - slow_even(world, rate_of_round_one=True)) > 1e-4 * found.even
    assert abs(found.two_speed - slow_two_speed(world, largest_step=0.2)) > 1e-4 * found.two_speed


def test_a_single_row_needs_no_foresight() -> None:
    """Without drift, the even pace is optimal; two speeds, whose long-run price is approximate, lose a few per cent."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        world = ds.Instance.stationary(rng.random(3), rng.random((2, 3)), horizon=2_000, budget=500)
        best, found = benchmarks.lp_dynamic(world).value, benchmarks.present(world)
        assert found.even == pytest.approx(best, rel=1e-9)
        assert 0.95 * best < found.two_speed < best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_no_value_exceeds_lp_dynamic(seed: int) -> None:
    """Both are rewards of feasible plans, with one round or many, and with tight budgets, loose ones or none."""
    rng = np.random.default_rng(seed)
    arms, resources, phases = rng.integers(1, 5), rng.integers(1, 4), rng.integers(1, 9)
    lengths = rng.integers(1, 60, phases).tolist()
    budget = rng.choice([0.0, 0.05, 0.3, 2.0], resources) * sum(lengths)
    costs = rng.random((phases, resources, arms)) * rng.integers(0, 2, (phases, resources, arms))
    world = ds.Instance.piecewise(rng.random((phases, arms)), costs, lengths, budget)
    best, found = benchmarks.lp_dynamic(world).value, benchmarks.present(world)
    assert max(found.even, found.two_speed) <= best * (1 + 1e-9) + 1e-9
    assert min(found.even, found.two_speed) >= 0.0


def test_the_spending_stays_within_the_budgets() -> None:
    """Also with two speeds, which may spend twice the pace, but not in the last round."""
    world = drifting_world(1)
    for speed in (present_file.EVEN, present_file.TWO):
        course = present_file.new_course(
            ds.Problem(horizon=world.horizon, arms=world.arms, budget=world.problem.unit_budget), speed
        )
        present_file.run_rounds(course, world.unit_rewards, world.unit_costs, world.phase, 0, False)
        assert (course.ledger.spent <= course.ledger.budget * (1 + 1e-12)).all()
        assert (course.ledger.spent > 0.9 * course.ledger.budget).any()


def test_units_do_not_matter() -> None:
    plain, scaled = (benchmarks.present(drifting_world(2, scale=scale)) for scale in (1.0, 250.0))
    assert scaled.even == pytest.approx(250.0 * plain.even, rel=1e-10)
    assert scaled.two_speed == pytest.approx(250.0 * plain.two_speed, rel=1e-8)


def test_it_earns_more_than_uniform_choice_and_two_speeds_use_good_times() -> None:
    """Where rich and poor times alternate, two speeds earn more than the even pace, which beats a uniform mix."""
    lengths = [100] * 40
    rewards = np.array([[0.9, 0.6], [0.2, 0.1]] * 20)
    world = ds.Instance.piecewise(rewards, np.full((40, 1, 2), [[0.8, 0.4]]), lengths, budget=1_000)
    best, found = benchmarks.lp_dynamic(world).value, benchmarks.present(world)
    uniform = 0.25 / 0.6 * float(rewards.mean(axis=1) @ lengths)  # half of each arm, until the budget is spent evenly
    assert uniform < found.even < 0.9 * best
    assert 1.1 * found.even < found.two_speed <= best


def test_resources_without_budget_close_the_arms_that_use_them() -> None:
    world = ds.Instance.stationary([1.0, 0.5], [[0.5, 0.0], [0.2, 0.4]], horizon=100, budget=[0.0, 20.0])
    assert benchmarks.present(world).even == pytest.approx(25.0)
    closed = ds.Instance.stationary([1.0], [[0.5]], horizon=10, budget=0.0)
    assert benchmarks.present(closed).even == benchmarks.present(closed).two_speed == 0.0


def test_contexts_are_refused() -> None:
    world = ds.ContextualInstance.by_table(np.eye(2), np.eye(2), [[[0.5, 0.5]]] * 2, budget=25, horizon=100)
    with pytest.raises(SettingError, match=r"present is for instances without contexts"):
        benchmarks.present(world)  # type: ignore[arg-type]


def test_an_interrupted_course_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that returns after every seventh round, as it does if an LP cannot be certified, changes nothing."""
    world = drifting_world(3, rounds=40)
    want = benchmarks.present(world)
    run, interruptions = present_file.run_rounds, list[Simplex]()

    def interrupted(course: Course, rewards: Floats, costs: Floats, phase: Phase, first: int, solved: bool) -> int:
        stop = min(first - first % 7 + 7, phase.size)
        return int(run(course, rewards, costs, phase[:stop], first, solved))

    def rescue(lp: Simplex) -> bool:
        interruptions.append(lp)
        return False

    monkeypatch.setattr(present_file, "run_rounds", interrupted)
    monkeypatch.setattr(present_file, "rescue_failed", rescue)
    found = benchmarks.present(world)
    assert len(interruptions) == 2 * (40 // 7)
    assert (found.even, found.two_speed) == (want.even, want.two_speed)
