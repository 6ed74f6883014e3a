"""The paper's formulas: confidence radii, window lengths and regret bounds."""

from driftsack.theory.bounds import (
    ConcentrationBounds,
    LowerBounds,
    RegretBound,
    concentration_bounds,
    regret_bound,
    regret_lower_bounds,
    repaired_regret_bound,
    stopping_time_bound,
)
from driftsack.theory.pacing import RemainingPaceBound, remaining_pace_bound
from driftsack.theory.refined import RefinedBound, epsilon, refined_radius, refined_regret_bound, repaired_refined_bound
from driftsack.theory.windows import log_term, radius_constant, window, windows

__all__ = [
    "ConcentrationBounds",
    "LowerBounds",
    "RefinedBound",
    "RegretBound",
    "RemainingPaceBound",
    "concentration_bounds",
    "epsilon",
    "log_term",
    "radius_constant",
    "refined_radius",
    "refined_regret_bound",
    "regret_bound",
    "regret_lower_bounds",
    "remaining_pace_bound",
    "repaired_refined_bound",
    "repaired_regret_bound",
    "stopping_time_bound",
    "window",
    "windows",
]
