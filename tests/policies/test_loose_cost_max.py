"""The warning about a ``cost_max`` that is too loose for the printed radius, and settings that help there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import LooseCostMaxWarning
from driftsack.policies.parts import radius
from driftsack.theory.windows import radius_constant

HORIZON = 10_000


def warned(policy: ds.Policy, problem: ds.Problem) -> bool:
    """Whether starting the policy gives the warning."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        policy.start(problem)
    return any(issubclass(item.category, LooseCostMaxWarning) for item in found)


def problem_at(rate: float, horizon: int = HORIZON) -> ds.Problem:
    """Two arms, one of two resources with a budget of ``rate`` times ``cost_max`` a round."""
    return ds.Problem(horizon, arms=2, budget=[3.0 * horizon, 7.0 * rate * horizon], cost_max=[5.0, 7.0])


@pytest.mark.parametrize(
    ("policy", "memory"),
    [
        (ds.NaiveUCB(), HORIZON / 2),
        (ds.SlidingWindowUCB(windows=(HORIZON, 1_000), scale=0.5), 1_000),
        (ds.policies.DiscountedUCB(discount=0.999, scale=1.0, cost_scale=0.5), 1_000),
        (ds.DetectAndRestart(ds.NaiveUCB(scale=0.1)), HORIZON / 2),  # a policy inside a policy
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_is_given_if_the_radius_halfway_is_twice_the_rate(policy: Any, memory: float) -> None:
    scale = {"NaiveUCB": 1.0, "DetectAndRestart": 0.1}.get(type(policy).__name__, 0.5)
    halfway = scale * radius_constant(HORIZON, 2, 2) / np.sqrt(memory / 2 + 1)
    assert halfway < 0.5
    assert warned(policy, problem_at(0.49 * halfway))
    assert not warned(policy, problem_at(0.51 * halfway))
    assert not warned(policy, problem_at(0.0))  # no setting helps without a budget


def test_it_says_what_to_do() -> None:
    message = r"resource 1, 0.02 of cost_max; after half .* 2500 pulls .* now 7,.* cost_scale to 0.1 or less.*Adaptive"
    with pytest.warns(LooseCostMaxWarning, match=message):
        ds.NaiveUCB().start(problem_at(0.02))
    for settings in ({"cost_scale": 0.1}, {"scale": 0.1}, {"radius": "bernstein"}, {"radius": "refined"}):
        assert not warned(ds.NaiveUCB(**settings), problem_at(0.02))


def papers_problems() -> list[tuple[ds.Policy, ds.Problem]]:
    """The paper's policies with their printed settings on its examples, at several horizons."""
    pairs: list[tuple[ds.Policy, ds.Problem]] = []
    for horizon in (400, 1_000, 10_000):
        for world in (
            ds.instances.example_1(horizon),
            ds.instances.example_2(horizon),
            *(ds.instances.example_3(alpha, horizon) for alpha in (0.25, 0.5, 0.75)),
            *(ds.instances.example_4(periods, horizon) for periods in (2, 10, 50)),
        ):
            measured = ds.variation(world)
            windowed = ds.SlidingWindowUCB(variation=(measured.v1, measured.v2))
            pairs += [(windowed, world.problem), (ds.NaiveUCB(), world.problem)]
    return pairs


def test_it_is_not_given_in_the_papers_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on any problem whose radius is too large for every ``cost_max``; planted: other thresholds."""
    assert not any(warned(*pair) for pair in papers_problems())
    short = ds.NaiveUCB(), problem_at(0.02, horizon=300)
    assert not warned(*short)
    monkeypatch.setattr(radius, "LARGEST_RADIUS", 1.0)
    assert warned(*short)
    monkeypatch.setattr(radius, "LOOSE_RATIO", 0.5)
    assert any(warned(*pair) for pair in papers_problems())
    monkeypatch.setattr(radius, "LOOSE_RATIO", np.inf)  # the trivial rule, which never warns
    assert not warned(ds.NaiveUCB(), problem_at(0.02))


def test_the_options_help_where_budgets_are_small() -> None:
    """Stationary instances with b at 2% of ``cost_max``: at least 3 standard errors more than with ``scale`` alone.

    The gains are about 5 standard errors. A smaller ``scale`` for rewards alone is the competitor that gains nothing.
    """
    worlds = []
    for seed in range(200, 212):
        drawn = ds.instances.piecewise_random(changes=0, seed=seed)
        problem = ds.Problem(HORIZON, drawn.arms, drawn.problem.budget, cost_max=12.5)
        worlds.append(ds.Instance(problem, drawn.rewards, drawn.costs, drawn.phase, noise="uniform"))

    def shares(**settings: Any) -> Floats:
        policy = ds.NaiveUCB(budget_rule="remaining", **settings)
        earned = [ds.simulate(world, policy, trials=1, seed=0).reward[0] for world in worlds]
        return np.array(earned) / [ds.benchmarks.lp_dynamic(world).value for world in worlds]

    usual = shares(scale=0.1)
    for settings, helps in (
        ({"scale": 0.1, "cost_scale": 0.01}, True),
        ({"scale": 0.01, "radius": "bernstein", "first_pulls": 5}, True),
        ({"scale": 0.05, "cost_scale": 0.1}, False),
    ):
        gain = shares(**settings) - usual
        assert (gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(worlds))) == helps


def test_first_pulls_find_an_arm_that_a_small_scale_never_tries() -> None:
    """Whichever of two arms is the better one; without first pulls, one of them is found too rarely."""
    worlds = [ds.Instance.stationary(means, [[0.5, 0.5]], 1_000, 900.0) for means in ([0.9, 0.4], [0.4, 0.9])]
    for first_pulls in (0, 5):
        policy = ds.NaiveUCB(scale=0.02, first_pulls=first_pulls)
        runs = [ds.simulate(world, policy, trials=10, seed=0) for world in worlds]
        best = [run.pulls[:, k].mean() for k, run in enumerate(runs)]
        assert (min(best) > 950) == (first_pulls > 0)
