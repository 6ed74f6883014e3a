"""Reports: what was found, as one HTML page and as tables in CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from driftsack.core.arrays import Floats
from driftsack.numerics.curves import curve_times
from driftsack.paper.experiments import Curves, Setting
from driftsack.plot.page import grid, heading, numbers_in_words, page, paragraph, picture, versions
from driftsack.sweeps.summary import summary

CAPTIONS: Final = {
    "figure_1a": "Figure 1a. Example 1: cumulative reward; the dotted line is the dynamic optimum.",
    "figure_1b": "Figure 1b. Example 2: cumulative reward; the dotted line is the dynamic optimum.",
    "figure_2a": "Figure 2a. Example 3: regret against W, the change moving from the end (W = 0) to the middle.",
    "figure_2b": "Figure 2b. Example 4: regret against V, from 1 to 200 periods.",
    "figure_3": "Figure 3. W1 and W1_min against the change point k; they coincide at T/2.",
}


def rewards_table(trials: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a setting, world and policy."""
    parts = [summary(frame).select(pl.lit(name).alias("setting"), pl.all()) for name, frame in trials.items()]
    return pl.concat(parts)


def write_paper(document: dict[str, Any], out: Path) -> None:
    """``report.html``, ``claims.csv`` and ``table.csv``."""
    claims = [
        (one["setting"], one["name"], one["verdict"], one["sentence"], numbers_in_words(one["numbers"]))
        for one in document["claims"]
    ]
    names = ["setting", "claim", "verdict", "sentence", "numbers"]
    pl.DataFrame(claims, schema=names, orient="row").write_csv(out / "claims.csv")
    table = pl.DataFrame(document["table"])
    table.write_csv(out / "table.csv")
    shown = table.select("setting", "instance", "policy", "reward", "reward_se", "optimum", "stopping_time")
    parts = [
        heading("What was run"),
        facts(document),
        heading("Claims"),
        paragraph(
            "A claim holds or fails at two standard errors; in between it is undecided. Printed takes the constants as "
            "they stand in the paper; calibrated is one choice for the whole paper, made by counting claims on a grid."
        ),
        side_by_side(document["claims"]),
        heading("Figures"),
        *(picture(out / f"{name}.png", caption) for name, caption in CAPTIONS.items()),
        heading("Rewards"),
        grid(shown.columns, shown.iter_rows()),
    ]
    lead = "S. Liu, J. Jiang and X. Li, Non-stationary Bandits with Knapsacks (2022): figures and claims, recomputed."
    (out / "report.html").write_text(page("The paper's experiments", lead, parts), encoding="utf-8")


def facts(document: dict[str, Any]) -> str:
    """Settings, seed, versions, time taken."""
    quick, cells = document["speed"], document["cells"]
    rows = [(f"setting: {name}", str(Setting(**setting))) for name, setting in document["settings"].items()]
    rows += [
        ("trials of each policy on each world", f"{document['trials']:,}"),
        ("rounds", f"{document['horizon']:,}"),
        ("seed", str(document["seed"])),
        (
            "time taken",
            f"{document['seconds']:.1f} s: {cells['played']} cells played, {cells['kept']} kept from before",
        ),
        ("versions", ", ".join(f"{name} {value}" for name, value in versions().items())),
    ]
    if quick["ratio"]:
        slice_said = f"{1e3 * quick['plain_round_seconds']:.2g} ms a round, measured on a slice"
        whole = f"about {quick['plain_seconds'] / 3600:,.0f} h for the {quick['rounds']:,} rounds with an LP"
        rows.append(("a Python + linprog loop", f"{whole}, {quick['ratio']:,.0f} times as long ({slice_said})"))
    return grid([], rows)


def side_by_side(claims: list[dict[str, Any]]) -> str:
    """One row a claim; what each setting says of it."""
    settings = [name for name in dict.fromkeys(one["setting"] for one in claims) if name != "both"]
    rows: dict[str, list[Any]] = {}
    for one in claims:
        row = rows.setdefault(one["name"], [one["sentence"]])
        said = [one["verdict"], numbers_in_words(one["numbers"])]
        row += said + [one["verdict"], "the same"] * (len(settings) - 1) if one["setting"] == "both" else said
    columns = [text for name in settings for text in (name, "numbers")]
    return grid(["the paper says", *columns], rows.values())


def panels(trials: pl.DataFrame) -> dict[str, dict[str, Curves]]:
    """Curves by world and policy, in the order of the trials."""
    found: dict[str, dict[str, Curves]] = {}
    for (world, policy), part in trials.group_by("instance", "policy", maintain_order=True):
        times = curve_times(int(part["horizon"][0]))
        found.setdefault(str(world), {})[str(policy)] = Curves(times, np.array(part["curve"].to_list()))
    return found


def threes(worlds: dict[str, dict[str, Curves]]) -> Iterator[dict[str, dict[str, Curves]]]:
    """Three worlds at a time: what a figure can show."""
    names = list(worlds)
    for begin in range(0, len(names), 3):
        yield {name: worlds[name] for name in names[begin : begin + 3]}


def optima(trials: pl.DataFrame) -> dict[str, float]:
    """LP-Dynamic of every world."""
    return dict(trials.group_by("instance", maintain_order=True).agg(pl.col("optimum").first()).iter_rows())


def shares(table: pl.DataFrame) -> tuple[Floats, list[str], list[str]]:
    """The summary's shares (policies, worlds), NaN where nothing was played, with the names of rows and columns."""
    policies, worlds = (table[name].unique(maintain_order=True).to_list() for name in ("policy", "instance"))
    values = np.full((len(policies), len(worlds)), np.nan)
    for row in table.iter_rows(named=True):
        share = row["optimum_share"]
        values[policies.index(row["policy"]), worlds.index(row["instance"])] = np.nan if share is None else share
    return values, policies, worlds


def write_store(table: pl.DataFrame, plan: dict[str, Any], missing: int, figures: Sequence[Path], out: Path) -> None:
    """``report.html`` and ``table.csv`` of a store."""
    table.write_csv(out / "table.csv")
    spec = plan.get("spec", {})
    said = f"{missing} of {len(plan['cells'])} cells are still missing." if missing else "Every cell is there."
    rows = [
        ("trials of each policy on each world", str(spec.get("trials"))),
        ("seeds", str(spec.get("seeds"))),
        ("cells", said),
        ("versions", ", ".join(f"{name} {value}" for name, value in versions().items())),
    ]
    parts = [
        heading("What was run"),
        grid([], rows),
        heading("Results"),
        grid(table.columns, table.iter_rows()),
        heading("Figures"),
        *(picture(path, path.stem.replace("_", " ")) for path in figures if path.suffix == ".png"),
    ]
    lead = "Mean reward with its standard error; optimum is LP-Dynamic, the best plan."
    (out / "report.html").write_text(page("A sweep", lead, parts), encoding="utf-8")
