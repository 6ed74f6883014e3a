"""Draw the README's picture: one budget, spent by Adaptive, by a bandit that ignores it, and by the cheapest model.

``python docs/comparison/budget_figure.py [DIRECTORY]`` writes budget.png, by default to docs/figures/.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from routing_world import CHANGES, MODELS, REQUESTS, Budgets, Stream, play
from setups import driftsack_router

import driftsack as ds
from driftsack.plot.style import BLUE, GREEN, GREY, ORANGE, THOUSANDS, new_figure
from lab.rivals import Always, Router

SEED = 0
LABELS = {
    "Adaptive": "Adaptive: the money\nlasts to the end|Adaptive: {good:,.0f}",
    "ε-greedy on quality": "ε-greedy on quality:\nnothing left after\n{requests:,} requests|ε-greedy: {good:,.0f}",
    "always small": "always small: {left:.0f} dollars unused|always small: {good:,.0f}",
}
PLACES: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {  # of the labels in both panels
    "Adaptive": ((5_500, 33), (4_100, 5_900)),
    "ε-greedy on quality": ((3_500, 3), (400, 3_300)),
    "always small": ((200, 62.5), (5_200, 2_000)),
}


class QualityGreedy:
    """A hand-written ε-greedy that maximises quality and does not look at costs."""

    def __init__(self, seed: int) -> None:
        """Begin without knowledge; an untried model counts as perfect."""
        self.rng = np.random.default_rng(seed)
        self.means = np.ones(len(MODELS))

    def choose(self) -> int:
        """A random model in one of ten rounds, otherwise the one with the best recent quality."""
        return int(self.rng.integers(len(MODELS)) if self.rng.random() < 0.1 else np.argmax(self.means))

    def learn(self, arm: int, reward: float, _: NDArray[np.float64]) -> None:
        """Move the mean towards the outcome."""
        self.means[arm] += 0.02 * (reward - self.means[arm])


def mark_changes(axes: Axes) -> None:
    """Mark the two changes of the world."""
    for change, label in zip(CHANGES, ("large gets\ncheaper", "medium\ngets worse"), strict=True):
        axes.axvline(change, color="grey", linewidth=0.8, linestyle=":")
        axes.annotate(
            label, (change, 1.0), (3, -1), xycoords=("data", "axes fraction"), textcoords="offset points",
            va="top", fontsize=8, color=GREY,
        )  # fmt: skip


def main(directory: Path) -> None:
    """Play one stream with three routers and draw what is left and what was earned."""
    budgets = Budgets()
    routers: list[tuple[str, str, str, Router]] = [
        ("Adaptive", BLUE, "-", driftsack_router(ds.Adaptive(), SEED, budgets)),
        ("ε-greedy on quality", ORANGE, "--", QualityGreedy(SEED)),
        ("always small", GREEN, "-.", Always(0)),
    ]
    figure = new_figure(8.4, 3.3)
    money, answers = figure.subplots(1, 2)
    money.plot([0, REQUESTS], [budgets.usd, 0], color=GREY, linewidth=0.8)
    for name, colour, dash, router in routers:
        stream: Stream = play(router, SEED, budgets)
        request = np.arange(1, len(stream.good) + 1)
        for axes, values in ((money, stream.left), (answers, stream.good)):
            axes.plot(request, values, dash, color=colour, linewidth=2)
            if len(request) < 0.99 * REQUESTS:
                axes.plot(request[-1], values[-1], "x", color=colour, markersize=9, markeredgewidth=2, clip_on=False)
        labels = LABELS[name].format(good=stream.good[-1], left=stream.left[-1], requests=len(request)).split("|")
        for axes, label, place in zip((money, answers), labels, PLACES[name], strict=True):
            axes.text(*place, label, color=colour, fontsize=9)
        print(
            f"{name}: {stream.good[-1]:,.0f} good answers, {stream.left[-1]:.2f} dollars left, request {len(request):,}"
        )
    mark_changes(money)
    mark_changes(answers)
    money.set(ylabel="dollars left", ylim=(0, 74), title="The budget")
    answers.set(ylabel="good answers so far", ylim=(0, 9_200), title="What it bought")
    money.text(1_650, 38, "even pace", color=GREY, fontsize=8, rotation=-33)
    for axes in (money, answers):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set(xlabel="request", xlim=(0, REQUESTS))
        axes.xaxis.set_major_formatter(THOUSANDS)
        axes.yaxis.set_major_formatter(THOUSANDS)
    figure.savefig(directory / "budget.png", dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "figures")
