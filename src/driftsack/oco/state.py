"""``State``: the state that every algorithm of this package keeps between rounds. Its size does not depend on T."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import frozen
from driftsack.oco.domains import Domain

# Values of ``State.kind``
VIRTUAL_QUEUE: Final = 0
ONLINE_GRADIENT: Final = 1
PENALISED_PRIMAL_DUAL: Final = 2
EXPONENTIAL_PENALTY: Final = 3
QUADRATIC_PENALTY: Final = 4

SETTINGS: Final = 3  # the largest number of settings of an algorithm


class State(NamedTuple):
    """The state of an algorithm. All algorithms share one type, so that the loop compiles once for all of them."""

    kind: int  # the algorithm, one of the constants above
    settings: Floats  # (3,) the algorithm's settings, at the positions defined in its module
    completed: Ints  # (1,) the number of completed rounds
    point: Floats  # (n,) the decision of the current round
    target: Floats  # (n,) the next decision, before and after its projection onto the domain
    prices: Floats  # (d,) virtual queues Q, multipliers λ or counted violations of the constraints
    squares: Floats  # (1,) the sum of the squared norms of the gradients, for adaptive steps


def new_state(kind: int, settings: tuple[float, ...], domain: Domain, constraints: int) -> State:
    """Create the state before the first round: at the centre of the domain, with all prices 0."""
    padded = np.zeros(SETTINGS)
    padded[: len(settings)] = settings
    return State(
        kind,
        frozen(padded),
        np.zeros(1, dtype=np.int64),
        domain.centre,
        domain.centre,
        np.zeros(constraints),
        np.zeros(1),
    )
