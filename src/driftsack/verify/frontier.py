r"""Check theorems N7 and N8 (docs/theory-new.md): guarantees where W is large.

The rules are after Zhang and Cheung (2024) and Braverman et al. (2025). Even pacing loses :math:`W_1 + \bar q W_2`
there. *Inventory reserving* keeps a share :math:`1/(2 + \ln(\eta_{\max} / \eta_{\min}))` of the optimum in every
environment. *Pacing over windows* has sublinear regret against a benchmark that changes its mix from window to window.
In both worlds the competitors, and the policies that these two improve on, fail.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.policies import DualDescent, InventoryReserving, Policy, SlidingWindowUCB, WindowPacing
from driftsack.simulation import simulate
from driftsack.verify.competitors import COMPETITORS, competitors
from driftsack.verify.exponents import exact_exponent
from driftsack.verify.statement import (
    CONSISTENT,
    FAILS,
    HOLDS,
    SLACK,
    Case,
    Effort,
    Finding,
    Statement,
    judge_margins,
)

RATE: Final = 0.05  # of the budget in the staged environments
STAGES: Final = 5
WINDOW: Final = 500  # of the estimates of reserving and of even pacing
SCALE: Final = 0.0005  # of their radii; outcomes have no noise
WINDOW_FACTOR: Final = 40  # the windows of N8 have this many times √T rounds
WINDOW_RATE: Final = 0.5
CHEAP: Final = 0.8  # cost of the good arm in the windows of N8


def staged(spread: float, last: int, horizon: int) -> Instance:
    """Rewards per cost rise in five stages from 1/spread to 1 and end after stage ``last``; one stage can use up B.

    The second arm earns half as much per unit of cost.
    """
    ratios = spread ** (np.arange(STAGES) / (STAGES - 1)) / spread * (np.arange(STAGES) < last)
    rewards = [[ratio, 0.25 * ratio] for ratio in ratios]
    lengths = [horizon // STAGES] * STAGES
    return Instance.piecewise(rewards, [[[1.0, 0.5]]] * STAGES, lengths, RATE * horizon, noise="deterministic")


def late_burst(spread: float, horizon: int) -> Instance:
    """Rewards per cost are 1/spread until the last rounds, which can use up the budget, and 1 in these."""
    rewards, last = [[1.0 / spread, 0.25 / spread], [1.0, 0.25]], round(RATE * horizon)
    return Instance.piecewise(
        rewards, [[[1.0, 0.5]]] * 2, [horizon - last, last], RATE * horizon, noise="deterministic"
    )


def largest_ratio(policy: Policy | None, spread: float, horizon: int, seed: int) -> float:
    """The largest optimum over reward in all futures; infinite for the policy None, which never plays."""
    if policy is None:
        return math.inf
    futures = [late_burst(spread, horizon), *(staged(spread, last, horizon) for last in range(1, STAGES + 1))]
    return max(
        lp_dynamic(world).value / max(float(simulate(world, policy, trials=1, seed=seed).reward[0]), 1e-9)
        for world in futures
    )


def reserving(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that reserving earns LP over 2 + ln(η_max / η_min) in every future, where even pacing loses a power of it.

    The second arm earns less per unit of cost than η_min, and is never worth its price. Trivial: the competitors and
    sliding-window UCB, for both ways of pacing; the one that comes nearest.
    """
    horizon, spreads = effort.pick(40_000, 400_000), (10.0, 100.0, 1000.0)
    shares, ratios = [], []
    for spread in spreads:
        policy = InventoryReserving((0.5 / spread, 1.0), WINDOW, SCALE)
        rivals = [SlidingWindowUCB(windows=WINDOW, scale=SCALE, budget_rule=rule) for rule in ("fixed", "remaining")]
        subjects = [policy] if case is Case.STATEMENT else [*competitors(late_burst(spread, horizon)), *rivals]
        ratios.append(min(largest_ratio(subject, spread, horizon, effort.seed) for subject in subjects))
        shares.append(ratios[-1] / policy.factor)
    text = ", ".join(f"{ratio:.1f}" for ratio in ratios)
    note = f"1 - (LP / reward) / (2 + ln(η_max/η_min)); the largest LP / reward is {text} for spreads of 10, 100, 1,000"
    return judge_margins([factor - max(shares)], note, power=min(max(shares), 1.0))


def alternating(horizon: int) -> tuple[Instance, int]:
    """Two arms of which one earns 1 in turn, for a window of 40 √T rounds each; returns the window too."""
    window = WINDOW_FACTOR * math.isqrt(horizon)
    phase = (np.arange(horizon) // window % 2).astype(np.int32)
    rewards, costs = np.eye(2), np.array([[[CHEAP, 1.0]], [[1.0, CHEAP]]])
    return Instance(Problem(horizon, 2, [WINDOW_RATE * horizon]), rewards, costs, phase, "bernoulli"), window


def pacing_windows(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the exponent in T of the regret against pacing over windows of 40 √T rounds: that of the bound, 3/4.

    Trivial: the competitors and ``DualDescent``, which never restarts; the one with the smallest exponent.
    """
    horizons = (250_000, 1_000_000, 4_000_000) if effort.quick else (500_000, 2_000_000, 8_000_000)
    fits = []
    worlds = [alternating(horizon) for horizon in horizons]
    bounds = [horizon**0.75 * math.sqrt(math.log(3 * horizon)) for horizon in horizons]
    stated = exact_exponent("T", 0.75, horizons, bounds).value  # 3/4 and the bound's logarithm
    count = 1 if case is Case.STATEMENT else len(competitors(worlds[0][0])) + 1
    for k in range(count):
        regrets = []
        for world, window in worlds:
            subjects = [WindowPacing(window)] if case is Case.STATEMENT else [DualDescent(), *competitors(world)]
            best, subject = WINDOW_RATE / CHEAP * world.horizon, subjects[k]
            trials = effort.pick(2, 4) if case is Case.STATEMENT else 1
            earned = 0.0 if subject is None else simulate(world, subject, trials=trials, seed=effort.seed).reward.mean()
            regrets.append(best - float(earned))
        fits.append(exact_exponent("T", stated, horizons, regrets))
    rate = min(fits, key=lambda fit: fit.value)
    margin = factor * stated + SLACK - rate.value
    text = ", ".join(f"{mean / horizon:.3f} T" for mean, horizon in zip(rate.means, horizons, strict=True))
    note = f"{stated:.2f} (3/4 and a logarithm) + {SLACK} minus the exponent, {rate.value:.2f}; regrets {text}"
    power = min(max((rate.value - SLACK) / stated, 0.0), 1.0)
    return Finding(CONSISTENT if margin >= 0.0 else FAILS, len(horizons), margin, note, rates=(rate,), power=power)


STATEMENTS = (
    Statement(
        "reserved-inventory",
        "Theorem N7, not in the paper",
        "LP / (2 + ln(η_max/η_min)) in any environment",
        HOLDS,
        reserving,
        f"{COMPETITORS}; sliding-window UCB",
    ),
    Statement(
        "window-pacing",
        "Theorem N8, not in the paper",
        "regret Õ(T√(m/w)/b + √(dwT)/b) against mixes by window",
        CONSISTENT,
        pacing_windows,
        f"{COMPETITORS}; dual descent without restarts",
        "the exponent",
    ),
)
