"""One learner of the soak, the model beside it, and how calls that must fail or change nothing are checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.decision import Decision
from driftsack.core.errors import (
    DriftsackError,
)
from lab.soak.features import RandomFeatures
from lab.soak.model import Finding, Held, Model, SoakCounts
from lab.soak.worlds import World

Errors = type[DriftsackError] | tuple[type[DriftsackError], ...]


class Player:
    """A learner, its reference model, and the random generator that chooses the operations.

    Args:
        world: The policy, the problem, and whether the learner is safe.
        rng: Chooses the operations and their arguments.
        tally: Counts operations.
        directory: Where learners are saved.
        largest_batch: The maximum number of decisions in one request.
    """

    def __init__(self, world: World, rng: Generator, tally: SoakCounts, directory: Path, largest_batch: int) -> None:
        self.rng, self.tally, self.directory, self.largest_batch = rng, tally, directory, largest_batch
        self.model = Model(world)
        self.world, self.problem = world, world.problem
        self.features = RandomFeatures(world.problem)
        self.now = 1.7e9 + float(rng.integers(10**8))
        self.start: float | None = None  # of the period
        self.told: list[tuple[int, bool, Decision, float, list[float]]] = []
        self.over = False
        self.learner = world.policy.start(world.problem, seed=int(rng.integers(2**31)), safe=world.safe)

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return bool(self.rng.random() < probability)

    def count(self, kind: str, operations: int = 1) -> None:
        """Count operations."""
        self.tally.kinds[kind] += operations

    def refused(self, call: Callable[[], Any], errors: Errors) -> None:
        """Check that a call raises one of the errors and, sometimes, that it leaves the learner unchanged."""
        before = self.learner.state_hash() if self.chance(0.2) else None
        try:
            result = call()
        except errors as error:
            self.tally.errors[type(error).__name__] += 1
        else:
            raise Finding(f"expected {errors}, got {result!r:.80}")
        if before is not None and self.learner.state_hash() != before:
            raise Finding(f"a call that raised {errors} has changed the learner")

    def unchanged(self, call: Callable[[], Any]) -> None:
        """Make a call and, sometimes, check that it leaves the learner unchanged."""
        before = self.learner.state_hash() if self.chance(0.2) else None
        call()
        if before is not None and self.learner.state_hash() != before:
            raise Finding("a repeated call has changed the learner")

    def typical(self) -> Floats:
        """(d,) typical costs of a decision."""
        if self.model.bounded:
            return np.array(self.problem.cost_max)
        return np.array(self.problem.budget) / self.problem.horizon

    def take(self, single: bool) -> Held | None:
        """Remove and return a random pending request, single or batched; None if there is none."""
        places = [k for k, held in enumerate(self.model.held) if isinstance(held.decisions, Decision) == single]
        if not places:
            return None
        return self.model.held.pop(places[int(self.rng.integers(len(places)))])
