"""Instances of the paper: its four examples, the motivating example, and two from its figures and appendix."""

from __future__ import annotations

import numpy as np

from driftsack.core.checks import share, whole
from driftsack.core.instance import Instance, Noise


def example_1(horizon: int = 10_000, noise: Noise = "bernoulli") -> Instance:
    """Build Example 1: two arms with equal rewards, whose costs are swapped at T/2.

    There is one resource with budget T/2, and OPT(T) = T/2.

    Args:
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> example_1(horizon=100).costs[:, 0]
    array([[0.5, 1. ],
           [1. , 0.5]])
    """
    costs = [[[0.5, 1.0]], [[1.0, 0.5]]]
    return Instance.piecewise([[0.5, 0.5]] * 2, costs, halves(horizon), budget=horizon / 2, noise=noise)


def example_2(horizon: int = 10_000, noise: Noise = "bernoulli") -> Instance:
    """Build Example 2: two resources; after T/2, arm 0 earns nothing and uses both resources.

    In the first half each arm uses one resource. Each budget is T/2, and OPT(T) = T/2.

    Args:
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> example_2().rewards
    array([[0.5, 0.5],
           [0. , 0.5]])
    """
    rewards = [[0.5, 0.5], [0.0, 0.5]]
    costs = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [1.0, 0.5]]]
    return Instance.piecewise(rewards, costs, halves(horizon), budget=horizon / 2, noise=noise)


def example_3(alpha: float, horizon: int = 10_000, noise: Noise = "bernoulli") -> Instance:
    """Build Example 3: one change point at αT, so that W depends on α and V does not.

    Each of the two budgets is T/4. The paper states OPT(T) = T/4 (2,500 for T = 10⁴). This holds for α ≥ 1/2; for
    smaller α the optimum is 0.5αT + 0.7(T/4 - 0.5αT).

    Args:
        alpha: The share α of the rounds before the change point, in [0, 1].
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> example_3(alpha=0.3, horizon=10).phase
    array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1], dtype=int32)
    """
    change = round(share(alpha, "alpha") * whole(horizon, "horizon", at_least=1))
    rewards = [[0.5, 0.5], [0.0, 0.7]]
    costs = [[[0.7, 0.3], [0.3, 0.7]], [[1.0, 1.0], [1.0, 1.0]]]
    return Instance.piecewise(rewards, costs, [change, horizon - change], budget=horizon / 4, noise=noise)


def example_4(periods: int = 10, horizon: int = 10_000, noise: Noise = "bernoulli") -> Instance:
    """Build Example 4: after a first half as in Example 2, the costs of arm 1 oscillate between 0 and 1.

    V depends on the number of periods and W does not. Each budget is 0.3125 T, and OPT(T) = 0.375 T up to
    discretisation. The oscillation is a triangle wave that starts at 0, evaluated in the middle of each round.

    Args:
        periods: The number of periods in the second half.
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> example_4(periods=1, horizon=8).costs[:, 0, 1]
    array([0.  , 0.25, 0.75, 0.25])
    """
    whole(periods, "periods", at_least=1)
    first, second = halves(horizon)
    cycles = (np.arange(second) + 0.5) * periods / second
    triangle_wave = 1.0 - np.abs(2.0 * (cycles % 1.0) - 1.0)
    rewards = np.tile([0.5, 0.5], (horizon, 1))
    rewards[first:, 0] = 0.0
    costs = np.tile([[1.0, 0.0], [0.0, 1.0]], (horizon, 1, 1))
    costs[first:, :, 0] = 1.0
    costs[first:, :, 1] = triangle_wave[:, None]
    return Instance.from_arrays(rewards, costs, budget=0.3125 * horizon, noise=noise)


def motivating(
    delta: float = 0.5, better: bool = True, horizon: int = 10_000, noise: Noise = "deterministic"
) -> Instance:
    """Build the example of section 2.1: one arm that costs 1 and earns 1 at first, then 1 + Δ or 1 - Δ.

    The budget is T/2. A policy that does not know the second half loses TΔ/4 in one of the two cases. Since rewards
    reach 1 + Δ, ``reward_max`` is 1 + Δ.

    Args:
        delta: The change Δ of the reward at T/2, in [0, 1].
        better: Whether the reward rises; otherwise it falls.
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> motivating(delta=0.25, better=False).rewards.ravel()
    array([1.  , 0.75])
    """
    change = share(delta, "delta")
    after = 1.0 + change if better else 1.0 - change
    costs = [[[1.0]], [[1.0]]]
    return Instance.piecewise(
        [[1.0], [after]], costs, halves(horizon), budget=horizon / 2, noise=noise, reward_max=1.0 + change
    )


def step_change(k: int, horizon: int = 10_000, noise: Noise = "bernoulli") -> Instance:
    """Build the instance of the paper's figure on W1 and W1_min: one arm that earns 1 in the first rounds, then 0.

    The paper does not specify costs. Here every round costs 1 and the budget is T/2.

    Args:
        k: The number of rounds with reward 1.
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> step_change(k=3, horizon=5).rewards[step_change(k=3, horizon=5).phase].ravel()
    array([1., 1., 1., 0., 0.])
    """
    first = whole(k, "k", at_least=0, at_most=whole(horizon, "horizon", at_least=1))
    lengths = [first, horizon - first]
    return Instance.piecewise([[1.0], [0.0]], [[[1.0]], [[1.0]]], lengths, budget=horizon / 2, noise=noise)


def nonbinding(horizon: int = 10_000, noise: Noise = "deterministic") -> Instance:
    """Build the example of the appendix on non-bindingness: one arm that uses each of two resources for half the time.

    The arm earns 1; each budget is 2T/3. No budget binds over the horizon, but a constraint binds in every round's LP.

    Args:
        horizon: The number T of rounds.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> nonbinding(horizon=6).problem.budget
    (4.0, 4.0)
    """
    costs = [[[1.0], [0.0]], [[0.0], [1.0]]]
    return Instance.piecewise([[1.0], [1.0]], costs, halves(horizon), budget=2 * horizon / 3, noise=noise)


def halves(horizon: int) -> tuple[int, int]:
    """Return the lengths of the two halves; if the horizon is odd, the second is longer by one round."""
    total = whole(horizon, "horizon", at_least=2)
    return total // 2, total - total // 2
