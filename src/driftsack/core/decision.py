"""``Decision``, which ``ask`` returns and ``tell`` takes, and ``SKIP``, the arm that does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from driftsack.core.arrays import Floats

SKIP: Final = -1
"""The null arm: no reward and no cost, always available, never estimated."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The choice of one round, with all that identifies it, so that feedback may arrive late and out of order.

    Attributes:
        round: The round, from 1 to T, which identifies the decision.
        arm: The arm, from 0 to m - 1, or ``SKIP``.
        mix: (m,) probabilities of the arms; ``SKIP`` has the remaining probability.
        prices: (d,) dual prices: reward per unit of each resource, in the problem's units.
        name: The name of the arm, its number as text if the arms have no names; None for ``SKIP``.
    """

    round: int
    arm: int
    mix: Floats
    prices: Floats
    name: str | None = None

    @property
    def skipped(self) -> bool:
        """Whether the round is spent on ``SKIP``, which needs no ``tell``."""
        return self.arm == SKIP
