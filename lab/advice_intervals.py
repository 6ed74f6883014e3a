"""How often the 95% intervals of ``driftsack advise`` and of the value of contexts hold the truth.

The optimum of the instance that a log was gathered from is known, so it can be compared with the interval that the log
gives. A value of contexts is compared with the mean of the estimates, because a plan that is made from a log earns less
than the optimum; where contexts say nothing, an interval above 0 is a false claim.
"""

from __future__ import annotations

from typing import Final

import numpy as np

import driftsack as ds
from driftsack.advice.advise import course_of
from driftsack.advice.budget_value import best_plan
from driftsack.advice.drift_detection import detect_drift
from driftsack.advice.fit import fitted_instance
from driftsack.advice.intervals import bootstrap_intervals
from driftsack.core.seeding import generator
from driftsack.logs.context_value import QUANTILE
from lab.speed.timing import Progress

ROUNDS: Final = 2_000
SHUFFLES: Final = 100
EFFECTS: Final = (0.0, 0.05, 0.2)  # of a feature on the reward of an arm; 0 where contexts say nothing
Row = dict[str, float | str]


def worlds() -> dict[str, ds.Instance]:
    """An instance without drift, one in which the best arm changes, and one in which the time to spend matters."""
    rewards, costs = [0.3, 0.5, 0.8], [[0.2, 0.4, 0.7], [0.6, 0.3, 0.5]]
    still = ds.Instance.stationary(rewards, costs, horizon=ROUNDS, budget=[0.4 * ROUNDS, 0.35 * ROUNDS])
    which = ds.instances.example_2(horizon=ROUNDS)
    return {"stationary": still, "which": which, "when": ds.instances.example_3(alpha=0.5, horizon=ROUNDS)}


def optimum_interval(world: ds.Instance, seed: int) -> tuple[float, float]:
    """The interval of the optimum of an instance, from a log of uniformly random arms."""
    summary = ds.logs.survey(ds.gather(world, seed=seed))
    drift = detect_drift(summary, shuffles=SHUFFLES, seed=seed)
    budget = list(world.problem.budget)
    course = course_of(summary, drift, 1, budget, world.horizon, seed)
    point = best_plan(fitted_instance(course.fit, summary, budget, world.horizon))
    return bootstrap_intervals(point, course, generator(seed), lambda instance: instance).best


def optimum_rows(logs: int, progress: Progress) -> list[Row]:
    """The share of intervals that hold the optimum, and how often it is below or above."""
    rows: list[Row] = []
    for name, world in worlds().items():
        truth, found = ds.benchmarks.lp_dynamic(world).value, []
        for seed in range(logs):
            progress(f"{name}, log {seed + 1} of {logs}")
            found.append(optimum_interval(world, seed))
        low, high = np.array(found).T
        rows.append(
            {
                "world": name,
                "logs": logs,
                "covered": float(((low <= truth) & (truth <= high)).mean()),
                "below": float((truth < low).mean()),
                "above": float((truth > high).mean()),
                "half width": float((high - low).mean() / 2 / truth),
            }
        )
    return rows


def contextual_world(effect: float) -> ds.ContextualInstance:
    """Six features, of which one has an effect on the rewards of two of three arms."""
    nothing, weights = np.zeros((3, 6)), np.zeros((3, 6))
    weights[[0, 2], 0] = effect, -effect
    return ds.ContextualInstance.linear(
        lambda rng, count: rng.standard_normal((count, 6)),
        np.column_stack([weights, [0.4, 0.5, 0.6]]),
        np.column_stack([nothing, [0.2, 0.4, 0.7]])[None],
        0.3 * ROUNDS,
        horizon=ROUNDS,
    )


def context_rows(logs: int, progress: Progress) -> list[Row]:
    """How often contexts are said to pay, and the spread of the estimates in units of their standard errors."""
    rows: list[Row] = []
    for effect in EFFECTS:
        world, found = contextual_world(effect), []
        for seed in range(logs):
            progress(f"contexts with an effect of {effect:g}, log {seed + 1} of {logs}")
            found.append(ds.gather(world, seed=seed).value_of_context(0.3 * ROUNDS))
        gains, errors = np.array([(one.gain, (one.high - one.low) / 2 / QUANTILE) for one in found]).T
        rows.append(
            {
                "effect": effect,
                "logs": logs,
                "pays": float(np.mean([one.pays for one in found])),
                "covered": float((np.abs(gains - gains.mean()) <= QUANTILE * errors).mean()),
                "spread / standard error": float(gains.std(ddof=1) / errors.mean()),
            }
        )
    return rows
