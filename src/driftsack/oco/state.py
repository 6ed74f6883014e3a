"""``State``: what every algorithm here keeps between rounds; it does not grow with T."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import frozen
from driftsack.oco.domains import Domain

QUEUE: Final = 0  # virtual queues
GRADIENT: Final = 1  # ignores the constraints
PENALISED: Final = 2  # primal-dual with a penalty on the prices


class State(NamedTuple):
    """One type for all algorithms, so that one compiled loop serves them."""

    kind: int
    settings: Floats  # (3,) what its kernels need to know of the recipe
    clock: Ints  # (1,) rounds told
    point: Floats  # (n,) the decision of the present round
    target: Floats  # (n,) where the next one would be without the domain
    prices: Floats  # (d,) queues Q or multipliers λ


def new_state(kind: int, settings: tuple[float, ...], domain: Domain, constraints: int) -> State:
    """A state before its first round: at the domain's centre, all prices 0."""
    numbers = np.zeros(3)
    numbers[: len(settings)] = settings
    return State(
        kind,
        frozen(numbers),
        np.zeros(1, dtype=np.int64),
        domain.centre,
        domain.centre,
        np.zeros(constraints),
    )
