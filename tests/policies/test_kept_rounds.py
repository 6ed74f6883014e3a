"""The rounds that are kept for replays: the latest ones, and a sample of all."""

from __future__ import annotations

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Ints
from driftsack.game.ledger import open_ledger
from driftsack.game.records import new_terms, open_round
from driftsack.policies.parts.kept_rounds import (
    GOLDEN,
    KEPT,
    KeptRounds,
    in_sample,
    keep_latest,
    keep_sample,
    new_kept_rounds,
    replay,
)
from driftsack.policies.parts.linear_bank import mix_coefficients, new_bank
from driftsack.policies.parts.replayed_price import new_replayed_price

PROBLEM = ds.Problem(horizon=10_000, arms=2, budget=[500.0], features=1)


def filled(rounds: int) -> tuple[KeptRounds, KeptRounds]:
    """The latest rounds and the sample; the vector of a round has its number."""
    latest, sample = (new_kept_rounds(2, 1, 2) for _ in range(2))
    round_, zero = open_round(0, open_ledger(PROBLEM), new_terms(PROBLEM)), np.zeros((2, 2))
    for number in range(rounds):
        for kept, keep in ((latest, keep_latest), (sample, keep_sample)):
            keep(kept, number, round_, np.array([number / 10_000, 1.0]), zero, zero + number)
    return latest, sample


def numbers(kept: KeptRounds) -> Ints:
    """The kept rounds in order; their contents belong to them."""
    used = kept.number[: kept.filled[0]]
    np.testing.assert_allclose(kept.contexts[: used.size, 0], used / 10_000)
    np.testing.assert_allclose(kept.noise[: used.size, 1, 1], used)
    return np.sort(used)


def test_the_latest_rounds_are_the_latest() -> None:
    for rounds in (1, KEPT, 3 * KEPT + 7):
        latest, _ = filled(rounds)
        assert numbers(latest).tolist() == list(range(max(rounds - KEPT, 0), rounds))


def test_the_sample_is_the_set_of_its_level() -> None:
    """At all times it is what its definition says of all rounds so far, and it is at least a third full."""
    for rounds in (KEPT, 200, 1_000, 10_000):
        _, sample = filled(rounds)
        kept, level = numbers(sample), int(sample.level[0])
        turns = np.arange(rounds) * GOLDEN % 1.0
        assert kept.tolist() == np.flatnonzero(turns * 2.0**level < 1.0).tolist()
        assert kept.tolist() == [number for number in range(rounds) if in_sample(number, level)]
        assert kept.size >= KEPT / 3


def test_the_sample_has_every_hour_of_the_day() -> None:
    """96 quarter-hours a day. The planted fault: every k-th round, of which 64 of 4,704 would meet few of the hours."""
    _, sample = filled(4_704)
    kept = numbers(sample)
    count = np.bincount(kept % 96 // 12, minlength=8)
    assert count.min() >= 0.5 * kept.size / 8
    assert np.diff(kept).max() <= 4 * 4_704 / kept.size
    every = np.arange(0, 4_704, 96)
    assert np.bincount(every % 96 // 12, minlength=8).min() == 0


def test_a_replay_adds_the_noise_to_present_estimates() -> None:
    """With the factors of the round's list on costs, which are never negative."""
    bank, (kept, _) = new_bank(PROBLEM, 2, 1.0), filled(3)
    kept.noise[:3, :, 1], kept.factors[:3] = -0.2, 3.0
    bank.coefficients[:] = np.arange(8.0).reshape(2, 4) / 10.0
    bank.usefulness[:] = 1.0
    mix_coefficients(bank)
    replay(kept, bank)
    for s in range(3):
        plain = (kept.contexts[s] @ bank.coefficients).reshape(2, 2)
        np.testing.assert_allclose(kept.values[s, :, 0], plain[:, 0] + s)
        np.testing.assert_allclose(kept.values[s, :, 1], np.maximum(3.0 * plain[:, 1] - 0.2, 0.0))


def test_prices_without_kept_rounds_are_refused() -> None:
    """Spending is divided by their number: a file without them would give prices that are no numbers."""
    price = new_replayed_price(PROBLEM, 2, PROBLEM.rate)
    price.check()
    price.held[0], price.latest.filled[0] = 5, 5
    with pytest.raises(ValueError, match="kept rounds"):
        price.check()
    price.sample.filled[0] = 3
    price.check()
