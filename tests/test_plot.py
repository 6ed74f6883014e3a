"""Figures: what is drawn is what was measured, and all of it can be seen."""

from __future__ import annotations

import numpy as np

import driftsack as ds
from driftsack.plot import rewards_figure


def test_rewards_figure_shows_every_curve_whole() -> None:
    """Panels of different heights share an axis that holds them all; lines are means, bands two standard errors."""
    worlds = {"low": ds.instances.example_1(horizon=400), "high": ds.instances.example_2(horizon=800)}
    policies = {"SW-UCB": ds.SlidingWindowUCB(windows=(90, 90)), "naive UCB": ds.NaiveUCB()}
    panels = {
        title: {name: ds.simulate(world, policy, trials=6, seed=0) for name, policy in policies.items()}
        for title, world in worlds.items()
    }
    figure = rewards_figure(panels)
    for axes, (title, runs) in zip(figure.axes, panels.items(), strict=True):
        assert axes.get_title() == title
        assert axes.get_xlabel() == "round"
        for line, run in zip(axes.get_lines(), runs.values(), strict=False):
            heights = np.asarray(line.get_ydata(), dtype=float)
            np.testing.assert_allclose(heights[1:], run.curve.mean(axis=0))
            assert axes.get_ylim()[0] <= heights.min()
            assert axes.get_ylim()[1] > heights.max()
        band = axes.collections[0].get_paths()[0].vertices
        run = next(iter(runs.values()))
        top = run.curve.mean(axis=0)[-1] + 2 * run.curve[:, -1].std(ddof=1) / np.sqrt(6)
        assert np.isclose(np.asarray(band)[:, 1].max(), top)
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text().split(":")[0] for text in legend.get_texts()] == list(policies)
    assert figure.axes[0].get_ylabel() == "cumulative reward"


def test_one_trial_has_no_band_and_no_warning() -> None:
    world = ds.instances.example_1(horizon=100)
    figure = rewards_figure({"one": {"naive UCB": ds.simulate(world, ds.NaiveUCB(), trials=1)}})
    band = np.asarray(figure.axes[0].collections[0].get_paths()[0].vertices)
    line = np.asarray(figure.axes[0].get_lines()[0].get_ydata(), dtype=float)
    assert set(band[:, 1]) <= set(line)  # a band of no height
