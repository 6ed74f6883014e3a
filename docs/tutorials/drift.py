"""Measure the drift of three logs: no drift; the best arm changes; only the best time to spend changes."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.axes import Axes

import driftsack as ds
from driftsack.plot.style import BLUE, GREY, LINES, ORANGE, new_figure

ROUNDS = 4_000


def report(name: str, world: ds.Instance, advice: ds.Advice) -> None:
    """Print the advice and the true variation."""
    print(f"{name}: {advice.kind}, p = {advice.drift.p_value:.3f}")
    truth = ds.variation(world)
    for measure, estimate in advice.drift.measures.items():
        true_value = getattr(truth, measure)
        print(f"  {measure}: {estimate.value:,.2f}, noise floor {estimate.floor:,.2f}, true value {true_value:,.2f}")
    print(f"  recommended: {advice.recommended.candidate.name}")
    print(f"  best without a plan: {advice.steady.candidate.name}")


def draw_means(place: Axes, advice: ds.Advice) -> None:
    """Plot the means of each arm over time, with intervals, for the quantity with the strongest drift."""
    quantity = advice.drift.where[1]
    k = ("reward", *advice.survey.resources).index(quantity)
    middle = advice.windows.starts + ROUNDS / (2 * len(advice.windows.starts))
    for i, (arm, (colour, dash, _)) in enumerate(zip(advice.survey.arms, LINES, strict=False)):
        low, mean, high = (part[:, i, k] for part in (advice.windows.low, advice.windows.means, advice.windows.high))
        place.plot(middle, mean, dash, color=colour, label=f"arm {arm}")
        place.fill_between(middle, low, high, color=colour, alpha=0.2)
    place.set(xlabel="round of the log", ylabel=f"mean {quantity}", ylim=(0, 1.03))


def draw_measures(place: Axes, advice: ds.Advice) -> None:
    """Plot V and W of the log and of shuffled logs, relative to the 95% quantile of the shuffled logs."""
    measures = advice.drift.measures
    for k, one in enumerate(measures.values()):
        place.bar(k - 0.2, one.value / one.floor_high, 0.38, color=BLUE, label="log" if k == 0 else None)
        place.bar(k + 0.2, one.floor / one.floor_high, 0.38, color=GREY, label="rows shuffled" if k == 0 else None)
    place.axhline(1.0, color=ORANGE, linestyle="--", label="95% quantile of shuffled rows")
    place.set_xticks(range(len(measures)), [name.upper() for name in measures])
    place.set(ylim=(0, 7), ylabel="relative to the 95% quantile")


def main(directory: Path) -> None:
    """Analyse three logs with randomly chosen arms and plot the results."""
    worlds = {
        "no drift": ds.Instance.stationary([0.4, 0.5], [[0.5, 0.5]], ROUNDS, budget=ROUNDS / 2),
        "the best arm changes": ds.instances.example_2(ROUNDS),
        "the best time to spend changes": ds.instances.example_3(alpha=0.5, horizon=ROUNDS),
    }
    figure = new_figure(10, 5.4)
    panels = figure.subplots(2, len(worlds))
    for (top, bottom), (name, world) in zip(panels.T, worlds.items(), strict=True):
        log = ds.gather(world, seed=0)  # or the path of your own log, such as "log.csv"
        advice = ds.advise(log, budget=world.problem.budget, worlds=5, trials=2)
        report(name, world, advice)
        draw_means(top, advice)
        draw_measures(bottom, advice)
        top.set_title(name)
    panels[0, 0].legend(fontsize=8, loc="lower left")
    panels[1, 0].legend(fontsize=8, loc="upper left")
    figure.savefig(directory / "drift.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
