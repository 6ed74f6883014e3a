"""Layer 2: the paper's formulas."""

from driftsack.theory.windows import log_term, radius_constant, window, windows

__all__ = ["log_term", "radius_constant", "window", "windows"]
