r"""Families of environments that distinguish policies, and the registry of all families.

Every function of this file draws one environment from a seed. All environments have T rounds, m arms, d resources,
means in [0, 1], and budgets :math:`B_j = b_j T` with rates :math:`b_j` drawn from a range, so that budgets bind and
random choices are far from optimal. Times are shares of the horizon, so an environment keeps its shape at any T.
:math:`U(a, b)` is the uniform distribution; every symbol is drawn independently.

:data:`FAMILIES` maps the name of each family to its factory, which may be in :mod:`driftsack.instances.drifting`, and
its arguments. ``driftsack league`` plays one environment of each family, and ``driftsack league --held-out SEED`` draws
fresh ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import share, whole
from driftsack.core.instance import Instance, Noise
from driftsack.core.seeding import generator
from driftsack.instances.drifting import Range, budget_rates, from_rows, random_lengths

RATES: Final = (0.15, 0.4)


def seasonal(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = RATES,
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Let every mean follow a sine wave with its own level, amplitude, period and phase.

    .. math:: \mu_{t,i} = u_i + a_i \sin\bigl(2\pi (p_i t/T + \phi_i)\bigr), \quad
              u_i \sim U(0.3, 0.7),\; a_i \sim U(0.1, 0.3),\; p_i \sim U(1, 6),\; \phi_i \sim U(0, 1),

    and mean costs likewise with levels :math:`U(0.2, 0.7)`, the amplitude 0.15 and :math:`U(1, 4)` periods. In
    :func:`~driftsack.instances.sinusoidal` all means share one period and one amplitude.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of all draws.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    rng = generator(seed)
    cycle = np.arange(whole(horizon, "horizon", 1))[:, None, None] / horizon
    level, amplitude, periods = np.empty((3, resources + 1, arms))
    level[0], level[1:] = rng.uniform(0.3, 0.7, arms), rng.uniform(0.2, 0.7, (resources, arms))
    amplitude[0], amplitude[1:] = rng.uniform(0.1, 0.3, arms), 0.15
    periods[0], periods[1:] = rng.uniform(1.0, 6.0, arms), rng.uniform(1.0, 4.0, (resources, arms))
    rows = level + amplitude * np.sin(2 * np.pi * (periods * cycle + rng.random((resources + 1, arms))))
    return from_rows(rows, budget_rates(rng, rate, resources), noise)


def smooth_random(
    knots: int = 8,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = RATES,
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Let every mean interpolate linearly between levels drawn at equally spaced times.

    With k knots, :math:`\mu_{t,i}` and :math:`C_{t,j,i}` are piecewise linear in t through k draws of
    :math:`U(0.1, 0.9)`.

    Args:
        knots: The number of levels of each mean, including those of the first and the last round.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of the levels and rates.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    rng = generator(seed)
    levels = rng.uniform(0.1, 0.9, (whole(knots, "knots", 2), resources + 1, arms))
    place = np.linspace(0.0, knots - 1.0, whole(horizon, "horizon", 1))
    before = np.minimum(place.astype(np.int64), knots - 2)
    part = (place - before)[:, None, None]
    rows = (1.0 - part) * levels[before] + part * levels[before + 1]
    return from_rows(rows, budget_rates(rng, rate, resources), noise)


def common_shocks(
    changes: int = 5,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = RATES,
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Multiply the rewards of all arms by one factor that changes at random times.

    .. math:: \mu_{t,i} = \min(1, f_{k(t)} u_i), \quad u_i \sim U(0.2, 0.9),\; f_k \sim U(0.3, 1.1),

    with constant mean costs :math:`U(0.1, 0.9)`; k(t) counts the changes before round t. The best mix changes little,
    but it pays to spend when the factor is high.

    Args:
        changes: The number of changes of the factor.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of all draws.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    whole(changes, "changes", 0, whole(horizon, "horizon", 1) - 1)
    rng = generator(seed)
    rewards, costs = rng.uniform(0.2, 0.9, arms), rng.uniform(0.1, 0.9, (resources, arms))
    factor = rng.uniform(0.3, 1.1, changes + 1)
    lengths = random_lengths(rng, changes, horizon)
    rates = budget_rates(rng, rate, resources)
    return _phases(np.minimum(factor[:, None] * rewards, 1.0), costs, lengths, rates, noise)


def rich_and_poor(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = (0.12, 0.3),
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Alternate between rich and poor periods of equal length; in poor periods every arm earns a fraction.

    There are :math:`n \in \{4, \dots, 11\}` periods. Mean rewards are :math:`u_i \sim U(0.3, 0.95)` in periods 1,
    3rd, ... and :math:`f u_i` in the others, with one :math:`f \sim U(0.15, 0.4)`; mean costs are constant,
    :math:`U(0.1, 0.9)`. The best plan saves budget in poor periods.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of all draws.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    rng = generator(seed)
    rewards, costs = rng.uniform(0.3, 0.95, arms), rng.uniform(0.1, 0.9, (resources, arms))
    periods = int(rng.integers(4, 12))
    factor = np.where(np.arange(periods) % 2 == 0, 1.0, rng.uniform(0.15, 0.4))
    rates = budget_rates(rng, rate, resources)
    return _phases(factor[:, None] * rewards, costs, _equal_lengths(periods, horizon), rates, noise)


def rotating_best_arm(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = RATES,
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Make a different arm by far the best in each of several periods of equal length.

    There are :math:`n \in \{4, \dots, 8\}` periods. In each, one arm has a mean reward of :math:`U(0.7, 0.9)` and the
    others :math:`U(0.25, 0.35)`. The order of the best arms is random and repeats arms if n > m. Mean costs are
    constant, :math:`U(0.3, 0.7)`.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of all draws.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    rng = generator(seed)
    periods = int(rng.integers(4, 9))
    best = rng.permutation(np.arange(periods) % arms)
    rewards = rng.uniform(0.25, 0.35, (periods, arms))
    rewards[np.arange(periods), best] = rng.uniform(0.7, 0.9, periods)
    costs = rng.uniform(0.3, 0.7, (resources, arms))
    return _phases(rewards, costs, _equal_lengths(periods, horizon), budget_rates(rng, rate, resources), noise)


def cost_jumps(
    changes: int = 4,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = (0.15, 0.35),
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Draw all mean costs again at random change points, while rewards stay constant.

    Mean rewards are constant, :math:`U(0.3, 0.9)`; mean costs are :math:`U(0.05, 0.95)` in each phase.

    Args:
        changes: The number of change points.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of all draws.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    whole(changes, "changes", 0, whole(horizon, "horizon", 1) - 1)
    rng = generator(seed)
    rewards = np.tile(rng.uniform(0.3, 0.9, arms), (changes + 1, 1))
    costs = rng.uniform(0.05, 0.95, (changes + 1, resources, arms))
    lengths = random_lengths(rng, changes, horizon)
    return Instance.piecewise(rewards, costs, lengths, horizon * budget_rates(rng, rate, resources), noise)


def unseen_improvement(
    height: float = 0.95,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = (0.2, 0.4),
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    r"""Make the worst arm by far the best one, at a time when no policy has a reason to pull it.

    Mean rewards are :math:`U(0.3, 0.6)` and mean costs :math:`U(0.3, 0.6)`. After a share :math:`U(0.25, 0.5)` of the
    rounds the arm with the lowest mean reward rises to ``height``. A policy that never revisits the arm misses this.

    Args:
        height: The mean reward of the arm afterwards.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of all draws.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    rng = generator(seed)
    before = rng.uniform(0.3, 0.6, arms)
    after = np.where(np.arange(arms) == np.argmin(before), share(height, "height"), before)
    costs = rng.uniform(0.3, 0.6, (resources, arms))
    change = int(whole(horizon, "horizon", 1) * rng.uniform(0.25, 0.5))
    rates = budget_rates(rng, rate, resources)
    return _phases(np.stack([before, after]), costs, [change, horizon - change], rates, noise)


