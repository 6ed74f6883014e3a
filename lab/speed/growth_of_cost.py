"""How the time of a simulated round grows with the arms, the resources, the window and the horizon."""

from __future__ import annotations

from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.paper.speed import round_seconds
from driftsack.policies import SlidingWindowUCB
from lab.speed.timing import Progress, median_ratio


def growth_rows(quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Vary one size at a time and compare the time of a round with that of a common base size."""
    base = {"m": 10, "d": 3, "window": 1_000, "T": 100_000}
    steps = {
        "m": (2, 100, 1_000),
        "d": (1, 10, 30),
        "window": (100, 10_000, 99_000),
        "T": (10_000, 1_000_000),
    }
    repeats = 3 if quick else 7
    if quick:
        base["T"], steps["T"], steps["window"] = 20_000, (2_000, 200_000), (100, 10_000)
    rows: list[dict[str, float | str]] = []
    for name, values in steps.items():
        for value in values:
            progress(f"growth with {name}: {value:,}")
            varied, reference = world_and_policy(**{**base, name: value}), world_and_policy(**base)
            varied_seconds, reference_seconds = [], []
            for _ in range(repeats + 1):
                varied_seconds.append(round_seconds(*varied, trials=1))
                reference_seconds.append(round_seconds(*reference, trials=1))
            rows.append(
                {
                    "what grows": name,
                    "from": base[name],
                    "to": value,
                    "cost of a round, ratio": median_ratio(varied_seconds[1:], reference_seconds[1:]),
                    "ns per round": 1e9 * min(varied_seconds),
                }
            )
    return rows


def world_and_policy(m: int, d: int, window: int, T: int) -> tuple[Instance, SlidingWindowUCB]:  # noqa: N803
    """Return a random stationary instance, whose budgets bind and last to the end, and a windowed policy."""
    means = generator(1).random((d + 1, m))
    world = Instance.stationary(means[0], means[1:], T, budget=0.3 * T)
    return world, SlidingWindowUCB(windows=(window, window), scale=0.1, budget_rule="remaining")
