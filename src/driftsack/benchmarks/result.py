"""What every benchmark returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from driftsack.core.arrays import Floats

NOTHING: Final = 1e-6


def relative_gap(upper: float, lower: float, rounds: float) -> float:
    """(upper - lower) / upper, with rewards in [0, 1]; below a millionth a round, relative to that instead."""
    return max(upper - lower, 0.0) / max(upper, NOTHING * rounds)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A value with its proof, in people's units."""

    name: str
    value: float  # for an LP, the dual value: no plan earns more
    gap: float  # (value - what the plan earns) / value, see relative_gap
    prices: Floats | None = None  # (d,) reward per unit of each resource
    plan: Floats | None = None  # (K, m) a mix for each distinct row of the instance
    passes: int = 0  # over the rows

    def __str__(self) -> str:
        return f"{self.name}: {self.value:,.6g} (relative gap {self.gap:.1e})"
