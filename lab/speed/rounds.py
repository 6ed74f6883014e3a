"""Speed of a whole simulated round of SW-UCB, compared with a plain Python loop that calls ``linprog``."""

from __future__ import annotations

from driftsack.instances import example_2
from driftsack.paper.plain_python import PlainSlidingWindowUCB
from driftsack.paper.speed import round_seconds
from driftsack.policies import SlidingWindowUCB
from lab.speed.timing import Progress, median_ratio


def round_rows(quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Compare a simulated round on Example 2 with the same round in plain Python."""
    progress("a simulated round at (2, 2)")
    short, repeats = (200, 3) if quick else (1000, 5)
    long_world, short_world = example_2(), example_2(horizon=short)
    compiled = SlidingWindowUCB(variation=(0.5, 1.0))
    plain = PlainSlidingWindowUCB(windows=(short // 4, short // 4))
    fast, slow = [], []
    for _ in range(repeats + 1):
        fast.append(round_seconds(long_world, compiled, trials=10))
        slow.append(round_seconds(short_world, plain, trials=1))
    return [
        {
            "m, d": "2, 2",
            "Python + linprog / ours": median_ratio(slow[1:], fast[1:]),
            "ours ns": 1e9 * min(fast),
            "Python + linprog ns": 1e9 * min(slow),
        }
    ]
