r"""Solve the convex programs of OPT and OPT', which minimise the mean loss subject to rows of constraints.

OPT has d rows, the mean constraints. OPT' has K·d rows, the constraints of every distinct round. A program is first
solved with a few rows; all others are evaluated at the solution, the most violated ones are added, and the program is
solved again until no row is violated. This is exact, and fast for T = 10⁶ distinct rounds. Functions given by arrays
are solved with cvxpy (by HiGHS if everything is linear, otherwise by Clarabel). Callables are solved with SciPy's
SLSQP, sequential quadratic programming with the given gradients, which requires functions that are smooth near the
solution.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import DriftsackError, TooLargeError
from driftsack.core.extras import require
from driftsack.oco.domains import Ball, Domain
from driftsack.oco.families import LINEAR, NORM, Table
from driftsack.oco.optional_packages import cvxpy
from driftsack.oco.problem import ConvexProblem

ROWS_PER_PASS: Final = 20  # rows added per constraint in one pass
MAX_PASSES: Final = 100
VIOLATION_TOLERANCE: Final = 1e-11  # a row is added if it is violated by more, relative to the rows' size
MAX_CALLABLE_ROUNDS: Final = 1_000  # longest horizon of OPT' with callables
MAX_NORMS: Final = 50_000  # largest number of distinct norms in a mean loss or constraint
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


class Solution(NamedTuple):
    """The result of a solver, before it is certified."""

    point: Floats  # (n,) the point, projected onto the domain
    weights: Floats  # (rows,) the multipliers of the rows, for the mean loss as objective
    method: str  # the name of the solver


class ConstraintRows:
    """The rows of constraints of OPT or OPT'.

    Args:
        problem: The problem.
        every_round: Whether the constraints hold in every round (OPT') or in the mean of all rounds (OPT).
    """

    def __init__(self, problem: ConvexProblem, every_round: bool) -> None:
        self.problem, self.every_round = problem, every_round
        self.domain: Domain = problem.domain
        self.convex_program = problem.tabled
        if every_round and not problem.tabled:
            if problem.horizon > MAX_CALLABLE_ROUNDS:
                raise TooLargeError(
                    f"OPT' of callables evaluates every round many times, so it takes at most {MAX_CALLABLE_ROUNDS} "
                    f"rounds, got {problem.horizon}; give the constraints as arrays."
                )
            self.shares = np.full(problem.horizon * problem.count, 1.0 / problem.horizon)
        elif every_round:
            self.shares = np.concatenate([np.repeat(f.weights, f.count) for f in problem.constraints])
        else:
            self.shares = np.ones(problem.count)
        self.used = self.shares > 0.0

    def evaluate(self, x: Floats) -> tuple[Floats, Floats]:
        """Values (rows,) and gradients (rows, n) of all rows at x."""
        if not self.every_round:
            values, gradients = self.problem.mean(x)
            return values[1:], gradients[1:]
        if not self.convex_program:
            parts = [self.problem.evaluate(t, x) for t in range(self.problem.horizon)]
            return np.concatenate([v[1:] for v, _ in parts]), np.concatenate([g[1:] for _, g in parts])
        tables = [family.table(x) for family in self.problem.constraints]
        values = np.concatenate([v.reshape(-1) for v, _ in tables])
        return values, np.concatenate([np.broadcast_to(g, (*v.shape, x.size)).reshape(-1, x.size) for v, g in tables])

    def values(self, x: Floats) -> Floats:
        """(used rows,) the constraints at x of the rows that occur in some round."""
        return self.evaluate(x)[0][self.used]

    def weighted_sum(self, x: Floats, weights: Floats) -> tuple[float, Floats]:
        """The value and the gradient (n,) at x of the weighted sum of the rows."""
        values, gradients = self.evaluate(x)
        return float(weights @ values), weights @ gradients

    def prices(self, weights: Floats) -> Floats:
        """The prices for the sum of losses: (d,) of summed constraints, or (K, d) of single rounds.

        The multiplier of a row is divided evenly among its rounds. K is the largest number of rows of a family; the
        prices of a family with fewer rows are padded with zeros.
        """
        if not self.every_round:
            return weights
        per_round: Floats = np.divide(weights, self.shares, out=np.zeros_like(weights), where=self.used)
        counts = [f.count for f in self.problem.constraints]
        if len(counts) == 1 or not self.convex_program:
            return per_round.reshape(-1, self.problem.count)
        cuts = np.cumsum([f.weights.size * f.count for f in self.problem.constraints])[:-1]
        parts = [p.reshape(-1, c) for p, c in zip(np.split(per_round, cuts), counts, strict=True)]
        rows = max(len(p) for p in parts)
        return np.hstack([np.vstack([p, np.zeros((rows - len(p), p.shape[1]))]) for p in parts])

    def slater(self) -> tuple[float, Floats]:
        """The largest s such that some point of the domain has every row at -s or less, and that point (n,)."""
        point = solve(self, minimise_worst=True).point
        self.domain.move_inside(point)
        return -float(self.values(point).max()), point

    def expressions(self, x: Any, chosen: Ints) -> list[Any]:
        """The cvxpy expressions of the chosen rows."""
        if not self.every_round:
            means = [mean_expression(f, i, x) for f in self.problem.constraints for i in range(f.count)]
            return [means[row] for row in chosen]
        expressions, first = [], 0
        for family in self.problem.constraints:
            size = family.weights.size * family.count
            own = chosen[(chosen >= first) & (chosen < first + size)] - first
            expressions += [row_expression(family, row // family.count, row % family.count, x) for row in own.tolist()]
            first += size
        return expressions


def row_expression(family: Table, row: int, i: int, x: Any) -> Any:
    """Function i of a row as a cvxpy expression."""
    rows = family.rows
    vector, constant = rows.vectors[row, i], rows.constants[row, i]
    if rows.kind == NORM:
        return cvxpy().norm(x - vector) + constant
    if rows.kind == LINEAR:
        return vector @ x + constant
    matrix = rows.matrices[row if len(rows.matrices) > 1 else 0, i]
    return 0.5 * cvxpy().quad_form(x, cvxpy().psd_wrap(matrix)) + vector @ x + constant


def mean_expression(family: Table, i: int, x: Any) -> Any:
    """The mean over all rounds of function i as a cvxpy expression."""
    rows, weights = family.rows, family.weights
    if rows.kind == NORM:
        used = np.flatnonzero(weights)
        if used.size > MAX_NORMS:
            raise TooLargeError(f"a sum of norms may have {MAX_NORMS} distinct rows, got {used.size}; group rounds.")
        differences = cvxpy().reshape(x, (1, family.dimension), order="C") - rows.vectors[used, i]
        return weights[used] @ cvxpy().norm(differences, axis=1) + weights @ rows.constants[:, i]
    linear = (weights @ rows.vectors[:, i]) @ x + weights @ rows.constants[:, i]
    if rows.kind == LINEAR:
        return linear
    matrix = rows.matrices[0, i] if len(rows.matrices) == 1 else np.tensordot(weights, rows.matrices[:, i], axes=1)
    return 0.5 * cvxpy().quad_form(x, cvxpy().psd_wrap(matrix)) + linear


def solve(rows: ConstraintRows, minimise_worst: bool = False) -> Solution:
    """Minimise the mean loss subject to the rows or, with ``minimise_worst``, the largest row, over the domain."""
    if not rows.convex_program:
        return solve_with_slsqp(rows, minimise_worst)
    if not rows.every_round:
        return solve_with_cvxpy(rows, np.flatnonzero(rows.used), minimise_worst)[0]
    chosen = largest_rows(rows, rows.domain.centre, -np.inf)
    for _ in range(MAX_PASSES):
        solution, limit = solve_with_cvxpy(rows, chosen, minimise_worst)
        values = rows.evaluate(solution.point)[0]
        size = 1.0 + float(np.abs(values).max())
        violated = largest_rows(rows, solution.point, limit + VIOLATION_TOLERANCE * size)
        new = np.setdiff1d(violated, chosen)
        if not new.size:
            return solution
        chosen = np.union1d(chosen, new)
    raise DriftsackError(f"OPT' was not found in {MAX_PASSES} passes over its rows; scale the constraints to about 1.")


def largest_rows(rows: ConstraintRows, x: Floats, above: float) -> Ints:
    """For each constraint, the ``ROWS_PER_PASS`` used rows with the largest values at x, if these exceed ``above``."""
    values = np.where(rows.used, rows.evaluate(x)[0], -np.inf)
    first, largest = 0, []
    for family in rows.problem.constraints:
        table = values[first : first + family.weights.size * family.count].reshape(-1, family.count)
        for i in range(family.count):
            top = np.argsort(-table[:, i], kind="stable")[:ROWS_PER_PASS]
            largest.append(first + top[table[top, i] > above] * family.count + i)
        first += table.size
    return np.unique(np.concatenate(largest))


def solve_with_cvxpy(rows: ConstraintRows, chosen: Ints, minimise_worst: bool) -> tuple[Solution, float]:
    """Solve the program with the chosen rows; return the solution and the upper limit of the rows."""
    # Write the program.
    cp = cvxpy()
    x, worst = cp.Variable(rows.domain.dimension), cp.Variable()
    limit = worst if minimise_worst else 0.0
    constraints = [expression <= limit for expression in rows.expressions(x, chosen)]
    losses: Any = rows.problem.losses
    objective = worst if minimise_worst else mean_expression(losses, 0, x)
    program = cp.Problem(cp.Minimize(objective), constraints + rows.domain.program(x))
    # Solve it with the solver for its kind.
    kinds = {f.rows.kind for f in rows.problem.constraints} | (set() if minimise_worst else {losses.rows.kind})
    linear = kinds == {LINEAR} and not isinstance(rows.domain, Ball)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the certificate shows whether it is
        try:
            program.solve(**(LINEAR_SOLVER if linear else CONVEX_SOLVER))
        except cp.SolverError:
            program.solve(solver="CLARABEL")  # with its default tolerances
    if x.value is None:
        raise DriftsackError(f"the solver ended as {program.status}; scale losses and constraints to about 1.")
    # Read the point and the dual weights.
    weights = np.zeros(rows.shares.size)
    weights[chosen] = [max(float(np.ravel(constraint.dual_value)[0]), 0.0) for constraint in constraints]
    point = np.array(x.value, dtype=float)
    rows.domain.move_inside(point)
    solution = Solution(point, weights, "HiGHS" if linear else "Clarabel")
    return solution, float(worst.value) if minimise_worst else 0.0


def solve_with_slsqp(rows: ConstraintRows, minimise_worst: bool) -> Solution:
    """Solve the program of callables by sequential quadratic programming, over z = (x, worst row)."""
    require("scipy")
    from scipy.optimize import minimize

    # Start at the centre of the domain; the last entry of z is the largest row there.
    n = rows.domain.dimension
    start = np.append(rows.domain.centre, 0.0)
    start[n] = float(rows.values(start[:n]).max())

    # Each row must not exceed the last entry of z, or 0.
    def row_slacks(z: Floats) -> Floats:
        return (z[n] if minimise_worst else 0.0) - rows.evaluate(z[:n])[0]

    def row_jacobian(z: Floats) -> Floats:
        return np.hstack([-rows.evaluate(z[:n])[1], np.full((rows.shares.size, 1), float(minimise_worst))])

    # Minimise that entry, or the mean loss; a quadratic term then keeps the unused entry at its start.
    def objective(z: Floats) -> float:
        if minimise_worst:
            return float(z[n])
        loss = float(rows.problem.losses.mean(z[:n])[0][0])
        return float(loss + 0.5 * (z[n] - start[n]) ** 2)

    def gradient(z: Floats) -> Floats:
        if minimise_worst:
            return np.append(np.zeros(n), 1.0)
        return np.append(rows.problem.losses.mean(z[:n])[1][0], z[n] - start[n])

    # Solve, and keep the multipliers of the rows, which come last.
    constraints = {"type": "ineq", "fun": row_slacks, "jac": row_jacobian}
    result = minimize(
        objective,
        start,
        jac=gradient,
        method="SLSQP",
        constraints=[*domain_constraints(rows.domain), constraints],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    point = np.array(result.x[:n])
    rows.domain.move_inside(point)
    return Solution(point, np.maximum(result.multipliers[-rows.shares.size :], 0.0), "SLSQP")


def domain_constraints(domain: Domain) -> list[dict[str, Any]]:
    """The domain as SciPy's constraints on z = (x, worst row), equations first."""
    matrix, limits, equations = domain.halfspaces
    wide = np.hstack([matrix, np.zeros((len(matrix), 1))])
    constraints: list[dict[str, Any]] = []
    for kind, part in (("eq", slice(0, equations)), ("ineq", slice(equations, None))):
        if limits[part].size:
            constraints.append(linear_constraints(kind, wide[part], limits[part]))
    if isinstance(domain, Ball):
        middle, square = np.append(domain.middle, 0.0), domain.radius**2
        in_x = np.append(np.ones(domain.dimension), 0.0)  # the last entry of z is not part of x
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda z: square - (in_x * (z - middle) ** 2).sum(),
                "jac": lambda z: -2.0 * in_x * (z - middle),
            }
        )
    return constraints


def linear_constraints(kind: str, matrix: Floats, limits: Floats) -> dict[str, Any]:
    """SciPy's constraint that ``limits - matrix @ z`` is at least 0 (``"ineq"``) or equal to 0 (``"eq"``)."""
    return {"type": kind, "fun": lambda z: limits - matrix @ z, "jac": lambda _: -matrix}
