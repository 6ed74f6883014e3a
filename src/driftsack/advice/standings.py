"""Simulated performance of the candidates on the instances that they are judged on, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.advice.budget_value import with_last_cost
from driftsack.advice.candidates import FAMILIES, Candidate, candidates
from driftsack.advice.judging import Judged
from driftsack.benchmarks import lp_dynamic, present
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.simulation import simulate

TOLERANCE: Final = 0.01  # of the best candidate's reward: within it, the candidate listed first is recommended
BY_CHANCE: Final = 1.02  # shares of the optimum up to this may be above 1 by chance
TIME_SHIFT: Final = 0.1  # of the horizon: how much earlier or later changes come when the timing is shifted


class Standing(NamedTuple):
    """The simulated performance of a candidate."""

    candidate: Candidate
    share: float  # mean over the instances of the reward as a share of the optimum
    low: float  # lower end of the 95% interval of the share over the instances
    high: float  # upper end of that interval

    def to_dict(self) -> dict[str, Any]:
        """Return the standing as plain data: the policy as its spec, without the forecast's arrays."""
        spec = self.candidate.policy.to_spec()
        if "forecast" in spec:
            spec["forecast"] = "the instance fitted to the log"
        about = {"name": self.candidate.name, "family": self.candidate.family, "policy": spec}
        return {**about, "share": self.share, "low": self.low, "high": self.high}


class PresentShares(NamedTuple):
    """The reward of a policy that knows the present means but not the future, as shares of the optimum.

    The gap to 1 is the price of not knowing the future; the gap between a candidate and these shares is the cost of
    learning and of random outcomes (see :func:`driftsack.benchmarks.present`).
    """

    even: float  # at the even pace
    two_speed: float  # with the pacer of ``Adaptive``

    @property
    def best(self) -> float:
        """The larger share of the two."""
        return max(self)


class Standings(NamedTuple):
    """The simulated performance of all candidates."""

    of: tuple[Standing, ...]  # the standing of each candidate
    present: PresentShares  # mean shares over the instances
    # Whether candidates earned more than LP-Dynamic, because the last cost may exceed the budget. Shares are then
    # relative to the optimum of a budget that is larger by the largest cost.
    overshoots: bool


def simulate_candidates(
    judged: Sequence[Judged],
    past: Instance | None,
    trials: int,
    seed: int,
    progress: Callable[[str, int], None] = lambda _name, _done: None,
) -> Standings:
    """Simulate every candidate on every instance.

    The plans of the listed candidates are made from ``past``. The first instance uses ``seed``, the next ones the
    following seeds. ``progress`` is called with a candidate's name and the number of instances simulated so far.
    """
    problem = judged[0].instance.problem
    listed = candidates(problem, past)
    rivals = [candidates(problem, None if past is None else one.past) for one in judged]
    rewards = np.zeros((len(listed), len(judged)))
    for i, candidate in enumerate(listed):
        for k, one in enumerate(judged):
            rewards[i, k] = simulate(one.instance, rivals[k][i].policy, trials=trials, seed=seed + k).reward.mean()
            progress(candidate.name, k + 1)
    instances = [one.instance for one in judged]
    shares = _shares(rewards, instances)
    overshoots = bool(shares.mean(axis=1).max() > BY_CHANCE)
    if overshoots:
        instances = [with_last_cost(one) for one in instances]
        shares = _shares(rewards, instances)
    standings = tuple(_standing(*pair) for pair in zip(listed, shares, strict=True))
    return Standings(standings, _present_shares(instances), overshoots)


def _present_shares(instances: Sequence[Instance]) -> PresentShares:
    """Return the mean shares of the optimum that knowledge of the present means earns."""
    known = [present(one) for one in instances]
    rewards = np.array([[one.even for one in known], [one.two_speed for one in known]])
    even, two_speed = np.minimum(_shares(rewards, instances).mean(axis=1), 1.0).tolist()
    return PresentShares(even, two_speed)


def _shares(rewards: Floats, instances: Sequence[Instance]) -> Floats:
    """(candidates, instances) Rewards over optima; where the optimum is 0, any policy reaches it."""
    optima = np.array([lp_dynamic(one).value for one in instances])
    shares: Floats = np.divide(rewards, optima, out=np.ones_like(rewards), where=optima > 0)
    return shares


def _standing(candidate: Candidate, shares: Floats) -> Standing:
    """Summarise a candidate's shares of the optimum; shares above 1 are due to chance and count as 1."""
    low, high = np.quantile(shares, [0.025, 0.975])
    return Standing(candidate, *(min(float(part), 1.0) for part in (shares.mean(), low, high)))


def first_near_best(standings: Sequence[Standing], families: Sequence[str] = FAMILIES) -> Standing:
    """Return the first candidate of these families whose share is within ``TOLERANCE`` of the best."""
    eligible = [standing for standing in standings if standing.candidate.family in families]
    best = max(standing.share for standing in eligible)
    return next(standing for standing in eligible if standing.share >= (1.0 - TOLERANCE) * best)


def share_with_shifted_timing(standing: Standing, judged: Sequence[Judged], trials: int, seed: int) -> float:
    """Return a candidate's share of the optimum when all changes come ``TIME_SHIFT`` earlier or later."""
    instances = [_shifted(one.instance, (-1) ** k) for k, one in enumerate(judged)]
    policy = standing.candidate.policy
    rewards = [simulate(one, policy, trials=trials, seed=seed + k).reward.mean() for k, one in enumerate(instances)]
    return float(_shares(np.array([rewards]), instances).mean())


def _shifted(instance: Instance, direction: int) -> Instance:
    """Shift the changes of an instance, extending its first or last phase."""
    by = round(direction * TIME_SHIFT * instance.horizon)
    rounds = np.clip(np.arange(instance.horizon) - by, 0, instance.horizon - 1)
    return Instance(instance.problem, instance.rewards, instance.costs, instance.phase[rounds], instance.noise)
