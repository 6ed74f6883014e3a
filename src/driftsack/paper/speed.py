"""How long the same work would take in plain Python with ``linprog``: a slice is measured, the rest extrapolated."""

from __future__ import annotations

from typing import Any, Final

from driftsack.bench.plain_python import PlainSlidingWindowUCB
from driftsack.bench.rounds import round_seconds
from driftsack.instances import example_2

SLICE: Final = 300  # rounds of Example 2


def speed(rounds: int, seconds: float) -> dict[str, Any]:
    """What the plain loop would take for ``rounds`` with an LP, which took ``seconds`` here, all else included.

    Only rounds of the UCBs count; those of LagrangeBwK, which has no LP, are left out, in favour of the plain loop.
    """
    plain = round_seconds(example_2(horizon=SLICE), PlainSlidingWindowUCB(windows=(SLICE // 4, SLICE // 4)), trials=1)
    return {
        "rounds": rounds,
        "seconds": seconds,
        "plain_round_seconds": plain,
        "plain_seconds": plain * rounds,
        "ratio": plain * rounds / seconds if rounds else None,
    }
