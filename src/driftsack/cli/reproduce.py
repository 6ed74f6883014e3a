"""``driftsack reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from driftsack.cli.console import (
    JsonOption,
    columns_of,
    line_per_task,
    messages,
    note,
    number_column,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    refuse_needless,
    results,
    text_column,
)
from driftsack.core.text import number

if TYPE_CHECKING:
    import polars as pl

    from driftsack.paper import OcoReproduction, Reproduction


def reproduce(
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials of each policy on each instance. Default: 100.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=100, help="Rounds of a trial; budgets grow with it. Default: 10,000.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed; the same seed gives the same results. Default: 1, or 0 with --calibrate, the seed on which the "
            "calibrated setting was selected.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for figures, tables, the report and the trials.")] = Path("out"),
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Count the claims that hold on a grid of settings instead.")
    ] = False,
    oco: Annotated[
        bool, typer.Option("--oco", help="Reproduce section 4, online convex optimisation, instead (T up to 10^6).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper: every figure in two settings, and a verdict on every claim of its experiments.

    The printed setting uses the constants of the paper. The calibrated setting was selected, once for the whole paper,
    as the one under which most claims hold with seed 0, and is judged with another seed. Writes figure_1a to figure_3
    as .png, .svg and .pdf, claims.csv, table.csv and report.html, a page that needs no network. Trials are kept in
    store/, and running the command again simulates only the missing ones.

    With --calibrate, the grid from which the calibrated setting was chosen is simulated, and calibration.csv is
    written. With --oco, oco.csv and oco.png, .svg and .pdf are written.

    Example: driftsack reproduce --trials 20 --out quick
    """
    from driftsack import paper
    from driftsack.paper.experiments import HELD_OUT_SEED, SELECTION_SEED

    with plain_errors():
        if oco:
            given = {"--calibrate": calibrate, "--trials": trials, "--horizon": horizon, "--seed": seed}
            refuse_needless(given, "with --oco")
    # Run the requested part.
    trials, horizon = trials or 100, horizon or 10_000
    default = SELECTION_SEED if calibrate else HELD_OUT_SEED
    chosen = default if seed is None else seed
    with plain_errors(), progress_bar() as bar:
        progress = line_per_task(bar)
        result: OcoReproduction | Reproduction | pl.DataFrame
        if oco:
            result = paper.reproduce_oco(out, progress=progress)
        elif calibrate:
            result = paper.calibrate(out, trials, horizon, chosen, progress, note)
        else:
            result = paper.reproduce(out, trials, horizon, chosen, progress, note)
    # Print its results.
    if isinstance(result, paper.OcoReproduction):
        print_section_4(result, as_json)
    elif isinstance(result, paper.Reproduction):
        print_reproduction(result, as_json)
    elif as_json:
        print_json({"grid": result.to_dicts(), "trials": trials, "horizon": horizon, "seed": chosen})
    else:
        rows = result.to_dicts()
        print_table(rows, columns_of(rows), "The number of claims that hold in each setting, the best setting first.")


def selected_on(setting: str, seed: int) -> str:
    """Say on which seed the calibrated setting was selected and judged; empty for other settings."""
    from driftsack.paper.experiments import CALIBRATED, SELECTION_SEED

    if setting != CALIBRATED.name:
        return ""
    judged = "the same one" if seed == SELECTION_SEED else f"seed {seed}"
    return f" (selected on seed {SELECTION_SEED}, judged on {judged})"


def print_reproduction(reproduction: Reproduction, as_json: bool = False) -> None:
    """Print the verdicts, the comparison with plain Python and the paths of the files."""
    if as_json:
        print_json(reproduction.to_dict())
        return
    # A table of the claims about instances, and one for each setting.
    columns = [text_column(name) for name in ("verdict", "claim", "numbers")]
    titles = {None: "Claims about the instances."} | {
        name: f"Claims about policies in the {name} setting{selected_on(name, reproduction.seed)}; ± are standard "
        "errors."
        for name in reproduction.settings
    }
    for setting, title in titles.items():
        rows = [
            {"verdict": claim.verdict, "claim": claim.sentence, "numbers": claim.numbers_text()}
            for claim in reproduction.claims
            if claim.setting == setting
        ]
        print_table(rows, columns, title)
    # The time that plain Python would need, and the files.
    speed = reproduction.speed
    if speed.ratio is not None:
        messages.print(
            f"{number(speed.rounds)} rounds solved an LP: a Python + linprog loop would need about "
            f"{number(speed.plain_seconds / 3600, digits=2)} h (measured: "
            f"{number(1e3 * speed.plain_round_seconds, digits=2)} ms per round), {number(speed.ratio)} times as long."
        )
    files = f"Report: {reproduction.report}   Figures: {len(reproduction.figures)}"
    messages.print(f"{files}   {reproduction.seconds:.1f} s")


def print_section_4(section_4: OcoReproduction, as_json: bool = False) -> None:
    """Print the table, the verdicts and the paths of the files."""
    if as_json:
        print_json(section_4.to_dict())
        return
    columns = [
        text_column("world", "problem"),
        number_column("horizon"),
        number_column("regret"),
        number_column("violation"),
        number_column("q_bar_w", "q̄W"),
        number_column("draws"),
    ]
    print_table(
        section_4.table.iter_rows(named=True),
        columns,
        "Section 4: means over the draws; exponents below have ± standard errors.",
    )
    for claim in section_4.claims:
        results.print(Text.assemble((f"{claim.verdict:<9}", "bold"), f" {claim.claim}\n          {claim.measured}"))
    files = f"Figure: {section_4.figures[0]} (and .svg, .pdf)   Table: {section_4.csv}"
    messages.print(f"{files}   {section_4.seconds:.1f} s")
