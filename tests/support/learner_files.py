"""Files of learners that are in the middle of their rounds."""

from __future__ import annotations

from typing import Any, Final

from numpy.random import Generator

from driftsack.core import file_format
from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError
from driftsack.core.problem import Problem
from driftsack.policies.exp3_bwk import Exp3BwK
from driftsack.policies.learner import Learner
from driftsack.policies.learner import file as learner_file
from driftsack.policies.policy import Policy

HORIZON: Final = 60


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decode the content and the arrays of a file."""
    return file_format.decode(data, learner_file.KIND, learner_file.LAYOUT, "the file")


def file_of_started(policy: Policy, rng: Generator) -> bytes:
    """Return the file of a learner in the middle of its rounds, with pending decisions."""
    budget = [20.0] if isinstance(policy, Exp3BwK) else [20.0, 25.0]
    features = 2 if policy.needs_context else 0
    learner = Learner(policy, Problem(horizon=HORIZON, arms=3, budget=budget, cost_max=1.0, features=features), seed=1)
    go_on(learner, 25, rng)
    for _ in range(3):
        learner.ask(context=some_context(learner, rng))
    content, arrays = opened(learner.to_bytes())
    content["lineage"] = "0" * len(content["lineage"])  # otherwise random, but the same seed must give the same files
    for name in arrays:
        if name.endswith("epoch"):
            arrays[name][:] = 0
    return file_format.encode(learner_file.KIND, learner_file.LAYOUT, content, arrays)


def go_on(learner: Learner, rounds: int, rng: Generator) -> None:
    """Settle pending decisions, then ask and tell for some rounds while the budgets last."""
    for decision in learner.pending:
        learner.tell(decision, float(rng.random()), 0.6 * rng.random(learner.problem.resources))
    caps = None if learner.problem.bounded else [1.0] * learner.problem.resources
    for _ in range(rounds):
        try:
            decision = learner.ask(caps=caps, context=some_context(learner, rng))
        except (BudgetExhaustedError, HorizonReachedError):
            return
        if decision.arm != SKIP:
            learner.tell(decision, float(rng.random()), 0.6 * rng.random(learner.problem.resources))


def some_context(learner: Learner, rng: Generator) -> Floats | None:
    """Draw the features of a request, or return None if requests have none."""
    return rng.standard_normal(learner.problem.features) if learner.problem.features else None