def _phases(rewards: Floats, costs: Floats, lengths: list[int], rates: Floats, noise: Noise) -> Instance:
    """Build an instance from mean rewards (K, m) of each phase and constant mean costs (d, m)."""
    return Instance.piecewise(rewards, np.stack([costs] * len(rewards)), lengths, sum(lengths) * rates, noise)


def _equal_lengths(periods: int, horizon: int) -> list[int]:
    """Return the lengths of periods that are equal up to one round."""
    ends = np.arange(periods + 1) * whole(horizon, "horizon", 1) // periods
    lengths: list[int] = np.diff(ends).tolist()
    return lengths


_WIDE: Final = {"cost_range": (0.1, 0.9), "rate": RATES}
FAMILIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "piecewise": {"instance": "piecewise_random", "changes": 5, "reward_range": (0.05, 0.95), **_WIDE},
    "seasonal": {"instance": "seasonal"},
    "random walk": {"instance": "random_walk", "step": 0.004, "reward_range": (0.05, 0.95), **_WIDE},
    "stationary": {"instance": "piecewise_random", "changes": 0, "reward_range": (0.1, 0.9), **_WIDE},
    "common shocks": {"instance": "common_shocks"},
    "rich and poor": {"instance": "rich_and_poor"},
    "rotating best arm": {"instance": "rotating_best_arm"},
    "cost jumps": {"instance": "cost_jumps"},
    "sparse rewards": {"instance": "piecewise_random", "changes": 3, "reward_range": (0.01, 0.12), **_WIDE},
    "many arms": {"instance": "piecewise_random", "changes": 3, "arms": 20, "reward_range": (0.05, 0.95), **_WIDE},
    "smooth": {"instance": "smooth_random"},
    "unseen improvement": {"instance": "unseen_improvement"},
    "linear trend": {
        "instance": "linear_trend",
        "reward_range": (0.1, 0.9),
        "cost_range": (0.15, 0.85),
        "rate": RATES,
    },
    "bursts": {
        "instance": "bursts",
        "count": 6,
        "length": 0.05,
        "height": 0.95,
        "reward_range": (0.2, 0.5),
        **_WIDE,
    },
    "heavy-tailed costs": {
        "instance": "piecewise_random",
        "changes": 3,
        "reward_range": (0.1, 0.9),
        "cost_range": (0.005, 0.1),
        "rate": (0.01, 0.03),
        "noise": "lognormal",
    },
}
"""Maps each family to a factory of ``driftsack.instances`` and its arguments, without ``seed`` and ``horizon``."""
