"""What another policy would have earned, estimated from the journal of a campaign and its propensities."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from driftsack.logs import Evaluation, evaluate, read
from driftsack.policies.policy import from_spec
from driftsack.service.config import Config
from driftsack.service.export import as_csv, find_row
from driftsack.service.store.interface import Store


def what_if(store: Store, name: str, policy: dict[str, Any], trials: int = 20) -> tuple[Evaluation, float]:
    """Evaluate a policy on the outcomes in a journal.

    Args:
        store: The store.
        name: The campaign.
        policy: Name and settings of the other policy.
        trials: Number of games.

    Returns:
        The estimate with its standard error, and what the campaign itself earned per request.

    Raises:
        CannotAnswerError: The journal is too short, or too different from what the policy would have done.
    """
    config = msgspec.msgpack.decode(find_row(store, name).config, type=Config)
    problem = config.problem()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.csv"
        file.write_text(as_csv(store, name))
        cost_max = {f"cost_{resource}": most for resource, most in zip(config.budget, problem.cost_max, strict=True)}
        log = read(file, arms=list(config.arms), reward_max=config.reward_max, cost_max=cost_max)
    share = len(log) / problem.horizon if config.horizon is not None else 1.0
    budget = np.asarray(problem.budget) * min(share, 1.0)
    return evaluate(log, from_spec(policy), budget.tolist(), trials), float(np.mean(log.reward))
