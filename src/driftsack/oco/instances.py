r"""Problems of online convex optimisation: the paper's lower bound, random families, and a data centre.

The random families have the domain [0, 1]ⁿ, losses that decrease in x, and constraints :math:`a_t^\top x \le b` with a
in [0.2, 1] and b a share of the use at x = (1, ..., 1), so that x = 0 is always strictly feasible.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, at_least_zero, number, whole
from driftsack.core.errors import OutOfRangeError
from driftsack.core.seeding import generator
from driftsack.oco.domains import Box
from driftsack.oco.families import Linear, Norm, Quadratic
from driftsack.oco.problem import ConvexProblem

LIMIT_SHARE: Final = 0.3  # the limit b of a constraint, as a share of the use at x = (1, ..., 1)
HOURS: Final = 24
PULL: Final = 0.2  # slope of the losses towards the constraints, in the problems on hard violation


class ClosedForms(NamedTuple):
    r"""The closed forms of :func:`proposition_2`.

    Attributes:
        optimum: OPT.
        restricted: OPT'.
        variation: W.
        q_bar: :math:`\bar q`, the larger price of the two programs, with that of OPT' divided evenly among its binding
            rounds.
        printed_optimum: OPT as printed in the paper (errata).
        printed_restricted: OPT' as printed in the paper (errata).
    """

    optimum: float
    restricted: float
    variation: float
    q_bar: float
    printed_optimum: float
    printed_restricted: float


def proposition_2(horizon: int = 10_000, reward: float = 1.0, budget: float = 0.5, shift: float = 0.1) -> ConvexProblem:
    r"""Build Proposition 2's example of one variable, with constraints that change once, at T/2.

    .. math:: f_t(x) = -rx, \qquad g_t(x) = (b + \Delta 1\{t \le T/2\}) x - b/2, \qquad x \in [0, 1]

    Args:
        horizon: The number T of rounds.
        reward: The slope r of the rewards, above 0.
        budget: The budget b, above 0.
        shift: The additional cost Δ in the first half, above 0.

    >>> proposition_2(horizon=1_000)
    ConvexProblem(1,000 rounds, 1 variable, 1 constraint)
    """
    r, b, delta = above_zero(reward, "reward"), above_zero(budget, "budget"), above_zero(shift, "shift")
    phase = (np.arange(1, whole(horizon, "horizon", at_least=2) + 1) > horizon / 2).astype(np.int32)
    constraints = Linear([[b + delta], [b]], [[-b / 2], [-b / 2]], phase)
    return ConvexProblem(Linear([[-r]], phase=np.zeros(horizon, dtype=np.int32)), constraints, Box(0.0, 1.0))


def proposition_2_forms(
    horizon: int = 10_000, reward: float = 1.0, budget: float = 0.5, shift: float = 0.1
) -> ClosedForms:
    r"""Compute OPT, OPT', W and q̄ of :func:`proposition_2` in closed form.

    With h rounds in the first half, a fixed x satisfies the sum of the constraints if and only if
    :math:`x \le \tfrac{b}{2} T / (bT + \Delta h)`, and each of them if and only if
    :math:`x \le \tfrac{b}{2} / (b + \Delta)`.

    Args:
        horizon: The number T of rounds.
        reward: The slope r of the rewards.
        budget: The budget b.
        shift: The additional cost Δ in the first half.

    >>> forms = proposition_2_forms(horizon=1_000)
    >>> round(forms.restricted - forms.optimum, 3), round(forms.q_bar * forms.variation, 3)
    (37.879, 166.667)
    """
    r, b, delta, half = reward, budget, shift, horizon // 2
    return ClosedForms(
        optimum=-r * horizon * 0.5 * b * horizon / (b * horizon + delta * half),
        restricted=-r * horizon * 0.5 * b / (b + delta),
        variation=2 * delta * half * (horizon - half) / horizon,
        q_bar=max(r * horizon / (b * horizon + delta * half), r * horizon / (half * (b + delta))),
        printed_optimum=-r * horizon / 2,
        printed_restricted=-r * horizon / 4 * (b / (b + delta) + 1),
    )


def iid(
    dimension: int = 3,
    constraints: int = 2,
    horizon: int = 10_000,
    noise: float = 0.5,
    bias: float = 0.5,
    seed: int = 0,
) -> ConvexProblem:
    """Build a problem with random linear losses and stationary constraints, observed with noise.

    Args:
        dimension: The number n of variables.
        constraints: The number d of constraints per round.
        horizon: The number T of rounds.
        noise: The size of the perturbations of the constraints; 0 for none. See :class:`~driftsack.oco.ConvexProblem`.
        bias: The mean of every coefficient of a loss is ``-bias``; each is drawn uniformly within ½ of it. With bias 0
            all decisions have the same expected loss, which is the hardest case for regret.
        seed: The seed of losses and constraints.
    """
    rng = generator(seed)
    uses = rng.uniform(0.2, 1.0, (1, constraints, dimension))
    size = (whole(horizon, "horizon", at_least=1), dimension)
    losses = Linear(rng.random(size) - 0.5 - number(bias, "bias"))
    stationary = Linear(uses, -LIMIT_SHARE * uses.sum(axis=2), np.zeros(horizon, dtype=np.int32))
    return ConvexProblem(losses, stationary, Box(0.0, 1.0, size=dimension), noise=noise)


def one_switch(
    dimension: int = 3, constraints: int = 2, horizon: int = 10_000, size: float = 0.2, seed: int = 0
) -> ConvexProblem:
    """Build a problem with random linear losses and constraints that change once, at T/2.

    Args:
        dimension: The number n of variables.
        constraints: The number d of constraints per round.
        horizon: The number T of rounds.
        size: The largest deviation of a coefficient of a constraint from its mean over the two halves.
        seed: The seed of losses and constraints.
    """
    rng = generator(seed)
    change = at_least_zero(size, "size") * rng.uniform(-1.0, 1.0, (constraints, dimension))
    uses = rng.uniform(0.2, 1.0, (constraints, dimension))
    rows = np.stack([uses + change, uses - change])
    losses = Linear(-rng.random((whole(horizon, "horizon", at_least=2), dimension)))
    phase = (np.arange(horizon) >= horizon // 2).astype(np.int32)
    limits = np.broadcast_to(-LIMIT_SHARE * uses.sum(axis=1), (2, constraints))
    return ConvexProblem(losses, Linear(rows, limits, phase), Box(0.0, 1.0, size=dimension))


def slow_drift(
    dimension: int = 3, constraints: int = 2, horizon: int = 10_000, size: float = 0.2, seed: int = 0
) -> ConvexProblem:
    """Build a problem with constraints that change linearly, and squared distances from a moving target as losses.

    Args:
        dimension: The number n of variables.
        constraints: The number d of constraints per round.
        horizon: The number T of rounds.
        size: The deviation of every coefficient of a constraint from its mean, at the start and at the end.
        seed: The seed of losses and constraints.
    """
    rng = generator(seed)
    path = np.linspace(-1.0, 1.0, whole(horizon, "horizon", at_least=2))[:, None, None]
    return _drifting(rng.uniform(0.2, 1.0, (constraints, dimension)), path, size, rng)


def periodic(
    dimension: int = 3,
    constraints: int = 2,
    horizon: int = 10_000,
    size: float = 0.2,
    periods: float = 10.0,
    seed: int = 0,
) -> ConvexProblem:
    """Build a problem with periodic constraints, and squared distances from a periodic target as losses.

    Args:
        dimension: The number n of variables.
        constraints: The number d of constraints per round.
        horizon: The number T of rounds.
        size: The amplitude of every coefficient of a constraint. Each has its own phase.
        periods: The number of periods over the horizon.
        seed: The seed of losses and constraints.
    """
    rng = generator(seed)
    phase = rng.random((1, constraints, dimension))
    cycle = np.arange(whole(horizon, "horizon", at_least=2))[:, None, None] * (number(periods, "periods") / horizon)
    path = np.sin(2 * np.pi * (cycle + phase))
    return _drifting(rng.uniform(0.2, 1.0, (constraints, dimension)), path, size, rng)


def _drifting(uses: Floats, path: Floats, size: float, rng: np.random.Generator) -> ConvexProblem:
    """Build a problem with a drift of ``size`` times a path (T, 1 or d, 1 or n) with values in [-1, 1].

    The coefficients of the constraints are ``uses`` (d, n) plus or minus the drift. The losses are half the squared
    distances from a target that follows the path of the first constraint.
    """
    direction = np.sign(rng.normal(size=uses.shape))
    rows = uses + at_least_zero(size, "size") * path * direction
    limits = np.broadcast_to(-LIMIT_SHARE * uses.sum(axis=1), rows.shape[:2])
    target = 0.7 + 0.3 * np.broadcast_to(path, rows.shape)[:, 0, :] * np.sign(rng.normal(size=uses.shape[1]))
    losses = Quadratic(np.eye(uses.shape[1]), -target, 0.5 * (target**2).sum(axis=1))
    return ConvexProblem(losses, Linear(rows, limits), Box(0.0, 1.0, size=uses.shape[1]))


def job_scheduling(
    servers: int = 5, horizon: int = 24 * 365, load: float = 0.5, energy: float = 0.9, seed: int = 0
) -> ConvexProblem:
    r"""Build the problem of a data centre: each hour choose the load x of each server, in [0, 1].

    The loss is the cost of power, the hour's price times Σ p_i x_i, plus a small cost of wear, ½ 0.1 ‖x‖². In the long
    run the demand must be served, :math:`\mathrm{demand}_t - \sum_i s_i x_i \le 0`, and the power used must not exceed
    a share of the power of all servers. Prices and demand have a daily pattern.

    Args:
        servers: The number of servers.
        horizon: The number T of hours.
        load: The mean demand as a share of the capacity of all servers.
        energy: The power limit as a share of the power of all servers, above ``load`` and at most 1.
        seed: The seed of the speeds s and powers p of the servers.

    >>> job_scheduling(servers=4, horizon=24 * 7)
    ConvexProblem(168 rounds, 4 variables, 2 constraints)
    """
    if not 0 < load < energy <= 1:
        raise OutOfRangeError(f"load and energy must satisfy 0 < load < energy <= 1, got {load:g} and {energy:g}.")
    rng = generator(seed)
    speed, power = rng.uniform(0.5, 1.5, (2, whole(servers, "servers", at_least=1)))
    hour = np.arange(HOURS)
    price = 1.0 + 0.5 * np.sin(2 * np.pi * (hour - 11) / HOURS)  # highest in the evening
    demand = load * speed.sum() * (1.0 + 0.4 * np.sin(2 * np.pi * (hour - 8) / HOURS))  # highest in the afternoon
    phase = np.arange(whole(horizon, "horizon", at_least=1)) % HOURS
    losses = Quadratic(0.1 * np.eye(servers), price[:, None] * power, 0.0, phase)
    rows = np.broadcast_to(np.stack([-speed, power]), (HOURS, 2, servers))
    limits = np.stack([demand, np.full(HOURS, -energy * power.sum())], axis=1)
    return ConvexProblem(losses, Linear(rows, limits, phase), Box(0.0, 1.0, size=servers))


def tight_then_loose(horizon: int = 10_000, size: float = 0.1) -> ConvexProblem:
    r"""Build a problem whose limit is first tight and then loose, which is costly for a learner that does not know it.

    .. math:: f(x) = |x - \tfrac12|, \qquad g_t(x) = x - \tfrac12 \pm \Delta, \qquad x \in [0, 1]

    The limit on x is Δ lower than ½ in the first half and Δ higher in the second. The best fixed decision, ½,
    violates it at first and compensates later. A learner that cannot know that the limit will rise must stay at ½ - Δ,
    so about half of W = ΔT is lost.

    Args:
        horizon: The number T of rounds.
        size: The deviation Δ of the limit from ½.

    >>> tight_then_loose(horizon=1_000)
    ConvexProblem(1,000 rounds, 1 variable, 1 constraint)
    """
    change = at_least_zero(size, "size")
    phase = (np.arange(whole(horizon, "horizon", at_least=2)) >= horizon // 2).astype(np.int32)
    limits = Linear([[1.0], [1.0]], [[change - 0.5], [-change - 0.5]], phase)
    return ConvexProblem(Norm([[0.5]], phase=np.zeros(horizon, dtype=np.int32)), limits, Box(0.0, 1.0))


def tight_and_loose(horizon: int = 10_000, size: float = 0.25, noise: float = 0.5, seed: int = 0) -> ConvexProblem:
    r"""Build a problem whose limit is tight and loose in turn, so that slack could pay for violations.

    .. math:: f_t(x) = -\tfrac15 x_1 + \xi_t x_2, \qquad g_t(x) = x_1 - \tfrac12 \pm \Delta, \qquad x \in [0, 1]^2

    The limit is lower by Δ in even rounds and higher in odd ones, and :math:`\xi_t` is uniform on [-s, s]. The sum of
    the constraints allows :math:`x_1 = 1/2`, which violates every second round by Δ; the constraints of all rounds
    allow :math:`1/2 - \Delta`.

    Args:
        horizon: The number T of rounds.
        size: The deviation Δ of the limit from ½.
        noise: The size s of the random part of the losses.
        seed: The seed of the losses.

    >>> tight_and_loose(horizon=1_000)
    ConvexProblem(1,000 rounds, 2 variables, 1 constraint)
    """
    change, rounds = at_least_zero(size, "size"), whole(horizon, "horizon", at_least=2)
    slopes = at_least_zero(noise, "noise") * generator(seed).uniform(-1.0, 1.0, rounds)
    limits = Linear([[1.0, 0.0]] * 2, [[change - 0.5], [-change - 0.5]], (np.arange(rounds) % 2).astype(np.int32))
    return ConvexProblem(Linear(np.column_stack([np.full(rounds, -PULL), slopes])), limits, Box(0.0, 1.0, size=2))


def one_feasible_point(
    horizon: int = 10_000, strength: float = 0.0, noise: float = 0.5, seed: int = 0
) -> ConvexProblem:
    r"""Build a problem without a Slater point: in even rounds :math:`x_1 \le 1/4`, in odd ones :math:`x_1 \ge 1/4`.

    The losses are :math:`-\tfrac15 x_1 + \xi_t x_2 + \tfrac\sigma2 \|x\|^2` with :math:`\xi_t` uniform on [-s, s].

    Args:
        horizon: The number T of rounds.
        strength: The modulus σ of strong convexity of the losses.
        noise: The size s of the random part of the losses.
        seed: The seed of the losses.

    >>> one_feasible_point(horizon=1_000)
    ConvexProblem(1,000 rounds, 2 variables, 1 constraint)
    """
    rounds, sigma = whole(horizon, "horizon", at_least=2), at_least_zero(strength, "strength")
    slopes = at_least_zero(noise, "noise") * generator(seed).uniform(-1.0, 1.0, rounds)
    vectors = np.column_stack([np.full(rounds, -PULL), slopes])
    losses = Quadratic(sigma * np.eye(2), vectors) if sigma > 0.0 else Linear(vectors)
    limits = Linear([[1.0, 0.0], [-1.0, 0.0]], [[-0.25], [0.25]], (np.arange(rounds) % 2).astype(np.int32))
    return ConvexProblem(losses, limits, Box(0.0, 1.0, size=2))
