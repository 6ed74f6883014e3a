"""``driftsack advise``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.text import Text

from driftsack.cli.console import (
    Column,
    JsonOption,
    SeedOption,
    check_file,
    line_per_task,
    messages,
    native_messages_dropped,
    number_column,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    refuse_needless,
    results,
    share_column,
)
from driftsack.core.errors import LogError, SettingError
from driftsack.core.names import Amounts
from driftsack.core.text import percent
from driftsack.logs import ReadOptions
from driftsack.logs.stream import PARQUET

if TYPE_CHECKING:
    from driftsack.advice import Advice

STANDINGS: Final = (
    Column("candidate", lambda row: str(row["candidate"].name)),
    number_column("reward"),
    share_column("share", "share of the optimum"),
    Column("95% of instances", lambda row: f"{percent(row['low'])} to {percent(row['high'])}"),
)


HorizonOption = Annotated[
    int | None,
    typer.Option(
        min=2, help="Rounds that the budget is for; the log is scaled to this length. Default: the rows of the log."
    ),
]
CostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        "--resource",
        metavar="COLUMN",
        help="Column of a resource; repeat for each. Default: those whose names begin with cost.",
    ),
]
KnownArmOption = Annotated[
    list[str] | None, typer.Option(help="An arm that may occur; repeat for each. Default: the arms in the log.")
]
LostOption = Annotated[
    bool,
    typer.Option("--lost", help="Accept empty rewards: these outcomes were lost, and nothing is learnt from them."),
]
DropOption = Annotated[
    bool, typer.Option("--drop-duplicates", help="Leave out rows that repeat an earlier row in every column.")
]
MergeOption = Annotated[
    bool, typer.Option("--merge-names", help="Names of arms that differ only by case and blanks are one arm.")
]
MissingOption = Annotated[
    Literal["refuse", "mean", "drop"],
    typer.Option(help="Empty costs of an arm that was played: refuse the log, take the arm's mean, or drop the row."),
]
DecimalOption = Annotated[Literal[".", ","], typer.Option(help="The decimal mark of numbers.")]
DatesOption = Annotated[
    Literal["iso", "us", "eu"], typer.Option(help="How dates are written: 2024-01-31, 1/31/2024 or 31.1.2024.")
]


def column_option(role: str) -> Any:
    """Make an option that names the column of a role."""
    return typer.Option(metavar="COLUMN", help=f"Column of the {role}.")


def amount(text: str) -> tuple[str, float]:
    """Parse a number with an optional name of a resource, such as 500 or usd=500."""
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise typer.BadParameter(f"expected a number or NAME=NUMBER, such as 500 or usd=500, got {text!r}.") from error


BudgetOption = Annotated[
    list[Any],
    typer.Option(
        parser=amount,
        metavar="[NAME=]NUMBER",
        help="Budget of a resource; repeat for each, in their order or as NAME=NUMBER.",
    ),
]
CostMaxOption = Annotated[
    list[Any] | None,
    typer.Option(
        parser=amount,
        metavar="[NAME=]NUMBER",
        help="The maximum cost of a round; repeat for each resource, in their order or as NAME=NUMBER. Default: the "
        "largest in the log.",
    ),
]
BlockOption = Annotated[
    int, typer.Option(min=1, help="Consecutive rounds that depend on each other, such as those of a day.")
]
PlansOption = Annotated[bool, typer.Option(help="Whether policies that rely on the timing of the log are candidates.")]
WorldsOption = Annotated[
    int, typer.Option(min=1, help="Instances resampled from the log, on which candidates are simulated.")
]


def advise(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A .csv or .parquet file with one row per round.")],
    budget: BudgetOption,
    horizon: HorizonOption = None,
    time: Annotated[str, column_option("time")] = "time",
    arm: Annotated[str, column_option("arm")] = "arm",
    reward: Annotated[str, column_option("reward")] = "reward",
    cost: CostOption = None,
    propensity: Annotated[str, column_option("propensity")] = "propensity",
    known_arm: KnownArmOption = None,
    reward_max: Annotated[
        float | None, typer.Option(help="The maximum reward of a round. Default: the largest in the log.")
    ] = None,
    cost_max: CostMaxOption = None,
    lost: LostOption = False,
    drop_duplicates: DropOption = False,
    merge_names: MergeOption = False,
    missing_costs: MissingOption = "refuse",
    decimal: DecimalOption = ".",
    dates: DatesOption = "iso",
    separator: Annotated[
        str | None, typer.Option(help="The separator of the columns of a CSV file. Default: a comma.")
    ] = None,
    block: BlockOption = 1,
    windows: Annotated[int | None, typer.Option(min=2, help="Windows of time in which drift is measured.")] = None,
    plans: PlansOption = True,
    worlds: WorldsOption = 20,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each candidate on each instance.")] = 4,
    seed: SeedOption = 0,
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("advice.html"),
    learner: Annotated[
        Path | None, typer.Option(help="The recommended policy, for Learner.load. Default: --out with .learner.")
    ] = None,
    world: Annotated[Path | None, typer.Option(help="Where to save the fitted instance, for Instance.load.")] = None,
    bad_rows: Annotated[Path | None, typer.Option(help="Where to write the invalid rows of the log, as CSV.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Analyse a log: is there drift, does it matter, which policy should be used, and what would more budget earn?

    The log has one row per round, in any units. Its columns are time, arm (empty if skipped), reward, one for each
    resource and, if known, propensity; options name columns that are called otherwise. Features of requests are in
    columns that begin with context_.

    Example: driftsack advise log.csv --budget 500 --budget 800 --horizon 10000

    Example: driftsack advise log.csv --time ts --arm model --reward ok --cost usd --cost seconds
    --budget usd=20 --budget seconds=50000
    """
    from driftsack.advice import AdviseSettings
    from driftsack.advice import advise as compute
    from driftsack.advice.advice import check_not_begun

    # Check the files to be written before the long computation.
    policy = out.with_suffix(".learner") if learner is None else learner
    is_parquet = log.suffix.lower() in PARQUET
    with plain_errors():
        refuse_needless({"--separator": separator if is_parquet else None}, "on a Parquet file")
        check_file(out, "--out")
        check_file(policy, "--learner")
        check_not_begun(policy)
        if world is not None:
            check_file(world, "--world")

    # Compute the advice, and write the page, the policy and the fitted instance.
    quiet = native_messages_dropped() if is_parquet else contextlib.nullcontext()
    with plain_errors(), quiet, bad_rows_saved(bad_rows), progress_bar() as bar:
        advice = compute(
            log,
            in_order_or_by_name(budget, "--budget"),
            horizon,
            options=ReadOptions(
                resources=cost,
                arms=known_arm,
                reward_max=reward_max,
                cost_max=in_order_or_by_name(cost_max, "--cost-max") if cost_max else None,
                separator="," if separator is None else separator,
                columns={"time": time, "arm": arm, "reward": reward, "propensity": propensity},
                lost=lost,
                drop_duplicates=drop_duplicates,
                merge_names=merge_names,
                missing_costs=missing_costs,
                decimal=decimal,
                dates=dates,
            ),
            settings=AdviseSettings(block=block, windows=windows, plans=plans, worlds=worlds, trials=trials, seed=seed),
            progress=line_per_task(bar),
        )
        bar.stop()
        advice.write(out, policy)
        advice.save(policy, seed)
        if world is not None:
            advice.world.save(world)
    if as_json:
        print_json({**advice.to_dict(), "page": str(out), "learner": str(policy)})
    else:
        print_advice(advice, f"Candidates on {worlds} instances resampled from {log.name}.")
        messages.print(Text(f"Page: {out}   Recommended policy, ready to use: ds.Learner.load({str(policy)!r})"))


