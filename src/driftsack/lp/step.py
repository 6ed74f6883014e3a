r"""The step LP: the best mix for one round at a given rate of spending (paper, section 2.2).

.. math:: \mathrm{LP}(\mu, C) = \max_x \; \mu^\top x \quad
          \text{s.t. } C x \le b,\; \textstyle\sum_i x_i \le 1,\; x \ge 0 .

``SKIP`` has the remaining probability. Costs may be negative and rewards above 1, as confidence bounds are. The dual
is :math:`\min_{q \ge 0} b^\top q + \alpha` with :math:`\alpha = \max(0, \max_i \mu_i - q^\top C_i)`, so the
duality gap of any feasible mix and prices bounds their error; :func:`certificate` computes it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, vector, within
from driftsack.core.extras import require
from driftsack.numerics import simplex
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import Simplex

LOOSE: Final = 2.0  # a rate that never binds, because costs are at most 1


class StepSolution(NamedTuple):
    """The solution of a step LP.

    Attributes:
        value: The optimal value.
        mix: (m,) the optimal probabilities of the arms.
        prices: (d,) the dual prices of the resources.
        status: ``"optimal"``, or ``"fallback"`` if HiGHS had to solve it.
    """

    value: float
    mix: Floats
    prices: Floats
    status: str


class Certificate(NamedTuple):
    """The distance of a mix and prices from optimality, computed from the data alone; all zero for an exact pair.

    Attributes:
        gap: Dual value minus primal value.
        infeasibility: The largest violation of a constraint by the mix.
        slackness: The largest product of a price and its slack.
    """

    gap: float
    infeasibility: float
    slackness: float


def new_step_lp(arms: int, rate: Floats) -> Simplex:
    """Create a step LP with all means zero: one row for each resource, then the row of the mix.

    Costs must not exceed 1, so a rate above 1 never binds; it is capped at ``LOOSE``, so that a very large budget does
    not dominate the residuals.

    Args:
        arms: The number of arms.
        rate: (d,) the budget per round of each resource.

    Returns:
        The LP at its slack basis.
    """
    lp = simplex.new_simplex(rate.size + 1, arms)
    lp.columns[-1, :arms] = 1.0
    lp.rhs[:-1] = np.minimum(rate, LOOSE)
    lp.rhs[-1] = 1.0
    return lp


def step_lp(rewards: npt.ArrayLike, costs: npt.ArrayLike, rate: npt.ArrayLike) -> StepSolution:
    """Solve the step LP.

    Args:
        rewards: (m,) rewards of the arms.
        costs: (d, m) costs of the arms.
        rate: (d,) the budget per round of each resource; a single number applies to all of them.

    Returns:
        The optimal mix and prices.

    >>> best = step_lp(rewards=[0.5, 1.0], costs=[[0.2, 1.0]], rate=0.5)
    >>> print(best.value, best.mix, best.prices)
    0.6875 [0.625 0.375] [0.625]
    """
    gains = floats(rewards, "rewards", (None,))
    uses = floats(costs, "costs", (None, gains.size))
    rates = within(vector(rate, "rate", len(uses)), 0.0, np.inf, "rate")

    # Scale the program so that the largest reward and the largest cost of each resource are 1.
    gain = float(np.abs(gains).max(initial=0.0)) or 1.0
    use = np.abs(uses).max(axis=1, initial=0.0)
    use[use == 0.0] = 1.0
    lp = new_step_lp(gains.size, np.minimum(rates, LOOSE * use) / use)
    lp.objective[: gains.size] = gains / gain
    lp.columns[:-1, : gains.size] = uses / use[:, None]
    simplex.solve(lp)
    status = "fallback" if rescue_failed(lp) else "optimal"
    mix = lp.solution.copy()
    return StepSolution(float(gains @ mix), mix, lp.duals[:-1] * gain / use, status)


@kernel
def draw_from(lp: Simplex, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Write the mix (m,) and prices (d,) of a solved step LP and draw an arm, or SKIP, from the mix.

    Args:
        lp: The solved LP.
        rng: The random generator.
        mix: (m,) output: the probabilities of the arms.
        prices: (d,) output: the dual prices.
    """
    for i in range(mix.size):
        mix[i] = lp.solution[i]
    for j in range(prices.size):
        prices[j] = lp.duals[j]
    return draw(mix, rng.random())


def rescue_failed(lp: Simplex) -> bool:
    """Solve the program with HiGHS if the last solve failed; return whether it had failed."""
    if lp.counts[simplex.STATUS] != simplex.FAILED:
        return False
    require("highspy")
    from driftsack.lp.fallback import rescue

    rescue(lp)
    return True


def certificate(
    rewards: npt.ArrayLike, costs: npt.ArrayLike, rate: npt.ArrayLike, mix: Floats, prices: Floats
) -> Certificate:
    """Certify any mix and prices by weak duality.

    Args:
        rewards: (m,) rewards of the arms.
        costs: (d, m) costs of the arms.
        rate: (d,) the budget per round of each resource; a single number applies to all of them.
        mix: (m,) the probabilities of the arms.
        prices: (d,) the prices of the resources.

    Returns:
        The duality gap, the infeasibility and the violation of complementary slackness.

    >>> world = dict(rewards=[0.5, 1.0], costs=[[0.2, 1.0]], rate=0.5)
    >>> best = step_lp(**world)
    >>> certificate(**world, mix=best.mix, prices=best.prices).gap < 1e-12
    True
    """
    gains, uses = np.asarray(rewards, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64), (len(uses),))
    # alpha, the dual variable of the row of the mix.
    margin = gains - prices @ uses
    skip_price = max(0.0, float(margin.max(initial=0.0)))
    slack = rates - uses @ mix
    rest = 1.0 - mix.sum()
    # Duality gap, largest violation, and complementary slackness of rows and columns.
    gap = float(rates @ prices) + skip_price - float(gains @ mix)
    worst = max(0.0, float(-slack.min(initial=0.0)), -rest, float(-mix.min(initial=0.0)))
    products = np.concatenate([np.abs(prices * slack), [skip_price * abs(rest)], mix * (skip_price - margin)])
    return Certificate(gap, worst, float(products.max()))
