r"""Worlds for online convex optimisation: the paper's lower bound, families that move, and a data centre.

The random families live on the box [0, 1]ⁿ: linear losses that reward playing, and constraints
:math:`a_t^\top x \le b` with a in [0.2, 1] and b a share of what playing everything would use. So x = 0 is always
strictly feasible.
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
from driftsack.oco.problem import Problem

SHARE: Final = 0.3  # of what playing everything would use, a constraint allows this
HOURS: Final = 24


class ClosedForms(NamedTuple):
    """What pencil and paper say about :func:`proposition_2`; the last two are as printed (errata)."""

    optimum: float  # OPT
    restricted: float  # OPT'
    variation: float  # W
    q_bar: float  # the larger of the two programs' prices, OPT' spread evenly over its binding rounds
    printed_optimum: float
    printed_restricted: float


def proposition_2(horizon: int = 10_000, reward: float = 1.0, budget: float = 0.5, shift: float = 0.1) -> Problem:
    r"""Proposition 2's example: :math:`f_t = -rx`, :math:`g_t = (b + \Delta 1\{t \le T/2\}) x - b/2`, x in [0, 1].

    >>> proposition_2(horizon=1_000)
    Problem(1,000 rounds, 1 variable, 1 constraint)
    """
    r, b, delta = above_zero(reward, "reward"), above_zero(budget, "budget"), above_zero(shift, "shift")
    phase = (np.arange(1, whole(horizon, "horizon", at_least=2) + 1) > horizon / 2).astype(np.int32)
    constraints = Linear([[b + delta], [b]], [[-b / 2], [-b / 2]], phase)
    return Problem(Linear([[-r]], phase=np.zeros(horizon, dtype=np.int32)), constraints, Box(0.0, 1.0))


def proposition_2_forms(
    horizon: int = 10_000, reward: float = 1.0, budget: float = 0.5, shift: float = 0.1
) -> ClosedForms:
    r"""OPT, OPT', W and q̄ of :func:`proposition_2`, with h the rounds of the first half.

    One x for all rounds meets the sum of the constraints iff :math:`x \le \tfrac{b}{2} T / (bT + \Delta h)`, and
    each of them iff :math:`x \le \tfrac{b}{2} / (b + \Delta)`.

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
) -> Problem:
    """Losses drawn anew each round; constraints still in the mean and drawn about it (``noise`` 0: quite still).

    The loss of an entry is uniform within ½ of -``bias``. At bias 0 no decision is better than another until chance
    makes it so: the hardest losses for regret.
    """
    rng = generator(seed)
    uses = rng.uniform(0.2, 1.0, (1, constraints, dimension))
    size = (whole(horizon, "horizon", at_least=1), dimension)
    losses = Linear(rng.random(size) - 0.5 - number(bias, "bias"))
    still = Linear(uses, -SHARE * uses.sum(axis=2), np.zeros(horizon, dtype=np.int32))
    return Problem(losses, still, Box(0.0, 1.0, size=dimension), noise=noise)


