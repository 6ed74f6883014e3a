"""What another policy would have earned, estimated from the journal of a campaign and its propensities."""

from __future__ import annotations

import csv
import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from driftsack.core.decision import SKIP
from driftsack.logs import Evaluation, Log, evaluate, read
from driftsack.policies.policy import from_spec
from driftsack.service.config import Config
from driftsack.service.export import as_csv, find_row
from driftsack.service.store.interface import Store


def what_if(store: Store, name: str, policy: dict[str, Any], trials: int = 20) -> tuple[Evaluation, float]:
    """Evaluate a policy on the outcomes in a journal.

    The policy plays with the arms that the campaign was opened with. A request for which an arm was chosen that was
    added later is one whose outcome is not known.

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
    log = _log(store, name, config)
    own = float(np.mean(log.reward))
    share = len(log) / problem.horizon if config.horizon is not None else 1.0
    budget = np.asarray(problem.budget) * min(share, 1.0)
    return evaluate(_without_added(log, config), from_spec(policy), budget.tolist(), trials), own


def _log(store: Store, name: str, config: Config) -> Log:
    """The outcomes in a journal, with all arms that were chosen; some may be above the maxima of the campaign."""
    text = as_csv(store, name)
    rows = list(csv.DictReader(io.StringIO(text)))
    added = {row["arm"] for row in rows} - {"", *config.arms}
    maxima = zip(config.budget, config.problem().cost_max, strict=True)
    most = {f"cost_{resource}": amount for resource, amount in maxima}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.csv"
        file.write_text(text)
        return read(
            file,
            arms=[*config.arms, *sorted(added)],
            reward_max=max([config.reward_max, *(float(row["reward"]) for row in rows)]),
            cost_max={column: max([least, *(float(row[column]) for row in rows)]) for column, least in most.items()},
        )


def _without_added(log: Log, config: Config) -> Log:
    """The log with the arms that the campaign was opened with; other outcomes are not known."""
    known = log.arm < len(config.arms)
    return replace(
        log,
        arms=tuple(config.arms),
        arm=np.where(known, log.arm, SKIP).astype(log.arm.dtype),
        reward=np.where(known, log.reward, 0.0),
        costs=np.where(known[:, None], log.costs, 0.0),
    )
