"""Worlds with contexts: their means, their optimum, and how they are simulated."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.contextual import BLOCK
from driftsack.core.errors import DriftsackError, NamesError, NotFiniteError, OutOfRangeError, SettingError, ShapeError
from driftsack.game.contextual_world import contextual_world_of
from driftsack.game.nature import draw_outcome
from driftsack.instances.contextual import linear_contexts, segments
from driftsack.policies import AlwaysArm
from driftsack.simulation import Feedback

HORIZON = 600


def normals(rng: np.random.Generator, count: int) -> Floats:
    return rng.standard_normal((count, 3))


def linear(logistic: bool = False, **settings: Any) -> ds.ContextualInstance:
    rng = np.random.default_rng(7)
    rewards, costs = rng.uniform(-0.4, 0.5, (2, 4, 4)), rng.uniform(-0.2, 0.6, (2, 2, 4, 4))
    given = {"pool": 50, "lengths": [200, 400], "cost_max": [1.0, 2.0], "reward_max": 3.0, **settings}
    return ds.ContextualInstance.linear(
        normals, 3.0 * rewards, costs, [90.0, 60.0], horizon=HORIZON, logistic=logistic, **given
    )


def table(**settings: Any) -> ds.ContextualInstance:
    rng = np.random.default_rng(3)
    given = {
        "contexts": rng.standard_normal((40, 2)),
        "rewards": rng.random((2, 40, 3)),
        "costs": rng.random((2, 40, 2, 3)),
        "budget": [10.0, 12.0],
        **settings,
    }
    return ds.ContextualInstance.by_table(**given)


def slow_optimum(world: ds.ContextualInstance) -> float:
    """The same linear program, written out and solved by SciPy."""
    phase, context, rounds = world.pairs()
    rewards, costs = world.means_at(phase, context)
    rows, arms = rewards.shape
    budgets = np.zeros((world.resources, rows * arms))
    for j in range(world.resources):
        budgets[j] = (costs[:, j] * rounds[:, None]).ravel()
    simplices = np.kron(np.eye(rows), np.ones(arms))
    found = linprog(
        -(rewards * rounds[:, None]).ravel(),
        A_ub=np.vstack([budgets, simplices]),
        b_ub=np.concatenate([world.problem.budget, np.ones(rows)]),
    )
    return float(-found.fun)


@pytest.mark.parametrize("make", [linear, lambda: linear(logistic=True), table, lambda: table(horizon=500)])
def test_the_optimum_is_that_of_the_program_written_out(make: Any) -> None:
    world = make()
    best = ds.benchmarks.lp_contextual(world)
    assert best.value == pytest.approx(slow_optimum(world), rel=1e-7)
    assert best.gap <= 1e-9
    assert best.prices is not None
    phase, context, rounds = world.pairs()
    rewards, costs = world.means_at(phase, context)
    net = rewards - np.einsum("j,rji->ri", best.prices, costs)
    dual = best.prices @ world.problem.budget + rounds @ np.maximum(net.max(axis=1), 0.0)
    assert dual == pytest.approx(best.value, rel=1e-9)  # the certificate, from the data
    wrong = 0.5 * best.prices
    net = rewards - np.einsum("j,rji->ri", wrong, costs)
    assert wrong @ world.problem.budget + rounds @ np.maximum(net.max(axis=1), 0.0) > best.value * 1.001


def test_the_value_of_context_compares_with_the_means_over_contexts() -> None:
    world = table(horizon=500)
    value = ds.benchmarks.value_of_context(world)
    averaged = ds.Instance.piecewise(
        world.rewards.mean(axis=1), world.costs.mean(axis=1), [250, 250], world.problem.budget
    )
    assert value.without.value == pytest.approx(ds.benchmarks.lp_dynamic(averaged).value)
    assert value.ratio > 1.0
    assert value.gain == pytest.approx(value.with_context.value - value.without.value)
    same = ds.ContextualInstance.by_table(np.eye(2), [[0.5, 0.2]] * 2, [[[0.4, 0.1]]] * 2, 20, horizon=100)
    assert ds.benchmarks.value_of_context(same).ratio == pytest.approx(1.0)


@pytest.mark.parametrize("means", ["table", "linear", "logistic"])
def test_outcomes_have_the_means_of_their_phase_and_context(means: str) -> None:
    world = table(horizon=300, noise="deterministic") if means == "table" else linear(means == "logistic")
    world = pickle.loads(pickle.dumps(world))  # a copy is the same world
    rng = np.random.default_rng(0)
    order = world.drawn_order(rng)
    played = contextual_world_of(world)._replace(order=order, noise=0)
    costs, problem = np.zeros(world.resources), world.problem
    for t in (0, 150, 299):
        rewards, uses = world.means_at(world.phase[t : t + 1], order[t : t + 1])
        for arm in range(world.arms):
            reward = draw_outcome(played, t, arm, costs, rng)
            assert reward * problem.reward_max == pytest.approx(rewards[0, arm])
            assert (costs * problem.cost_max).tolist() == pytest.approx(uses[0, :, arm].tolist())


def slow_means(world: ds.ContextualInstance, k: int, c: int) -> tuple[Floats, Floats]:
    """The means of one pair of phase and context, from the definition."""
    if world.means == "table":
        return world.rewards[k, c], world.costs[k, c]
    x, most = np.append(world.contexts[c], 1.0), np.array(world.problem.cost_max)[:, None]
    linked = [
        np.clip(theta @ x, 0.0, high) if world.means == "linear" else high / (1.0 + np.exp(-(theta @ x)))
        for theta, high in ((world.rewards[k], world.problem.reward_max), (world.costs[k], most))
    ]
    return linked[0], linked[1]


@pytest.mark.parametrize("order", ["in order", "with repeats", "drawn"])
@pytest.mark.parametrize("means", ["table", "linear", "logistic"])
def test_means_of_many_pairs_are_those_of_single_ones(means: str, order: str) -> None:
    rng, count, horizon = np.random.default_rng(1), 2 * BLOCK + 5, 5000
    arms, resources, features = 3, 2, 2
    shape = (2, count, resources, arms) if means == "table" else (2, resources, arms, features + 1)
    costs = rng.random(shape)
    rounds = {"in order": np.arange(horizon) % count, "with repeats": rng.integers(0, 9, horizon), "drawn": None}[order]
    world = ds.ContextualInstance(
        ds.Problem(horizon, arms, (50.0, 60.0), reward_max=1.5, cost_max=(1.0, 2.0), features=features),
        rng.standard_normal((count, features)),
        costs[:, :, 0] if means == "table" else costs[:, 0],
        costs,
        np.repeat([0, 1], [count, horizon - count]),
        order=None if rounds is None else rounds.astype(np.int32),
        means=means,
    )
    phase, context, expected = world.pairs()
    drawn = order == "drawn"
    slow = Counter(zip(world.phase.tolist(), world.order.tolist(), strict=True)) if world.order is not None else {}
    pairs = sorted(slow) if not drawn else [(k, c) for k in range(2) for c in range(count)]
    assert list(zip(phase.tolist(), context.tolist(), strict=True)) == pairs
    assert expected.sum() == pytest.approx(horizon)
    assert drawn or expected.tolist() == [slow[pair] for pair in pairs]
    rewards, uses = world.means_at(phase, context)
    for row in {*range(0, len(pairs), 97), BLOCK - 1, BLOCK, count - 1, count, len(pairs) - 1} & {*range(len(pairs))}:
        gains, costs = slow_means(world, *pairs[row])
        assert rewards[row] == pytest.approx(gains, rel=1e-12)
        assert uses[row] == pytest.approx(costs, rel=1e-12)
    assert not rewards.flags.writeable
    assert not uses.flags.writeable


def test_contexts_are_drawn_with_their_weights_and_do_not_depend_on_the_policy() -> None:
    weights = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    world = ds.ContextualInstance.by_table(
        np.eye(3), np.full((2, 3, 2), 0.5), np.full((2, 3, 1, 2), 0.1), 1e9, horizon=8000, weights=weights
    )
    first, second = np.split(world.drawn_order(np.random.default_rng(0)), 2)
    assert np.bincount(first, minlength=3)[1] == 0
    assert abs((first == 2).mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)  # fails once in two million
    assert (second == 1).all()
    assert world.pairs()[2].tolist() == [1000.0, 3000.0, 4000.0]


def test_a_simulation_is_that_of_asking_and_telling_and_has_the_same_bits_for_any_threads() -> None:
    world = linear(noise="beta")
    policy = ds.Adaptive()
    run = ds.simulate(world, policy, trials=3, seed=1, threads=1)
    assert np.array_equal(run.reward, ds.simulate(world, policy, trials=3, seed=1, threads=3).reward)

    class Plain:
        def start(self, problem: ds.Problem, seed: Any) -> ds.Learner:
            return policy.start(problem, seed)

    plain = ds.simulate(world, Plain(), trials=3, seed=1)
    assert plain.reward.tolist() == pytest.approx(run.reward.tolist())
    late = ds.simulate(world, policy, trials=3, seed=1, feedback=Feedback(delay=5))
    assert not np.array_equal(late.reward, run.reward)


def test_a_policy_that_knows_the_context_earns_what_the_table_says() -> None:
    """Contexts in their order and no noise: the reward of one arm is the sum of its column."""
    world = table(noise="deterministic").__class__.by_table(
        np.eye(4), np.arange(8.0).reshape(4, 2) / 10.0, np.zeros((4, 1, 2)), 1.0, noise="deterministic"
    )
    assert ds.simulate(world, AlwaysArm(1), trials=1).reward[0] == pytest.approx(0.1 + 0.3 + 0.5 + 0.7)


def test_mappings_become_contexts_through_an_encoder() -> None:
    encoder = ds.Encoder(categories={"kind": ["chat", "code"]})
    world = ds.ContextualInstance.by_table(
        [{"kind": "chat"}, {"kind": "code"}], [[1.0, 0.0], [0.0, 1.0]], np.zeros((2, 1, 2)), 1.0, features=encoder
    )
    assert world.contexts.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert world.problem.encoder == encoder
    assert "2 contexts in order" in repr(world)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"horizon": 10, "weights": np.ones(3)}, ShapeError),
        ({"lengths": [1, 2, 3]}, ShapeError),
        ({"noise": "lognormal"}, SettingError),
        ({"horizon": 10, "weights": -np.ones(40)}, OutOfRangeError),
        ({"weights": np.ones(40)}, SettingError),
        ({"reward_max": 0.5}, OutOfRangeError),
        ({"features": 5}, ShapeError),
        ({"lengths": 5}, ShapeError),
        ({"lengths": [[20], [10, 10]]}, SettingError),
        ({"horizon": 10, "weights": ["a"] * 40}, ShapeError),
        ({"horizon": 10, "weights": np.full(40, np.nan)}, NotFiniteError),
        ({"rewards": "high"}, ShapeError),
        ({"rewards": [["a", "b", "c"]] * 40}, ShapeError),
        ({"rewards": [0.1, 0.2, 0.3]}, ShapeError),
        ({"rewards": [[0.1, 0.2], [0.3]]}, ShapeError),
        ({"costs": [[0.5, 0.5]] * 40}, ShapeError),
        ({"contexts": "abc"}, ShapeError),
        ({"contexts": np.full((40, 2), np.nan)}, NotFiniteError),
        ({"contexts": lambda rng, count: rng.random(count)}, ShapeError),
    ],
)
def test_worlds_that_make_no_sense_are_refused(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        table(**wrong)


def test_mappings_without_an_encoder_and_other_problems_are_refused() -> None:
    with pytest.raises(SettingError, match="Encoder"):
        ds.ContextualInstance.by_table([{"a": 1}], [[1.0]], [[[1.0]]], 1.0)
    world = table()
    for problem in ("a problem", ds.Problem(world.horizon, 3, [10.0, 12.0])):
        with pytest.raises(SettingError, match="problem"):
            ds.ContextualInstance(problem, world.contexts, world.rewards, world.costs, world.phase)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="logistic must be True or False"):
        linear(logistic="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tolerance": "tight"}, ShapeError),
        ({"tolerance": np.nan}, NotFiniteError),
        ({"tolerance": -1.0}, OutOfRangeError),
        ({"most_passes": 0}, OutOfRangeError),
    ],
)
def test_an_optimum_is_not_computed_to_a_tolerance_that_makes_no_sense(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    for optimum, world in (
        (ds.benchmarks.lp_contextual, table()),
        (ds.benchmarks.lp_dynamic, ds.instances.example_2()),
    ):
        with pytest.raises(error, match=next(iter(wrong))):
            optimum(world, **wrong)  # type: ignore[arg-type]


def test_contexts_by_name_are_matched_by_name() -> None:
    """Mappings and columns of a table may come in any order."""
    rows = [{"b": 1.0, "a": 0.0}, {"b": 2.0, "a": 3.0}]
    for contexts in (rows, pl.DataFrame(rows)):
        world = ds.ContextualInstance.by_table(contexts, [[0.5]] * 2, [[[0.5]]] * 2, 1.0, features=["a", "b"])
        assert world.contexts.tolist() == [[0.0, 1.0], [3.0, 2.0]]
    with pytest.raises(NamesError, match="missing"):
        ds.ContextualInstance.by_table(pl.DataFrame({"x": [1.0, 2.0]}), [[0.5]] * 2, [[[0.5]]] * 2, 1.0, features=["a"])


@pytest.mark.parametrize(
    ("family", "setting"),
    [
        *((linear_contexts, name) for name in ("horizon", "arms", "resources", "features", "rate", "pool", "seed")),
        *((segments, name) for name in ("horizon", "count", "arms", "jump", "rate", "seed")),
    ],
)
def test_families_name_the_setting_that_is_wrong(family: Any, setting: str) -> None:
    for wrong in (-1, "many", np.nan):
        with pytest.raises(DriftsackError, match=f"^{setting} must be"):
            family(**{setting: wrong})
