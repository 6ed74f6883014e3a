"""LagrangeCBwK with regressions of the two usual interfaces."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from river import linear_model, optim
from sklearn.linear_model import SGDRegressor

import driftsack as ds
from driftsack.core.errors import (
    AlreadyToldError,
    BudgetExhaustedError,
    HorizonReachedError,
    NotFiniteError,
    OutOfRangeError,
    SettingError,
    ShapeError,
    UnknownDecisionError,
)
from driftsack.instances.contextual import segments
from driftsack.policies.lagrange_cbwk import LagrangeCBwK, LagrangeLearner


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


class Mean:
    """The mean of what it was given, whatever the features; it counts what it was given."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def partial_fit(self, rows: Any, values: Any) -> None:
        assert rows.shape == (1, 1)
        self.total, self.count = self.total + values[0], self.count + 1

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.total / max(self.count, 1))


SMALL = ds.Problem(horizon=60, arms=["small", "large"], budget={"usd": 6.0}, cost_max=1.0, features=1)


def played(learner: LagrangeLearner, rounds: int, costs: tuple[float, float] = (0.1, 0.3)) -> list[ds.Decision]:
    """Ask and tell some rounds; the expensive arm is better."""
    decisions = []
    for _ in range(rounds):
        decisions.append(learner.ask(context=[1.0]))
        if not decisions[-1].skipped:
            learner.tell(decisions[-1], (0.3, 0.9)[decisions[-1].arm], costs[decisions[-1].arm])
    return decisions


def test_a_safe_learner_keeps_the_budget_to_the_last_unit() -> None:
    """Beside an exact sum; without ``safe`` the same outcomes exceed the budget and end the season."""
    problem = ds.Problem(horizon=400, arms=2, budget=[5.0], cost_max=0.7, features=1)
    spent = {}
    for safe in (True, False):
        rng, total, closed = np.random.default_rng(4), Fraction(0), 0
        learner = LagrangeCBwK(Mean, step=1e-6).start(problem, seed=3, safe=safe)
        while not learner.done:
            left = learner.remaining[0]
            decision = learner.ask(context=[1.0])
            if safe and left < 0.7:
                assert decision.skipped
                assert not decision.mix.any()
                closed += 1
            if not decision.skipped:
                cost = round(float(rng.uniform(0.1, 0.7)), 3)
                learner.tell(decision, 0.9, [cost])
                total += Fraction(str(cost))
        spent[safe] = total
        assert learner.remaining[0] == pytest.approx(float(5 - total), abs=1e-12)
        assert (closed > 0) == safe
        with pytest.raises(HorizonReachedError if safe else BudgetExhaustedError):
            learner.ask(context=[1.0])
    assert spent[True] <= 5 < spent[False]


def test_reservations_of_pending_decisions_close_arms() -> None:
    learner = LagrangeCBwK(Mean).start(ds.Problem(horizon=9, arms=2, budget=[2.5], cost_max=1.0, features=1), safe=True)
    first, second, third = (learner.ask(context=[1.0]) for _ in range(3))
    assert (first.arm, second.arm, third.skipped) == (0, 1, True)
    assert learner.pending == (first, second)
    learner.cancel(first)
    learner.forfeit(second)
    assert learner.remaining.tolist() == [1.5]
    learner.tell(second, 1.0, [0.5])
    assert learner.remaining.tolist() == [2.0]
    assert [model.count for model in learner._models[1]] == [1, 1]
    assert [model.count for model in learner._models[0]] == [0, 0]


def repeated_tell(learner: LagrangeLearner) -> int:
    """The number of outcomes that are learnt from one that is told twice, and then differently."""
    decision = learner.ask(context=[1.0])
    learner.tell(decision, 0.5, [0.25])
    prices = learner.prices.copy()
    learner.tell(decision, 0.5, [0.25])
    assert learner.remaining.tolist() == [5.75]
    with pytest.raises(AlreadyToldError):
        learner.tell(decision, 0.5, [0.5])
    with pytest.raises(AlreadyToldError):
        learner.cancel(decision)
    fits: int = learner._models[decision.arm][0].count
    return fits if np.array_equal(learner.prices, prices) else -1


class Forgetful(dict[int, Any]):
    """A planted fault: it does not remember what was told."""

    def pop(self, number: int, *_: Any) -> Any:
        return self[number]


def test_an_outcome_that_is_told_twice_is_learnt_once() -> None:
    assert repeated_tell(LagrangeCBwK(Mean).start(SMALL)) == 1
    faulty = LagrangeCBwK(Mean).start(SMALL)
    faulty._awaited = Forgetful()
    assert repeated_tell(faulty) != 1


def test_decisions_of_other_learners_are_refused() -> None:
    one, two = (LagrangeCBwK(Mean).start(SMALL) for _ in range(2))
    decision = one.ask(context=[1.0])
    two.ask(context=[1.0])
    with pytest.raises(UnknownDecisionError):
        two.tell(decision, 0.5, [0.1])
    with pytest.raises(UnknownDecisionError):
        one.tell(3, 0.5, [0.1])  # type: ignore[arg-type]
    assert not one._models[0][0].count


