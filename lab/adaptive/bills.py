"""One absurd bill: how many of the next requests are skipped because of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.policies import Adaptive

HORIZON: Final = 200_000
RATE: Final = 6e-4  # dollars per request
MEANS: Final = np.array([4e-4, 5e-4, 6e-4])
CHANCES: Final = np.array([0.5, 0.6, 0.7])
MULTIPLES: Final = (10.0, 100.0, 1_000.0)
ROUNDS: Final = (1, 30, 1_000)
AFTER: Final = 500  # requests that are watched


class BilledPlayer(Protocol):
    """Chooses an arm, or None to skip, and learns."""

    def ask(self) -> int | None: ...

    def tell(self, reward: float, cost: float) -> None: ...


class OfAdaptive:
    """``Adaptive`` through the public interface."""

    def __init__(self, seed: int) -> None:
        problem = Problem(HORIZON, len(MEANS), [RATE * HORIZON], cost_max=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cost_max is far above the usual bill
            self._learner = Adaptive().start(problem, seed=seed)
        self._decision: Any = None

    def ask(self) -> int | None:
        self._decision = self._learner.ask()
        return None if self._decision.skipped else int(self._decision.arm)

    def tell(self, reward: float, cost: float) -> None:
        self._learner.tell(self._decision, reward, [cost])


class OnSchedule:
    """Planted: any arm, as long as the spending is on schedule, so an absurd bill stops it."""

    def __init__(self, seed: int) -> None:
        self._rng, self._asked, self._spent = generator(seed), 0, 0.0

    def ask(self) -> int | None:
        self._asked += 1
        return int(self._rng.integers(len(MEANS))) if self._spent <= RATE * (self._asked + 10) else None

    def tell(self, reward: float, cost: float) -> None:
        self._spent += cost


PLAYERS: Final[dict[str, Callable[[int], BilledPlayer]]] = {"adaptive": OfAdaptive, "planted": OnSchedule}


def skips(player: BilledPlayer, seed: int, bill: float, at: int) -> int:
    """The number of skips among the requests after request ``at``, the first after it that is served costs ``bill``."""
    rng, skipped, due = generator(seed), 0, bill > 0.0
    for t in range(1, at + AFTER + 1):
        reward, cost = rng.random(len(MEANS)) < CHANCES, MEANS * rng.lognormal(-0.125, 0.5, len(MEANS))
        arm = player.ask()
        if arm is None:
            skipped += t > at
            continue
        absurd = due and t >= at
        due = due and not absurd
        player.tell(float(reward[arm]), bill if absurd else float(cost[arm]))
    return skipped


def extra_skips(name: str, seeds: Sequence[int], multiple: float, at: int) -> Floats:
    """For each seed, the skips because of a bill: those in addition to the run without it."""
    make, bill = PLAYERS[name], multiple * float(MEANS.mean())
    return np.array(
        [skips(make(seed), seed, bill, at) - skips(make(seed), seed, 0.0, at) for seed in seeds], dtype=np.float64
    )
