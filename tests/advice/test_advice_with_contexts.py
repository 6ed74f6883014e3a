"""Advice from logs with contexts: a contextual policy is recommended where contexts pay, and only there."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.core.errors import SettingError

ROWS = 2_000
BUDGET = 0.3 * ROWS
FEATURES = ds.Encoder(numbers=["size"], categories={"kind": ["chat", "code"]}, spare=0)
KINDS = [{"size": float(size), "kind": kind} for kind in ("chat", "code") for size in range(5)]


def log_of(gain: float, seed: int = 0) -> ds.logs.Log:
    """Two models: the large one is better by ``gain`` for code, and worse by as much for chat."""
    large = 0.5 + gain * np.repeat([-1.0, 1.0], 5)
    world = ds.ContextualInstance.by_table(
        KINDS,
        np.column_stack([np.full(10, 0.5), large]),
        np.broadcast_to([[0.5, 0.6]], (10, 1, 2)),
        BUDGET,
        horizon=ROWS,
        arm_names=["small", "large"],
        resource_names=["cost_usd"],
        features=FEATURES,
    )
    return ds.gather(world, seed=seed)


def advised(log: object, horizon: int | None = None) -> ds.Advice:
    budget = BUDGET * (1 if horizon is None else horizon / ROWS)
    return ds.advise(log, budget, horizon, plans=False, worlds=2, trials=2)


@functools.cache
def where_it_matters() -> ds.Advice:
    return advised(log_of(0.4))


def test_contexts_that_matter_are_used() -> None:
    advice = where_it_matters()
    assert advice.context is not None
    assert advice.context.worth is not None
    assert advice.context.worth.low > 0
    assert advice.policy == ds.LinearBwK()
    assert "The contexts (size and kind) are worth about" in advice.summary
    assert "Recommended policy: LinearBwK, which decides by them" in advice.summary
    assert advice.summary.count("Recommended policy") == 1


def test_the_recommended_policy_is_ready_to_use(tmp_path: Path) -> None:
    advice = where_it_matters()
    advice.save(tmp_path / "advice.learner")
    learner = ds.Learner.load(tmp_path / "advice.learner")
    assert learner.problem == advice.problem
    assert learner.problem.encoder == FEATURES
    decision = learner.ask(context={"size": 2, "kind": "code"})
    assert decision.name in ("small", "large")
    assert "learner.ask(context={'size': ..., 'kind': ...})" in advice.html().replace("&#x27;", "'")
    assert "best without contexts" in advice.html()
    found = json.loads(json.dumps(advice.to_dict()))["context"]
    assert found["pays"]
    assert found["policy"]["policy"] == "LinearBwK"


def test_contexts_that_are_noise_are_not_used() -> None:
    """Of six logs, two or more with an interval above 0 have a probability of 1%."""
    values = [log_of(0.0, seed).value_of_context(BUDGET) for seed in range(6)]
    assert sum(one.pays for one in values) <= 1
    advice = advised(log_of(0.0))
    assert advice.by_context is None
    assert advice.policy == advice.recommended.candidate.policy
    assert "do not pay as far as the log shows" in advice.summary
    assert advice.problem.features == 0
    assert "learner.ask()" in advice.html()


def test_a_horizon_too_short_to_learn_is_recognised() -> None:
    advice = advised(log_of(0.4), horizon=4)
    assert advice.context is not None
    assert advice.context.worth is not None
    assert advice.context.worth.pays
    assert advice.by_context is None
    assert "did not earn more than" in advice.summary


def test_a_plan_that_gains_more_by_its_timing_is_kept() -> None:
    found = where_it_matters().context
    assert found is not None
    assert found.needed == 1.0  # no plan took part
    assert not found._replace(needed=found.ratio).pays
    assert found._replace(needed=found.ratio - 0.01).pays


def test_the_command_uses_contexts(tmp_path: Path) -> None:
    log_of(0.4).write(tmp_path / "log.csv")
    options = ["--budget", str(BUDGET), "--worlds", "1", "--trials", "1", "--no-plans", "--json"]
    outputs = ["--out", str(tmp_path / "a.html"), "--learner", str(tmp_path / "a.learner")]
    result = CliRunner().invoke(app, ["advise", str(tmp_path / "log.csv"), *options, *outputs])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["context"]["pays"]
    assert ds.Learner.load(tmp_path / "a.learner").problem.encoder is not None


def test_without_propensities_it_says_why_contexts_are_not_used() -> None:
    advice = advised(dataclasses.replace(log_of(0.4), propensity=None))
    assert advice.by_context is None
    assert "cannot be estimated: the log has no column propensity" in advice.summary


def test_a_file_and_its_log_get_the_same_advice(tmp_path: Path) -> None:
    log_of(0.4).write(tmp_path / "log.csv")
    read = ds.logs.read(tmp_path / "log.csv", reward_max=1, cost_max=1)
    found = [
        ds.advise(tmp_path / "log.csv", BUDGET, reward_max=1, cost_max=1, plans=False, worlds=1, trials=1, shuffles=99),
        ds.advise(read, BUDGET, plans=False, worlds=1, trials=1, shuffles=99),
    ]
    assert found[0].summary == found[1].summary
    only = ds.Encoder(numbers=["size"])
    blind = ds.advise(tmp_path / "log.csv", BUDGET, features=only, plans=False, worlds=1, trials=1, shuffles=99)
    assert blind.context is not None
    assert blind.context.features == ("size",)
    assert not blind.context.pays
    with pytest.raises(SettingError, match="got features too"):
        ds.advise(read, BUDGET, features=only)
