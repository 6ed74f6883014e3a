"""Draw how Adaptive decides: the belief about one arm, the pulls of each arm, and the pace of spending."""

from __future__ import annotations

from typing import Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.plot.style import BLUE, GREEN, GREY, ORANGE, SETTINGS, THOUSANDS, new_figure

WIDTH: Final = 7.2  # inches: 720 pixels at 100 dots per inch, so that pages do not scale the text
COLUMNS: Final = 500  # columns of the heat map; more would not be visible
AGES: Final = 40  # rows of the heat map
NEARBY: Final = 101  # length of the window around a pull, in rounds
SELDOM: Final = 0.5  # share of pulls in that window below which an arm is seldom pulled
BLOCKS: Final = 160  # number of averages of spending to draw


class Pacing(NamedTuple):
    """The spending of one resource over T rounds.

    Attributes:
        spent: (T,) the spending of each round.
        pace: (T,) the even pace: the remaining budget divided by the remaining rounds.
        long_run: (T,) the long-run price.
        present: (T,) the present price.
        remaining: (T,) the remaining share of the budget.
    """

    spent: Floats
    pace: Floats
    long_run: Floats
    present: Floats
    remaining: Floats


def belief_figure(truth: Floats, estimate: Floats, ages: Floats, weights: Floats) -> Figure:
    """Draw the true and the estimated mean of an arm (above) and the belief about its age (below).

    Args:
        truth: (T,) the true mean after each pull.
        estimate: (T,) the estimated mean.
        ages: (T, K) the number of pulls of each run, 0 for a run that is not in use.
        weights: (T, K) the weight of each run.
    """
    pulls = np.arange(1, truth.size + 1)
    changes = np.flatnonzero(np.diff(truth)) + 1
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        figure = new_figure(WIDTH, 4.8)
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.7])
        top.plot(pulls, truth, "--", color=ORANGE, drawstyle="steps-post", label="true mean")
        top.plot(pulls, estimate, color=BLUE, label="estimate")
        top.set(ylabel="mean reward", ylim=(0, 1))
        top.legend(loc="lower right", ncols=2, fontsize=9)
        draw_belief(figure, bottom, ages, weights)
        started = np.concatenate([[0], changes])
        since = pulls - started[np.searchsorted(started, pulls - 1, side="right") - 1]
        for part in np.split(np.arange(truth.size), changes):
            label = "pulls since the true change" if part[0] == 0 else None
            bottom.plot(pulls[part], since[part], "--", color=ORANGE, linewidth=1.4, label=label)
        bottom.legend(loc="lower right", fontsize=9, frameon=True, framealpha=0.9, edgecolor="none")
        bottom.set(xlabel="pull of the arm", ylabel="age in pulls", xlim=(1, truth.size))
        bottom.xaxis.set_major_formatter(THOUSANDS)
        bottom.yaxis.set_major_formatter(THOUSANDS)
    return figure


def draw_belief(figure: Figure, axes: Axes, ages: Floats, weights: Floats) -> None:
    """Draw the weight of each age over time as a heat map with a logarithmic axis of ages."""
    rounds, longest = len(ages), float(ages.max())
    steps = np.unique(np.geomspace(1, longest + 1, AGES + 1).round())
    edges = steps - 0.5  # every row holds at least one age
    columns = np.unique(np.linspace(0, rounds - 1, COLUMNS).astype(np.int64))
    heat = np.zeros((edges.size - 1, columns.size))
    for k, t in enumerate(columns):
        used = ages[t] > 0
        heat[:, k] = np.histogram(ages[t][used], edges, weights=weights[t][used])[0]
    places = np.concatenate([columns, [rounds]]) + 0.5
    image = axes.pcolormesh(places, edges, heat, cmap="Blues", norm=PowerNorm(0.5, 0.0, 1.0), rasterized=True)
    axes.set_yscale("log")
    axes.set_ylim(0.5, 1.15 * longest)
    bar = figure.colorbar(image, ax=axes, ticks=[0, 0.05, 0.25, 0.5, 1], pad=0.02)
    bar.set_label("weight in the belief")
    bar.outline.set_visible(False)


