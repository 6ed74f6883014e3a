"""The report on a store: a table, figures and one HTML page, as ``driftsack report`` writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from driftsack.core.arrays import Floats
from driftsack.numerics.curves import curve_times
from driftsack.plot import heat_figure, rewards_figure, write_figure
from driftsack.plot.page import heading, page, picture, table, versions
from driftsack.plot.rewards import Curves
from driftsack.plot.style import make_directory
from driftsack.sweeps.store import CellStore
from driftsack.sweeps.summary import summary

PANELS: Final = 3  # instances that one figure of curves shows


class StoreReport(NamedTuple):
    """The results of :func:`report_store`, and the files that it wrote."""

    table: pl.DataFrame  # one row per instance and policy: means with standard errors, and shares
    missing: int  # number of cells of the plan that have not been simulated yet
    figures: list[Path]  # the files of the figures
    page: Path  # the HTML page

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "table": self.table.to_dicts(),
            "missing": self.missing,
            "figures": [str(path) for path in self.figures],
            "report": str(self.page),
        }


def report_store(store: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> StoreReport:
    """Write ``table.csv``, ``report.html`` and figures for the trials of a store.

    The figures are ``curves_1``, ``curves_2`` and so on (cumulative rewards, three instances per figure) and ``shares``
    (a heat map), each as PNG, SVG and PDF. A store whose sweep has not finished is reported as far as it goes.

    Args:
        store: A directory that :func:`driftsack.sweeps.run` filled.
        out: The directory to write to; ``report`` inside the store by default.

    Returns:
        The table and the files that were written.

    Raises:
        CellStoreError: If the directory is not a store.
        SettingError: If ``out`` cannot be written to.
    """
    source = CellStore(store)
    trials, missing, plan = source.load(), source.missing(), source.plan()
    directory = make_directory(Path(store) / "report" if out is None else out)
    rows = summary(trials)
    figures: list[Path] = []
    optima = dict(trials.group_by("instance", maintain_order=True).agg(pl.col("optimum").first()).iter_rows())
    for count, panels in enumerate(split_panels(curves_by_instance(trials)), start=1):
        figure = rewards_figure(panels, optima)
        figures += write_figure(figure, directory, f"curves_{count}")
    if not rows.is_empty():
        figures += write_figure(heat_figure(*share_matrix(rows), "reward, % of LP-Dynamic"), directory, "shares")
    rows.write_csv(directory / "table.csv")
    html = directory / "report.html"
    html.write_text(_page(rows, plan, missing, figures), encoding="utf-8")
    return StoreReport(rows, missing, figures, html)


def curves_by_instance(trials: pl.DataFrame) -> dict[str, dict[str, Curves]]:
    """The cumulative rewards of all trials by instance and policy, in the order of the trials."""
    found: dict[str, dict[str, Curves]] = {}
    for (instance, policy), part in trials.group_by("instance", "policy", maintain_order=True):
        times = curve_times(int(part["horizon"][0]))
        found.setdefault(str(instance), {})[str(policy)] = Curves(times, np.array(part["curve"].to_list()))
    return found


def split_panels(panels: Mapping[str, Mapping[str, Curves]]) -> Iterator[dict[str, Mapping[str, Curves]]]:
    """Split the panels into groups of at most ``PANELS``, one group per figure."""
    titles = list(panels)
    for begin in range(0, len(titles), PANELS):
        yield {title: panels[title] for title in titles[begin : begin + PANELS]}


def share_matrix(rows: pl.DataFrame) -> tuple[Floats, list[str], list[str]]:
    """The shares of the optimum (policies, instances), NaN where nothing was simulated, with the names of both axes."""
    policies, instances = (rows[name].unique(maintain_order=True).to_list() for name in ("policy", "instance"))
    shares = np.full((len(policies), len(instances)), np.nan)
    for row in rows.iter_rows(named=True):
        share = row["optimum_share"]
        shares[policies.index(row["policy"]), instances.index(row["instance"])] = np.nan if share is None else share
    return shares, policies, instances


def _page(rows: pl.DataFrame, plan: Mapping[str, Any], missing: int, figures: Sequence[Path]) -> str:
    seeds = plan.get("spec", {}).get("seeds")
    facts = [
        ("trials of each policy on each instance, of all seeds", "" if rows.is_empty() else str(rows["trials"].max())),
        ("seeds", str(seeds)),
        ("cells", f"{missing} of {len(plan['cells'])} cells are missing." if missing else "All cells are complete."),
        ("versions", versions()),
    ]
    parts = [
        heading("What was run"),
        table([], facts),
        heading("Results"),
        table(rows.columns, rows.iter_rows()),
        heading("Figures"),
        *(picture(path, path.stem.replace("_", " ")) for path in figures if path.suffix == ".png"),
    ]
    lead = "Mean reward with its standard error; the optimum is LP-Dynamic, the best plan."
    return page("Sweep", lead, parts)
