"""Results are bit for bit those of the recorded digests; see :mod:`tests.support.digests`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from tests.support import digests

RECORDED: dict[str, Any] = json.loads(digests.RECORDED.read_text(encoding="utf-8"))
POLICIES = pytest.mark.parametrize("policy", list(RECORDED["simulated"]))


@POLICIES
def test_simulated_results_are_the_same_bits(policy: str) -> None:
    """Every world, three seeds."""
    assert digests.simulated(policy) == RECORDED["simulated"][policy]


@POLICIES
@pytest.mark.parametrize("kind", ["paper", "safe"])
def test_decisions_with_late_feedback_are_the_same_bits(policy: str, kind: str) -> None:
    """Every arm, mix, price and remaining budget, with and without ``safe``."""
    assert digests.transcript(policy, kind == "safe") == RECORDED["transcripts"][policy][kind]


@pytest.mark.slow
def test_the_table_of_reproduce_is_the_same_bits() -> None:
    """Only the short run; ``python -m tests.support.digests`` also computes the long one."""
    assert digests.reproduced(2, 400) == RECORDED["reproduced"]["2 trials of 400 rounds"]


def test_a_change_in_the_last_bit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: one reward of one trial is replaced by the next floating-point number."""
    simulate = ds.simulate

    def nudged(*args: Any, **settings: Any) -> ds.Run:
        run = simulate(*args, **settings)
        reward = run.reward.copy()
        reward[0] = np.nextafter(reward[0], np.inf)
        return dataclasses.replace(run, reward=reward)

    monkeypatch.setattr(ds, "simulate", nudged)
    assert digests.simulated("UniformRandom") != RECORDED["simulated"]["UniformRandom"]