def in_order_or_by_name(amounts: list[tuple[str, float]], option: str) -> Amounts:
    """Return the amounts as a list, or by name if all have distinct names."""
    named = dict(amounts)
    if set(named) == {""}:
        return [value for _, value in amounts]
    if "" in named or len(named) < len(amounts):
        given = ", ".join(f"{name}={value:g}" if name else f"{value:g}" for name, value in amounts)
        raise SettingError(f"{option} must be given once for each resource, all in order or all by name, got {given}.")
    return named


def print_advice(advice: Advice, title: str) -> None:
    """Print the summary and the candidates."""
    results.print(Text(str(advice)))
    listed = ({**standing._asdict(), "reward": advice.reward(standing)} for standing in advice.standings)
    rows = sorted(listed, key=lambda row: -row["share"])
    print_table(rows, STANDINGS, title)


@contextlib.contextmanager
def bad_rows_saved(path: Path | None) -> Iterator[None]:
    """If a log has invalid rows and a path is given, write them to it."""
    try:
        yield
    except LogError as error:
        if path is not None and error.bad:
            messages.print(Text(save_bad_rows(error, path)))
        raise


def save_bad_rows(error: LogError, path: Path) -> str:
    """Write the invalid rows; return where they are, or why they could not be written."""
    try:
        import polars as pl

        pl.DataFrame([row._asdict() for row in error.bad]).write_csv(path)
    except OSError as failure:
        return f"Bad rows could not be written to {path}: {failure}"
    return f"Bad rows: {path}"