def revisits_figure(arms: Ints, best: Ints, expected: Floats, names: tuple[str, ...]) -> Figure:
    """Draw the rounds in which each arm is pulled (above) and the gaps between visits to seldom pulled arms (below).

    Args:
        arms: (T,) the arm pulled in each round; negative if the round was skipped.
        best: (T,) the best arm of each round.
        expected: (T,) the gap that the estimated hazard implies, in rounds.
        names: The names of the arms.
    """
    rounds = np.arange(1, arms.size + 1)
    styles = ((BLUE, "o"), (GREEN, "^"), (ORANGE, "s"))
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        figure = new_figure(WIDTH, 4.8)
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.3])
        # At the top the pulls of each arm, at the bottom the gaps before its visits while it is seldom pulled.
        for i, (colour, marker) in zip(range(len(names)), styles, strict=False):
            height = len(names) - 1 - i
            top.fill_between(rounds, height - 0.46, height + 0.46, where=best == i, color=GREY, alpha=0.22, linewidth=0)
            pulled = rounds[arms == i]
            top.vlines(pulled, height - 0.36, height + 0.36, color=colour, linewidth=0.8)
            gaps = np.diff(pulled)
            often = np.convolve(arms == i, np.full(NEARBY, 1.0 / NEARBY), mode="same") > SELDOM
            visits = (gaps > 1) & ~often[pulled[1:] - 1]
            bottom.plot(pulled[1:][visits], gaps[visits], marker, color=colour, markersize=3.5, label=names[i])
        # The axes.
        top.set_yticks(range(len(names))[::-1], names)
        top.tick_params(axis="y", length=0)
        top.spines["left"].set_visible(False)
        top.set_title("rounds in which each arm is pulled (grey: it is the best arm)", fontsize=10, loc="left")
        bottom.plot(rounds, expected, color="black", label=r"$\sqrt{1/h}$")
        bottom.set_yscale("log")
        bottom.set(xlabel="round", ylabel="rounds since its\nprevious pull", xlim=(1, arms.size))
        bottom.xaxis.set_major_formatter(THOUSANDS)
        bottom.yaxis.set_major_formatter(THOUSANDS)
        figure.legend(*bottom.get_legend_handles_labels(), loc="outside lower center", ncols=len(names) + 1, fontsize=9)
    return figure


def pacing_figure(pacing: Pacing, rich: Bools) -> Figure:
    """Draw spending against the even pace, the two prices, and the remaining budget.

    Args:
        pacing: The spending of one resource.
        rich: (T,) whether rewards are high for their cost in each round.
    """
    # Average over blocks of rounds.
    horizon = rich.size
    rounds = np.arange(1, horizon + 1)
    size = max(horizon // BLOCKS, 1)
    blocks = horizon // size
    middle = size * (np.arange(blocks) + 0.5)
    spending, present = (part[: blocks * size].reshape(blocks, size) for part in (pacing.spent, pacing.present))
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        # Shade the rich times in every panel.
        figure = new_figure(WIDTH, 6.0)
        panels = figure.subplots(3, 1, sharex=True, height_ratios=[1.2, 1.2, 1])
        for axes in panels:
            axes.fill_between(
                rounds,
                0,
                1,
                where=rich,
                step="mid",
                color=GREY,
                alpha=0.15,
                linewidth=0,
                transform=axes.get_xaxis_transform(),
            )

        # Draw spending, prices and the remaining budget.
        panels[0].plot(
            middle, spending.mean(axis=1), color=BLUE, linewidth=1.2, label=f"spent (means of {size} rounds)"
        )
        panels[0].plot(rounds, pacing.pace, "--", color=ORANGE, label="even pace")
        panels[0].set_ylabel("spending\nper round")
        panels[1].plot(middle, np.median(present, axis=1), color=BLUE, linewidth=1.2, label="present price")
        panels[1].plot(rounds, pacing.long_run, "--", color=ORANGE, label="long-run price")
        panels[1].set_ylabel("reward per unit\nof budget")
        panels[2].plot(rounds, pacing.remaining, color=BLUE, label="left of the budget")
        panels[2].plot([1, horizon], [1, 0], "--", color=ORANGE, label="if spent evenly")
        panels[2].yaxis.set_major_formatter(PercentFormatter(1.0))
        panels[2].set_ylabel("budget left")

        # Add legends and labels.
        for axes in panels:
            low, high = axes.get_ylim()
            axes.set_ylim(0, high + 0.28 * (high - max(low, 0)))  # room for the legend
            axes.legend(loc="upper right", ncols=2, fontsize=9)
        panels[0].set_title("grey: rich times, in which rewards are high for their cost", fontsize=10, loc="left")
        panels[2].set(xlabel="round", xlim=(1, horizon))
        panels[2].xaxis.set_major_formatter(THOUSANDS)
    return figure
