"""Make the figure and the tables of real_prompts.md: ``python docs/gallery/real_prompts.py [DIRECTORY [quick]]``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from driftsack.plot.style import BLUE, GREY, ORANGE, new_figure

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.routing.routers import BUDGETS, DRIFTS
from lab.routing.routing import routing_rows

DIRECTORY = Path(__file__).parent.parent / "figures"
TITLES = {"none": "no drift", "price": "price drop", "quality": "worse answers"}
SHOWN = (
    "DisjointBwK by source",
    "LinearBwK",
    "SquareCBwK",
    "ParetoBandit, alpha 0.5",
    "ParetoBandit, default",
    "Adaptive, no context",
    "Llama",
)


def table(rows: list[dict[str, Any]], start: str, budget: str) -> list[str]:
    """The lines of a table: the shares of a router with each drift, and its maximum spending."""
    own = [row for row in rows if (row["start"], row["budget"]) == (start, budget)]
    lines = []
    for name in dict.fromkeys(row["router"] for row in own):
        found = {row["drift"]: row for row in own if row["router"] == name}
        shares = " | ".join(f"{found[drift]['share of LP']:.3f}" for drift in DRIFTS)
        lines.append(f"| {name} | {shares} | {max(row['most spent / budget'] for row in found.values()):.3f} |")
    return lines


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the shares at the smallest budget: cold as circles, warm as squares."""
    figure = new_figure(9, 3.4)
    places = np.arange(len(SHOWN))[::-1]
    for axes, drift in zip(figure.subplots(1, len(DRIFTS), sharex=True, sharey=True), DRIFTS, strict=True):
        for start, marker, shift in (("cold", "o", 0.12), ("warm", "s", -0.12)):
            for place, name in zip(places, SHOWN, strict=True):
                found = [
                    row
                    for row in rows
                    if (row["start"], row["router"], row["drift"]) == (start, name, drift)
                    and row["budget"] == f"{BUDGETS[0]:g}"
                ]
                colour = ORANGE if "Pareto" in name else BLUE if "BwK" in name else GREY
                for row in found:
                    error = 2.0 * row["se"] * row["share of LP"] / row["reward"]
                    face = colour if start == "warm" else "white"
                    style = {"fmt": marker, "color": colour, "markerfacecolor": face}
                    axes.errorbar(row["share of LP"], place + shift, xerr=error, label=start, **style)
        axes.set_title(TITLES[drift], fontsize=10)
        axes.axvline(1.0, color=GREY, linewidth=1)
        axes.set(xlabel="share of the optimum", yticks=places, yticklabels=SHOWN)
    lines, starts = axes.get_legend_handles_labels()
    axes.legend(dict(zip(starts, lines, strict=True)).values(), dict.fromkeys(starts), loc="upper left", fontsize=9)
    figure.savefig(path, dpi=130)


def report(text: str) -> None:
    """Say on the error stream what is measured."""
    sys.stderr.write(f"{text}\n")


def main(directory: Path, quick: bool) -> None:
    """Print the tables that the page quotes, and draw its figure."""
    rows = routing_rows(quick, 0, report)
    for start in ("cold", "warm"):
        for budget in dict.fromkeys(row["budget"] for row in rows):
            sys.stdout.write("\n".join([f"{start}, {budget} dollars a request", *table(rows, start, budget), ""]))
    draw(rows, directory / "routing.png")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(Path(given.get(1, DIRECTORY)), len(sys.argv) > 2)
