"""Records the learner files in ``tests/data``, which later releases of the same layout must read.

``python -m tests.support.kept_files`` writes them again; do so only when the layout of learner files has changed.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

import driftsack as ds
from driftsack.policies.learner.file import LAYOUT
from tests.support.paths import DATA

DIRECTORY: Final = DATA / f"learner-layout-{LAYOUT}"
NEXT: Final = 20  # rounds that are played after a file was read
AT: Final = 1_700_086_600.0  # of the first of them, in seconds

NAMED: Final = ds.Problem(horizon=200, arms=["a", "b", "c"], budget={"usd": 60, "seconds": 75}, cost_max=[1.0, 1.0])
WITH_FEATURES: Final = ds.Problem(horizon=200, arms=3, budget=[60, 75], cost_max=1.0, features=["x", "y"])
WITH_SEASONS: Final = ds.Problem(arms=3, budget=[60, 75], cost_max=1.0, period=timedelta(days=1))
LEARNERS: Final[dict[str, tuple[ds.Policy, ds.Problem]]] = {
    "sliding-window-ucb": (ds.SlidingWindowUCB(windows=(7, 11), scale=0.2), NAMED),
    "adaptive": (ds.Adaptive(), NAMED),
    "linear-bwk": (ds.LinearBwK(), WITH_FEATURES),
    "detect-and-restart": (ds.DetectAndRestart(ds.SlidingWindowUCB(windows=(9, 9), scale=0.1), change=0.2), NAMED),
    "master": (ds.policies.Master(constant=0.001, scale=0.1), NAMED),
    "seasons": (ds.Adaptive(), WITH_SEASONS),
}


def play(learner: ds.Learner, rounds: int, seed: int, at: float | None) -> list[int]:
    """Ask and tell; every seventh decision stays pending, and of every ninth only the costs are told."""
    rng, arms = np.random.default_rng(seed), []
    for k in range(rounds):
        context = rng.standard_normal(learner.problem.features) if learner.problem.features else None
        decision = learner.ask(
            context=context,
            at=None if at is None else at + 60.0 * k,
            must=k % 5 == 4,
            costs=listed(k) if learner.policy.known_costs and k % 2 else None,
        )
        arms.append(decision.arm)
        reward, costs = float(rng.random()), 0.6 * rng.random(2)
        if decision.skipped or k % 7 == 6:
            continue
        if k % 9 == 8:
            learner.tell(decision, costs=costs)
        else:
            learner.tell(decision, reward, costs)
    return arms


def listed(k: int) -> list[list[float]]:
    """The price list of a request: two costs of three arms."""
    return [[0.2 + 0.01 * (k % 10), 0.3, 0.4], [0.3, 0.3, 0.2]]


def continued(learner: ds.Learner) -> dict[str, Any]:
    """What a learner does next."""
    for decision in (*learner.pending, *learner.forfeited):
        learner.cancel(decision)
    at = None if learner.problem.period is None else AT
    return {"arms": play(learner, NEXT, 1, at), "remaining": learner.remaining.tolist()}


def record(name: str, directory: Path) -> dict[str, Any]:
    """Write the file of one learner; return what a reader must find."""
    policy, problem = LEARNERS[name]
    learner = policy.start(problem, seed=0, safe=True)
    at = None if problem.period is None else AT - 86_400.0
    play(learner, 40, 0, at)
    if problem.period is not None:
        learner.renew(problem.budget, at=AT - 200.0, rollover=0.5)
        play(learner, 2, 2, AT - 150.0)
    learner.forfeit(learner.pending[0])
    learner.save(directory / f"{name}.npz")
    found = {
        "round": learner.round,
        "pending": len(learner.pending),
        "forfeited": len(learner.forfeited),
        "state_hash": learner.state_hash(),
    }
    return found | continued(ds.Learner.load(directory / f"{name}.npz", read_only=True))


def main() -> None:
    """Record every file."""
    DIRECTORY.mkdir(exist_ok=True)
    expected = {name: record(name, DIRECTORY) for name in LEARNERS}
    (DIRECTORY / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
