"""LagrangeCBwK with regressions of the two usual interfaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import SettingError
from driftsack.instances.contextual import segments
from driftsack.policies.lagrange_cbwk import LagrangeCBwK


class Ridge:
    """A regression with the interface of scikit-learn."""

    def __init__(self) -> None:
        self.gram: Any = None

    def partial_fit(self, rows: Any, values: Any) -> None:
        if self.gram is None:
            self.gram, self.sums = 0.1 * np.eye(rows.shape[1]), np.zeros(rows.shape[1])
        self.gram += rows.T @ rows
        self.sums += rows.T @ values

    def predict(self, rows: Any) -> Any:
        return rows @ np.linalg.solve(self.gram, self.sums)


class OneByOne:
    """The same regression with the interface of river."""

    def __init__(self) -> None:
        self.inner = Ridge()

    def learn_one(self, x: dict[int, float], y: float) -> None:
        self.inner.partial_fit(np.array([list(x.values())]), np.array([y]))

    def predict_one(self, x: dict[int, float]) -> float:
        return float(self.inner.predict(np.array([list(x.values())]))[0])


def test_it_uses_contexts_and_keeps_to_the_budget_with_both_interfaces() -> None:
    world = segments(horizon=1_500, count=3, arms=3, seed=2)
    best = ds.benchmarks.lp_contextual(world).value
    runs = [ds.simulate(world, LagrangeCBwK(kind), trials=1, seed=0) for kind in (Ridge, OneByOne)]
    assert runs[0].reward[0] == runs[1].reward[0]
    assert runs[0].reward[0] / best > 0.6
    assert runs[0].reward[0] > ds.simulate(world, ds.policies.UniformRandom(), trials=1).reward[0]
    assert (runs[0].spent <= world.problem.budget).all()


def test_probabilities_are_valid_and_skips_lower_prices() -> None:
    learner = LagrangeCBwK(Ridge).start(ds.Problem(horizon=50, arms=2, budget=[1.0], features=1), seed=0)
    for _ in range(40):
        before = learner.prices.copy()
        decision = learner.ask(context=[1.0])
        assert decision.mix.min() >= 0
        assert decision.mix.sum() <= 1 + 1e-9
        if decision.skipped:
            assert learner.prices[0] < before[0] or before[0] == 0
        else:
            learner.tell(decision, 0.1, {"cost_0": 0.5})
            assert learner.prices[0] > before[0]
    with pytest.raises(SettingError, match="features"):
        LagrangeCBwK(Ridge).start(ds.Problem(horizon=50, arms=2, budget=[1.0]))
