"""Digests of results, to show that a change of the code does not change a bit of the results.

``tests/data/digests.json`` holds the digests recorded before the rules of the game moved into the package ``game``, and
again when amounts became exact: rewards, pulls and stopping times stayed the same, and of ``spent``, ``overshoot`` and
remaining budgets the last digits changed. The paper's table is that of the held-out seed, the default since then.
``python -m tests.support.digests`` prints the current digests; update the file only if results are meant to change.

The transcripts of Thompson sampling were recorded again when mixes became distributions: every arm and price stayed the
same, and two probabilities of 1.0000000000000009 became 1.

The tables of ``reproduce`` were recorded again when their column ``fallbacks`` became ``lp_rescues``: with the old name
in the first line, both tables have the digests that were recorded before.

The worlds and entries are those of the league when the digests were recorded. They are kept here, so that the league
may change.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.policies import from_spec
from driftsack.sweeps.cells import NamedInstance
from driftsack.sweeps.spec import make_spec
from tests.support.delayed_feedback import give_feedback
from tests.support.paths import DATA

RECORDED = DATA / "digests.json"
HORIZON, TRIALS, SEEDS = 1_000, 2, (0, 1, 2)
ROUNDS = 150
WORLDS: tuple[dict[str, Any], ...] = (
    {"name": "Example 1", "instance": "example_1"},
    {"name": "Example 2", "instance": "example_2"},
    {"name": "Example 3, α = 1/2", "instance": "example_3", "alpha": 0.5},
    {"name": "Example 4, 10 periods", "instance": "example_4", "periods": 10},
    {"name": "stationary", "instance": "piecewise_random", "changes": 0},
    {"name": "piecewise, 4 changes", "instance": "piecewise_random", "changes": 4},
    {"name": "piecewise, 20 changes", "instance": "piecewise_random", "changes": 20},
    {"name": "sinusoidal", "instance": "sinusoidal"},
    {"name": "random walk", "instance": "random_walk"},
    {"name": "linear trend", "instance": "linear_trend"},
    {"name": "bursts", "instance": "bursts"},
    {
        "name": "trap, then better",
        "instance": "budget_trap",
        "better": True,
        "w1": 0.05 * HORIZON,
        "w2": 0.05 * HORIZON,
    },
    {
        "name": "trap, then worse",
        "instance": "budget_trap",
        "better": False,
        "w1": 0.05 * HORIZON,
        "w2": 0.05 * HORIZON,
    },
    {"name": "rewards switch", "instance": "reward_switching", "arms": 3},
    {"name": "costs switch", "instance": "cost_switching", "arms": 3},
    {"name": "adversarial, best last", "instance": "adversarial_order"},
    {"name": "adversarial, best first", "instance": "adversarial_order", "best_last": False},
)
PACED_UCB = {"policy": "NaiveUCB", "scale": 0.1, "budget_rule": "remaining"}
ENTRIES: tuple[dict[str, Any], ...] = (
    {"name": "SW-UCB", "policy": "SlidingWindowUCB", "variation": "measured:variation"},
    {
        "name": "SW-UCB, scale 0.1, remaining",
        "policy": "SlidingWindowUCB",
        "variation": "measured:variation",
        "scale": 0.1,
        "budget_rule": "remaining",
    },
    {"name": "naive UCB", "policy": "NaiveUCB"},
    {"name": "naive UCB, scale 0.1, remaining", **PACED_UCB},
    {"name": "LagrangeBwK, OPT_FD known", "policy": "LagrangeBwK", "benchmark": "measured:opt_fd"},
    {"name": "Thompson, remaining", "policy": "ThompsonBwK", "budget_rule": "remaining"},
    {"name": "Thompson, window 1,000, remaining", "policy": "ThompsonBwK", "windows": 1000, "budget_rule": "remaining"},
    {"name": "GLR restarts, remaining", "policy": "DetectAndRestart", "base": PACED_UCB},
    {"name": "CUSUM restarts, remaining", "policy": "DetectAndRestart", "base": PACED_UCB, "detector": "cusum"},
    {"name": "bandit over bandit, remaining", "policy": "BanditOverBandit", "budget_rule": "remaining"},
    {
        "name": "plan, told ten periods' means",
        "policy": "PlanWithForecast",
        "forecast": "measured:forecast",
        "trust": 0.9,
    },
    {
        "name": "naive UCB paced by that plan",
        "policy": "SpendingPlan",
        "base": {"policy": "NaiveUCB", "scale": 0.1},
        "curve": "measured:spending",
    },
    *(
        {"name": name, "policy": name}
        for name in (
            "AlwaysArm",
            "DynamicOracle",
            "StaticOracle",
            "DiscountedUCB",
            "DualDescent",
            "Exp3BwK",
            "Master",
            "PrimalDualBwK",
            "UCBBwK",
            "UniformRandom",
        )
    ),
)


@cache
def league() -> tuple[dict[str, NamedInstance], dict[str, Any]]:
    """The worlds and policies by name."""
    worlds = [{**world, "horizon": HORIZON} for world in WORLDS]
    spec = make_spec({"instances": worlds, "policies": list(ENTRIES), "trials": TRIALS, "seeds": [0]})
    return {part.label: NamedInstance(part) for part in spec.instances}, {part.label: part for part in spec.policies}


def short(digest: Any) -> str:
    """The first 64 bits of a digest, in hexadecimal."""
    return str(digest.hexdigest()[:16])


def simulated(policy: str) -> dict[str, str]:
    """A digest for each world, of every array of the runs with each seed."""
    worlds, entries = league()
    digests = {}
    for name, world in worlds.items():
        digest = hashlib.sha256()
        settings = entries[policy].resolve(world.measured)
        for seed in SEEDS:
            try:
                run = ds.simulate(world.instance, from_spec(settings), trials=TRIALS, seed=seed, threads=1)
            except ds.DriftsackError as error:
                digest.update(type(error).__name__.encode())
                continue
            for part in (run.reward, run.stopping_time, run.spent, run.overshoot, run.pulls, run.curve, run.lp_rescues):
                digest.update(np.ascontiguousarray(part).tobytes())
        digests[name] = short(digest)
    return digests


def transcript(policy: str, safe: bool) -> str:
    """A digest of a learner's decisions when feedback arrives late, out of order, or never."""
    _, entries = league()
    facts = KnownFacts()
    problem = facts.problem
    settings = from_spec(entries[policy].resolve(facts))
    if isinstance(settings, ds.policies.Exp3BwK):
        problem = ds.Problem(problem.horizon, problem.arms, problem.budget[0], problem.reward_max, problem.cost_max[0])
    digest = hashlib.sha256()
    try:
        learner = settings.start(problem, seed=7, safe=safe)
    except ds.DriftsackError as error:  # an oracle cannot be started on a problem
        return type(error).__name__
    rng = np.random.default_rng(1)
    while not learner.done:
        decision = learner.ask()
        digest.update(np.array([decision.round, decision.arm], dtype=np.int64).tobytes())
        digest.update(decision.mix.tobytes() + decision.prices.tobytes())
        give_feedback(learner, rng)
        digest.update(learner.remaining.tobytes())
    return short(digest)


