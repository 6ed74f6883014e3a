r"""Measure the regret of ``Adaptive``, for which no bound is proved.

In a stationary world with LP prices q and :math:`\alpha = \max(0, \max_i \mu_i - q^\top C_i)`, the estimate

.. math:: \alpha (T - N) + q^\top (B - \text{spent}) + \sum_i N_i (\alpha - \mu_i + q^\top C_i)

of regret has the same mean as :math:`\mathrm{LP} - \sum_t r_t`, up to the round that ends a trial: the difference is a
sum of martingale differences :math:`r_t - \mu_i - q^\top(c_t - C_i)`. Its three terms are the regret of skipped
rounds, of unspent budget and of arms that were not worth their price. None is negative. The estimate varies far less
than realised regret, whose standard deviation grows as :math:`\sqrt T`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.policies import Adaptive, NaiveUCB, Policy, PrimalDualBwK, ThompsonBwK
from driftsack.simulation import Run, simulate
from driftsack.verify.competitors import COMPETITORS, competitors
from driftsack.verify.exponents import fit_exponent
from driftsack.verify.statement import CONSISTENT, FAILS, Case, Effort, Finding, Rate, Statement

SOURCE: Final = "Adaptive"
LARGEST_EXPONENT: Final = 0.55
LEAST_SHARE: Final = 0.98  # relative to the share of the best stationary policy
CHANGES: Final = 4
STATIONARY_POLICIES: Final = (
    NaiveUCB(scale=0.02, budget_rule="remaining"),
    NaiveUCB(scale=0.05, budget_rule="remaining"),
    NaiveUCB(scale=0.1, budget_rule="remaining"),
    ThompsonBwK(budget_rule="remaining"),
    PrimalDualBwK(confidence=0.05),
)


def random_means(draw: int) -> tuple[Floats, Floats, Floats]:
    """Mean rewards (5,), mean costs (2, 5) and the budget rates (2,) of a random world."""
    rng = np.random.default_rng([14, draw])
    return rng.uniform(0.1, 0.9, 5), rng.uniform(0.1, 0.9, (2, 5)), rng.uniform(0.15, 0.4, 2)


def stationary(horizon: int, draw: int) -> Instance:
    """A random stationary instance of five arms and two resources."""
    rewards, costs, rate = random_means(draw)
    return Instance.stationary(rewards, costs, horizon, rate * horizon)


def exchanging(horizon: int, draw: int) -> Instance:
    """A variant of ``stationary`` in which the arms exchange their means four times, at even intervals.

    The LP of every round has the same value and prices, so that the even pace is optimal and regret against LP-Dynamic
    is that of learning. Under other changes of the means the regret of every policy may be linear (Theorem 2 (iii)).
    """
    rewards, costs, rate = random_means(draw)
    orders = [np.roll(np.arange(5), 2 * k) for k in range(CHANGES + 1)]
    lengths = np.diff(np.arange(CHANGES + 2) * horizon // (CHANGES + 1))
    all_rewards, all_costs = np.array([rewards[order] for order in orders]), np.array([costs[:, o] for o in orders])
    return Instance.piecewise(all_rewards, all_costs, lengths.tolist(), rate * horizon)


def stationary_regret(run: Run) -> Floats:
    """(n,) the estimate above of the regret of each trial, in a stationary world."""
    world = run.instance
    prices = np.asarray(lp_dynamic(world).prices, dtype=np.float64)
    net = world.rewards[0] - prices @ world.costs[0]
    best = max(0.0, float(net.max()))
    unspent = (np.asarray(world.problem.budget) - run.spent) @ prices
    regret: Floats = best * (world.horizon - run.pulls.sum(axis=1)) + unspent + run.pulls @ (best - net)
    return regret


def realised_regret(run: Run) -> Floats:
    """(n,) regret of each trial against LP-Dynamic."""
    return run.regret(lp_dynamic(run.instance))


def exponents(
    effort: Effort,
    varied: str,
    world: Callable[[int, int], Instance],
    regret: Callable[[Run], Floats],
    policy: Policy | None,
) -> tuple[Rate, list[Rate]]:
    """Fit the exponent of the mean regret over the draws of a world, and that of each draw; None for competitors."""
    horizons = [1_000, 6_000, 36_000] if effort.quick else [1_000, 10_000, 100_000, 1_000_000]
    trials = [24, 8, 4] if effort.quick else [64, 32, 16, 8]
    samples = [
        [
            regrets_of(world(horizon, draw), regret, policy, count, effort.seed + draw)
            for draw in range(effort.pick(2, 6))
        ]
        for horizon, count in zip(horizons, trials, strict=True)
    ]
    rng = effort.rng(51)
    pooled = fit_exponent(varied, 0.5, horizons, [np.mean(sample, axis=0) for sample in samples], rng)
    each = [fit_exponent(varied, 0.5, horizons, list(sample), rng) for sample in zip(*samples, strict=True)]
    return pooled, each


def regrets_of(
    world: Instance, regret: Callable[[Run], Floats], policy: Policy | None, trials: int, seed: int
) -> Floats:
    """(n,) the regret of each trial, or (1,) the least regret of a competitor; one that never plays loses LP."""
    if policy is not None:
        return regret(simulate(world, policy, trials=trials, seed=seed))
    playing = [rival for rival in competitors(world) if rival is not None]
    means = [float(regret(simulate(world, rival, trials=1, seed=seed)).mean()) for rival in playing]
    return np.array([min(lp_dynamic(world).value, *means)])


def growth_of(effort: Effort, policy: Policy | None) -> tuple[tuple[Rate, ...], str]:
    """Fit the exponents of a policy in stationary worlds and with four changes; return them with a note."""
    fits = (
        exponents(effort, "T, stationary", stationary, stationary_regret, policy),
        exponents(effort, "T, 4 changes", exchanging, realised_regret, policy),
    )
    notes = [
        f"{pooled} at regrets {', '.join(f'{mean:.0f}' for mean in pooled.means)}; "
        f"single worlds {', '.join(f'{rate.value:.2f}' for rate in each)}"
        for pooled, each in fits
    ]
    return tuple(pooled for pooled, _ in fits), "; ".join(notes)


def growth(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Fit the exponents of regret in stationary worlds and with four changes.

    Trivial: the competitor with the least regret at each horizon of each world.
    """
    rates, note = growth_of(effort, None if case is Case.TRIVIAL else Adaptive())
    largest = max(rate.value for rate in rates)
    margin = factor * LARGEST_EXPONENT - largest
    verdict = CONSISTENT if margin >= 0.0 else FAILS
    return Finding(verdict, len(rates[0].places), margin, note, rates=rates, power=largest / LARGEST_EXPONENT)


