r"""Check the library's measures, benchmarks, radii, windows and bounds against their definitions, written out again.

The other checks are inequalities, most of which are loose: a measure that is twice too large would satisfy them. Here
every quantity is computed a second time, by sums over rounds in NumPy, by one linear program over all rounds in SciPy,
or in closed form, and the two must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.optimize import linprog

from driftsack import theory
from driftsack.benchmarks import (
    dynamic_program,
    fixed_distribution,
    hard_fixed_distribution,
    lp_dynamic,
    lp_static,
    single_step,
)
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import charge, open_ledger
from driftsack.game.protocol import choose, learn
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.instances import example_1
from driftsack.measures import variation
from driftsack.policies import SlidingWindowUCB
from driftsack.policies import sliding_window_ucb as ucb
from driftsack.policies.parts.radius import RadiusKind
from driftsack.theory.refined import gamma
from driftsack.verify.answers import ZERO
from driftsack.verify.instance_search import Shape, random_instance
from driftsack.verify.minimisers_in_hull import SUM, SUP, least_sum
from driftsack.verify.statement import HOLDS, Case, Effort, Finding, Statement, judge_closed_form

Pairs = Iterator[tuple[float, float]]
TOLERANCE: Final = 1e-6
NOTE: Final = "minus the distance from the definition"


def judge_definitions(pairs: Pairs, case: Case, factor: float) -> Finding:
    """Judge values by their definitions; the trivial competitor returns 0."""
    known = 0.0 if case is Case.TRIVIAL else 1.0
    return judge_closed_form(((known * value, form) for value, form in pairs), NOTE, TOLERANCE, factor)


def measured(world: Instance) -> Pairs:
    """The measures of an instance and their definitions."""
    moves = variation(world, tolerance=1e-9)
    rewards, costs, rounds = world.rewards[world.phase], world.costs[world.phase], world.horizon
    by_resource = np.abs(np.diff(costs, axis=0)).max(axis=2)
    yield moves.v1, float(np.abs(np.diff(rewards, axis=0)).max(axis=1).sum())
    yield moves.v2, float(by_resource.sum(axis=0).max())
    yield moves.v2_sum, float(by_resource.max(axis=1, initial=0.0).sum())
    yield moves.w1, float(np.abs(rewards - rewards.mean(axis=0)).max(axis=1).sum())
    yield moves.w2, float(np.abs(costs - costs.mean(axis=0)).sum(axis=1).max(axis=1).sum())
    yield moves.w1_pair, float(np.abs(rewards[:, None] - rewards).max(axis=2).sum()) / rounds
    yield moves.w2_pair, float(np.abs(costs[:, None] - costs).sum(axis=2).max(axis=2).sum()) / rounds
    yield moves.w1_min, least_sum(rewards, in_hull=False, norm=SUP)
    if world.arms == 1:
        yield moves.w2_min, least_sum(costs[:, :, 0], in_hull=False, norm=SUM)


def prices_of_one_arm(reward: float, cost: float, rate: float) -> Pairs:
    """The largest price of one arm in two equal rounds: 0 if it is cheap, any price up to r/c at c = b, else r/c."""
    moves = variation(Instance.stationary([reward], [[cost]], horizon=2, budget=2 * rate))
    largest = reward / cost if cost >= rate else 0.0
    least = largest if cost > rate else 0.0
    for interval in (moves.q_bar_interval, moves.q_bar_full_interval):
        yield interval.least, least
        yield interval.largest, largest
    yield float(np.clip(moves.q_bar, least, largest)), moves.q_bar
    yield float(np.clip(moves.q_bar_full, least, largest)), moves.q_bar_full
    if cost != rate:
        yield moves.q_bar, largest
        yield moves.q_bar_full, largest


def measures(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check V, W, W^min, the pairwise W and q̄ against their definitions."""
    rng = effort.rng(61)

    def pairs() -> Pairs:
        for _ in range(effort.pick(16, 500)):
            yield from measured(random_instance(rng, Shape(6, 3, 3)))
        for _ in range(effort.pick(6, 100)):
            reward, cost, rate = rng.uniform(0.1, 1.0, 3)
            yield from prices_of_one_arm(reward, cost, rate)
            yield from prices_of_one_arm(reward, rate, rate)

    return judge_definitions(pairs(), case, factor)


