"""``Problem``, ``Instance``, ``Decision``, errors, array types, checks, seeding and the file format."""

from driftsack.core.decision import SKIP, Decision
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem

__all__ = ["SKIP", "Decision", "Instance", "Problem"]
