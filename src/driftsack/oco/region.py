"""``Region``: a domain as an argument of compiled kernels, and the projection onto it."""

from __future__ import annotations

from typing import Final, NamedTuple

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel
from driftsack.numerics.projections import onto_ball, onto_box, onto_capped_orthant, onto_capped_simplex, onto_simplex

# Values of ``Region.kind``
NOT_COMPILED: Final = 0  # no compiled projection; the caller projects
BOX: Final = 1
SIMPLEX: Final = 2
CAPPED_SIMPLEX: Final = 3
BALL: Final = 4
ORTHANT: Final = 5


class Region(NamedTuple):
    """The parameters of a domain. All domains share one type, so that the loop compiles once for all of them."""

    kind: int  # the kind of the domain, one of the constants above
    low: Floats  # (n,) the lower bounds of a box, or the centre of a ball
    high: Floats  # (n,) the upper bounds of a box, or the caps of a capped simplex
    size: float  # the radius of a ball, the total of a simplex, or the bound of an orthant


@kernel
def project(region: Region, point: Floats) -> None:
    """Move ``point`` to the nearest point of the region, in place."""
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
