"""The time of a round with contexts, simulated and from Python, beside ParetoBandit."""

from __future__ import annotations

import importlib.util
import time
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.contextual import ContextualInstance
from driftsack.core.seeding import generator
from driftsack.instances.contextual import linear_contexts
from driftsack.paper.speed import round_seconds
from driftsack.policies import LinearBwK
from lab.routing.routers import MODELS, PHASES, Requests, Task, learner_entrant, pareto_entrant
from lab.speed.timing import Progress, median_ratio

FEATURES: Final = 25
ASKED: Final = 300  # rounds from Python


class SpeedRow(NamedTuple):
    """A figure that must be at most its bar; that of a competitor must be above it."""

    figure: str
    seen: float
    bar: float
    competitor: bool = False


def speed_rows(quick: bool, progress: Progress) -> list[SpeedRow]:
    """Measure a compiled round, and a decision from Python beside ParetoBandit if that is installed."""
    horizon, repeats = (5_000, 3) if quick else (20_000, 25)
    world = linear_contexts(horizon, arms=5, resources=2, features=32)
    times: dict[str, list[float]] = {"with the bank": [], "with one model": []}
    for k in range(repeats + 1):
        progress(f"a simulated round with 32 features, {k} of {repeats}")
        times["with the bank"].append(round_seconds(world, LinearBwK(), trials=1))
        times["with one model"].append(round_seconds(world, LinearBwK(forgetting=1.0), trials=1))
    bars = {"with the bank": 6.0, "with one model": 3.0}
    rows = [SpeedRow(f"µs of a simulated round {name}", 1e6 * min(times[name][1:]), bars[name]) for name in times]
    progress("the same from Python")
    rows.append(SpeedRow("µs of a round with the bank that is asked and told", 1e6 * _asked(world), 6.0, True))
    if importlib.util.find_spec("pareto_bandit") is None:
        progress("ask + tell beside ParetoBandit: left out, since paretobandit is not installed")
        return rows
    return [*rows, SpeedRow("ask + tell over a decision of ParetoBandit", _beside_pareto(quick, progress), 0.4)]


def _asked(world: ContextualInstance) -> float:
    """The minimum time of a few hundred rounds of ask and tell from Python, in seconds."""
    learner, times = LinearBwK().start(world.problem), []
    for context in world.contexts[np.arange(ASKED) % len(world.contexts)]:
        begin = time.perf_counter()
        decision = learner.ask(context=context)
        if not decision.skipped:
            learner.tell(decision, 0.5, [0.5, 0.5])
        times.append(time.perf_counter() - begin)
    return min(times)


def _beside_pareto(quick: bool, progress: Progress) -> float:
    """The ratio of the times of a decision, on random requests."""
    count, repeats = (300, 3) if quick else (1_000, 9)
    rng = generator(0)
    rewards, dollars = rng.random((count, len(MODELS))), 1e-3 * rng.random((count, len(MODELS)))
    requests = Requests(rng.standard_normal((count, FEATURES)), np.ones((count, 1)), rewards, dollars)
    phases = np.stack([rewards] * PHASES), np.stack([dollars] * PHASES)
    task = Task(requests, np.arange(count), *phases, 5e-4, "none", 0, None)
    ours, theirs = [], []
    for k in range(repeats + 1):
        progress(f"ask + tell beside ParetoBandit, {k} of {repeats}")
        ours.append(learner_entrant(LinearBwK()).route(task).seconds)
        theirs.append(pareto_entrant(0.01).route(task).seconds)
    return median_ratio(ours[1:], theirs[1:])
