r"""OPT_FD: the best fixed mix, played from the first round until the budget is gone (Immorlica et al. 2019).

*Fluid*: with the sums of the first τ rounds, :math:`M_\tau = \sum_{t \le \tau} \mu_t` and
:math:`U_\tau = \sum_{t \le \tau} C_t`,

.. math:: \mathrm{OPT_{FD}} = \max_\tau \max_{x \in \Delta_m} \; M_\tau^\top x \quad \text{s.t. } U_\tau x \le B .

Stopping early may pay: a mix can spend the whole budget while the world is good. So this is *at least* LP-Static,
which is the case τ = T; the paper's chain has the two the other way round (see docs/errata.md). Every τ is considered:
as sums only grow, :math:`\max\{M_b^\top x : U_a x \le B\}` bounds all τ in (a, b], and a block of rounds whose bound
does not beat the best value known is passed over; in the others each τ is solved.

*Hard*: what that mix earns when outcomes are random and the round that breaks a budget ends the game, by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from driftsack.benchmarks.fixed_mix import hard_reward
from driftsack.benchmarks.result import Benchmark, relative_gap
from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import whole
from driftsack.core.instance import Instance
from driftsack.lp.step import LOOSE, certificate, new_step_lp, step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve

BLOCK: Final = 256
"""Rounds that are passed over or solved together."""


@dataclass(frozen=True, eq=False)
class FixedDistribution(Benchmark):
    """The fluid value, where it stops, and what the mix earns under the hard stop rule."""

    stopping_time: int = 0  # the best τ
    hard_value: float = math.nan  # mean over the trials; NaN if none were asked for
    hard_value_se: float = math.nan


@kernel
def value_at(lp: Simplex, gains: Floats, uses: Floats, rounds: float, rate: Floats) -> float:
    """Max gains x, uses x <= budget, per round of ``rounds``; NaN if the LP could not be certified."""
    for i in range(gains.size):
        lp.objective[i] = gains[i] / rounds
        for j in range(uses.shape[0]):
            lp.columns[j, i] = uses[j, i] / rounds
    for j in range(rate.size):
        lp.rhs[j] = min(rate[j] / rounds, LOOSE)
    lp.counts[STALE] = 1
    if solve(lp) != OPTIMAL:
        return np.nan
    total = 0.0
    for i in range(gains.size):
        total += gains[i] * lp.solution[i]
    return total


@kernel
def add_row(rewards: Floats, costs: Floats, row: int, gains: Floats, uses: Floats) -> None:
    """One more round of ``row`` in the sums."""
    for i in range(gains.size):
        gains[i] += rewards[row, i]
        for j in range(uses.shape[0]):
            uses[j, i] += costs[row, j, i]


@kernel
def best_stop(
    lp: Simplex,
    rewards: Floats,
    costs: Floats,
    phase: Phase,
    budget: Floats,
    sums: tuple[Floats, Floats, Floats, Floats],
    start: int,
    known: float,
) -> tuple[float, int, int]:
    """From round ``start`` on: the best value above ``known``, its rounds (0: none), and the rounds looked at.

    Looks at all, unless an LP cannot be certified: then the sums stand at that round and the caller goes on.
    """
    gains, uses, next_gains, next_uses = sums
    best, stop = known, 0
    for begin in range(start, phase.size, BLOCK):
        end = min(begin + BLOCK, phase.size)
        next_gains[:] = 0.0
        next_uses[:] = 0.0
        for t in range(begin, end):
            add_row(rewards, costs, phase[t], next_gains, next_uses)
        for i in range(gains.size):
            next_gains[i] += gains[i]
        if begin == start or not value_at(lp, next_gains, uses, float(end), budget) <= best:
            for t in range(begin, end):
                add_row(rewards, costs, phase[t], gains, uses)
                value = value_at(lp, gains, uses, t + 1.0, budget)
                if np.isnan(value):
                    return best, stop, t + 1
                if value > best:
                    best, stop = value, t + 1
        else:
            for i in range(gains.size):
                gains[i] = next_gains[i]
                for j in range(uses.shape[0]):
                    uses[j, i] += next_uses[j, i]
    return best, stop, phase.size


def fixed_distribution(instance: Instance, trials: int = 0, seed: int = 0) -> FixedDistribution:
    """The fluid OPT_FD and, with ``trials``, the Monte-Carlo value of its mix under the hard stop rule.

    >>> import driftsack as ds
    >>> best = fixed_distribution(ds.instances.example_1())
    >>> round(best.value, 6), best.stopping_time
    (3750.0, 7500)
    """
    whole(trials, "trials", at_least=0)
    problem = instance.problem
    budget = problem.unit_budget
    rewards, costs = instance.unit_rewards, instance.unit_costs
    whole_horizon = step_lp(*sums_until(instance, problem.horizon), budget)
    lp = new_step_lp(problem.arms, problem.rate)
    empty = (np.zeros(problem.arms), np.zeros((problem.resources, problem.arms)))
    sums = (empty[0].copy(), empty[1].copy(), empty[0].copy(), empty[1].copy())
    value = whole_horizon.value * (1 + 1e-12)  # τ = T unless another is better by more than rounding
    stop, reached = problem.horizon, 0
    while reached < problem.horizon:
        value, better, reached = best_stop(lp, rewards, costs, instance.phase, budget, sums, reached, value)
        stop = better or stop
        if reached < problem.horizon and (here := step_lp(sums[0], sums[1], budget).value) > value:
            value, stop = here, reached
    gains, uses = sums_until(instance, stop)
    best = step_lp(gains, uses, budget)
    proof = certificate(gains, uses, budget, best.mix, best.prices)
    hard = np.array([hard_reward(instance, best.mix, seed, trial) for trial in range(trials)])
    return FixedDistribution(
        "OPT_FD (fluid)",
        best.value * problem.reward_max,
        relative_gap(best.value + proof.gap, best.value, stop),
        best.prices * problem.reward_max / np.asarray(problem.cost_max),
        np.tile(best.mix, (len(instance.rewards), 1)),
        passes=1,
        stopping_time=stop,
        hard_value=float(hard.mean()) * problem.reward_max if trials else math.nan,
        hard_value_se=float(hard.std(ddof=1) / math.sqrt(trials)) * problem.reward_max if trials > 1 else math.nan,
    )


def sums_until(instance: Instance, stop: int) -> tuple[Floats, Floats]:
    """Sums of mean rewards (m,) and mean costs (d, m) over the first ``stop`` rounds."""
    count = np.bincount(instance.phase[:stop], minlength=len(instance.rewards)).astype(np.float64)
    return count @ instance.unit_rewards, np.tensordot(count, instance.unit_costs, axes=1)
