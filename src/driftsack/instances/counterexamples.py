"""Counterexamples to statements of the paper, or to earlier claims of this library; see docs/errata.md."""

from __future__ import annotations

import numpy as np

from driftsack.core.checks import at_least_zero, number, whole
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance, Noise
from driftsack.core.problem import Problem


def drift_in_turn(
    resources: int = 8, horizon: int = 100_000, rate: float = 0.5, jump: float = 0.1, noise: Noise = "deterministic"
) -> Instance:
    r"""Build an instance that needs the factor d of Theorem 1: resources drift one after the other.

    One arm earns 1 and costs the rate b of every resource. In the j-th of d blocks its cost of resource j rises by
    ``jump`` for half of the block. So each resource has the variation 2 ``jump``, :math:`V_2 = 2\Delta`, but
    :math:`V_2^\Sigma = 2 d \Delta`, and tracking the costs loses in every block.

    Args:
        resources: The number d of resources.
        horizon: The number T of rounds.
        rate: The budget per round b of every resource.
        jump: The rise Δ of a cost, at most 1 - b.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> drift_in_turn(resources=2, horizon=8, jump=0.25).costs[:, :, 0].tolist()
    [[0.5, 0.5], [0.75, 0.5], [0.5, 0.75]]
    """
    d, rounds = whole(resources, "resources", at_least=1), whole(horizon, "horizon", at_least=1)
    b, rise = number(rate, "rate"), at_least_zero(jump, "jump")
    if not 0 < b <= 1 - rise:
        raise OutOfRangeError(f"rate must lie in (0, {1 - rise:g}], so that b + Δ is at most 1, got {b:g}.")
    costs = np.full((d + 1, d, 1), b)
    costs[1 + np.arange(d), np.arange(d), 0] += rise
    quarter = np.arange(rounds) * 4 * d // rounds  # quarter of a block that each round belongs to
    phase = np.where(np.isin(quarter % 4, (1, 2)), 1 + quarter // 4, 0).astype(np.int32)
    problem = Problem(rounds, 1, [b * rounds] * d)
    return Instance(problem, np.ones((d + 1, 1)), costs, phase, noise)


def free_best_arm(horizon: int = 1_000_000, rivals: int = 4, noise: Noise = "bernoulli") -> Instance:
    """Build the counterexample to Appendix D.1: the best arm is free, so no budget binds, but Algorithm 1 stops early.

    One arm earns 0.501 and costs nothing; the others earn 0.5 and cost 1. The rate is 0.5. No budget binds even at a
    rate of 0.01, but the algorithm plans with 0.5 and needs about 10⁸ pulls to distinguish the arms.

    Args:
        horizon: The number T of rounds.
        rivals: The number of arms that cost 1.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> free_best_arm(horizon=10, rivals=2).costs.tolist()
    [[[0.0, 1.0, 1.0]]]
    """
    count = whole(rivals, "rivals", at_least=1)
    rounds = whole(horizon, "horizon", at_least=1)
    return Instance.stationary([0.501] + [0.5] * count, [[0.0] + [1.0] * count], rounds, 0.5 * rounds, noise=noise)


def flipping_costs(
    horizon: int = 1_000_000, useless: int = 19, drift: float = 1e-5, noise: Noise = "bernoulli"
) -> Instance:
    """Build the counterexample to the theorem of Appendix E: only arms that earn nothing drift.

    One arm earns 1 and costs 0.4999, a little less than the rate 0.5, so every price is 0. The costs of the other arms
    flip between 0 and 1, and they earn nothing. The refined algorithm holds back a share ε of the budget that grows
    with the drift, and loses ε OPT.

    Args:
        horizon: The number T of rounds.
        useless: The number of arms that earn nothing.
        drift: The number of flips per round, so that V2 = ``drift`` T.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.

    >>> flipping_costs(horizon=100, useless=1, drift=0.02).costs[:, 0].tolist()
    [[0.4999, 0.0], [0.4999, 1.0]]
    """
    count, rounds = whole(useless, "useless", at_least=1), whole(horizon, "horizon", at_least=1)
    flips = round(at_least_zero(drift, "drift") * rounds)
    rewards = np.zeros((2, 1 + count))
    rewards[:, 0] = 1.0
    costs = np.zeros((2, 1, 1 + count))
    costs[:, :, 0], costs[1, :, 1:] = 0.4999, 1.0
    phase = (np.arange(rounds) * (flips + 1) // rounds % 2).astype(np.int32)
    used = 2 if flips else 1  # number of distinct rows
    return Instance(Problem(rounds, 1 + count, [0.5 * rounds]), rewards[:used], costs[:used], phase, noise)
