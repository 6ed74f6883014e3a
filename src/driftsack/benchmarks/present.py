r"""The reward of a policy that knows the present means exactly, but not the future: a reference without foresight.

The budgets are paid in expectation, so both values are deterministic. In round t, with the remaining budgets
:math:`B_t`,

- *even pace*: the mix solves the step LP of the present means at the remaining budget per remaining round,

  .. math:: \max_x \; \mu_t^\top x \quad \text{s.t. } C_t x \le \frac{B_t}{T - t + 1},\; x \in \Delta_m,
            \qquad B_{t+1} = B_t - C_t x_t ;

- *two speeds*: the mix solves the LP of the pacer of ``Adaptive`` (:mod:`driftsack.game.two_speed`) on the present
  means. It saves where the present price is below its long-run price, which it computes from the means of the past, and
  spends up to twice the even pace where it is above. The last round spends at most the remaining budget.

Both sequences of mixes are feasible in LP-Dynamic, so neither value exceeds it. The gap between LP-Dynamic and these
values is the price of not knowing the future; the gap between these values and a policy is the cost of learning, of
random outcomes and of its own pacing. They are not upper bounds: a rule that happens to save before exceptionally good
rounds earns more. The computation takes T small linear programs, each warm-started from the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance
from driftsack.benchmarks.lp_dynamic import exclude_unaffordable
from driftsack.core.arrays import Floats, Phase
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger, open_ledger
from driftsack.game.records import Terms, new_terms, open_round
from driftsack.game.two_speed import TwoSpeed, follow, new_tiered_lp, new_two_speed, read_tiers, set_tiers
from driftsack.lp.step import rescue_failed
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve

EVEN: Final = 1.0
TWO: Final = 2.0  # the largest planned spending of a round in units of the even pace, as in ``Adaptive``


@dataclass(frozen=True, eq=False)
class Present(Benchmark):
    """The reward with the present means known and the future unknown, in the problem's units.

    Attributes:
        name: The name of the benchmark.
        value: The expected reward at the even pace.
        gap: 0: both values are computed, not bounded.
        prices: None, because the prices differ between rounds.
        plan: None, because the mixes differ between rounds.
        passes: The number of passes over the rounds.
        floor_prices: None, because it has no floors.
        reachable: 1.
        two_speed: The expected reward at two speeds.
    """

    two_speed: float = 0.0

    @property
    def even(self) -> float:
        """The expected reward at the even pace, the same as ``value``."""
        return self.value

    def __str__(self) -> str:
        return f"{self.name}: {self.even:,.6g} at the even pace, {self.two_speed:,.6g} at two speeds"


class Course(NamedTuple):
    """A course of the game in expectation, with normalised outcomes.

    Attributes:
        pacer: The pacer; it is even if its speed is 1.
        lp: The LP of the round.
        ledger: Budgets and spending in expectation.
        terms: The terms of every round.
        largest: (1 + d,) the units of the LP in those of the pacer: 1 for rewards, 1 / b for costs.
        means: (m, 1 + d) the present means in the units of the pacer.
        mix: (m,) the mix of the round.
        prices: (d,) its prices.
        totals: (2,) the reward so far, and the sum over the rounds so far of the mean reward of an arm.
    """

    pacer: TwoSpeed
    lp: Simplex
    ledger: Ledger
    terms: Terms
    largest: Floats
    means: Floats
    mix: Floats
    prices: Floats
    totals: Floats


@kernel
def run_rounds(course: Course, rewards: Floats, costs: Floats, phase: Phase, first: int, solved: bool) -> int:
    """Advance to the first round whose LP cannot be certified, or to T.

    Args:
        course: The course; it is advanced.
        rewards: (K, m) mean rewards of the distinct rows.
        costs: (K, d, m) mean costs of the distinct rows.
        phase: (T,) the row of each round.
        first: The round at which to continue.
        solved: Whether the LP of that round has been written, and solved by another solver.

    Returns:
        The round that failed, or T.
    """
    for t in range(first, phase.size):
        if not solved:
            if t == 0 or phase[t] != phase[t - 1]:
                load_means(course, rewards, costs, phase[t])
            write_program(course, t)
        solved = False
        if solve(course.lp) != OPTIMAL:
            return t
        read_tiers(course.pacer, course.lp, course.largest, course.mix, course.prices)
        spend(course, rewards, costs, phase[t])
    return phase.size


@kernel
def load_means(course: Course, rewards: Floats, costs: Floats, k: int) -> None:
    """Write the means of row ``k`` for the pacer and into the LP."""
    for i in range(rewards.shape[1]):
        course.means[i, 0] = rewards[k, i]
        for j in range(costs.shape[1]):
            course.means[i, 1 + j] = costs[k, j, i] * course.largest[1 + j]
            course.lp.columns[j, i] = costs[k, j, i]
    course.lp.counts[STALE] = 1


@kernel
def write_program(course: Course, t: int) -> None:
    """Set the pace of round ``t`` and write its LP; the last round cannot spend more than what is left."""
    pacer, lp, means = course.pacer, course.lp, course.means
    arms, resources = means.shape[0], course.prices.size
    total = 0.0
    for i in range(arms):
        total += max(means[i, 0], 0.0)
        lp.objective[i] = means[i, 0]
    course.totals[1] += total / arms
    round = open_round(t, course.ledger, course.terms)
    follow(pacer, round, means, means, course.totals[1] / (t + 1))
    set_tiers(pacer, lp, course.largest)
    if round.rounds_left < pacer.speed:
        for j in range(resources):
            lp.rhs[resources + 1 + j] = 0.0


@kernel
def spend(course: Course, rewards: Floats, costs: Floats, k: int) -> None:
    """Earn and spend what the mix of the round is expected to, in row ``k``."""
    for i in range(course.mix.size):
        course.totals[0] += course.mix[i] * rewards[k, i]
        for j in range(course.prices.size):
            course.ledger.spent[j] += course.mix[i] * costs[k, j, i]


def present(instance: Instance) -> Present:
    """Compute what a policy earns that knows the present means and not the future, at the even pace and at two speeds.

    Args:
        instance: The instance, without contexts.

    Returns:
        The benchmark: ``even`` and ``two_speed``, without prices and plan.

    Raises:
        SettingError: If the instance has contexts.

    >>> import driftsack as ds
    >>> print(present(ds.instances.example_3(alpha=0.5)))       # LP-Dynamic: 2,500
    present means: 2,125 at the even pace, 2,106.84 at two speeds
    """
    check_instance(instance, "present")
    scale = instance.problem.reward_max
    even, two_speed = (scale * expected_reward(instance, speed) for speed in (EVEN, TWO))
    return Present("present means", even, 0.0, passes=2, two_speed=two_speed)


def expected_reward(instance: Instance, speed: float) -> float:
    """Return the normalised expected reward of the pacer with this speed on the present means."""
    # Without a budget, a resource only excludes the arms that use it.
    budget, costs = instance.problem.unit_budget, instance.unit_costs
    rewards = exclude_unaffordable(instance.unit_rewards, costs, budget == 0.0)
    if (budget == 0.0).any():
        costs = np.where((budget == 0.0)[:, None], 0.0, costs)
    course = new_course(Problem(instance.horizon, instance.arms, np.where(budget > 0.0, budget, 1.0)), speed)
    # Run in the kernel; HiGHS solves the LPs that it cannot certify.
    done, rescued = 0, False
    while (done := int(run_rounds(course, rewards, costs, instance.phase, done, rescued))) < instance.horizon:
        rescued = rescue_failed(course.lp)
    return float(course.totals[0])


def new_course(problem: Problem, speed: float) -> Course:
    """Return the course of a problem before its first round."""
    arms, resources = problem.arms, problem.resources
    pacer = new_two_speed(problem, speed)
    return Course(
        pacer=pacer,
        lp=new_tiered_lp(arms, resources),
        ledger=open_ledger(problem),
        terms=new_terms(problem),
        largest=np.concatenate([[1.0], 1.0 / pacer.unit]),
        means=np.zeros((arms, 1 + resources)),
        mix=np.zeros(arms),
        prices=np.zeros(resources),
        totals=np.zeros(2),
    )
