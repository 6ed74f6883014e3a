"""What contexts are worth on a log: found where they matter, denied where they are noise."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import CannotAnswerError, SettingError
from driftsack.logs.outcome_model import cross_fitted, draw_folds

ROWS = 3_000
BUDGET = 0.3 * ROWS
MEANS = np.array([0.4, 0.5, 0.6])
SPENDING = np.array([0.2, 0.4, 0.7])


def useful() -> ds.ContextualInstance:
    """Three kinds of request with a best arm each."""
    rewards = [[0.9, 0.2, 0.3], [0.3, 0.8, 0.4], [0.2, 0.3, 0.9]]
    costs = np.broadcast_to([[0.3, 0.5, 0.6]], (3, 1, 3))
    return ds.ContextualInstance.by_table(np.eye(3), rewards, costs, BUDGET, horizon=ROWS)


def useless(features: int = 6) -> ds.ContextualInstance:
    """Features that say nothing."""
    nothing = np.zeros((3, features))
    return ds.ContextualInstance.linear(
        lambda rng, count: rng.standard_normal((count, features)),
        np.column_stack([nothing, MEANS]),
        np.column_stack([nothing, SPENDING])[None],
        BUDGET,
        horizon=ROWS,
    )


@pytest.mark.slow
def test_the_value_of_useful_contexts_is_found() -> None:
    """Of 20 intervals of 95%, fewer than 16 hold the truth in 3 of 1,000 cases; the plan loses a little to noise."""
    world = useful()
    truth = ds.benchmarks.value_of_context(world)
    found = [ds.benchmarks.value_of_context(ds.gather(world, seed=seed), budget=BUDGET) for seed in range(20)]
    assert sum(one.low <= truth.gain <= one.high for one in found) >= 16
    assert all(one.pays for one in found)
    assert np.mean([one.with_context for one in found]) == pytest.approx(truth.with_context.value, rel=0.05)
    assert np.mean([one.without for one in found]) == pytest.approx(truth.without.value, rel=0.05)


def test_useless_contexts_are_not_said_to_pay_but_naive_optima_say_so() -> None:
    """More than 3 of 20 intervals above 0 would come with probability 2 in 1,000 if each had 2.5%."""
    world, naive = useless(), []
    logs = [ds.gather(world, seed=seed) for seed in range(20)]
    assert sum(log.value_of_context(BUDGET).pays for log in logs) <= 3
    for log in logs:  # the planted fault: the optima of predicted means are believed
        fitted = cross_fitted(log, draw_folds(len(log), 5, 0))
        means = fitted[:, :, 0], fitted[:, :, 1:].transpose(0, 2, 1)
        assert log.contexts is not None
        naive.append(ds.benchmarks.value_of_context(ds.ContextualInstance.by_table(log.contexts, *means, BUDGET)).gain)
    assert min(naive) > 0.01 * ROWS


def test_the_horizon_scales_the_value() -> None:
    log = ds.gather(useful(), seed=1)
    one, ten = log.value_of_context(BUDGET), log.value_of_context(10 * BUDGET, horizon=10 * ROWS)
    np.testing.assert_allclose(np.array(ten), 10 * np.array(one))
    assert str(one).startswith("with contexts ")


def test_full_information_needs_no_propensities() -> None:
    log = ds.gather(useful(), seed=1)
    assert log.contexts is not None
    table = np.concatenate([useful().rewards[0, :, :, None], useful().costs[0].transpose(0, 2, 1)], axis=2)
    exact = dataclasses.replace(log, table=table[log.contexts.argmax(axis=1)], propensity=None)
    truth = ds.benchmarks.value_of_context(useful())
    assert exact.value_of_context(BUDGET).gain == pytest.approx(truth.gain, rel=0.1)


def test_what_cannot_be_answered_is_refused() -> None:
    log = ds.gather(useful(), seed=1)
    with pytest.raises(CannotAnswerError, match="no column propensity"):
        dataclasses.replace(log, propensity=None).value_of_context(BUDGET)
    with pytest.raises(CannotAnswerError, match="no contexts"):
        dataclasses.replace(log, contexts=None, features=None).value_of_context(BUDGET)
    with pytest.raises(SettingError, match="a log has no budget; pass budget="):
        ds.benchmarks.value_of_context(log)  # type: ignore[call-overload]
    with pytest.raises(SettingError, match="a ContextualInstance has its own budget"):
        ds.benchmarks.value_of_context(useful(), budget=1.0)  # type: ignore[call-overload]
    with pytest.raises(SettingError, match="must be a ContextualInstance or a log"):
        ds.benchmarks.value_of_context(3)  # type: ignore[call-overload]
