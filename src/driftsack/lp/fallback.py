"""Step LPs solved by HiGHS: the reference, and the fallback if the built-in simplex cannot certify its solution."""

from __future__ import annotations

import highspy
import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError
from driftsack.numerics import simplex
from driftsack.numerics.highs import TIGHT, USUAL, new_highs
from driftsack.numerics.simplex import Simplex


def load_program(solver: highspy.Highs, objective: Floats, columns: Floats, rhs: Floats) -> None:
    """Load the program: maximise objective x subject to columns x <= rhs, x >= 0."""
    rows, variables = columns.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = variables, rows
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = objective
    program.col_lower_, program.col_upper_ = np.zeros(variables), np.full(variables, highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = np.full(rows, -highspy.kHighsInf), rhs
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_ = np.arange(variables + 1, dtype=np.int32) * rows
    matrix.index_ = np.tile(np.arange(rows, dtype=np.int32), variables)
    matrix.value_ = columns.T.ravel()
    solver.passModel(program)


def solve_program(objective: Floats, columns: Floats, rhs: Floats) -> tuple[Floats, Floats]:
    """Return an optimal x and the row prices of: maximise objective x subject to columns x <= rhs, x >= 0."""
    for tolerance in (TIGHT, USUAL):
        solver = new_highs(tolerance)
        load_program(solver, objective, columns, rhs)
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            answer = solver.getSolution()
            return np.maximum(answer.col_value, 0.0), np.maximum(answer.row_dual, 0.0)
    status = solver.modelStatusToString(solver.getModelStatus())
    raise DriftsackError(
        f"HiGHS must find an optimum of the program, but its status is {status!r}; "
        f"objective {objective}, columns {columns}, right-hand side {rhs}."
    )


def rescue(lp: Simplex) -> None:
    """Solve a failed program with HiGHS, so that the next ``simplex.solve`` accepts the solution."""
    variables = lp.solution.size
    solution, duals = solve_program(lp.objective[:variables], lp.columns[:, :variables], lp.rhs)
    lp.solution[:] = solution
    lp.duals[:] = duals
    lp.counts[simplex.STATUS] = simplex.GIVEN
