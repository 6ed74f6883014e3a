"""Digests of results, to show that a change of the code does not change a bit of the results.

``tests/data/digests.json`` holds the digests recorded before the rules of the game moved into the package ``game``.
``python -m tests.digests`` prints the current digests; update the file only if results are meant to change.
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
from driftsack.sweeps.league import league_spec
from tests.late import give_feedback

RECORDED = Path(__file__).parent / "data" / "digests.json"
HORIZON, TRIALS, SEEDS = 1_000, 2, (0, 1, 2)
ROUNDS = 150


@cache
def league() -> tuple[dict[str, NamedInstance], dict[str, Any]]:
    """The league's worlds and policies by name."""
    spec = league_spec(trials=TRIALS, horizon=HORIZON, seed=0)
    return {part.label: NamedInstance(part) for part in spec.instances}, {part.label: part for part in spec.policies}


def short(digest: Any) -> str:
    """The first 64 bits of a digest, in hexadecimal."""
    return str(digest.hexdigest()[:16])


def simulated(policy: str) -> dict[str, str]:
    """A digest for each world of the league, of every array of the runs with each seed."""
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
            for part in (run.reward, run.stopping_time, run.spent, run.overshoot, run.pulls, run.curve, run.fallbacks):
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
    """The facts about a made-up problem in natural units that a policy of the league may be given."""

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
    with tempfile.TemporaryDirectory() as folder:
        command = ["reproduce", "--trials", str(trials), "--horizon", str(horizon), "--out", folder, "--json"]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        if result.exit_code != 0:
            raise RuntimeError(result.output)
        return short(hashlib.sha256(Path(folder, "table.csv").read_bytes()))


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
