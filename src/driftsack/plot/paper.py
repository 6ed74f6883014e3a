"""Draw the paper's figures 1a to 3."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from driftsack.plot.lines import Points, lines_figure
from driftsack.plot.rewards import Curves, rewards_figure
from driftsack.plot.style import write_figure


class FigureData(NamedTuple):
    """The data of the figures, by the number of the example, the title of the panel and the name of the line."""

    note: str  # the line of text above every figure
    change: int  # the round at which Examples 1 and 2 change
    curves: Mapping[int, Mapping[str, Mapping[str, Curves]]]  # cumulative rewards on Examples 1 and 2
    optima: Mapping[int, Mapping[str, float]]  # reward of the best plan on Examples 1 and 2
    regret: Mapping[int, Mapping[str, Mapping[str, Points]]]  # regret on Examples 3 and 4, against α and V
    measures: Mapping[str, Mapping[str, Points]]  # W1 and W1_min of Figure 3, against the change point


def paper_figures(data: FigureData, directory: Path) -> list[Path]:
    """Write figures 1a to 3, each as PNG, SVG and PDF."""
    figures = {
        f"figure_1{letter}": rewards_figure(
            data.curves[example], data.optima[example], f"Example {example}. {data.note}", data.change
        )
        for example, letter in ((1, "a"), (2, "b"))
    }
    figures["figure_2a"] = lines_figure(
        data.regret[3], ("change point α, as a share of the horizon", "regret"), f"Example 3. {data.note}"
    )
    figures["figure_2b"] = lines_figure(
        data.regret[4], ("local variation V₁ + V₂", "regret"), f"Example 4. {data.note}", log_x=True
    )
    figures["figure_3"] = lines_figure(data.measures, ("change point k", "global variation of the rewards"))
    return [path for name, figure in figures.items() for path in write_figure(figure, directory, name)]
