"""HiGHS with the options that all callers share. Slow to import, so import it only where a program is solved."""

from __future__ import annotations

from typing import Final

import highspy

TIGHT: Final = 1e-10  # the tightest tolerance that HiGHS takes
USUAL: Final = 1e-7  # its own default, for programs on which the tightest one fails


def new_highs(tolerance: float = TIGHT) -> highspy.Highs:
    """A silent HiGHS with one thread and no presolve (programs are tiny)."""
    solver = highspy.Highs()
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }.items():
        solver.setOptionValue(option, value)
    return solver
