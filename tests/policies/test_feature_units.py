"""Features that wander: told from jumps, and a linear choice in their new units predicts what it did before."""

from __future__ import annotations

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.game.records import new_outcome, new_terms
from driftsack.policies import LinearBwK
from driftsack.policies.parts.feature_units import convert_bank, convert_rounds, follow_units
from driftsack.policies.parts.linear_bank import LinearBank, estimate, observe_context
from driftsack.policies.parts.linear_choice import LinearChoice, new_choice
from driftsack.policies.parts.standardiser import LARGEST, Standardiser, new_standardiser, note_context, standardise

PROBLEM = ds.Problem(horizon=1_000, arms=2, budget=[200.0], features=2)


def learnt(rows: Floats) -> LinearChoice:
    """A choice that has learnt from the vectors in ``rows``, with the first of them kept."""
    rng, choice, terms = np.random.default_rng(0), new_choice(PROBLEM, 3, 0.3, 0.01, None), new_terms(PROBLEM)
    for t, x in enumerate(rows):
        observe_context(choice.bank, new_outcome(terms, t, t % 2, 1.0, rng.random(), rng.random(1)), x)
    choice.price.sample.contexts[:9], choice.price.sample.filled[0] = rows[:9], 9
    return choice


def predicted(bank: LinearBank, x: Floats) -> Floats:
    """The estimates at a vector, and their standard deviations."""
    estimate(bank, x)
    return np.stack([bank.mean, bank.sd])


def test_other_units_predict_the_same() -> None:
    """With x = 1.2 x' + 0.1 for the second feature; the estimates in the old units are another matter."""
    rows = np.column_stack([np.random.default_rng(1).normal(0.0, 0.5, (80, 2)), np.ones(80)])
    choice, x = learnt(rows), np.array([0.3, -0.4, 1.0])
    new, before = (x - [0.0, 0.1, 0.0]) / [1.0, 1.2, 1.0], predicted(choice.bank, x)
    assert not np.allclose(predicted(choice.bank, new), before, rtol=1e-2)
    convert_bank(choice.bank, 1, 1.2, 0.1)
    convert_rounds(choice.price.sample, 1, 1.2, 0.1)
    np.testing.assert_allclose(predicted(choice.bank, new), before, rtol=1e-9)
    np.testing.assert_allclose(choice.price.sample.contexts[:9, 1], (rows[:9, 1] - 0.1) / 1.2)
    choice.bank.check()


def test_units_of_any_size_leave_a_sound_belief() -> None:
    """A feature that was constant and then moves by a factor of 10^9: variances stay those of a prior at most."""
    rows = np.column_stack([np.random.default_rng(1).normal(0.0, 0.5, (80, 2)), np.ones(80)])
    choice = learnt(rows)
    for factor, offset in ((1e9, 0.0), (1.0, 7.0), (1e3, -7.0), (1.0, 1e6)):
        convert_bank(choice.bank, 0, factor, offset)
        choice.bank.check()
        assert choice.bank.covariance[:, :, 0, 0].max() <= 1.0 + 1e-9
        assert choice.bank.covariance[:, :, 2, 2].max() <= 10.0 + 1e-9


def jumps(features: Standardiser, values: Floats) -> int:
    """How often a single feature jumps."""
    return sum(note_context(features, np.array([value])) for value in values)


def hours(days: int) -> Floats:
    """The hour of the day, 600 requests a day: it wanders, and falls from 24 to 0 at midnight."""
    return np.arange(600 * days) % 600 / 25.0


def test_wandering_features_are_told_from_jumps() -> None:
    """The hour of the day never jumps, because it returns to a known place; a new measurement does."""
    rng = np.random.default_rng(2)
    assert jumps(new_standardiser(1), hours(5)) == 0
    assert jumps(new_standardiser(1, follows=False), hours(5)) > 5  # the planted fault: every move is a jump
    assert jumps(new_standardiser(1), rng.normal(0.0, 1.0, 2_000) + 6.0 * (np.arange(2_000) > 999)) == 1
    drifting = np.cumsum(rng.normal(0.0, 0.05, 3_000)) + rng.normal(0.0, 0.3, 3_000)
    assert jumps(new_standardiser(1), drifting) == 0


def test_vectors_follow_from_each_other() -> None:
    """While a wandering feature is measured again, x = factor x' + offset at every context, unless they are limited."""
    features, changed = new_standardiser(1), 0
    for value in hours(2):
        standardise(features, np.array([value]))
        before = features.x[0]
        note_context(features, np.array([value]))
        standardise(features, np.array([value]))
        if features.moved[0] > 0 and max(abs(before), abs(features.x[0])) < LARGEST:
            changed += 1
            assert features.factor[0] * features.x[0] + features.offset[0] == pytest.approx(before, abs=1e-9)
    assert changed > 100


def test_only_features_that_moved_are_converted() -> None:
    rows = np.column_stack([np.random.default_rng(1).normal(0.0, 0.5, (80, 2)), np.ones(80)])
    choice, features = learnt(rows), new_standardiser(2)
    before = choice.bank.coefficients.copy()
    follow_units(choice, features)
    np.testing.assert_array_equal(choice.bank.coefficients, before)
    features.moved[0], features.factor[1] = 1, 2.0
    follow_units(choice, features)
    np.testing.assert_array_equal(choice.bank.coefficients, before * [[1.0], [2.0], [1.0]])


def share_of_informed(seed: int) -> float:
    """The reward on linear means whose features wander, relative to the best arm at the best price of the means."""
    rng, rounds = np.random.default_rng(seed), 5_000
    noise, contexts = rng.standard_normal((rounds, 3)), np.zeros((rounds, 3))
    for t in range(1, rounds):
        contexts[t] = 0.995 * contexts[t - 1] + np.sqrt(1.0 - 0.995**2) * noise[t]
    effects, costs = rng.normal(0.0, 0.15, (3, 3)), np.array([0.3, 0.5, 0.7])
    means = np.clip([0.4, 0.5, 0.6] + contexts @ effects, 0.01, 0.99)
    rewards = (rng.random((rounds, 3)) < means).astype(np.float64)
    spent = (rng.random((rounds, 3)) < costs).astype(np.float64)[:, None, :]
    world = ds.ContextualInstance.by_table(contexts, rewards, spent, [0.25 * rounds], noise="deterministic")
    low, high = 0.0, 10.0
    for _ in range(40):  # the price at which the best arms spend the budget
        price = 0.5 * (low + high)
        values = means - price * costs
        use = np.where(values.max(axis=1) > 0.0, costs[values.argmax(axis=1)], 0.0).mean()
        low, high = (price, high) if use > 0.25 else (low, price)
    values = means - high * costs
    best = (means[np.arange(rounds), values.argmax(axis=1)] * (values.max(axis=1) > 0.0)).sum()
    return float(ds.simulate(world, LinearBwK(), trials=2, seed=seed).reward.mean() / best)


def test_it_learns_where_features_wander() -> None:
    """As prices and temperatures do. When they were taken for new measurements, the share was 0.86."""
    assert np.mean([share_of_informed(seed) for seed in range(4)]) > 0.9
