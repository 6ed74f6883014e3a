r"""The three constructions behind Theorem 2: worlds with given variation in which every policy must lose.

The proof leaves its Θ(·) open; here gaps are :math:`\Delta = \tfrac14 \sqrt{m / H}` (at most 1/2) for phases of H
rounds, with H the least for which the variation stays within what was asked for.
"""

from __future__ import annotations

import math

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import above_zero, number, whole
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.instances.paper import halves


def phase_length(arms: int, rounds: int, variation: float) -> tuple[int, float]:
    """Rounds H of a phase and the gap Δ, such that Δ for each change adds up to at most ``variation``."""
    drift = above_zero(variation, "variation")
    length = math.ceil((math.sqrt(arms) * rounds / (4 * drift)) ** (2 / 3))
    length = min(max(length, math.ceil(arms / 4)), rounds)
    return length, min(0.25 * math.sqrt(arms / length), 0.5)


def favourites(arms: int, rounds: int, length: int, seed: int) -> Ints:
    """The favoured arm of each phase, drawn anew for each, and the phase of each round behind it."""
    phases = -(-rounds // length)
    return generator(seed).integers(0, arms, phases)[np.arange(rounds) // length]


def reward_switching(
    arms: int = 2, horizon: int = 10_000, v1: float = 5.0, seed: int = 0, noise: str = "bernoulli"
) -> Instance:
    r"""Theorem 2 (i): one arm earns 1/2 + Δ, the others 1/2; which one is drawn anew every H rounds.

    Each round uses 1 of one resource of which there is T: budgets do not matter. Regret is
    :math:`\Omega(m^{1/3} V_1^{1/3} T^{2/3})`.

    >>> float(reward_switching(arms=3, horizon=1_000, v1=2.0).rewards.max().round(3))
    0.571
    """
    length, gap = phase_length(whole(arms, "arms", 1), whole(horizon, "horizon", 1), v1)
    rewards = np.full((arms, arms), 0.5) + gap * np.eye(arms)
    costs = np.ones((arms, 1, arms))
    return _switching(rewards, costs, favourites(arms, horizon, length, seed), float(horizon), noise)


def cost_switching(
    arms: int = 2, horizon: int = 10_000, v2: float = 5.0, rate: float = 0.25, seed: int = 0, noise: str = "bernoulli"
) -> Instance:
    r"""Theorem 2 (ii): every arm earns 1, but one uses b and the others b + Δ; which one is drawn anew every H rounds.

    That is the first half. In the second half every arm uses b: it is the meter that turns what was overspent into
    lost reward. Budget bT; regret is :math:`\Omega(m^{1/3} V_2^{1/3} T^{2/3} / b)`.

    >>> float(cost_switching(arms=2, horizon=1_000, v2=2.0, rate=0.25).costs.min())
    0.25
    """
    first, second = halves(horizon)
    length, gap = phase_length(whole(arms, "arms", 1), first, v2)
    low = number(rate, "rate")
    if not 0 < low <= 1 - gap:
        raise OutOfRangeError(f"rate must lie in (0, {1 - gap:g}], so that b + Δ is at most 1, got {low:g}.")
    rewards = np.ones((arms + 1, arms))
    costs = np.full((arms + 1, 1, arms), low + gap)
    costs[np.arange(arms), 0, np.arange(arms)] = low
    costs[arms] = low
    phase = np.append(favourites(arms, first, length, seed), np.full(second, arms))
    return _switching(rewards, costs, phase, low * horizon, noise)


def budget_trap(
    horizon: int = 10_000,
    w1: float = 500.0,
    w2: float = 500.0,
    rate: float = 0.25,
    reward: float = 0.5,
    better: bool = True,
    noise: str = "deterministic",
) -> Instance:
    r"""Theorem 2 (iii): one arm that earns r and uses 2b, then a future that is better or worse; budget bT, b < 1/2.

    The future earns r ± Δ1 and uses 2b ∓ Δ2 with Δ = 2W/T. Whoever cannot know which comes loses
    :math:`\Omega(W_1 + \bar q W_2)` in one of them.

    >>> budget_trap(horizon=1_000, w1=50.0, w2=20.0, better=False).rewards.ravel()
    array([0.5, 0.4])
    """
    first, second = halves(horizon)
    low, gain = number(rate, "rate"), number(reward, "reward")
    if not 0 < low < 0.5:  # noqa: PLR2004
        raise OutOfRangeError(f"rate must lie in (0, 1/2), got {low:g}.")
    sign = 1.0 if better else -1.0
    rises, falls = 2 * number(w1, "w1") / horizon, 2 * number(w2, "w2") / horizon
    rewards = [[gain], [gain + sign * rises]]
    costs = [[[2 * low]], [[2 * low - sign * falls]]]
    return Instance.piecewise(rewards, costs, (first, second), budget=low * horizon, noise=noise)


def _switching(rewards: Floats, costs: Floats, phase: Ints, budget: float, noise: str) -> Instance:
    """An instance from a table of rows and the row of each round; rows that never occur are dropped."""
    used, rows = np.unique(phase, return_inverse=True)
    problem = Problem(len(phase), rewards.shape[1], [budget])
    return Instance(problem, rewards[used], costs[used], rows.astype(np.int32), noise)
