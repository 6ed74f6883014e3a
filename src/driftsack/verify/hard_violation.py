r"""Check theorems N5 and N6 (docs/theory-paper.md): regret and *hard* violation of two penalties.

The penalties are those of Sinha and Vaze (2024). The bounds have explicit constants and are compared as they are. On
both problems slack could pay for violations, or constraints of successive rounds cancel, so that algorithms which bound
the violation of the *sum*, such as the virtual queue, have a hard violation that is linear in T; they are among the
competitors.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.oco import (
    Algorithm,
    Box,
    ConvexProblem,
    ExponentialPenalty,
    Linear,
    OnlineGradient,
    Quadratic,
    QuadraticPenalty,
    VirtualQueue,
    instances,
    restricted_optimum,
)
from driftsack.verify.statement import HOLDS, Case, Effort, Finding, Statement, judge_margins

COMPETITORS: Final = "virtual queues, gradient descent that ignores the constraints, and staying at 0"
DIAMETER: Final = math.sqrt(2.0)
RESTARTS: Final = math.sqrt(2.0) / (math.sqrt(2.0) - 1.0)  # the sum of √(2^k) over √T, at most
STRENGTH: Final = 0.5
GRADIENT: Final = 1.0  # of the linear losses and of the constraints
STRONG_GRADIENT: Final = 1.6  # of the strongly convex losses


class Measured(NamedTuple):
    """Regret against the best point that is feasible in every round, and the hard violation."""

    regret: float
    violation: float

    def share(self, bound: Measured) -> float:
        """The larger of the two as a share of its bound."""
        return max(self.regret / bound.regret, self.violation / bound.violation)


def measure(algorithm: Algorithm | None, problem: ConvexProblem) -> Measured:
    """Play a problem; None stays at 0."""
    best = restricted_optimum(problem).value
    if algorithm is None:
        values = np.array([problem.evaluate(t, np.zeros(problem.dimension))[0] for t in range(2)])  # period 2 at x = 0
        hard = np.maximum(values[:, 1:], 0.0).mean() * problem.horizon
        return Measured(float(values[:, 0].mean()) * problem.horizon - best, float(hard))
    play = algorithm.play(problem)
    return Measured(float(play.regret(best)[0]), float(play.hard_violation[0]))


def exponential_bound(horizon: int, anytime: bool) -> Measured:
    """Theorem N5: 2GD(√T + ½) and 4GD√T ln(T + 2√T + 2); the anytime form pays for its restarts."""
    scale, root = 2.0 * GRADIENT * DIAMETER, math.sqrt(horizon) * (RESTARTS if anytime else 1.0)
    starts = 1.0 + math.log2(horizon) if anytime else 1.0
    log = math.log(horizon + 2.0 * math.sqrt(horizon) + 2.0)
    return Measured(scale * (root + 0.5 * starts), 2.0 * scale * root * log)


def quadratic_bound(horizon: int, strength: float, gradient: float) -> Measured:
    """Theorem N6: G²(1 + ln T)/σ and √(2V(G²(1 + ln T)/σ + GDT))."""
    regret = gradient**2 * (1.0 + math.log(horizon)) / strength
    tradeoff = 8.0 * regret
    return Measured(regret, math.sqrt(2.0 * tradeoff * (regret + gradient * DIAMETER * horizon)))


def random_corners(horizon: int, seed: int) -> ConvexProblem:
    """Half the squared distance from a random corner of the square, and a constraint that never binds.

    The regret of the best algorithm grows as (ln T)/4 here. A gradient has a norm of at most √2.
    """
    corners = np.random.default_rng([seed, 71]).integers(0, 2, (horizon, 2)).astype(np.float64)
    never = Linear([[1.0, 1.0]], [[-3.0]], np.zeros(horizon, dtype=np.int32))
    return ConvexProblem(Quadratic(np.eye(2), -corners), never, Box(0.0, 1.0, size=2))


def worlds(horizon: int, seed: int) -> list[ConvexProblem]:
    """A problem whose limit is tight and loose in turn, and one without a Slater point."""
    return [instances.tight_and_loose(horizon, seed=seed), instances.one_feasible_point(horizon, seed=seed)]


def exponential(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check theorem N5 for both forms on both problems, and that every competitor leaves a bound on one of them."""
    horizons = (100_000, 1_000_000) if effort.quick else (100_000, 1_000_000, 3_000_000)
    if case is Case.TRIVIAL:
        subjects: list[Algorithm | None] = [VirtualQueue(), OnlineGradient(), None]
    else:
        subjects = [ExponentialPenalty(GRADIENT, DIAMETER), ExponentialPenalty(GRADIENT, DIAMETER, anytime=True)]
    shares, growth = [], []
    for subject in subjects:
        found = [[measure(subject, world) for world in worlds(horizon, effort.seed)] for horizon in horizons]
        anytime = isinstance(subject, ExponentialPenalty) and subject.anytime
        bounds = [exponential_bound(horizon, anytime) for horizon in horizons]
        shares.append(max(one.share(bound) for row, bound in zip(found, bounds, strict=True) for one in row))
        first, last = (max(row[0].violation, 1.0) for row in (found[0], found[-1]))
        growth.append(math.log(last / first) / math.log(horizons[-1] / horizons[0]))
    share = min(shares) if case is Case.TRIVIAL else max(shares)
    exponents = " and ".join(f"{one:.2f}" for one in growth)
    note = f"1 - the larger share of its bound; the hard violation grows with the exponents {exponents}"
    return judge_margins([factor - share], note, power=min(share, 1.0))


def quadratic(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check theorem N6 with one feasible point, which the competitors violate, and where regret cannot be negative."""
    horizon = effort.pick(1_000_000, 3_000_000)
    problem = instances.one_feasible_point(horizon, STRENGTH, seed=effort.seed)
    bound = quadratic_bound(horizon, STRENGTH, STRONG_GRADIENT)
    if case is Case.TRIVIAL:
        shares = [measure(subject, problem).share(bound) for subject in (VirtualQueue(), OnlineGradient(), None)]
        return judge_margins([factor - min(shares)], "1 - the share of the bound")
    found = measure(QuadraticPenalty(STRENGTH, STRONG_GRADIENT), problem)
    fair = measure(QuadraticPenalty(1.0, DIAMETER), random_corners(horizon, effort.seed))
    share = max(found.share(bound), fair.share(quadratic_bound(horizon, 1.0, DIAMETER)))
    note = (
        f"1 - the share of the bound; regret {found.regret:.1f}, hard violation {found.violation:.0f}; regret "
        f"{fair.regret:.1f} where it cannot be negative"
    )
    return judge_margins([factor - share], note, power=share)


STATEMENTS = (
    Statement(
        "hard-violation",
        "Theorem N5, not in the paper",
        "√T regret and √T log T hard violation, no Slater condition",
        HOLDS,
        exponential,
        COMPETITORS,
    ),
    Statement(
        "hard-violation-strong",
        "Theorem N6, not in the paper",
        "log T regret and √(T log T) hard violation",
        HOLDS,
        quadratic,
        COMPETITORS,
    ),
)