def test_only_open_arms_have_a_probability() -> None:
    learner = LagrangeCBwK(Mean).start(SMALL, seed=1, safe=True)
    assert learner.ask(open=["large"], context=[1.0]).name == "large"
    played(learner, 10)
    for _ in range(10):
        assert learner.ask(open=[0], context=[1.0]).mix[1] == 0.0
    assert learner.ask(open=[], context=[1.0]).skipped
    free = learner.remaining[0] - learner.ledger.reserved[0]
    assert free < 1.0  # so that every arm is closed, unless the request is capped
    assert learner.ask(context=[1.0]).skipped
    capped = learner.ask(caps={"usd": {"small": 1.0, "large": 0.01}}, context=[1.0])
    assert capped.mix[0] == 0.0 < capped.mix[1]
    before = learner.round
    for request in ({"open": ["huge"]}, {"caps": {"eur": 1.0}}, {}):
        with pytest.raises(SettingError):
            learner.ask(**request)
    with pytest.raises(ShapeError):
        learner.ask(context=[1.0, 2.0])
    assert learner.round == before


def test_the_admissible_arms_are_those_that_can_be_drawn() -> None:
    """Beside the arms that uniformly random choices may take in a copy; asking for them changes nothing."""
    rng, sizes = np.random.default_rng(1), set()
    problem = ds.Problem(horizon=99, arms=3, budget=[4.0, 4.0], cost_max=[[0.5, 1.0, 2.0], [1.0, 0.5, 0.1]])
    learner = ds.policies.UniformRandom().start(problem, seed=0, safe=True)
    for _ in range(24):
        request: dict[str, Any] = {"open": rng.random(3) < 0.7} if rng.random() < 0.5 else {}
        request |= {"caps": {"cost_0": float(rng.uniform(0.1, 2.0))}} if rng.random() < 0.3 else {}
        before = learner.state_hash()
        found = learner.admissible(**request)
        assert learner.state_hash() == before
        assert found.tolist() == (copy.deepcopy(learner).ask(**request).mix > 0).tolist()
        sizes.add(int(found.sum()))
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, 0.0, 0.9 * decision.reserved)
    assert sizes == {0, 1, 2, 3}


def test_an_announcement_moves_the_choices_at_once() -> None:
    """The costs of the better arm fall to a hundredth: it is chosen before its first new cost is told."""
    shares = {}
    for factor in (1.0, 0.01):
        learner = LagrangeCBwK(Mean, step=0.3).start(SMALL, seed=0)
        played(learner, 40)
        late = learner.ask(open=["large"], context=[1.0])
        learner.announce("large", cost_factor=factor)
        if not late.skipped:
            learner.tell(late, 0.9, 0.3)  # at the price before the announcement
        assert learner._models[1][1].predict([0])[0] == pytest.approx(3.0)
        learner.prices[:] = 0.5  # too high for the old costs, which are three budget rates
        shares[factor] = learner.ask(context=[1.0]).mix[1]
        played(learner, 5, (0.1, 0.3 * factor))
        assert learner._models[1][1].predict([0])[0] == pytest.approx(3.0)
    assert shares[0.01] > 0.9
    assert shares[1.0] < 0.1
    with pytest.raises(OutOfRangeError):
        learner.announce("large", cost_factor=0.0)
    with pytest.raises(SettingError):
        learner.announce("huge", cost_factor=2.0)


@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")
@pytest.mark.parametrize("budget", [0.0, 0.4])
def test_budgets_below_one_cost_give_valid_probabilities(budget: float) -> None:
    learner = LagrangeCBwK(Mean).start(ds.Problem(horizon=30, arms=2, budget=[budget], features=1), seed=0)
    while not learner.done:
        decision = learner.ask(context=[1.0])
        assert np.isfinite(decision.prices).all()
        assert 0.0 <= decision.mix.min() <= decision.mix.sum() <= 1.0 + 1e-9
        if not decision.skipped:
            learner.tell(decision, 0.5, [0.01])
    assert learner.round > 0


class Wild(Mean):
    """A regression that diverges."""

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), np.nan)


def test_settings_and_regressions_are_checked() -> None:
    with pytest.raises(SettingError, match="function that returns"):
        LagrangeCBwK(Ridge())  # type: ignore[arg-type]
    with pytest.raises(OutOfRangeError, match="step"):
        LagrangeCBwK(Ridge, step=0.0)
    with pytest.raises(SettingError, match="partial_fit"):
        LagrangeCBwK(dict).start(SMALL)
    shared = Ridge()
    with pytest.raises(SettingError, match="new object in each call"):
        LagrangeCBwK(lambda: shared).start(SMALL)
    with pytest.raises(SettingError, match="problem"):
        LagrangeCBwK(Ridge).start(3)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="safe"):
        LagrangeCBwK(Ridge).start(SMALL, safe="yes")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="fallback"):
        LagrangeCBwK(Ridge).start(ds.Problem(horizon=9, arms=2, budget=[1.0], features=1, fallback=0))
    learner = LagrangeCBwK(Wild).start(SMALL)
    played(learner, 2)
    with pytest.raises(NotFiniteError, match="predict finite"):
        learner.ask(context=[1.0])


REAL: dict[str, Callable[[], Any]] = {
    "scikit-learn": lambda: SGDRegressor(learning_rate="constant", eta0=0.05, random_state=0),
    "river": lambda: linear_model.LinearRegression(optim.SGD(0.05)),
}


@pytest.mark.parametrize("library", REAL)
def test_regressions_of_real_libraries_use_contexts(library: str) -> None:
    """Against uniformly random arms, which must fall short of the bar."""
    world = segments(horizon=1_000, count=3, arms=3, seed=2)
    best = ds.benchmarks.lp_contextual(world).value
    policies = LagrangeCBwK(REAL[library]), ds.policies.UniformRandom()
    shares = [ds.simulate(world, policy, trials=2, seed=0).reward.mean() / best for policy in policies]
    assert shares[0] > 0.6 > shares[1], shares
