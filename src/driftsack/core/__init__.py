"""Problems, instances and decisions; errors, array types, argument checks, seeding and the file format."""

from driftsack.core.contextual import ContextualInstance
from driftsack.core.decision import SKIP, Decision
from driftsack.core.encoder import Encoder
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem

__all__ = ["SKIP", "ContextualInstance", "Decision", "Encoder", "Instance", "Problem"]
