"""What every benchmark returns."""

from __future__ import annotations

from dataclasses import dataclass

from driftsack.core.checks import Floats


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A value with its proof, in people's units."""

    name: str
    value: float  # for an LP, the dual value: no plan earns more
    gap: float  # (value - what the plan earns) / value
    prices: Floats | None = None  # (d,) reward per unit of each resource
    plan: Floats | None = None  # (K, m) a mix for each distinct row of the instance
    passes: int = 0  # over the rows

    def __str__(self) -> str:
        return f"{self.name}: {self.value:,.6g} (relative gap {self.gap:.1e})"
