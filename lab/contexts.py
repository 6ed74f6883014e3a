"""Bars for policies with contexts on simulated problems, measured beside trivial competitors.

The seed chooses the set of problems: 0 and 1 for development, 2 for tests, 3 and above for a final look. No two sets
share a problem. Each row has a figure, its measured value, its bar and whether the bar holds; a competitor must miss
the bar of the row above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.benchmarks import lp_contextual
from driftsack.core.arrays import Floats
from driftsack.core.contextual import ContextualInstance
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.core.statistics import standard_error, standard_errors
from driftsack.instances.contextual import linear_contexts, segments
from driftsack.policies import Adaptive, DisjointBwK, LinearBwK, PerSegment, Policy
from driftsack.simulation import simulate
from lab.speed.context_speed import speed_rows
from lab.speed.ridge_rounds import ridge_rows
from lab.speed.timing import Progress

SET_SIZE: Final = 1_000  # seeds of a set
FORGETTING: Final = (1.0, 0.99, 0.98, 0.97, 0.95, 0.9, 0.85)
FEATURES: Final = 8
CATEGORIES: Final = 40  # of a worthless context
TIGHT: Final = 1e-6  # gap of the optimum
LEAST_SHARE: Final = 0.995  # of the reward without a context
Row = dict[str, Any]


class Size(NamedTuple):
    """The amount of simulation."""

    worlds: int
    trials: int
    horizon: int  # except for the exponent of the regret
    longest: int  # horizon for the exponent
    horizons: int  # number of horizons from 10^4 on


Part = Callable[[Size, int, Progress], list[Row]]
WHOLE: Final = Size(worlds=24, trials=8, horizon=10_000, longest=1_000_000, horizons=5)
QUICK: Final = Size(worlds=6, trials=2, horizon=10_000, longest=100_000, horizons=3)


def bar_row(figure: str, seen: float, bar: float, at_least: bool = True, error: float | None = None) -> Row:
    """Return the row of a figure that must reach a bar.

    >>> bar_row("share", 0.97, 0.96)["holds"]
    'yes'
    """
    holds = seen >= bar if at_least else seen <= bar
    sign = "≥" if at_least else "≤"
    return {"figure": figure, "seen": seen, "± se": error, "bar": f"{sign} {bar:g}", "holds": "yes" if holds else "no"}


def rejected_row(figure: str, seen: float, bar: float, at_least: bool = True) -> Row:
    """Return the row of a competitor, which must miss the bar."""
    row = bar_row(figure, seen, bar, at_least)
    return {**row, "bar": f"misses {row['bar']}", "holds": "yes" if row["holds"] == "no" else "no"}


def context_rows(quick: bool, seed: int, progress: Progress) -> list[Row]:
    """Measure every figure of the policies with contexts, and of their competitors.

    Args:
        quick: Whether to simulate fewer and shorter problems, which gives rough figures.
        seed: The set of problems.
        progress: Called with the current measurement.
    """
    size = QUICK if quick else WHOLE
    parts: tuple[Part, ...] = (exponent_rows, hindsight_rows, segment_rows, useless_rows)
    rows = [row for part in parts for row in part(size, seed * SET_SIZE, progress)]
    for figure, seen, bar, competitor in [*speed_rows(quick, progress), *ridge_rows(quick, progress)]:
        rows.append((rejected_row if competitor else bar_row)(figure, seen, bar, at_least=False))
    return rows


def exponent_rows(size: Size, first: int, progress: Progress) -> list[Row]:
    """Fit the exponent of the regret on stationary problems."""
    horizons = np.geomspace(10_000, size.longest, size.horizons).round().astype(int).tolist()
    count = max(size.worlds // 4, 3)
    found = {}
    policies: dict[str, Policy] = {
        "LinearBwK()": LinearBwK(),
        "LinearBwK(forgetting=1)": LinearBwK(forgetting=1.0),
        "Adaptive(), which sees no context": Adaptive(),
    }
    for name, policy in policies.items():
        regret = np.zeros((count, len(horizons)))
        for column, horizon in enumerate(horizons):
            progress(f"regret of {name} in {horizon:,} rounds")
            for k in range(count):
                world = linear_contexts(horizon=horizon, seed=first + k)
                regret[k, column] = simulate(world, policy, trials=2, seed=first, threads=1).regret(_best(world)).mean()
        found[name] = _slope(horizons, regret)
    (name, ours), (still, without), (blind, rejected) = found.items()
    return [
        bar_row(f"regret exponent, {name}", ours[0], 0.65, at_least=False, error=ours[1]),
        rejected_row(f"regret exponent, {blind}", rejected[0], 0.65, at_least=False),
        bar_row(f"regret exponent, {still}", without[0], 0.55, at_least=False, error=without[1]),
        rejected_row(f"regret exponent, {blind}", rejected[0], 0.55, at_least=False),
    ]


def _slope(horizons: Sequence[int], regret: Floats) -> tuple[float, float]:
    """The exponent of the mean regret over problems (rows), and its jackknife standard error."""
    logs, count = np.log(np.array(horizons, dtype=np.float64)), len(regret)

    def fitted(rows: Floats) -> float:
        return float(np.polyfit(logs, np.log(np.maximum(rows.mean(axis=0), 1.0)), 1)[0])

    left_out = np.array([fitted(np.delete(regret, k, axis=0)) for k in range(count)])
    return fitted(regret), float(math.sqrt((count - 1) * left_out.var()))


def _best(world: ContextualInstance) -> float:
    return lp_contextual(world, tolerance=TIGHT).value


def shares(worlds: Sequence[ContextualInstance], policy: Policy, trials: int) -> Floats:
    """(worlds,) the shares of the optimum that a policy earns."""
    return np.array([mean_reward(world, policy, trials, 0) / _best(world) for world in worlds])


def mean_reward(world: Instance | ContextualInstance, policy: Policy, trials: int, seed: int) -> float:
    """The mean reward of some trials."""
    return float(simulate(world, policy, trials=trials, seed=seed, threads=1).reward.mean())


def hindsight_rows(size: Size, first: int, progress: Progress) -> list[Row]:
    """Compare the adaptive default with the fixed forgetting that is best in hindsight for a kind of drift."""
    rows = []
    for drift in ("jump", "drift"):
        worlds = [linear_contexts(size.horizon, drift=drift, seed=first + 100 + k) for k in range(size.worlds)]
        told = {}
        for gamma in FORGETTING:
            progress(f"{drift}: forgetting {gamma:g}")
            told[gamma] = shares(worlds, LinearBwK(forgetting=gamma), size.trials)
        gamma = max(FORGETTING, key=lambda one: told[one].mean())
        best = told[gamma]
        progress(f"{drift}: the default")
        ours = shares(worlds, LinearBwK(), size.trials)
        figure = f"{drift}: share of the best forgetting in hindsight ({gamma:g})"
        error = standard_error(ours - best * (ours.mean() / best.mean())) / best.mean()
        rows.append(bar_row(figure, ours.mean() / best.mean(), 0.96, error=float(error)))
        if drift == "jump":
            rows.append(rejected_row(f"{drift}: the same, never forgetting", told[1.0].mean() / best.mean(), 0.96))
        blind = shares(worlds, Adaptive(), size.trials)
        rows.append(rejected_row(f"{drift}: the same, Adaptive() without contexts", blind.mean() / best.mean(), 0.96))
    return rows


def segment_rows(size: Size, first: int, progress: Progress) -> list[Row]:
    """Compare DisjointBwK with one Adaptive per segment that is given the best split of the budget."""
    rows = []
    for jump, bar in ((False, 1.0), (True, 1.02)):
        kind = "8 segments with a jump" if jump else "8 segments"
        worlds = [segments(size.horizon, jump=jump, seed=first + 300 + k) for k in range(size.worlds)]
        ours, split, blind = np.zeros((3, size.worlds))
        for k, world in enumerate(worlds):
            progress(f"{kind}: world {k + 1} of {size.worlds}")
            ours[k] = mean_reward(world, DisjointBwK(), size.trials, first)
            blind[k] = mean_reward(world, Adaptive(), size.trials, first)
            split[k] = split_reward(world, size.trials, first)
        ratio, error = ours.mean() / split.mean(), standard_error(ours - split * (ours.mean() / split.mean()))
        rows.append(bar_row(f"{kind}: DisjointBwK() over Adaptive per segment", ratio, bar, error=error / split.mean()))
        rows.append(rejected_row(f"{kind}: Adaptive without contexts over the same", blind.mean() / split.mean(), bar))
    return rows


def split_reward(world: ContextualInstance, trials: int, seed: int) -> float:
    """The total reward of one Adaptive per segment, each with the budget that the best plan spends there."""
    phase, context, rounds = world.pairs()
    plan = np.asarray(lp_contextual(world, tolerance=TIGHT).plan) * rounds[:, None]
    total = 0.0
    for segment in range(len(world.contexts)):
        own = context == segment
        lengths = np.diff(np.round(np.concatenate([[0.0], np.cumsum(rounds[own])]))).astype(int)
        spent = float(np.einsum("rji,ri->", world.costs[phase[own], segment], plan[own]))
        if lengths.sum() == 0 or spent <= 0.0:
            continue  # the best plan skips this segment
        part = Instance.piecewise(
            rewards=world.rewards[phase[own], segment],
            costs=world.costs[phase[own], segment],
            lengths=lengths.tolist(),
            budget=spent,
        )
        total += mean_reward(part, Adaptive(), trials, seed)
    return total


def useless_rows(size: Size, first: int, progress: Progress) -> list[Row]:
    """Compare LinearBwK with worthless, noisy or duplicated contexts with itself without them."""
    ratios = np.zeros((size.worlds, 4))  # worthless, split, noisy, duplicated
    for k in range(size.worlds):
        progress(f"useless contexts: world {k + 1} of {size.worlds}")
        rng = generator(first + 500 + k)
        world = linear_contexts(size.horizon, features=FEATURES, seed=first + 500 + k)
        shape = world.contexts.shape
        # Pairs of a world that shows something useless and the same world that does not.
        even = _without_effect(world)
        category = np.eye(CATEGORIES)[rng.integers(0, CATEGORIES, shape[0])]
        earned = {
            name: mean_reward(one, policy, size.trials, first)
            for name, one, policy in (
                ("none", _showing(even, np.zeros((shape[0], 1))), LinearBwK()),
                ("worthless", _showing(even, rng.standard_normal(shape)), LinearBwK()),
                ("split", _showing(even, category), PerSegment()),
                ("hidden", _showing(world, np.zeros((shape[0], 1))), LinearBwK()),
                ("noisy", _showing(world, world.contexts + 3.0 * rng.standard_normal(shape)), LinearBwK()),
                ("once", world, LinearBwK()),
                ("twice", _showing(world, np.tile(world.contexts, 2)), LinearBwK()),
            )
        }
        ratios[k] = [
            earned["worthless"] / earned["none"],
            earned["split"] / earned["none"],
            earned["noisy"] / earned["hidden"],
            earned["twice"] / earned["once"],
        ]
    (worthless, split, noisy, duplicated), errors = ratios.mean(axis=0).tolist(), standard_errors(ratios).tolist()
    return [
        bar_row("worthless context: reward over that without it", worthless, LEAST_SHARE, error=errors[0]),
        rejected_row("worthless context: PerSegment() by it over LinearBwK() without", split, LEAST_SHARE),
        bar_row("noisy context: reward over that without it", noisy, LEAST_SHARE, error=errors[2]),
        bar_row("duplicated context: reward over that with it once", duplicated, LEAST_SHARE, error=errors[3]),
    ]


def _means(world: ContextualInstance) -> tuple[Floats, Floats]:
    """(1, N, m) and (1, N, d, m) the means at every context of a stationary problem."""
    contexts = np.arange(len(world.contexts))
    rewards, costs = world.means_at(np.zeros_like(contexts), contexts)
    return rewards[None], costs[None]


def _showing(world: ContextualInstance, contexts: Floats) -> ContextualInstance:
    """Return the same means with other contexts."""
    rewards, costs = _means(world)
    return ContextualInstance.by_table(contexts, rewards, costs, world.problem.budget, horizon=world.horizon)


def _without_effect(world: ContextualInstance) -> ContextualInstance:
    """Replace the means of every context by their averages."""
    rewards, costs = (np.broadcast_to(part.mean(axis=1, keepdims=True), part.shape) for part in _means(world))
    return ContextualInstance.by_table(world.contexts, rewards, costs, world.problem.budget, horizon=world.horizon)
