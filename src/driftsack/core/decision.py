"""``Decision``: what ``ask`` returns and ``tell`` takes back, and ``SKIP``, the arm that does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from driftsack.core.arrays import Floats

SKIP: Final = -1
"""The null arm: no reward, no cost, always available, known exactly; never estimated."""


@dataclass(frozen=True, eq=False)
class Decision:
    """One round's choice, with all that ``tell`` needs, so that feedback may come late and out of order."""

    round: int  # 1, 2, ..., T: the decision's id
    arm: int  # 0, ..., m-1, or SKIP
    mix: Floats  # (m,) probabilities of the arms; what is left of 1 is SKIP
    prices: Floats  # (d,) dual prices: reward per unit of each resource, in people's units

    @property
    def skipped(self) -> bool:
        """Whether the round is spent on ``SKIP``, which needs no ``tell``."""
        return self.arm == SKIP
