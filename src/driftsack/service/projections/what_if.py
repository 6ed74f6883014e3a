"""Off-policy evaluation: the reward of another policy, estimated from the journal of a campaign."""

from __future__ import annotations

import csv
import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driftsack.core.decision import SKIP
from driftsack.logs import Evaluation, Log, evaluate, read
from driftsack.policies.policy import from_spec
from driftsack.service.domain.config import Config
from driftsack.service.projections.export import as_csv, find_row
from driftsack.service.store.interface import Store


def what_if(store: Store, name: str, policy: dict[str, Any], trials: int = 20) -> tuple[Evaluation, float]:
    """Evaluate a policy on the outcomes in a journal.

    The policy uses the arms that the campaign was opened with. Requests for which a later arm was chosen count as
    requests with unknown outcomes.

    Args:
        name: The campaign.
        policy: Name and settings of the other policy.
        trials: Number of trials.

    Returns:
        The estimate with its standard error, and the campaign's own mean reward per request.

    Raises:
        CannotAnswerError: The journal is too short, or its decisions differ too much from those of the policy.
    """
    config = Config.from_bytes(find_row(store, name).config)
    problem = config.problem()
    log = _log(store, name, config)
    own = float(np.mean(log.reward))
    share = len(log) / problem.horizon if config.horizon is not None else 1.0
    budget = np.asarray(problem.budget) * min(share, 1.0)
    return evaluate(_without_added(log, config), from_spec(policy), budget.tolist(), trials), own


def _log(store: Store, name: str, config: Config) -> Log:
    """Return the journal as a log with all its arms; its maxima cover outcomes above those of the campaign."""
    text = as_csv(store, name)
    rows = list(csv.DictReader(io.StringIO(text)))
    added = {row["arm"] for row in rows} - {"", *config.arms}
    maxima = zip(config.budget, config.problem().cost_max, strict=True)
    most = {f"cost_{resource}": amount for resource, amount in maxima}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"{name}.csv"
        file.write_text(text)
        return read(
            file,
            arms=[*config.arms, *sorted(added)],
            reward_max=max([config.reward_max, *(float(row["reward"]) for row in rows)]),
            cost_max={column: max([least, *(float(row[column]) for row in rows)]) for column, least in most.items()},
        )


def _without_added(log: Log, config: Config) -> Log:
    """Return the log with the arms that the campaign was opened with; rounds of other arms count as skipped."""
    known = log.arm < len(config.arms)
    return replace(
        log,
        arms=tuple(config.arms),
        arm=np.where(known, log.arm, SKIP).astype(log.arm.dtype),
        reward=np.where(known, log.reward, 0.0),
        costs=np.where(known[:, None], log.costs, 0.0),
    )
