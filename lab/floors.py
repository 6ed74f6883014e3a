"""How well ``Adaptive`` keeps a floor, and at which cost, on fresh environments of all families.

The floor of an environment is drawn between the mean reward of uniform choice and that of its best arm, and one cost is
minimised without a budget. A *violation* is the distance to the floor in points, hundredths of ``reward_max``. The cost
is divided by that of LP-Dynamic, which knows every mean beforehand. Two policies are compared by their *loss*, the cost
and what is missing of the floor at LP-Dynamic's price of it.

The rule by hand mixes the arm that looks cheapest with the one that looks best, by a PI controller on the mean reward.
The planted competitor ignores the floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.policies import Adaptive
from driftsack.simulation import simulate
from driftsack.sweeps.held_out import held_out_worlds

FIRST_FINAL_SEED: Final = 1000
BETWEEN: Final = (0.1, 0.9)  # of the way from uniform choice to the best arm
MOST_MISSED: Final = 0.5  # points, on average
MOST_MISSED_MOSTLY: Final = 2.0  # points, in 95% of the environments
MOST_COST: Final = 1.06  # of LP-Dynamic
LEAST_AHEAD: Final = 0.8  # of the environments
TITLE: Final = "Floors"
VIOLATION: Final = "violation, mean points"
ADAPTIVE, EVEN, BY_HAND, PLANTED = "Adaptive", "Adaptive, even pace", "PI controller", "planted: cheapest arm"
PROPORTIONAL, INTEGRAL, LARGEST_SUM = 2.0, 0.01, 0.6  # of the controller
EXPLORED: Final = 0.05  # of its choices
MEMORY, ARM_MEMORY = 0.01, 0.02  # of its moving averages: of all rewards, and of each arm
Row = dict[str, Any]


class FloorWorld(NamedTuple):
    """An environment with a floor, and what LP-Dynamic costs on it."""

    instance: Instance
    cost: float
    price: float  # of one more unit of reward


class Played(NamedTuple):
    """The result of a policy on one environment."""

    missed: float  # points
    cost: float  # in units of LP-Dynamic's
    loss: float


class PiController:
    """A rule by hand: the share of the dear arm follows the mean reward of about the latest 100 answers.

    Args:
        steers: Whether it follows; otherwise it takes the arm that looks cheapest, whatever it earns.
    """

    def __init__(self, steers: bool = True) -> None:
        self.steers = steers

    def start(self, problem: Problem, seed: SeedSequence) -> PiLearner:
        """Begin without estimates."""
        return PiLearner(problem, np.random.default_rng(seed), self.steers)


class PiLearner:
    """The state of a :class:`PiController`."""

    def __init__(self, problem: Problem, rng: np.random.Generator, steers: bool) -> None:
        self.rng, self.steers = rng, steers
        self.floor, self.resource = problem.floor[0][1], problem.minimised
        self.rewards, self.costs = np.full((2, problem.arms), np.nan)
        self.mean, self.sum = self.floor, 0.0

    def ask(self) -> int:
        """Return each arm once; then the best one with the controlled probability, otherwise the cheapest."""
        unknown = np.flatnonzero(np.isnan(self.rewards))
        if unknown.size:
            return int(unknown[0])
        if self.rng.random() < EXPLORED:
            return int(self.rng.integers(self.rewards.size))
        dear = 0.5 + PROPORTIONAL * (self.floor - self.mean) + self.sum if self.steers else 0.0
        return int(self.rewards.argmax() if self.rng.random() < dear else self.costs.argmin())

    def tell(self, decision: int, reward: float, costs: Floats) -> None:
        """Update the moving averages and the integral."""
        cost = float(costs[self.resource])
        if np.isnan(self.rewards[decision]):
            self.rewards[decision], self.costs[decision] = reward, cost
        self.rewards[decision] += ARM_MEMORY * (reward - self.rewards[decision])
        self.costs[decision] += ARM_MEMORY * (cost - self.costs[decision])
        self.mean += MEMORY * (reward - self.mean)
        self.sum = min(max(self.sum + INTEGRAL * (self.floor - self.mean), -LARGEST_SUM), LARGEST_SUM)


PLAYERS: Final[dict[str, Any]] = {
    ADAPTIVE: Adaptive(),
    EVEN: Adaptive(pacing="remaining"),
    BY_HAND: PiController(),
    PLANTED: PiController(steers=False),
}


def floor_worlds(seed: int, per_family: int, horizon: int) -> Iterator[FloorWorld]:
    """Fresh environments of all families, with a floor that is drawn for each."""
    drawn = generator(seed)
    for worlds in held_out_worlds(seed, per_family, horizon, resources=1).values():
        for world in (one.build() for one in worlds):
            means = world.rounds @ world.rewards / world.horizon
            floor = float(means.mean() + drawn.uniform(*BETWEEN) * (means.max() - means.mean()))
            instance = world.with_floor(floor)
            best = lp_dynamic(instance)
            yield FloorWorld(instance, best.value, float(np.asarray(best.floor_prices)[0]))


def play(world: FloorWorld, player: Any, trials: int) -> Played:
    """Play one environment."""
    run = simulate(world.instance, player, trials=trials, seed=0)
    missed, cost = run.floor_violation.mean(), float(run.spent[:, 0].mean())
    loss = cost + world.price * float(missed) * world.instance.horizon
    return Played(100.0 * float(missed) / world.instance.problem.reward_max, cost / max(world.cost, 1e-12), loss)


def floor_rows(seed: int, per_family: int, horizon: int, trials: int, progress: Callable[[str], None]) -> list[Row]:
    """One row for each figure and its bar."""
    played: dict[str, list[Played]] = {name: [] for name in PLAYERS}
    for k, world in enumerate(floor_worlds(seed, per_family, horizon)):
        progress(f"environment {k + 1}")
        for name, player in PLAYERS.items():
            played[name].append(play(world, player, trials if isinstance(player, Adaptive) else 1))
    rows = []
    for name, results in played.items():
        missed, cost, loss = (np.array(column) for column in zip(*results, strict=True))
        rows += [
            figure(f"{name}: {VIOLATION}", float(missed.mean()), f"≤ {MOST_MISSED:g}", MOST_MISSED),
            figure(
                f"{name}: violation, 95% quantile",
                float(np.quantile(missed, 0.95)),
                f"≤ {MOST_MISSED_MOSTLY:g}",
                MOST_MISSED_MOSTLY,
            ),
            figure(f"{name}: cost in that of LP-Dynamic", float(cost.mean()), f"≤ {MOST_COST:g}", MOST_COST),
        ]
        if name in (EVEN, BY_HAND):
            ahead = float((loss > [one.loss for one in played[ADAPTIVE]]).mean())
            rows.append(
                {
                    "figure": f"{name}: share of environments in which its loss is larger than Adaptive's",
                    "seen": round(ahead, 3),
                    "bar": f"≥ {LEAST_AHEAD:g}",
                    "holds": "yes" if ahead >= LEAST_AHEAD else "no",
                }
            )
    return rows


def figure(name: str, seen: float, bar: str, most: float) -> Row:
    """A row with an upper bar.

    >>> figure("cost", 1.2, "≤ 1.06", 1.06)["holds"]
    'no'
    """
    return {"figure": name, "seen": round(seen, 3), "bar": bar, "holds": "yes" if seen <= most else "no"}