class KnownFacts(dict[str, Any]):
    """The facts about a made-up problem in natural units that a policy may be given."""

    problem = ds.Problem(horizon=ROUNDS, arms=4, budget=[120.0, 30.0], reward_max=9.0, cost_max=[3.0, 0.5])

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        rewards, costs = 9.0 * rng.random((2, 4)), rng.random((2, 2, 4)) * np.array([3.0, 0.5])[:, None]
        phase = np.arange(ROUNDS, dtype=np.int32) // (ROUNDS // 2)
        world = ds.Instance(self.problem, rewards, costs, phase)
        super().__init__(
            variation=(0.5, 1.0),
            opt_fd=400.0,
            lp_dynamic=500.0,
            forecast=world.to_dict(),
            spending=(0.0, 0.3, 1.0),
        )


def reproduced(trials: int, horizon: int) -> str:
    """A digest of the ``table.csv`` that ``driftsack reproduce`` writes."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["reproduce", "--trials", str(trials), "--horizon", str(horizon), "--out", directory, "--json"]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        if result.exit_code != 0:
            raise RuntimeError(result.output)
        return short(hashlib.sha256(Path(directory, "table.csv").read_bytes()))


def everything() -> dict[str, Any]:
    """All digests, as the file holds them."""
    _, entries = league()
    return {
        "simulated": {policy: simulated(policy) for policy in entries},
        "transcripts": {
            policy: {kind: transcript(policy, safe) for kind, safe in (("paper", False), ("safe", True))}
            for policy in entries
        },
        "reproduced": {
            "2 trials of 400 rounds": reproduced(2, 400),
            "100 trials of 10,000 rounds": reproduced(100, 10_000),
        },
    }


if __name__ == "__main__":
    json.dump(everything(), sys.stdout, indent=1, ensure_ascii=False)
