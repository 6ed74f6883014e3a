"""``Advice``: what a log says about drift, the recommended policy and the value of the budget."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftsack.advice import report_text
from driftsack.advice.budget_value import BudgetValue
from driftsack.advice.drift_detection import Drift
from driftsack.advice.fit import Fit
from driftsack.advice.intervals import BudgetIntervals, WindowMeans
from driftsack.advice.standings import Standing
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.logs import Survey
from driftsack.measures.drift_kind import DriftKind
from driftsack.policies import Policy


@dataclass(frozen=True, eq=False)
class Advice:
    """Advice from a log: ``print`` it, ``write`` it as one HTML page, or take ``to_dict``.

    Attributes:
        name: Name of the log.
        survey: Summary of the log.
        drift: Result of the test for drift, with the measures V and W and their noise floors.
        fit: Change points, means between them and the kind of noise.
        world: The instance fitted to the log, with the requested budget and horizon.
        windows: Means in windows of time, with 95% intervals.
        kind: What drift changes: ``stationary``, ``harmless``, ``which`` (V-type) or ``when`` (W-type).
        worth: Optima of the fitted instance, prices, and the value of 10% more or less budget.
        ranges: 95% intervals of the optimum and of the value of budget.
        standings: Simulated performance of every candidate: Adaptive, then from simple to involved.
        recommended: The recommended candidate.
        steady: The best candidate that does not assume that the timing of the log repeats.
        shifted: Shares of the optimum that ``recommended`` and ``steady`` earn if changes come earlier or later.
    """

    name: str
    survey: Survey
    drift: Drift
    fit: Fit
    world: Instance
    windows: WindowMeans
    kind: DriftKind
    worth: BudgetValue
    ranges: BudgetIntervals
    standings: tuple[Standing, ...]
    recommended: Standing
    steady: Standing
    shifted: tuple[float, float]

    @property
    def policy(self) -> Policy:
        """The recommended policy, ready to ``start``."""
        return self.recommended.candidate.policy

    @property
    def summary(self) -> str:
        """The findings and the recommendation in one paragraph."""
        return report_text.summary(self)

    @property
    def notes(self) -> str:
        """What was taken from the log, and what in it is unusual; empty if there is nothing to say."""
        return report_text.log_notes(self)

    @property
    def caution(self) -> str:
        """The assumptions behind the recommendation that may not hold, and what to do then; empty if there are none."""
        return report_text.caution(self)

    def __str__(self) -> str:
        return "\n\n".join(text for text in (self.summary, self.notes, self.caution) if text)

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as plain data.

        Returns:
            A dictionary that ``json.dumps`` accepts.
        """
        intervals = {name: np.asarray(part).tolist() for name, part in self.ranges._asdict().items()}
        return {
            "summary": self.summary,
            "notes": self.notes,
            "caution": self.caution,
            "log": {
                "name": self.name,
                "rows": self.survey.rows,
                "skipped": self.survey.skipped,
                "lost": self.survey.lost,
                "repeated": self.survey.repeated,
                "inferred": list(self.survey.inferred),
                "arms": dict(zip(self.survey.arms, self.survey.pulls.tolist(), strict=True)),
                "resources": list(self.survey.resources),
                "table": self.survey.table,
            },
            "problem": self.world.problem.to_dict(),
            "drift": self.drift.to_dict(),
            "kind": self.kind.value,
            "changes": (self.fit.changes + 1).tolist(),
            "worth": {**self.worth.to_dict(), "intervals": intervals},
            "recommended": self.recommended.to_dict(),
            "without_plans": self.steady.to_dict(),
            "if_timing_is_off": dict(zip(("recommended", "without_plans"), self.shifted, strict=True)),
            "candidates": [standing.to_dict() for standing in self.standings],
            "windows": {name: _nan_as_none(part) for name, part in self.windows._asdict().items()},
        }

    def html(self) -> str:
        """Return the advice as one self-contained HTML page with figures.

        Returns:
            The HTML document.
        """
        from driftsack.advice.html_report import html_report  # noqa: PLC0415  (loads Matplotlib)

        return html_report(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the advice to a file.

        Args:
            path: The file; plain data if it ends in .json, else the HTML page.
        """
        target = Path(path)
        text = json.dumps(self.to_dict(), indent=2) if target.suffix == ".json" else self.html()
        target.write_text(text, encoding="utf-8")


def _nan_as_none(values: Floats) -> Any:
    """Nested lists with None for NaN, which JSON does not have."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()
