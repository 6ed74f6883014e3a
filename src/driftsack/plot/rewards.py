"""Cumulative reward against rounds, one panel a world, one line a policy (the paper's Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from driftsack.plot.style import BLUE, GREEN, GREY, ORANGE, SETTINGS, new_figure
from driftsack.simulation import Run

STYLES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."))


def rewards_figure(panels: Mapping[str, Mapping[str, Run]], optima: Mapping[str, float] | None = None) -> Figure:
    """Mean curves with bands of ± 2 standard errors; dotted lines where the means change and at a panel's optimum."""
    with mpl.rc_context(SETTINGS):
        figure = new_figure(4.6 * len(panels), 3.6)
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for place, (title, runs) in zip(axes, panels.items(), strict=True):
            draw_panel(place, title, runs)
        axes[0].set_ylabel("cumulative reward")
        tops = [run.curve.mean(axis=0).max() for runs in panels.values() for run in runs.values()]
        axes[0].set_ylim(0, 1.1 * max([*tops, *(optima or {}).values()]) or 1.0)
        for place, title in zip(axes, panels, strict=True):
            if optima is not None:
                mark_optimum(place, optima[title])
        figure.suptitle(caption([run for runs in panels.values() for run in runs.values()]), fontsize=9, color=GREY)
    return figure


def caption(runs: list[Run]) -> str:
    """Under what settings the curves were made."""
    noises = sorted({run.instance.noise for run in runs})
    scales = sorted({run.policy.scale for run in runs if hasattr(run.policy, "scale")})
    radius = f", radius scale {', '.join(f'{scale:g}' for scale in scales)}" if scales else ""
    return f"{runs[0].trials} trials, {', '.join(noises)} outcomes{radius}, band: ± 2 standard errors"


def mark_optimum(place: Axes, value: float) -> None:
    """A dotted line at what the best plan earns."""
    place.axhline(value, color=GREY, linestyle=":", linewidth=1.2)
    place.annotate(
        f"best plan (LP-Dynamic): {value:,.0f}",
        (0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )


def draw_panel(place: Axes, title: str, runs: Mapping[str, Run]) -> None:
    """One world: a line and a band for each policy, labelled with its final mean."""
    for (name, run), (colour, dash) in zip(runs.items(), cycle(STYLES), strict=False):
        times = np.concatenate([[0], run.times])
        mean = np.concatenate([[0.0], run.curve.mean(axis=0)])
        spread = run.curve.std(axis=0, ddof=1) if run.trials > 1 else np.zeros(run.times.size)
        band = 2 * np.concatenate([[0.0], spread]) / np.sqrt(run.trials)
        label = f"{name}: {mean[-1]:,.0f} ± {band[-1]:,.0f}"
        place.plot(times, mean, dash, color=colour, label=label, linewidth=1.8)
        place.fill_between(times, mean - band, mean + band, color=colour, alpha=0.25, linewidth=0)
    phase = next(iter(runs.values())).instance.phase
    changes = np.flatnonzero(phase[1:] != phase[:-1]) + 1
    if changes.size == 1:
        place.axvline(changes[0], color=GREY, linestyle=":", linewidth=1.2)
        place.annotate(
            "the world changes",
            (changes[0], 0.8),
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            horizontalalignment="right",
            fontsize=8,
            color=GREY,
        )
    place.set_title(title)
    place.set_xlabel("round")
    place.set_xlim(0, phase.size)
    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")
    place.xaxis.set_major_formatter(thousands)
    place.yaxis.set_major_formatter(thousands)
    place.legend(loc="lower right", frameon=True, framealpha=1.0, edgecolor="none")
