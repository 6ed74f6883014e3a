r"""OPT(T) and OPT'(T): the best fixed decision, with constraints that hold in the sum or in every round.

.. math:: \mathrm{OPT} = \min_{x \in X} \sum_t f_t(x) \;\text{ s.t. } \sum_t g_{t,i}(x) \le 0 \;\forall i, \qquad
          \mathrm{OPT}' = \min_{x \in X} \sum_t f_t(x) \;\text{ s.t. } g_{t,i}(x) \le 0 \;\forall t, i.

Solvers only propose a point x and prices q. The bounds are computed from the data:

- *upper bound*: x is moved towards a strictly feasible point until it satisfies every constraint; its loss is an upper
  bound;
- *lower bound*: f and g are convex, so for every :math:`q \ge 0` and every y in X

  .. math:: \sum_t f_t(y) \ge L(x) + \nabla L(x)^\top (y - x) \ge L(x) + \min_{y \in X} \nabla L(x)^\top (y - x),
            \qquad L = \sum_t f_t + \sum_i q_i \sum_t g_{t,i},

  and the minimum of a linear function over X is exact. ``gap`` is the difference of the two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.errors import InfeasibleError
from driftsack.oco.convex_programs import ConstraintRows, Solution, solve
from driftsack.oco.problem import ConvexProblem

SMALLEST_MARGIN: Final = 1e-9  # a smaller Slater margin, relative to the constraints' size, counts as none
INFEASIBLE: Final = -1e-7  # a margin below this, relative to the constraints' size, is not a rounding error


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best fixed decision, with a certificate.

    Attributes:
        value: The loss of ``point`` over all rounds, at most ``gap`` above the optimum.
        lower: A lower bound of the optimum.
        point: (n,) the decision.
        prices: For OPT, (d,) the prices of the summed constraints; for OPT', (K, d) the prices of one round of each
            distinct row.
        violation: The largest violation of a constraint by ``point``, per round; 0 if Slater's condition holds.
        slater: The Slater margin: the largest s such that some point has all constraints at -s or less, per round; 0 if
            Slater's condition fails.
        method: The name of the solver.
    """

    value: float
    lower: float
    point: Floats
    prices: Floats
    violation: float
    slater: float
    method: str

    @property
    def gap(self) -> float:
        """The largest possible difference between ``value`` and the optimum."""
        return self.value - self.lower

    @property
    def strictly_feasible(self) -> bool:
        """Whether Slater's condition holds. If not, prices need not exist and the gap may be large."""
        return self.slater > 0.0

    def __repr__(self) -> str:
        remark = "" if self.strictly_feasible else ", Slater's condition fails"
        return f"Optimum({self.value:,.8g}, gap {self.gap:.1e}, by {self.method}{remark})"


def static_optimum(problem: ConvexProblem) -> Optimum:
    """Compute OPT(T): the constraints hold in the sum over all rounds.

    Args:
        problem: The problem; with noise, the optimum is that of the means.

    Returns:
        The optimum, with ``prices`` (d,).

    Raises:
        InfeasibleError: If no point of the domain satisfies the constraints.

    >>> from driftsack.oco import instances
    >>> best = static_optimum(instances.proposition_2(horizon=1_000))
    >>> round(best.value, 6), best.prices.round(6), best.gap < 1e-6
    (-454.545455, array([1.818182]), True)
    """
    of_type(problem, ConvexProblem, "problem")
    return certified_optimum(problem, ConstraintRows(problem, every_round=False))


def restricted_optimum(problem: ConvexProblem) -> Optimum:
    """Compute OPT'(T): the constraints hold in every round.

    Args:
        problem: The problem; with noise, the optimum is that of the means.

    Returns:
        The optimum, with ``prices`` (K, d): one row for each distinct round. The multiplier of a row is divided evenly
        among its rounds, which keeps the largest price small.

    Raises:
        InfeasibleError: If no point of the domain satisfies the constraints.
        TooLargeError: If the functions are callables and there are too many rounds.

    >>> from driftsack.oco import instances
    >>> round(restricted_optimum(instances.proposition_2(horizon=1_000)).value, 6)
    -416.666667
    """
    of_type(problem, ConvexProblem, "problem")
    return certified_optimum(problem, ConstraintRows(problem, every_round=True))


def q_bar(problem: ConvexProblem) -> float:
    r"""Compute the paper's :math:`\bar q`: the largest price of OPT and OPT'.

    Args:
        problem: The problem.
    """
    static, restricted = static_optimum(problem), restricted_optimum(problem)
    return float(max(static.prices.max(), restricted.prices.max()))


def certified_optimum(problem: ConvexProblem, rows: ConstraintRows) -> Optimum:
    """Solve the program, make its solution feasible, and compute both bounds."""
    margin, inner = rows.slater()
    scale = 1.0 + float(np.abs(rows.values(inner)).max())
    if margin < INFEASIBLE * scale:
        raise InfeasibleError(
            f"no point of the domain satisfies the constraints{' in every round' if rows.every_round else ''}: the "
            f"best one still violates one by {-margin:g} per round; loosen the constraints or widen the domain."
        )
    slater = margin if margin > SMALLEST_MARGIN * scale else 0.0
    solution = solve(rows)
    point = feasible_point(rows, solution.point, inner) if slater > 0.0 else solution.point
    lower = lower_bound(problem, rows, solution)
    value = problem.horizon * float(problem.losses.mean(point)[0][0])
    violation = float(max(rows.values(point).max(), 0.0))
    return Optimum(value, min(lower, value), point, rows.prices(solution.weights), violation, slater, solution.method)


def feasible_point(rows: ConstraintRows, point: Floats, inner: Floats) -> Floats:
    r"""Move a point towards a strictly feasible one, ``inner``, until no constraint is violated.

    By convexity a share :math:`s \ge g(x) / (g(x) - g(\mathrm{inner}))` of the way suffices; because of rounding errors
    slightly more may be needed.
    """
    at_point, at_inner = rows.values(point), rows.values(inner)
    violated = at_point > 0.0
    ratios = at_point[violated] / (at_point[violated] - at_inner[violated])
    share = float(ratios.max()) if violated.any() else 0.0
    while share < 1.0:
        candidate = (1.0 - share) * point + share * inner
        if rows.values(candidate).max() <= 0.0:
            return candidate
        share = max(2.0 * share, SMALLEST_MARGIN**2)
    return inner


def lower_bound(problem: ConvexProblem, rows: ConstraintRows, solution: Solution) -> float:
    """Compute the lower bound from the solution's point and weights."""
    values, gradients = problem.losses.mean(solution.point)
    penalty, penalty_gradient = rows.weighted_sum(solution.point, solution.weights)
    gradient = gradients[0] + penalty_gradient
    least = float(problem.domain.least(gradient[None, :])[0]) - float(gradient @ solution.point)
    return problem.horizon * (float(values[0]) + penalty + least)
