"""``Region``: a domain as kernels see it, and the projection onto it."""

from __future__ import annotations

from typing import Final, NamedTuple

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel
from driftsack.numerics.projections import onto_ball, onto_box, onto_capped_orthant, onto_capped_simplex, onto_simplex

BY_PROGRAM: Final = 0  # no kernel projects onto it; the caller does
BOX: Final = 1
SIMPLEX: Final = 2
CAPPED_SIMPLEX: Final = 3
BALL: Final = 4
ORTHANT: Final = 5


class Region(NamedTuple):
    """What the projections need; every kind of domain has the same type, so one compiled loop serves them all."""

    kind: int
    low: Floats  # (n,) a box's lower ends, a ball's centre
    high: Floats  # (n,) a box's upper ends, a capped simplex's caps
    size: float  # a ball's radius, the total of a simplex, the bound of an orthant


@kernel
def project(region: Region, point: Floats) -> None:
    """Move ``point`` to the nearest point of the region."""
    if region.kind == BOX:
        onto_box(point, region.low, region.high)
    elif region.kind == SIMPLEX:
        onto_simplex(point, region.size)
    elif region.kind == CAPPED_SIMPLEX:
        onto_capped_simplex(point, region.high, region.size)
    elif region.kind == BALL:
        onto_ball(point, region.low, region.size)
    elif region.kind == ORTHANT:
        onto_capped_orthant(point, region.size)
