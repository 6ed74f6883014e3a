"""``driftsack reproduce``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from driftsack.cli.oco import reproduce_oco
from driftsack.cli.run import sweep
from driftsack.cli.show import make_folder, messages, plain_errors, print_json, results, rich_table

if TYPE_CHECKING:
    from driftsack.sweeps.spec import Spec


def reproduce(
    trials: Annotated[int, typer.Option(min=1, help="Trials of each policy on each world.")] = 100,
    horizon: Annotated[int, typer.Option(min=100, help="Rounds of a trial; budgets grow with it.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bits.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for figures, tables, the report and the trials.")] = Path("out"),
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Count the claims on the grid of settings.")] = False,
    oco: Annotated[
        bool, typer.Option("--oco", help="Section 4 instead: online convex optimisation, T to 10^6.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")] = False,
) -> None:
    """Reproduce the paper: every figure, in two settings, and a verdict on every claim of its experiments.

    Printed takes the algorithm's constants as they stand; calibrated is the one choice, for the whole paper, under
    which most claims hold. Writes figure_1a to figure_3 as .png, .svg and .pdf, claims.csv, table.csv and report.html,
    a page that needs no network. Trials are kept in store/: the same command again plays only what is missing.

    --calibrate plays the grid from which the calibrated setting was chosen and writes calibration.csv instead.

    Example: driftsack reproduce --trials 20 --out quick
    """
    if oco:
        reproduce_oco(out, as_json)
        return
    with plain_errors():
        make_folder(out)
        work = grid if calibrate else everything
        document = work(trials, horizon, seed, out)
    if as_json:
        print_json(document)
    elif calibrate:
        results.print(rich_table(pl.DataFrame(document["grid"]), "How many claims hold, the best first"))
    else:
        show(document)


def everything(trials: int, horizon: int, seed: int, out: Path) -> dict[str, Any]:
    """Play, judge, draw and write; returns what ``--json`` prints."""
    from driftsack.paper import claims, report  # noqa: PLC0415  (slow to load)
    from driftsack.paper import experiments as paper  # noqa: PLC0415
    from driftsack.paper.speed import speed  # noqa: PLC0415
    from driftsack.plot.paper import paper_figures  # noqa: PLC0415
    from driftsack.sweeps import load  # noqa: PLC0415  (slow to load)

    begun = time.perf_counter()
    found, evidence, rounds, cells = {}, {}, 0, {"played": 0, "kept": 0}
    still = paper.exact(horizon)
    for setting in paper.SETTINGS:
        played, frames = set(), []
        specs = paper.sweeps(setting, trials, horizon, seed)
        for spec, part in zip(specs, ("all", "first-half"), strict=True):
            played |= play(spec, out / "store" / f"{setting.name}-{part}", setting.name)
            frames.append(load(out / "store" / f"{setting.name}-{part}"))
            cells["kept"] += frames[-1]["cell"].n_unique()
        found[setting.name] = frames[0]
        evidence[setting.name] = paper.evidence(frames[0], frames[1], still)
        rounds += sum(paper.lp_rounds(frame.filter(pl.col("cell").is_in(list(played)))) for frame in frames)
        cells["played"] += len(played)
    cells["kept"] -= cells["played"]
    verdicts = claims.judge(evidence)
    with messages.status("drawing"):
        content = paper.drawing(found, evidence, trials)
        figures = paper_figures(content, out)
    seconds = time.perf_counter() - begun
    table = report.rewards_table(found)
    document = {
        "claims": verdicts,
        "figures": [str(path) for path in figures],
        "seconds": seconds,
        "speed": speed(rounds, seconds),
        "settings": {setting.name: setting._asdict() for setting in paper.SETTINGS},
        "trials": trials,
        "horizon": horizon,
        "seed": seed,
        "cells": cells,
        "table": table.to_dicts(),
        "report": str(out / "report.html"),
    }
    report.write_paper(document, out)
    return document


def play(spec: Spec, store: Path, name: str) -> set[str]:
    """Run one sweep; a cell that fails ends it all, since a figure would lack it."""
    from driftsack.core.errors import DriftsackError  # noqa: PLC0415

    swept = sweep(spec, store, "local", None, label=name)
    if swept.failed:
        raise DriftsackError(f"{len(swept.failed)} cells failed; the first: {swept.failed[0]}")
    return set(swept.played)


def grid(trials: int, horizon: int, seed: int, out: Path) -> dict[str, Any]:
    """Count the claims that hold at every point of the grid of settings."""
    from driftsack.paper import calibration  # noqa: PLC0415
    from driftsack.sweeps import load  # noqa: PLC0415

    frames: list[dict[str, pl.DataFrame]] = [{}, {}]
    for noise in calibration.NOISES:
        for k, spec in enumerate(calibration.grid_sweeps(noise, trials, horizon, seed)):
            store = out / "store" / f"grid-{noise}-{k}"
            play(spec, store, f"grid, {noise}")
            frames[k][noise] = load(store)
    table = calibration.count_claims(frames[0], frames[1], horizon)
    table.write_csv(out / "calibration.csv")
    return {"grid": table.to_dicts(), "trials": trials, "horizon": horizon, "seed": seed}


def show(document: dict[str, Any]) -> None:
    """Claims and where the rest is, for people."""
    from driftsack.plot.page import numbers_in_words  # noqa: PLC0415

    rows = [
        {
            "setting": one["setting"],
            "verdict": one["verdict"],
            "claim": one["sentence"],
            "numbers": numbers_in_words(one["numbers"]),
        }
        for one in document["claims"]
    ]
    for name in ("both", *document["settings"]):
        part = pl.DataFrame([row for row in rows if row["setting"] == name]).drop("setting")
        results.print(rich_table(part, f"Claims, {'settings do not matter' if name == 'both' else name}"))
    quick = document["speed"]
    if quick["ratio"]:
        messages.print(
            f"{quick['rounds']:,} rounds with an LP: a Python + linprog loop would need about "
            f"{quick['plain_seconds'] / 3600:,.0f} h (measured: {1e3 * quick['plain_round_seconds']:.2g} ms a round); "
            f"that is {quick['ratio']:,.0f} times as long."
        )
    messages.print(f"Report: {document['report']}   Figures: {len(document['figures'])}   {document['seconds']:.1f} s")
