"""Figures show the measured values, completely."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

import driftsack as ds
from driftsack.plot import flights_figure, floors_figure, rewards_figure, standings_figure, windows_figure
from driftsack.plot.lines import Points, lines_figure
from driftsack.plot.rewards import Curves
from driftsack.plot.style import BLUE, ORANGE, THOUSANDS


def test_rewards_figure_shows_every_curve_completely() -> None:
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


def test_bands_that_cannot_be_seen_are_named() -> None:
    """Bands are drawn to scale; those that are thinner than their line are named, and wide ones are not."""
    times = np.array([50, 100])
    wide = Curves(times, np.array([[10.0, 20.0], [40.0, 80.0], [20.0, 50.0]]))
    thin = Curves(times, np.array([[25.0, 50.0], [25.0, 50.1], [25.0, 49.9]]))
    for runs, words in (
        ({"wide": wide, "$5_$": thin}, r"bands: ± 2 standard errors (thinner than the line: \$5_\$)"),
        ({"wide": wide}, "bands: ± 2 standard errors"),
        ({"thin": thin}, "± 2 standard errors are thinner than the lines"),
    ):
        figure = rewards_figure({"world $x_$": runs}, note="3 trials")
        assert figure.get_suptitle() == f"3 trials; {words}"
        figure.savefig(io.BytesIO(), format="svg")  # fails if a name is read as mathematics
        legend = figure.axes[0].get_legend()
        assert legend is not None
        assert legend.get_title().get_text() == "final mean ± standard error"
    points = {"a": Points(np.array([0.5, 1.0]), np.array([10.0, 20.0]), np.array([0.0, 4.0]))}
    title = lines_figure({"panel": points}, ("change point α", "regret"), "3 trials").legends[0].get_title().get_text()
    assert title == "3 trials; bands: ± 2 standard errors"
    exact = {"a": points["a"]._replace(band=np.zeros(2))}
    assert lines_figure({"panel": exact}, ("x", "y")).legends[0].get_title().get_text() == ""


def test_ticks_show_whole_numbers_and_shares() -> None:
    assert [THOUSANDS(value, 0) for value in (0.0, 0.75, 2_500.0)] == ["0", "0.75", "2,500"]


def test_windows_figure_draws_means_intervals_and_changes() -> None:
    rng = np.random.default_rng(0)
    low, means, high = np.sort(rng.random((3, 6, 2, 3)), axis=0)
    means[2, 1, 0] = np.nan  # an arm without observations in that window
    labels = (("a", "b"), ("reward", "cost_x", "cost_y"))
    starts = np.arange(0.0, 60.0, 10.0, dtype=np.float64)
    figure = windows_figure(starts, (low, means, high), np.array([20, 40]), labels, rows=60)
    for k, axes in enumerate(figure.axes):
        lines = axes.get_lines()
        for i in range(2):
            np.testing.assert_array_equal(np.asarray(lines[i].get_ydata(), dtype=float), means[:, i, k])
            np.testing.assert_array_equal(np.asarray(lines[i].get_xdata(), dtype=float), np.arange(6) * 10.0 + 5)
        assert [float(np.asarray(line.get_xdata())[0]) for line in lines[2:]] == [20.0, 40.0]
        assert axes.get_ylabel() == f"mean {labels[1][k]}\nper round"


def sizes(axes: Axes) -> list[tuple[float, float]]:
    """Width and height of every bar."""
    boxes = [bar.get_path().get_extents(bar.get_patch_transform()) for bar in axes.patches]
    return [(round(box.width, 6), round(box.height, 6)) for box in boxes]


def test_bars_have_the_measured_lengths() -> None:
    shares, names = np.array([0.5, 0.9, 0.7]), ["first", "second", "third"]
    axes = standings_figure(names, shares, shares - 0.1, shares + 0.1, chosen=1).axes[0]
    assert [width for width, _ in sizes(axes)] == shares.tolist()
    assert axes.patches[1].get_facecolor() != axes.patches[0].get_facecolor()
    axes = floors_figure([("v1", 3.0, 1.0, 2.0), ("w1", 0.0, 0.0, 0.0)]).axes[0]
    assert [height for _, height in sizes(axes)] == [1.5, 0.0, 0.5, 0.0]
    first = {"policy": "first", "reward": 0.8, "reward_se": 0.0, "hindsight": True}
    second = {"policy": "second (window)", "reward": 0.5, "reward_se": 0.0, "hindsight": False}
    left, right = flights_figure(14.0, {"rounds": 4.0}, [first, second], {"best": 0.9}).axes
    assert [height for _, height in sizes(left)] == [14.0, 4.0]
    assert [width for width, _ in sizes(right)] == [0.8, 0.5]
    colours = [to_hex(bar.get_facecolor()).upper() for bar in right.patches]
    assert colours == [ORANGE, BLUE]  # by the field, not by the name
