"""Make the figure and the tables of flights.md; run it as ``python docs/gallery/flights.py [DIRECTORY [TRIALS]]``."""

from __future__ import annotations

import sys
from pathlib import Path

import driftsack as ds
from driftsack.advice.drift_detection import Drift, detect_drift
from driftsack.advice.time_windows import merge_blocks
from driftsack.plot import flights_figure

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab import flights

DIRECTORY = Path(__file__).parent.parent / "figures"


def measured() -> tuple[Drift, Drift]:
    """Drift from week to week, with noise floors from shuffled rounds and from shuffled days."""
    rows = ds.logs.survey(ds.datasets.flights(), most_cells=2**14)  # one cell per round
    return detect_drift(rows, windows=52), detect_drift(merge_blocks(rows, 26), windows=52)


def main(directory: Path, trials: int) -> None:
    """Print the figures that the page quotes, and draw its figure."""
    by_round, by_day = measured()
    for name, one in (("rounds", by_round), ("days", by_day)):
        parts = {key: (round(part.value, 2), round(part.floor, 2)) for key, part in one.measures.items()}
        sys.stdout.write(f"{name} shuffled: p = {one.p_value}, {parts}\n")
    optima = flights.optima(ds.datasets.flights_world("week"))
    sys.stdout.write(f"{optima}\n")
    rows = flights.league(trials)
    for row in [*rows, *flights.half_year(trials)]:
        sys.stdout.write(f"| {row['policy']} | {row['reward']:.3f} ± {row['reward_se']:.3f} |\n")
    floors = {"rounds\nshuffled": by_round.measures["v1"].floor, "days\nshuffled": by_day.measures["v1"].floor}
    titles = {"LP-Static": "best fixed mix", "single steps": "even spending", "LP-Dynamic": "best weekly plan"}
    lines = {title: optima[name] for name, title in titles.items()}
    figure = flights_figure(by_round.measures["v1"].value, floors, rows, lines)
    figure.savefig(directory / "flights.png", dpi=130)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(Path(given.get(1, DIRECTORY)), int(given.get(2, 40)))
