"""The time that the same work would take in plain Python with ``linprog``: measured on a slice and extrapolated."""

from __future__ import annotations

from typing import Final, NamedTuple

from driftsack.bench.plain_python import PlainSlidingWindowUCB
from driftsack.bench.rounds import round_seconds
from driftsack.instances import example_2

SLICE: Final = 300  # rounds of Example 2


class Speed(NamedTuple):
    """A comparison with a plain Python loop that calls ``linprog``.

    Attributes:
        rounds: Rounds in which a linear program was solved.
        seconds: Time taken here, everything included.
        plain_round_seconds: Time of a round of the plain loop, measured.
        plain_seconds: Time that the plain loop would take for all rounds.
        ratio: How many times as long that is, or None if no round was played.
    """

    rounds: int
    seconds: float
    plain_round_seconds: float
    plain_seconds: float
    ratio: float | None


def compare_speed(rounds: int, seconds: float) -> Speed:
    """Estimate how long the plain loop would take for what took ``seconds`` here.

    Only the rounds of the UCBs count. Those of LagrangeBwK, which solves no linear program, are left out, in favour of
    the plain loop.
    """
    plain = round_seconds(example_2(horizon=SLICE), PlainSlidingWindowUCB(windows=(SLICE // 4, SLICE // 4)), trials=1)
    return Speed(rounds, seconds, plain, plain * rounds, plain * rounds / seconds if rounds else None)
