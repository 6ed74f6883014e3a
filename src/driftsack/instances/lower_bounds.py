r"""The three constructions of Theorem 2: instances with a given variation on which every policy has regret.

The proof does not specify the constants in its Θ(·). Here the gap between arms is :math:`\Delta = \tfrac14 \sqrt{m/H}`
(at most 1/2) in phases of H rounds, with the smallest H that keeps the variation within the requested one.
"""

from __future__ import annotations

import math

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import above_zero, number, whole
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance, Noise
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.instances.examples import halves


def phase_length(arms: int, rounds: int, variation: float) -> tuple[int, float]:
    """Return the phase length H and the gap Δ for which changes of Δ per phase sum to at most ``variation``."""
    drift = above_zero(variation, "variation")
    length = math.ceil((math.sqrt(arms) * rounds / (4 * drift)) ** (2 / 3))
    length = min(max(length, math.ceil(arms / 4)), rounds)
    return length, min(0.25 * math.sqrt(arms / length), 0.5)


def best_arms(arms: int, rounds: int, length: int, seed: int) -> Ints:
    """Draw a best arm for every phase of ``length`` rounds; return the best arm of each round (rounds,)."""
    phases = -(-rounds // length)
    return generator(seed).integers(0, arms, phases)[np.arange(rounds) // length]


def reward_switching(
    arms: int = 2, horizon: int = 10_000, v1: float = 5.0, seed: int = 0, noise: Noise = "bernoulli"
) -> Instance:
    r"""Build the instance of Theorem 2 (i): the best arm is drawn again every H rounds.

    The best arm has the mean reward 1/2 + Δ, the others 1/2. Each round uses 1 unit of a single resource with budget
    T, so the budget does not bind. The regret of every policy is :math:`\Omega(m^{1/3} V_1^{1/3} T^{2/3})`.

    Args:
        arms: The number m of arms.
        horizon: The number T of rounds.
        v1: The maximum local variation :math:`V_1` of the rewards; it determines H and Δ.
        seed: The seed of the best arms.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> float(reward_switching(arms=3, horizon=1_000, v1=2.0).rewards.max().round(3))
    0.571
    """
    length, gap = phase_length(whole(arms, "arms", 1), whole(horizon, "horizon", 1), v1)
    rewards = np.full((arms, arms), 0.5) + gap * np.eye(arms)
    costs = np.ones((arms, 1, arms))
    return _switching(rewards, costs, best_arms(arms, horizon, length, seed), float(horizon), noise)


def cost_switching(
    arms: int = 2, horizon: int = 10_000, v2: float = 5.0, rate: float = 0.25, seed: int = 0, noise: Noise = "bernoulli"
) -> Instance:
    r"""Build the instance of Theorem 2 (ii): in the first half, the cheapest arm is drawn again every H rounds.

    Every arm earns 1. In the first half the cheapest arm costs b and the others b + Δ; in the second half every arm
    costs b, so overspending in the first half reduces the reward of the second. The budget is bT. The gap here does
    not depend on b, as in the paper. With :math:`\Delta = \Theta(\sqrt{mb/H})` the regret of every policy is
    :math:`\Omega(m^{1/3} b^{-2/3} V_2^{1/3} T^{2/3})` (docs/theory-paper.md).

    Args:
        arms: The number m of arms.
        horizon: The number T of rounds.
        v2: The maximum local variation :math:`V_2` of the costs in the first half; it determines H and Δ.
        rate: The budget per round b, at most 1 - Δ.
        seed: The seed of the cheapest arms.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> float(cost_switching(arms=2, horizon=1_000, v2=2.0, rate=0.25).costs.min())
    0.25
    """
    first, second = halves(horizon)
    length, gap = phase_length(whole(arms, "arms", 1), first, v2)
    b = number(rate, "rate")
    if not 0 < b <= 1 - gap:
        raise OutOfRangeError(f"rate must lie in (0, {1 - gap:g}], so that b + Δ is at most 1, got {b:g}.")
    rewards = np.ones((arms + 1, arms))
    costs = np.full((arms + 1, 1, arms), b + gap)
    costs[np.arange(arms), 0, np.arange(arms)] = b
    costs[arms] = b
    phase = np.append(best_arms(arms, first, length, seed), np.full(second, arms))
    return _switching(rewards, costs, phase, b * horizon, noise)


def budget_trap(
    horizon: int = 10_000,
    w1: float = 500.0,
    w2: float = 500.0,
    rate: float = 0.25,
    reward: float = 0.5,
    better: bool = True,
    noise: Noise = "deterministic",
) -> Instance:
    r"""Build the instance of Theorem 2 (iii): one arm, and a second half that is better or worse than the first.

    In the first half the arm earns r and costs 2b; in the second it earns r ± Δ1 and costs 2b ∓ Δ2, with
    :math:`\Delta_i = 2 W_i / T`. The budget is bT. A policy that does not know the second half has regret
    :math:`\Omega(W_1 + \bar q W_2)` in one of the two cases.

    Args:
        horizon: The number T of rounds.
        w1: The global variation :math:`W_1` of the rewards.
        w2: The global variation :math:`W_2` of the costs.
        rate: The budget per round b, below 1/2.
        reward: The mean reward r of the first half.
        better: Whether the second half earns more at lower costs; otherwise it earns less at higher costs.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> budget_trap(horizon=1_000, w1=50.0, w2=20.0, better=False).rewards.ravel()
    array([0.5, 0.4])
    """
    first, second = halves(horizon)
    b, r = number(rate, "rate"), number(reward, "reward")
    if not 0 < b < 0.5:
        raise OutOfRangeError(f"rate must lie in (0, 1/2), got {b:g}.")
    sign = 1.0 if better else -1.0
    reward_change, cost_change = 2 * number(w1, "w1") / horizon, 2 * number(w2, "w2") / horizon
    rewards = [[r], [r + sign * reward_change]]
    costs = [[[2 * b]], [[2 * b - sign * cost_change]]]
    return Instance.piecewise(rewards, costs, (first, second), budget=b * horizon, noise=noise)


def _switching(rewards: Floats, costs: Floats, phase: Ints, budget: float, noise: Noise) -> Instance:
    """Build an instance from rows of means and the row of each round; unused rows are dropped."""
    used, rows = np.unique(phase, return_inverse=True)
    problem = Problem(len(phase), rewards.shape[1], [budget])
    return Instance(problem, rewards[used], costs[used], rows.astype(np.int32), noise)
