"""The arrays inside a learner, for tests that compare or change them; no other test reaches into its engine."""

from __future__ import annotations

from driftsack.game.desk import DecisionDesk
from driftsack.game.ledger import Ledger
from driftsack.game.records import Terms
from driftsack.policies.learner.core import LearnerCore
from driftsack.policies.learner.engine import LearnerEngine


def engine_of(learner: LearnerCore) -> LearnerEngine:
    """The engine."""
    return learner._engine


def terms_of(learner: LearnerCore) -> Terms:
    """The terms of the next round."""
    return engine_of(learner).terms


def desk_of(learner: LearnerCore) -> DecisionDesk:
    """The decisions that are not settled, and the buffers of the kernels."""
    return engine_of(learner).desk


def ledger_of(learner: LearnerCore) -> Ledger:
    """The ledger of the present season."""
    return engine_of(learner).ledger
