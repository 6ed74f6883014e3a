"""``Run``: what the trials of one policy on one instance gave, in people's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number
from driftsack.core.instance import Instance


class HasValue(Protocol):
    """A benchmark: something with a value."""

    @property
    def value(self) -> float:
        """What it earns over the horizon."""


@dataclass(frozen=True, eq=False)
class Run:
    """Results of n trials; all but ``overshoot`` count the rounds before the stopping time only."""

    instance: Instance
    policy: Any
    seed: int
    reward: Floats  # (n,) total reward
    stopping_time: Ints  # (n,) first round, from 1, whose cost broke a budget; T + 1 if none did
    spent: Floats  # (n, d) of each resource; never above its budget
    overshoot: Floats  # (n, d) by how much the breaking round went beyond each budget
    pulls: Ints  # (n, m) rounds in which each arm was played
    times: Ints  # (p,) up to 512 rounds
    curve: Floats  # (n, p) cumulative reward after each of ``times``
    fallbacks: Ints  # (n,) step LPs that HiGHS had to solve

    @property
    def trials(self) -> int:
        """The number n of trials."""
        return len(self.reward)

    def regret(self, best: HasValue | float) -> Floats:
        """(n,) what a benchmark earns more than each trial."""
        return number(getattr(best, "value", best), "the benchmark's value") - self.reward

    def summary(self) -> dict[str, Any]:
        """Means over the trials and their standard errors, as plain numbers."""
        return {
            "policy": str(self.policy),
            "trials": self.trials,
            "horizon": self.instance.horizon,
            "noise": self.instance.noise,
            "seed": self.seed,
            "reward": float(self.reward.mean()),
            "reward_se": standard_error(self.reward),
            "stopping_time": float(self.stopping_time.mean()),
            "stopping_time_se": standard_error(self.stopping_time),
            "spent": self.spent.mean(axis=0).tolist(),
            "pulls": self.pulls.mean(axis=0).tolist(),
            "fallbacks": int(self.fallbacks.sum()),
        }

    def __repr__(self) -> str:
        return f"Run({self.policy}, {self.trials} trials of {self.instance.horizon:,} rounds, seed {self.seed})"

    def __str__(self) -> str:
        said = self.summary()
        spent = ", ".join(
            f"{used:,.1f} of {budget:,.1f}"
            for used, budget in zip(said["spent"], self.instance.problem.budget, strict=True)
        )
        return (
            f"{said['policy']}: {self.trials} trials of {self.instance.horizon:,} rounds, "
            f"{said['noise']} outcomes, seed {self.seed}\n"
            f"  reward        {said['reward']:,.1f} ± {said['reward_se']:,.1f} (mean ± standard error)\n"
            f"  stopping time {said['stopping_time']:,.1f} ± {said['stopping_time_se']:,.1f}\n"
            f"  spent         {spent}\n"
            f"  pulls         {', '.join(f'{count:,.1f}' for count in said['pulls'])}\n"
            f"  LP fallbacks  {said['fallbacks']}"
        )


def standard_error(values: Floats | Ints) -> float:
    """Standard error of the mean; 0 for a single trial, whose spread nobody knows."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
