"""Simulated trials of a policy on an instance, and logs gathered from them."""

from driftsack.simulation.feedback import Feedback
from driftsack.simulation.gather import gather
from driftsack.simulation.results import Run
from driftsack.simulation.simulate import simulate

__all__ = ["Feedback", "Run", "gather", "simulate"]
