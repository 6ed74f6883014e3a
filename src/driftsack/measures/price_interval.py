r"""The interval of :math:`\bar q`: the smallest and the largest sup norm of optimal prices if they are not unique.

The optimal prices of an LP with value v form a face,

.. math:: \{ q \ge 0 : \; N\, b^\top q + \sum_k n_k \alpha_k \le v, \;
          \mu_{k,i} - q^\top C_{k,\cdot,i} \le \alpha_k, \; \alpha_k \ge 0 \} .

The smallest sup norm is found by one linear program, the largest by one linear program per resource, which maximises
its price. In the paper's Example 1 the played arm costs exactly the rate, and every price from 0 to 1 is optimal. The
programs of several LPs share no variables, so they are solved together as one.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import DriftsackError, TooLargeError
from driftsack.core.extras import require

FACE: Final = 1e-9  # per round: prices whose dual value is within this of the optimum count as optimal
SOLVER_TOLERANCE: Final = 1e-10
MOST_ENTRIES: Final = 2_000_000  # nonzero entries of the constraints; takes about a minute


class PriceInterval(NamedTuple):
    """The range of the sup norm of optimal prices, normalised to rewards and costs in [0, 1].

    Attributes:
        least: The smallest sup norm.
        largest: The largest sup norm; infinite if a resource has no budget, because its price is unbounded.
    """

    least: float
    largest: float

    def union(self, other: PriceInterval) -> PriceInterval:
        """Compute the interval of the maximum of two sup norms.

        Args:
            other: The interval of the other sup norm.
        """
        return PriceInterval(max(self.least, other.least), max(self.largest, other.largest))


def price_interval(
    rewards: Floats, costs: Floats, rounds: Ints | Floats, groups: Ints, rate: Floats, values: Floats
) -> PriceInterval:
    """Compute the interval of the largest sup norm of the optimal prices of one or several LPs.

    The K rows have mean ``rewards`` (K, m) and ``costs`` (K, d, m), last ``rounds`` (K,) each and belong to the LPs
    ``groups`` (K,), from 0 to G - 1, whose optimal values are ``values`` (G,). ``TooLargeError`` is raised if the
    programs have more than two million entries.

    >>> arm = np.array([[0.5]]), np.array([[[0.5]]]), np.ones(1), np.zeros(1, dtype=np.int64)
    >>> price_interval(*arm, rate=np.array([0.5]), values=np.array([0.5]))
    PriceInterval(least=0.0, largest=1.0)
    """
    rows, resources, arms = costs.shape
    entries = rows * arms * (resources + 1)
    if entries > MOST_ENTRIES:
        raise TooLargeError(
            f"the interval of q_bar needs a program of {entries:,} entries for {rows:,} distinct rows, but at most "
            f"{MOST_ENTRIES:,} are allowed; average neighbouring rounds first, or use q_bar."
        )
    count = values.size
    face = _face(rewards, costs, rounds, groups, rate, values)
    prices, norms = slice(0, count * resources), slice(count * resources + rows, None)
    # Smallest sup norm: minimise the sum of the sup norms of all LPs.
    objective = np.zeros(face.matrix.shape[1])
    objective[norms] = 1.0
    least = float(_minimise(objective, face)[norms].max())
    # Largest sup norm: maximise the price of each resource in turn.
    largest = 0.0
    for j in range(resources):
        if rate[j] == 0.0:
            return PriceInterval(_rounded(least), math.inf)
        objective[:] = 0.0
        objective[np.arange(count) * resources + j] = -1.0
        largest = max(largest, float(_minimise(objective, face)[prices].reshape(count, resources)[:, j].max()))
    return PriceInterval(_rounded(least), _rounded(max(largest, least)))


class _Face(NamedTuple):
    """The constraints matrix @ variables <= limits; variables are prices (G d), alpha (K) and sup norms (G)."""

    matrix: Any  # a sparse matrix of SciPy
    limits: Floats


def _face(rewards: Floats, costs: Floats, rounds: Ints | Floats, groups: Ints, rate: Floats, values: Floats) -> _Face:
    """Build the constraints of the optimal face of all LPs."""
    require("scipy")
    from scipy.sparse import coo_array, csr_array, vstack

    rows, resources, arms = costs.shape
    count = values.size
    size = count * resources + rows + count
    own = groups[:, None] * resources + np.arange(resources)  # (K, d) the columns of each row's prices
    alpha = count * resources + np.arange(rows)

    # Dual feasibility: mu - q C - alpha <= 0, one line per row and arm.
    line = np.arange(rows * arms).reshape(rows, arms)
    of_prices = np.broadcast_to(own[:, :, None], costs.shape)
    of_lines = np.broadcast_to(line[:, None, :], costs.shape)
    entries = np.concatenate([-costs.ravel(), np.full(rows * arms, -1.0)])
    places = (
        np.concatenate([of_lines.ravel(), line.ravel()]),
        np.concatenate([of_prices.ravel(), np.repeat(alpha, arms)]),
    )
    dual = coo_array((entries, places), shape=(rows * arms, size))

    # Optimality: N b q + sum of n alpha <= v, one line per LP.
    length = np.bincount(groups, weights=rounds, minlength=count)
    of_lp = np.repeat(np.arange(count), resources)
    entries = np.concatenate([(length[:, None] * rate).ravel(), np.asarray(rounds, dtype=np.float64)])
    places = (np.concatenate([of_lp, groups]), np.concatenate([np.arange(count * resources), alpha]))
    optimal = coo_array((entries, places), shape=(count, size))

    # Sup norms: q - s <= 0, one line per price.
    own_line = np.arange(count * resources)
    entries = np.concatenate([np.ones(own_line.size), -np.ones(own_line.size)])
    norm = count * resources + rows + of_lp
    places = (np.concatenate([own_line, own_line]), np.concatenate([own_line, norm]))
    norms = coo_array((entries, places), shape=(count * resources, size))
    limits = np.concatenate([-rewards.ravel(), values + FACE * length, np.zeros(count * resources)])
    return _Face(csr_array(vstack([dual, optimal, norms])), limits)


def _minimise(objective: Floats, face: _Face) -> Floats:
    """Return a minimiser of the objective over the face."""
    require("scipy")
    from scipy.optimize import linprog

    tolerances = {"primal_feasibility_tolerance": SOLVER_TOLERANCE, "dual_feasibility_tolerance": SOLVER_TOLERANCE}
    solution = linprog(objective, A_ub=face.matrix, b_ub=face.limits, bounds=(0, None), options=tolerances)
    if solution.x is None:
        raise DriftsackError(f"the interval of q_bar could not be computed: {solution.message}")
    variables: Floats = solution.x
    return variables


def _rounded(value: float) -> float:
    """Round away the digits below the tolerance of the face."""
    return round(value, 7) + 0.0  # no negative zero
