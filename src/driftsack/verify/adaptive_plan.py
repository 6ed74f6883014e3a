r"""Check the planned spending of ``Adaptive``: propositions 1 to 4 in docs/theory-adaptive.md.

The policy is run round by round, to compare its planned spending :math:`\tilde C_t x_t` with the true means.
Costs are in units of the budget rate: the remaining rate :math:`\rho_t` is 1 in the first round.

The trivial competitor is a plan that spends and earns nothing. It satisfies every bound on spending, so each check also
requires that enough is spent, with a margin of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.instance import Instance, Noise
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import charge, is_broken, open_ledger
from driftsack.game.protocol import STUCK, choose, learn
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.game.state_tree import solve_stuck
from driftsack.game.two_speed import warm_up_rounds
from driftsack.game.world import draw_outcome, world_of
from driftsack.lp.fallback import rescue
from driftsack.lp.step import step_lp
from driftsack.policies import Adaptive
from driftsack.verify.concentration import judge_failures
from driftsack.verify.statement import (
    FAILS,
    HOLDS,
    ROUNDING,
    Case,
    Effort,
    Finding,
    Statement,
    critical_factor,
    judge_margins,
)

SOURCE: Final = "Adaptive"
IDLE: Final = "a plan that spends and earns nothing"
RESCUED: Final = 7
DELTA: Final = 0.1  # allowed probability of a larger deviation
LEAST_FULL: Final = 0.2  # share of rounds that plan their full limit, averaged over the worlds; measured: 0.5
LEAST_SPENT: Final = 0.8  # planned share of the budget or of the remaining rate, averaged; measured: 0.93 to 0.99


class PlanTrace(NamedTuple):
    """What was planned and what happened in n rounds; costs in units of the budget rate."""

    pace: Floats  # (n, d) the remaining rate
    planned: Floats  # (n, d) drawn costs of the mix; 0 before the first outcome
    expected: Floats  # (n, d) true mean costs of the mix
    spent: Floats  # (n, d) costs of the round
    reward: Floats  # (n,) true mean reward of the mix
    overrated: Floats  # (n,) drawn reward of the mix minus its true mean
    pessimism: Floats  # (n,) LP value on the true means, at the remaining rate, minus that on the draws, if positive
    largest: Floats  # (n, d) the largest cost observed before the round


def follow(
    policy: Adaptive, instance: Instance, seed: int, account: bool = False, rescued: bool = False, valued: bool = False
) -> PlanTrace:
    """Run a policy until the horizon or until a budget is exceeded; the round that exceeds it is included.

    ``account`` charges the planned costs to the budgets instead of the realised ones. ``rescued`` lets HiGHS solve the
    program of every seventh round again, as it does when the simplex fails. ``valued`` computes ``pessimism``, at the
    cost of two more step LPs per round.
    """
    # Start the game.
    problem, world, rate = instance.problem, world_of(instance), np.asarray(instance.problem.rate)
    state, terms, ledger = policy.new_state(problem), new_terms(problem), open_ledger(problem)
    nature, rng = (generator(part) for part in trial_seeds(seed, 0))
    mix, prices, costs = np.zeros(problem.arms), np.zeros(problem.resources), np.zeros(problem.resources)
    rows = []
    for t in range(problem.horizon):
        # Choose an arm; HiGHS solves the program where the simplex is stuck.
        largest, pace = state.belief.largest[1:].copy(), (ledger.budget - ledger.spent).clip(0.0) / rate
        pace /= problem.horizon - t
        arm = choose(state, open_round(t, ledger, terms), rng, mix, prices)
        if rescued and arm != STUCK and t % RESCUED == RESCUED - 1:
            rescue(state.lp)
            arm = choose(state, open_round(t, ledger, terms), rng, mix, prices)
        if arm == STUCK:
            solve_stuck(state)
            arm = choose(state, open_round(t, ledger, terms), rng, mix, prices)
        # Compare the plan with the true means.
        rewards, means = world.rewards[world.phase[t]], world.costs[world.phase[t]]
        drawn = state.drawn
        planned, below = mix @ drawn[:, 1:], 0.0
        if valued:
            here = step_lp(rewards, means, pace * rate).value
            below = max(here - step_lp(drawn[:, 0], drawn[:, 1:].T, pace).value, 0.0)
        # Draw the outcome, charge its costs and learn from it.
        costs[:] = 0.0
        outcome = draw_outcome(world, t, arm, costs, nature) if arm != SKIP else 0.0
        gain = float(mix @ rewards)
        rows.append(
            (pace, planned, means @ mix / rate, costs / rate, gain, float(mix @ drawn[:, 0]) - gain, below, largest)
        )
        charge(ledger, planned * rate if account else costs)
        if not account and is_broken(ledger):
            break
        learn(state, new_outcome(terms, t, arm, 1.0 if arm == SKIP else mix[arm], outcome, costs))
    return PlanTrace(*(np.array(column) for column in zip(*rows, strict=True)))


def idle_plan(instance: Instance, valued: bool = False) -> PlanTrace:
    """A plan that spends nothing and earns nothing: the remaining rate rises, and a round may be worth up to 1."""
    rounds, resources = instance.horizon, instance.resources
    pace = np.repeat(rounds / np.arange(rounds, 0, -1.0)[:, None], resources, axis=1)
    nothing, no_reward = np.zeros((rounds, resources)), np.zeros(rounds)
    return PlanTrace(pace, nothing, nothing, nothing, no_reward, no_reward, np.full(rounds, float(valued)), nothing)


def run_plan(case: Case, policy: Adaptive, instance: Instance, seed: int, **options: bool) -> PlanTrace:
    """What the policy plans, or what the trivial competitor does; ``options`` are those of :func:`follow`."""
    if case is Case.TRIVIAL:
        return idle_plan(instance, options.get("valued", False))
    return follow(policy, instance, seed, **options)


def random_worlds(effort: Effort, salt: int, horizon: int) -> Iterator[tuple[Instance, float]]:
    """Yield instances of every kind, also with tiny or loose budgets and rising rewards, and a speed for each."""
    rng = effort.rng(salt)
    for k in range(effort.pick(12, 60)):
        arms, resources = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        rewards = np.tile(rng.uniform(0.1, 0.9, arms), (horizon, 1))
        if k % 2:
            rewards *= np.linspace(0.05, 1.0, horizon)[:, None]
        costs = np.tile(rng.uniform(0.05, 1.0, (resources, arms)), (horizon, 1, 1))
        budget = horizon * np.exp(rng.uniform(np.log(0.02), np.log(1.5 if k % 5 == 0 else 0.4), resources))
        noises: tuple[Noise, ...] = ("bernoulli", "uniform", "deterministic")
        yield Instance.from_arrays(rewards, costs, budget, noise=noises[k % 3]), (1.0, 1.5, 2.0, 3.0)[k % 4]


def planned_spending(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check C̃x ≤ θρ in every round, rescued ones included, and C̃x ≤ ρ in the warm-up."""
    margins, full, largest = list[float](), list[float](), 0.0
    for k, (world, speed) in enumerate(random_worlds(effort, 41, effort.pick(100, 400))):
        plan = run_plan(case, Adaptive(speed=speed), world, effort.seed + k, rescued=True)
        allowed = np.full(len(plan.pace), speed)
        allowed[: warm_up_rounds(world.horizon)] = 1.0
        limit = allowed[:, None] * plan.pace
        seen = np.maximum(plan.largest, 1e-9)
        margins += ((factor * limit - plan.planned) / seen)[1:].min(axis=1).tolist()
        full.append(float((((limit - plan.planned) / seen)[1:].min(axis=1) < ROUNDING).mean()))
        largest = max(largest, float((plan.planned / np.maximum(limit, 1e-9))[1:][(limit > 1e-3)[1:]].max(initial=0.0)))
    margins.append(float(np.mean(full)) - LEAST_FULL)
    note = f"(θρ - planned spending) / largest cost seen, in each round; all of θρ in {np.mean(full):.0%} of the rounds"
    return judge_margins(margins, note, power=min(largest, 1.0))


