"""Floors on a few short environments: the short form of ``python -m lab floors``."""

from __future__ import annotations

import pytest

from lab.floors import ADAPTIVE, BY_HAND, PLANTED, PLAYERS, figure, floor_worlds, play


@pytest.mark.slow
def test_adaptive_loses_less_than_the_rule_by_hand_and_the_planted_one() -> None:
    """On 15 environments of 10,000 rounds: the rule by hand is behind in all of them, the planted competitor in 11."""
    behind = {BY_HAND: 0, PLANTED: 0}
    for world in floor_worlds(seed=1, per_family=1, horizon=10_000):
        ours = play(world, PLAYERS[ADAPTIVE], trials=2)
        for name in behind:
            behind[name] += play(world, PLAYERS[name], trials=1).loss > ours.loss
    assert behind[BY_HAND] >= 13
    assert behind[PLANTED] >= 10


def test_a_missed_bar_is_reported() -> None:
    assert figure("cost", 1.05, "≤ 1.06", 1.06)["holds"] == "yes"
    assert figure("cost", 1.07, "≤ 1.06", 1.06)["holds"] == "no"
