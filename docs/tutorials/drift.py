"""Measure the drift of three logs: nothing moves; which arm is best moves; only when to spend moves."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.axes import Axes

import driftsack as ds
from driftsack.plot.style import BLUE, GREY, LINES, ORANGE, new_figure

ROUNDS = 4_000


def report(name: str, world: ds.Instance, advice: ds.Advice) -> None:
    """What the advice says, beside the truth."""
    print(f"{name}: {advice.kind}, p = {advice.drift.p_value:.3f}")
    truth = ds.variation(world)
    for measure, seen in advice.drift.measures.items():
        print(f"  {measure}: {seen.value:,.2f}, by noise {seen.floor:,.2f}, truth {getattr(truth, measure):,.2f}")
    print(f"  take: {advice.recommended.candidate.name}")
    print(f"  if the timing may not come again: {advice.steady.candidate.name}")


def draw_means(place: Axes, advice: ds.Advice) -> None:
    """Means of each arm in windows of time with their intervals: of the quantity that shows drift most."""
    quantity = advice.drift.where[1]
    k = ("reward", *advice.survey.resources).index(quantity)
    middle = advice.windows.starts + ROUNDS / (2 * len(advice.windows.starts))
    for i, (arm, (colour, dash, _)) in enumerate(zip(advice.survey.arms, LINES, strict=False)):
        low, mean, high = (part[:, i, k] for part in (advice.windows.low, advice.windows.means, advice.windows.high))
        place.plot(middle, mean, dash, color=colour, label=f"arm {arm}")
        place.fill_between(middle, low, high, color=colour, alpha=0.2)
    place.set(xlabel="round of the log", ylabel=f"mean {quantity}", ylim=(0, 1.03))


def draw_measures(place: Axes, advice: ds.Advice) -> None:
    """V and W of the log and of shuffled ones, relative to what 95% of the shuffled ones stay below."""
    measures = advice.drift.measures
    for k, one in enumerate(measures.values()):
        place.bar(k - 0.2, one.value / one.floor_high, 0.38, color=BLUE, label="in the log" if k == 0 else None)
        place.bar(k + 0.2, one.floor / one.floor_high, 0.38, color=GREY, label="rows shuffled" if k == 0 else None)
    place.axhline(1.0, color=ORANGE, linestyle="--", label="95% of shuffles lie below")
    place.set_xticks(range(len(measures)), [name.upper() for name in measures])
    place.set(ylim=(0, 7), ylabel="relative to that line")


def main(folder: Path) -> None:
    """Advice on three logs that were gathered at random, and a figure of what they show."""
    worlds = {
        "stands still": ds.Instance.stationary([0.4, 0.5], [[0.5, 0.5]], ROUNDS, budget=ROUNDS / 2),
        "which arm is best moves": ds.instances.example_2(ROUNDS),
        "when to spend moves": ds.instances.example_3(alpha=0.5, horizon=ROUNDS),
    }
    figure = new_figure(10, 5.4)
    panels = figure.subplots(2, len(worlds))
    for (top, bottom), (name, world) in zip(panels.T, worlds.items(), strict=True):
        log = ds.gather(world, seed=0)  # or "log.csv", a file of your own
        advice = ds.advise(log, budget=world.problem.budget, worlds=5, trials=2)
        report(name, world, advice)
        draw_means(top, advice)
        draw_measures(bottom, advice)
        top.set_title(name)
    panels[0, 0].legend(fontsize=8, loc="lower left")
    panels[1, 0].legend(fontsize=8, loc="upper left")
    figure.savefig(folder / "drift.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