def planned_account(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that an account that pays the plan has at least B Π(1 - θ/r) with n rounds left, up to the last cost."""
    horizon, used, plans = effort.pick(100, 400), list[float](), list[tuple[float, PlanTrace]]()
    for k, (world, speed) in enumerate(random_worlds(effort, 42, horizon)):
        plan = run_plan(case, Adaptive(speed=speed), world, effort.seed + k, account=True)
        plans.append((speed, plan))
        used.append(float(plan.planned.sum(axis=0).max()) / horizon)

    def margins(level: float) -> list[float]:
        result = []
        for speed, plan in plans:
            rounds_left = np.arange(horizon, 0, -1)
            speeds = max(level * speed, 1.0)
            factors = np.concatenate([[1.0], np.cumprod(np.maximum(1.0 - speeds / rounds_left[:-1], 0.0))])
            left = plan.pace * rounds_left[:, None] / horizon  # as a share of the budget
            result += (left - factors[:, None]).min(axis=1).tolist()
            over = plan.planned.sum(axis=0) - horizon - (1.0 - 1.0 / speed) * plan.largest[-1]
            result.append(-float(over.max()) / horizon)
        return result

    power = critical_factor(lambda level: min(margins(level)) < -ROUNDING)
    note = f"share of the budget left minus the product, and the excess of the last round; {np.mean(used):.0%} is spent"
    return judge_margins([*margins(factor), float(np.mean(used)) - LEAST_SPENT], note, power=power)


def remaining_rate(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that b - ρ stays below the errors plus a deviation of probability δ."""
    horizon, last = 100, 10
    deviation = np.sqrt(np.log(1.0 / DELTA) / (2.0 * (last - 0.5)))
    world = Instance.stationary([0.8, 0.5], [[0.9, 0.3]], horizon, 0.4 * horizon)
    trials, worst, planned_in_all, allowed_in_all, needed = effort.pick(40, 1_000), np.inf, 0.0, 0.0, list[float]()
    for trial in range(trials):
        plan = run_plan(case, Adaptive(pacing="remaining"), world, effort.seed + trial)
        n = min(len(plan.pace), horizon - last)
        weight = 1.0 / (horizon - 1.0 - np.arange(n))
        noise = np.cumsum(weight * (plan.spent - plan.expected)[:n, 0])
        planned = np.concatenate([[1.0], plan.planned[1:n, 0]])  # before the first outcome nothing is planned
        error = np.cumsum(weight * (plan.expected[:n, 0] - planned))
        later = plan.pace[1 : n + 1, 0]
        worst = min(worst, float((later - 1.0 + (noise + error)[: later.size]).min()))
        needed.append(float(noise.max()) * 0.4 / deviation)
        planned_in_all, allowed_in_all = planned_in_all + planned[1:].sum(), allowed_in_all + plan.pace[1:n, 0].sum()
    finding = judge_failures(np.array(needed), DELTA, "trials deviated by more than the bound", factor)
    if worst < -ROUNDING:
        return finding._replace(verdict=FAILS, margin=worst, note="the pathwise inequality is violated")
    unused = float(planned_in_all / allowed_in_all) - LEAST_SPENT
    if unused < 0.0:
        return finding._replace(verdict=FAILS, margin=unused, note="too little of the remaining rate is planned")
    return finding


def even_pace_regret(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the regret of the even pace against the sum of single-round LPs.

    The horizon is long enough for the bound to be below the regret of a policy that earns nothing.
    """
    margins, shares = list[float](), list[float]()
    horizon, trials = effort.pick(600, 1_000), effort.pick(4, 16)
    before_and_after, costs_of_both = [[0.8, 0.5, 0.2], [0.2, 0.5, 0.8]], [[[0.7, 0.4, 0.3], [0.3, 0.6, 0.4]]] * 2
    halves = [horizon // 2, horizon - horizon // 2]
    for world in (
        Instance.stationary([0.8, 0.5], [[0.9, 0.3]], horizon, 0.3 * horizon),
        Instance.piecewise(before_and_after, costs_of_both, halves, [0.4 * horizon, 0.3 * horizon]),
    ):
        rate = np.asarray(world.problem.rate)
        rows = zip(world.unit_rewards, world.unit_costs, world.rounds, strict=True)
        best = sum(rounds * step_lp(rewards, costs, rate).value for rewards, costs, rounds in rows)
        known = 2.0 + (1.0 + math.sqrt(world.resources * horizon)) / rate.min()
        regret, bound = [], []
        for trial in range(trials):
            plan = run_plan(case, Adaptive(pacing="remaining"), world, effort.seed + trial, valued=True)
            stopped = bool((plan.spent.sum(axis=0) > horizon * (1.0 + ROUNDING)).any())  # the last round earns nothing
            regret.append(best - plan.reward[: len(plan.pace) - stopped].sum())
            dear = np.maximum(plan.expected - plan.planned, 0.0).max(axis=1)
            bound.append(known + (np.maximum(plan.overrated, 0.0) + dear + plan.pessimism)[1:].sum())
        shares.append(float(np.mean(regret) / np.mean(bound)))
        margins += [factor - shares[-1], 1.0 - float(np.mean(bound)) / best]
    note = "1 - mean regret / mean bound, and 1 - mean bound / sum of the single-round LPs"
    return judge_margins(margins, note, power=max(shares))


STATEMENTS = (
    Statement(
        "adaptive-plan", SOURCE, "planned spending is at most θρ in every round", HOLDS, planned_spending, IDLE, "θρ"
    ),
    Statement(
        "adaptive-account",
        SOURCE,
        "an account that pays the plan keeps B Π(1 - θ/r)",
        HOLDS,
        planned_account,
        IDLE,
        "θ",
    ),
    Statement(
        "adaptive-remaining",
        SOURCE,
        "even pace: the remaining rate stays near b",
        HOLDS,
        remaining_rate,
        IDLE,
        "the deviation",
    ),
    Statement("adaptive-even-pace", SOURCE, "even pace: regret by estimation errors", HOLDS, even_pace_regret, IDLE),
)
