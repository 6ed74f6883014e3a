"""Off-policy evaluation: the reward of another policy, estimated from the journal of a campaign.

Without features, the policy is played on the journal by rejection sampling. With features, it learns from the first
half of the journal, and its decisions at the contexts of the second half are evaluated by the doubly robust estimator.
If the recorded propensities cannot answer, as those of a policy that draws means, whose mixes are often 0 or 1, those
over its draws are estimated from a replay (:mod:`driftsack.service.projections.redraws`). They vary from decision to
decision, so the doubly robust estimator is then used without features, too.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError
from driftsack.core.problem import Problem
from driftsack.logs import Evaluation, Log, evaluate, evaluate_rule, read
from driftsack.logs.evaluation import MIN_SAMPLE_SIZE
from driftsack.policies.policy import from_spec
from driftsack.service.domain.config import Config
from driftsack.service.projections.export import as_csv, find_row, outcomes
from driftsack.service.projections.redraws import redrawn_propensities
from driftsack.service.store.interface import Store


def what_if(store: Store, name: str, policy: dict[str, Any], trials: int = 20) -> tuple[Evaluation, float]:
    """Evaluate a policy on the outcomes in a journal.

    The policy uses the arms that the campaign was opened with. Requests for which a later arm was chosen count as
    requests with unknown outcomes.

    Args:
        name: The campaign.
        policy: Name and settings of the other policy.
        trials: Number of trials; a campaign with features needs one.

    Returns:
        The estimate with its standard error, and the campaign's own mean reward per request.

    Raises:
        CannotAnswerError: The journal is too short, or its decisions differ too much from those of the policy.
    """
    config = Config.from_bytes(find_row(store, name).config)
    log = _log(store, name, config)
    try:
        if log.contexts is not None:
            return _after_learning(log, config, policy)
        found = evaluate(_without_added(log, config), from_spec(policy), _budget(log, config).tolist(), trials)
        return found, float(np.mean(log.reward))
    except CannotAnswerError as error:
        redrawn = _log(store, name, config, redrawn_propensities(store, name))
        try:
            found, own = _after_learning(redrawn, config, policy)
        except CannotAnswerError:
            raise error from None
        return found._replace(method=f"{found.method}, propensities by redraws"), own


def _budget(log: Log, config: Config) -> Floats:
    """(d,) the budgets for as many requests as the log has."""
    problem = config.problem()
    share = len(log) / problem.horizon if config.horizon is not None else 1.0
    return np.asarray(problem.budget) * min(share, 1.0)


def _after_learning(log: Log, config: Config, policy: dict[str, Any]) -> tuple[Evaluation, float]:
    """Let a policy learn from the first half of a log, and evaluate it on the second."""
    rows, budget = _without_added(log, config), _budget(log, config)
    if rows.contexts is None:
        rows = replace(rows, contexts=np.zeros((len(rows), 1)))  # a single context
    half = len(rows) // 2
    if half < MIN_SAMPLE_SIZE:
        raise CannotAnswerError(f"an answer needs {2 * MIN_SAMPLE_SIZE} outcomes, got {len(rows)}; wait for more.")
    first, second = rows.part(slice(None, half)), rows.part(slice(half, None))
    problem = Problem(
        horizon=len(second),
        arms=rows.arms,
        budget=dict(zip(rows.resources, (budget * len(second) / len(rows)).tolist(), strict=True)),
        cost_max=dict(zip(rows.resources, rows.cost_max, strict=True)),
        reward_max=rows.reward_max,
        features=config.problem().encoder or 0,
    )
    learner = from_spec(policy).start(problem, seed=config.seed, log=first)
    return evaluate_rule(second, learner, problem.budget), float(np.mean(second.reward))


def _log(store: Store, name: str, config: Config, redrawn: Mapping[int, float] | None = None) -> Log:
    """Return the journal as a log with all its arms; its maxima cover outcomes above those of the campaign."""
    text = as_csv(store, name, redrawn)
    rows = list(csv.DictReader(io.StringIO(text)))
    added = {row["arm"] for row in rows} - {"", *config.arms}
    maxima = zip(config.budget, config.problem().cost_max, strict=True)
    most = {f"cost_{resource}": amount for resource, amount in maxima}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"{name}.csv"
        file.write_text(text)
        found = read(
            file,
            arms=[*config.arms, *sorted(added)],
            reward_max=max([config.reward_max, *(float(row["reward"]) for row in rows)]),
            cost_max={column: max([least, *(float(row[column]) for row in rows)]) for column, least in most.items()},
        )
    if config.features is None:
        return found
    return replace(found, contexts=outcomes(store, name).contexts, features=config.problem().encoder)


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
