"""The worlds of the paper: its four examples, the motivating one, and two of the appendix."""

from __future__ import annotations

import numpy as np

from driftsack.core.checks import number, whole
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance


def example_1(horizon: int = 10_000, noise: str = "bernoulli") -> Instance:
    """Two equal arms, one resource; the cheap arm and the dear arm swap at T/2. OPT(T) = T/2.

    >>> example_1(horizon=100).costs[:, 0]
    array([[0.5, 1. ],
           [1. , 0.5]])
    """
    half = halves(horizon)
    costs = [[[0.5, 1.0]], [[1.0, 0.5]]]
    return Instance.piecewise([[0.5, 0.5]] * 2, costs, half, budget=horizon / 2, noise=noise)


def example_2(horizon: int = 10_000, noise: str = "bernoulli") -> Instance:
    """Two resources: first the arms use one each, then arm 0 is worthless and dear. OPT(T) = T/2.

    >>> example_2().rewards
    array([[0.5, 0.5],
           [0. , 0.5]])
    """
    rewards = [[0.5, 0.5], [0.0, 0.5]]
    costs = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [1.0, 0.5]]]
    return Instance.piecewise(rewards, costs, halves(horizon), budget=horizon / 2, noise=noise)


def example_3(alpha: float, horizon: int = 10_000, noise: str = "bernoulli") -> Instance:
    """One change at αT: V does not depend on α, W does. Budget T/4.

    The paper gives OPT(T) = T/4 (2,500 for T = 10⁴); that holds for α ≥ 1/2, and below it the optimum is
    0.5αT + 0.7(T/4 - 0.5αT).

    >>> example_3(alpha=0.3, horizon=10).phase
    array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1], dtype=int32)
    """
    share = number(alpha, "alpha")
    if not 0.0 <= share <= 1.0:
        raise OutOfRangeError(f"alpha must lie in [0, 1], got {share:g}.")
    change = round(share * whole(horizon, "horizon", at_least=1))
    rewards = [[0.5, 0.5], [0.0, 0.7]]
    costs = [[[0.7, 0.3], [0.3, 0.7]], [[1.0, 1.0], [1.0, 1.0]]]
    return Instance.piecewise(rewards, costs, [change, horizon - change], budget=horizon / 4, noise=noise)


def example_4(periods: int = 10, horizon: int = 10_000, noise: str = "bernoulli") -> Instance:
    """A first half as in Example 2, then arm 1's costs swing between 0 and 1, ``periods`` times.

    W does not depend on ``periods``, V does. Budget 0.3125 T, OPT(T) = 0.375 T up to discretisation. The
    swing is a triangle wave that starts at 0, taken in the middle of each round.

    >>> example_4(periods=1, horizon=8).costs[:, 0, 1]
    array([0.  , 0.25, 0.75, 0.25])
    """
    whole(periods, "periods", at_least=1)
    first, second = halves(horizon)
    cycles = (np.arange(second) + 0.5) * periods / second
    swing = 1.0 - np.abs(2.0 * (cycles % 1.0) - 1.0)
    rewards = np.tile([0.5, 0.5], (horizon, 1))
    rewards[first:, 0] = 0.0
    costs = np.tile([[1.0, 0.0], [0.0, 1.0]], (horizon, 1, 1))
    costs[first:, :, 0] = 1.0
    costs[first:, :, 1] = swing[:, None]
    return Instance.from_arrays(rewards, costs, budget=0.3125 * horizon, noise=noise)


def motivating(
    delta: float = 0.5, better: bool = True, horizon: int = 10_000, noise: str = "deterministic"
) -> Instance:
    """Section 2.1: one arm that uses 1 and earns 1, then 1 + Δ or 1 - Δ; budget T/2.

    Who does not know which future comes must lose TΔ/4 in one of them. Rewards go up to 1 + Δ, so
    ``reward_max`` is 1 + Δ.

    >>> motivating(delta=0.25, better=False).rewards.ravel()
    array([1.  , 0.75])
    """
    step = number(delta, "delta")
    if not 0.0 <= step <= 1.0:
        raise OutOfRangeError(f"delta must lie in [0, 1], got {step:g}.")
    after = 1.0 + step if better else 1.0 - step
    costs = [[[1.0]], [[1.0]]]
    return Instance.piecewise(
        [[1.0], [after]], costs, halves(horizon), budget=horizon / 2, noise=noise, reward_max=1.0 + step
    )


def step_change(k: int, horizon: int = 10_000, noise: str = "bernoulli") -> Instance:
    """One arm that earns 1 in the first ``k`` rounds and 0 after (the figure of W1 and W1_min).

    The paper leaves its costs open; here a round uses 1 and the budget is T/2.

    >>> step_change(k=3, horizon=5).rewards[step_change(k=3, horizon=5).phase].ravel()
    array([1., 1., 1., 0., 0.])
    """
    first = whole(k, "k", at_least=0, at_most=whole(horizon, "horizon", at_least=1))
    lengths = [first, horizon - first]
    return Instance.piecewise([[1.0], [0.0]], [[[1.0]], [[1.0]]], lengths, budget=horizon / 2, noise=noise)


def nonbinding(horizon: int = 10_000, noise: str = "deterministic") -> Instance:
    """One arm that earns 1 and uses the first of two resources, then the second; budgets 2T/3.

    No budget binds over the horizon, yet every single round's LP is bound (appendix on non-bindingness).

    >>> nonbinding(horizon=6).problem.budget
    (4.0, 4.0)
    """
    costs = [[[1.0], [0.0]], [[0.0], [1.0]]]
    return Instance.piecewise([[1.0], [1.0]], costs, halves(horizon), budget=2 * horizon / 3, noise=noise)


def halves(horizon: int) -> tuple[int, int]:
    """Lengths of the two halves; of an odd horizon the second is longer."""
    total = whole(horizon, "horizon", at_least=2)
    return total // 2, total - total // 2