def program_value(rewards: Floats, costs: Floats, budget: Floats) -> float:
    """The value of an LP with rows of rewards (K, m) and costs (K, d, m), a mix for each row, and budgets (d,)."""
    rows, arms = rewards.shape
    use = np.moveaxis(costs, 1, 0).reshape(costs.shape[1], -1)
    mixes = np.kron(np.eye(rows), np.ones(arms))
    limits = np.concatenate([budget, np.ones(rows)])
    return -float(linprog(-rewards.ravel(), A_ub=np.vstack([use, mixes]), b_ub=limits).fun)


def optima(world: Instance) -> Pairs:
    """The LP benchmarks of an instance and their definitions."""
    rewards, costs = world.rewards[world.phase], world.costs[world.phase]
    budget, rate, rounds = np.asarray(world.problem.budget), np.asarray(world.problem.rate), world.horizon
    yield lp_dynamic(world).value, program_value(rewards, costs, budget)
    steps = zip(rewards[:, None], costs[:, None], strict=True)
    yield single_step(world).value, sum(program_value(*step, rate) for step in steps)
    yield lp_static(world).value, rounds * program_value(rewards.mean(axis=0)[None], costs.mean(axis=0)[None], rate)


def benchmarks(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check LP-Dynamic, the step LPs and LP-Static by SciPy, and OPT_FD and OPT_DP where they are known."""
    rng = effort.rng(62)

    def pairs() -> Pairs:
        for _ in range(effort.pick(20, 1_000)):
            yield from optima(random_instance(rng))
        yield fixed_distribution(example_1(horizon=1_000)).value, 375.0  # stops after three quarters
        one = Instance.stationary([0.5], [[0.2]], horizon=1, budget=0.1)
        yield dynamic_program(one).value, 0.4  # free with probability 0.8, and nothing is lost otherwise
        yield hard_fixed_distribution(one).value, 0.4

    return judge_definitions(pairs(), case, factor)


def played_bounds(radius: RadiusKind, window: int, rounds: int, seed: int) -> Pairs:
    """The confidence bounds of Algorithm 1 after some rounds, and the same from the outcomes of its window."""
    world = Instance.stationary([0.8, 0.5], [[0.6, 0.3]], horizon=100, budget=50.0)
    problem, terms, ledger = world.problem, new_terms(world.problem), open_ledger(world.problem)
    policy = SlidingWindowUCB(windows=(window, window), radius=radius)
    state, (nature, own) = policy.new_state(problem), map(generator, trial_seeds(seed, 0))
    mix, prices, history = np.zeros(2), np.zeros(1), list[tuple[int, float, float]]()
    for t in range(rounds):
        arm = choose(state, open_round(t, ledger, terms), own, mix, prices)
        reward, cost = (float(nature.random() < mean) for mean in (0.5, 0.1))
        history.append((arm, reward, cost))
        charge(ledger, np.array([cost]))
        learn(state, new_outcome(terms, t, arm, mix[arm], reward, np.array([cost])))
    choose(state, open_round(rounds, ledger, terms), own, mix, prices)  # sets the bounds of the next round
    seen = np.array(history[-window:])
    for arm in range(2):
        own_rounds = seen[seen[:, 0] == arm]
        n = len(own_rounds) + 1
        for k, bound in ((1, ucb.planned_reward(state, arm)), (2, ucb.planned_cost(state, 0, arm))):
            mean = own_rounds[:, k].sum() / n
            width = math.sqrt(2.0 * (math.log(24) + 3 * math.log(100)) / n)
            if radius == "refined":
                g = math.log(2) + 2 * math.log(100)
                width = 2.0 * (math.sqrt(g * mean / n) + g / n)
            yield float(bound), mean + (width if k == 1 else -width)


def formulas(horizon: int, arms: int, resources: int, v: float, b: float) -> Pairs:
    """The constants and bounds of the paper, and their formulas."""
    # Terms that the formulas share: L1 and L2, and the order of tracking drifting means.
    first, second = (math.log(12 * arms * d * horizon**3) for d in (1, resources))
    root, learning = math.sqrt(horizon), 8 * math.sqrt(2 * arms * horizon)
    drift = (arms * v * horizon**2) ** (1 / 3)
    # The radius, the windows and the bounds of Theorem 1, printed and repaired.
    yield theory.radius_constant(horizon, arms, resources), math.sqrt(2 * second)
    w = min(math.ceil((arms * second * (horizon / v) ** 2) ** (1 / 3)), horizon)
    yield theory.window(horizon, arms, v, resources), w
    stop = 14 * drift * second ** (1 / 3) + learning * math.sqrt(second) + 4 * root * second
    yield theory.stopping_time_bound(horizon, arms, resources, b, v), stop / b
    of_rewards = theory.concentration_bounds(horizon, arms, resources, (w, w), (v, v)).rewards
    yield of_rewards, 4 * root * first + 8 * math.sqrt(2 * first * arms / w) * horizon + w * v
    costs = (stop + 2 * resources * drift * second ** (1 / 3) + 1) / b
    rewards = 4 * root * first + learning * math.sqrt(first) + 16 * drift * first ** (1 / 3)
    sizes = horizon, arms, resources, b, (v, v)
    yield theory.regret_bound(*sizes, (3.0, 5.0), 0.5).total, costs + rewards + 2 * (3.0 + 2.5) + 1
    whole = stop + 2 * 1.5 * drift * second ** (1 / 3)
    repaired = theory.repaired_regret_bound(*sizes, 1.5 * v, (3.0, 5.0), 0.5).total
    yield repaired, whole / b + 1 + rewards + (3.0 + 2.5) + 1
    # Theorem 2.
    lower = theory.regret_lower_bounds(horizon, arms, b, (v, v), (3.0, 5.0), 0.5)
    yield lower.reward_drift, min(drift, horizon)
    yield lower.cost_drift, min(drift * b ** (-2 / 3), horizon)
    yield lower.budget_timing, min(5.5, horizon)
    # The refined algorithm of the last appendix.
    g, budget = math.log(arms * resources * horizon**2), b * horizon
    yield gamma(horizon, arms, resources), g
    yield theory.refined_radius(0.3, 20.0, g), math.sqrt(0.3 * g / 20) + g / 20
    share = math.sqrt(g * arms * budget) + arms * g + math.sqrt(g * budget) + drift * g ** (1 / 3)
    yield theory.epsilon(horizon, arms, resources, budget, v), min(share / budget, 1.0)
    value = 0.8 * horizon
    learnt = (math.sqrt(arms / budget) * value + math.sqrt(arms * value) + arms * math.sqrt(g)) * math.sqrt(g)
    learnt += drift * math.log(arms * horizon**2) ** (1 / 3) + 5.5
    sizes_refined = horizon, arms, resources, budget, value
    printed = theory.refined_regret_bound(*sizes_refined, (v, v), (3.0, 5.0), 0.5).total
    yield printed, learnt + 0.5 * resources * drift * g ** (1 / 3)
    corrected = theory.repaired_refined_bound(*sizes_refined, (v, v, 1.5 * v), (3.0, 5.0), 0.5).total
    yield corrected, learnt + (value / budget + 1.5 / b) * drift * g ** (1 / 3)


def pace_formula(horizon: int, arms: int, resources: int, v: float, b: float) -> Pairs:
    """The bound of theorem N3, for windows of half and of a third of the horizon."""
    first, second = (math.log(12 * arms * d * horizon**3) for d in (1, resources))
    half, third, learning = horizon // 2, horizon // 3, 4 * math.sqrt(2 * arms)
    rewards = learning * math.sqrt(first * half) * math.ceil(horizon / half) + 2 * half * v
    costs = learning * math.sqrt(second * third) * math.ceil(horizon / third) + 3 * third * v
    sizes = horizon, arms, resources, b
    found = theory.remaining_pace_bound(*sizes, (half, third), (v, 1.5 * v), (3.0, 5.0), 0.5).total
    yield found, rewards + (costs + math.sqrt(resources * horizon)) / b + 3.0 + 2.5 + 2.0


def algorithm(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the radii and windows of Algorithm 1 as played, and the formulas of ``driftsack.theory``."""

    def pairs() -> Pairs:
        for radius in ("printed", "refined"):
            for window in (10, 60):
                yield from played_bounds(radius, window, rounds=40, seed=effort.seed)
        for horizon in (100, 10_000, 1_000_000):
            for arms, resources in ((2, 1), (5, 3)):
                for v in (0.01, 1.0):
                    for b in (0.05, 0.5):
                        yield from formulas(horizon, arms, resources, v, b)
                        yield from pace_formula(horizon, arms, resources, v, b)

    return judge_definitions(pairs(), case, factor)


STATEMENTS = (
    Statement("measures", "Section 2.2, definitions", "V, W and q̄ as defined", HOLDS, measures, ZERO, "the measure"),
    Statement(
        "benchmarks", "Section 2.2 and Appendix C.1", "optima as defined", HOLDS, benchmarks, ZERO, "the optimum"
    ),
    Statement(
        "radii-and-windows",
        "Algorithm 1, Theorem 1 and Appendix E",
        "radii, windows and bounds as defined",
        HOLDS,
        algorithm,
        ZERO,
        "the radius",
    ),
)
