r"""OPT(T) and OPT'(T): the best fixed decision, by how its constraints are counted.

.. math:: \mathrm{OPT} = \min_{x \in X} \sum_t f_t(x) \;\text{ s.t. } \sum_t g_{t,i}(x) \le 0 \;\forall i, \qquad
          \mathrm{OPT}' = \min_{x \in X} \sum_t f_t(x) \;\text{ s.t. } g_{t,i}(x) \le 0 \;\forall t, i.

Solvers only say where to look. What is claimed is computed from the data, at the x and the prices q that they return:

- *above*: x is moved towards a strictly feasible point until it meets every constraint; its loss is an upper bound;
- *below*: f and g are convex, so for every :math:`q \ge 0` and every y in X

  .. math:: \sum_t f_t(y) \ge L(x) + \nabla L(x)^\top (y - x) \ge L(x) + \min_{y \in X} \nabla L(x)^\top (y - x),
            \qquad L = \sum_t f_t + \sum_i q_i \sum_t g_{t,i},

  and the least value of a linear function over X is exact. ``gap`` is the difference of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.errors import InfeasibleError
from driftsack.oco.problem import Problem
from driftsack.oco.programs import Answer, Rounds, solve

ROUNDING = 1e-9  # a Slater margin below this, relative to the constraints' size, is none


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimum with its proof."""

    value: float  # the loss of ``point`` over all rounds: at most ``gap`` above the true optimum
    lower: float  # no feasible point loses less
    point: Floats  # (n,)
    prices: Floats  # OPT: (d,) of the summed constraints; OPT': (K, d) of a round with row k
    violation: float  # by how much ``point`` breaks the worst constraint, a round; 0 where Slater's condition holds
    slater: float  # how far below 0 some point has all constraints, a round; 0 or less: Slater's condition fails
    method: str  # who found it

    @property
    def gap(self) -> float:
        """How much better the true optimum could be, at most."""
        return self.value - self.lower

    @property
    def strictly_feasible(self) -> bool:
        """Whether Slater's condition holds; if not, prices need not exist and the gap may stay open."""
        return self.slater > 0.0

    def __repr__(self) -> str:
        label = "" if self.strictly_feasible else ", Slater's condition fails"
        return f"Optimum({self.value:,.8g}, gap {self.gap:.1e}, by {self.method}{label})"


def static_optimum(problem: Problem) -> Optimum:
    """OPT(T): constraints hold in the sum over all rounds. ``prices`` (d,).

    >>> from driftsack.oco import instances
    >>> best = static_optimum(instances.proposition_2(horizon=1_000))
    >>> round(best.value, 6), best.prices.round(6), best.gap < 1e-6
    (-454.545455, array([1.818182]), True)
    """
    of_type(problem, Problem, "problem")
    return certified(problem, Rounds(problem, each=False))


def restricted_optimum(problem: Problem) -> Optimum:
    """OPT'(T): constraints hold in every round. ``prices`` (K, d), one row for each distinct round.

    The price of a row is that of each of its rounds: what they share is spread evenly, which keeps the largest small.

    >>> from driftsack.oco import instances
    >>> round(restricted_optimum(instances.proposition_2(horizon=1_000)).value, 6)
    -416.666667
    """
    of_type(problem, Problem, "problem")
    return certified(problem, Rounds(problem, each=True))


def q_bar(problem: Problem) -> float:
    r"""The paper's :math:`\bar q`: the largest price of the two programs."""
    static, restricted = static_optimum(problem), restricted_optimum(problem)
    return float(max(static.prices.max(), restricted.prices.max()))


def certified(problem: Problem, rounds: Rounds) -> Optimum:
    """Solve, repair, and bound from both sides."""
    margin, inner = rounds.slater()
    scale = 1.0 + float(np.abs(rounds.levels(inner)).max())
    if margin < -1e-7 * scale:
        raise InfeasibleError(
            f"no point of the domain meets the constraints{' in every round' if rounds.each else ''}: the best one "
            f"still breaks one by {-margin:g} a round; loosen the constraints or widen the domain."
        )
    slater = margin if margin > ROUNDING * scale else 0.0
    answer = solve(rounds)
    point = repaired(rounds, answer.point, inner) if slater > 0.0 else answer.point
    lower = below(problem, rounds, answer)
    value = problem.horizon * float(problem.losses.mean(point)[0][0])
    worst = float(max(rounds.levels(point).max(), 0.0))
    return Optimum(value, min(lower, value), point, rounds.prices(answer.weights), worst, slater, answer.method)


def repaired(rounds: Rounds, point: Floats, inner: Floats) -> Floats:
    r"""The point, moved towards a strictly feasible one, ``inner``, until no constraint is broken.

    By convexity a share :math:`s \ge g(x) / (g(x) - g(\mathrm{inner}))` of the way is enough; rounding may ask for a
    little more.
    """
    over, under = rounds.levels(point), rounds.levels(inner)
    broken = over > 0.0
    share = float((over[broken] / (over[broken] - under[broken])).max()) if broken.any() else 0.0
    while share < 1.0:
        moved = (1.0 - share) * point + share * inner
        if rounds.levels(moved).max() <= 0.0:
            return moved
        share = max(2.0 * share, ROUNDING**2)
    return inner


def below(problem: Problem, rounds: Rounds, answer: Answer) -> float:
    """The lower bound at the answer's point and weights."""
    values, gradients = problem.losses.mean(answer.point)
    more, slope = rounds.priced(answer.point, answer.weights)
    direction = gradients[0] + slope
    least = float(problem.domain.least(direction[None, :])[0]) - float(direction @ answer.point)
    return problem.horizon * (float(values[0]) + more + least)
