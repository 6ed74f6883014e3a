r"""A simplex method for small linear programs, warm-started from the last basis.

.. math:: \max_x \; c^\top x \quad \text{s.t. } A x \le h,\; x \ge 0, \qquad A \in \mathbb{R}^{k \times n},\; h \ge 0,

for few rows k and many solves whose data change little from one to the next. With slacks the columns are
:math:`[A \; I]`. The state keeps a basis, the explicit inverse :math:`B^{-1}` and the data. A solve first checks
whether the kept basis is still optimal. If not, it pivots, and there are three cases:

- levels :math:`B^{-1} h \ge 0` but some reduced cost :math:`c_j - y^\top A_j > 0`: a primal pivot;
- no positive reduced cost but a negative level: a dual pivot;
- neither holds: a few dual pivots that treat positive reduced costs as zero. If that does not help, the
  method restarts once from the slack basis, which is feasible because :math:`h \ge 0`.

Replacing a basic column by its new value is the same rank-one update as a pivot, :math:`O(k^2)`. A solve costs
:math:`O(k^2 + kn)`, plus the same for each pivot. *No cycling*: after a fixed number of pivots, Bland's rule
is used. *No silent errors*: a basis is accepted as optimal only if :math:`\|B x_B - h\|_1` and
:math:`\|c_B - B^\top y\|_1`, computed from the data, are small. If they are not, the inverse is
recomputed from the data; if that does not help, the status is ``FAILED`` and the caller must use another solver.

Reference: Chvatal, Linear Programming (1983), chapters 7, 8 and 10.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.bounds import Bound, Counts, NonNegative, Scratch, index_of
from driftsack.core.checks import LARGEST_FLOAT
from driftsack.numerics.compiled import kernel, source

OPTIMAL: Final = 0
FAILED: Final = 1
GIVEN: Final = 2  # solved by another solver: ``solve`` accepts the solution unless a column changes first

TOLERANCE: Final = 1e-11  # on levels and reduced costs
SMALLEST_PIVOT: Final = 1e-9
SINGULAR: Final = 1e-13
HARRIS: Final = 1e-12  # how far below zero a level may fall to allow a larger pivot
RESIDUAL: Final = 1e-11  # the inverse is recomputed above this residual
LARGEST_RESIDUAL: Final = 1e-9  # the solve has failed if the residual is above this after recomputation

# Positions in ``Simplex.counts``
STATUS: Final = 0
STALE: Final = 1  # 1 if the inverse does not match the data
PIVOTS: Final = 2
RESTARTS: Final = 3
REFACTORISATIONS: Final = 4


class Simplex(NamedTuple):
    """Data, basis and solution; slack j has the column number n + j.

    Attributes:
        objective: (n + k,) c, zero for slacks.
        columns: (k, n + k) [A I].
        rhs: (k,) h.
        basis: (k,) column of each basic position.
        position: (n + k,) basic position of each column, or -1.
        inverse: (k, k) the inverse of the basis.
        levels: (k,) values of the basic variables.
        duals: (k,) y, the prices of the rows.
        reduced: (n + k,) reduced costs.
        slopes: (n + k,) minus a row of B^-1 A.
        work: (k,) B^-1 times a column (FTRAN).
        square: (k, k) scratch for refactorisation.
        solution: (n,) x.
        counts: (5,) status and counters; the positions are named above.
    """

    objective: Floats
    columns: Annotated[Floats, Bound(lambda new, *_: _columns_limits(new))]
    rhs: Annotated[Floats, Bound(lambda new, *_: _rhs_limits(new))]
    basis: Annotated[Ints, index_of("position")]
    position: Annotated[Ints, index_of("basis", least=-1)]
    inverse: Floats
    levels: Scratch
    duals: Floats
    reduced: Scratch
    slopes: Scratch
    work: Scratch
    square: Scratch
    solution: NonNegative
    counts: Counts

    def grow_from(self, old: Simplex) -> None:
        """Start from the slack basis: the policy writes the data of all its arms before the next solve.

        Args:
            old: The program with fewer columns; its counters are kept.
        """
        self.counts[PIVOTS:] = old.counts[PIVOTS:]

    def check(self) -> None:
        """Raise unless every basic column is at the position that it claims and slacks are unit vectors."""
        rows = self.rhs.size
        if (self.position[self.basis] != np.arange(rows)).any() or (self.position >= 0).sum() != rows:
            raise ValueError("the basis of a linear program is not one of its columns in each position")
        slacks = self.columns[:, self.solution.size :]
        if (slacks != np.eye(rows)).any() or self.objective[self.solution.size :].any():
            raise ValueError("the slacks of a linear program are not unit vectors")
        used = self.columns[:, : self.solution.size] @ self.solution
        if self.counts[STATUS] == GIVEN and (used > self.rhs + LARGEST_RESIDUAL * np.maximum(self.rhs, 1.0)).any():
            raise ValueError("the given solution of a linear program is not feasible")


def _bounding_rows(new: Simplex) -> Bools:
    """(k,) the rows of a new program that bound the variables; its other data are 0 until a policy writes them."""
    bounding: Bools = np.any(new.columns[:, : new.solution.size] > 0.0, axis=1)
    return bounding


def _columns_limits(new: Simplex) -> tuple[Floats, Floats]:
    """Limits of the columns, whose structure never changes."""
    fixed = (new.columns != 0.0) | _bounding_rows(new)[:, None]
    return np.where(fixed, new.columns, -LARGEST_FLOAT), np.where(fixed, new.columns, LARGEST_FLOAT)


def _rhs_limits(new: Simplex) -> tuple[Floats, Floats]:
    """Limits of the right-hand sides, which never change in rows that bound the variables."""
    fixed = _bounding_rows(new) & (new.rhs > 0.0)
    return np.where(fixed, new.rhs, 0.0), np.where(fixed, new.rhs, LARGEST_FLOAT)


def new_simplex(rows: int, variables: int) -> Simplex:
    """Create an all-zero program with ``rows`` constraints and ``variables`` variables at its slack basis."""
    total = variables + rows
    columns = np.zeros((rows, total))
    columns[:, variables:] = np.eye(rows)
    lp = Simplex(
        objective=np.zeros(total),
        columns=columns,
        rhs=np.zeros(rows),
        basis=np.zeros(rows, dtype=np.int64),
        position=np.zeros(total, dtype=np.int64),
        inverse=np.zeros((rows, rows)),
        levels=np.zeros(rows),
        duals=np.zeros(rows),
        reduced=np.zeros(total),
        slopes=np.zeros(total),
        work=np.zeros(rows),
        square=np.zeros((rows, rows)),
        solution=np.zeros(variables),
        counts=np.zeros(5, dtype=np.int64),
    )
    source(to_slack_basis)(lp)  # in Python: not worth compiling
    return lp


@kernel
def to_slack_basis(lp: Simplex) -> None:
    """Reset to the slack basis (x = 0), which is feasible because the right-hand side is not negative."""
    rows = lp.rhs.size
    lp.position[:] = -1
    lp.inverse[:] = 0.0
    for p in range(rows):
        column = lp.solution.size + p
        lp.basis[p] = column
        lp.position[column] = p
        lp.inverse[p, p] = 1.0
    lp.counts[STALE] = 0


@kernel
def column_changed(lp: Simplex, j: int) -> None:
    """Update the inverse after ``objective[j]`` and ``columns[:, j]`` have changed.

    Args:
        lp: The linear program; updated.
        j: The index of the column.
    """
    if lp.counts[STATUS] == GIVEN:
        lp.counts[STATUS] = OPTIMAL  # the given solution belongs to the old data
    p = lp.position[j]
    if p < 0 or lp.counts[STALE] == 1:
        return
    largest = ftran(lp, j)
    if abs(lp.work[p]) > 1e-6 * largest:
        exchange(lp, p)
    else:
        lp.counts[STALE] = 1


@kernel
def ftran(lp: Simplex, j: int) -> float:
    """Compute work = B^-1 A_j (FTRAN); return its largest absolute entry."""
    rows = lp.rhs.size
    largest = 0.0
    for p in range(rows):
        total = 0.0
        for i in range(rows):
            total += lp.inverse[p, i] * lp.columns[i, j]
        lp.work[p] = total
        largest = max(largest, abs(total))
    return largest


@kernel
def exchange(lp: Simplex, p: int) -> None:
    """Update the inverse after the column in position ``p`` was replaced by the one in ``work``."""
    rows = lp.rhs.size
    scale = 1.0 / lp.work[p]
    for i in range(rows):
        lp.inverse[p, i] *= scale
    for q in range(rows):
        factor = lp.work[q]
        if q != p and factor != 0.0:
            for i in range(rows):
                lp.inverse[q, i] -= factor * lp.inverse[p, i]


@kernel
def pivot(lp: Simplex, p: int, j: int) -> None:
    """Let column ``j`` enter the basis in position ``p``; ``work`` must hold B^-1 times it."""
    exchange(lp, p)
    lp.position[lp.basis[p]] = -1
    lp.basis[p] = j
    lp.position[j] = p
    lp.counts[PIVOTS] += 1


@kernel
def refactorise(lp: Simplex) -> bool:
    """Compute the inverse from the data by Gauss-Jordan with row exchanges; return False if it is singular."""
    rows = lp.rhs.size
    # Gauss-Jordan turns [B I] into [I B^-1].
    left, right = lp.square, lp.inverse
    lp.counts[REFACTORISATIONS] += 1
    lp.counts[STALE] = 0
    for i in range(rows):
        for p in range(rows):
            left[i, p] = lp.columns[i, lp.basis[p]]
            right[i, p] = 1.0 if i == p else 0.0
    for p in range(rows):
        # Partial pivoting: the largest entry of the column.
        top = p
        for i in range(p + 1, rows):
            if abs(left[i, p]) > abs(left[top, p]):
                top = i
        if abs(left[top, p]) < SINGULAR:
            return False
        eliminate(left, right, p, top)
    return True


@kernel
def eliminate(left: Floats, right: Floats, p: int, top: int) -> None:
    """Move row ``top`` to row ``p`` and eliminate column ``p`` from all others; apply the same to ``right``."""
    rows = len(left)
    # Swap the rows.
    if top != p:
        for i in range(rows):
            left[p, i], left[top, i] = left[top, i], left[p, i]
            right[p, i], right[top, i] = right[top, i], right[p, i]
    # Scale the pivot row to 1, and subtract multiples of it from the other rows.
    scale = 1.0 / left[p, p]
    for i in range(rows):
        left[p, i] *= scale
        right[p, i] *= scale
    for q in range(rows):
        factor = left[q, p]
        if q != p and factor != 0.0:
            for i in range(rows):
                left[q, i] -= factor * left[p, i]
                right[q, i] -= factor * right[p, i]


@kernel
def evaluate(lp: Simplex) -> None:
    """Compute levels B^-1 h, prices y = c_B B^-1 and reduced costs c - y A of the current basis."""
    rows = lp.rhs.size
    # Levels B^-1 h and prices c_B B^-1, row by row of the inverse.
    lp.duals[:] = 0.0
    for p in range(rows):
        level = 0.0
        weight = lp.objective[lp.basis[p]]
        for i in range(rows):
            level += lp.inverse[p, i] * lp.rhs[i]
            lp.duals[i] += weight * lp.inverse[p, i]
        lp.levels[p] = level
    # Reduced costs c - y A.
    for j in range(lp.reduced.size):
        lp.reduced[j] = lp.objective[j]
    subtract_rows(lp, lp.duals, lp.reduced)


@kernel
def subtract_rows(lp: Simplex, weights: Floats, into: Floats) -> None:
    """Subtract weights A from ``into``, two rows at a time: fewer passes, and the same result as row by row."""
    first = -1
    for i in range(lp.rhs.size):
        if weights[i] == 0.0:
            continue
        if first < 0:
            first = i
            continue
        upper, lower = weights[first], weights[i]
        for j in range(into.size):
            into[j] = (into[j] - upper * lp.columns[first, j]) - lower * lp.columns[i, j]
        first = -1
    if first >= 0:
        weight = weights[first]
        for j in range(into.size):
            into[j] -= weight * lp.columns[first, j]


@kernel
def residual(lp: Simplex) -> float:
    """Return the violation of B x_B = h and B^T y = c_B, computed from the data; NaN is preserved."""
    rows = lp.rhs.size
    total = 0.0
    for i in range(rows):
        missing = lp.rhs[i]
        for p in range(rows):
            missing -= lp.columns[i, lp.basis[p]] * lp.levels[p]
        total += abs(missing) + abs(lp.reduced[lp.basis[i]])
    return total


@kernel
def pick_leaving(lp: Simplex, bland: bool) -> int:
    """Return the basic position with the most negative level (Bland: the lowest column), or -1."""
    chosen = -1
    least = -TOLERANCE
    for p in range(lp.rhs.size):
        if lp.levels[p] < -TOLERANCE:
            better = lp.basis[p] < lp.basis[chosen] if bland and chosen >= 0 else lp.levels[p] < least
            if better:
                chosen, least = p, lp.levels[p]
    return chosen


@kernel
def pick_entering(lp: Simplex, bland: bool) -> int:
    """Return the column with the largest positive reduced cost (Bland: the lowest such column), or -1.

    The reduced costs of basic columns are zero up to rounding. Reduced costs within that noise are ignored, because
    otherwise copies of a basic column would replace it endlessly; the residual test bounds the noise.
    """
    chosen, most = -1, TOLERANCE
    for j in range(lp.reduced.size):
        if lp.reduced[j] > most and lp.position[j] < 0:
            chosen, most = j, lp.reduced[j]
    if chosen < 0:
        return -1
    # Ignore reduced costs within the rounding noise of the basic ones.
    noise = 0.0
    for p in range(lp.rhs.size):
        noise = max(noise, abs(lp.reduced[lp.basis[p]]))
    least = max(TOLERANCE, min(4.0 * noise, LARGEST_RESIDUAL))
    if most <= least:
        return -1
    if bland:
        chosen = 0
        while not (lp.reduced[chosen] > least and lp.position[chosen] < 0):
            chosen += 1
    return chosen


@kernel
def primal_ratio(lp: Simplex, bland: bool) -> int:
    """Return the position that reaches zero first as the column in ``work`` enters, or -1 (primal ratio test).

    Positions that reach zero within rounding of each other are tied. Ties are broken by the largest pivot (Harris);
    Bland's rule breaks exact ties by the lowest column.
    """
    # First pass: the longest step that keeps every level above -slack.
    slack = 0.0 if bland else HARRIS
    bound = np.inf
    for p in range(lp.rhs.size):
        if lp.work[p] > SMALLEST_PIVOT:
            bound = min(bound, (max(lp.levels[p], 0.0) + slack) / lp.work[p])
    # Second pass: the best pivot among the positions that block that step.
    chosen = -1
    for p in range(lp.rhs.size):
        if lp.work[p] > SMALLEST_PIVOT and max(lp.levels[p], 0.0) / lp.work[p] <= bound:
            lower = chosen >= 0 and lp.basis[p] < lp.basis[chosen]
            larger = chosen >= 0 and lp.work[p] > lp.work[chosen]
            if chosen < 0 or (lower if bland else larger):
                chosen = p
    return chosen


@kernel
def dual_ratio(lp: Simplex, p: int, bland: bool) -> int:
    """Return the column whose reduced cost reaches zero first as position ``p`` leaves, or -1 (dual ratio test).

    A positive reduced cost counts as zero: while neither the levels nor the reduced costs have the right sign, dual
    pivots make the levels feasible first.
    """
    total = lp.reduced.size
    lp.slopes[:] = 0.0
    subtract_rows(lp, lp.inverse[p], lp.slopes)
    chosen = -1
    least = np.inf
    steepest = 0.0
    for j in range(total):
        slope = -lp.slopes[j]
        if slope < -SMALLEST_PIVOT and lp.position[j] < 0:
            ratio = min(lp.reduced[j], 0.0) / slope
            if ratio < least or (not bland and ratio == least and slope < steepest):
                chosen, least, steepest = j, ratio, slope
    return chosen


@kernel
def accept(lp: Simplex) -> int:
    """Write the solution and the prices of an optimal basis; return ``OPTIMAL``."""
    lp.solution[:] = 0.0
    for p in range(lp.rhs.size):
        if lp.basis[p] < lp.solution.size:
            lp.solution[lp.basis[p]] = max(lp.levels[p], 0.0)
    for i in range(lp.rhs.size):
        lp.duals[i] = max(lp.duals[i], 0.0)
    lp.counts[STATUS] = OPTIMAL
    return OPTIMAL


@kernel
def step(lp: Simplex, leaving: int, entering: int, bland: bool) -> bool:
    """Make a dual pivot if a position must leave, otherwise a primal one; return False if no pivot is possible."""
    if leaving < 0:
        ftran(lp, entering)
        leaving = primal_ratio(lp, bland)
    else:
        entering = dual_ratio(lp, leaving, bland)
        if entering >= 0:
            ftran(lp, entering)
    if leaving < 0 or entering < 0:
        return False
    pivot(lp, leaving, entering)
    return True


@kernel
def solve(lp: Simplex) -> int:
    """Solve the program, starting from the kept basis.

    Args:
        lp: The linear program; updated.

    Returns:
        ``OPTIMAL``, with a certified ``solution`` and ``duals``, or ``FAILED``.
    """
    # Accept a solution that another solver has written.
    if lp.counts[STATUS] == GIVEN:
        lp.counts[STATUS] = OPTIMAL
        return OPTIMAL
    # Make the inverse match the data.
    if lp.counts[STALE] == 1 and not refactorise(lp):
        to_slack_basis(lp)
    rows = lp.rhs.size
    patience = 2 * rows  # pivots before a basis that is neither primal nor dual feasible is abandoned
    bland_after = 20 + 5 * rows
    refactored = False
    restarted = False
    for turn in range(bland_after + 20 * (rows + lp.solution.size)):
        # Evaluate the current basis.
        bland = turn >= bland_after
        evaluate(lp)
        leaving = pick_leaving(lp, bland)
        entering = pick_entering(lp, bland)
        if leaving < 0 and entering < 0:
            # Optimal: accept if the residual is small, otherwise recompute the inverse once.
            error = residual(lp)
            if error <= RESIDUAL or (refactored and error <= LARGEST_RESIDUAL):
                return accept(lp)
            advanced = not refactored and refactorise(lp)
            refactored = True
        elif leaving >= 0 and entering >= 0 and turn >= patience and not restarted:
            # Neither primal nor dual feasible for too long.
            advanced = False
        else:
            # Pivot.
            advanced = step(lp, leaving, entering, bland)
        # Restart once from the slack basis; give up the second time.
        if not advanced:
            if restarted:
                break
            to_slack_basis(lp)
            lp.counts[RESTARTS] += 1
            restarted, refactored = True, False
    to_slack_basis(lp)
    lp.counts[STATUS] = FAILED
    return FAILED
