"""HiGHS with the options that all callers share; slow to import, so import it only where a program is solved."""

from __future__ import annotations

from typing import Final

import highspy

TIGHT: Final = 1e-10  # the smallest tolerance that HiGHS accepts
USUAL: Final = 1e-7  # the default of HiGHS, for programs on which TIGHT fails


def new_highs(tolerance: float = TIGHT) -> highspy.Highs:
    """Create a silent HiGHS solver with one thread and no presolve (the programs are tiny)."""
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
