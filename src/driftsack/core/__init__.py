"""Layer 0: the words of the library. ``Problem``, ``Instance``, ``Decision``, errors, checks, seeding."""

from driftsack.core.decision import SKIP, Decision
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem

__all__ = ["SKIP", "Decision", "Instance", "Problem"]
