"""Collect the data of the paper's figures from the trials and the evidence of each setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from driftsack.paper.experiments import BEST, POLICIES, SETTINGS
from driftsack.plot.lines import Points
from driftsack.plot.paper import FigureData
from driftsack.plot.rewards import Curves
from driftsack.sweeps.store_report import curves_by_instance

CAPTIONS: Final = {
    "figure_1a": "Figure 1a. Example 1: cumulative reward; the dotted line is the dynamic optimum.",
    "figure_1b": "Figure 1b. Example 2: cumulative reward; the dotted line is the dynamic optimum.",
    "figure_2a": "Figure 2a. Example 3: regret against the change point α; W is 0 at α = 1 and largest at α = 1/2.",
    "figure_2b": "Figure 2b. Example 4: regret against V, from 1 to 200 periods.",
    "figure_3": "Figure 3. W1 and W1_min against the change point k; they coincide at T/2.",
}


def figure_data(trials: Mapping[str, pl.DataFrame], evidence: Mapping[str, pl.DataFrame], count: int) -> FigureData:
    """Collect the lines of every figure from the trials and the evidence of each setting, with ``count`` trials."""
    titles = {setting.name: f"{setting.name}: scale {setting.scale:g}, {setting.noise}" for setting in SETTINGS}
    any_evidence = evidence[SETTINGS[0].name]
    optima = {k: float(points(any_evidence, k, {BEST: (BEST, "optimum")})[BEST].mean[0]) for k in (1, 2)}
    regrets = {name: (name, "regret") for name in POLICIES}
    measures = {"W₁, about the mean": (BEST, "W1"), "W₁ min, about the best centre": (BEST, "W1_min")}
    return FigureData(
        note=f"{count} trials",
        change=int(next(iter(trials.values()))["horizon"][0]) // 2,
        curves={k: {titles[name]: curves(frame, k) for name, frame in trials.items()} for k in (1, 2)},
        optima={k: dict.fromkeys(titles.values(), optima[k]) for k in (1, 2)},
        regret={
            k: {titles[name]: points(part, k, regrets, along) for name, part in evidence.items()}
            for k, along in ((3, "parameter"), (4, "x"))
        },
        measures={"one arm with mean reward 1 up to round k, then 0": points(any_evidence, 0, measures)},
    )


def curves(trials: pl.DataFrame, example: int) -> dict[str, Curves]:
    """The cumulative rewards of each policy on Example 1 or 2."""
    name = f"Example {example}"
    found = curves_by_instance(trials.filter(pl.col("instance") == name))[name]
    return {policy: found[policy] for policy in POLICIES}


def points(
    evidence: pl.DataFrame, example: int, lines: Mapping[str, tuple[str, str]], along: str = "x"
) -> dict[str, Points]:
    """Lines with bands of two standard errors, by name; each shows a policy and a quantity of an example."""
    found = {}
    for name, (policy, quantity) in lines.items():
        wanted = (pl.col("example") == example) & (pl.col("policy") == policy) & (pl.col("quantity") == quantity)
        rows = evidence.filter(wanted).sort(along)
        found[name] = Points(rows[along].to_numpy(), rows["mean"].to_numpy(), 2 * rows["se"].to_numpy())
    return found
