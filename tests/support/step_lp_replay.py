"""Solve a recorded sequence of step LPs in which a few columns change from round to round."""

from __future__ import annotations

from driftsack.core.arrays import Floats, Ints
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import Simplex, column_changed, solve, to_slack_basis


@kernel
def replay(lp: Simplex, starts: Ints, arms: Ints, rewards: Floats, costs: Floats, cold: bool, values: Floats) -> int:
    """Solve a recording as the simulator's loop does; return how many solutions were not optimal.

    Values of the objective go into ``values``. With ``cold`` each LP is solved from the slack basis.
    """
    failed = 0
    for r in range(values.size):
        for change in range(starts[r], starts[r + 1]):
            arm = arms[change]
            lp.objective[arm] = rewards[change]
            for j in range(costs.shape[1]):
                lp.columns[j, arm] = costs[change, j]
            column_changed(lp, arm)
        if cold:
            to_slack_basis(lp)
        failed += solve(lp)
        value = 0.0
        for arm in range(lp.solution.size):
            value += lp.objective[arm] * lp.solution[arm]
        values[r] = value
    return failed
