"""Seeding: each (seed, trial) has one random stream for the outcomes and one for the learner."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator, SeedSequence

from driftsack.core.checks import whole

Seed = int | SeedSequence | None
"""A seed; None for fresh entropy from the operating system, which differs between processes."""


def sequence(seed: Seed) -> SeedSequence:
    """Return ``seed`` as a ``SeedSequence``.

    >>> sequence(None).entropy == sequence(None).entropy
    False
    """
    if seed is None:
        return SeedSequence()
    if isinstance(seed, SeedSequence):
        return seed
    return SeedSequence(whole(seed, "seed", at_least=0))


def trial_seeds(seed: Seed, trial: int) -> tuple[SeedSequence, SeedSequence]:
    """Return the seeds of the outcomes and of the learner in one trial.

    They depend only on ``(seed, trial)``, not on the order or number of trials or on the number of threads.

    >>> nature, learner = trial_seeds(7, trial=3)
    >>> nature.spawn_key, learner.spawn_key
    ((3, 0), (3, 1))
    """
    root = sequence(seed)
    key = (*root.spawn_key, trial)
    nature = SeedSequence(root.entropy, spawn_key=(*key, 0), pool_size=root.pool_size)
    learner = SeedSequence(root.entropy, spawn_key=(*key, 1), pool_size=root.pool_size)
    return nature, learner


def generator(seed: Seed) -> Generator:
    """Return NumPy's default generator, seeded with ``seed``."""
    return np.random.default_rng(sequence(seed))