def one_switch(
    dimension: int = 3, constraints: int = 2, horizon: int = 10_000, size: float = 0.2, seed: int = 0
) -> Problem:
    """Constraints that change once, halfway, by up to ``size`` to each side; losses drawn anew each round."""
    rng = generator(seed)
    change = at_least_zero(size, "size") * rng.uniform(-1.0, 1.0, (constraints, dimension))
    uses = rng.uniform(0.2, 1.0, (constraints, dimension))
    rows = np.stack([uses + change, uses - change])
    losses = Linear(-rng.random((whole(horizon, "horizon", at_least=2), dimension)))
    phase = (np.arange(horizon) >= horizon // 2).astype(np.int32)
    limits = np.broadcast_to(-SHARE * uses.sum(axis=1), (2, constraints))
    return Problem(losses, Linear(rows, limits, phase), Box(0.0, 1.0, size=dimension))


def slow_drift(
    dimension: int = 3, constraints: int = 2, horizon: int = 10_000, size: float = 0.2, seed: int = 0
) -> Problem:
    """Constraints that go in a straight line, by ``size`` to each side; losses are distances from a moving target."""
    rng = generator(seed)
    way = np.linspace(-1.0, 1.0, whole(horizon, "horizon", at_least=2))[:, None, None]
    return _moving(rng.uniform(0.2, 1.0, (constraints, dimension)), way, size, rng)


def periodic(
    dimension: int = 3,
    constraints: int = 2,
    horizon: int = 10_000,
    size: float = 0.2,
    periods: float = 10.0,
    seed: int = 0,
) -> Problem:
    """Constraints that swing by ``size`` to each side, each entry with its own phase; the loss's target swings too."""
    rng = generator(seed)
    begin = rng.random((1, constraints, dimension))
    cycle = np.arange(whole(horizon, "horizon", at_least=2))[:, None, None] * (number(periods, "periods") / horizon)
    way = np.sin(2 * np.pi * (cycle + begin))
    return _moving(rng.uniform(0.2, 1.0, (constraints, dimension)), way, size, rng)


def _moving(uses: Floats, way: Floats, size: float, rng: np.random.Generator) -> Problem:
    """Constraints ``uses`` + ``size`` × ``way`` (T, 1 or d, 1 or n), and half square distances from a moving target."""
    direction = np.sign(rng.normal(size=uses.shape))
    rows = uses + at_least_zero(size, "size") * way * direction
    limits = np.broadcast_to(-SHARE * uses.sum(axis=1), rows.shape[:2])
    target = 0.7 + 0.3 * np.broadcast_to(way, rows.shape)[:, 0, :] * np.sign(rng.normal(size=uses.shape[1]))
    losses = Quadratic(np.eye(uses.shape[1]), -target, 0.5 * (target**2).sum(axis=1))
    return Problem(losses, Linear(rows, limits), Box(0.0, 1.0, size=uses.shape[1]))


def job_scheduling(
    servers: int = 5, horizon: int = 24 * 365, load: float = 0.5, energy: float = 0.9, seed: int = 0
) -> Problem:
    r"""A data centre: each hour set the speed x of each server, in [0, 1]; power has a price that varies by the hour.

    The loss is what the power costs, price times Σ p_i x_i, and a little wear, ½ 0.1 ‖x‖². In the long run the work
    that comes in must be done, :math:`\mathrm{demand}_t - \sum_i s_i x_i \le 0`, and the power used must stay within
    a share ``energy`` of what all servers would draw. ``load`` is the mean demand as a share of what all servers can
    do.

    >>> job_scheduling(servers=4, horizon=24 * 7)
    Problem(168 rounds, 4 variables, 2 constraints)
    """
    if not 0 < load < energy <= 1:
        raise OutOfRangeError(f"load and energy must have 0 < load < energy <= 1, got {load:g} and {energy:g}.")
    rng = generator(seed)
    speed, power = rng.uniform(0.5, 1.5, (2, whole(servers, "servers", at_least=1)))
    hour = np.arange(HOURS)
    price = 1.0 + 0.5 * np.sin(2 * np.pi * (hour - 11) / HOURS)  # dear in the evening
    demand = load * speed.sum() * (1.0 + 0.4 * np.sin(2 * np.pi * (hour - 8) / HOURS))  # busy in the afternoon
    phase = np.arange(whole(horizon, "horizon", at_least=1)) % HOURS
    losses = Quadratic(0.1 * np.eye(servers), price[:, None] * power, 0.0, phase)
    rows = np.broadcast_to(np.stack([-speed, power]), (HOURS, 2, servers))
    limits = np.stack([demand, np.full(HOURS, -energy * power.sum())], axis=1)
    return Problem(losses, Linear(rows, limits, phase), Box(0.0, 1.0, size=servers))


def tight_then_loose(horizon: int = 10_000, size: float = 0.1) -> Problem:
    r"""Following the limit costs: :math:`f = |x - \tfrac12|`, :math:`g_t = x - \tfrac12 \pm \Delta` on [0, 1].

    The limit is Δ = ``size`` lower in the first half and higher in the second. The best fixed decision, ½, breaks it
    first and makes up for it; who cannot know that the limit will rise must stay at ½ - Δ. So W = ΔT, and half of it
    is lost.

    >>> tight_then_loose(horizon=1_000)
    Problem(1,000 rounds, 1 variable, 1 constraint)
    """
    change = at_least_zero(size, "size")
    phase = (np.arange(whole(horizon, "horizon", at_least=2)) >= horizon // 2).astype(np.int32)
    limits = Linear([[1.0], [1.0]], [[change - 0.5], [-change - 0.5]], phase)
    return Problem(Norm([[0.5]], phase=np.zeros(horizon, dtype=np.int32)), limits, Box(0.0, 1.0))
