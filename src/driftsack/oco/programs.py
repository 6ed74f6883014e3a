r"""The two programs as solvers see them: the mean loss, and rows of constraints of which few matter.

A program has rows: d for OPT (the mean constraints), K·d for OPT' (every distinct round's). It is solved with a few
of them, all others are evaluated at the answer, the worst broken ones are added, until none is broken: exact, and
fast for T = 10⁶ distinct rounds. Arrays go to cvxpy (HiGHS where all is linear, else Clarabel); callables to SciPy's
SLSQP, sequential quadratic programming with the given gradients, which needs the functions to be smooth near the
answer.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import DriftsackError, TooLargeError
from driftsack.oco.domains import Ball, Domain
from driftsack.oco.extra import cvxpy
from driftsack.oco.families import LINEAR, NORM, Table
from driftsack.oco.problem import Problem

ADDED: Final = 20  # rows a constraint and pass
PASSES: Final = 100
BROKEN: Final = 1e-11  # a row is added if it is broken by more, relative to the rows' size
CALLED: Final = 1_000  # rounds of callables that OPT' takes
CONES: Final = 50_000  # norms in one sum
LINEAR_SOLVER: Final = {
    "solver": "HIGHS",
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
CONVEX_SOLVER: Final = {
    "solver": "CLARABEL",
    "tol_gap_abs": 1e-12,
    "tol_gap_rel": 1e-12,
    "tol_feas": 1e-12,
}


class Answer(NamedTuple):
    """Where a solver says to look."""

    point: Floats  # (n,)
    weights: Floats  # (rows,) prices of the rows against the mean loss
    method: str


class Rounds:
    """The rows of OPT (the mean of all rounds) or of OPT' (each distinct round): values, slopes and prices."""

    def __init__(self, problem: Problem, each: bool) -> None:
        self.problem, self.each = problem, each
        self.domain: Domain = problem.domain
        self.convex_program = problem.tabled
        if each and not problem.tabled:
            if problem.horizon > CALLED:
                raise TooLargeError(
                    f"OPT' of callables calls every round again and again: at most {CALLED} rounds, got "
                    f"{problem.horizon}; give the constraints as arrays."
                )
            self.shares = np.full(problem.horizon * problem.count, 1.0 / problem.horizon)
        elif each:
            self.shares = np.concatenate([np.repeat(f.weights, f.count) for f in problem.constraints])
        else:
            self.shares = np.ones(problem.count)
        self.used = self.shares > 0.0

    def table(self, x: Floats) -> tuple[Floats, Floats]:
        """Values (rows,) and gradients (rows, n) at x."""
        if not self.each:
            values, gradients = self.problem.mean(x)
            return values[1:], gradients[1:]
        if not self.convex_program:
            parts = [self.problem.evaluate(t, x) for t in range(self.problem.horizon)]
            return np.concatenate([v[1:] for v, _ in parts]), np.concatenate([g[1:] for _, g in parts])
        tables = [family.table(x) for family in self.problem.constraints]
        values = np.concatenate([v.reshape(-1) for v, _ in tables])
        return values, np.concatenate([np.broadcast_to(g, (*v.shape, x.size)).reshape(-1, x.size) for v, g in tables])

    def levels(self, x: Floats) -> Floats:
        """(used rows,) the constraints at x."""
        return self.table(x)[0][self.used]

    def priced(self, x: Floats, weights: Floats) -> tuple[float, Floats]:
        """Value and slope at x of the rows, weighted."""
        values, gradients = self.table(x)
        return float(weights @ values), weights @ gradients

    def prices(self, weights: Floats) -> Floats:
        """Prices against the sum of losses: (d,) of sums, or (K, d) of single rounds, evenly within a row.

        K is the most rows that a family has; one with fewer rows has zeros below them.
        """
        if not self.each:
            return weights
        even: Floats = np.divide(weights, self.shares, out=np.zeros_like(weights), where=self.used)
        counts = [f.count for f in self.problem.constraints]
        if len(counts) == 1 or not self.convex_program:
            return even.reshape(-1, self.problem.count)
        cuts = np.cumsum([f.weights.size * f.count for f in self.problem.constraints])[:-1]
        parts = [p.reshape(-1, c) for p, c in zip(np.split(even, cuts), counts, strict=True)]
        rows = max(len(p) for p in parts)
        return np.hstack([np.vstack([p, np.zeros((rows - len(p), p.shape[1]))]) for p in parts])

    def slater(self) -> tuple[float, Floats]:
        """The largest s such that some point has every row at -s or less, and that point."""
        answer = solve(self, slack=True)
        point = answer.point
        self.domain.move_inside(point)
        return -float(self.levels(point).max()), point

    def expressions(self, x: Any, chosen: Ints) -> list[Any]:
        """Cvxpy expressions of the chosen rows."""
        if not self.each:
            means = [mean_expression(f, i, x) for f in self.problem.constraints for i in range(f.count)]
            return [means[row] for row in chosen]
        found, first = [], 0
        for family in self.problem.constraints:
            size = family.weights.size * family.count
            inside = chosen[(chosen >= first) & (chosen < first + size)] - first
            found += [row_expression(family, row // family.count, row % family.count, x) for row in inside.tolist()]
            first += size
        return found


def row_expression(family: Table, row: int, i: int, x: Any) -> Any:
    """One function as cvxpy sees it."""
    rows = family.rows
    vector, constant = rows.vectors[row, i], rows.constants[row, i]
    if rows.kind == NORM:
        return cvxpy().norm(x - vector) + constant
    if rows.kind == LINEAR:
        return vector @ x + constant
    matrix = rows.matrices[row if len(rows.matrices) > 1 else 0, i]
    return 0.5 * cvxpy().quad_form(x, cvxpy().psd_wrap(matrix)) + vector @ x + constant


def mean_expression(family: Table, i: int, x: Any) -> Any:
    """The mean over all rounds of function i, as cvxpy sees it."""
    rows, weights = family.rows, family.weights
    if rows.kind == NORM:
        used = np.flatnonzero(weights)
        if used.size > CONES:
            raise TooLargeError(f"a sum of norms may have {CONES} distinct rows, got {used.size}; group rounds.")
        apart = cvxpy().reshape(x, (1, family.dimension), order="C") - rows.vectors[used, i]
        return weights[used] @ cvxpy().norm(apart, axis=1) + weights @ rows.constants[:, i]
    linear = (weights @ rows.vectors[:, i]) @ x + weights @ rows.constants[:, i]
    if rows.kind == LINEAR:
        return linear
    matrix = rows.matrices[0, i] if len(rows.matrices) == 1 else np.tensordot(weights, rows.matrices[:, i], axes=1)
    return 0.5 * cvxpy().quad_form(x, cvxpy().psd_wrap(matrix)) + linear


def solve(rounds: Rounds, slack: bool = False) -> Answer:
    """Minimise the mean loss, or with ``slack`` the worst row, over the domain."""
    if not rounds.convex_program:
        return by_slsqp(rounds, slack)
    if not rounds.each:
        return by_cvxpy(rounds, np.flatnonzero(rounds.used), slack)[0]
    chosen = worst_rows(rounds, rounds.domain.centre, -np.inf)
    for _ in range(PASSES):
        answer, level = by_cvxpy(rounds, chosen, slack)
        values = rounds.table(answer.point)[0]
        size = 1.0 + float(np.abs(values).max())
        fresh = np.setdiff1d(worst_rows(rounds, answer.point, level + BROKEN * size), chosen)
        if not fresh.size:
            return answer
        chosen = np.union1d(chosen, fresh)
    raise DriftsackError(f"OPT' is not found after {PASSES} passes over its rows; scale the constraints to about 1.")


def worst_rows(rounds: Rounds, x: Floats, above: float) -> Ints:
    """Of each constraint the ``ADDED`` used rows with the largest values at x; none at or below ``above``."""
    values = np.where(rounds.used, rounds.table(x)[0], -np.inf)
    first, found = 0, []
    for family in rounds.problem.constraints:
        table = values[first : first + family.weights.size * family.count].reshape(-1, family.count)
        for i in range(family.count):
            top = np.argsort(-table[:, i], kind="stable")[:ADDED]
            found.append(first + top[table[top, i] > above] * family.count + i)
        first += table.size
    return np.unique(np.concatenate(found))


def by_cvxpy(rounds: Rounds, chosen: Ints, slack: bool) -> tuple[Answer, float]:
    """The program with the chosen rows; and the level that rows must stay below."""
    cp = cvxpy()
    x, level = cp.Variable(rounds.domain.dimension), cp.Variable()
    rows = [expression <= (level if slack else 0.0) for expression in rounds.expressions(x, chosen)]
    losses: Any = rounds.problem.losses
    objective = level if slack else mean_expression(losses, 0, x)
    program = cp.Problem(cp.Minimize(objective), rows + rounds.domain.program(x))
    kinds = {f.rows.kind for f in rounds.problem.constraints} | (set() if slack else {losses.rows.kind})
    linear = kinds == {LINEAR} and not isinstance(rounds.domain, Ball)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the certificate will say
        try:
            program.solve(**(LINEAR_SOLVER if linear else CONVEX_SOLVER))
        except cp.SolverError:
            program.solve(solver="CLARABEL")  # with its usual tolerances
    if x.value is None:
        raise DriftsackError(f"the solver ended as {program.status}; scale losses and constraints to about 1.")
    weights = np.zeros(rounds.shares.size)
    weights[chosen] = [max(float(np.ravel(row.dual_value)[0]), 0.0) for row in rows]
    point = np.array(x.value, dtype=float)
    rounds.domain.move_inside(point)
    return Answer(point, weights, "HiGHS" if linear else "Clarabel"), float(level.value) if slack else 0.0


def by_slsqp(rounds: Rounds, slack: bool) -> Answer:
    """Sequential quadratic programming for callables; with ``slack`` over (x, level)."""
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to load)

    n = rounds.domain.dimension
    start = np.append(rounds.domain.centre, 0.0)
    start[n] = float(rounds.levels(start[:n]).max())

    def row_values(z: Floats) -> Floats:
        return (z[n] if slack else 0.0) - rounds.table(z[:n])[0]

    def row_slopes(z: Floats) -> Floats:
        return np.hstack([-rounds.table(z[:n])[1], np.full((rounds.shares.size, 1), float(slack))])

    def objective(z: Floats) -> float:
        return float(z[n]) if slack else float(rounds.problem.losses.mean(z[:n])[0][0]) + 0.5 * (z[n] - start[n]) ** 2

    def slope(z: Floats) -> Floats:
        if slack:
            return np.append(np.zeros(n), 1.0)
        return np.append(rounds.problem.losses.mean(z[:n])[1][0], z[n] - start[n])

    rows = {"type": "ineq", "fun": row_values, "jac": row_slopes}
    inside = domain_rows(rounds.domain)
    found = minimize(
        objective,
        start,
        jac=slope,
        method="SLSQP",
        constraints=[*inside, rows],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    point = np.array(found.x[:n])
    rounds.domain.move_inside(point)
    return Answer(point, np.maximum(found.multipliers[-rounds.shares.size :], 0.0), "SLSQP")


def domain_rows(domain: Domain) -> list[dict[str, Any]]:
    """The domain as SciPy's constraints on (x, level), equations first."""
    matrix, limits, equations = domain.halfspaces
    wide = np.hstack([matrix, np.zeros((len(matrix), 1))])
    found: list[dict[str, Any]] = []
    for kind, part in (("eq", slice(0, equations)), ("ineq", slice(equations, None))):
        if limits[part].size:
            found.append(linear_rows(kind, wide[part], limits[part]))
    if isinstance(domain, Ball):
        middle, square = np.append(domain.middle, 0.0), domain.radius**2
        flat = np.append(np.ones(domain.dimension), 0.0)  # the level has no part in it
        found.append(
            {
                "type": "ineq",
                "fun": lambda z: square - (flat * (z - middle) ** 2).sum(),
                "jac": lambda z: -2.0 * flat * (z - middle),
            }
        )
    return found


def linear_rows(kind: str, matrix: Floats, limits: Floats) -> dict[str, Any]:
    """Limits - matrix z, at least 0 or equal to it."""
    return {"type": kind, "fun": lambda z: limits - matrix @ z, "jac": lambda z: -matrix}  # noqa: ARG005
