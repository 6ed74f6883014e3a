"""The paper's figures, from lines that are ready to draw."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from driftsack.plot.lines import Points, lines_figure
from driftsack.plot.rewards import Curves, rewards_figure
from driftsack.plot.style import write_figure


class Drawing(Protocol):
    """What the figures show, by the title of its panel."""

    @property
    def note(self) -> str:
        """What stands above every figure."""

    @property
    def change(self) -> int:
        """The round at which Examples 1 and 2 change."""

    @property
    def curves(self) -> Mapping[int, Mapping[str, Mapping[str, Curves]]]:
        """Examples 1 and 2."""

    @property
    def optima(self) -> Mapping[int, Mapping[str, float]]:
        """Of Examples 1 and 2."""

    @property
    def regret(self) -> Mapping[int, Mapping[str, Mapping[str, Points]]]:
        """Examples 3 and 4."""

    @property
    def measures(self) -> Mapping[str, Mapping[str, Points]]:
        """Figure 3."""


def paper_figures(drawing: Drawing, folder: Path) -> list[Path]:
    """Write figures 1a to 3, each as PNG, SVG and PDF."""
    figures = {
        f"figure_1{letter}": rewards_figure(
            drawing.curves[example], drawing.optima[example], f"Example {example}. {drawing.note}", drawing.change
        )
        for example, letter in ((1, "a"), (2, "b"))
    }
    figures["figure_2a"] = lines_figure(
        drawing.regret[3], ("global variation W₁ + W₂ (α from 1 to 1/2)", "regret"), f"Example 3. {drawing.note}"
    )
    figures["figure_2b"] = lines_figure(
        drawing.regret[4], ("local variation V₁ + V₂", "regret"), f"Example 4. {drawing.note}", log_x=True
    )
    figures["figure_3"] = lines_figure(drawing.measures, ("change point k", "global variation of the rewards"))
    return [path for name, figure in figures.items() for path in write_figure(figure, folder, name)]
