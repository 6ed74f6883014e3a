"""Layer 4: trials of a policy on an instance."""

from driftsack.simulation.run import Run
from driftsack.simulation.simulate import simulate

__all__ = ["Run", "simulate"]
