"""Simulated performance of the candidates on instances bootstrapped from a log, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.advice.candidates import FAMILIES, Candidate
from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.simulation import simulate

TOLERANCE: Final = 0.005  # of the best candidate's reward: within it, the candidate listed first is recommended
TIME_SHIFT: Final = 0.1  # of the horizon: how much earlier or later changes come when the timing is shifted


class Standing(NamedTuple):
    """The simulated performance of a candidate on the bootstrapped instances.

    Attributes:
        candidate: The candidate.
        reward: Mean total reward over the instances, in the problem's units.
        share: Mean over the instances of the reward as a share of the optimum (LP-Dynamic).
        low: Lower end of the 95% interval of the share over the instances.
        high: Upper end of that interval.
    """

    candidate: Candidate
    reward: float
    share: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return the standing as plain data: the policy as its spec, without the forecast's arrays."""
        spec = self.candidate.policy.to_spec()
        if "forecast" in spec:
            spec["forecast"] = "the instance fitted to the log"
        about = {"name": self.candidate.name, "family": self.candidate.family, "policy": spec}
        return {**about, "reward": self.reward, "share": self.share, "low": self.low, "high": self.high}


def simulate_candidates(
    listed: Sequence[Candidate],
    instances: Sequence[Instance],
    trials: int,
    seed: int,
    progress: Callable[[str, int], None] = lambda _name, _done: None,
) -> list[Standing]:
    """Simulate every candidate on every instance.

    Args:
        listed: The candidates.
        instances: The instances.
        trials: Trials of each candidate on each instance.
        seed: Seed of the first instance; the next ones have the following seeds.
        progress: Called with the candidate's name and the number of instances it has been simulated on.

    Returns:
        The standing of each candidate.
    """
    optima = np.array([lp_dynamic(instance).value for instance in instances])
    standings = []
    for candidate in listed:
        rewards = np.zeros(len(instances))
        for k, instance in enumerate(instances):
            rewards[k] = simulate(instance, candidate.policy, trials=trials, seed=seed + k).reward.mean()
            progress(candidate.name, k + 1)
        standings.append(_standing(candidate, rewards, optima))
    return standings


def _standing(candidate: Candidate, rewards: Floats, optima: Floats) -> Standing:
    """Summarise a candidate's rewards; where the optimum is 0, any policy reaches it."""
    shares = np.divide(rewards, optima, out=np.ones_like(rewards), where=optima > 0)
    low, high = np.quantile(shares, [0.025, 0.975])
    return Standing(candidate, float(rewards.mean()), float(shares.mean()), float(low), float(high))


def first_near_best(standings: Sequence[Standing], families: Sequence[str] = FAMILIES) -> Standing:
    """Return the first candidate of these families whose share is within ``TOLERANCE`` of the best."""
    eligible = [standing for standing in standings if standing.candidate.family in families]
    best = max(standing.share for standing in eligible)
    return next(standing for standing in eligible if standing.share >= (1.0 - TOLERANCE) * best)


def shares_with_shifted_timing(
    standings: tuple[Standing, Standing], instances: Sequence[Instance], trials: int, seed: int
) -> tuple[float, float]:
    """Return both candidates' shares of the optimum when all changes come ``TIME_SHIFT`` earlier or later."""
    first, second = standings
    if len(instances[0].rewards) == 1:
        return first.share, second.share
    shifted = [_shifted(one, round((-1) ** k * TIME_SHIFT * one.horizon)) for k, one in enumerate(instances)]
    again = simulate_candidates([first.candidate, second.candidate], shifted, trials, seed)
    return again[0].share, again[1].share


def _shifted(instance: Instance, by: int) -> Instance:
    """Shift the changes of an instance by ``by`` rounds, extending its first or last phase."""
    rounds = np.clip(np.arange(instance.horizon) - by, 0, instance.horizon - 1)
    return Instance(instance.problem, instance.rewards, instance.costs, instance.phase[rounds], instance.noise)
