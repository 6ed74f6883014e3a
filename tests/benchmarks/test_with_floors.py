"""The horizon LP with floors: HiGHS on random worlds, certificates, and what cannot be reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import driftsack as ds
from driftsack import benchmarks
from driftsack.benchmarks import with_floors
from driftsack.core.errors import InfeasibleError, SettingError
from tests.support import reference_lps as reference


def random_world(seed: int) -> ds.Instance:
    """A small instance with floors; many have ties, floors that can just be reached, or cannot."""
    rng = np.random.default_rng(seed)
    rows, arms, resources = rng.integers(1, 9), rng.integers(1, 5), rng.integers(1, 4)
    grid, means = int(rng.choice([0, 0, 2, 4])), rng.random((rows, resources + 1, arms))
    means = np.round(means * grid) / grid if grid else means
    lengths = rng.integers(1, 6, rows)
    horizon = int(lengths.sum())
    # Roomy budgets, most of the time none for the minimised resource.
    budget = rng.integers(4, 13, resources) / 8 * horizon
    best, worst = (float(lengths @ extreme / horizon) for extreme in (means[:, 0].max(1), means[:, 0].min(1)))
    share = rng.choice([0.2, 0.5, 0.8, 1.0, 1.02, 1.2])
    floor = {"reward": float(np.clip(worst + share * (best - worst), 0.01, 1.0))}
    if rng.random() < 0.4:
        floor["share:0"] = float(rng.choice([0.1, 0.5, 1.0]))
    world = ds.Instance.piecewise(means[:, 0], means[:, 1:], lengths.tolist(), budget.tolist())
    minimised = int(rng.integers(resources))
    kept = {f"cost_{minimised}": float(budget[minimised])} if rng.random() < 0.4 else None
    return world.with_floor(floor, minimised, kept)


WORLDS = [random_world(seed) for seed in range(200)]


def test_lp_dynamic_equals_highs_on_random_worlds() -> None:
    """To 1e-9 of the cost, or of the largest share of the floors that a plan reaches."""
    kinds = {"reached": 0, "not reached": 0, "no plan": 0}
    for world in WORLDS:
        value, share = reference.with_floors(world)
        if share is None:
            kinds["no plan"] += 1
            with pytest.raises(InfeasibleError, match="do not suffice to answer every request"):
                benchmarks.lp_dynamic(world)
            continue
        best = benchmarks.lp_dynamic(world)
        assert best.reachable == pytest.approx(share, abs=1e-9)
        if value is None:
            kinds["not reached"] += 1
            continue
        kinds["reached"] += 1
        assert best.value == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert best.gap <= 1e-9
        assert_reaches(world, best)
    assert min(kinds.values()) >= 10, f"too few worlds of a kind to say anything: {kinds}"


def assert_reaches(world: ds.Instance, best: benchmarks.Benchmark) -> None:
    """The plan answers every round, reaches the floors and costs the value; the prices have the right signs."""
    assert best.plan is not None
    assert best.prices is not None
    assert best.floor_prices is not None
    problem, weighted = world.problem, best.plan * world.rounds[:, None]
    np.testing.assert_allclose(best.plan.sum(axis=1), 1.0)
    gains = with_floors.floor_gains(problem, world.rewards)
    reached = np.einsum("kfi,ki->f", gains, weighted) / world.horizon
    assert (reached >= problem.unit_floors - 1e-8).all()
    spent = np.einsum("kji,ki->j", world.costs, weighted)
    assert (spent <= np.asarray(problem.budget) + 1e-7 * world.horizon).all()
    assert spent[problem.minimised] == pytest.approx(best.value, rel=1e-7, abs=1e-7)
    assert (best.prices >= 0.0).all()
    assert (best.floor_prices >= 0.0).all()


def test_lp_static_and_single_step_equal_highs_row_by_row() -> None:
    seen = 0
    for world in WORLDS[:40]:
        mean = replace(
            world,
            rewards=(world.rounds / world.horizon @ world.rewards)[None],
            costs=np.tensordot(world.rounds / world.horizon, world.costs, axes=1)[None],
            phase=np.zeros(world.horizon, dtype=np.int32),
        )
        value, _ = reference.with_floors(mean)
        if value is not None:
            assert benchmarks.lp_static(world).value == pytest.approx(value, rel=1e-9, abs=1e-9)
        rows = [
            replace(mean, rewards=world.rewards[k : k + 1], costs=world.costs[k : k + 1])
            for k in range(len(world.rewards))
        ]
        values = [reference.with_floors(row)[0] for row in rows]
        if None not in values:
            even, seen = benchmarks.single_step(world), seen + 1
            expected = float(world.rounds @ np.array(values, dtype=np.float64)) / world.horizon
            assert even.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert even.row_floor_prices is not None
            assert len(even.row_floor_prices) == len(rows)
    assert seen >= 5


def test_prices_are_derivatives() -> None:
    """With a floor higher by a little, and a budget larger by a little, the cost changes by their prices."""
    world = ds.Instance.piecewise(
        [[0.5, 0.7, 0.95], [0.3, 0.8, 0.9]],
        [[[0.1, 0.3, 0.9], [0.1, 0.7, 0.2]], [[0.1, 0.2, 0.7], [0.1, 0.8, 0.3]]],
        [60, 40],
        [60.0, 30.0],
    )
    best = benchmarks.lp_dynamic(world.with_floor(0.8))
    assert best.prices is not None
    assert best.floor_prices is not None
    higher = benchmarks.lp_dynamic(world.with_floor(0.8 + 1e-5)).value
    assert (higher - best.value) / (1e-5 * world.horizon) == pytest.approx(best.floor_prices[0], rel=1e-4)
    roomier = benchmarks.lp_dynamic(world.with_floor(0.8, budget={"cost_1": 30.001})).value
    assert (best.value - roomier) / 0.001 == pytest.approx(best.prices[1], rel=1e-4, abs=1e-6)


def test_a_floor_that_cannot_be_reached_is_answered_with_the_one_that_can() -> None:
    world = ds.Instance.stationary([0.5, 0.8], [[0.1, 0.4]], horizon=100, budget=100.0).with_floor(0.9)
    best = benchmarks.lp_dynamic(world)
    assert best.reachable * 0.9 == pytest.approx(0.8, abs=1e-8)
    assert best.value == pytest.approx(40.0, rel=1e-6)


@pytest.mark.parametrize("name", ["fixed_distribution", "hard_fixed_distribution", "dynamic_program", "present"])
def test_other_benchmarks_refuse_floors_by_name(name: str) -> None:
    world = ds.Instance.stationary([0.5, 0.8], [[0.1, 0.4]], horizon=10, budget=9.0).with_floor(0.6)
    with pytest.raises(SettingError, match=f"^{name} maximises the reward"):
        getattr(benchmarks, name)(world)


def test_contexts_lower_the_cost_of_a_floor() -> None:
    world = ds.ContextualInstance.by_table(
        np.eye(2), rewards=[[0.9, 0.95], [0.2, 0.95]], costs=[[[0.1, 0.9]]] * 2, budget=100, horizon=100
    )
    problem = replace(world.problem, budget=(np.inf,), minimise="cost_0", floor=(("reward", 0.9),))
    value = benchmarks.value_of_context(replace(world, problem=problem))
    assert value.with_context.gap <= 1e-9
    assert value.with_context.value < 0.8 * value.without.value


def test_a_plan_that_misses_a_floor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the floors are a tenth lower than those of the problem."""
    program = with_floors._program
    monkeypatch.setattr(with_floors, "_program", lambda rows, floors: program(rows, 0.9 * floors))
    with pytest.raises(AssertionError):
        test_lp_dynamic_equals_highs_on_random_worlds()
