r"""Check two theorems that are not in the paper (docs/theory.md): bandit over bandit, and the price of a small budget.

*Theorem N1* bounds the regret of ``BanditOverBandit`` without knowledge of V and W. Its constants make it vacuous at
every horizon that can be played, so its rates are compared with those that are measured, on instances on which every
competitor has linear regret. *Theorem N2* says that with radii that shrink with the mean the error of the planned
spending falls with the rate b as :math:`\sqrt b`, where the printed radii leave it as it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.policies import Policy, SlidingWindowUCB
from driftsack.policies.bandit_over_bandit import BanditOverBandit
from driftsack.simulation import simulate
from driftsack.verify.auditor import audit
from driftsack.verify.competitors import COMPETITORS, competitors
from driftsack.verify.exponents import exact_exponent, fit_exponent
from driftsack.verify.statement import CONSISTENT, FAILS, SLACK, Case, Effort, Finding, Rate, Statement

SCALE: Final = 0.1  # of the radii; the theorem is for 1, with which a block is too short to learn anything
CHANGES: Final = 4.0  # at the shortest horizon; the number grows as T^(1/4)
SHORTEST: Final = 10_000
SLACK_OF_SPENDING: Final = 0.15  # of the exponent in b, for the term mγT/w, which does not fall with b


def taking_turns(horizon: int, rate: float = 0.5, seed: int = 0) -> Instance:
    """Two arms that exhaust one resource each, and a useless one that exhausts both; they change roles.

    The number of changes is CHANGES (T/10⁴)^¼. The LP of every round has the same value and prices, so that even
    allocation is optimal.
    """
    rewards = np.array([1.0, 0.95, 0.0])
    costs = np.array([[2 * rate, 0.0, 2 * rate], [0.0, 2 * rate, 2 * rate]])
    changes = round(CHANGES * (horizon / SHORTEST) ** 0.25)
    start = int(np.random.default_rng(seed).integers(3))
    orders = [np.roll(np.arange(3), start + k) for k in range(changes + 1)]
    lengths = np.diff(np.arange(changes + 2) * horizon // (changes + 1)).tolist()
    rows = [rewards[order] for order in orders], [costs[:, order] for order in orders]
    return Instance.piecewise(*rows, lengths, [rate * horizon] * 2)


def played(policy: Policy | None, world: Instance, effort: Effort) -> Floats:
    """(n,) regret against LP-Dynamic; None never plays."""
    best = lp_dynamic(world).value
    if policy is None:
        return np.full(2, best)
    return best - simulate(world, policy, trials=effort.pick(4, 8), seed=effort.seed).reward


def bandit_over_bandit(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that regret grows at most as T^(3/4), with V growing as T^(1/4), and falls at least not faster than 1/b."""
    horizons = [SHORTEST, 60_000, 360_000] if effort.quick else [SHORTEST, 100_000, 1_000_000, 4_000_000]
    subjects = competitors(taking_turns(SHORTEST)) if case is Case.TRIVIAL else [BanditOverBandit(scale=SCALE)]
    fits = []
    for policy in subjects:
        samples = [played(policy, taking_turns(horizon), effort) for horizon in horizons]
        fits.append(fit_exponent("T", 0.75, horizons, samples, effort.rng(71)))
    rate = min(fits, key=lambda fit: fit.value)
    by_rate = budget_exponent(effort) if case is Case.STATEMENT else rate
    margin = factor * rate.expected + SLACK - rate.value
    regrets = ", ".join(f"{mean:,.0f}" for mean in rate.means)
    note = f"exponents {rate}, {by_rate}; regrets {regrets}; radii × {SCALE:g}; V2 = {CHANGES:g} (T/10⁴)^¼"
    verdict = CONSISTENT if margin >= 0.0 and by_rate.value >= -1.0 - SLACK else FAILS
    power = min(max((rate.value - SLACK) / rate.expected, 0.0), 1.0)
    return Finding(verdict, len(horizons), margin, note, rates=(rate, by_rate), power=power)


def budget_exponent(effort: Effort) -> Rate:
    """The exponent of regret in b; the bound's is -1."""
    places = [0.1, 0.2, 0.4]
    worlds = [taking_turns(effort.pick(60_000, 400_000), rate) for rate in places]
    samples = [played(BanditOverBandit(scale=SCALE), world, effort) for world in worlds]
    return fit_exponent("b", -1.0, places, samples, effort.rng(72))


def spending_error(rate: float, radius: str, effort: Effort, returns_zero: bool = False) -> float:
    """The largest |sum of costs less planned costs| of sliding-window UCB on four arms of similar cost near 2b."""
    horizon = effort.pick(100_000, 1_000_000)
    costs = rate * np.array([[1.6, 1.8, 2.0, 2.2]])
    world = Instance.stationary([0.7, 0.75, 0.8, 0.85], costs, horizon, rate * horizon)
    policy = SlidingWindowUCB(windows=(horizon // 4, horizon // 4), radius=radius, clip=True)
    audits = audit(world, policy, effort.pick(1, 4), effort.seed, returns_zero)
    return float(np.mean([trial.farthest[1] for trial in audits]))


def small_budget(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that the error of planned spending falls as √b with the refined radii, unlike with the printed ones."""
    places = [0.1, 0.2, 0.4]
    radius = "printed" if case is Case.TRIVIAL else "refined"
    rate = exact_exponent("b", 0.5, places, [spending_error(place, radius, effort) for place in places])
    margin = SLACK_OF_SPENDING - abs(rate.value - factor * rate.expected)
    errors = ", ".join(f"{value:,.0f}" for value in rate.means)
    note = f"exponent {rate} of |Σ costs - planned costs|, {errors} at b = {', '.join(map(str, places))}"
    verdict = CONSISTENT if margin >= 0.0 else FAILS
    power = min(max((rate.value - SLACK_OF_SPENDING) / rate.expected, 0.0), 1.0)
    return Finding(verdict, len(places), margin, note, rates=(rate,), power=power)


STATEMENTS = (
    Statement(
        "bandit-over-bandit",
        "Theorem N1, not in the paper",
        "regret Õ(T^¾ / b) without V",
        CONSISTENT,
        bandit_over_bandit,
        COMPETITORS,
        "the exponent of T",
    ),
    Statement(
        "small-budget",
        "Theorem N2, not in the paper",
        "refined radii: spending errs by Õ(T√(bm/w))",
        CONSISTENT,
        small_budget,
        "the printed radii",
        "the exponent of b",
    ),
)