def share_of_best(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Compare the share of LP-Dynamic with that of the best stationary policy.

    The competitors are uniform arms, and in each world the best arm, played until a budget is exhausted.
    """
    policies = [Adaptive(), *STATIONARY_POLICIES]
    worlds, trials = effort.pick(4, 20), effort.pick(4, 20)
    shares = np.zeros((worlds, len(policies)))
    for draw in range(worlds):
        world = stationary(10_000, 100 + draw)
        best = lp_dynamic(world).value
        for k, policy in enumerate(policies):
            played = simulate_share(world, policy, trials, effort.seed + draw, best)
            if k == 0 and case is Case.TRIVIAL:
                rivals = (rival for rival in competitors(world) if rival is not None)
                played = max(simulate_share(world, rival, 1, effort.seed + draw, best) for rival in rivals)
            shares[draw, k] = played
    means = shares.mean(axis=0)
    rival = 1 + int(means[1:].argmax())
    ratio = float(means[0] / means[rival])
    per_world = float((shares[:, 0] / shares[:, 1:].max(axis=1)).mean())
    error = float((shares[:, 0] - shares[:, rival]).std(ddof=1) / np.sqrt(worlds))
    margin = factor * ratio - LEAST_SHARE
    note = (
        f"{ratio:.4f} ± {error:.4f} of the share of the best ({policies[rival]}, {means[rival]:.3f}), minus "
        f"{LEAST_SHARE}; {per_world:.4f} of the best in each world"
    )
    return Finding(CONSISTENT if margin >= 0.0 else FAILS, worlds, margin, note, power=min(LEAST_SHARE / ratio, 1.0))


def simulate_share(world: Instance, policy: Policy, trials: int, seed: int, best: float) -> float:
    """The mean reward of a policy as a share of the optimum."""
    return float(simulate(world, policy, trials=trials, seed=seed).reward.mean()) / best


STATEMENTS = (
    Statement(
        "adaptive-growth",
        SOURCE,
        "measured: regret grows as T^0.55 or slower",
        CONSISTENT,
        growth,
        COMPETITORS,
        "the exponent",
    ),
    Statement(
        "adaptive-share",
        SOURCE,
        "measured: ≥ 0.98 of the best stationary policy",
        CONSISTENT,
        share_of_best,
        COMPETITORS,
        "the reward of Adaptive",
    ),
)
