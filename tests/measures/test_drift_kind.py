"""The kind of drift: one verdict from three optima, and the overview that reports it."""

from __future__ import annotations

import pytest

import driftsack as ds
from driftsack.measures.drift_kind import NEGLIGIBLE, DriftKind, Optima, drift_kind, explain
from driftsack.measures.overview import measure


@pytest.mark.parametrize(
    ("optima", "drifts", "kind", "words"),
    [
        (Optima(100.0, 99.5, 99.0), False, DriftKind.STATIONARY, "no reason to forget"),
        (Optima(100.0, 99.5, 97.6), True, DriftKind.HARMLESS, "earns 98% of the optimum"),
        (Optima(100.0, 95.0, 60.0), True, DriftKind.WHICH, "is worth 35% of the optimum, planning when to spend 5%"),
        (Optima(100.0, 70.0, 68.0), True, DriftKind.WHEN, "spending evenly loses 30% of the optimum"),
        (Optima(100.0, 85.0, 100.0), True, DriftKind.WHEN, "spending evenly loses 15% of the optimum"),
        (Optima(0.0, 0.0, 0.0), True, DriftKind.HARMLESS, "Nothing can be earned"),
    ],
)
def test_verdict_and_explanation(optima: Optima, drifts: bool, kind: DriftKind, words: str) -> None:
    assert drift_kind(optima, drifts) is kind
    assert words in explain(kind, optima)


@pytest.mark.parametrize(("above", "kind"), [(-1e-6, DriftKind.HARMLESS), (1e-6, DriftKind.WHEN)])
def test_the_threshold_decides(above: float, kind: DriftKind) -> None:
    even = 1.0 - NEGLIGIBLE - above
    assert drift_kind(Optima(1.0, even, even), drifts=True) is kind


def test_the_overview_reports_the_kind() -> None:
    """Also for a stationary instance, and without bounds if the budget is zero, for which they are undefined."""
    assert measure(ds.instances.example_2(horizon=100)).kind is DriftKind.WHICH
    shifting = measure(ds.instances.example_3(alpha=0.5, horizon=100))
    assert shifting.kind is DriftKind.WHEN
    assert "spending evenly loses 15% of the optimum" in shifting.meaning
    stationary = measure(ds.Instance.stationary([0.5, 0.7], [[0.5, 0.9]], horizon=50, budget=10.0))
    assert stationary.kind is DriftKind.STATIONARY
    assert stationary.bounds
    without_budget = measure(ds.Instance.stationary([0.5, 0.7], [[0.5, 0.9]], horizon=50, budget=0.0))
    assert without_budget.bounds == {}
    assert "Nothing can be earned" in without_budget.meaning
