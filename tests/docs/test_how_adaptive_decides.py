"""The page on Adaptive: its script draws the figures and prints what it quotes, and what its captions say is true."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import driftsack as ds
from tests.support.paths import ROOT

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def page() -> Any:
    return SimpleNamespace(**runpy.run_path(str(DOCS / "how_adaptive_decides.py")))


def test_the_script_prints_what_the_page_quotes_and_draws_its_figures(
    page: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.main(tmp_path)
    text = (DOCS / "how-adaptive-decides.md").read_text()
    quoted = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert quoted is not None
    assert quoted[1] == capsys.readouterr().out
    for name in re.findall(r"figures/(adaptive_\w+\.png)", text):
        figure = imread(tmp_path / name)
        assert figure.shape == imread(DOCS / "figures" / name).shape
        assert figure[..., :3].std() > 0.05  # something is drawn
    assert len(list(tmp_path.iterdir())) == 3


def test_weight_moves_to_young_runs_after_a_change_and_only_then(page: Any) -> None:
    """All three changes are recognised within 60 pulls; at three rounds without a change nothing is recognised."""
    trace = page.record(page.changing_arm(), ds.Adaptive(), seed=page.BELIEF_SEED)
    np.testing.assert_allclose(trace.weights.sum(axis=2), 1.0)
    assert max(page.recognition(trace, change) or np.inf for change in (500, 1_000, 1_500)) <= 60
    assert [page.recognition(trace, round) for round in (300, 700, 1_250)] == [None] * 3


def test_an_arm_that_improves_unseen_is_found_by_visits(page: Any) -> None:
    """Visits are about sqrt(1/h) apart; random choice visits far more often, and UCB never comes back."""
    world = page.unseen_improvement()
    trace = page.record(world, ds.Adaptive(), seed=page.REVISITS_SEED)
    gaps = [np.median(page.visit_gaps(trace, arm, 100, 3_000)) for arm in (1, 2)]
    assert 0.3 < min(gaps) <= max(gaps) < 5.0
    assert page.found_after(trace.arms, 2, 3_000) < 1_500
    random = trace._replace(arms=np.random.default_rng(0).integers(0, 3, world.horizon))
    assert np.median(page.visit_gaps(random, 1, 100, 3_000)) < 0.1
    assert page.found_after(random.arms, 2, 3_000) is None
    forgetful = ds.simulate(world, ds.NaiveUCB(scale=0.05), trials=5, seed=0)
    assert np.median((forgetful.pulls - forgetful.pulls_first_half)[:, 2]) < 30


def test_spending_is_above_the_even_pace_in_rich_times_and_below_in_poor_times(page: Any) -> None:
    """Once both have been seen, until the pace becomes even in the last quarter; by what is left it always is."""
    world = page.rich_and_poor_times()
    trace = page.record(world, ds.Adaptive(), seed=page.PACING_SEED)
    spending = page.relative_spending(trace, world)
    assert spending[5] > 1.2
    assert spending[4] < 0.6
    assert np.abs(spending[6:] - 1.0).max() < 0.2
    assert trace.remaining.min() >= 0.0
    even = page.record(world, ds.Adaptive(pacing="remaining"), seed=page.PACING_SEED)
    assert np.abs(page.relative_spending(even, world)[4:] - 1.0).max() < 0.2
    rich, present = world.phase % 2 == 1, page.present_price(trace, every=50)
    assert np.median(present[rich]) > 1.15 * np.median(trace.long_run[rich])
    assert np.median(present[~rich]) < np.median(trace.long_run[~rich])


def test_a_trace_has_the_outcomes_of_the_learner(page: Any) -> None:
    """Spending adds up to what is gone from the budget, and the estimates of a long stationary trial are right."""
    world = ds.Instance.stationary([0.7, 0.3], [[0.5, 0.5]], 400, 300.0)
    trace = page.record(world, ds.Adaptive(), seed=0)
    np.testing.assert_allclose(300.0 - trace.spent.sum(axis=0), trace.remaining[-1])
    assert trace.estimates[-1, 0] == pytest.approx([0.7, 0.5], abs=5 * np.sqrt(0.25 / 300))
