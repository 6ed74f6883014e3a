"""The benchmarks: closed forms, HiGHS, chains of inequalities, and edge cases."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import driftsack as ds
from driftsack import benchmarks
from driftsack.benchmarks.hard_fixed_distribution import hard_reward_of_mixes
from driftsack.benchmarks.lp_dynamic import dual_value, plan_totals
from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError, TooLargeError
from driftsack.core.instance import Noise
from driftsack.numerics.bundle import minimise
from tests.support import reference_lps as reference


def random_world(seed: int, noise: Noise = "bernoulli", grid: int | None = None) -> ds.Instance:
    """A small instance of random size; if a grid is given, means are rounded to it, which produces many ties."""
    rng = np.random.default_rng(seed)
    rows, arms, resources = rng.integers(1, 9), rng.integers(1, 5), rng.integers(1, 3)
    means = rng.random((rows, resources + 1, arms))
    if grid is not None:
        means = np.round(means * grid) / grid
    lengths = rng.integers(1, 6, rows)
    budget = rng.integers(0, 9, resources) + rng.choice([0.0, 0.5], resources)
    return ds.Instance.piecewise(means[:, 0], means[:, 1:], lengths.tolist(), budget, noise)


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        (ds.instances.example_1(), 5_000),
        (ds.instances.example_2(), 5_000),
        (ds.instances.example_3(alpha=0.5), 2_500),
        (ds.instances.example_3(alpha=0.8), 2_500),
        (ds.instances.example_3(alpha=0.3), 0.5 * 3_000 + 0.7 * (2_500 - 0.5 * 3_000)),
        (ds.instances.example_3(alpha=0.1), 0.5 * 1_000 + 0.7 * (2_500 - 0.5 * 1_000)),
        (ds.instances.example_4(periods=1), 3_750),
        (ds.instances.example_4(periods=10), 3_750),
        (ds.instances.motivating(delta=0.5, better=True), 7_500),
        (ds.instances.nonbinding(), 10_000),
    ],
)
def test_lp_dynamic_equals_closed_forms(instance: ds.Instance, value: float) -> None:
    best = benchmarks.lp_dynamic(instance)
    assert best.value == pytest.approx(value, rel=1e-9)
    assert best.gap <= 1e-9


def test_fixed_distribution_equals_its_closed_form() -> None:
    best = benchmarks.fixed_distribution(ds.instances.example_1(), trials=200, seed=0)
    assert best.value == pytest.approx(3_750, rel=1e-9)
    assert best.stopping_time == 7_500
    assert abs(best.hard_value - 3_750) < 5 * best.hard_value_se
    assert np.isnan(benchmarks.fixed_distribution(ds.instances.example_1(horizon=100)).hard_value)


def every_stop(instance: ds.Instance) -> float:
    """The twin: the static LP on the first rounds, for every number of rounds."""
    best = 0.0
    rewards, costs = instance.rewards[instance.phase], instance.costs[instance.phase]
    for stop in range(1, instance.horizon + 1):
        value = ds.lp.step_lp(rewards[:stop].sum(axis=0), costs[:stop].sum(axis=0), instance.problem.budget).value
        best = max(best, value)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_fixed_distribution_considers_every_stop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = ds.Instance.piecewise(rng.random((4, 3)), rng.random((4, 2, 3)), [200, 150, 300, 150], budget=90.0)
    assert benchmarks.fixed_distribution(world).value == pytest.approx(every_stop(world), rel=1e-9)


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.sampled_from([None, 2]))
def test_lp_dynamic_is_certified_and_equals_highs(seed: int, grid: int | None) -> None:
    world = random_world(seed, grid=grid)
    best = benchmarks.lp_dynamic(world)
    assert best.value == pytest.approx(reference.lp_dynamic(world), rel=1e-8, abs=1e-8)
    assert best.gap <= 1e-9
    plan, prices = np.asarray(best.plan), np.asarray(best.prices)
    assert (plan >= 0).all()
    assert (plan.sum(axis=1) <= 1 + 1e-12).all()
    reward, spent = plan_totals(world, plan)
    assert (spent <= world.problem.unit_budget * (1 + 1e-12) + 1e-12).all()
    assert (prices >= 0).all()
    assert dual_value(world, prices) == pytest.approx(best.value, rel=1e-12)
    assert reward == pytest.approx(best.value, rel=2e-9, abs=1e-12)


def test_the_certificate_detects_a_planted_fault() -> None:
    """Wrong prices give a larger dual value, which the gap would show."""
    world = random_world(5)
    best = benchmarks.lp_dynamic(world)
    wrong = np.asarray(best.prices) + 0.05
    assert dual_value(world, wrong) > best.value * (1 + 1e-6)


def hard_value_of(instance: ds.Instance, mix: Floats) -> float:
    """The exact expected reward of a fixed mix under the hard stop rule, by enumerating every outcome (Bernoulli)."""
    rewards, costs = instance.rewards[instance.phase], instance.costs[instance.phase]
    budget = np.asarray(instance.problem.budget)

    def walk(t: int, left: tuple[float, ...]) -> float:
        if t == instance.horizon:
            return 0.0
        total = (1 - mix.sum()) * walk(t + 1, left)
        for arm, share in enumerate(mix):
            for used in itertools.product((0.0, 1.0), repeat=len(budget)):
                probability = np.prod([c if u else 1 - c for u, c in zip(used, costs[t, :, arm], strict=True)])
                after = tuple(a - u for a, u in zip(left, used, strict=True))
                if share * probability > 0 and min(after) >= 0:
                    total += share * probability * (rewards[t, arm] + walk(t + 1, after))
        return float(total)

    return walk(0, tuple(budget))


def with_one_round_more(instance: ds.Instance) -> ds.Instance:
    """The same instance with budgets larger by the costs of one round, which the last round may overshoot by."""
    budget = np.asarray(instance.problem.budget) + np.asarray(instance.problem.cost_max)
    return ds.Instance.piecewise(
        instance.rewards, instance.costs, instance.rounds.tolist(), budget, noise=instance.noise
    )


@pytest.mark.parametrize("noise", ["bernoulli", "deterministic"])
@pytest.mark.parametrize("seed", range(8))
def test_chain_of_benchmarks(seed: int, noise: Noise) -> None:
    """OPT_FD (hard) <= OPT_DP <= LP-Dynamic and LP-Static <= OPT_FD (fluid) <= LP-Dynamic, exactly, on tiny instances.

    With random costs OPT_DP is compared with LP-Dynamic for budgets larger by the costs of one round; see the
    counterexample below.
    """
    rng = np.random.default_rng(seed)
    rewards, costs = rng.random((4, 2)), rng.integers(0, 5, (4, 1, 2)) / 4
    world = ds.Instance.from_arrays(rewards, costs, budget=[float(rng.integers(1, 3))], noise=noise)
    fluid = benchmarks.fixed_distribution(world)
    adaptive, best = benchmarks.dynamic_program(world).value, benchmarks.lp_dynamic(world).value
    reachable = best if noise == "deterministic" else benchmarks.lp_dynamic(with_one_round_more(world)).value
    assert adaptive <= reachable + 1e-9
    if noise == "bernoulli":
        assert hard_value_of(world, np.asarray(fluid.plan)[0]) <= adaptive + 1e-9
    assert benchmarks.lp_static(world).value <= fluid.value + 1e-9
    assert fluid.value <= best + 1e-9
    assert benchmarks.single_step(world).value <= best + 1e-9


def test_the_adaptive_optimum_can_exceed_the_lp() -> None:
    """One round, budget 0.1, an arm that earns 0.5 and uses 1 with probability 0.2: 0.4 against 0.25.

    The paper's chain states OPT_DP <= LP-Dynamic, but the round that breaks the budget overshoots it at no cost.
    """
    world = ds.Instance.stationary([0.5], [[0.2]], horizon=1, budget=0.1)
    assert benchmarks.dynamic_program(world).value == pytest.approx(0.4)
    assert benchmarks.lp_dynamic(world).value == pytest.approx(0.25)


def test_the_printed_chain_fails_where_stopping_early_pays() -> None:
    world = ds.instances.example_1()
    assert benchmarks.fixed_distribution(world).value > benchmarks.lp_static(world).value + 400


def brute_force(instance: ds.Instance) -> float:
    """The twin: OPT_DP by recursion over every outcome."""
    rewards, costs = instance.rewards[instance.phase], instance.costs[instance.phase]

    def value(t: int, left: tuple[float, ...]) -> float:
        if t == instance.horizon:
            return 0.0
        best = value(t + 1, left)
        for arm in range(instance.arms):
            total = 0.0
            random = instance.noise == "bernoulli"
            patterns = itertools.product((0, 1), repeat=instance.resources) if random else [(1,) * instance.resources]
            for used in patterns:
                means = costs[t, :, arm]
                probability = np.prod([m if u else 1 - m for u, m in zip(used, means, strict=True)]) if random else 1.0
                spent = used if random else means
                after = tuple(a - u for a, u in zip(left, spent, strict=True))
                if min(after) >= -1e-12:
                    total += probability * (rewards[t, arm] + value(t + 1, after))
            best = max(best, total)
        return float(best)

    return value(0, instance.problem.budget)


def reward_of_mix(instance: ds.Instance, mix: Floats) -> float:
    """The twin: the expected reward of a fixed mix, by recursion over every arm and outcome."""
    rewards, costs = instance.rewards[instance.phase], instance.costs[instance.phase]

    def value(t: int, left: tuple[float, ...]) -> float:
        if t == instance.horizon:
            return 0.0
        total = (1.0 - mix.sum()) * value(t + 1, left)
        for arm, used in itertools.product(range(instance.arms), itertools.product((0, 1), repeat=instance.resources)):
            means = costs[t, :, arm]
            if instance.noise == "deterministic" and 0 in used:
                continue
            chance, spent = 1.0, means
            if instance.noise == "bernoulli":
                chance = float(np.prod([m if u else 1 - m for u, m in zip(used, means, strict=True)]))
                spent = np.array(used)
            after = tuple(a - u for a, u in zip(left, spent, strict=True))
            if min(after) >= -1e-12:
                total += mix[arm] * chance * (rewards[t, arm] + value(t + 1, after))
        return float(total)

    return value(0, instance.problem.budget)


@pytest.mark.parametrize("noise", ["bernoulli", "deterministic"])
@pytest.mark.parametrize("seed", range(4))
def test_the_hard_fixed_distribution_equals_brute_force(noise: Noise, seed: int) -> None:
    """No mix of a grid earns more than the certificate allows, and the plan earns the value."""
    rng = np.random.default_rng(seed)
    resources = 1 + seed % 2
    costs = rng.integers(0, 5, (3, resources, 2)) / 4
    world = ds.Instance.from_arrays(rng.random((3, 2)), costs, budget=1.0, noise=noise)
    best = benchmarks.hard_fixed_distribution(world, tolerance=1e-3)
    assert best.gap <= 1.1e-3
    assert best.plan is not None
    assert best.value == pytest.approx(reward_of_mix(world, best.plan[0]))
    grid = [np.array([a, b]) / 8 for a in range(9) for b in range(9 - a)]
    on_grid = hard_reward_of_mixes(world, np.array(grid))
    assert on_grid.tolist() == pytest.approx([reward_of_mix(world, mix) for mix in grid])
    assert on_grid.max() <= best.value / (1 - best.gap) + 1e-9
    assert best.value <= benchmarks.dynamic_program(world).value + 1e-9


def test_the_fluid_mix_is_not_the_best_one_under_the_hard_rule() -> None:
    """Two rounds, a budget of 1 and an arm of cost 0 or 1: the fluid mix skips, the hard one always plays."""
    world = ds.Instance.stationary([0.9, 0.2], [[0.8, 0.0]], horizon=2, budget=1.0)
    fluid, hard = benchmarks.fixed_distribution(world), benchmarks.hard_fixed_distribution(world)
    assert fluid.plan is not None
    assert hard_reward_of_mixes(world, fluid.plan[:1])[0] < 0.99 * hard.value
    with pytest.raises(TooLargeError, match="at most 3 arms"):
        benchmarks.hard_fixed_distribution(ds.instances.example_1())


@pytest.mark.parametrize("noise", ["bernoulli", "deterministic"])
@pytest.mark.parametrize("seed", range(6))
def test_dynamic_program_equals_brute_force(noise: Noise, seed: int) -> None:
    rng = np.random.default_rng(seed)
    resources = 1 + seed % 2
    costs = rng.integers(0, 5, (4, resources, 2)) / 4
    world = ds.Instance.from_arrays(
        rng.random((4, 2)), costs, budget=rng.integers(1, 4, resources) / 2 + 0.5, noise=noise
    )
    assert benchmarks.dynamic_program(world).value == pytest.approx(brute_force(world), rel=1e-12)


@pytest.mark.parametrize(
    ("world", "error", "words"),
    [
        (
            ds.Instance.stationary([0.5], [[0.5]] * 3, 5, 2.0),
            SettingError,
            "got 3.*larger by the costs of one round",
        ),
        (ds.Instance.stationary([0.5], [[0.5]], 5, 2.0, "beta"), SettingError, "noise 'bernoulli' or 'deterministic'"),
        (ds.Instance.stationary([0.5], [[2**0.5 / 2]], 5, 2.0, "deterministic"), SettingError, "common denominator"),
        (ds.Instance.stationary([0.5], [[0.5]] * 2, 10**5, 3e4), TooLargeError, "needs 14,400,960,016 bytes"),
    ],
)
def test_dynamic_program_refuses(world: ds.Instance, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        benchmarks.dynamic_program(world)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_single_steps_and_static_equal_highs(seed: int) -> None:
    world = random_world(seed)
    even, static = benchmarks.single_step(world), benchmarks.lp_static(world)
    assert even.value == pytest.approx(reference.single_step(world), rel=1e-9, abs=1e-9)
    assert static.value == pytest.approx(reference.lp_static(world), rel=1e-9, abs=1e-9)
    assert max(even.gap, static.gap) <= 1e-9
    assert even.values is not None
    assert world.rounds @ even.values == pytest.approx(even.value)


def repeated(instance: ds.Instance, times: int) -> ds.Instance:
    return ds.Instance.piecewise(
        instance.rewards,
        instance.costs,
        (instance.rounds * times).tolist(),
        np.asarray(instance.problem.budget) * times,
    )


@pytest.mark.parametrize("seed", range(10))
def test_scaling_permuting_and_more_budget(seed: int) -> None:
    world = random_world(seed)
    value = benchmarks.lp_dynamic(world).value
    assert benchmarks.lp_dynamic(repeated(world, 7)).value == pytest.approx(7 * value, rel=1e-8)
    arms, resources = np.arange(world.arms)[::-1], np.arange(world.resources)[::-1]
    mirrored = ds.Instance.piecewise(
        world.rewards[:, arms],
        world.costs[:, resources][:, :, arms],
        world.rounds.tolist(),
        np.asarray(world.problem.budget)[resources],
    )
    assert benchmarks.lp_dynamic(mirrored).value == pytest.approx(value, rel=1e-8)
    larger = ds.Instance.piecewise(
        world.rewards, world.costs, world.rounds.tolist(), np.asarray(world.problem.budget) + 0.5
    )
    for solve in (benchmarks.lp_dynamic, benchmarks.lp_static, benchmarks.single_step, benchmarks.fixed_distribution):
        assert solve(larger).value >= solve(world).value - 1e-9


EDGES: list[Callable[[], ds.Instance]] = [
    lambda: ds.Instance.stationary([0.5, 0.9], [[0.2, 0.4]], horizon=10, budget=0.0),
    lambda: ds.Instance.stationary([0.5, 0.9], [[0.0, 0.4], [0.3, 0.0]], horizon=10, budget=[0.0, 2.0]),
    lambda: ds.Instance.stationary([0.5, 0.9], [[0.2, 0.4]], horizon=10, budget=1e9),
    lambda: ds.Instance.stationary([0.5], [[0.2]], horizon=1, budget=0.1),
    lambda: ds.Instance.stationary([0.0, 0.0], [[0.0, 1.0]], horizon=5, budget=1.0),
    lambda: ds.Instance.stationary([0.0, 0.7], [[0.0, 0.0]], horizon=5, budget=0.0),
]


@pytest.mark.parametrize("build", EDGES)
def test_edges(build: Any) -> None:
    """A budget of 0, a budget that never binds, one arm, one round, and an arm with neither reward nor cost."""
    world = build()
    best = benchmarks.lp_dynamic(world)
    assert best.value == pytest.approx(reference.lp_dynamic(world), abs=1e-9)
    assert best.gap <= 1e-9
    assert benchmarks.lp_static(world).value == pytest.approx(reference.lp_static(world), abs=1e-9)
    assert benchmarks.single_step(world).value == pytest.approx(reference.single_step(world), abs=1e-9)
    assert benchmarks.fixed_distribution(world).value <= best.value + 1e-9
    reachable = benchmarks.lp_dynamic(with_one_round_more(world)).value
    assert benchmarks.dynamic_program(world).value <= reachable + 1e-9
    variation = ds.variation(world)
    assert (variation.v1, variation.v2, variation.w1_min, variation.w2_min) == (0.0, 0.0, 0.0, 0.0)


def test_values_and_prices_are_in_the_units_of_the_problem() -> None:
    plain = random_world(3)
    units = ds.Instance.piecewise(
        plain.rewards * 50,
        plain.costs * 4,
        plain.rounds.tolist(),
        np.asarray(plain.problem.budget) * 4,
        reward_max=50.0,
        cost_max=4.0,
    )
    for solve in (benchmarks.lp_dynamic, benchmarks.lp_static, benchmarks.fixed_distribution):
        one, two = solve(plain), solve(units)
        assert two.value == pytest.approx(50 * one.value)
        np.testing.assert_allclose(np.asarray(two.prices), np.asarray(one.prices) * 12.5, atol=1e-9)
    assert benchmarks.single_step(units).value == pytest.approx(50 * benchmarks.single_step(plain).value)


def test_bundle_reports_a_gap_when_it_runs_out_of_passes() -> None:
    """The bounds stay valid, and their distance shows that the minimum has not been reached."""

    def oracle(point: Floats, values: Floats, slopes: Floats) -> None:
        values[0], slopes[0] = (point - 0.3) @ (point - 0.3), 2 * (point - 0.3)

    early = minimise(oracle, np.zeros(3), np.ones(3), np.zeros(3), 1, 1e-9, most_passes=5)
    assert early.passes == 5
    assert early.lower <= 0.0 <= early.upper
    assert early.upper - early.lower > 1e-9


CONTEXTUAL = ds.ContextualInstance.by_table(
    np.eye(2), [[0.9, 0.1], [0.1, 0.9]], [[[0.5, 0.5]]] * 2, budget=3, horizon=9
)


@pytest.mark.parametrize(
    "name",
    [name for name in ds.benchmarks.__all__ if name.islower() and name not in ("lp_contextual", "value_of_context")],
)
def test_benchmarks_without_contexts_refuse_them(name: str) -> None:
    """By an error that names the right benchmark; discovered, so that a new benchmark is tested."""
    benchmark = getattr(ds.benchmarks, name)
    with pytest.raises(SettingError, match=f"{name} is for instances without contexts.*lp_contextual"):
        benchmark(CONTEXTUAL)
    with pytest.raises(SettingError, match="must be a driftsack Instance"):
        benchmark(3)
    assert ds.benchmarks.lp_contextual(CONTEXTUAL).value > 0


@pytest.mark.parametrize("oracle", [ds.policies.DynamicOracle(), ds.policies.StaticOracle()])
def test_oracles_say_that_they_plan_without_contexts(oracle: ds.Policy) -> None:
    with pytest.raises(SettingError, match=r"plans without contexts.*lp_contextual"):
        ds.simulate(CONTEXTUAL, oracle, trials=1)
