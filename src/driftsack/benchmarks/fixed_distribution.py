r"""OPT_FD: the best fixed mix, played from the first round until the budget is exhausted (Immorlica et al. 2019).

*Fluid*: with the sums of the first τ rounds, :math:`M_\tau = \sum_{t \le \tau} \mu_t` and
:math:`U_\tau = \sum_{t \le \tau} C_t`,

.. math:: \mathrm{OPT_{FD}} = \max_\tau \max_{x \in \Delta_m} \; M_\tau^\top x \quad \text{s.t. } U_\tau x \le B .

Stopping early can be better, because a mix may spend the whole budget while rewards are high. The value is *at least*
LP-Static, the case τ = T; the paper's chain states the opposite (see docs/errata.md). Every τ is considered: since the
sums only grow, :math:`\max\{M_b^\top x : U_a x \le B\}` is an upper bound for all τ in (a, b]. A block of rounds whose
bound does not exceed the best known value is skipped; in all other blocks each τ is solved.

*Hard*: the expected reward of that mix when outcomes are random and the round that breaks a budget ends the game,
estimated by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance, relative_gap
from driftsack.benchmarks.fixed_mix import hard_reward
from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import whole
from driftsack.core.instance import Instance
from driftsack.core.statistics import standard_error
from driftsack.game.units import prices_in_units, units_of
from driftsack.lp.step import LOOSE, certificate, new_step_lp, step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve

BLOCK: Final = 256  # rounds that are bounded together


@dataclass(frozen=True, eq=False)
class FixedDistribution(Benchmark):
    """The best fixed mix: its fluid value, and its expected reward under the hard stop rule, in the problem's units.

    Attributes:
        name: The name of the benchmark.
        value: The fluid value OPT_FD.
        gap: The certified relative gap of the LP at the best τ.
        prices: (d,) the dual variables of that LP: reward per unit of each resource.
        plan: (K, m) the mix, repeated for each distinct row of the instance.
        passes: The number of passes over the rows.
        floor_prices: None, because it has no floors.
        reachable: 1.
        stopping_time: The best number τ of rounds after which the fluid mix stops.
        hard_value: The mean reward of the trials under the hard stop rule; NaN without trials.
        hard_value_se: The standard error of ``hard_value``; NaN with fewer than two trials.
    """

    stopping_time: int = 0
    hard_value: float = math.nan
    hard_value_se: float = math.nan


class Sums(NamedTuple):
    """Running sums of the means over the first rounds, and those of the next block."""

    rewards: Floats  # (m,) sums of mean rewards so far
    costs: Floats  # (d, m) sums of mean costs so far
    block_rewards: Floats  # (m,) sums of mean rewards up to the end of the block
    block_costs: Floats  # (d, m) sums of mean costs of the block alone


def new_sums(arms: int, resources: int) -> Sums:
    """Create sums over no rounds."""
    shape = (resources, arms)
    return Sums(np.zeros(arms), np.zeros(shape), np.zeros(arms), np.zeros(shape))


@kernel
def static_value(lp: Simplex, rewards: Floats, costs: Floats, rounds: float, budget: Floats) -> float:
    """Return the value of the best mix for sums over ``rounds`` rounds; NaN if the LP could not be certified."""
    for i in range(rewards.size):
        lp.objective[i] = rewards[i] / rounds
        for j in range(costs.shape[0]):
            lp.columns[j, i] = costs[j, i] / rounds
    for j in range(budget.size):
        lp.rhs[j] = min(budget[j] / rounds, LOOSE)
    lp.counts[STALE] = 1
    if solve(lp) != OPTIMAL:
        return np.nan
    total = 0.0
    for i in range(rewards.size):
        total += rewards[i] * lp.solution[i]
    return total


@kernel
def add_row(rewards: Floats, costs: Floats, row: int, reward_sums: Floats, cost_sums: Floats) -> None:
    """Add one round of ``row`` to the sums of rewards (m,) and costs (d, m)."""
    for i in range(reward_sums.size):
        reward_sums[i] += rewards[row, i]
        for j in range(cost_sums.shape[0]):
            cost_sums[j, i] += costs[row, j, i]


@kernel
def best_stop(
    lp: Simplex,
    rewards: Floats,
    costs: Floats,
    phase: Phase,
    budget: Floats,
    sums: Sums,
    start: int,
    known: float,
) -> tuple[float, int, int]:
    """Find the best stopping time from round ``start`` on.

    Args:
        lp: The step LP to solve in.
        rewards: (K, m) mean rewards of the distinct rows.
        costs: (K, d, m) mean costs of the distinct rows.
        phase: (T,) the row of each round.
        budget: (d,) the budgets.
        sums: The sums over the first ``start`` rounds; updated.
        start: The number of rounds already considered.
        known: The best value known.

    Returns:
        The best value, at least ``known``; its stopping time, or 0 if the value is ``known``; and the number of rounds
        considered. If an LP cannot be certified, the search ends at its round, and so do the sums: the caller solves
        that LP with HiGHS and continues from there.
    """
    best, stop = known, 0
    for begin in range(start, phase.size, BLOCK):
        # Sums of the block: rewards M_b up to its end, costs of the block alone.
        end = min(begin + BLOCK, phase.size)
        sums.block_rewards[:] = 0.0
        sums.block_costs[:] = 0.0
        for t in range(begin, end):
            add_row(rewards, costs, phase[t], sums.block_rewards, sums.block_costs)
        for i in range(sums.rewards.size):
            sums.block_rewards[i] += sums.rewards[i]  # M_b; the costs stay U_a
        # Solve every τ of the block unless its upper bound, from M_b and U_a, does not exceed the best value.
        if begin == start or not static_value(lp, sums.block_rewards, sums.costs, float(end), budget) <= best:
            for t in range(begin, end):
                add_row(rewards, costs, phase[t], sums.rewards, sums.costs)
                value = static_value(lp, sums.rewards, sums.costs, t + 1.0, budget)
                if np.isnan(value):
                    return best, stop, t + 1
                if value > best:
                    best, stop = value, t + 1
        else:
            # Otherwise add the whole block to the sums.
            for i in range(sums.rewards.size):
                sums.rewards[i] = sums.block_rewards[i]
                for j in range(sums.costs.shape[0]):
                    sums.costs[j, i] += sums.block_costs[j, i]
    return best, stop, phase.size


def fixed_distribution(instance: Instance, trials: int = 0, seed: int = 0) -> FixedDistribution:
    """Compute the fluid OPT_FD and, if requested, simulate its mix under the hard stop rule.

    Args:
        instance: The instance, without contexts.
        trials: The number of simulated trials of the mix; 0 for none.
        seed: The seed of the trials. Trial k depends on ``(seed, k)`` only.

    Returns:
        The benchmark, with its stopping time and the value under the hard stop rule.

    >>> import driftsack as ds
    >>> best = fixed_distribution(ds.instances.example_1())
    >>> round(best.value, 6), best.stopping_time
    (3750.0, 7500)
    """
    check_instance(instance, "fixed_distribution")
    whole(trials, "trials", at_least=0)
    problem = instance.problem
    budget = problem.unit_budget
    rewards, costs = instance.unit_rewards, instance.unit_costs
    # Start from the value at τ = T, which is LP-Static.
    whole_horizon = step_lp(*sums_until(instance, problem.horizon), budget)
    lp = new_step_lp(problem.arms, problem.rate)
    sums = new_sums(problem.arms, problem.resources)
    value = whole_horizon.value * (1 + 1e-12)  # prefer τ = T unless another τ is better by more than rounding
    stop, reached = problem.horizon, 0
    # Search all τ; an LP that the kernel cannot certify is solved by HiGHS.
    while reached < problem.horizon:
        value, better, reached = best_stop(lp, rewards, costs, instance.phase, budget, sums, reached, value)
        stop = better or stop
        if reached < problem.horizon and (fallback := step_lp(sums.rewards, sums.costs, budget).value) > value:
            value, stop = fallback, reached
    # Solve the LP at the best τ with a certificate, and simulate its mix.
    reward_sums, cost_sums = sums_until(instance, stop)
    best = step_lp(reward_sums, cost_sums, budget)
    proof = certificate(reward_sums, cost_sums, budget, best.mix, best.prices)
    hard = np.array([hard_reward(instance, best.mix, seed, trial) for trial in range(trials)])
    return FixedDistribution(
        "OPT_FD (fluid)",
        best.value * problem.reward_max,
        relative_gap(best.value + proof.gap, best.value, stop),
        prices_in_units(units_of(problem), best.prices),
        np.tile(best.mix, (len(instance.rewards), 1)),
        passes=1,
        stopping_time=stop,
        hard_value=float(hard.mean()) * problem.reward_max if trials else math.nan,
        hard_value_se=standard_error(hard) * problem.reward_max if trials > 1 else math.nan,
    )


def sums_until(instance: Instance, stop: int) -> tuple[Floats, Floats]:
    """Return the sums of normalised mean rewards (m,) and mean costs (d, m) over the first ``stop`` rounds."""
    count = np.bincount(instance.phase[:stop], minlength=len(instance.rewards)).astype(np.float64)
    return count @ instance.unit_rewards, np.tensordot(count, instance.unit_costs, axes=1)
