"""``Run``: the results of the trials of one policy on one instance, in the problem's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number
from driftsack.core.floors import QUALITY
from driftsack.core.statistics import standard_error


class HasValue(Protocol):
    """An object with a total reward ``value``, such as a benchmark."""

    @property
    def value(self) -> float:
        """The total reward over the horizon."""


@dataclass(frozen=True, eq=False)
class Run:
    """Results of n trials; all fields except ``overshoot`` count only the rounds before the stopping time.

    Attributes:
        instance: The instance that was simulated.
        policy: The policy that was simulated.
        seed: The seed of the trials.
        reward: (n,) total reward.
        stopping_time: (n,) first round, from 1, whose costs exceeded a budget; T + 1 if none did.
        spent: (n, d) spending of each resource; never above its budget.
        overshoot: (n, d) the amount by which the round that ended the trial exceeded each budget.
        pulls: (n, m) rounds in which each arm was pulled.
        pulls_first_half: (n, m) rounds of the first T/2 in which each arm was pulled.
        times: (p,) up to 512 evenly spaced rounds.
        curve: (n, p) cumulative reward after each of ``times``.
        lp_rescues: (n,) number of step LPs that HiGHS had to solve.
    """

    instance: Any  # an Instance or a ContextualInstance
    policy: Any
    seed: int
    reward: Floats
    stopping_time: Ints
    spent: Floats
    overshoot: Floats
    pulls: Ints
    pulls_first_half: Ints
    times: Ints
    curve: Floats
    lp_rescues: Ints

    @property
    def trials(self) -> int:
        """The number n of trials."""
        return len(self.reward)

    @property
    def reached(self) -> Floats:
        """(n, k) the mean reward, or the share of an arm, that each floor is for, among the answered requests."""
        problem, answered = self.instance.problem, np.maximum(self.pulls.sum(axis=1), 1)
        total = [self.reward if arm == QUALITY else self.pulls[:, arm] for arm in problem.floor_arms.tolist()]
        shares: Floats = np.array(total, dtype=np.float64).reshape(len(total), self.trials).T / answered[:, None]
        return shares

    @property
    def floor_violation(self) -> Floats:
        """(n, k) by how much each trial is below each floor; 0 if it reached the floor.

        >>> import driftsack as ds
        >>> world = ds.Instance.stationary([0.5, 0.9], [[0.1, 0.6]], horizon=500, budget=500)
        >>> run = ds.simulate(world.with_floor(0.8), ds.Adaptive(), trials=5)
        >>> bool(run.floor_violation.max() < 0.05)
        True
        """
        below: Floats = np.maximum([value for _, value in self.instance.problem.floor] - self.reached, 0.0)
        return below

    def regret(self, best: HasValue | float) -> Floats:
        """Compute the regret of each trial.

        Args:
            best: A benchmark, or its value.

        Returns:
            (n,) the value minus the reward of each trial.
        """
        return number(getattr(best, "value", best), "the benchmark's value") - self.reward

    def summary(self) -> dict[str, Any]:
        """Summarise the trials.

        Returns:
            Means and standard errors as plain numbers, with the names of the arms and resources in order.
        """
        return {
            "policy": str(self.policy),
            "trials": self.trials,
            "horizon": self.instance.horizon,
            "noise": self.instance.noise,
            "seed": self.seed,
            "arms": list(self.instance.problem.arm_names),
            "resources": list(self.instance.problem.resource_names),
            "reward": float(self.reward.mean()),
            "reward_se": standard_error(self.reward),
            "stopping_time": float(self.stopping_time.mean()),
            "stopping_time_se": standard_error(self.stopping_time),
            "spent": self.spent.mean(axis=0).tolist(),
            "pulls": self.pulls.mean(axis=0).tolist(),
            "lp_rescues": int(self.lp_rescues.sum()),
        } | self._floors()

    def _floors(self) -> dict[str, Any]:
        """Return the part of the summary that only problems with floors have."""
        floors = self.instance.problem.floor
        if not floors:
            return {}
        columns = zip(floors, self.reached.T, self.floor_violation.T, strict=True)
        return {
            "floors": {
                name: {"floor": floor, "reached": float(reached.mean()), "violation": float(violation.mean())}
                for (name, floor), reached, violation in columns
            }
        }

    def __repr__(self) -> str:
        return f"Run({self.policy}, {self.trials} trials of {self.instance.horizon:,} rounds, seed {self.seed})"

    def __str__(self) -> str:
        summary, problem = self.summary(), self.instance.problem
        resources = [f"{name} " if problem.named_resources else "" for name in problem.resource_names]
        arms = [f"{name} " if problem.named_arms else "" for name in problem.arm_names]
        spent = ", ".join(
            f"{name}{used:,.1f} of {budget:,.1f}"
            for name, used, budget in zip(resources, summary["spent"], problem.budget, strict=True)
        )
        pulls = ", ".join(f"{name}{count:,.1f}" for name, count in zip(arms, summary["pulls"], strict=True))
        return (
            f"{summary['policy']}: {self.trials} trials of {self.instance.horizon:,} rounds, "
            f"{summary['noise']} outcomes, seed {self.seed}\n"
            f"  reward        {summary['reward']:,.1f} ± {summary['reward_se']:,.1f} (mean ± standard error)\n"
            f"  stopping time {summary['stopping_time']:,.1f} ± {summary['stopping_time_se']:,.1f}\n"
            f"  spent         {spent}\n"
            f"  pulls         {pulls}\n"
            f"  LP rescues    {summary['lp_rescues']}" + self._shown_floors(summary)
        )

    @staticmethod
    def _shown_floors(summary: dict[str, Any]) -> str:
        """Return a line for each floor."""
        rows = summary.get("floors", {}).items()
        return "".join(
            f"\n  floor         {name} {row['reached']:.4g} of {row['floor']:.4g}, missed by {row['violation']:.2g} on "
            "average"
            for name, row in rows
        )
